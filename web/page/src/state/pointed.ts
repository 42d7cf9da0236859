/** The cell under the pointer. The map follows at once, the view when the pointer rests. */
import { computed, signal } from '@preact/signals';
import { strongest } from './strongest.ts';
import { isAnywhere, update, view, type Cell } from './view.ts';

/** Milliseconds. */
const rest = 120;

interface Pointed {
  readonly cell: Cell;
  /** The view's cell at that time; a later choice takes precedence. */
  readonly over: Cell;
}

const pointed = signal<Pointed | undefined>(undefined);
let timer: number | undefined;

/** Without the pointer. */
export const cellChosen = computed<Cell>(() => {
  const { cell } = view.value;
  return isAnywhere(cell) ? strongest.value : cell;
});

export const cellInFocus = computed<Cell>(() => {
  const [now, { cell }] = [pointed.value, view.value];
  return now?.over === cell ? now.cell : cellChosen.value;
});

export function pointTo(cell: Cell): void {
  const over = view.peek().cell;
  pointed.value = { cell, over };
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    if (view.peek().cell === over) update({ cell });
  }, rest);
}
