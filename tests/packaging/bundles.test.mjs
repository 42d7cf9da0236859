/** Tests the npm package bundled by Rolldown; tests/bundlers covers the other bundlers. */
import { strict as assert } from 'node:assert';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { brotliCompressSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { build as viteBuild } from 'vite';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { attention, checkpoint, expected, filesOf, project, read, reading } from './consumer.mjs';

const { work, consumer, installed, install, node, script } = project('bundles');
before(install);

const bundle = async (name, text, conditionNames, platform) => {
  script(`${name}.src.mjs`, text);
  const build = await rolldown({
    input: join(consumer, `${name}.src.mjs`),
    cwd: consumer,
    platform,
    resolve: { conditionNames },
    logLevel: 'silent',
    external: [/^node:/],
  });
  const { output } = await build.generate({ format: 'esm' });
  await build.close();
  return output;
};

test('a Rolldown bundle for Node runs with the .wasm passed as bytes', limit, async () => {
  const text = `import { readFile } from 'node:fs/promises';\nimport { load } from 'attn';\nconst attn = await load({ wasm: await readFile(process.argv[2]) });${attention}`;
  const output = await bundle('given', text, ['node', 'import', 'default'], 'node');
  mkdirSync(join(work, 'bundled'), { recursive: true });
  for (const chunk of output)
    if (chunk.type === 'chunk')
      writeFileSync(
        join(work, 'bundled', chunk.fileName.replace(/\.js$/, '.mjs')),
        chunk.code.replaceAll(/(from|import\()\s*("\.\/[^"]+)\.js"/g, '$1 $2.mjs"'),
      );
  const entry = output.find((chunk) => chunk.isEntry).fileName.replace(/\.js$/, '.mjs');
  assert.equal((await node([join(work, 'bundled', entry), join(installed, 'dist/attn-simd.wasm')], { cwd: work })).trim(), expected);
});

test('a Rolldown bundle keeps the code for models in a separate chunk', limit, async (t) => {
  const text = `import { readFile } from 'node:fs/promises';\nimport { load } from 'attn';\nconst attn = await load({ wasm: await readFile(process.argv[2]) });${reading}`;
  const output = (await bundle('reading', text, ['node', 'import', 'default'], 'node')).filter((chunk) => chunk.type === 'chunk');
  const [start] = output.filter((chunk) => chunk.isEntry);
  assert.ok(!start.code.includes('config.json'), 'the start knows nothing of models');
  const folder = join(work, 'reading');
  mkdirSync(folder, { recursive: true });
  for (const { fileName, code } of output)
    writeFileSync(join(folder, fileName.replace(/\.js$/, '.mjs')), code.replaceAll(/(from|import\()\s*("\.\/[^"]+)\.js"/g, '$1 $2.mjs"'));
  const name = join(folder, start.fileName.replace(/\.js$/, '.mjs'));
  assert.equal((await node([name, join(installed, 'dist/attn-simd.wasm'), checkpoint], { cwd: work })).trim(), read);
  const size = (chunks) => chunks.reduce((sum, { code }) => sum + brotliCompressSync(code).length, 0);
  t.diagnostic(`${size([start])} bytes of brotli at the start, ${size(output) - size([start])} for later`);
});

test('a bundler removes an unused import of the package', limit, async (t) => {
  const unused = await bundle(
    'unused',
    `import 'attn';\nimport { load } from 'attn';\nexport const nothing = 1;`,
    ['browser', 'import', 'default'],
    'browser',
  );
  const size = unused.reduce((a, chunk) => a + (chunk.code?.length ?? 0), 0);
  t.diagnostic(`${size} characters left`);
  assert.ok(size < 200, `${size} characters are left of an unused import`);
});

for (const [kind, start] of [
  ['import', "import { load } from 'attn';\nimport { load as remote } from 'attn/worker';\n"],
  ['require()', "const { load } = require('attn');\nconst { load: remote } = require('attn/worker');\n"],
])
  test(`a CommonJS bundle for Node of a program with ${kind} runs, with threads and in a worker`, limit, async () => {
    const name = `common-${kind.slice(0, 7)}`;
    const program = `(async () => {
for (const open of [load, remote]) {
  const attn = await open({ threads: 2 });
  console.log((await attn.info).threads);
  ${attention}
}
})();`;
    script(`${name}.${kind === 'import' ? 'mjs' : 'cjs'}`, start + program);
    const build = await rolldown({
      input: join(consumer, `${name}.${kind === 'import' ? 'mjs' : 'cjs'}`),
      cwd: consumer,
      platform: 'node',
      transform: { define: { 'import.meta.url': 'undefined' } },
      logLevel: 'silent',
    });
    const folder = join(work, name);
    await build.write({ format: 'cjs', dir: folder, entryFileNames: 'main.cjs', chunkFileNames: '[name].cjs' });
    await build.close();
    writeFileSync(join(folder, 'package.json'), '{ "type": "commonjs" }');
    for (const file of filesOf(join(installed, 'dist')))
      if (/\.(wasm|mjs|cjs)$/.test(file)) copyFileSync(join(installed, 'dist', file), join(folder, file));
    assert.equal(await node([join(folder, 'main.cjs')], { cwd: work }), `2\n${expected}\n2\n${expected}\n`);
  });

for (const [entry, count] of Object.entries({ attn: 4, 'attn/worker': 4, 'attn/inference': 4, 'attn/inference/worker': 4, 'attn/service-worker': 2 }))
  test(`a build of Vite that imports ${entry} carries ${count} .wasm files`, limit, async () => {
    const folder = join(consumer, `vite-${entry.replaceAll('/', '-')}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'index.html'), '<script type="module" src="./main.js"></script>');
    writeFileSync(join(folder, 'main.js'), `import { load } from '${entry}';\nload({ threads: 2 });\n`);
    await viteBuild({ root: folder, configFile: false, logLevel: 'silent', worker: { format: 'es' } });
    const files = [...filesOf(join(folder, 'dist'))].filter((name) => name.endsWith('.wasm'));
    assert.equal(files.length, count, files.join());
  });
