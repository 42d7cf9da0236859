/** Facts about models before they are loaded: name, size and host. */
import { truncate, longestName } from '../formats/truncate.ts';
import { hubHost, readAddress } from './address.ts';
import type { DType } from './loaded.ts';

/** Built without the int8 files (vite.config.ts), the page loads the second model from the Hub. A link never starts a download. */
export const knownModels = [
  { id: 'sentiment', name: 'sentiment classifier', about: '2 layers × 4 heads, praise or blame', bytes: 2_160_000 },
  {
    id: 'all-MiniLM-L6-v2',
    name: 'all-MiniLM-L6-v2',
    about: '6 layers × 12 heads, sentence embeddings',
    bytes: 91_000_000,
    int8Bytes: Number(import.meta.env['ATTN_INT8_BYTES'] ?? 0),
    repository: 'sentence-transformers/all-MiniLM-L6-v2',
  },
  { id: 'entities', name: 'entity model', about: '3 layers × 4 heads, names in a text', bytes: 1_600_000 },
  { id: 'masks', name: 'mask model', about: '3 layers × 4 heads, words for a mask', bytes: 1_215_000 },
  { id: 'reactions', name: 'reaction model', about: '12 layers × 8 heads, atoms of chemical reactions', bytes: 980_000 },
] as const;

/**
 * A link without a model means the sentiment classifier, the first model for a long time; a first visit shows the mask
 * model.
 */
export const openingModels = ['masks', 'sentiment'] as const;
export const openingModel = (id: string): (typeof openingModels)[number] => openingModels.find((each) => each === id) ?? 'sentiment';

export const isSmall = (id: string | undefined): boolean => knownModels.some((each) => each.id === id && !('repository' in each));

export const unnamedFiles = 'your files';

export function expectedBytes(id: string, dtype: DType): number | undefined {
  const known = knownModels.find((each) => each.id === id);
  return (dtype === 'int8' && known && 'int8Bytes' in known && known.int8Bytes) || known?.bytes;
}

/** Tests run without a page. */
export const page = (): string => (globalThis as { readonly location?: Location }).location?.href ?? 'http://localhost/';

export function nameOf(id: string): string {
  const known = knownModels.find((each) => each.id === id);
  if (known) return known.name;
  try {
    return readAddress(id, page()).name;
  } catch {
    return truncate(id, longestName);
  }
}

/** "the entity model", "all-MiniLM-L6-v2" */
export function nameInSentence({ name }: { readonly name: string }): string {
  if (name === unnamedFiles) return 'the model from your files';
  return knownModels.some((each) => each.name === name) && name.includes(' ') ? `the ${name}` : name;
}
/** With a capital letter even for "all-MiniLM-L6-v2". */
export const sentenceName = (of: { readonly name: string }): string =>
  nameInSentence(of).replace(/^(the )?(?=\p{Ll})/u, (_, article?: string) => (article ? 'The ' : 'The model '));

/** The page was built with this model's files. */
export const isCarried = (id: string): boolean => knownModels.some((each) => each.id === id && (!('int8Bytes' in each) || each.int8Bytes > 0));

export function otherHostOf(id: string): string | undefined {
  if (knownModels.some((each) => each.id === id)) return isCarried(id) ? undefined : hubHost;
  try {
    const { host } = readAddress(id, page());
    return host === new URL(page()).host ? undefined : host;
  } catch {
    return undefined;
  }
}
