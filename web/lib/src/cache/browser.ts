/** attn/cache outside Node: the Cache API. */
import { AttnError, describe, errorWithHelp, fail, reason } from '../args/error.js';
import { browserStorage, type ModelStorage } from '../platform/model_storage.js';
import { cacheIn } from './stored_files.js';

export { AttnError };

export async function openBrowserStorage(op: string, help: string): Promise<ModelStorage> {
  try {
    if (typeof caches !== 'undefined') return await browserStorage();
  } catch (cause) {
    const help = 'Sandboxed frames, file: pages and some private windows have none';
    throw errorWithHelp('ENVIRONMENT', `${op}: this page may not use Cache Storage (${reason(cause)})`, help, { op }, { cause });
  }
  throw errorWithHelp('ENVIRONMENT', `${op}: this host has no Cache Storage`, help, { op });
}

export const cache = /* @__PURE__ */ cacheIn((op, cacheDir) => {
  if (cacheDir !== undefined) fail('ENVIRONMENT', op, 'cacheDir', describe(cacheDir), 'no cacheDir', 'A browser has its own cache');
  return openBrowserStorage(op, 'Serve the page over https or from localhost');
});
