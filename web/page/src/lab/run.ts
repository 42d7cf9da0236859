/** The lab without its user interface: checks shapes, runs the module, names the results. */
import type { AttentionOptions, AttentionResult, Mask, MultiHeadAttentionOptions, Tensor, TraceName } from 'attn';
import { type Attn, traceNames } from 'attn/worker';
import { product, transposed } from '../arithmetic/arrays.ts';
import { counted, shapeText } from '../formats/numbers.ts';
import type { MatrixName } from '../state/lab.ts';

export type FieldName = MatrixName | 'Heads' | 'Scale';

export class FieldError extends Error {
  constructor(
    readonly field: FieldName,
    message: string,
  ) {
    super(message);
  }
}

export interface CommonInputs {
  readonly scale: number | undefined;
  readonly mask: Mask | undefined;
  readonly keyPadding: Mask | undefined;
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
  /** Fields are out × in, which messages refer to; these weights are in × out. */
  readonly asTorch?: boolean;
}

export type LabInputs = ({ readonly mode: 'attention' } & AttentionInputs) | ({ readonly mode: 'multi-head' } & MultiHeadInputs);

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
  /** Why a trace is missing. */
  readonly note: string;
}

/** Traces without a head dimension. */
const withoutHeads: ReadonlySet<string> = new Set(['q_proj', 'k_proj', 'v_proj', 'merged']);
/** weighted_values has L*S*Dv numbers per head; larger ones are left out. */
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
  const trace = traceNames.flatMap((name) => {
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
      trace: fits ? traceNames : traceNames.filter((name) => name !== 'weighted_values'),
      ...(inputs.scale === undefined ? {} : { scale: inputs.scale }),
      ...(inputs.mask ? { mask: inputs.mask } : {}),
      ...(inputs.keyPadding ? { keyPaddingMask: inputs.keyPadding } : {}),
    },
    note: fits ? '' : `weighted_values is left out because it would have ${weightedValues} numbers.`,
  };
}

/** [B, H, L, S], with 1 for missing dimensions; a rank of 3 lacks the head dimension. */
export const alignedDims = ({ dims }: Mask): readonly number[] =>
  dims.length === 3 ? [dims[0]!, 1, dims[1]!, dims[2]!] : [...Array<number>(4 - dims.length).fill(1), ...dims];

/** The module's rule for mask shapes, with messages about the fields. */
function checkMasks({ mask, keyPadding }: CommonInputs, hasBatch: boolean, batch: number, heads: number, queries: number, keys: number): void {
  const full = [batch, heads, queries, keys];
  if (mask && !alignedDims(mask).every((size, i) => size === full[i] || (i < 3 && size === 1))) {
    const forms = [
      `(${keys},)`,
      `(${queries}, ${keys})`,
      ...(batch > 1 ? [`(${batch}, ${queries}, ${keys})`] : []),
      ...(heads > 1 ? [`(${batch}, ${heads}, ${queries}, ${keys})`] : []),
    ];
    throw new FieldError('Mask', `The mask has shape ${shapeText(mask.dims)}. Give one number for each query and key: ${forms.join(' or ')}.`);
  }
  if (!keyPadding) return;
  const { dims } = keyPadding;
  if (dims.at(-1) !== keys || (dims.length === 1 ? hasBatch : dims.length !== 2 || dims[0] !== batch))
    throw new FieldError(
      'Key padding',
      `The key padding has shape ${shapeText(dims)}. Give one number for each key: ${hasBatch ? `(${batch}, ${keys}), one row per batch item` : `(${keys},)`}.`,
    );
}

async function runAttention(attn: Attn, inputs: AttentionInputs): Promise<LabResult> {
  const { Q, K, V } = inputs;
  const rank = Q.dims.length;
  for (const [name, tensor] of [
    ['K', K],
    ['V', V],
  ] as const) {
    if (tensor.dims.length !== rank)
      throw new FieldError(
        name,
        `${name} has shape ${shapeText(tensor.dims)}, Q has ${shapeText(Q.dims)}. Give all three the same number of dimensions.`,
      );
    for (let i = 0; i < rank - 2; ++i) {
      if (tensor.dims[i] !== Q.dims[i])
        throw new FieldError(
          name,
          `${name} has shape ${shapeText(tensor.dims)}, Q has ${shapeText(Q.dims)}. Make all dimensions before the rows equal.`,
        );
    }
  }
  if (last(K, 1) !== last(Q, 1)) {
    throw new FieldError(
      'K',
      `A row of K has ${counted(last(K, 1), 'number')}, a row of Q has ${last(Q, 1)}. Make queries and keys equally wide, because they are compared number by number.`,
    );
  }
  if (last(V, 2) !== last(K, 2)) {
    throw new FieldError('V', `V has ${counted(last(V, 2), 'row')}, K has ${last(K, 2)}. Give as many rows, because every key has one value.`);
  }
  const [batch, heads] = rank === 4 ? [Q.dims[0]!, Q.dims[1]!] : [rank === 3 ? Q.dims[0]! : 1, 1];
  checkMasks(inputs, rank > 2, batch, heads, last(Q, 2), last(K, 2));
  const call = options(inputs, product(Q.dims.slice(0, -1)) * last(K, 2) * last(V, 1));
  const result = await attn.scaledDotProductAttention(Q, K, V, call.options);
  const leading: readonly Leading[] = rank === 4 ? ['batch', 'head'] : rank === 3 ? ['batch'] : [];
  return collect(result, leading, leading, call.note);
}

function checkMultiHead(inputs: MultiHeadInputs): void {
  const { X, Wq, Wk, Wv, Wo, heads } = inputs;
  if (X.dims.length > 3) throw new FieldError('X', `X has shape ${shapeText(X.dims)}. Give rows of tokens or a batch of them.`);
  const width = last(X, 1);
  const form = inputs.asTorch ? 'out × in' : 'in × out';
  const [row, column] = inputs.asTorch ? ['column', 'row'] : ['row', 'column'];
  for (const [name, tensor] of [
    ['Wq', Wq],
    ['Wk', Wk],
    ['Wv', Wv],
    ['Wo', Wo],
  ] as const) {
    if (tensor && tensor.dims.length !== 2)
      throw new FieldError(name, `${name} has shape ${shapeText(tensor.dims)}. A weight matrix has two dimensions, ${form}.`);
  }
  if (!Number.isInteger(heads) || heads < 1) throw new FieldError('Heads', 'The number of heads is not a whole number of at least 1. Enter one.');
  for (const [name, tensor] of [
    ['Wq', Wq],
    ['Wk', Wk],
    ['Wv', Wv],
  ] as const) {
    const [rows, columns] = tensor.dims as [number, number];
    if (rows !== width)
      throw new FieldError(
        name,
        `${name} has ${counted(rows, row)}, a row of X has ${counted(width, 'number')}. Give ${form}: one ${row} for each number of X.`,
      );
    if (columns % heads)
      throw new FieldError(
        'Heads',
        `${name} has ${counted(columns, column)}, which is not divisible by ${heads} heads. Choose a number of heads that divides ${columns}.`,
      );
  }
  if (Wk.dims[1] !== Wq.dims[1])
    throw new FieldError(
      'Wk',
      `Wk has ${counted(Wk.dims[1]!, column)}, Wq has ${Wq.dims[1]}. Make queries and keys equally wide, because they are compared number by number.`,
    );
  if (Wo && Wo.dims[0] !== Wv.dims[1])
    throw new FieldError(
      'Wo',
      `Wo has ${counted(Wo.dims[0]!, row)}, the concatenated heads have ${counted(Wv.dims[1]!, 'number')} (the ${column}s of Wv). Give one ${row} for each, or leave Wo empty.`,
    );
  checkMasks(inputs, X.dims.length === 3, X.dims.length === 3 ? X.dims[0]! : 1, heads, last(X, 2), last(X, 2));
}

/** W_O is included only if the output is as wide as X; otherwise it is applied afterwards. */
export function multiHeadOptions({ X, Wq, Wv, Wo, heads }: MultiHeadInputs): MultiHeadAttentionOptions {
  const width = last(X, 1);
  const [headDim, valueHeadDim] = [Wq.dims[1]! / heads, Wv.dims[1]! / heads];
  return {
    embedDim: width,
    numHeads: heads,
    ...(headDim * heads === width ? {} : { headDim }),
    ...(valueHeadDim === headDim ? {} : { valueHeadDim }),
    bias: false,
    outProj: Wo !== undefined && Wo.dims[1] === width,
  };
}

/** in × out becomes out × in. */
export function stateOf(inputs: MultiHeadInputs): Readonly<Record<string, Tensor>> {
  const { Wq, Wk, Wv, Wo } = inputs;
  return {
    'q_proj.weight': transposed(Wq),
    'k_proj.weight': transposed(Wk),
    'v_proj.weight': transposed(Wv),
    ...(Wo && multiHeadOptions(inputs).outProj ? { 'out_proj.weight': transposed(Wo) } : {}),
  };
}

async function runMultiHead(attn: Attn, inputs: MultiHeadInputs): Promise<LabResult> {
  checkMultiHead(inputs);
  const { X, Wv, Wo } = inputs;
  const single = X.dims.length === 2;
  const length = last(X, 2);
  const call = options(inputs, (single ? 1 : X.dims[0]!) * length * length * Wv.dims[1]!);
  const layerOptions = multiHeadOptions(inputs);
  const layer = await new attn.MultiHeadAttention(layerOptions);
  try {
    await layer.loadStateDict(stateOf(inputs));
    const result = await layer.forward(X, undefined, undefined, call.options);
    if (Wo && !layerOptions.outProj) {
      result.output = await attn.linear(result.output, transposed(Wo));
      result.trace = { ...result.trace, output: result.output };
    }
    return collect(result, single ? ['head'] : ['batch', 'head'], single ? [] : ['batch'], call.note);
  } finally {
    await layer.dispose();
  }
}

export const runLab = (attn: Attn, inputs: LabInputs): Promise<LabResult> =>
  inputs.mode === 'attention' ? runAttention(attn, inputs) : runMultiHead(attn, inputs);
