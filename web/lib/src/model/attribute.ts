/** Loaded on demand; the module computes the scores. */
import type { TextAttribution } from '../attn.js';
import { aborted } from '../platform/abort.js';
import { readIds } from '../args/arrays.js';
import { yieldToEventLoop } from '../platform/event_loop.js';
import { describe, fail, reading } from '../args/error.js';
import type { Result } from '../engine/heap.js';
import { attributeOptions } from '../args/model_options.js';
import { readSignal } from '../args/options.js';
import { choice, readArguments, readMembers, whole } from '../args/signature.js';
import { encodeOptionsOf, type ModelAccess } from './batches.js';
import { numberOf, outputOf } from './model_gradients.js';
import { type ModelState, signatureOf, textLabelsOf } from './model_state.js';

const methods = ['integrated_gradients', 'gradient_x_input', 'attention_rollout', 'attention_gradient', 'leave_one_out'] as const;
const mostSteps = 10_000;

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
