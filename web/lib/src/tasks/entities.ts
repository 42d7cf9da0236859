/** As transformers' TokenClassificationPipeline. */

import type { Aggregation } from '../args/aggregation.js';
import type { Entity } from '../attn.js';

export interface Scored {
  /** By label. */
  readonly scores: Float32Array;
  readonly start: number;
  readonly end: number;
  readonly isSubword: boolean;
}

interface Labelled {
  readonly label: string;
  readonly score: number;
  readonly start: number;
  readonly end: number;
}

function largest(scores: Float32Array): number {
  let best = 0;
  scores.forEach((score, i) => {
    if (score > scores[best]!) best = i;
  });
  return best;
}

function averageOf(tokens: readonly Scored[]): Float32Array {
  return tokens[0]!.scores.map((_, label) => tokens.reduce((sum, { scores }) => sum + scores[label]!, 0) / tokens.length);
}

function scoresOf(word: readonly Scored[], aggregation: Aggregation): Float32Array {
  const [first] = word;
  if (aggregation === 'average') return averageOf(word);
  if (aggregation !== 'max') return first!.scores;
  const top = ({ scores }: Scored) => scores[largest(scores)]!;
  return word.reduce((best, token) => (top(token) > top(best) ? token : best), first!).scores;
}

function labelled(tokens: readonly Scored[], labels: readonly string[], aggregation: Aggregation): Labelled[] {
  const words: Scored[][] = [];
  const byWord = aggregation !== 'none' && aggregation !== 'simple';
  for (const token of tokens) {
    if (byWord && token.isSubword && words.length > 0) words.at(-1)!.push(token);
    else words.push([token]);
  }
  return words.map((word) => {
    const scores = scoresOf(word, aggregation);
    const best = largest(scores);
    return { label: labels[best]!, score: scores[best]!, start: word[0]!.start, end: word.at(-1)!.end };
  });
}

/** A label without B- or I- counts as I-. */
const tagOf = (label: string) => (/^[BI]-/.test(label) ? label.slice(2) : label);
const begins = (label: string) => label.startsWith('B-');
const groupOf = (label: string) => label.slice(label.indexOf('-') + 1);

function group(words: readonly Labelled[]): Labelled[] {
  const groups: Labelled[][] = [];
  for (const word of words) {
    const last = groups.at(-1)?.at(-1);
    if (last && tagOf(word.label) === tagOf(last.label) && !begins(word.label)) groups.at(-1)!.push(word);
    else groups.push([word]);
  }
  return groups.map((all) => ({
    label: groupOf(all[0]!.label),
    score: Math.fround(all.reduce((sum, { score }) => sum + score, 0) / all.length),
    start: all[0]!.start,
    end: all.at(-1)!.end,
  }));
}

/** Prefers the longest entity, then the highest score. */
function withoutOverlaps(entities: readonly Labelled[]): Labelled[] {
  const kept: Labelled[] = [];
  for (const entity of [...entities].sort((a, b) => a.start - b.start)) {
    const last = kept.at(-1);
    if (!last || entity.start >= last.end || entity.start < last.start) kept.push(entity);
    else {
      const longer = entity.end - entity.start - (last.end - last.start);
      if (longer > 0 || (longer === 0 && entity.score > last.score)) kept[kept.length - 1] = entity;
    }
  }
  return kept;
}

export function entitiesOf(
  text: string,
  windows: readonly (readonly Scored[])[],
  labels: readonly string[],
  aggregation: Aggregation,
  ignored: ReadonlySet<string>,
): Entity[] {
  const found = windows.flatMap((tokens) => {
    const words = labelled(tokens, labels, aggregation);
    return (aggregation === 'none' ? words : group(words)).filter(({ label }) => !ignored.has(label));
  });
  const all = windows.length > 1 ? withoutOverlaps(found) : found;
  return all.map(({ label, score, start, end }) => ({ label, score, text: text.slice(start, end), start, end }));
}
