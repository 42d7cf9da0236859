import { describe, fail } from '../args/error.js';
import { choice } from '../args/signature.js';
import type { Tensor } from '../attn.js';
import type { AttributeOptions, LensModel, LensText, TokenScores } from '../lens.js';
import { type AnyModel, breaks, readIndex, readModel, readOptions, readToken, readTokens, repeated, type Tokens } from './model.js';

const methods = ['gradient_x_input', 'attention_rollout', 'attention_gradient', 'leave_one_out'] as const;
type Method = (typeof methods)[number];

/** The logit that is explained. */
interface Target {
  readonly label: number;
  readonly contrast: number | undefined;
  readonly token: number;
}

/** Row `position` of the product of the layers' matrices I + `share`(A) or their mean, from the last layer to the first. */
function flow(attentions: readonly Tensor[], gradients: readonly Tensor[] | undefined, position: number): Float32Array {
  const [, H, L] = attentions[0]!.dims as [number, number, number];
  let row = new Float64Array(L);
  row[position] = 1;
  for (let layer = attentions.length - 1; layer >= 0; --layer) {
    const weights = attentions[layer]!.data;
    const slopes = gradients?.[layer]!.data;
    const next = slopes ? row.slice() : row.map((value) => value / 2);
    for (let head = 0; head < H; ++head)
      for (let i = 0; i < L; ++i)
        for (let j = 0; j < L; ++j) {
          const at = (head * L + i) * L + j;
          const weight = slopes ? Math.max(0, weights[at]! * slopes[at]!) : weights[at]! / 2;
          next[j]! += (row[i]! * weight) / H;
        }
    row = next;
  }
  return Float32Array.from(row);
}

async function valueOf(model: AnyModel, ids: Int32Array, { label, contrast, token }: Target): Promise<number> {
  const { data, dims } = (await model.forward(repeated(ids, 1), { outputLogits: false })).lastHiddenState;
  const width = dims[2]!;
  const logits = (await model.unembed({ data: data.slice(token * width, (token + 1) * width), dims: [1, width] })).data;
  return logits[label]! - (contrast === undefined ? 0 : logits[contrast]!);
}

async function scoresOf(
  model: AnyModel,
  method: Method,
  { inputs, ids }: Tokens,
  position: number,
  target: Target | undefined,
  pause: () => Promise<void>,
): Promise<Float32Array> {
  if (method === 'attention_rollout') {
    const { attentions } = await model.forward(inputs, { outputAttentions: true, outputLogits: false });
    return flow(attentions!, undefined, position);
  }
  if (method === 'attention_gradient') {
    const { attentions } = await model.forward(inputs, { outputAttentions: true, outputLogits: false });
    await pause();
    return flow(attentions!, (await model.gradients(inputs, { target: target!, wrt: ['attentions'] })).attentions, position);
  }
  const scores = new Float32Array(ids.length);
  if (method === 'gradient_x_input') {
    const { embeddings } = await model.gradients(inputs, { target: target!, wrt: ['embeddings'] });
    const words = (await (await model.wordEmbeddings).forward(ids, [ids.length])).data;
    const width = words.length / ids.length;
    for (let i = 0; i < words.length; ++i) scores[Math.floor(i / width)]! += words[i]! * embeddings!.data[i]!;
    return scores;
  }
  // Later tokens do not matter, and the position of the prediction must remain.
  const whole = await valueOf(model, ids, target!);
  for (let i = 0; i < position; ++i) {
    await pause();
    scores[i] =
      whole -
      (await valueOf(
        model,
        ids.filter((_, j) => j !== i),
        { ...target!, token: position - 1 },
      ));
  }
  return scores;
}

async function explain(op: string, given: LensModel, text: LensText, options: AttributeOptions | undefined, fixed?: Method): Promise<TokenScores> {
  const model = readModel(op, given);
  const known = fixed === 'attention_rollout' ? ['position'] : ['target', 'contrast', 'position', ...(fixed ? [] : ['method'])];
  const { values, signal } = readOptions(op, options, known);
  const method = fixed ?? (values['method'] === undefined ? methods[0] : methods[choice(op, 'method', values['method'], methods)]!);
  if (typeof text !== 'string' && (await model.task) !== 'text-generation') fail('ARGUMENT', op, 'text', describe(text), 'a string');
  if ((await model.task) !== 'text-generation') {
    for (const name of ['contrast', 'position'])
      if (values[name] !== undefined) fail('UNSUPPORTED', op, name, 'is given', 'a model for text-generation');
    const { tokens, scores } = await model.attribute(text as string, { method, target: values['target'], signal });
    return { tokens, scores };
  }
  const pause = breaks(op, signal);
  await pause();
  const read = await readTokens(op, model, text);
  const position = readIndex(op, 'position', values['position'], read.ids.length, read.ids.length - 1);
  let target: Target | undefined;
  if (method !== 'attention_rollout') {
    const contrast = values['contrast'] === undefined ? undefined : await readToken(op, model, 'contrast', values['contrast']);
    target = { label: await readToken(op, model, 'target', values['target']), contrast, token: position };
  }
  return { tokens: read.tokens, scores: await scoresOf(model, method, read, position, target, pause) };
}

export const attribute = (model: LensModel, text: LensText, options?: AttributeOptions): Promise<TokenScores> =>
  explain('attribute', model, text, options);
export const rollout = (model: LensModel, text: LensText, options?: AttributeOptions): Promise<TokenScores> =>
  explain('rollout', model, text, options, 'attention_rollout');
export const attentionGradient = (model: LensModel, text: LensText, options?: AttributeOptions): Promise<TokenScores> =>
  explain('attentionGradient', model, text, options, 'attention_gradient');
