/** Sends raw requests, which no browser would send, to the server of `make demo`. */
import { strict as assert } from 'node:assert';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pagePolicy, workerPolicy } from '../../tools/policies.mjs';
import { serve } from '../../tools/serve.mjs';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { repository } from '../../wasm-tests/support/paths.mjs';

/** Sends bytes; resolves to { status, headers, body }, with status 0 if the connection is closed without an answer. */
function ask(port, bytes) {
  return new Promise((done, fail) => {
    const socket = connect(port, '127.0.0.1');
    const chunks = [];
    const timer = setTimeout(() => (socket.destroy(), fail(new Error(`no answer to ${JSON.stringify(String(bytes).slice(0, 60))}`))), 20000);
    socket.on('data', (chunk) => chunks.push(chunk));
    // The server may have answered before it closed the connection.
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(timer);
      const [head, ...body] = Buffer.concat(chunks).toString('latin1').split('\r\n\r\n');
      const [first, ...lines] = head.split('\r\n');
      const headers = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]));
      done({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(first)?.[1] ?? 0), headers, body: body.join('\r\n\r\n') });
    });
    socket.write(bytes);
    // Ends the connection if the server waits for more.
    const over = setTimeout(() => socket.end(), 2000);
    socket.on('close', () => clearTimeout(over));
  });
}

const get = (target, { method = 'GET', lines = [], host = 'localhost' } = {}) =>
  `${[`${method} ${target} HTTP/1.1`, `Host: ${host}`, 'Connection: close', ...lines].join('\r\n')}\r\n\r\n`;

/** Serves a page in a new folder, next to files that must not be accessible. */
async function withServer(run) {
  const folder = mkdtempSync(join(tmpdir(), 'attn-serve-'));
  const root = join(folder, 'page');
  mkdirSync(join(root, 'inside'), { recursive: true });
  writeFileSync(join(folder, 'secret.txt'), 'secret');
  writeFileSync(join(root, 'index.html'), '<!doctype html><title>page</title>');
  writeFileSync(join(root, 'embed.html'), '<!doctype html><title>map</title>');
  writeFileSync(join(root, 'text.txt'), '0123456789');
  writeFileSync(join(root, 'empty.txt'), '');
  writeFileSync(join(root, '.hidden'), 'secret');
  writeFileSync(join(root, 'worker.js'), '');
  symlinkSync('text.txt', join(root, 'link.txt'));
  symlinkSync('loop', join(root, 'loop'));
  const server = await serve({ port: 0, root });
  const { port } = new URL(server.url);
  try {
    await run((bytes) => ask(Number(port), bytes), folder);
    // The server must keep running.
    assert.equal((await ask(Number(port), get('/'))).status, 200, 'it serves on');
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Answers must not reveal paths or internal errors. */
function assertSilent({ body, headers }, folder, what) {
  const said = `${body} ${JSON.stringify(headers)}`;
  for (const part of [repository.replace(/\/$/, ''), folder, 'node_modules', '    at ', 'secret', 'Error'])
    assert.ok(!said.includes(part), `${what}: ${part} in ${said.slice(0, 300)}`);
}

test('the server of make demo rejects malformed requests without revealing paths, and keeps running', limit, () =>
  withServer(async (send, folder) => {
    const nonsense = {
      'GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n': [400],
      [get('http://[::1')]: [400],
      [get('http://')]: [400],
      [get('*', { method: 'OPTIONS' })]: [400, 405],
      [get('')]: [400],
      [get('/%')]: [400],
      [get('/%ff')]: [400],
      [get('/%00')]: [400],
      [get('/text.txt%00.html')]: [400],
      [get('/models/%00')]: [400],
      [get('/models/%0d%0aX-Injected:1')]: [400],
      [get('/..%5csecret.txt')]: [400],
      [get('/\\..\\secret.txt')]: [400, 404],
      [get('/../secret.txt')]: [404],
      [get('/%2e%2e/secret.txt')]: [404],
      [get('/%2e%2e%2fsecret.txt')]: [403, 404],
      [get('/inside/..%2f..%2fsecret.txt')]: [403, 404],
      [get('/models/..%2f..%2fetc/passwd')]: [403, 404],
      [get('/models/%2e%2e%2f%2e%2e%2fpackage.json')]: [403, 404],
      [get('//etc/passwd')]: [404],
      [get('///')]: [404],
      [get('/loop')]: [404, 500],
      [get('/.hidden')]: [404],
      [get('/inside')]: [404],
      [get('/inside/')]: [404],
      [get('/text.txt/')]: [404],
      [get('/text.txt/more')]: [404],
      [get(`/${'a'.repeat(5000)}`)]: [404],
      [get(`/${'a/'.repeat(4000)}`)]: [404],
      [get(`/${'a'.repeat(40000)}`)]: [414, 431],
      [get('/', { lines: [`X-Long: ${'a'.repeat(40000)}`] })]: [431],
      [get('/', { lines: Array.from({ length: 3000 }, (_, i) => `X-${i}: 1`) })]: [200, 431],
      [get('/', { method: 'POST', lines: ['Content-Length: 3'] }) + 'abc']: [405],
      [get('/', { method: 'PUT', lines: ['Content-Length: 1000000000'] })]: [405],
      [get('/', { method: 'DELETE' })]: [405],
      [get('/', { method: 'TRACE' })]: [405],
      [get('localhost:80', { method: 'CONNECT' })]: [0, 400, 405],
      [get('/', { method: 'NONSENSE' })]: [400],
      [get('/', { lines: ['Upgrade: websocket', 'Connection: Upgrade'] })]: [200],
      [get('/', { lines: ['Transfer-Encoding: chunked', 'Content-Length: 4'] })]: [400],
      [get('/', { host: 'example.org' })]: [403],
      [get('/', { host: 'localhost.example.org:8080' })]: [403],
      'GET / HTTP/9.9\r\n\r\n': [400, 505],
      'GET\r\n\r\n': [400],
      '\r\n\r\n\r\n': [0, 400],
      '\x16\x03\x01\x02\x00\x01\x00\x01': [400],
      '\0\0\0\0': [400],
    };
    for (const [bytes, allowed] of Object.entries(nonsense)) {
      const what = JSON.stringify(bytes.slice(0, 80));
      const answer = await send(Buffer.from(bytes, 'latin1'));
      assert.ok(allowed.includes(answer.status), `${what}: ${answer.status}`);
      assertSilent(answer, folder, what);
    }
  }),
);

test('the server of make demo answers range and conditional requests', limit, () =>
  withServer(async (send) => {
    const all = await send(get('/text.txt'));
    assert.deepEqual([all.status, all.body, all.headers['content-length']], [200, '0123456789', '10']);
    for (const target of ['/link.txt', '/text.txt?x=/../y', 'http://localhost/text.txt', '/inside/../text.txt'])
      assert.equal((await send(get(target))).body, all.body, target);
    for (const host of ['localhost:8080', '127.0.0.1', '[::1]:80', 'attn.localhost'])
      assert.equal((await send(get('/text.txt', { host }))).status, 200, host);
    const head = await send(get('/text.txt', { method: 'HEAD' }));
    assert.deepEqual([head.status, head.body, head.headers['content-length']], [200, '', '10']);
    assert.equal((await send(get('/empty.txt'))).status, 200);
    const range = async (text, ...lines) => {
      const { status, body, headers } = await send(get('/text.txt', { lines: [`Range: ${text}`, ...lines] }));
      return [status, status === 416 ? '' : body, headers['content-range']];
    };
    assert.deepEqual(await range('bytes=2-4'), [206, '234', 'bytes 2-4/10']);
    assert.deepEqual(await range('bytes=7-'), [206, '789', 'bytes 7-9/10']);
    assert.deepEqual(await range('bytes=-3'), [206, '789', 'bytes 7-9/10']);
    assert.deepEqual(await range('bytes=0-99'), [206, '0123456789', 'bytes 0-9/10']);
    for (const text of ['bytes=10-', `bytes=${'9'.repeat(400)}-`, 'bytes=-0']) assert.deepEqual(await range(text), [416, '', 'bytes */10'], text);
    for (const text of [
      'bytes=4-2',
      'bytes=-',
      'bytes=a-b',
      'bytes=1-2,4-5',
      'bytes=--1',
      'lines=1-2',
      'bytes',
      '-1',
      `bytes=${'0-1,'.repeat(2000)}`,
    ])
      assert.match(String(await range(text)), /^(200,0123456789,|416,,bytes \*\/10)$/, text.slice(0, 20));
    assert.equal((await send(get('/empty.txt', { lines: ['Range: bytes=0-0'] }))).status, 416);
    assert.equal((await range('bytes=2-4', `If-Range: ${all.headers.etag}`))[0], 206);
    assert.equal((await range('bytes=2-4', 'If-Range: "other"'))[0], 200, 'a part of another file');
    assert.equal((await send(get('/text.txt', { lines: [`If-None-Match: ${all.headers.etag}`] }))).status, 304);
  }),
);

test('the server of make demo sends each kind of file with its content security policy', limit, () =>
  withServer(async (send) => {
    const policy = async (target) => (await send(get(target))).headers['content-security-policy'];
    assert.equal(await policy('/'), pagePolicy());
    assert.equal(await policy('/worker.js'), workerPolicy);
    for (const target of ['/text.txt', '/nothing', '/%00', '/models/'])
      assert.equal(await policy(target), "default-src 'none'; frame-ancestors 'none'", target);
    for (const target of ['/', '/worker.js', '/text.txt']) assert.match(await policy(target), /frame-ancestors 'none'/);
    // Only this page may be framed.
    assert.equal(await policy('/embed.html'), pagePolicy({ framed: true }));
    assert.match(await policy('/embed.html'), /frame-ancestors \*$/);
    assert.equal((await send(get('/embed.html'))).headers['cross-origin-resource-policy'], 'cross-origin');
    assert.equal((await send(get('/'))).headers['cross-origin-resource-policy'], 'same-origin');
    const { headers } = await send(get('/testdata/models/sentiment/config.json'));
    assert.deepEqual([headers['content-type'], headers['x-content-type-options']], ['application/json', 'nosniff']);
  }),
);
