/** Every head of the run in brief: what it looks at, and a small picture. Computed in slices, so that long texts do not hold the page up. */
import { effect, signal } from '@preact/signals';
import { poolMax } from '../draw/pool.ts';
import { levelOf, scaleFor } from '../draw/scale.ts';
import { headSummary, type HeadSummary } from '../model/head_kind.ts';
import { run, type Run } from './run.ts';
import { headWeights, lineOf, sourcesOf } from './shown.ts';
import { toggled } from './changes.ts';
import { update, view } from './view.ts';

export interface Head extends HeadSummary {
  readonly layer: number;
  readonly head: number;
  /** (size,size), 0 ... 1 as the map's colours are chosen by themselves; each the largest of the cells that it stands for. */
  readonly picture: Float32Array;
  readonly size: number;
}

export interface Heads {
  readonly run: Run;
  readonly list: readonly Head[];
}

export const heads = signal<Heads | undefined>(undefined);

/** Pixels along one side of a picture, at most. */
const pictureSize = 64;
/** Milliseconds after which others get their turn. */
const slice = 8;
/** Milliseconds that are waited after a run of more than so many tokens. */
const [pause, longText] = [250, 128];

function* describe(of: Run): Generator<Head> {
  const special = sourcesOf(lineOf(of)).map((source) => source === undefined);
  const length = of.tokens.length;
  const size = Math.min(length, pictureSize);
  for (let layer = 0; layer < of.model.layers; ++layer) {
    for (let head = 0; head < of.model.heads; ++head) {
      const weights = headWeights(of, layer, head);
      const picture = poolMax(weights, length, size);
      const largest = picture.reduce((a, b) => Math.max(a, b), 0);
      const scale = scaleFor(picture, largest);
      picture.forEach((weight, i) => (picture[i] = levelOf(weight, largest, scale)));
      yield { layer, head, ...headSummary(weights, special), picture, size };
    }
  }
}

export function followHeads(): void {
  let timer: number | undefined;
  effect(() => {
    const of = run.value;
    clearTimeout(timer);
    if (!of) return;
    const rest = describe(of);
    const list: Head[] = [];
    const work = () => {
      const start = performance.now();
      for (;;) {
        const next = rest.next();
        if (next.done) break;
        list.push(next.value);
        if (performance.now() - start > slice) return void (timer = window.setTimeout(work));
      }
      heads.value = { run: of, list };
    };
    // In a long text the next letter goes first.
    timer = window.setTimeout(work, of.tokens.length > longText ? pause : 0);
  });
}

/** Off, or on again: layer · H + head. */
export function toggleHead(number: number): void {
  update({ off: toggled(view.value.off, number) });
}
