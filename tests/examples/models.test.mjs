import { strict as assert } from 'node:assert';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { limit, skipUnlessCi } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { modelExamples } from './models.mjs';
import { miniLm, output, refusal } from './run.mjs';

const bundled = ['align.mjs', 'classify.mjs', 'explain.mjs', 'fine_tune.mjs', 'generate.mjs'];

for (const [name, tests] of Object.entries(modelExamples)) {
  const program = (flags, args) => [process.execPath, [...flags, at('examples/node', name), ...args]];
  const hasModel = bundled.includes(name) || existsSync(miniLm);

  test(`${name} --help prints its usage`, limit, async () =>
    assert.match(await output(...program([], ['--help'])), new RegExp(`^node examples/node/${name}`)),
  );

  if (!hasModel)
    test(`${name} says how to fetch its model`, limit, async () =>
      assert.match((await refusal(...program([], []))).text, /config\.json is not there\n.*tools\/setup models/),
    );

  for (const [i, [sentence, run]] of Object.entries(tests).entries())
    for (const flags of i === 0 ? [[], ['--experimental-wasm-relaxed-simd']] : [[]])
      test(`${name} ${sentence}${flags.length ? ', with relaxed SIMD' : ''}`, limit, (t) => {
        if (!hasModel) return skipUnlessCi(t, 'models/all-MiniLM-L6-v2 is missing: tools/setup models');
        return run(
          (args = [], options) => output(...program(flags, args), options),
          (args) => refusal(...program(flags, args)),
          (text) => t.diagnostic(text),
        );
      });
}
