/** Where the files of a model come from. */
import type { ModelSource } from 'attn';
import configUrl from '../../../../testdata/models/sentiment/config.json?url';
import weightsUrl from '../../../../testdata/models/sentiment/model.safetensors?url';
import tokenizerUrl from '../../../../testdata/models/sentiment/tokenizer.json?url';
import tokenizerConfigUrl from '../../../../testdata/models/sentiment/tokenizer_config.json?url';
import { readAddress } from './address.ts';
import type { Origin } from './errors.ts';
import { isCarried, knownModels, nameOf, page } from './known.ts';
import type { DType } from './loaded.ts';

async function fetchBytes(url: string): Promise<ArrayBuffer> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.arrayBuffer();
}

async function fetchAll(urls: Readonly<Record<string, string>>): Promise<ModelSource> {
  return Object.fromEntries(await Promise.all(Object.entries(urls).map(async ([name, url]) => [name, await fetchBytes(url)] as const)));
}

/** Asked for at once when the page opens; they come while the module starts. */
export const fetchSentiment = (): Promise<ModelSource> =>
  fetchAll({
    'config.json': configUrl,
    'model.safetensors': weightsUrl,
    'tokenizer.json': tokenizerUrl,
    'tokenizer_config.json': tokenizerConfigUrl,
  });

/** A small model that stands beside the page: asked for when it is wanted. */
const fetchBeside = async (id: 'entities' | 'masks'): Promise<ModelSource> => fetchAll((await import('./beside.ts')).modelsBeside[id]);

export interface Choice {
  readonly id: string;
  readonly name: string;
  readonly note?: Promise<string | undefined>;
  /** Files of the visitor's, or of the page, have none. */
  readonly origin?: Origin;
  /** "owner/name", where its files may be on the Hub if they are not beside the page. */
  readonly onHub?: string;
  /** Where its files are; those that are asked for only where the ones before are not there. */
  readonly sources: (dtype: DType) => Promise<readonly ModelSource[]>;
}

export const sentiment: Choice = { id: 'sentiment', name: nameOf('sentiment'), sources: async () => [await fetchSentiment()] };

/** A model that the page knows by name: from beside the page, or from the Hub where it is not there. */
export function knownChoice(id: string, onHub: boolean): Choice {
  const known = knownModels.find((each) => each.id === id)!;
  if (known.id === 'sentiment') return sentiment;
  if (known.id === 'entities' || known.id === 'masks') {
    const { id: beside, name } = known;
    return { id: beside, name, sources: async () => [await fetchBeside(beside)], origin: { host: new URL(page()).host } };
  }
  const hub = readAddress(known.repository, page());
  const here = (dtype: DType) => (dtype === 'int8' ? [`models/${id}-int8/`, `models/${id}/`] : [`models/${id}/`]);
  // What the page carries is taken from there in any case.
  const isHere = (dtype: DType) => isCarried(id) && (!onHub || dtype === 'int8');
  return {
    id,
    name: known.name,
    sources: async (dtype) => (isHere(dtype) ? here(dtype) : [hub.folder]),
    origin: onHub || !isCarried(id) ? { host: hub.host, repository: known.repository } : { host: new URL(page()).host },
    ...(!onHub && isCarried(id) && { onHub: known.repository }),
  };
}

/** Throws an AddressError where the id is not an address. */
export function choiceOf(id: string): Choice {
  if (knownModels.some((each) => each.id === id)) return knownChoice(id, !isCarried(id));
  const { name, folder, host, hub } = readAddress(id, page());
  return { id, name, sources: async () => [folder], origin: { host, repository: hub?.repository } };
}
