/** The package itself, without a worker, where the page has it in one: what awaits takes either. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { load, type Attn as Direct, type TextModel as DirectModel } from 'attn';
import type { Attn } from 'attn/worker';
import type { LoadedModel } from '../src/state/model.ts';

export const inTestdata = (path: string): URL => new URL(`../../../testdata/${path}`, import.meta.url);

export async function loadDirect(): Promise<{ readonly attn: Attn; readonly direct: Direct }> {
  const direct = await load();
  return { attn: direct as unknown as Attn, direct };
}

/** A checkpoint of testdata/models, with what the page keeps of it. */
export async function openModel(direct: Direct, name: string, change: (text: DirectModel) => unknown = (text) => text): Promise<LoadedModel> {
  const folder = inTestdata(`models/${name}/`);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => statSync(new URL(file, folder)).isFile());
  const text = await direct.loadModel(Object.fromEntries(files.map((file) => [file, readFileSync(new URL(file, folder))])));
  const { attentions } = text.forward(text.tokenize('a'), { outputAttentions: true });
  const { config, labels } = text;
  const shapes = text.parameterShapes();
  return { text: change(text), config, labels, shapes, layers: attentions!.length, heads: attentions![0]!.dims[1]! } as unknown as LoadedModel;
}
