import type { ComponentChildren } from 'preact';
import { fixed } from '../formats/numbers.ts';
import '../styles/bars.css';
import { BarNumber } from './bar_number.tsx';

export interface RankedItem {
  readonly key: number | string;
  readonly name: ComponentChildren;
  readonly value: number;
  readonly title?: string | undefined;
  readonly before?: number | undefined;
}

/** A list in the order of a number, with bars from `from` to 1; without bars if the numbers have no such scale. */
export function Ranked({ name, items, from = 0, hasBars = true }: { name: string; items: readonly RankedItem[]; from?: number; hasBars?: boolean }) {
  return (
    <ol class="ranked" aria-label={name}>
      {items.map(({ key, name: label, value, title, before }) => (
        <li key={key} title={title}>
          <span class="ranked-name">{label}</span>
          {before !== undefined && <span class="change">was {fixed(before, 4)}</span>}
          {hasBars ? <BarNumber value={value} from={from} /> : <span class="figure">{fixed(value, 4)}</span>}
        </li>
      ))}
    </ol>
  );
}

/** Name of a numbered line of a text field. */
export const numberedLine = (index: number, text: string | undefined) => (
  <>
    <span class="figure">{index + 1}</span> {text}
  </>
);
