/** Where files of the package are, and what to do where they are not found. */
import { AttnError, reason } from '../args/error.js';

/** Vite's dev server serves scripts of packages from a folder of its own (Vite 7: not what lies beside them, which stays in the package). */
export const assetUrl = (url: string) => url.replace('/.vite/deps/', '/attn/dist/');

/** What relative URLs are relative to: some bundlers (Next) write those of files without an origin. Undefined on servers. */
export const pageUrl = (): string | undefined => globalThis.document?.baseURI ?? globalThis.location?.href;

/** For files that are not found where a server's bundle has taken attn in. */
export const leaveOut = "a bundler has moved its files; on a server leave attn out of the bundle (Next: serverExternalPackages: ['attn'])";

/** What models take comes by import(), with the first of them. */
export function scriptsFailed(cause: unknown): never {
  const help = "where import() is not allowed, import from 'attn/service-worker'";
  throw new AttnError('ENVIRONMENT', `loadModel: could not load scripts (${reason(cause)}); ${help}`, { op: 'loadModel' }, { cause });
}

export const noWorkers = 'workers cannot be started here';
