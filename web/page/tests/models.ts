/** Replaces the worker by the package itself: awaited results are the same. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { load, type Attn as Direct, type TextModel as DirectModel } from 'attn';
import type { Attn } from 'attn/worker';
import type { LoadedModel, DType } from '../src/model/loaded.ts';

export const inTestdata = (path: string): URL => new URL(`../../../testdata/${path}`, import.meta.url);

export async function loadDirect(): Promise<{ readonly attn: Attn; readonly direct: Direct }> {
  const direct = await load();
  return { attn: direct as unknown as Attn, direct };
}

/** Opens a checkpoint of testdata/models; `settings` override its config.json. */
export async function openModel(
  direct: Direct,
  name: string,
  change: (text: DirectModel) => unknown = (text) => text,
  settings: Readonly<Record<string, unknown>> = {},
  dtype: DType = 'float32',
): Promise<LoadedModel> {
  const folder = inTestdata(`models/${name}/`);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => statSync(new URL(file, folder)).isFile());
  const read = (file: string) => readFileSync(new URL(file, folder));
  const changed = JSON.stringify({ ...JSON.parse(read('config.json').toString()), ...settings });
  const contents = { ...Object.fromEntries(files.map((file) => [file, read(file)])), 'config.json': changed };
  const text = await direct.loadModel(contents, { weights: dtype });
  const { attentions } = text.forward(text.tokenize('a'), { outputAttentions: true });
  const { config, labels, task } = text;
  const shapes = text.parameterShapes();
  const [layers, heads] = [attentions!.length, attentions![0]!.dims[1]!];
  const tokenLabels = task === 'token-classification' ? labels : undefined;
  return {
    id: name,
    text: change(text),
    config,
    labels: tokenLabels ? undefined : labels,
    task,
    tokenLabels,
    maskToken: task === 'fill-mask' ? text.maskToken : undefined,
    shapes,
    layers,
    heads,
    dtype,
  } as unknown as LoadedModel;
}

/** Steps of the self-check, in order. */
export const checkedSteps = [
  'Scores from Q and K',
  'Softmax of the scores',
  'Weighted sum of the values',
  'Q, K, V from X',
  'W_O',
  'Layer norms',
  'Feed-forward',
];
