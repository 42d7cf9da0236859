/**
 * Serves the built page with the headers that it is made for: the CSP, and cross-origin isolation, which threads need. Beside it stand, as in the
 * repository, the models that are there and the example in one file, with the package that it loads.
 * As a program: node tools/serve.mjs (PORT, default 8080; HOST, default 127.0.0.1).
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, realpathSync } from 'node:fs';
import { readFile, realpath, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { isIP } from 'node:net';
import { extname, join, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('..', import.meta.url));
const built = join(repository, 'build/page');
const beside = ['models', 'testdata/models', 'examples/browser', 'web/lib/dist'];
/** Files of somebody else: nothing in there is a page or a script of this one. */
const isData = /^\/(testdata\/)?models\//;

/** What a page may do is what it needs; the built page says so itself in a meta tag, for servers that send no headers. */
const common = {
  'default-src': ["'none'"],
  'script-src': ["'self'", "'wasm-unsafe-eval'"],
  'worker-src': ["'self'"],
  'connect-src': ["'self'"],
  'base-uri': ["'none'"],
  'form-action': ["'none'"],
  'require-trusted-types-for': ["'script'"],
  'trusted-types': ['attn#worker'],
};
const written = (directives) =>
  Object.entries(directives)
    .map(([name, values]) => `${name} ${values.join(' ')}`)
    .join('; ');

const digests = (texts) => texts.map((text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`);

/** Of a document. Scripts and styles inside it are named by their digests. That nobody may frame it can be said by a header only. */
export const pagePolicy = ({ scripts = [], styles = [] } = {}) =>
  written({
    ...common,
    'script-src': [...common['script-src'], ...digests(scripts)],
    'style-src': ["'self'", ...digests(styles)],
    'img-src': ["'self'"],
    'frame-ancestors': ["'none'"],
  });

/** Of a worker, which browsers take from its own script's answer: it loads models, and their address may be anywhere. */
export const workerPolicy = written({ ...common, 'connect-src': ["'self'", 'https:', 'http:'], 'frame-ancestors': ["'none'"] });

/** Of what is neither: opened by itself it may do nothing. */
const filePolicy = written({ 'default-src': ["'none'"], 'frame-ancestors': ["'none'"] });

const headers = {
  'Content-Security-Policy': filePolicy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
};

/** What stands between the tags of this name. */
const inside = (html, tag) => [...html.matchAll(new RegExp(`<${tag}\\b[^>]*>([^]*?)</${tag}>`, 'g'))].map(([, text]) => text).filter(Boolean);

async function policyOf(file, type) {
  if (type.startsWith('text/javascript')) return workerPolicy;
  if (!type.startsWith('text/html')) return filePolicy;
  const html = await readFile(file, 'utf8');
  return pagePolicy({ scripts: inside(html, 'script'), styles: inside(html, 'style') });
}

/** The path that is asked for, decoded; undefined: the request makes no sense. */
function pathOf(target) {
  try {
    // A target may be a whole address. One that begins with two slashes is a path all the same.
    const { pathname } = new URL(target.startsWith('/') ? `http://localhost${target}` : target);
    const path = decodeURIComponent(pathname);
    return /[\0-\x1f\x7f\\]/.test(path) ? undefined : path;
  } catch {
    return undefined;
  }
}

/** The file at a path below the page or one of the folders beside it; undefined: there is none. Links that lead out of their folder lead nowhere. */
async function fileAt(path, root) {
  const folder = beside.find((each) => path.startsWith(`/${each}/`));
  const base = folder === undefined ? root : join(repository, folder);
  const below = folder === undefined ? path : path.slice(folder.length + 1);
  if (below.split('/').some((each) => each.startsWith('.'))) return undefined;
  try {
    const file = await realpath(resolve(base, `.${folder === undefined && below === '/' ? '/index.html' : below}`));
    if (!file.startsWith((await realpath(base)) + sep)) return undefined;
    const { size, mtime } = await stat(file).then((found) => (found.isFile() ? found : {}));
    return size === undefined || below.endsWith('/') !== (below === '/') ? undefined : { file, size, mtime };
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'EACCES'].includes(error.code)) return undefined;
    throw error;
  }
}

/** The bytes that are asked for, [first, last]; undefined: all; null: none of them are there. Several ranges at once are all. */
function rangeOf(text, size) {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/.exec(text ?? '') ?? [];
  if (from === undefined || (from === '' && to === '')) return undefined;
  const [first, last] =
    from === '' ? [Math.max(0, size - Number(to)), size - 1] : [Number(from), to === '' ? size - 1 : Math.min(Number(to), size - 1)];
  if (from !== '' && to !== '' && Number(from) > Number(to)) return undefined;
  return first > last ? null : [first, last];
}

async function answer(request, response, root) {
  const end = (status, text, more = {}) => response.writeHead(status, { ...headers, 'Content-Type': 'text/plain', ...more }).end(text);
  if (request.method !== 'GET' && request.method !== 'HEAD') return end(405, 'only GET and HEAD', { Allow: 'GET, HEAD', Connection: 'close' });
  const path = pathOf(request.url);
  if (path === undefined) return end(400, 'not an address');
  const found = await fileAt(path, root);
  if (!found) return end(404, 'not found');
  const { file, size, mtime } = found;
  const type = (!isData.test(path) || extname(file) === '.json' ? types[extname(file)] : undefined) ?? 'application/octet-stream';
  const tag = `"${size.toString(36)}-${mtime.getTime().toString(36)}"`;
  const about = {
    ...headers,
    'Content-Security-Policy': await policyOf(file, type),
    'Content-Type': type,
    'Accept-Ranges': 'bytes',
    'Last-Modified': mtime.toUTCString(),
    ETag: tag,
  };
  if (request.headers['if-none-match']?.split(/ *, */).includes(tag)) return response.writeHead(304, about).end();
  const asked = [undefined, tag, mtime.toUTCString()].includes(request.headers['if-range']) ? request.headers.range : undefined;
  const range = rangeOf(asked, size);
  if (range === null) return end(416, 'no such bytes', { 'Content-Range': `bytes */${size}` });
  const [first, last] = range ?? [0, size - 1];
  response.writeHead(range ? 206 : 200, {
    ...about,
    'Content-Length': last - first + 1,
    ...(range && { 'Content-Range': `bytes ${first}-${last}/${size}` }),
  });
  if (request.method === 'HEAD' || size === 0) response.end();
  else pipeline(createReadStream(file, { start: first, end: last }), response, () => {}); // a reader that leaves is no error
}

/** Names of this computer: others could be pointed here by somebody else's DNS, whose page would then read along. */
function isOwnName(name, host) {
  const plain = name
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
  return plain === '' || plain === host || plain === 'localhost' || plain.endsWith('.localhost') || isIP(plain) !== 0;
}

/** Resolves to { url, close }. Rejects with a sentence when the port is taken or nothing is built. */
export async function serve({ port = 8080, host = '127.0.0.1', root = built } = {}) {
  if (!existsSync(root)) throw new Error('The page is not built yet. `make demo` builds and serves it.');
  const base = realpathSync(root);
  const server = createServer((request, response) => {
    if (!isOwnName(request.headers.host ?? '', host)) return void response.writeHead(403, headers).end();
    answer(request, response, base).catch(() => {
      // What it was is of use here only, and would tell where things lie.
      if (!response.headersSent) response.writeHead(500, headers);
      response.end();
    });
  });
  await new Promise((listening, fail) => {
    server.once('error', (error) => {
      if (error.code === 'EADDRINUSE') fail(new Error(`Port ${port} is taken. Choose another one: PORT=${port + 1} make demo`, { cause: error }));
      else if (error.code === 'EACCES')
        fail(new Error(`Port ${port} needs more rights. Choose one above 1023: PORT=8080 make demo`, { cause: error }));
      else fail(error);
    });
    server.listen(port, host, listening);
  });
  return {
    url: `http://${host === '127.0.0.1' ? 'localhost' : host}:${server.address().port}/`,
    close: () => new Promise((closed) => (server.close(closed), server.closeAllConnections())),
  };
}

/** PORT as a number; a sentence when it is none. */
export function portFromEnvironment() {
  const text = process.env.PORT || '8080';
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new Error(`PORT is ${text}; it has to be a whole number from 1 to 65535.`);
  return port;
}

if (process.argv[1] && fileURLToPath(import.meta.url) === process.argv[1]) {
  try {
    const { url } = await serve({ port: portFromEnvironment(), host: process.env.HOST || '127.0.0.1' });
    console.log(`The page is at ${url} (Ctrl+C stops it)`);
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
