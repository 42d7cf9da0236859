/** The stored layer: the first self-attention layer of all-MiniLM-L6-v2 and the token vectors of a few sentences. */
import type { Tensor } from 'attn';
import type { MultiHeadAttention } from 'attn/worker';
import layerUrl from '../../../testdata/minilm_layer0.safetensors?url';
import sentencesUrl from '../../../testdata/minilm_sentences.safetensors?url';
import type { Engine } from './engine.ts';

export interface Sentence {
  readonly text: string;
  readonly tokens: readonly string[];
  /** (1, L, E): what the layer reads. */
  readonly x: Tensor;
  /** (1, H, L, L): PyTorch's weights. */
  readonly expected: Tensor;
}

export interface StoredLayer {
  readonly model: string;
  readonly torch: string;
  readonly numHeads: number;
  readonly headWidth: number;
  readonly sentences: readonly Sentence[];
  readonly attention: MultiHeadAttention;
}

async function fetchBytes(url: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}. Reload the page; if it stays, build it again.`);
  return new Uint8Array(await response.arrayBuffer());
}

function metadata(file: Uint8Array<ArrayBuffer>): Readonly<Record<string, string>> {
  const length = new DataView(file.buffer).getUint32(0, true);
  return JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + length))).__metadata__;
}

function need<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`The stored layer has no ${what}. Build the page again.`);
  return value;
}

/** Begins the downloads at once; they go on while the module starts. */
export function fetchStoredLayer(): Promise<readonly [Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>]> {
  return Promise.all([fetchBytes(layerUrl), fetchBytes(sentencesUrl)]);
}

export async function openStoredLayer(engine: Engine, files: Awaited<ReturnType<typeof fetchStoredLayer>>): Promise<StoredLayer> {
  const [layerFile, sentencesFile] = files;
  const layer = await engine.parseSafetensors(layerFile);
  const more = await engine.parseSafetensors(sentencesFile);
  const about = metadata(layerFile);

  const sentences: Sentence[] = [
    {
      text: need(about.sentence, 'sentence'),
      tokens: JSON.parse(need(about.tokens, 'tokens')),
      x: need(layer.get('x'), 'x'),
      expected: need(layer.get('expected.weights'), 'expected.weights'),
    },
  ];
  for (const { name, sentence, tokens } of JSON.parse(need(metadata(sentencesFile).sentences, 'sentences'))) {
    sentences.push({
      text: sentence,
      tokens,
      x: need(more.get(`${name}/x`), `${name}/x`),
      expected: need(more.get(`${name}/expected.weights`), `${name}/expected.weights`),
    });
  }

  const state = new Map<string, Tensor>();
  for (const name of ['in_proj_weight', 'in_proj_bias', 'out_proj.weight', 'out_proj.bias']) state.set(name, need(layer.get(name), name));
  const embedDim = sentences[0]!.x.dims[2]!;
  const numHeads = Number(need(about.num_heads, 'num_heads'));
  const attention = await new engine.MultiHeadAttention({ embedDim, numHeads });
  await attention.loadStateDict(state);
  return { model: need(about.model, 'model'), torch: need(about.torch, 'torch'), numHeads, headWidth: embedDim / numHeads, sentences, attention };
}

export function largestDifference(a: Float32Array, b: Float32Array): number {
  let largest = a.length === b.length ? 0 : Infinity;
  // A NaN must not pass for agreement.
  for (let i = 0; i < a.length; ++i) {
    const difference = Math.abs(a[i]! - b[i]!);
    if (!(difference <= largest)) largest = Number.isNaN(difference) ? Infinity : difference;
  }
  return largest;
}
