import { guesses } from '../state/guess.ts';
import { run } from '../state/run.ts';
import { percent } from './first_look/drawing.tsx';

/** "Its guess for the blank: tea 40 %, coffee 29 %. Before the change: tea 35 %."; undefined if the query is a word. */
export function guessText(): string | undefined {
  const made = guesses.value;
  if (!made || made.run !== run.value || (made.kind !== 'blank' && made.kind !== 'next')) return undefined;
  const list = made.list.slice(0, 3).map(({ word, share }) => `${word} ${percent(share)}`);
  const best = made.before?.[0];
  const before = best ? ` Before the change: ${best.word} ${percent(best.share)}.` : '';
  return `Its guess for the ${made.kind === 'next' ? 'next word' : 'blank'}: ${list.join(', ')}.${before}`;
}
