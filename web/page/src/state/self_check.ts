/** Checks without references: rows sum to 1, and each layer is recomputed in double precision. */
import type { EncoderTrace } from 'attn';
import type { Note } from '../check/layer.ts';
import { encoderSize } from '../model/flops.ts';
import { backgroundValue, editedWeights, shownModel } from './background.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { run, withAllHeads, withModel } from './run.ts';
import type { Compared } from './reference.ts';

export interface SelfCheck {
  readonly model: LoadedModel;
  readonly text: string;
  readonly tokens: number;
  /** max |row sum - 1|, and the number of rows. */
  readonly sums: { readonly difference: number; readonly count: number };
  readonly rows: number;
  readonly steps: readonly Compared[];
}

/** Records the number nearest to its bound, or furthest beyond it. */
export function noteInto(steps: Map<string, Compared>): Note {
  const worst = new Map<string, number>();
  return (what, { values, bounds }, traced) => {
    let { count, difference, tolerance, passes } = steps.get(what) ?? { count: 0, difference: 0, tolerance: 0, passes: true };
    let most = worst.get(what) ?? -1;
    values.forEach((value, i) => {
      const now = Math.abs(value - traced[i]!);
      const share = now === 0 ? 0 : now / bounds[i]!;
      // NaN fails and stays recorded.
      if (!(share <= 1)) passes = false;
      if (share > most || Number.isNaN(share)) [difference, tolerance, most] = [now, bounds[i]!, share];
    });
    count += values.length;
    worst.set(what, most);
    steps.set(what, { what, count, difference, tolerance, passes });
  };
}

/** Multiply-adds in JavaScript: about a second. */
const wantedMultiplyAdds = 2e8;

/** Evenly spread from the first row to the last. */
export function rowsToCheck({ config }: Pick<LoadedModel, 'config'>, length: number): readonly number[] {
  const { layers, width, hidden, gated } = encoderSize(config);
  const each = layers * (4 * width ** 2 + 2 * length * width + (gated ? 3 : 2) * width * hidden);
  const count = Math.max(1, Math.min(length, Math.floor(wantedMultiplyAdds / each)));
  return Array.from({ length: count }, (_, i) => (count === 1 ? 0 : Math.round((i * (length - 1)) / (count - 1))));
}

/** Work between two chances to draw. */
const mostMilliseconds = 8;

function yieldingToEventLoop(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < mostMilliseconds) return;
    await new Promise((resolve) => setTimeout(resolve));
    since = performance.now();
  };
}

async function check(of: LoadedModel, isWanted: () => boolean): Promise<SelfCheck | undefined> {
  const { encoding, view } = run.peek()!;
  const { hiddenStates, attentions } = await withModel(() =>
    of.text.forward(encoding, { outputAttentions: true, outputHiddenStates: true, outputLogits: false }),
  );
  const length = encoding.dims[1]!;
  let [largest, count] = [0, 0];
  for (const { data } of attentions!)
    for (let i = 0; i < data.length; i += length, ++count) {
      const sum = data.subarray(i, i + length).reduce((a, b) => a + b, 0);
      largest = Math.max(largest, Math.abs(sum - 1));
    }
  // Only the section Proof needs it.
  const { checkLayer } = await import('../check/layer.ts');
  const steps = new Map<string, Compared>();
  const rows = rowsToCheck(of, length);
  const yieldToEventLoop = yieldingToEventLoop();
  const checkable = { ...of, parameter: (name: string) => withModel(() => of.text.getParameter(name)) };
  for (let layer = 0; layer < of.layers; ++layer) {
    if (!isWanted()) return undefined;
    const { trace } = await withModel(() => of.text.forward(encoding, { trace: { layers: [layer] } }));
    await checkLayer(
      checkable,
      layer,
      hiddenStates![layer]!,
      withAllHeads(trace!.get(layer)!, of.heads) as Required<EncoderTrace>,
      rows,
      noteInto(steps),
      yieldToEventLoop,
    );
  }
  return {
    model: of,
    text: view.text,
    tokens: length,
    sums: { difference: largest, count },
    rows: rows.length,
    steps: [...steps.values()],
  };
}

/** The text at the time when the model loads or its weights are edited. */
export const selfCheck = backgroundValue<SelfCheck>(() => {
  const of = shownModel.value;
  void editedWeights.value;
  if (!of) return undefined;
  return (isWanted) => check(of, isWanted);
});
