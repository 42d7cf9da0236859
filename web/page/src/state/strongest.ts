/** The strongest link: where to look after the text, the model or the head has changed. */
import { computed } from '@preact/signals';
import { within, type Part } from '../draw/part.ts';
import { cellIn, headInFocus, headWeights, layerInFocus, lineOf, shown, sourcesOf } from './map_view.ts';
import { isDecoder } from '../model/loaded.ts';
import { run, type Run } from './run.ts';
import { mostReadable, view, type Cell } from './view.ts';

export const blanksOf = ({ model, tokens }: Run): readonly number[] =>
  tokens.flatMap((token, i) => (model.maskToken !== undefined && token === model.maskToken ? [i] : []));

/** Where the figure looks from at first: the blanks, or the last word of a decoder's text. */
function queriesOf(of: Run, isWord: readonly boolean[]): readonly number[] {
  const last = isWord.lastIndexOf(true);
  return isDecoder(of.model) && last >= 0 ? [last] : blanksOf(of);
}

/** weights (L,L); only from `queries`, if there are any, and never from a word to itself unless it is alone. */
export function strongestIn(weights: ArrayLike<number>, isWord: readonly boolean[], queries: readonly number[] = []): Cell {
  const length = isWord.length;
  const rows = queries.length > 0 ? queries : isWord.flatMap((word, i) => (word ? [i] : []));
  let best: Cell = { row: rows[0] ?? 0, column: rows[0] ?? 0 };
  let largest = -1;
  for (const row of rows)
    for (let column = 0; column < length; ++column) {
      const weight = weights[row * length + column]!;
      if (isWord[column] && column !== row && weight > largest) [best, largest] = [{ row, column }, weight];
    }
  return best;
}

/** Not punctuation; "Ġ" is a space. */
const hasLetters = (token: string): boolean => /[\p{L}\p{N}]/u.test(token.replace(/^Ġ/, ''));

export const strongest = computed<Cell>(() => {
  const of = run.value;
  if (!of) return { row: 0, column: 0 };
  const isText = sourcesOf(lineOf(of)).map((source) => source !== undefined);
  const isWord = isText.map((inText, i) => inText && hasLetters(of.tokens[i]!));
  const among = isWord.filter(Boolean).length > 1 ? isWord : isText;
  return strongestIn(headWeights(of, layerInFocus.value, headInFocus.value), among, queriesOf(of, isText));
});

/** Rows of the part that a long text is first shown in. */
const rowsAtFirst = 32;

export const partShown = computed<Part>(() => {
  const [now, { part }] = [shown.value, view.value];
  const size = now?.places.length ?? 0;
  const whole = { row: 0, column: 0, count: size };
  if (part !== 'auto') return within(part ?? whole, size);
  if (!now || size <= mostReadable) return whole;
  const { row, column } = cellIn(now, strongest.value);
  return within({ row: row - rowsAtFirst / 2, column: column - rowsAtFirst / 2, count: rowsAtFirst }, size);
});
