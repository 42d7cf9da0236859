/** Gradients and attributions of text models. */
import type { Encoding, Tensor, TextAttribution, TextModel as Contract, TextModelGradients, TextModelOutput } from '../attn.js';
import { aborted } from '../platform/abort.js';
import { elements } from '../args/arrays.js';
import { yieldToEventLoop } from '../platform/event_loop.js';
import { describe, fail, reading } from '../args/error.js';
import { textLabelsOf } from './fine_tuning.js';
import type { Result } from '../engine/heap.js';
import { toPublic } from '../engine/results.js';
import { readEncoded } from '../args/model_options.js';
import { readSignal } from '../args/options.js';
import { choice, readArguments, readMembers, whole } from '../args/signature.js';
import { encodeOptionsOf, type ModelAccess } from './batches.js';
import { type ModelFacts, type ModelState, signatureOf } from './model_state.js';

const wrtNames = ['embeddings', 'parameters', 'attentions'] as const;
const methods = ['integrated_gradients', 'gradient_x_input', 'attention_rollout', 'attention_gradient', 'leave_one_out'] as const;
const mostSteps = 10_000;

/** Labels of the head's outputs, if it has any. */
function namesOf({ task, labels }: ModelFacts): readonly string[] | undefined {
  return task === 'question-answering' ? ['start', 'end'] : labels;
}

/** Index of a label. C++ checks the range. */
function numberOf(op: string, argument: string, labels: readonly string[] | undefined, value: unknown): number {
  if (typeof value === 'string') {
    const index = labels?.indexOf(value) ?? -1;
    if (index < 0) fail('OUT_OF_RANGE', op, argument, `is ${JSON.stringify(value)}`, labels ? `one of ${labels.join(', ')}` : 'a number');
    return index;
  }
  if (!Number.isSafeInteger(value)) fail('ARGUMENT', op, argument, describe(value), 'a whole number or the name of a label');
  return value as number;
}

/** Index of a label, or the id of a token that the head predicts. */
function outputOf(op: string, { about, tokenizer }: ModelState, value: unknown, argument = 'target.label'): number | undefined {
  if (value === undefined) return undefined;
  if ((about.task !== 'fill-mask' && about.task !== 'text-generation') || typeof value !== 'string')
    return numberOf(op, argument, namesOf(about), value);
  return tokenizer.tokenToId(value) ?? fail('OUT_OF_RANGE', op, argument, `is ${JSON.stringify(value)}`, 'a token of the vocabulary');
}

export function gradients({ find }: ModelAccess, inputs: Encoding, options: unknown): TextModelGradients {
  const op = 'gradients';
  const { target, wrt, trace } = reading(op, 'options', () => {
    const [given, names = [], trace] = readMembers(op, 'options', options, ['target', 'wrt', 'trace']);
    const members = ['label', 'component', 'row', 'token', 'contrast'];
    const [label, component, row, token, contrast] = readMembers(op, 'target', given, members, 'target.');
    if (!Array.isArray(names)) fail('ARGUMENT', op, 'wrt', describe(names), `an Array of ${wrtNames.join(', ')}`);
    const asked = elements(names as unknown[], (name, i) => wrtNames[choice(op, `wrt[${i}]`, name, wrtNames)]!);
    return {
      target: { label: outputOf(op, find(), label), component, row, token, contrast: outputOf(op, find(), contrast, 'target.contrast') },
      wrt: Object.fromEntries(asked.map((name) => [name, true])),
      trace,
    };
  });
  const { context, handle } = find();
  context.engine.assertUsable(op);
  const signature = signatureOf(context.engine, op);
  const leaves = readEncoded(op, signature, inputs, { target, wrt, trace });
  find();
  const result = context.engine.call(op, signature, leaves, handle) as Result;
  const { number, entries, traced } = result;
  const of = (which: string) => entries.filter(({ field }) => field === which);
  return {
    value: number,
    ...(wrt['embeddings'] && { embeddings: of('output')[0]!.tensor }),
    ...(wrt['attentions'] && { attentions: of('attentions').map(({ tensor }) => tensor) }),
    ...(wrt['parameters'] && { parameters: new Map(of('named').map(({ name, tensor }) => [name as string, tensor])) }),
    ...(traced && { trace: (toPublic('text_model', result) as TextModelOutput).trace! }),
  };
}

/** Index of the largest value. */
const largest = ({ data }: Tensor): number => data.reduce((best, value, i) => (value > data[best]! ? i : best), 0);

export async function attribute({ find }: ModelAccess, model: Contract, text: unknown, options: unknown): Promise<TextAttribution> {
  const op = 'attribute';
  if (typeof text !== 'string') fail('ARGUMENT', op, 'text', describe(text), 'a string');
  const { method, given, steps, signal } = reading(op, 'options', () => {
    const [method, target, steps, signal] = options === undefined ? [] : readMembers(op, 'options', options, ['method', 'target', 'steps', 'signal']);
    return {
      method: method === undefined ? methods[0] : methods[choice(op, 'method', method, methods)]!,
      given: target === undefined ? undefined : numberOf(op, 'target', textLabelsOf(find().about), target),
      steps: steps === undefined ? 50 : whole(op, 'steps', steps, 1, mostSteps),
      signal: readSignal(op, signal),
    };
  });
  if (signal?.aborted) throw aborted(signal, op);
  const { about, tokenizer, context } = find();
  const encoding = tokenizer.encode([text as string], encodeOptionsOf(op, about, {}));
  const { inputIds, tokenTypeIds, tokens, offsets, dims } = encoding;
  let target = given;
  if (target === undefined) {
    const isOfText = about.task === 'text-classification' || about.task === 'multiple-choice';
    if (!isOfText && method !== 'attention_rollout')
      fail('ARGUMENT', op, 'target', 'is missing', 'the index of a component of the pooled vector', 'The checkpoint has no head for texts');
    target = isOfText ? largest(model.forward(encoding).logits!) : 0;
  }
  const special = Int32Array.from(offsets[0]!, (offset) => (offset === null ? 1 : 0));
  const sums = new Float64Array(dims[1]!);
  const ends = [0, 0];
  const signature = signatureOf(context.engine, op);
  for (let portion = 0, portions = 1; portion < portions; ++portion) {
    if (portion > 0) await yieldToEventLoop();
    if (signal?.aborted) throw aborted(signal, op);
    const { handle } = find();
    context.engine.assertUsable(op);
    const leaves = readArguments(op, signature, [inputIds, tokenTypeIds, special, tokenizer.padId, method, target, steps, portion]);
    const { number, entries } = context.engine.call(op, signature, leaves, handle) as Result;
    const [scores, values] = entries.map(({ tensor }) => tensor.data);
    for (let i = 0; i < sums.length; ++i) sums[i]! += scores![i]!;
    if (portion === 0) [ends[0], ends[1]] = values!;
    portions = number;
  }
  const difference = ends[0]! - ends[1]!;
  const missing = sums.reduce((sum, score) => sum + score, 0) - difference;
  return {
    tokens: tokens[0]!,
    offsets: offsets[0]!,
    scores: Float32Array.from(sums),
    ...(method === 'integrated_gradients' && { delta: missing === 0 ? 0 : Math.abs(missing) / Math.abs(difference) }),
  };
}
