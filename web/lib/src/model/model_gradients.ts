/** Gradients and attributions of text models. */
import type { Encoding, TextAttribution, TextModelGradients, TextModelOutput } from '../attn.js';
import { aborted } from '../platform/abort.js';
import { elements, readIds } from '../args/arrays.js';
import { yieldToEventLoop } from '../platform/event_loop.js';
import { describe, fail, reading } from '../args/error.js';
import { textLabelsOf } from './fine_tuning.js';
import type { Result } from '../engine/heap.js';
import { toPublic } from '../engine/results.js';
import { attributeOptions, readEncoded } from '../args/model_options.js';
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
  // The tokenizers of Llama 2 and Mistral put a space in front of a text, so ' Paris' would be two tokens.
  const id = tokenizer.tokenToId(value) ?? (value.startsWith(' ') ? tokenizer.tokenToId(`▁${value.slice(1)}`) : undefined);
  if (id !== undefined) return id;
  const { inputIds } = tokenizer.encode([value], encodeOptionsOf(op, about, { addSpecialTokens: false }));
  if (inputIds.length === 1) return inputIds[0]!;
  fail('OUT_OF_RANGE', op, argument, `is ${JSON.stringify(value)}, which has ${inputIds.length} tokens`, 'a text that is a single token');
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

/** A text as attribute() runs it. */
function attributed(op: string, { about, tokenizer }: ModelState, text: unknown) {
  const continues = about.task === 'text-generation';
  if (typeof text === 'string') {
    // A truncated text would have other positions.
    const { inputIds, tokenTypeIds, tokens, offsets } = tokenizer.encode([text], encodeOptionsOf(op, about, { truncation: !continues }));
    return { inputIds, tokenTypeIds, tokens: tokens[0]!, offsets: offsets[0]!, special: offsets[0]!.map((offset) => Number(offset === null)) };
  }
  if (!continues) fail('ARGUMENT', op, 'text', describe(text), 'a string');
  const inputIds = reading(op, 'text', () => readIds(op, 'text', text, undefined)).data;
  const tokens = Array.from(inputIds, (id) => tokenizer.idToToken(id) ?? '');
  return { inputIds, tokenTypeIds: new Int32Array(inputIds.length), tokens, offsets: tokens.map(() => null), special: tokens.map(() => 0) };
}

export async function attribute({ find }: ModelAccess, text: unknown, options: unknown): Promise<TextAttribution> {
  const op = 'attribute';
  const { method, steps, signal, position, ...given } = reading(op, 'options', () => {
    const [method, target, contrast, position, steps, signal] = options === undefined ? [] : readMembers(op, 'options', options, attributeOptions);
    const of = find();
    const ofHead = position !== undefined || of.about.task === 'text-generation';
    const output = (argument: string, value: unknown) =>
      ofHead || value === undefined ? outputOf(op, of, value, argument) : numberOf(op, argument, textLabelsOf(of.about), value);
    return {
      method: method === undefined ? methods[0] : methods[choice(op, 'method', method, methods)]!,
      target: output('target', target),
      contrast: output('contrast', contrast),
      position,
      steps: steps === undefined ? 50 : whole(op, 'steps', steps, 1, mostSteps),
      signal: readSignal(op, signal),
    };
  });
  if (signal?.aborted) throw aborted(signal, op);
  const state = find();
  const { about, tokenizer, context } = state;
  const { inputIds, tokenTypeIds, tokens, offsets, special } = attributed(op, state, text);
  if (tokens.length === 0) fail('ARGUMENT', op, 'text', 'has no token', 'at least one token');
  const place = position ?? (about.task === 'text-generation' ? tokens.length - 1 : undefined);
  const sums = new Float64Array(tokens.length);
  const ends = [0, 0];
  let { target } = given;
  const signature = signatureOf(context.engine, op);
  for (let portion = 0, portions = 1; portion < portions; ++portion) {
    if (portion > 0) await yieldToEventLoop();
    if (signal?.aborted) throw aborted(signal, op);
    const { handle } = find();
    context.engine.assertUsable(op);
    const leaves = readArguments(op, signature, [
      ...[inputIds, tokenTypeIds, Int32Array.from(special), tokenizer.padId, method, target, given.contrast, place, steps, portion],
    ]);
    const { number, entries } = context.engine.call(op, signature, leaves, handle) as Result;
    const [scores, values] = entries.map(({ tensor }) => tensor.data);
    for (let i = 0; i < sums.length; ++i) sums[i]! += scores![i]!;
    if (portion === 0) [ends[0], ends[1], target] = values as unknown as [number, number, number];
    portions = number;
  }
  const difference = ends[0]! - ends[1]!;
  const missing = sums.reduce((sum, score) => sum + score, 0) - difference;
  return {
    tokens,
    offsets,
    scores: Float32Array.from(sums),
    ...(method === 'integrated_gradients' && { delta: missing === 0 ? 0 : Math.abs(missing) / Math.abs(difference) }),
  };
}
