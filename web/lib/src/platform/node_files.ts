import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Calls `make`, which contains `new URL('./file', import.meta.url)`, an expression that bundlers recognise. If that
 * fails, as in CommonJS bundles made by esbuild, the file is expected in the bundle's folder.
 */
export function packageFile<T = URL>(file: string, make: () => T, from = (url: URL) => url as T): T {
  try {
    return make();
  } catch (error) {
    if (typeof __dirname === 'undefined') throw error;
    return from(pathToFileURL(join(__dirname, file)));
  }
}
