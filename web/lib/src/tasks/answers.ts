/** As transformers' QuestionAnsweringPipeline. */

import type { Answer } from '../attn.js';

/** Tokens of the context that an answer may contain. */
export interface AnswerWindow {
  readonly startScores: ArrayLike<number>;
  readonly endScores: ArrayLike<number>;
  /** Range of each token's word. */
  readonly starts: ArrayLike<number>;
  readonly ends: ArrayLike<number>;
  /** Score of "no answer". */
  readonly empty: number;
}

interface Span {
  readonly score: number;
  readonly first: number;
  readonly last: number;
}

/** Maximizes start score × end score. Ties: the first span wins. */
function spansOf({ startScores, endScores }: AnswerWindow, count: number, most: number): Span[] {
  const spans: Span[] = [];
  for (let first = 0; first < startScores.length; ++first)
    for (let last = first; last < Math.min(first + most, startScores.length); ++last) {
      const score = Math.fround(startScores[first]! * endScores[last]!);
      if (spans.length === count && score <= spans[count - 1]!.score) continue;
      let at = spans.length;
      while (at > 0 && spans[at - 1]!.score < score) --at;
      spans.splice(at, 0, { score, first, last });
      spans.length = Math.min(spans.length, count);
    }
  return spans;
}

export function answersOf(
  context: string,
  windows: readonly AnswerWindow[],
  { topK, maxAnswerLength, allowEmpty }: { readonly topK: number; readonly maxAnswerLength: number; readonly allowEmpty: boolean },
): Answer[] {
  const found = new Map<string, Answer>();
  for (const window of windows)
    // Several spans can be the same words.
    for (const { score, first, last } of spansOf(window, 2 * topK + 10, maxAnswerLength)) {
      const [start, end] = [window.starts[first]!, window.ends[last]!];
      const text = context.slice(start, end);
      const key = text.toLowerCase();
      const same = found.get(key);
      if (same) same.score += score;
      else found.set(key, { text, score, start, end });
    }
  const all = [...found.values()];
  if (allowEmpty) all.push({ text: '', score: Math.min(...windows.map(({ empty }) => empty)), start: 0, end: 0 });
  return all.sort((a, b) => b.score - a.score).slice(0, topK);
}
