import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * `make` contains `new URL('./file', import.meta.url)`, which bundlers recognise. If it fails, as in CommonJS bundles
 * made by esbuild, the file is expected in the bundle's folder.
 */
export function packageFile<T = URL>(file: string, make: () => T, from = (url: URL) => url as T): T {
  try {
    return make();
  } catch (error) {
    if (typeof __dirname === 'undefined') throw error;
    return from(pathToFileURL(join(__dirname, file)));
  }
}
