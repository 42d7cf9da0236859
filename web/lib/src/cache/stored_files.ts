/** Lists and deletes cached model files. */
import type { CachedFile, ModelFileCache } from '../cache.js';
import { isPlainObject } from '../args/arrays.js';
import { describe, fail, reading } from '../args/error.js';
import { readCacheDir } from '../args/options.js';
import { readMembers } from '../args/signature.js';
import { pageUrl } from '../platform/asset_urls.js';
import { keyOf, type ModelStorage } from '../platform/model_storage.js';

interface Entry extends CachedFile {
  /** One, or the parts of an interrupted download. */
  readonly deletions: readonly (() => Promise<boolean>)[];
}

async function entriesOf({ files, parts }: ModelStorage): Promise<Entry[]> {
  const found = new Map<string, Entry>();
  for (const store of [files, parts])
    for (const request of await store.keys()) {
      const response = await store.match(request);
      if (!response) continue; // deleted in the meantime
      await response.body?.cancel();
      const { href } = keyOf(request.url);
      const complete = store === files;
      const name = `${href} ${complete}`;
      const before = found.get(name);
      const date = response.headers.get('date');
      found.set(name, {
        url: href,
        bytes: (before?.bytes ?? 0) + Number(response.headers.get('content-length')),
        complete,
        ...(date !== null && { date: new Date(date) }),
        deletions: [...(before?.deletions ?? []), () => store.delete(request)],
      });
    }
  return [...found.values()].sort((a, b) => (a.url < b.url ? -1 : 1));
}

/** A file, or all below a folder. */
function targetOf(op: string, value: unknown): URL {
  const expected = 'the URL of a file or folder';
  const isUrl = typeof value === 'string' || Object.prototype.toString.call(value) === '[object URL]';
  if (!isUrl || value === '') fail('ARGUMENT', op, 'source', describe(value), expected, 'delete() deletes all');
  try {
    return keyOf(new URL(String(value), pageUrl()));
  } catch {
    fail('ARGUMENT', op, 'source', describe(value), expected);
  }
}

const holds = ({ href }: URL, url: string) => url === href || url.startsWith(href.endsWith('/') ? href : `${href}/`);

const cacheDirOf = (op: string, options: unknown) =>
  reading(op, 'options', () => readCacheDir(op, options === undefined ? undefined : readMembers(op, 'options', options, ['cacheDir'])[0]));

/** `open` gets the name of the function, for its errors. */
export function cacheIn(open: (op: string, cacheDir: string | undefined) => Promise<ModelStorage>): ModelFileCache {
  const entries = async (op: string, options: unknown) => entriesOf(await open(op, cacheDirOf(op, options)));
  return Object.freeze({
    async list(options?: unknown) {
      return (await entries('cache.list', options)).map(({ deletions: _, ...file }) => file);
    },
    async size(options?: unknown) {
      return (await entries('cache.size', options)).reduce((sum, { bytes }) => sum + bytes, 0);
    },
    /** Only without a source all files are deleted: undefined may be a mistake. */
    async delete(...given: readonly unknown[]) {
      const op = 'cache.delete';
      const [first] = given;
      const isAll = given.length === 0 || (given.length === 1 && isPlainObject(first));
      const target = isAll ? undefined : reading(op, 'source', () => targetOf(op, first));
      const all = await entries(op, given[isAll ? 0 : 1]);
      const doomed = all.filter(({ url }) => !target || holds(target, url));
      for (const { deletions } of doomed) await Promise.all(deletions.map((remove) => remove()));
      return doomed.length;
    },
  });
}
