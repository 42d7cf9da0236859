/** testdata/make/sentiment/reviews.py describes the file format. */
import type { Random } from './random.ts';
import { first, padding, unknown, type Example, type Task } from './task.ts';

const positive = 32768;
/** One review of 5 is held out. */
const heldShare = 5;
/** Tokens per review, including [CLS]. */
const longest = 24;

/** Splits words as the tokenizer of the trained model. */
const words = (text: string): readonly string[] => text.toLowerCase().match(/[^\W_]+|[^\w\s]|_/gu) ?? [];

export function reviewsTask(bytes: Uint8Array): Task {
  const end = bytes.indexOf(0);
  const vocabulary = new TextDecoder().decode(bytes.subarray(0, end)).split('\n');
  if (vocabulary[0] !== unknown || (bytes.length - end) % 2 !== 1) throw new Error('The file of film reviews is invalid.');
  const symbols = [...vocabulary, padding, first];
  const ids = new Map(symbols.map((symbol, id) => [symbol, id]));
  const view = new DataView(bytes.buffer, bytes.byteOffset + end + 1, bytes.length - end - 1);
  const [training, held]: [Example[], Example[]] = [[], []];
  const front = ids.get(first)!;
  for (let at = 0, count = 0; at < view.byteLength; ++count) {
    const head = view.getUint16(at, true);
    const length = head % positive;
    const review = Array.from({ length }, (_, i) => view.getUint16(at + 2 + 2 * i, true));
    at += 2 + 2 * length;
    (count % heldShare === 0 ? held : training).push({ ids: [front, ...review], labels: [Number(head >= positive)] });
  }
  return {
    id: 'reviews',
    symbols,
    answers: ['negative', 'positive'],
    length: longest,
    isOne: true,
    draw(random: Random, isHeld: boolean) {
      const from = isHeld ? held : training;
      return from[random.below(from.length)]!;
    },
    read(text) {
      const found = words(text).map((word) => ids.get(word) ?? 0);
      // The right answer for the visitor's text is unknown.
      return found.length === 0 ? 'Write a few words.' : { ids: [front, ...found.slice(0, longest - 1)], labels: [] };
    },
    expected: undefined,
  };
}
