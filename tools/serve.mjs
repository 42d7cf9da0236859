/**
 * Serves the built page with its CSP and with cross-origin isolation, which threads need; also models and the example
 * in one file. As a program: node tools/serve.mjs (PORT, default 8080; HOST, default 127.0.0.1).
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createServer } from 'node:http';
import { isIP } from 'node:net';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import send from 'send';
import { types } from './content_types.mjs';
import { filePolicy, pagePolicy, workerPolicy } from './policies.mjs';

const repository = fileURLToPath(new URL('..', import.meta.url));
const built = join(repository, 'build/page');
const beside = ['models', 'testdata/models', 'testdata/vision', 'examples/browser', 'web/lib/dist'];
/** Third-party data, which is never served as a page or script. */
const isData = /^\/(models|testdata\/(models|vision))\//;

const headers = {
  'Content-Security-Policy': filePolicy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};

const inside = (html, tag) => [...html.matchAll(new RegExp(`<${tag}\\b[^>]*>([^]*?)</${tag}>`, 'g'))].map(([, text]) => text).filter(Boolean);

const isFramed = (file) => basename(file) === 'embed.html';
/** The documentation, whose pages contain their own policies (docs/tools/relocate.mjs). */
const isDocs = /^\/docs\//;
const saidInside = (html) => /<meta\s+http-equiv="Content-Security-Policy"\s+content="([^"]*)"/.exec(html)?.[1];

function policyOf(path, file, type) {
  if (type.startsWith('text/javascript')) return workerPolicy;
  if (!type.startsWith('text/html')) return filePolicy;
  const html = readFileSync(file, 'utf8');
  if (isDocs.test(path)) return `${saidInside(html)}; frame-ancestors 'self'`;
  // Allows the empty icon as a data URL, which avoids a request.
  const images = html.includes('href="data:') ? ['data:'] : [];
  return pagePolicy({ scripts: inside(html, 'script'), styles: inside(html, 'style'), images, framed: isFramed(file) });
}

function pathOf(target) {
  try {
    // A target may be a complete URL; one that begins with two slashes is a path.
    const { pathname } = new URL(target.startsWith('/') ? `http://localhost${target}` : target);
    return /[\0-\x1f\x7f\\]/.test(decodeURIComponent(pathname)) ? undefined : pathname;
  } catch {
    return undefined;
  }
}

function answer(request, response, root) {
  const end = (status, text, more = {}) => response.writeHead(status, { ...headers, 'Content-Type': 'text/plain', ...more }).end(text);
  if (request.method !== 'GET' && request.method !== 'HEAD') return end(405, 'only GET and HEAD', { Allow: 'GET, HEAD', Connection: 'close' });
  const path = pathOf(request.url);
  if (path === undefined) return end(400, 'not an address');
  const folder = beside.find((each) => path.startsWith(`/${each}/`));
  send(request, folder === undefined ? path : path.slice(folder.length + 1), {
    root: folder === undefined ? root : join(repository, folder),
    index: folder === undefined && (path === '/' || isDocs.test(path)) ? 'index.html' : false,
    dotfiles: 'ignore',
    cacheControl: false,
  })
    .on('headers', (_, file) => {
      const type = (!isData.test(path) || extname(file) === '.json' ? types[extname(file)] : undefined) ?? 'application/octet-stream';
      const own = { 'Content-Security-Policy': policyOf(path, file, type), 'Content-Type': type };
      response.setHeaders(new Headers({ ...headers, ...own, ...(isFramed(file) && { 'Cross-Origin-Resource-Policy': 'cross-origin' }) }));
    })
    .on('directory', () => end(404, 'not found'))
    // The reason is not sent, because it would reveal local paths.
    .on('error', ({ status, headers: more }) => end(status, status < 500 ? 'not found' : '', more))
    .pipe(response);
}

/** Names of this computer. Other names are refused: DNS rebinding would let a foreign page read the responses. */
function isOwnName(name, host) {
  const plain = name
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
  return plain === '' || plain === host || plain === 'localhost' || plain.endsWith('.localhost') || isIP(plain) !== 0;
}

export async function serve({ port = 8080, host = '127.0.0.1', root = built } = {}) {
  if (!existsSync(root)) throw new Error('The page is not built yet. `make demo` builds and serves it.');
  const base = realpathSync(root);
  const server = createServer((request, response) => {
    if (!isOwnName(request.headers.host ?? '', host)) return void response.writeHead(403, headers).end();
    answer(request, response, base);
  });
  await new Promise((listening, fail) => {
    server.once('error', (error) => {
      if (error.code === 'EADDRINUSE') fail(new Error(`Port ${port} is in use. Choose another one: PORT=${port + 1} make demo`, { cause: error }));
      else if (error.code === 'EACCES') fail(new Error(`Port ${port} requires root. Choose one above 1023: PORT=8080 make demo`, { cause: error }));
      else fail(error);
    });
    server.listen(port, host, listening);
  });
  return {
    url: `http://${host === '127.0.0.1' ? 'localhost' : host}:${server.address().port}/`,
    close: () => new Promise((closed) => (server.close(closed), server.closeAllConnections())),
  };
}

export function portFromEnvironment() {
  const text = process.env.PORT || '8080';
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new Error(`PORT is ${text}, expected a whole number from 1 to 65535`);
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
