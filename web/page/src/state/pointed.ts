/** The cell under the pointer. The map follows at once, the view when the pointer rests. */
import { computed, signal } from '@preact/signals';
import { update, view, type View } from './view.ts';

/** Milliseconds. */
const rest = 120;

interface Pointed {
  readonly cell: View['cell'];
  /** The view's cell at that time; a later choice takes precedence. */
  readonly over: View['cell'];
}

const pointed = signal<Pointed | undefined>(undefined);
let timer: number | undefined;

export const cellInFocus = computed(() => {
  const [now, { cell }] = [pointed.value, view.value];
  return now?.over === cell ? now.cell : cell;
});

export function pointTo(cell: View['cell']): void {
  const over = view.peek().cell;
  pointed.value = { cell, over };
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    if (view.peek().cell === over) update({ cell });
  }, rest);
}
