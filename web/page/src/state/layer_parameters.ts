import type { Tensor } from 'attn';
import type { LayerNames, LinearNames } from '../model/parameter_names.ts';
import type { LoadedModel } from '../model/loaded.ts';
import type { Edit } from './changes.ts';

export interface LayerParameters {
  /** Undefined for an unknown model family. */
  readonly names: LayerNames | undefined;
  /** By checkpoint names. */
  readonly parameters: ReadonlyMap<string, Tensor>;
}

export const noParameters: LayerParameters = { names: undefined, parameters: new Map() };

/** Cached until the model, the layer or an edit changes. */
export function parameterReader(): (of: LoadedModel, layer: number, edits: readonly Edit[]) => Promise<LayerParameters> {
  let key: readonly unknown[] = [];
  let kept = noParameters;
  return async (of, layer, edits) => {
    const now = [of, layer, JSON.stringify(edits)];
    if (now.every((each, i) => each === key[i])) return kept;
    const { layerNames } = await import('../model/parameter_names.ts');
    const names = layerNames(of.shapes, layer);
    const linears = Object.values(names ?? {}) as (LinearNames | undefined)[];
    const all = new Set(linears.flatMap((each) => (each ? [each.weight.name, ...(each.bias ? [each.bias.name] : [])] : [])));
    kept = { names, parameters: new Map(await Promise.all([...all].map(async (name) => [name, await of.text.getParameter(name)] as const))) };
    key = now;
    return kept;
  };
}
