/**
 * Serves the checkpoints of testdata/models as /model/HOW/NAME/FILE, where HOW selects the server's behaviour. With
 * NAME `large-…`, 9 MB of metadata precede the weights. Of /model/HOW/run-ID/NAME/FILE the server records requests, which
 * /asked?run=ID returns; /renew?run=ID&file=FILE changes a file's ETag and date.
 */
import { readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { readSafetensorsHeader } from '../../web/lib/dist/node.js';

const weights = 'model.safetensors';

export const absentFile =
  /^error: Failed to load resource: .* status of 404 .*\/(modules|tokenizer|tokenizer_config|special_tokens_map|added_tokens|sentence_bert_config|config_sentence_transformers)\.json\)$/;

function enlarged(file, letters) {
  const { tensors, dataStart } = readSafetensorsHeader(file);
  let text = JSON.stringify({ ...tensors, __metadata__: { filler: 'x'.repeat(letters) } });
  text += ' '.repeat((8 - (Buffer.byteLength(text) % 8)) % 8);
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([size, Buffer.from(text), file.subarray(dataStart)]);
}

const html = (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<!DOCTYPE html>\n<html><title>App</title></html>\n');
const missing = (response) => response.writeHead(404, { 'content-type': 'text/plain' }).end('not found');
const whole = (response, bytes, headers = {}) =>
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes.length, ...headers }).end(bytes);
/**
 * Closes the connection after so many bytes, delayed so that they arrive, because some engines discard data that they
 * have not yet delivered.
 */
function cut(response, bytes, at, headers = {}, status = 200, stalls = false) {
  response.writeHead(status, { 'content-type': 'application/octet-stream', 'content-length': bytes.length, ...headers });
  response.write(bytes.subarray(0, at), () => stalls || setTimeout(() => response.destroy(), 150 + at / 10000));
}

/** Sends the first `end` bytes slowly; without the last one the download never ends. */
export async function trickle(response, bytes, headers, end = bytes.length - 1) {
  response.writeHead(200, { 'content-length': bytes.length, ...headers });
  for (let at = 0; at < end && !response.destroyed; at += 8192) {
    response.write(bytes.subarray(at, Math.min(at + 8192, end)));
    await sleep(20);
  }
  if (end === bytes.length) response.end();
}

const instead = new Map([
  ['pickle', [weights, 'pytorch_model.bin', 'PK']],
  ['sharded', [weights, 'model.safetensors.index.json', '{}']],
  ['onnx', [weights, 'onnx/model.onnx', '\b\x07']],
  ['vocabulary', ['tokenizer.json', 'vocab.txt', '[PAD]\n']],
]);

/** Answers for the weights; `state` belongs to one run. */
const odd = {
  html: (_q, r) => html(r),
  pointer: (_q, r) => whole(r, Buffer.from(`version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 123456\n`)),
  gzip: (_q, r, bytes) => whole(r, gzipSync(bytes)),
  zip: (_q, r) => whole(r, Buffer.from('PK\u0003\u0004 and so on')),
  'old-pickle': (_q, r) => whole(r, Buffer.from('80028a0a6cfc9c46f9206aa850192e', 'hex')),
  empty: (_q, r) => whole(r, Buffer.alloc(0)),
  half: (_q, r, bytes) => whole(r, bytes.subarray(0, bytes.length >> 1)),
  long: (_q, r, bytes) => whole(r, Buffer.concat([bytes, Buffer.alloc(100)])),
  cut: (_q, r, bytes) => cut(r, bytes, bytes.length >> 1),
  broken: (_q, r) => r.writeHead(503, 'busy').end(),
  forbidden: (_q, r) => r.writeHead(403).end(),
  gone: (_q, r) => missing(r),
  encoded: (_q, r, bytes) => whole(r, gzipSync(bytes), { 'content-encoding': 'gzip' }),
  silent: (_q, r, bytes) => r.writeHead(200).end(bytes),
  hang: (_q, r, bytes) => {
    r.writeHead(200, { 'content-length': bytes.length });
    r.write(bytes.subarray(0, bytes.length >> 1));
  },
  slow: (_q, r, bytes) => trickle(r, bytes, {}, bytes.length),
  // So that an abort comes in time however slow the machine is. Answers ranges at once.
  endless: (q, r, bytes) => {
    const headers = { etag: '"one"', 'accept-ranges': 'bytes' };
    const [, from] = /^bytes=(\d+)-$/.exec(q.headers.range ?? '') ?? [];
    if (from === undefined) return trickle(r, bytes, headers);
    const partial = { ...headers, 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` };
    return r.writeHead(206, partial).end(bytes.subarray(Number(from)));
  },
};

/** Servers whose connection breaks: at which parts of the file, and their answers to range requests. */
const breaking = {
  breaks: { at: [1 / 2], headers: { etag: '"one"' } },
  // Sends nothing more, but leaves the connection open.
  stalls: { at: [3 / 4], headers: { etag: '"one"' }, stalls: true },
  'breaks-twice': { at: [1 / 3, 2 / 3], headers: { etag: '"one"' } },
  dated: { at: [1 / 2], headers: { 'last-modified': 'Sat, 21 Nov 2026 12:00:00 GMT' } },
  weak: { at: [1 / 2], headers: { etag: 'W/"one"' } },
  'no-range': { at: [1 / 2], headers: { etag: '"one"' }, again: 'whole' },
  changes: { at: [1 / 2], headers: { etag: '"one"' }, again: 'changed' },
  lies: { at: [1 / 2], headers: { etag: '"one"' }, again: 'from the start' },
  swaps: { at: [1 / 2], headers: { etag: '"one"' }, again: 'of another file' },
  refuses: { at: [1 / 2], headers: { etag: '"one"' }, again: 'refused' },
  // These send everything, and are asked again.
  stays: { at: [], headers: { etag: '"one"' } },
  updates: { at: [1], headers: { etag: '"one"' }, again: 'changed' },
};

/** ETag and date headers by server; `state` counts from 0. */
const telling = {
  good: (state) => ({ etag: `"${state}"` }),
  'weak-tags': (state) => ({ etag: `W/"${state}"` }),
  'dated-files': (state) => ({ 'last-modified': new Date(Date.UTC(2026, 10, 21, 12, state)).toUTCString() }),
  // As copied by a tool that sets every date alike.
  'tagged-files': (state) => ({ etag: `"${state}"`, 'last-modified': 'Sat, 21 Nov 2026 12:00:00 GMT' }),
  unmarked: () => ({}),
};
/** Servers whose answer to HEAD identifies no version. */
const silentHeads = {
  'no-heads': (r) => r.writeHead(405).end(),
  'hanging-heads': () => {},
};

function breakingAnswer({ at, headers, again, stalls }, request, response, bytes, state) {
  const breakAt = at[state.answers++];
  const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
  const validator = headers.etag ?? headers['last-modified'];
  if (again === 'changed' && state.answers > at.length) return whole(response, bytes, { etag: '"two"' });
  const matches = request.headers['if-range'] === undefined || request.headers['if-range'] === validator;
  if (!range || !matches || again === 'whole') {
    if (!(breakAt < 1)) return whole(response, bytes, headers);
    return cut(response, bytes, Math.floor(bytes.length * breakAt), headers, 200, stalls);
  }
  if (again === 'of another file' && range) {
    const rest = Buffer.from(bytes.subarray(Number(range[1])));
    rest[rest.length - 1] ^= 1;
    const described = { etag: '"two"', 'content-range': `bytes ${range[1]}-${bytes.length - 1}/${bytes.length}`, 'content-length': rest.length };
    return response.writeHead(206, described).end(rest);
  }
  if (again === 'refused') return response.writeHead(416).end();
  const from = again === 'from the start' ? 0 : Number(range[1]);
  const rest = bytes.subarray(from);
  const partial = { ...headers, 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` };
  if (breakAt === undefined) return response.writeHead(206, { 'content-length': rest.length, ...partial }).end(rest);
  return cut(response, rest, Math.floor(bytes.length * breakAt) - from, partial, 206);
}

export function modelFolders(folder) {
  const runs = new Map();
  const large = new Map();
  const stateOf = (run) => {
    if (!runs.has(run)) runs.set(run, { answers: 0, asked: [], renewed: new Map() });
    return runs.get(run);
  };
  const read = (name, file) => {
    if (!name.startsWith('large-') || file !== weights) return readFileSync(join(folder, normalize(name.replace(/^large-/, '')), normalize(file)));
    if (!large.has(name)) large.set(name, enlarged(readFileSync(join(folder, normalize(name.slice(6)), weights)), 9e6));
    return large.get(name);
  };
  return (request, response) => {
    const url = new URL(request.url, 'http://localhost');
    const ofRun = () => stateOf(url.searchParams.get('run'));
    if (url.pathname === '/asked') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(ofRun().asked));
      return true;
    }
    if (url.pathname === '/renew') {
      const { renewed } = ofRun();
      const file = url.searchParams.get('file');
      renewed.set(file, (renewed.get(file) ?? 0) + 1);
      response.writeHead(204).end();
      return true;
    }
    const match = /^\/model\/([\w-]+)\/(?:run-([\w-]+)\/)?([\w-]+)\/([\w./-]+)$/.exec(decodeURIComponent(url.pathname));
    if (!match) return false;
    const [, how, run, name, file] = match;
    const state = run === undefined ? { answers: 0, asked: [], renewed: new Map() } : stateOf(run);
    const { method } = request;
    state.asked.push({
      method,
      file,
      search: url.search,
      range: request.headers.range,
      ifRange: request.headers['if-range'],
      authorization: request.headers.authorization,
    });
    response.setHeader('access-control-expose-headers', 'etag, content-range, content-encoding');
    // The package must not need a preflight.
    if (method === 'OPTIONS') return (response.writeHead(403).end(), true);
    if (method === 'HEAD' && silentHeads[how]) return (silentHeads[how](response), true);
    const [absent, there, content] = instead.get(how) ?? [];
    if (file === absent) return (missing(response), true);
    if (file === there) return (whole(response, Buffer.from(content)), true);
    if (how === 'html-config' && file === 'config.json') return (html(response), true);
    let bytes;
    try {
      bytes = read(name, file);
    } catch {
      return (how === 'one-page' ? html(response) : missing(response), true);
    }
    const renewed = state.renewed.get(file) ?? 0;
    if (renewed > 0) bytes = file === weights ? enlarged(bytes, renewed) : Buffer.concat([bytes, Buffer.from(' '.repeat(renewed))]);
    const described = (telling[how] ?? telling.good)(renewed);
    if (method === 'HEAD') return (whole(response, bytes, file === weights ? (breaking[how]?.headers ?? described) : described), true);
    const answer = file === weights && (odd[how] ?? (breaking[how] && ((q, r, b, s) => breakingAnswer(breaking[how], q, r, b, s))));
    if (answer) void Promise.resolve(answer(request, response, bytes, state)).catch(() => response.destroy());
    else if (how === 'encoded') odd.encoded(request, response, bytes);
    else whole(response, bytes, described);
    return true;
  };
}
