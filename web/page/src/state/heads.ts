/** Computed in slices, so that long texts do not block the page. */
import { effect, signal } from '@preact/signals';
import { poolMax } from '../draw/pool.ts';
import { levelOf, scaleFor } from '../draw/scale.ts';
import { headSummary, type HeadSummary } from '../model/head_kind.ts';
import { run, type Run } from './run.ts';
import { headWeights, lineOf, sourcesOf } from './map_view.ts';
import { toggled } from './changes.ts';
import { update, view } from './view.ts';

export interface Head extends HeadSummary {
  readonly layer: number;
  readonly head: number;
  /** (size,size), 0 ... 1 on the automatic colour scale; a pixel is the maximum of its cells. */
  readonly picture: Float32Array;
  readonly size: number;
}

export interface Heads {
  readonly run: Run;
  readonly list: readonly Head[];
}

export const heads = signal<Heads | undefined>(undefined);

/** Largest side in pixels. */
const pictureSize = 64;
/** Milliseconds between pauses. */
const slice = 8;
/** Milliseconds before the first slice of a long text, in tokens: typing has priority. */
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
    timer = window.setTimeout(work, of.tokens.length > longText ? pause : 0);
  });
}

export function toggleHead(number: number): void {
  update({ off: toggled(view.value.off, number) });
}
