/** Merges of SentencePiece, as in src/attn/io/gguf/sentencepiece.cpp. */
import { encodeUtf8 } from '../../platform/utf8.js';
import { refuse } from './header.js';

/** Numbers of llama.cpp. */
export const types = { unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 };

export interface Tokens {
  readonly texts: readonly string[];
  readonly types: readonly number[];
}

/** Bounds work and memory: the sum of the squared lengths. Gemma's 262 144 tokens have a sixth of it. */
const mostWork = 2 ** 27;

interface Merge {
  readonly score: number;
  readonly parts: string;
  /** Characters. */
  readonly left: number;
  readonly right: number;
}

/**
 * Returns merges ("left right") with which byte-pair encoding gives the tokens of SentencePiece. SentencePiece merges the
 * neighbours that make the token of the highest score, the leftmost first; so each way to split a token into two others
 * is a merge, by score and, because neighbours may overlap in runs of equal characters, by the length of the left part,
 * as in transformers' generate_merges(). Throws FORMAT unless there is a finite score for each token; UNSUPPORTED for
 * tokens that are too long together.
 */
export function mergesOfScores({ texts, types: typeOf }: Tokens, scores: readonly number[]): string[] {
  if (scores.length !== texts.length) refuse('the length of tokenizer.ggml.scores', `${texts.length}, one for each token`, String(scores.length));
  const bad = scores.find((score) => !Number.isFinite(score));
  if (bad !== undefined) refuse('tokenizer.ggml.scores', 'finite numbers', String(bad));
  const others = [types.control, types.unknown, types.byte];
  // Only these can be a part of a text without spaces.
  const pieces = new Map<string, number>();
  texts.forEach((text, id) => {
    if (!others.includes(typeOf[id]!) && !text.includes(' ')) pieces.set(text, scores[id]!);
  });
  let work = 0;
  for (const text of pieces.keys()) work += encodeUtf8(text).length ** 2;
  if (work > mostWork) refuse('tokenizer.ggml.tokens', `lengths whose squares add up to at most ${mostWork}`, String(work), 'UNSUPPORTED');
  const merges: Merge[] = [];
  for (const [whole, score] of pieces) {
    const characters = Array.from(whole).length;
    let at = 0;
    for (let left = 1; left < characters; ++left) {
      at += whole.codePointAt(at)! > 0xffff ? 2 : 1;
      const [a, b] = [whole.slice(0, at), whole.slice(at)];
      if (pieces.has(a) && pieces.has(b)) merges.push({ score, parts: `${a} ${b}`, left, right: characters - left });
    }
  }
  // Stable, so that equal ones are in the order of their ids.
  merges.sort((a, b) => b.score - a.score || b.left - a.left || b.right - a.right);
  return merges.map(({ parts }) => parts);
}
