/**
 * Tests the npm package in environments with missing features: it works with the rest, or its error names the feature.
 */
import { strict as assert } from 'node:assert';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { attention, checkpoint, expected, project } from './consumer.mjs';

const { work, installed, install, node, script } = project('hosts');
before(install);

const without = (...names) => names.map((name) => `delete globalThis.${name};`).join('\n');
const files = ['config.json', 'tokenizer.json', 'model.safetensors'].map(
  (name) => `${JSON.stringify(name)}: readFileSync(${JSON.stringify(join(checkpoint, name))})`,
);

test('an engine without WebAssembly or without SIMD gets an ENVIRONMENT error', limit, async () => {
  const text = `import { load } from 'attn';\ntry { await load(); console.log('loaded'); } catch (error) { console.log(error.code, error.message); }`;
  assert.match(await node(['--jitless', script('engine.mjs', text)]), /^ENVIRONMENT .*WebAssembly/m);
  // No flag of Node disables SIMD, so an engine that refuses SIMD code is simulated.
  const without = `WebAssembly.validate = () => false;\nWebAssembly.compile = () => Promise.reject(new WebAssembly.CompileError('invalid opcode 0xfd'));\n${text.replace("import { load } from 'attn';", "const { load } = await import('attn');")}`;
  assert.match(await node([script('scalar.mjs', without)]), /^ENVIRONMENT .*SIMD/m);
});

test('importing the package reads no global that worklets, jsdom or servers lack', limit, async () => {
  const names = ['TextEncoder', 'TextDecoder', 'clearTimeout', 'setTimeout', 'URL', 'fetch', 'Worker', 'WebAssembly', 'navigator', 'performance'];
  const files = ['index.js', 'worker-web.js', 'service-worker.js'].map((name) => join(installed, 'dist', name));
  const throwing = names.map((name) => `Object.defineProperty(globalThis, '${name}', { get() { throw new Error('${name} was asked for'); } });`);
  const imports = files.map((file) => `await import(${JSON.stringify(file)});`);
  assert.equal(
    (await node([script('nothing.mjs', `${throwing.join('\n')}\n${imports.join('\n')}\nprocess.stdout.write('nothing');`)])).trim(),
    'nothing',
  );
});

test('load() falls back to one thread if threads cannot start, and notes the reason', limit, async () => {
  for (const [what, file, text, note] of [
    [
      'glue that a bundler spoiled',
      'attn-threads-node.mjs',
      `export default () => { throw new TypeError('h.startsWith is not a function'); };`,
      /startsWith/,
    ],
    ['glue that is not there', 'attn-threads-node.mjs', undefined, /attn-threads-node/],
    ['a .wasm that is not there', 'attn-simd-threads.wasm', undefined, /attn-simd-threads\.wasm/],
    ['another .wasm', 'attn-simd-threads.wasm', '<!doctype html>', /HTML/],
  ]) {
    const broken = join(work, 'broken');
    rmSync(broken, { recursive: true, force: true });
    cpSync(installed, broken, { recursive: true });
    rmSync(join(broken, 'dist', file));
    if (text !== undefined) writeFileSync(join(broken, 'dist', file), text);
    const program = `import { load } from ${JSON.stringify(join(broken, 'dist/node.js'))};
const attn = await load({ threads: 2, variant: 'simd' });
console.log(attn.info.threads, attn.info.notes.find((note) => note.startsWith('one thread')));
${attention}`;
    const [info, value] = (await node([script('broken.mjs', program)])).trim().split('\n');
    assert.match(info, /^1 one thread instead of 2: /, what);
    assert.match(info, note, what);
    assert.equal(value, expected, what);
  }
});

test('models run in an environment with the bare language, such as an AudioWorklet', limit, async () => {
  const text = `import { readFileSync } from 'node:fs';
const files = { ${files.join(', ')} };
const module = new WebAssembly.Module(readFileSync(${JSON.stringify(join(installed, 'dist/attn-simd.wasm'))}));
const write = (text) => process.stdout.write(text + '\\n');
${without('TextEncoder', 'TextDecoder', 'AbortController', 'MessageChannel', 'clearTimeout', 'setTimeout', 'fetch', 'URL', 'Blob', 'crypto')}
const index = await import(${JSON.stringify(join(installed, 'dist/index.js'))});
await index.load({ wasm: module }).catch((error) => write(error.code + ' ' + error.message));
const { load } = await import(${JSON.stringify(join(installed, 'dist/service-worker.js'))});
const attn = await load({ wasm: module, threads: 2 });
write(attn.info.notes[0]);
const model = await attn.loadModel(files);
write(String(model.embed(['é', 'b']) instanceof Promise) + ' ' + (await model.embed(['é', 'b'])).dims.join());
await attn.loadModel('http://localhost/').catch((error) => write(error.code + ' ' + error.message));
const [name] = attn.parseSafetensors(attn.writeSafetensors({ 'é\u{1f600}': { data: new Float32Array(1), dims: [1] } })).keys();
try { attn.softmax({ data: new Float32Array(2), dims: [3] }); } catch (error) { write(name + ' ' + error.code); }
write(['TextEncoder', 'TextDecoder', 'AbortController'].filter((name) => name in globalThis).join() + ' are globals');
${attention.replace('console.log(output.dims.join(), output.data[0].toFixed(6));', "write(output.dims.join() + ' ' + output.data[0].toFixed(6));")}`;
  const [lacks, note, dims, noFetch, ...others] = (await node([script('worklet.mjs', text)])).trim().split('\n');
  assert.match(lacks, /^ENVIRONMENT .*TextDecoder.*attn\/service-worker/);
  assert.equal(note, 'one thread instead of 2: workers cannot be started here');
  assert.equal(dims, 'true 2,32');
  assert.match(noFetch, /^ENVIRONMENT loadModel: this host has no fetch\. Pass the files/);
  assert.deepEqual(others, [`é\u{1f600} SHAPE`, ' are globals', expected]);
});

test('attn runs in Node without the Encoding Standard, as in the jsdom of Jest, and adds no global', limit, async () => {
  const text = `for (const name of ['TextEncoder', 'TextDecoder']) delete globalThis[name];
const before = Object.getOwnPropertyNames(globalThis).join();
(async () => {
  const attn = await require(${JSON.stringify(join(installed, 'dist/node.cjs'))}).load();
  ${attention}
  console.log(Object.getOwnPropertyNames(globalThis).join() === before);
})();`;
  assert.equal((await node([script('encoding.cjs', text)])).trim(), `${expected}\ntrue`);
});

test('a .wasm URL without an origin resolves against the page, and is an ENVIRONMENT error on a server', limit, async () => {
  const text = `import { readFile } from 'node:fs/promises';
const Whole = URL;
globalThis.URL = class extends Whole {
  constructor(url, base) {
    if (String(url).startsWith('./attn-')) return { href: '/media/' + url.slice(2) };
    super(url, base);
  }
};
const { load: onServer } = await import('attn');
await onServer().catch((error) => console.log(error.code, error.message));
globalThis.location = { href: 'http://page/of/an/app' };
globalThis.fetch = async (url) => (console.log(String(url)), new Response(await readFile(${JSON.stringify(join(installed, 'dist'))} + new Whole(url).pathname.slice(6))));
const { load } = await import(${JSON.stringify(join(installed, 'dist/index.js'))});
const attn = await load({ variant: 'simd' });${attention}`;
  const [server, url, result] = (await node([script('relative.mjs', text)])).trim().split('\n');
  assert.match(server, /^ENVIRONMENT load: attn-\w+\.wasm has no URL here .*serverExternalPackages: \['attn'\]/);
  assert.equal(url, 'http://page/media/attn-simd.wasm');
  assert.equal(result, expected);
});

test('an environment without fetch gets an ENVIRONMENT error with a remedy', limit, async () => {
  const text = `delete globalThis.fetch;
const { load } = await import(${JSON.stringify(join(installed, 'dist/index.js'))});
await load().catch((error) => console.log(error.code, error.message));`;
  assert.match(await node([script('fetchless.mjs', text)]), /^ENVIRONMENT load: this host has no fetch\. Pass a module or bytes as wasm.*jest/);
});

test('loadModel() fails with an ENVIRONMENT error if its scripts are missing', limit, async () => {
  const broken = join(work, 'broken');
  rmSync(broken, { recursive: true, force: true });
  cpSync(installed, broken, { recursive: true });
  for (const name of ['load_model.js', 'remote_model.js']) rmSync(join(broken, 'dist', name));
  for (const entry of ['node.js', 'worker-node.js']) {
    const program = `import { load } from ${JSON.stringify(join(broken, 'dist', entry))};
const attn = await load();
await attn.loadModel(process.argv[2]).catch((error) => console.log(error.code, error.message));
await attn.dispose();`;
    assert.match(await node([script('scriptless.mjs', program), checkpoint]), /^ENVIRONMENT loadModel: could not load scripts/, entry);
  }
});
