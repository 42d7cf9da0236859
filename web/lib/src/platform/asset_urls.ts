import { errorWithHelp, reason } from '../args/error.js';

/**
 * Vite's dev server moves the scripts of packages to its own folder (Vite 7), but leaves the other files in the
 * package.
 */
export const assetUrl = (url: string) => url.replace('/.vite/deps/', '/attn/dist/');

/** Base of relative URLs; undefined on servers. Some bundlers (Next) write URLs of files without an origin. */
export const pageUrl = (): string | undefined => globalThis.document?.baseURI ?? globalThis.location?.href;

/** Advice for files that are missing in a server's bundle. */
export const leaveOut = "On a server leave attn out of the bundle (Next: serverExternalPackages: ['attn'])";

export function scriptsFailed(cause: unknown): never {
  const help = "If the host forbids import(), import attn from 'attn/service-worker'";
  throw errorWithHelp('ENVIRONMENT', `loadModel: could not load scripts (${reason(cause)})`, help, { op: 'loadModel' }, { cause });
}

export const noWorkers = 'workers cannot be started here';
