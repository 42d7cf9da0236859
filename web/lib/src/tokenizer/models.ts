import { describe, fail } from '../error.js';
import { limits } from './limits.js';
import { type Section, atMost, choose, listOf, unsupported, wrong } from './schema.js';
import { type Budget, codesOf, stringOf, utf8 } from './text.js';
import { PairMap, Trie } from './trie.js';

/** Takes a token: its id, its text, and where it stands in the codes that were given. */
export type Emit = (id: number, token: string, from: number, to: number) => void;

export interface Model {
  /** Ids by token. */
  readonly vocabulary: ReadonlyMap<string, number>;
  /** Entries of the file, of which two may be the same token. */
  readonly size: number;
  tokenOf(id: number): string | undefined;
  tokenize(codes: readonly number[], from: number, to: number, emit: Emit, budget: Budget): void;
}

function readVocabulary(section: Section): { ids: Map<string, number>; tokens: string[] } {
  const vocabulary = section.section('vocab');
  const ids = new Map<string, number>();
  const tokens: string[] = [];
  for (const token of vocabulary.names()) {
    const id = vocabulary.id(token);
    atMost(vocabulary.at(token), token.length, 'characters', limits.token);
    ids.set(token, id);
    tokens[id] = token;
  }
  return { ids, tokens };
}

/** The id of what stands for the unknown. That it is missing shows when it is needed: many vocabularies never need it. */
function unknownId(id: number | undefined, token: string | undefined, path: string): number {
  return id ?? fail('FORMAT', 'tokenize', path, describe(token), 'a token of the vocabulary, since the text has something that is not in it');
}

/** Greedy longest match, from the start of a word; a word with a part that no piece begins is unknown as a whole. */
function wordPiece(section: Section): Model {
  const { ids, tokens } = readVocabulary(section);
  const unknown = section.string('unk_token');
  const prefix = codesOf(section.text('continuing_subword_prefix', limits.affix));
  const longest = section.id('max_input_chars_per_word');
  const trie = new Trie();
  const words: string[] = [];
  for (const token of ids.keys()) trie.add(codesOf(token), words.push(token) - 1);
  const wordIds = [...ids.values()];
  // Where pieces inside a word begin; below 0 where there are none.
  const inside = prefix.reduce((node, code) => trie.step(node, code) || -1, 0);

  return {
    vocabulary: ids,
    size: ids.size,
    tokenOf: (id) => tokens[id],
    tokenize(codes, from, to, emit, budget) {
      const unknownWord = () => emit(unknownId(ids.get(unknown), unknown, section.at('unk_token')), unknown, from, to);
      if (to - from > longest) return void unknownWord();
      const found: number[] = [];
      for (let at = from; at < to;) {
        let [node, end, word] = [at > from ? inside : 0, at, -1];
        let i = at;
        while (i < to) {
          node = trie.step(node, codes[i++]);
          if (node === 0) break;
          if (trie.values[node] >= 0) [end, word] = [i, trie.values[node]];
        }
        budget.spend(i - at);
        if (word < 0) return void unknownWord();
        found.push(word, at, end);
        at = end;
      }
      for (let i = 0; i < found.length; i += 3) emit(wordIds[found[i]], words[found[i]], found[i + 1], found[i + 2]);
    },
  };
}

/** Smallest first. */
class Heap {
  readonly #values: number[] = [];

  push(value: number): void {
    const values = this.#values;
    let i = values.length;
    for (let up; i > 0 && values[(up = (i - 1) >> 1)] > value; i = up) values[i] = values[up];
    values[i] = value;
  }

  pop(): number | undefined {
    const values = this.#values;
    const top = values[0];
    const value = values.pop();
    if (value === undefined || values.length === 0) return top;
    let i = 0;
    for (;;) {
      let down = 2 * i + 1;
      if (down + 1 < values.length && values[down + 1] < values[down]) ++down;
      if (down >= values.length || values[down] >= value) break;
      values[i] = values[down];
      i = down;
    }
    values[i] = value;
    return top;
  }
}

function readMerges(section: Section): [string, string][] {
  const path = section.at('merges');
  return section.list('merges').flatMap((merge, i): [string, string][] => {
    if (typeof merge === 'string' && merge.startsWith('#version')) return [];
    const parts = typeof merge === 'string' ? merge.split(' ') : listOf(merge, `${path}[${i}]`);
    const [a, b] = parts;
    return parts.length === 2 && typeof a === 'string' && typeof b === 'string' ? [[a, b]] : wrong(`${path}[${i}]`, merge, 'two tokens');
  });
}

const byteToken = (byte: number) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;

/** Ids of the bytes of characters, where all of them are in the vocabulary. */
function byteFallbackOf(section: Section, ids: ReadonlyMap<string, number>): (codes: readonly number[]) => number[] | undefined {
  if (!section.boolean('byte_fallback', false)) return () => undefined;
  const tokens = Array.from({ length: 256 }, (_, byte) => ids.get(byteToken(byte)));
  return (codes) => {
    const found = codes.flatMap(utf8).map((byte) => tokens[byte]);
    return found.includes(undefined) ? undefined : (found as number[]);
  };
}

/** Merges the pair of neighbours that comes first in the list of merges, and of equal ones the leftmost, until there is none. */
function bpe(section: Section): Model {
  const { ids, tokens } = readVocabulary(section);
  const dropout = section.get('dropout') ?? 0;
  if (dropout !== 0) unsupported(section.at('dropout'), dropout, 'null: tokens would differ from time to time');
  const unknown = section.has('unk_token') ? section.string('unk_token') : undefined;
  const prefix = section.text('continuing_subword_prefix', limits.affix, '');
  const suffix = section.text('end_of_word_suffix', limits.affix, '');
  const fuse = section.boolean('fuse_unk', false);
  const bytesOf = byteFallbackOf(section, ids);
  const wholeWords = section.boolean('ignore_merges', false);
  const ranks = new PairMap();
  const merges = readMerges(section).map(([a, b], rank) =>
    [a, b, a + b.slice(prefix.length)].map(
      (token) => ids.get(token) ?? wrong(`${section.at('merges')}[${rank}]`, token, 'a token of the vocabulary'),
    ),
  );
  const made = merges.map((merge) => merge[2]);
  // From the last, which counts where a pair stands there twice.
  for (let rank = merges.length; rank > 0; --rank) ranks.add(merges[rank - 1][0], merges[rank - 1][1], rank);

  /** Symbols of a word, and the length in bytes of what each stands for. */
  function symbolsOf(codes: readonly number[], from: number, to: number): { symbols: number[]; lengths: number[] } {
    const symbols: number[] = [];
    const lengths: number[] = [];
    let unknownLength = 0;
    const add = (id: number, length: number) => {
      symbols.push(id);
      lengths.push(length);
    };
    const flush = () => {
      if (unknownLength > 0) add(unknownId(ids.get(unknown!), unknown, section.at('unk_token')), unknownLength);
      unknownLength = 0;
    };
    for (let i = from; i < to; ++i) {
      const symbol = (i > from ? prefix : '') + String.fromCodePoint(codes[i]) + (i === to - 1 ? suffix : '');
      const id = ids.get(symbol);
      const length = utf8(codes[i]).length;
      if (id !== undefined) {
        flush();
        add(id, length);
        continue;
      }
      const bytes = bytesOf(codesOf(symbol));
      if (bytes) for (const byte of bytes) add(byte, 1);
      else if (unknown !== undefined) {
        if (!fuse) flush();
        unknownLength += length;
      }
    }
    flush();
    return { symbols, lengths };
  }

  /** Ids, and where each begins and ends, of a word. */
  function merge(codes: readonly number[], from: number, to: number, budget: Budget): number[] {
    const { symbols, lengths } = symbolsOf(codes, from, to);
    const count = symbols.length;
    budget.spend(8 * count);
    const before = symbols.map((_, i) => i - 1);
    const after = symbols.map((_, i) => i + 1);
    // Rank and position in one number.
    const queue = new Heap();
    const propose = (at: number) => {
      const rank = ranks.get(symbols[at], symbols[after[at]]);
      if (rank > 0) queue.push(rank * 2 ** 27 + at);
    };
    for (let i = 0; i + 1 < count; ++i) propose(i);
    for (let top = queue.pop(); top !== undefined; top = queue.pop()) {
      const at = top % 2 ** 27;
      const next = after[at];
      if (lengths[at] === 0 || next >= count) continue;
      const rank = ranks.get(symbols[at], symbols[next]);
      const both = made[Math.floor(top / 2 ** 27) - 1];
      // The queue may remember a pair that has become another.
      if (rank === 0 || made[rank - 1] !== both) continue;
      symbols[at] = both;
      lengths[at] += lengths[next];
      lengths[next] = 0;
      after[at] = after[next];
      if (after[at] < count) {
        before[after[at]] = at;
        propose(at);
      }
      if (before[at] >= 0) propose(before[at]);
    }
    // Lengths count bytes; a byte of a character stands where the character does.
    const out: number[] = [];
    let [start, bytes, done] = [from, 0, 0];
    for (let i = 0; i < count; i = after[i]) {
      while (start < to - 1 && bytes + utf8(codes[start]).length <= done) bytes += utf8(codes[start++]).length;
      done += lengths[i];
      let [end, last] = [start, bytes];
      while (end < to - 1 && last + utf8(codes[end]).length < done) last += utf8(codes[end++]).length;
      out.push(symbols[i], start - from, end + 1 - from);
    }
    return out;
  }

  // Words come again. What is kept of them has a limit, too.
  const cache = new Map<string, number[]>();
  let room = 2 ** 18;

  return {
    vocabulary: ids,
    size: ids.size,
    tokenOf: (id) => tokens[id],
    tokenize(codes, from, to, emit, budget) {
      const word = to - from < 256 || wholeWords ? stringOf(codes, from, to) : '';
      const whole = wholeWords ? ids.get(word) : undefined;
      if (whole !== undefined) return void emit(whole, word, from, to);
      let found = cache.get(word);
      if (!found || word === '') {
        found = merge(codes, from, to, budget);
        if (to - from < 256 && found.length < room) {
          room -= found.length + 16;
          cache.set(word, found);
        }
      }
      for (let i = 0; i < found.length; i += 3) emit(found[i], tokens[found[i]], from + found[i + 1], from + found[i + 2]);
    },
  };
}

/** The cut with the best sum of scores (Viterbi). */
function unigram(section: Section): Model {
  const path = section.at('vocab');
  const ids = new Map<string, number>();
  const scores: number[] = [];
  const words: string[] = [];
  const trie = new Trie();
  section.list('vocab').forEach((entry, id) => {
    const [token, score] = listOf(entry, `${path}[${id}]`);
    if (typeof token !== 'string' || typeof score !== 'number') wrong(`${path}[${id}]`, entry, 'a token and its score');
    atMost(`${path}[${id}]`, token.length, 'characters', limits.token);
    ids.set(token, id);
    words.push(token);
    scores.push(score);
    trie.add(codesOf(token), id);
  });
  const unknown = section.has('unk_id') ? section.id('unk_id') : undefined;
  if (unknown !== undefined && unknown >= words.length) wrong(section.at('unk_id'), unknown, `less than the ${words.length} tokens`);
  const bytesOf = byteFallbackOf(section, ids);
  const unknownScore = scores.reduce((a, b) => (b < a ? b : a), Infinity) - 10;

  function put(codes: readonly number[], from: number, to: number, emit: Emit): void {
    const token = stringOf(codes, from, to);
    const id = ids.get(token);
    const bytes = id === undefined ? bytesOf(codes.slice(from, to)) : undefined;
    if (bytes) for (const byte of bytes) emit(byte, words[byte], from, to);
    else emit(unknownId(id ?? unknown, undefined, section.at('unk_id')), token, from, to);
  }

  return {
    vocabulary: ids,
    size: words.length,
    tokenOf: (id) => words[id],
    tokenize(codes, from, to, emit, budget) {
      const count = to - from;
      const best = new Float64Array(count + 1);
      const begins = new Int32Array(count + 1).fill(-1);
      const chosen = new Int32Array(count + 1);
      const offer = (start: number, end: number, id: number, score: number) => {
        if (begins[end] >= 0 && score <= best[end]) return;
        best[end] = score;
        begins[end] = start;
        chosen[end] = id;
      };
      for (let start = 0; start < count; ++start) {
        const soFar = best[start];
        let single = false;
        let end = start;
        for (let node = 0; end < count;) {
          node = trie.step(node, codes[from + end++]);
          if (node === 0) break;
          const id = trie.values[node];
          if (id < 0) continue;
          offer(start, end, id, scores[id] + soFar);
          single ||= end === start + 1;
        }
        budget.spend(end - start);
        if (!single) offer(start, start + 1, unknown ?? -1, unknownScore + soFar);
      }
      // From the end; neighbours that are unknown are one token.
      const cuts: number[] = [];
      for (let end = count; end > 0;) {
        let start = begins[end];
        if (chosen[end] === (unknown ?? -1)) while (start > 0 && chosen[start] === (unknown ?? -1)) start = begins[start];
        cuts.push(start, end);
        end = start;
      }
      for (let i = cuts.length; i > 0; i -= 2) put(codes, from + cuts[i - 2], from + cuts[i - 1], emit);
    },
  };
}

const models = { WordPiece: wordPiece, BPE: bpe, Unigram: unigram };

export function readModel(section: Section): Model {
  if (section.has('type')) return choose(models, section)(section);
  // Older files do not say; what a section has then tells.
  if (section.has('merges')) return bpe(section);
  if (Array.isArray(section.get('vocab'))) return unigram(section);
  return section.has('continuing_subword_prefix') ? wordPiece(section) : unsupported(section.at('type'), undefined, Object.keys(models).join(', '));
}
