import { describe, fail } from '../args/error.js';
import { limits } from './limits.js';
import { Section, atMost, choose, listOf, unsupported, wrong } from './schema.js';
import { type Budget, codesOf, stringOf, utf8 } from './text.js';
import { PairMap } from './trie.js';
import { Vocabulary } from './vocabulary.js';

/** Receives a token's range in the given codes. */
export type Emit = (id: number, token: string, from: number, to: number) => void;

export interface Model {
  /** Counts entries; two may be the same token. */
  readonly size: number;
  idOf(token: string): number | undefined;
  tokenOf(id: number): string | undefined;
  readonly takesOpenWords: boolean;
  /** `isOpen`: the word continues; emit only tokens that do not depend on the rest. */
  tokenize(codes: readonly number[], from: number, to: number, emit: Emit, budget: Budget, isOpen?: boolean): void;
}

function facts(vocabulary: Vocabulary): Omit<Model, 'tokenize'> {
  return {
    takesOpenWords: false,
    size: vocabulary.tokens.length,
    idOf: (token) => vocabulary.idOf(token),
    tokenOf: (id) => vocabulary.tokenOf(id),
  };
}

function readTokens(section: Section): [tokens: string[], ids: Int32Array] {
  const vocabulary = new Section(section.take('vocab'), section.at('vocab'));
  const tokens = vocabulary.names();
  const ids = Int32Array.from(tokens, (token) => {
    atMost(vocabulary.at(token), token.length, 'characters', limits.token);
    return vocabulary.id(token);
  });
  return [tokens, ids];
}

/** Fails only if a text needs the unknown token; many vocabularies have none. */
function needed(found: number | undefined, token: string | undefined, path: string): number {
  return (
    found ?? fail('FORMAT', 'tokenize', path, describe(token), 'a token of the vocabulary', 'The text has characters that are not in the vocabulary')
  );
}

/** Takes the longest piece each time. A word with an unknown part is unknown as a whole. */
function wordPiece(section: Section): Model {
  const unknown = section.string('unk_token');
  const unknownPath = section.at('unk_token');
  const prefix = codesOf(section.text('continuing_subword_prefix', limits.affix));
  const longest = section.id('max_input_chars_per_word');
  const vocabulary = new Vocabulary(...readTokens(section));
  const { tokens, trie } = vocabulary;
  const unknownId = vocabulary.idOf(unknown);
  // Negative if there are no pieces inside words.
  const inside = trie.walk(prefix);

  return {
    ...facts(vocabulary),
    tokenize(codes, from, to, emit, budget) {
      const unknownWord = () => emit(needed(unknownId, unknown, unknownPath), unknown, from, to);
      if (to - from > longest) return void unknownWord();
      const found: number[] = [];
      for (let at = from; at < to;) {
        let [state, end, token] = [at > from ? inside : 0, at, -1];
        let i = at;
        while (i < to && state >= 0) {
          state = trie.step(state, codes[i++]) || -1;
          const number = state > 0 ? trie.numberAt(state) : -1;
          if (number >= 0) [end, token] = [i, number];
        }
        budget.spend(i - at);
        if (token < 0) return void unknownWord();
        found.push(token, at, end);
        at = end;
      }
      for (let i = 0; i < found.length; i += 3) emit(vocabulary.id(found[i]), tokens[found[i]], found[i + 1], found[i + 2]);
    },
  };
}

function wordLevel(section: Section): Model {
  const unknown = section.string('unk_token');
  const unknownPath = section.at('unk_token');
  const vocabulary = new Vocabulary(...readTokens(section));
  const { tokens } = vocabulary;
  const unknownId = vocabulary.idOf(unknown);
  return {
    ...facts(vocabulary),
    tokenize(codes, from, to, emit, budget) {
      budget.spend(to - from);
      const found = vocabulary.find(codes, from, to);
      if (found >= 0) emit(vocabulary.id(found), tokens[found], from, to);
      else emit(needed(unknownId, unknown, unknownPath), unknown, from, to);
    },
  };
}

/** Binary heap, smallest first. */
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

const byteToken = (byte: number) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;

function byteFallbackOf(section: Section, vocabulary: Vocabulary): (codes: readonly number[]) => number[] | undefined {
  if (!section.boolean('byte_fallback', false)) return () => undefined;
  const tokens = Array.from({ length: 256 }, (_, byte) => vocabulary.shared(vocabulary.find(codesOf(byteToken(byte)))));
  return (codes) => {
    const found = codes.flatMap(utf8).map((byte) => tokens[byte]);
    return found.includes(-1) ? undefined : found;
  };
}

/** `ranks`: rank (from 1) by pair; `made`: merged token by rank. */
function readMerges(section: Section, vocabulary: Vocabulary, prefix: string): { ranks: PairMap; made: Int32Array } {
  const path = section.at('merges');
  const list = listOf(section.take('merges'), path);
  const ranks = new PairMap(list.length);
  const made = new Int32Array(list.length + 1);
  let rank = 0;
  list.forEach((merge, i) => {
    if (typeof merge === 'string' && merge.startsWith('#version')) return;
    const parts = typeof merge === 'string' ? merge.split(' ') : listOf(merge, `${path}[${i}]`);
    const [a, b] = parts;
    if (parts.length !== 2 || typeof a !== 'string' || typeof b !== 'string') wrong(`${path}[${i}]`, merge, 'two tokens');
    const [first, second, both] = [a, b, a + b.slice(prefix.length)].map((token) => {
      const number = vocabulary.find(codesOf(token));
      return number < 0 ? wrong(`${path}[${i}]`, token, 'a token of the vocabulary') : vocabulary.shared(number);
    });
    made[++rank] = both;
    // The last rank of a repeated pair applies.
    ranks.set(first, second, rank);
  });
  return { ranks, made };
}

/** Merges the pair of lowest rank, leftmost first, until no pair has a rank. */
function bpe(section: Section): Model {
  const dropout = section.get('dropout') ?? 0;
  if (dropout !== 0) unsupported(section.at('dropout'), dropout, 'null', 'With dropout the tokens of a text would be random');
  const unknown = section.has('unk_token') ? section.string('unk_token') : undefined;
  const unknownPath = section.at('unk_token');
  const prefix = section.text('continuing_subword_prefix', limits.affix, '');
  const [before, after] = [codesOf(prefix), codesOf(section.text('end_of_word_suffix', limits.affix, ''))];
  const fuse = section.boolean('fuse_unk', false);
  const wholeWords = section.boolean('ignore_merges', false);
  const vocabulary = new Vocabulary(...readTokens(section));
  const { tokens, trie } = vocabulary;
  const bytesOf = byteFallbackOf(section, vocabulary);
  const { ranks, made } = readMerges(section, vocabulary, prefix);
  const unknownToken = unknown === undefined ? -1 : vocabulary.shared(vocabulary.find(codesOf(unknown)));
  // Negative if there are none inside words.
  const inside = trie.walk(before);

  function symbolOf(code: number, first: boolean, last: boolean): number {
    const start = first ? 0 : inside;
    const at = start < 0 ? 0 : trie.step(start, code);
    if (at === 0) return -1;
    return vocabulary.shared(last ? vocabulary.find(after, 0, after.length, at) : trie.numberAt(at));
  }

  /** Symbols and the number of bytes that each covers. */
  function symbolsOf(codes: readonly number[], from: number, to: number, budget: Budget): { symbols: number[]; lengths: number[] } {
    const symbols: number[] = [];
    const lengths: number[] = [];
    let unknownLength = 0;
    const add = (id: number, length: number) => {
      symbols.push(id);
      lengths.push(length);
    };
    const flush = () => {
      if (unknownLength > 0) add(needed(unknownToken < 0 ? undefined : unknownToken, unknown, unknownPath), unknownLength);
      unknownLength = 0;
    };
    budget.spend(8 * (to - from));
    for (let i = from; i < to; ++i) {
      const [first, last] = [i === from, i === to - 1];
      const symbol = symbolOf(codes[i], first, last);
      const length = utf8(codes[i]).length;
      if (symbol >= 0) {
        flush();
        add(symbol, length);
        continue;
      }
      const bytes = bytesOf([...(first ? [] : before), codes[i], ...(last ? after : [])]);
      if (bytes) {
        budget.spend(8 * (bytes.length - 1));
        for (const byte of bytes) add(byte, 1);
      } else if (unknown !== undefined) {
        if (!fuse) flush();
        unknownLength += length;
      }
    }
    flush();
    return { symbols, lengths };
  }

  /** Returns flat triples (id, start, end). */
  function merge(codes: readonly number[], from: number, to: number, budget: Budget): number[] {
    const { symbols, lengths } = symbolsOf(codes, from, to, budget);
    const count = symbols.length;
    const previous = symbols.map((_, i) => i - 1);
    const next = symbols.map((_, i) => i + 1);
    // Rank and position in one number.
    const queue = new Heap();
    const propose = (at: number) => {
      const rank = ranks.get(symbols[at], symbols[next[at]]);
      if (rank > 0) queue.push(rank * 2 ** 27 + at);
    };
    for (let i = 0; i + 1 < count; ++i) propose(i);
    for (let top = queue.pop(); top !== undefined; top = queue.pop()) {
      const at = top % 2 ** 27;
      const other = next[at];
      if (lengths[at] === 0 || other >= count) continue;
      const rank = ranks.get(symbols[at], symbols[other]);
      const both = made[Math.floor(top / 2 ** 27)];
      // The queue may hold an outdated pair.
      if (rank === 0 || made[rank] !== both) continue;
      symbols[at] = both;
      lengths[at] += lengths[other];
      lengths[other] = 0;
      next[at] = next[other];
      if (next[at] < count) {
        previous[next[at]] = at;
        propose(at);
      }
      if (previous[at] >= 0) propose(previous[at]);
    }
    // A part of a character gets the range of the whole character.
    const out: number[] = [];
    let [start, bytes, done] = [from, 0, 0];
    for (let i = 0; i < count; i = next[i]) {
      while (start < to - 1 && bytes + utf8(codes[start]).length <= done) bytes += utf8(codes[start++]).length;
      done += lengths[i];
      let [end, last] = [start, bytes];
      while (end < to - 1 && last + utf8(codes[end]).length < done) last += utf8(codes[end++]).length;
      out.push(symbols[i], start - from, end + 1 - from);
    }
    return out;
  }

  const cache = new Map<string, number[]>();
  let room = 2 ** 18;

  return {
    ...facts(vocabulary),
    tokenize(codes, from, to, emit, budget) {
      const whole = wholeWords ? vocabulary.find(codes, from, to) : -1;
      if (whole >= 0) return void emit(vocabulary.id(whole), tokens[whole], from, to);
      const word = to - from < 256 ? stringOf(codes, from, to) : '';
      let found = cache.get(word);
      if (!found || word === '') {
        found = merge(codes, from, to, budget);
        if (to - from < 256 && found.length < room) {
          room -= found.length + 16;
          cache.set(word, found);
        }
      }
      for (let i = 0; i < found.length; i += 3) emit(vocabulary.id(found[i]), tokens[found[i]], from + found[i + 1], from + found[i + 2]);
    },
  };
}

function readPieces(section: Section): [tokens: string[], scores: Float64Array] {
  const path = section.at('vocab');
  const list = listOf(section.take('vocab'), path);
  const scores = new Float64Array(list.length);
  const tokens = list.map((entry, id) => {
    const [token, score] = listOf(entry, `${path}[${id}]`);
    if (typeof token !== 'string' || typeof score !== 'number') wrong(`${path}[${id}]`, entry, 'a token and its score');
    atMost(`${path}[${id}]`, token.length, 'characters', limits.token);
    scores[id] = score;
    return token;
  });
  return [tokens, scores];
}

/** Finds the last position on all best paths to open positions: tokens before it do not depend on the rest of the word. */
function certain(open: Uint8Array, begins: Int32Array): number {
  let end = open.length - 1;
  open[end] = 1;
  for (let left = open.reduce((sum, each) => sum + each); left > 1; --end) {
    if (!open[end]) continue;
    left -= open[begins[end]];
    open[begins[end]] = 1;
  }
  while (!open[end]) --end;
  return end;
}

/** Maximizes the sum of scores (Viterbi). */
function unigram(section: Section): Model {
  const [tokens, scores] = readPieces(section);
  const unknown = section.has('unk_id') ? section.id('unk_id') : undefined;
  const unknownPath = section.at('unk_id');
  if (unknown !== undefined && unknown >= tokens.length) wrong(unknownPath, unknown, `a number below ${tokens.length}`);
  const vocabulary = new Vocabulary(tokens);
  const { trie } = vocabulary;
  const bytesOf = byteFallbackOf(section, vocabulary);
  const unknownScore = scores.reduce((a, b) => (b < a ? b : a), Infinity) - 10;

  function put(codes: readonly number[], from: number, to: number, emit: Emit): void {
    const found = vocabulary.find(codes, from, to);
    if (found >= 0) return void emit(found, tokens[found], from, to);
    const bytes = bytesOf(codes.slice(from, to));
    if (bytes) for (const byte of bytes) emit(byte, tokens[byte], from, to);
    else emit(needed(unknown, undefined, unknownPath), stringOf(codes, from, to), from, to);
  }

  return {
    ...facts(vocabulary),
    takesOpenWords: true,
    tokenize(codes, from, to, emit, budget, isOpen) {
      const count = to - from;
      // Positions of tokens that may extend beyond `to`.
      const open = new Uint8Array(count + 1);
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
        for (let state = 0; end < count;) {
          state = trie.step(state, codes[from + end++]);
          if (state === 0) break;
          if (end === count) open[start] = 1;
          const id = trie.numberAt(state);
          if (id < 0) continue;
          offer(start, end, id, scores[id] + soFar);
          single ||= end === start + 1;
        }
        budget.spend(end - start);
        if (!single) offer(start, start + 1, unknown ?? -1, unknownScore + soFar);
      }
      // Backwards; adjacent unknown pieces become one token.
      const firstUnknown = (end: number) => {
        while (end > 0 && chosen[end] === (unknown ?? -1)) end = begins[end];
        return end;
      };
      const cuts: number[] = [];
      for (let end = isOpen ? firstUnknown(certain(open, begins)) : count; end > 0;) {
        const start = Math.min(begins[end], firstUnknown(end));
        cuts.push(start, end);
        end = start;
      }
      for (let i = cuts.length; i > 0; i -= 2) put(codes, from + cuts[i - 2], from + cuts[i - 1], emit);
    },
  };
}

const models = { WordPiece: wordPiece, BPE: bpe, Unigram: unigram, WordLevel: wordLevel };

export function readModel(section: Section): Model {
  if (section.has('type')) return choose(models, section)(section);
  // Older files have no type.
  if (section.has('merges')) return bpe(section);
  if (Array.isArray(section.get('vocab'))) return unigram(section);
  return section.has('continuing_subword_prefix')
    ? wordPiece(section)
    : unsupported(section.at('type'), undefined, `one of ${Object.keys(models).join(', ')}`);
}
