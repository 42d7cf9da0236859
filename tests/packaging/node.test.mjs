import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { attention, checkpoint, expected, project, read, reading } from './consumer.mjs';

const { installed, install, node, script } = project('node');
const programs = {
  'run.mjs': `import { load } from 'attn';\nconst attn = await load();${attention}`,
  'threads.mjs': `import { load } from 'attn';\nconst attn = await load({ threads: 2 });\nif (attn.info.threads !== 2) throw attn.info;${attention}`,
  'worker.mjs': `import { load } from 'attn/worker';\nconst attn = await load();${attention}`,
};
before(() => {
  install();
  for (const [name, text] of Object.entries(programs)) script(name, text);
});

test('attention runs in Node', limit, async () => assert.equal((await node(['run.mjs'])).trim(), expected));

test('attention runs in Node with two threads, and the process exits', limit, async () =>
  assert.equal((await node(['threads.mjs'])).trim(), expected),
);

// The helper's functions are removed once it waits for work, so that its first task traps.
const trapping = `
const { Instance } = WebAssembly;
WebAssembly.Instance = function (module, imports) {
  const table = () => Object.values(instance.exports).find((value) => value instanceof WebAssembly.Table);
  for (const functions of Object.values(imports))
    for (const [name, value] of Object.entries(functions))
      if (/performance\\./.test(String(value)))
        functions[name] = () => {
          for (let i = 0; i < table().length; ++i) table().set(i, null);
          return performance.timeOrigin + performance.now();
        };
  const instance = new Instance(module, imports);
  return instance;
};
await import(process.argv[2]);
`;
const trapped = `
import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';
const { Worker } = threads;
threads.Worker = class extends Worker {
  constructor(url, options) {
    super(new URL('./trapping.mjs', import.meta.url), { ...options, argv: [String(url)] });
  }
};
syncBuiltinESMExports();
const { load } = await import('attn');
const attn = await load({ threads: 2 });
const x = { data: new Float32Array(512 * 512), dims: [512, 512] };
const codes = [];
for (let i = 0; i < 1000 && codes.length < 2; ++i)
  try {
    attn.linear(x, x);
  } catch (error) {
    codes.push(error.code + ': ' + error.message);
  }
console.log(codes.join('\\n'));
attn.dispose();
`;
test('a trap in a helper thread ends the call and the instance with INTERNAL', limit, async () => {
  script('trapping.mjs', trapping);
  const out = await node([script('trapped.mjs', trapped)]);
  assert.match(out, /^INTERNAL: linear: a helper thread has stopped\nINTERNAL: linear: this instance has stopped/);
});

test('attention runs in Node through attn/worker, and the process exits', limit, async () =>
  assert.equal((await node(['worker.mjs'])).trim(), expected),
);

test('attention runs in Node with relaxed SIMD', limit, async () => {
  const out = await node([
    '--experimental-wasm-relaxed-simd',
    script(
      'relaxed.mjs',
      `import { load } from 'attn';\nconst attn = await load({ variant: 'relaxed' });\nif (attn.info.variant !== 'relaxed') throw attn.info;${attention}`,
    ),
  ]);
  assert.equal(out.trim(), expected);
});

test('a model loads from a folder in Node, on the main thread and in a worker', limit, async () => {
  for (const entry of ['attn', 'attn/worker']) {
    const name = script(`model-${entry.replace('/', '-')}.mjs`, `import { load } from '${entry}';\nconst attn = await load();${reading}`);
    assert.equal((await node(['--disallow-code-generation-from-strings', name, checkpoint])).trim(), read, entry);
  }
});

// Suites run the sources; a bundler may leave out the script that finds the end of what is read. The peer is the same text, read
// whole: about a hundred times as much work on any machine.
const truncating = `
import { readFile } from 'node:fs/promises';
import { Tokenizer } from 'attn/tokenizer';
const [, , folder] = process.argv;
const attn = await load();
const model = await attn.loadModel(folder);
const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': await readFile(folder + '/tokenizer.json') });
const leastTime = async (rounds, call) => {
  let least = Infinity;
  for (let i = 0; i < rounds; ++i) {
    const { user, system } = process.cpuUsage();
    await call();
    least = Math.min(least, process.cpuUsage().user + process.cpuUsage().system - user - system);
  }
  return least;
};
const sentence = { Chinese: '我们今天去学校学习，然后回家吃饭。', English: 'We went to school today, then home to eat. ' };
for (const [language, words] of Object.entries(sentence)) {
  const text = Buffer.from(words.repeat(Math.ceil(1_600_000 / words.length))).toString(); // one piece, not a rope
  const ratio = (await leastTime(1, () => tokenizer.encode(text))) / (await leastTime(4, () => model.embed(text)));
  console.log(language, ratio > 8 ? 'is not read to its end' : 'costs a ' + ratio.toFixed(1) + 'th of reading it whole');
}
await attn.dispose();
`;
test('the rest of a truncated text costs nothing', limit, async () => {
  for (const entry of ['attn', 'attn/worker']) {
    const name = script(`truncating-${entry.replace('/', '-')}.mjs`, `import { load } from '${entry}';${truncating}`);
    assert.equal(await node([name, checkpoint]), 'Chinese is not read to its end\nEnglish is not read to its end\n', entry);
  }
});

test('an uncaught error prints its message, its stack and one line of code', limit, async () => {
  for (const [name, call] of [
    ['folder', "await attn.loadModel('nope')"],
    ['argument', 'attn.softmax([1])'],
    ['worker', "await (await import('attn/worker')).load({ variant: 'mmx' })"],
  ]) {
    const failed = node([script(`uncaught-${name}.mjs`, `import { load } from 'attn';\nconst attn = await load();\n${call};`)]);
    const { stderr } = await failed.then(
      () => assert.fail(`${call} succeeded`),
      (error) => error.cause,
    );
    assert.match(stderr, /AttnError: (loadModel|softmax|load): .+/);
    assert.ok(stderr.length < 5000, `${call}: ${stderr.length} characters`);
  }
});

test('a process that never calls dispose() exits', limit, async () => {
  await node([
    script(
      'forgetful.mjs',
      `import { load } from 'attn';\nimport { load as inWorker } from 'attn/worker';\nawait load();\nawait load({ threads: 2 });\nawait (await inWorker()).info;\nconsole.log('end');`,
    ),
  ]);
});

test('attention runs where code generation from strings is disallowed', limit, async () => {
  for (const name of Object.keys(programs)) assert.equal((await node(['--disallow-code-generation-from-strings', name])).trim(), expected, name);
});

test('require() returns the same API as import', limit, async () => {
  for (const name of ['node.cjs', 'attn'])
    for (const worker of name === 'attn' ? ['attn/worker'] : ['worker-node.cjs']) {
      const from = (file) => JSON.stringify(name === 'attn' ? file : join(installed, 'dist', file));
      const text = `const { load, AttnError } = require(${from(name)});
const inWorker = require(${from(worker)});
(async () => {
for (const attn of [await load(), await load({ threads: 2 }), await inWorker.load()]) {${attention}}
const attn = await load();
${reading}
console.log((await load({ threads: 2 })).info.threads, AttnError === inWorker.AttnError, await load({ thread: 2 }).catch((error) => error instanceof AttnError));
})();`;
      const lines = (await node([script('required.cjs', text), checkpoint])).trim().split('\n');
      assert.deepEqual(lines, [expected, expected, expected, read, '2 true true'], name);
    }
});

test('info.version is the version in package.json', limit, async () => {
  const out = await node([script('version.mjs', `import { load } from 'attn';\nconst attn = await load();\nconsole.log(attn.info.version);`)]);
  assert.equal(out.trim(), JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')).version);
});

test('importing the package opens no handles and sets no globals', limit, async () => {
  const out = await node([
    script(
      'idle.mjs',
      `const before = process._getActiveHandles().length;\nawait import('attn');\nawait import('attn/worker');\nconsole.log(process._getActiveHandles().length - before, Object.keys(globalThis).filter((k) => /attn|module/i.test(k)).length);`,
    ),
  ]);
  assert.equal(out.trim(), '0 0');
});

test('the package exports its .wasm files by name, but no internal files', limit, async () => {
  const out = await node([
    script(
      'resolve.mjs',
      `import { readFile } from 'node:fs/promises';
import { load } from 'attn';
for (const variant of ['simd', 'relaxed', 'simd-threads', 'relaxed-threads']) {
  const bytes = await readFile(new URL(import.meta.resolve('attn/attn-' + variant + '.wasm')));
  if (bytes.readUInt32LE(0) !== 0x6d736100) throw new Error(variant);
}
const attn = await load({ wasm: new URL(import.meta.resolve('attn/attn-simd.wasm')) });
try { import.meta.resolve('attn/dist/instance.js'); console.log('inner files resolve'); } catch (error) { console.log(error.code); }
attn.dispose();`,
    ),
  ]);
  assert.equal(out.trim(), 'ERR_PACKAGE_PATH_NOT_EXPORTED');
});
