import type { ModelSource } from 'attn';
import { readAddress } from './address.ts';
import type { Origin } from './errors.ts';
import { isCarried, knownModels, nameOf, page } from './known.ts';
import type { DType } from './loaded.ts';
import { ownModels } from './own_models.ts';

async function fetchBytes(url: string): Promise<ArrayBuffer> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} returned status ${response.status}`);
  return response.arrayBuffer();
}

async function fetchAll(urls: Readonly<Record<string, string>>): Promise<ModelSource> {
  return Object.fromEntries(await Promise.all(Object.entries(urls).map(async ([name, url]) => [name, await fetchBytes(url)] as const)));
}

type OwnModel = keyof typeof ownModels;
const isOwn = (id: string): id is OwnModel => Object.hasOwn(ownModels, id);

export interface Choice {
  readonly id: string;
  readonly name: string;
  readonly note?: Promise<string | undefined>;
  /** Undefined for files. */
  readonly origin?: Origin;
  /** "owner/name" on the Hub, in case the page's server does not have the files. */
  readonly onHub?: string;
  /** Later sources are tried if an earlier one does not exist. */
  readonly sources: (dtype: DType) => Promise<readonly ModelSource[]>;
}

const ownChoice = (id: OwnModel): Choice => ({
  id,
  name: nameOf(id),
  origin: { host: new URL(page()).host },
  sources: async () => [await fetchAll(ownModels[id])],
});

export function knownChoice(id: string, onHub: boolean): Choice {
  const known = knownModels.find((each) => each.id === id)!;
  if (isOwn(id) || !('repository' in known)) return ownChoice(id as OwnModel);
  const hub = readAddress(known.repository, page());
  const here = (dtype: DType) => (dtype === 'int8' ? [`models/${id}-int8/`, `models/${id}/`] : [`models/${id}/`]);
  // int8 files on the page's server are always preferred.
  const isHere = (dtype: DType) => isCarried(id) && (!onHub || dtype === 'int8');
  return {
    id,
    name: known.name,
    sources: async (dtype) => (isHere(dtype) ? here(dtype) : [hub.location]),
    origin: onHub || !isCarried(id) ? { host: hub.host, repository: known.repository } : { host: new URL(page()).host },
    ...(!onHub && isCarried(id) && { onHub: known.repository }),
  };
}

export function choiceOf(id: string): Choice {
  if (knownModels.some((each) => each.id === id)) return knownChoice(id, !isCarried(id));
  const { name, location, host, hub } = readAddress(id, page());
  return { id, name, sources: async () => [location], origin: { host, repository: hub?.repository } };
}
