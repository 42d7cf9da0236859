/**
 * Serves the built page with the headers that it is made for: the CSP, and cross-origin isolation, which threads need. Beside it stand, as in the
 * repository, the models that are there and the example in one file, with the package that it loads.
 * As a program: node tools/serve.mjs (PORT, default 8080; HOST, default 127.0.0.1).
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { extname, join, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { preview } from 'vite';

const repository = fileURLToPath(new URL('..', import.meta.url));
const built = join(repository, 'build/page');
const beside = ['models', 'testdata/models', 'examples/browser', 'web/lib/dist'];

/** Scripts inside a page are named by their digests. */
const policy = (inline = []) =>
  [
    ['script-src', "'self'", "'wasm-unsafe-eval'", ...inline.map((text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`)].join(
      ' ',
    ),
    "object-src 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ');

export const headers = {
  'Content-Security-Policy': policy(),
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
  '.json': 'application/json',
  '.wasm': 'application/wasm',
};

/** Files of the folders above; what is not in one of them is the page's. */
function serveBeside(request, response, next) {
  let path;
  try {
    path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
  } catch {
    return void response.writeHead(400).end();
  }
  const folder = beside.find((each) => path.startsWith(`/${each}/`));
  if (folder === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) return next();
  const file = resolve(repository, `.${path}`);
  const stat = file.startsWith(join(repository, folder) + sep) ? statSync(file, { throwIfNoEntry: false }) : undefined;
  if (!stat?.isFile()) return void response.writeHead(404, { ...headers, 'Content-Type': 'text/plain' }).end('not found');
  const type = types[extname(file)] ?? 'application/octet-stream';
  const inline =
    extname(file) === '.html' ? [...readFileSync(file, 'utf8').matchAll(/<script\b[^>]*>([^]*?)<\/script>/g)].map(([, text]) => text) : [];
  response.writeHead(200, { ...headers, 'Content-Security-Policy': policy(inline), 'Content-Type': type, 'Content-Length': stat.size });
  if (request.method === 'HEAD') response.end();
  else pipeline(createReadStream(file), response, () => {}); // a reader that leaves is no error
}

/** Resolves to { url, close }. Rejects with a sentence when the port is taken or nothing is built. */
export async function serve({ port = 8080, host = '127.0.0.1', root = built } = {}) {
  if (!existsSync(root)) throw new Error('The page is not built yet. `make demo` builds and serves it.');
  let server;
  try {
    server = await preview({
      configFile: false,
      logLevel: 'silent',
      // Not a single-page fallback: what is missing answers 404.
      appType: 'mpa',
      build: { outDir: root },
      preview: { port, host, strictPort: true, open: false, headers },
      plugins: [{ name: 'beside-the-page', configurePreviewServer: ({ middlewares }) => void middlewares.use(serveBeside) }],
    });
  } catch (error) {
    if (/port .* in use/i.test(error.message) || error.code === 'EADDRINUSE') {
      throw new Error(`Port ${port} is taken. Choose another one: PORT=${port + 1} make demo`, { cause: error });
    }
    if (error.code === 'EACCES') throw new Error(`Port ${port} needs more rights. Choose one above 1023: PORT=8080 make demo`, { cause: error });
    throw error;
  }
  const address = server.httpServer.address();
  return { url: `http://${host === '127.0.0.1' ? 'localhost' : host}:${address.port}/`, close: () => server.close() };
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
