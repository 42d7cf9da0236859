/**
 * The test server: a built folder at /, testdata/, models/, the package's wasm files, the native digest, and bad files.
 * A browser test uses two servers, one with the headers of cross-origin isolation and one without. Every page has the
 * CSP that the project supports.
 */
import { createServer } from 'node:http';
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { extname, join, normalize, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { types } from '../../tools/content_types.mjs';
import { pagePolicy, workerPolicy } from '../../tools/policies.mjs';
import { hub } from './hub.mjs';
import { modelFolders, trickle } from './model_folders.mjs';

const repository = fileURLToPath(new URL('../..', import.meta.url));

export const csp = "script-src 'self' 'wasm-unsafe-eval'; object-src 'none'; base-uri 'none'; require-trusted-types-for 'script'";

/** The first script of tested pages; records console, CSP and network messages in the same way in every browser. */
const probe = `(() => {
  const seen = { messages: [], requests: [], workers: [] };
  globalThis.attnProbe = seen;
  globalThis.Worker = class extends Worker { constructor(...given) { super(...given); seen.workers.push(this); } };
  new MutationObserver(() => { seen.ready ??= performance.now(); }).observe(document.documentElement, { attributeFilter: ['data-ready'] });
  for (const level of ['log', 'info', 'warn', 'error', 'debug', 'assert', 'trace'])
    console[level] = (...parts) => seen.messages.push(level + ': ' + parts.map(String).join(' '));
  addEventListener('error', (e) => seen.messages.push('uncaught: ' + (e.message || (e.target && (e.target.src || e.target.href)))), true);
  addEventListener('unhandledrejection', (e) => seen.messages.push('unhandled rejection: ' + String(e.reason)));
  addEventListener('securitypolicyviolation', (e) => seen.messages.push('CSP: ' + e.violatedDirective + ' ' + e.blockedURI));
  new PerformanceObserver((list) => { for (const e of list.getEntries()) seen.requests.push(e.name); }).observe({ type: 'resource', buffered: true });
})();`;

/**
 * Serves the built page again under /without/NAME/ with a missing feature: each script, also the worker's, begins with
 * these lines. There are no model files.
 */
const lacking = {
  models: '',
  // Replaces the Hub by hub.mjs.
  hub: `{
    const ask = globalThis.fetch;
    globalThis.fetch = (url, init) => ask(String(url).replace('https://huggingface.co/', location.origin + '/hub/'), init);
  }`,
  webassembly: 'delete globalThis.WebAssembly;',
  memory: "WebAssembly.instantiate = WebAssembly.instantiateStreaming = async () => { throw new RangeError('could not allocate memory'); };",
  growth: "WebAssembly.Memory.prototype.grow = () => { throw new RangeError('could not grow memory'); };",
  'much-growth': `{
    const { prototype } = WebAssembly.Memory;
    const grow = (globalThis.attnGrow ??= prototype.grow);
    prototype.grow = function (pages) {
      if (this.buffer.byteLength + pages * 65536 > 12e6) throw new RangeError('could not grow memory');
      return grow.call(this, pages);
    };
  }`,
};

/**
 * Starts a server; resolves to { url, close }. Test pages post intermediate and final results to /results. `onFile` is
 * called with path and size of each file before it is sent.
 */
export function startServer({
  root,
  wasm = join(process.env.ATTN_TEST_PACKAGE ?? join(repository, 'web/lib'), 'dist'),
  isolated = false,
  withProbe = false,
  policy = csp,
  asDemo = false,
  port = 0,
  onResults,
  onFile,
} = {}) {
  const wasmFile = (name) => readFileSync(join(wasm, name));
  const fixtures = {
    '/bad/page.wasm': (_q, r) => r.writeHead(200, { 'content-type': 'text/html' }).end('<!DOCTYPE html>\n<html><title>Not found</title></html>\n'),
    '/bad/mistyped.wasm': (_q, r) => r.writeHead(200, { 'content-type': 'application/wasm' }).end('<!DOCTYPE html>\n<html></html>\n'),
    '/bad/pointer.wasm': (_q, r) =>
      r
        .writeHead(200, { 'content-type': 'application/octet-stream' })
        .end(`version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 123456\n`),
    '/bad/half.wasm': (_q, r) => {
      const all = wasmFile('attn-simd.wasm');
      r.writeHead(200, { 'content-type': 'application/wasm' }).end(all.subarray(0, all.length >> 1));
    },
    '/bad/cut.wasm': (_q, r) => {
      const all = wasmFile('attn-simd.wasm');
      r.writeHead(200, { 'content-type': 'application/wasm', 'content-length': all.length });
      r.write(all.subarray(0, all.length >> 1), () => setTimeout(() => r.destroy(), 20));
    },
    '/bad/empty.wasm': (_q, r) => r.writeHead(200, { 'content-type': 'application/wasm' }).end(),
    '/bad/other-module.wasm': (_q, r) => r.writeHead(200, { 'content-type': 'application/wasm' }).end(Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0])),
    '/bad/forbidden.wasm': (_q, r) => r.writeHead(403, { 'content-type': 'text/plain' }).end('no'),
    '/good/octets.wasm': (_q, r) => r.writeHead(200, { 'content-type': 'application/octet-stream' }).end(wasmFile('attn-simd.wasm')),
    '/good/slow.wasm': (_q, r) => trickle(r, wasmFile('attn-simd.wasm'), { 'content-type': 'application/wasm' }),
    // Browsers request an icon even if the page has none.
    '/favicon.ico': (_q, r) => r.writeHead(204).end(),
    '/probe.js': (_q, r) => r.writeHead(200, { 'content-type': types['.js'] }).end(probe),
  };
  const folders = {
    '/testdata/': join(repository, 'testdata'),
    '/models/': join(repository, 'models'),
    '/wasm/': wasm,
    '/digest/': join(repository, 'build/native'),
  };
  const models = modelFolders(join(repository, 'testdata/models'));
  const published = hub(join(repository, 'testdata/models'));

  const server = createServer((request, response) => {
    // Also read by the suites in Node and in pages of the other server.
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('cross-origin-resource-policy', 'cross-origin');
    response.setHeader('cache-control', 'no-store');
    if (policy) response.setHeader('content-security-policy', policy);
    if (isolated) {
      response.setHeader('cross-origin-opener-policy', 'same-origin');
      response.setHeader('cross-origin-embedder-policy', 'require-corp');
    }
    if (models(request, response) || published(request, response)) return;
    const whole = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const [, without, path] = /^(?:\/without\/([\w-]+)(?=\/))?(.*)$/.exec(whole);
    if (Object.hasOwn(fixtures, path) && !(path === '/favicon.ico' && root && existsSync(join(root, path)))) {
      return void Promise.resolve()
        .then(() => fixtures[path](request, response))
        .catch((error) => (console.error(`test server, ${path}: ${error}`), response.destroy()));
    }
    if (request.method === 'POST' && path === '/results') {
      const chunks = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => (onResults?.(JSON.parse(Buffer.concat(chunks).toString())), response.writeHead(204).end()));
      return;
    }
    if (without !== undefined && path.startsWith('/models/')) return void response.writeHead(404).end('not found');
    const folder = without === undefined ? Object.keys(folders).find((f) => path.startsWith(f)) : undefined;
    const base = folder ? folders[folder] : root;
    if (!base) return void response.writeHead(404).end('not found');
    let file = resolve(base, '.' + sep + normalize(folder ? path.slice(folder.length) : path));
    if (file !== resolve(base) && !file.startsWith(resolve(base) + sep)) return void response.writeHead(403).end('outside');
    try {
      let stat = statSync(file);
      if (stat.isDirectory()) stat = statSync((file = join(file, 'index.html')));
      const type = types[extname(file)] ?? 'application/octet-stream';
      if (asDemo) response.setHeader('content-security-policy', extname(file) === '.html' ? pagePolicy() : workerPolicy);
      if (withProbe && extname(file) === '.html') {
        const html = readFileSync(file, 'utf8').replace(/<head>/i, '<head><script src="/probe.js"></script>');
        onFile?.(path, stat.size);
        return void response.writeHead(200, { 'content-type': type }).end(html);
      }
      if (without !== undefined && extname(file) === '.js')
        return void response.writeHead(200, { 'content-type': type }).end(`${lacking[without]}\n${readFileSync(file, 'utf8')}`);
      response.writeHead(200, { 'content-type': type, 'content-length': stat.size });
      onFile?.(path, stat.size);
      createReadStream(file).pipe(response);
    } catch {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('not found');
    }
  });
  // Otherwise fetch would reuse a connection that was closed while a test blocked the thread.
  server.keepAliveTimeout = 0;
  return new Promise((done, fail) => {
    server.on('error', fail);
    server.listen(port, '127.0.0.1', () =>
      done({
        url: `http://127.0.0.1:${server.address().port}/`,
        close: () => new Promise((closed) => (server.close(closed), server.closeAllConnections())),
      }),
    );
  });
}
