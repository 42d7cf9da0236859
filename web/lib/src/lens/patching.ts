import type { EncoderTraceName, Tensor } from '../attn.js';
import type { LensModel, LensText, PatchOptions, PatchResult } from '../lens.js';
import { repeated } from './model.js';
import { type Pair, readPair, resultOf, type Run, runBoth, valuesOf } from './pair.js';

/** Variants per forward. */
const variantsAtOnce = 8;

/** Copies of x (1,L,W), each changed by `change`. */
function variants({ data, dims }: Tensor, count: number, change: (copy: Float32Array, variant: number) => void): Tensor {
  const all = new Float32Array(count * data.length);
  for (let i = 0; i < count; ++i) {
    all.set(data, i * data.length);
    change(all.subarray(i * data.length, (i + 1) * data.length), i);
  }
  return { data: all, dims: [count, dims[1]!, dims[2]!] };
}

/** Columns of the rows from `first` to `end`. */
interface Place {
  readonly first: number;
  readonly end: number;
  readonly from: number;
  readonly to: number;
}

function copyPlace(to: Float32Array, from: Float32Array, width: number, place: Place): void {
  for (let row = place.first; row < place.end; ++row)
    to.set(from.subarray(row * width + place.from, row * width + place.to), row * width + place.from);
}

/** The layer's activation in both runs, and where a forward takes it. */
interface Site {
  readonly clean: Tensor;
  readonly corrupted: Tensor;
  /** undefined: after the last layer. */
  readonly patch: 'hiddenState' | 'merged' | undefined;
  readonly layer: number;
}

/** attn_residual + ff_output, as the layer adds them. */
const sum = (a: Tensor, b: Tensor): Tensor => ({ data: a.data.map((value, i) => value + b.data[i]!), dims: a.dims });

function siteOf({ site }: Pair, clean: Run, corrupted: Run, layer: number): Site {
  const of = (run: Run, name: EncoderTraceName) => run.trace.get(layer)![name]!;
  if (site === 'residual') return { clean: clean.hiddenStates[layer]!, corrupted: corrupted.hiddenStates[layer]!, patch: 'hiddenState', layer };
  if (site !== 'mlp') return { clean: of(clean, 'merged'), corrupted: of(corrupted, 'merged'), patch: 'merged', layer };
  // Nothing before the MLP changes, so the next layer's input is the corrupted residual plus the MLP's clean output.
  const residual = of(corrupted, 'attn_residual');
  const isLast = layer === corrupted.hiddenStates.length - 2;
  return {
    clean: sum(residual, of(clean, 'ff_output')),
    corrupted: sum(residual, of(corrupted, 'ff_output')),
    patch: isLast ? undefined : 'hiddenState',
    layer: layer + 1,
  };
}

async function patchedValues(pair: Pair, { clean, corrupted, patch, layer }: Site, places: readonly Place[]): Promise<number[]> {
  const [, L, width] = corrupted.dims as [number, number, number];
  const E = pair.decoder.width;
  const patched = variants(corrupted, places.length, (copy, i) => copyPlace(copy, clean.data, width, places[i]!));
  let states = patched.data;
  if (patch) {
    const inputs = repeated(pair.corrupted.ids, places.length);
    states = (await pair.model.forward(inputs, { outputLogits: false, patch: { layer, [patch]: patched } })).lastHiddenState.data;
  }
  const rows = new Float32Array(places.length * E);
  for (let i = 0; i < places.length; ++i) {
    const row = states.subarray((i * L + pair.position) * E, (i * L + pair.position + 1) * E);
    rows.set(patch ? row : pair.decoder.finalNorm(row).values, i * E);
  }
  return valuesOf(pair, rows);
}

export async function patchActivations(model: LensModel, clean: LensText, corrupted: LensText, options: PatchOptions): Promise<PatchResult> {
  const pair = await readPair('patchActivations', model, clean, corrupted, options);
  const runs = await runBoth(pair);
  const [ofClean, ofCorrupted] = runs;
  const layers = ofClean.hiddenStates.length - 1;
  const H = await pair.decoder.heads();
  const columns = pair.site === 'head' ? H : pair.positions.length;
  const recovered = new Float32Array(layers * columns);
  const span = ofClean.value - ofCorrupted.value;
  for (let layer = 0; layer < layers; ++layer) {
    const site = siteOf(pair, ofClean, ofCorrupted, layer);
    const [, L, width] = site.corrupted.dims as [number, number, number];
    // A causal model does not see what comes after the answer's position.
    const seen = Array.from({ length: columns }, (_, i) => i).filter((i) => pair.site === 'head' || pair.positions[i]! <= pair.position);
    for (let first = 0; first < seen.length; first += variantsAtOnce) {
      await pair.pause();
      const some = seen.slice(first, first + variantsAtOnce);
      const places = some.map((i): Place => {
        if (pair.site === 'head') return { first: 0, end: L, from: (i * width) / H, to: ((i + 1) * width) / H };
        return { first: pair.positions[i]!, end: pair.positions[i]! + 1, from: 0, to: width };
      });
      const values = await patchedValues(pair, site, places);
      some.forEach((i, k) => (recovered[layer * columns + i] = (values[k]! - ofCorrupted.value) / span + 0));
    }
  }
  return resultOf(pair, runs, recovered, columns);
}

/** Names of the traces whose change times gradient approximates a patch. */
const gradientOf = { residual: 'ff_residual', head: 'merged', attention: 'output', mlp: 'ff_output' } as const;

export async function attributionPatching(model: LensModel, clean: LensText, corrupted: LensText, options: PatchOptions): Promise<PatchResult> {
  const pair = await readPair('attributionPatching', model, clean, corrupted, options);
  const name = gradientOf[pair.site];
  const isResidual = pair.site === 'residual';
  const runs = await runBoth(pair, isResidual ? [] : [name]);
  const [ofClean, ofCorrupted] = runs;
  await pair.pause();
  const { embeddings, trace } = await pair.model.gradients(pair.corrupted.inputs, {
    target: { label: pair.answer, contrast: pair.contrast, token: pair.position },
    ...(isResidual && { wrt: ['embeddings'] }),
    trace: { names: [name] },
  });
  const layers = ofClean.hiddenStates.length - 1;
  const H = await pair.decoder.heads();
  const columns = pair.site === 'head' ? H : pair.positions.length;
  const recovered = new Float32Array(layers * columns);
  const span = ofClean.value - ofCorrupted.value;
  for (let layer = 0; layer < layers; ++layer) {
    // A layer's input is the output of the layer before, and the first layer's input the sum of the embeddings.
    const gradient = (isResidual ? (layer === 0 ? embeddings : trace!.get(layer - 1)![name]) : trace!.get(layer)![name])!;
    const [before, after] = [ofCorrupted, ofClean].map((run) => (isResidual ? run.hiddenStates[layer] : run.trace.get(layer)![name])!.data);
    const [, L, width] = gradient.dims as [number, number, number];
    const products = gradient.data.map((slope, i) => (slope * (after![i]! - before![i]!)) / span);
    for (let i = 0; i < columns; ++i) {
      let total = 0;
      if (pair.site === 'head')
        for (let row = 0; row < L; ++row) for (let d = (i * width) / H; d < ((i + 1) * width) / H; ++d) total += products[row * width + d]!;
      else for (let d = 0; d < width; ++d) total += products[pair.positions[i]! * width + d]!;
      recovered[layer * columns + i] = total;
    }
  }
  return resultOf(pair, runs, recovered, columns);
}
