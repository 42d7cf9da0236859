/** Generated tasks. */
import { hash, type Random } from './random.ts';
import { first, ignored, unknown, type Example, type Task, type TaskId } from './task.ts';

const digits = [...'0123456789'];
const letters = [...'abcdefgh'];
const openings = [...'([{'];
const closings = [...')]}'];
/** Any closing bracket. */
const closes = '?';

const heldShare = 8;
/** One puzzle of 8 is held out, selected by a hash of its ids. */
export const isHeld = (ids: readonly number[]): boolean => hash(ids) % heldShare === 0;

interface Puzzle {
  readonly id: TaskId;
  readonly symbols: readonly string[];
  readonly answers: readonly string[];
  readonly length: number;
  readonly make: (random: Random) => readonly number[];
  /** The answers, or why there are none. */
  readonly solve: (ids: readonly number[]) => readonly number[] | string;
  readonly expected: (ids: readonly number[]) => Float32Array;
}

/** Spaces and commas are optional. */
function idsOf({ symbols, length }: Puzzle, text: string): readonly number[] | string {
  const characters = [...text.replaceAll(/[\s,]/g, '')];
  const ids = characters.map((character) => symbols.indexOf(character));
  const wrong = ids.indexOf(-1);
  if (wrong >= 0) return `“${characters[wrong]}” is not one of ${symbols.join(' ')}.`;
  return ids.length === length ? ids : `It has ${ids.length} symbols and needs ${length}.`;
}

function taskOf(puzzle: Puzzle, isOne: boolean): Task {
  const { id, length, make, solve, expected } = puzzle;
  const symbols = [...puzzle.symbols, unknown, ...(isOne ? [first] : [])];
  const front = isOne ? [symbols.indexOf(first)] : [];
  return {
    id,
    symbols,
    answers: puzzle.answers,
    length: length + front.length,
    isOne,
    draw(random, held) {
      for (;;) {
        const ids = make(random);
        if (isHeld(ids) !== held) continue;
        const labels = solve(ids);
        if (typeof labels !== 'string') return { ids: [...front, ...ids], labels };
      }
    },
    read(text): Example | string {
      const ids = idsOf(puzzle, text);
      if (typeof ids === 'string') return ids;
      const labels = solve(ids);
      return typeof labels === 'string' ? labels : { ids: [...front, ...ids], labels };
    },
    expected,
  };
}

const draws = (count: number, below: number) => (random: Random) => Array.from({ length: count }, () => random.below(below));

/** (L,L): each row is uniform over the columns for which `sees` is true. */
function pattern(length: number, sees: (row: number, column: number) => boolean): Float32Array {
  const weights = new Float32Array(length * length);
  for (let i = 0; i < length; ++i) {
    const row = weights.subarray(i * length, (i + 1) * length);
    for (let j = 0; j < length; ++j) row[j] = Number(sees(i, j));
    const sum = row.reduce((a, b) => a + b, 0);
    if (sum > 0) row.forEach((value, j) => (row[j] = value / sum));
  }
  return weights;
}

/** Position of the opening bracket for each closing one, −1 for opening ones; undefined if they do not match. */
function partners(ids: readonly number[]): readonly number[] | undefined {
  const open: number[] = [];
  const found = ids.map((id, i) => (id < openings.length ? (open.push(i), -1) : (open.pop() ?? -2)));
  return open.length > 0 || found.includes(-2) ? undefined : found;
}

function makeBrackets(length: number): (random: Random) => readonly number[] {
  return (random) => {
    let [depth, left] = [0, length / 2];
    return Array.from({ length }, () => {
      const isOpening = depth === 0 || (left > 0 && random.below(2) === 0);
      depth += isOpening ? 1 : -1;
      left -= Number(isOpening);
      return isOpening ? random.below(openings.length) : openings.length;
    });
  };
}

function counts(ids: readonly number[], kinds: number): readonly number[] {
  return Array.from({ length: kinds }, (_, kind) => ids.filter((id) => id === kind).length);
}

const sorted = (ids: readonly number[]) => [...ids].sort((a, b) => a - b);
const size = 8;
const kinds = 5;

export const puzzles: readonly Task[] = [
  taskOf(
    {
      id: 'reverse',
      symbols: digits,
      answers: digits,
      length: size,
      make: draws(size, digits.length),
      solve: (ids) => ids.toReversed(),
      expected: ({ length }) => pattern(length, (i, j) => i + j === length - 1),
    },
    false,
  ),
  taskOf(
    {
      id: 'previous',
      symbols: letters,
      answers: letters,
      length: 10,
      make: draws(10, letters.length),
      solve: (ids) => ids.map((_, i) => ids[i - 1] ?? ignored),
      expected: ({ length }) => pattern(length, (i, j) => j === i - 1),
    },
    false,
  ),
  taskOf(
    {
      id: 'sort',
      symbols: digits,
      answers: digits,
      length: size,
      make: draws(size, digits.length),
      solve: sorted,
      expected: (ids) => pattern(ids.length, (i, j) => ids[j] === sorted(ids)[i]),
    },
    false,
  ),
  taskOf(
    {
      id: 'brackets',
      symbols: [...openings, closes],
      answers: closings,
      length: 12,
      make: makeBrackets(12),
      solve(ids) {
        const found = partners(ids);
        return found ? found.map((at) => (at < 0 ? ignored : ids[at]!)) : 'The brackets do not match. Each ? closes one.';
      },
      expected: (ids) => pattern(ids.length, (i, j) => partners(ids)?.[i] === j),
    },
    false,
  ),
  taskOf(
    {
      id: 'frequent',
      symbols: letters.slice(0, kinds),
      answers: letters.slice(0, kinds),
      length: 11,
      make: draws(11, kinds),
      solve(ids) {
        const all = counts(ids, kinds);
        const most = Math.max(...all);
        const [winner, ...others] = all.flatMap((count, kind) => (count === most ? [kind] : []));
        return others.length > 0 ? 'Two letters are equally frequent.' : [winner!];
      },
      expected: ({ length }) => pattern(length, (i, j) => i === 0 && j > 0),
    },
    true,
  ),
];
