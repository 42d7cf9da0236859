/** The counterpart of src/attn/io/gguf/sentencepiece.cpp. Imported with the first such vocabulary. */
import { encodeUtf8 } from '../../platform/utf8.js';
import type { refuse } from './header.js';

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
 * Returns merges ("left right") with which byte-pair encoding gives the tokens of SentencePiece, which merges the neighbours
 * that make the token of the highest score, the leftmost first. So each way to split a token into two others is a
 * merge, by score and, because neighbours may overlap in runs of equal characters, by the length of the left part, as
 * in transformers' generate_merges(). `pieces`: the scores of tokens without spaces. `refusal`: refuse(), an argument,
 * because an import would split the script. Throws UNSUPPORTED for tokens that are too long together.
 */
export function mergesOfScores(pieces: ReadonlyMap<string, number>, refusal: typeof refuse): string[] {
  let work = 0;
  for (const text of pieces.keys()) work += encodeUtf8(text).length ** 2;
  if (work > mostWork) refusal('the sum of the squared lengths in tokenizer.ggml.tokens', `at most ${mostWork}`, String(work), 'UNSUPPORTED');
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

const replace = (pattern: string, content: string) => ({ type: 'Replace', pattern: { String: pattern }, content });

/** Parts of tokenizer.json: "▁" stands for a space. `addsSpace`: in front of each text between special tokens. */
export function partsOf(addsSpace: boolean): { normalizer: object; decoder: object } {
  const spaces = replace(' ', '▁');
  const decoders = [replace('▁', ' '), { type: 'ByteFallback' }, { type: 'Fuse' }];
  return {
    normalizer: addsSpace ? { type: 'Sequence', normalizers: [{ type: 'Prepend', prepend: '▁' }, spaces] } : spaces,
    decoder: { type: 'Sequence', decoders: addsSpace ? [...decoders, { type: 'Strip', content: ' ', start: 1, stop: 0 }] : decoders },
  };
}
