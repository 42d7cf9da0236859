/** Late interaction (Khattab & Zaharia 2020): each word of the query meets the most similar word of a text. */
import type { Explanation, Hit } from '../search.js';
import type { AnyModel } from './arguments.js';
import type { Prompts } from './prompts.js';
import { wordsOf } from './words.js';

interface Word {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** Sum of the last hidden states of the word's tokens, of length 1. */
  readonly vector: Float64Array;
}

/** Omits words that truncation cuts off. */
async function readWords(model: AnyModel, text: string, prompt: string): Promise<Word[]> {
  const inputs = await model.tokenize(prompt + text);
  const { lastHiddenState } = await model.forward(inputs, { outputLogits: false });
  const E = lastHiddenState.dims.at(-1)!;
  const places = inputs.offsets[0]!;
  const words: Word[] = [];
  let first = 0;
  for (const { 0: found, index: start } of wordsOf(text)) {
    const end = start + found.length;
    const vector = new Float64Array(E);
    let square = 0;
    for (let token = first; token < places.length; ++token) {
      const place = places[token];
      if (!place || place[1] <= prompt.length + start) continue;
      if (place[0] >= prompt.length + end) break;
      // The next word may begin in this token.
      first = token;
      for (let e = 0; e < E; ++e) vector[e]! += lastHiddenState.data[token * E + e]!;
    }
    for (const value of vector) square += value * value;
    if (square > 0) words.push({ text: found, start, end, vector: vector.map((value) => value / Math.sqrt(square)) });
  }
  return words;
}

const cosine = (a: Word, b: Word): number => a.vector.reduce((sum, value, e) => sum + value * b.vector[e]!, 0);

export async function explain(model: AnyModel, prompts: Prompts, query: string, hit: Hit): Promise<Explanation> {
  const ofQuery = await readWords(model, query, prompts.query);
  const ofText = await readWords(model, hit.text, prompts.document);
  const similarities = ofQuery.map((word) => ofText.map((other) => cosine(word, other)));
  const placed = ({ text, start, end }: Word) => ({ text, start: hit.start + start, end: hit.start + end });
  return {
    query: ofQuery.map(({ text, start, end }, i) => {
      const row = similarities[i]!;
      const best = row.reduce((most, value, j) => (value > row[most]! ? j : most), 0);
      return { text, start, end, match: ofText.length === 0 ? undefined : { ...placed(ofText[best]!), similarity: row[best]! } };
    }),
    text: ofText.map((word, j) => ({ ...placed(word), similarity: similarities.reduce((most, row) => Math.max(most, row[j]!), -1) })),
  };
}
