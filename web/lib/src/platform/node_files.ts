/** Files of the package in Node. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * What `make` makes of `new URL('./file', import.meta.url)`, an expression that bundlers know. If there is no such address, which is so in CommonJS by
 * esbuild, it is made of the file beside the bundle.
 */
export function packageFile<T = URL>(file: string, make: () => T, from = (url: URL) => url as T): T {
  try {
    return make();
  } catch (error) {
    if (typeof __dirname === 'undefined') throw error;
    return from(pathToFileURL(join(__dirname, file)));
  }
}
