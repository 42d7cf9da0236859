/** The typed-array lab without its looks: checks shapes, runs the module, names what came out. */
import type { AttentionOptions, AttentionResult, Mask, Tensor, TraceName } from 'attn';
import { mergeHeads, product, splitHeads, transposed } from './arrays.ts';
import type { Engine } from './engine.ts';
import { counted, shapeText } from './numbers.ts';

export type MatrixName = 'Q' | 'K' | 'V' | 'X' | 'Wq' | 'Wk' | 'Wv' | 'Wo' | 'Mask';
export type FieldName = MatrixName | 'Heads' | 'Scale';

/** A complaint that belongs beside one field. */
export class FieldError extends Error {
  constructor(
    readonly field: FieldName,
    message: string,
  ) {
    super(message);
  }
}

export interface CommonInputs {
  /** undefined: the default. */
  readonly scale: number | undefined;
  readonly mask: Mask | undefined;
  readonly causal: boolean;
}
export interface AttentionInputs extends CommonInputs {
  readonly Q: Tensor;
  readonly K: Tensor;
  readonly V: Tensor;
}
export interface MultiHeadInputs extends CommonInputs {
  readonly X: Tensor;
  readonly Wq: Tensor;
  readonly Wk: Tensor;
  readonly Wv: Tensor;
  readonly Wo: Tensor | undefined;
  readonly heads: number;
}

/** What the leading dimensions of a result count. */
export type Leading = 'batch' | 'head';
export interface NamedResult {
  readonly name: string;
  readonly tensor: Tensor;
  /** Outermost first. */
  readonly leading: readonly Leading[];
  readonly rows: 'query' | 'key' | 'query, key';
  readonly columns: 'key' | 'number';
}
export interface LabResult {
  readonly weights: NamedResult;
  readonly output: NamedResult;
  readonly trace: readonly NamedResult[];
  /** Says why when a trace was left out. */
  readonly note: string;
}

const order: readonly TraceName[] = [
  'q_proj',
  'k_proj',
  'v_proj',
  'q',
  'k',
  'v',
  'scores',
  'masked_scores',
  'probabilities',
  'weights',
  'weighted_values',
  'context',
  'merged',
  'output',
];
/** Of (.., L, W) form: no head dimension. */
const withoutHeads: ReadonlySet<string> = new Set(['q_proj', 'k_proj', 'v_proj', 'merged']);
/** weighted_values has L*S*Dv numbers per head; above this it is left out. */
const maximumWeightedValues = 1_000_000;

const last = (tensor: Tensor, from: number) => tensor.dims[tensor.dims.length - from]!;

function describe(name: TraceName | 'output', tensor: Tensor, leading: readonly Leading[]): NamedResult {
  const rows = name === 'weighted_values' ? 'query, key' : ['k_proj', 'v_proj', 'k', 'v'].includes(name) ? 'key' : 'query';
  const columns = ['scores', 'masked_scores', 'probabilities', 'weights'].includes(name) ? 'key' : 'number';
  return { name, tensor, leading, rows, columns };
}

function collect(result: AttentionResult, headed: readonly Leading[], outputLeading: readonly Leading[], note: string): LabResult {
  const batched = headed.filter((kind) => kind === 'batch');
  const leadingOf = (name: TraceName) => (name === 'output' ? outputLeading : withoutHeads.has(name) ? batched : headed);
  const trace = order.flatMap((name) => {
    const tensor = result.trace?.[name];
    return tensor ? [describe(name, tensor, leadingOf(name))] : [];
  });
  return { weights: describe('weights', result.weights!, headed), output: describe('output', result.output, outputLeading), trace, note };
}

function options(inputs: CommonInputs, weightedValues: number): { options: AttentionOptions; note: string } {
  const fits = weightedValues <= maximumWeightedValues;
  return {
    options: {
      needWeights: true,
      isCausal: inputs.causal,
      trace: fits ? order : order.filter((name) => name !== 'weighted_values'),
      ...(inputs.scale === undefined ? {} : { scale: inputs.scale }),
      ...(inputs.mask ? { mask: inputs.mask } : {}),
    },
    note: fits ? '' : `weighted_values would have ${weightedValues} numbers and is left out.`,
  };
}

/** Shapes that a mask may have for these sizes; the same rule as the module's, said in the field's words. */
function checkMask(mask: Mask | undefined, batch: number, heads: number, queries: number, keys: number): void {
  if (!mask) return;
  const full = [batch, heads, queries, keys];
  const dims = [...mask.dims];
  // (B, L, S): the head dimension is the one that is missing.
  const aligned = dims.length === 3 ? [dims[0]!, 1, dims[1]!, dims[2]!] : [...Array<number>(4 - dims.length).fill(1), ...dims];
  const fits = aligned.every((size, i) => size === full[i] || (i < 3 && size === 1));
  if (!fits) {
    const forms = [
      `(${keys},)`,
      `(${queries}, ${keys})`,
      ...(batch > 1 ? [`(${batch}, ${queries}, ${keys})`] : []),
      ...(heads > 1 ? [`(${batch}, ${heads}, ${queries}, ${keys})`] : []),
    ];
    throw new FieldError('Mask', `The mask has shape ${shapeText(mask.dims)}. One number for every query and key is needed: ${forms.join(' or ')}.`);
  }
}

export async function runAttention(engine: Engine, inputs: AttentionInputs): Promise<LabResult> {
  const { Q, K, V } = inputs;
  const rank = Q.dims.length;
  for (const [name, tensor] of [
    ['K', K],
    ['V', V],
  ] as const) {
    if (tensor.dims.length !== rank)
      throw new FieldError(
        name,
        `${name} has shape ${shapeText(tensor.dims)}, Q has ${shapeText(Q.dims)}. All three need the same number of dimensions.`,
      );
    for (let i = 0; i < rank - 2; ++i) {
      if (tensor.dims[i] !== Q.dims[i])
        throw new FieldError(name, `${name} has shape ${shapeText(tensor.dims)}, Q has ${shapeText(Q.dims)}. Before the rows they must be equal.`);
    }
  }
  if (last(K, 1) !== last(Q, 1)) {
    throw new FieldError(
      'K',
      `A row of K has ${counted(last(K, 1), 'number')}, a row of Q has ${last(Q, 1)}. Queries and keys are compared number by number, so make them equally wide.`,
    );
  }
  if (last(V, 2) !== last(K, 2)) {
    throw new FieldError('V', `V has ${counted(last(V, 2), 'row')}, K has ${last(K, 2)}. Every key has one value, so give as many rows.`);
  }
  const [batch, heads] = rank === 4 ? [Q.dims[0]!, Q.dims[1]!] : [rank === 3 ? Q.dims[0]! : 1, 1];
  checkMask(inputs.mask, batch, heads, last(Q, 2), last(K, 2));
  const call = options(inputs, product(Q.dims.slice(0, -1)) * last(K, 2) * last(V, 1));
  const result = await engine.scaledDotProductAttention(Q, K, V, call.options);
  const leading: readonly Leading[] = rank === 4 ? ['batch', 'head'] : rank === 3 ? ['batch'] : [];
  return collect(result, leading, leading, call.note);
}

/** (1, ...) -> (...) when X came without a batch. */
function unbatched(tensor: Tensor, drop: boolean): Tensor {
  return drop ? { data: tensor.data, dims: tensor.dims.slice(1) } : tensor;
}

function checkMultiHead({ X, Wq, Wk, Wv, Wo, heads, mask }: MultiHeadInputs): void {
  if (X.dims.length > 3) throw new FieldError('X', `X has shape ${shapeText(X.dims)}. Give rows of tokens, or a batch of them.`);
  const width = last(X, 1);
  for (const [name, tensor] of [
    ['Wq', Wq],
    ['Wk', Wk],
    ['Wv', Wv],
    ['Wo', Wo],
  ] as const) {
    if (tensor && tensor.dims.length !== 2)
      throw new FieldError(name, `${name} has shape ${shapeText(tensor.dims)}. A weight matrix has two dimensions, in × out.`);
  }
  if (!Number.isInteger(heads) || heads < 1) throw new FieldError('Heads', 'The number of heads is a whole number from 1.');
  for (const [name, tensor] of [
    ['Wq', Wq],
    ['Wk', Wk],
    ['Wv', Wv],
  ] as const) {
    const [rows, columns] = tensor.dims as [number, number];
    if (rows !== width)
      throw new FieldError(
        name,
        `${name} has ${counted(rows, 'row')}, a row of X has ${counted(width, 'number')}. Give in × out: one row for each number of X.`,
      );
    if (columns % heads)
      throw new FieldError(
        'Heads',
        `${name} has ${counted(columns, 'column')}, which ${heads} heads cannot share evenly. Choose a number of heads that divides ${columns}.`,
      );
  }
  if (Wk.dims[1] !== Wq.dims[1])
    throw new FieldError(
      'Wk',
      `Wk has ${counted(Wk.dims[1]!, 'column')}, Wq has ${Wq.dims[1]}. Queries and keys are compared number by number, so make them equally wide.`,
    );
  if (Wo && Wo.dims[0] !== Wv.dims[1])
    throw new FieldError(
      'Wo',
      `Wo has ${counted(Wo.dims[0]!, 'row')}, the heads side by side have ${counted(Wv.dims[1]!, 'number')} (the columns of Wv). Give one row for each, or leave Wo empty.`,
    );
  checkMask(mask, X.dims.length === 3 ? X.dims[0]! : 1, heads, last(X, 2), last(X, 2));
}

export async function runMultiHead(engine: Engine, inputs: MultiHeadInputs): Promise<LabResult> {
  checkMultiHead(inputs);
  const { X, Wq, Wk, Wv, Wo, heads } = inputs;
  const single = X.dims.length === 2;
  const width = last(X, 1);
  const batch = single ? 1 : X.dims[0]!;
  const length = last(X, 2);
  const call = options(inputs, batch * length * length * Wv.dims[1]!);
  const headed: readonly Leading[] = single ? ['head'] : ['batch', 'head'];
  const flat: readonly Leading[] = single ? [] : ['batch'];

  if (isSquare(inputs)) {
    const layer = await new engine.MultiHeadAttention({ embedDim: width, numHeads: heads, bias: false, outProj: !!Wo });
    try {
      // On paper a matrix is in × out, torch keeps out × in.
      await layer.loadStateDict({
        'q_proj.weight': transposed(Wq),
        'k_proj.weight': transposed(Wk),
        'v_proj.weight': transposed(Wv),
        ...(Wo ? { 'out_proj.weight': transposed(Wo) } : {}),
      });
      return collect(await layer.forward(X, undefined, undefined, call.options), headed, flat, call.note);
    } finally {
      await layer.dispose();
    }
  }

  // The layer takes square projections; for others the same steps are done one by one.
  const x: Tensor = single ? { data: X.data, dims: [1, ...X.dims] } : X;
  const q_proj = await engine.linear(x, transposed(Wq));
  const k_proj = await engine.linear(x, transposed(Wk));
  const v_proj = await engine.linear(x, transposed(Wv));
  const [q, k, v] = [splitHeads(q_proj, heads), splitHeads(k_proj, heads), splitHeads(v_proj, heads)];
  const inner = await engine.scaledDotProductAttention(q, k, v, call.options);
  const merged = mergeHeads(inner.output);
  const output = Wo ? await engine.linear(merged, transposed(Wo)) : merged;
  const trace: Partial<Record<TraceName, Tensor>> = { ...inner.trace, q_proj, k_proj, v_proj, q, k, v, context: inner.output, merged, output };
  const dropped = Object.fromEntries(Object.entries(trace).map(([name, tensor]) => [name, unbatched(tensor, single)]));
  return collect({ output: unbatched(output, single), weights: unbatched(inner.weights!, single), trace: dropped }, headed, flat, call.note);
}

/** Whether MultiHeadAttention itself can hold these matrices. */
export function isSquare({ X, Wq, Wk, Wv, Wo }: MultiHeadInputs): boolean {
  const width = last(X, 1);
  return [Wq, Wk, Wv, Wo].every((w) => !w || (w.dims[0] === width && w.dims[1] === width));
}
