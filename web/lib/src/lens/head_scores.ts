import { choice, whole } from '../args/signature.js';
import { fail } from '../args/error.js';
import type { HeadKind, HeadScores, HeadScoresOptions, LensModel, LensText } from '../lens.js';
import type { Tensor } from '../attn.js';
import { type AnyModel, breaks, readList, readModel, readOptions, readTokens, type Tokens } from './model.js';

const kinds: readonly HeadKind[] = ['previousToken', 'duplicateToken', 'induction', 'firstToken'];

function keysOf(kind: HeadKind, ids: Int32Array, i: number): number[] {
  if (kind === 'previousToken') return i > 0 ? [i - 1] : [];
  if (kind === 'firstToken') return i > 0 ? [0] : [];
  const keys: number[] = [];
  const shift = kind === 'induction' ? 1 : 0;
  for (let j = 0; j + shift < i; ++j) if (ids[j] === ids[i]) keys.push(j + shift);
  return keys;
}

/** A sequence of mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Special tokens that start a text, and then random tokens twice. */
async function repeatedTokens(op: string, model: AnyModel, seed: number): Promise<Tokens> {
  const config = await model.config;
  const start = Array.from((await model.tokenize('')).inputIds);
  const size = Number(config['vocab_size']);
  const positions = Number(config['n_positions'] ?? config['max_position_embeddings'] ?? 2048);
  // RoBERTa's positions start after its padding.
  const count = Math.min(50, Math.floor((positions - 4 - start.length) / 2));
  if (!(size >= 1 && count >= 2)) fail('UNSUPPORTED', op, 'text', 'is missing', 'a text', 'The model has too few positions for random tokens');
  const random = randomOf(seed);
  const tokens = Array.from({ length: count }, () => Math.floor(random() * size));
  return readTokens(op, model, [...start, ...tokens, ...tokens]);
}

function scoresOf(op: string, kind: HeadKind, ids: Int32Array, attentions: readonly Tensor[]): Tensor {
  const [, H, L] = attentions[0]!.dims as [number, number, number];
  const keys = Array.from({ length: L }, (_, i) => keysOf(kind, ids, i));
  const count = keys.filter(({ length }) => length > 0).length;
  if (count === 0)
    fail(
      'ARGUMENT',
      op,
      'text',
      `has no token to which ${kind} applies`,
      kind === 'firstToken' || kind === 'previousToken' ? 'at least two tokens' : 'a text that repeats tokens',
    );
  const data = new Float32Array(attentions.length * H);
  attentions.forEach(({ data: weights }, layer) => {
    for (let head = 0; head < H; ++head) {
      let total = 0;
      keys.forEach((list, i) => list.forEach((j) => (total += weights[(head * L + i) * L + j]!)));
      data[layer * H + head] = total / count;
    }
  });
  return { data, dims: [attentions.length, H] };
}

export async function headScores(model: LensModel, options?: HeadScoresOptions): Promise<HeadScores> {
  const op = 'headScores';
  const any = readModel(op, model);
  const { values, signal } = readOptions(op, options, ['kinds', 'text', 'seed']);
  const given = values['kinds'] ?? kinds;
  const asked = readList(op, 'kinds', given, `an Array of ${kinds.join(', ')}`, (kind, i) => kinds[choice(op, `kinds[${i}]`, kind, kinds)]!);
  const seed = values['seed'] === undefined ? 0 : whole(op, 'seed', values['seed'], 0, 2 ** 32 - 1);
  const text = values['text'];
  const { inputs, ids, tokens } = text === undefined ? await repeatedTokens(op, any, seed) : await readTokens(op, any, text as LensText);
  await breaks(op, signal)();
  const { attentions } = await any.forward(inputs, { outputAttentions: true, outputLogits: false });
  return { tokens, ids: Array.from(ids), scores: Object.fromEntries(asked.map((kind) => [kind, scoresOf(op, kind, ids, attentions!)])) };
}
