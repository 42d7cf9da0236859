/** Files of a static model: given ones, or those of a folder on a server or, in Node, on the disk. */
import type { Fetch } from '../host.js';
import { AttnError, describe, errorWithHelp, fail, isAttnError, networkErrors, reason } from '../args/error.js';
import { hubId } from '../args/hub.js';
import type { Source } from '../args/model_options.js';
import { pageUrl } from '../platform/asset_urls.js';
import { assertFetch } from '../platform/download.js';
import { encodeUtf8 } from '../platform/utf8.js';

export interface File {
  /** For messages. */
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Undefined if there is no such file. */
export type Read = (file: string) => Promise<File | undefined>;

/** Files in folders count too: dropped files have one. Bytes are copied, because the model keeps views of them. */
function given(op: string, files: Extract<Source, { files: unknown }>['files']): Read {
  const byLength = [...files].sort(([a], [b]) => a.length - b.length);
  return async (file) => {
    const found = byLength.find(([path]) => path === file || path.replaceAll('\\', '/').endsWith(`/${file}`));
    if (!found) return undefined;
    const [path, content] = found;
    const name = `source[${JSON.stringify(path)}]`;
    if (typeof content === 'string') return { name, bytes: encodeUtf8(content) };
    if ('buffer' in content) return { name, bytes: new Uint8Array(content) };
    try {
      return { name, bytes: new Uint8Array(await content.arrayBuffer()) };
    } catch (cause) {
      throw networkErrors(op)(`${name} could not be read (${reason(cause)})`, {}, cause);
    }
  };
}

interface NodeFiles {
  readFile(path: string | URL): Promise<Uint8Array<ArrayBuffer>>;
}

/** Without an import, which bundlers of pages would have to resolve. Since Node 20.16. */
const nodeFiles = (): NodeFiles | undefined =>
  (globalThis.process as { getBuiltinModule?(name: string): unknown } | undefined)?.getBuiltinModule?.('node:fs/promises') as NodeFiles | undefined;

function onDisk(op: string, disk: NodeFiles, folder: string): Read {
  return async (file) => {
    const isUrl = folder.startsWith('file:');
    const path = `${folder.replace(/[\\/]$/, '')}/${file}`;
    try {
      return { name: path, bytes: new Uint8Array(await disk.readFile(isUrl ? new URL(path) : path)) };
    } catch (cause) {
      if (/^(ENOENT|ENOTDIR)$/.test(String((cause as { code?: unknown }).code))) return undefined;
      throw networkErrors(op)(`${path} could not be read (${reason(cause)})`, { path }, cause);
    }
  };
}

function onServer(op: string, location: string, fetch: Fetch | undefined, signal: AbortSignal): Read {
  if (!fetch) assertFetch(op, 'Pass the files themselves, or a fetch');
  let base: URL;
  try {
    base = new URL(location, pageUrl());
  } catch {
    fail('ARGUMENT', op, 'source', describe(location), 'the URL of a folder');
  }
  base.hash = '';
  base.pathname = base.pathname.replace(/\/?$/, '/');
  if (!base.pathname.endsWith('/')) fail('ARGUMENT', op, 'source', describe(location), 'the URL of a folder');
  return async (file) => {
    const url = new URL(base);
    url.pathname += file;
    const { href } = url;
    try {
      const response = await (fetch ?? globalThis.fetch).call(undefined, href, { signal });
      const isPage = /^text\/html\b/i.test(response.headers.get('content-type') ?? '');
      if (response.ok && !isPage) return { name: `URL ${href}`, bytes: new Uint8Array(await response.arrayBuffer()) };
      response.body?.cancel().catch(() => {});
      const { status } = response;
      if (response.ok || status === 404 || status === 410) return undefined;
      throw networkErrors(op)(`URL ${href} answered ${status}`, { file, url: href, status });
    } catch (cause) {
      if (isAttnError(cause)) throw cause;
      throw networkErrors(op)(`URL ${href} could not be read (${reason(cause)})`, { url: href }, cause);
    }
  };
}

export function readerOf(op: string, source: Source, fetch: Fetch | undefined, signal: AbortSignal): Read {
  if ('files' in source) return given(op, source.files);
  const { location } = source;
  // A single letter before a colon is a Windows drive.
  const isPath = !/^[a-z][a-z0-9+.-]+:/i.test(location);
  const disk = isPath || location.startsWith('file:') ? nodeFiles() : undefined;
  return disk ? onDisk(op, disk, location) : onServer(op, location, fetch, signal);
}

export function absent(op: string, source: Source, file: string): AttnError {
  if (!('files' in source)) {
    const { location } = source;
    const help = hubId.test(location)
      ? `${JSON.stringify(location)} looks like a Hub id: pass hub(${JSON.stringify(location)}) of attn or the path of a copy`
      : undefined;
    return errorWithHelp('NETWORK', `${op}: ${location} has no ${file}`, help, { op, file });
  }
  const got = source.files
    .slice(0, 10)
    .map(([name]) => name)
    .join(', ');
  return new AttnError('ARGUMENT', `${op}: source has no ${file}, only ${got}`, { op, argument: 'source', expected: file, got });
}
