/** Runs the examples in examples/node that need no model. */
import { strict as assert } from 'node:assert';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { modelExamples } from './models.mjs';
import { output } from './run.mjs';

/** Expected output: these numbers, or the text of a file, which CTest compares with the C++ counterpart. */
const prints = {
  'attention.mjs': [/0\.0000 {2}0\.9820 {2}0\.0180/, /1\.9366 {2}6\.6831 {2}1\.5951/],
  'multi_head_attention.mjs': [/output \[ 1, 19, 384 \]/, /PyTorch: \d\.\d+e-[67]/],
};
const texts = Object.fromEntries(
  readdirSync(at('examples/expected')).map((name) => [name.replace('.txt', '.mjs'), readFileSync(at('examples/expected', name), 'utf8')]),
);

const known = [...Object.keys(prints), ...Object.keys(texts)].sort();

test('every example in examples/node has a test', limit, () =>
  assert.deepEqual(readdirSync(at('examples/node')).sort(), [...known, ...Object.keys(modelExamples)].sort()),
);

test('every Node example that needs no model has a C++ counterpart', limit, () =>
  assert.deepEqual(
    readdirSync(at('examples/cpp'))
      .filter((name) => name.endsWith('.cpp') && !['embed.cpp', 'executor.cpp', 'generate.cpp', 'views.cpp'].includes(name)) // CTest runs them alone
      .sort(),
    known.map((name) => name.replace('.mjs', '.cpp')),
  ),
);

for (const name of known)
  for (const flags of [[], ['--experimental-wasm-relaxed-simd']])
    test(`examples/node/${name} prints the expected numbers${flags.length ? ' with relaxed SIMD' : ''}`, limit, async () => {
      const text = await output(process.execPath, [...flags, at('examples/node', name)]);
      for (const pattern of prints[name] ?? []) assert.match(text, pattern);
      if (texts[name] !== undefined) assert.equal(text, texts[name]);
    });
