/** attn/cache in Node: a folder, or in Deno also the Cache API. */
import { AttnError } from '../args/error.js';
import { folderStorage } from '../platform/node_cache.js';
import { openBrowserStorage } from './browser.js';
import { cacheIn } from './stored_files.js';

export { AttnError };

export const cache = cacheIn(
  async (op, cacheDir) =>
    (await folderStorage(op, cacheDir, false)) ?? openBrowserStorage(op, 'Pass cacheDir, or set the environment variable ATTN_CACHE_DIR'),
);
