// The suites of the package in Node, some of them, where Stryker plants its mutants: in the sources.
import { fileURLToPath } from 'node:url';
import suites from '../../wasm-tests/vitest.config.mjs';

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

export default {
  ...suites,
  test: {
    ...suites.test,
    include: (process.env.MUTANTS_SUITES ?? '*').split(',').map((name) => `suites/${name}.ts`),
    exclude: ['suites/index.ts'],
    // What comes by import() too, before any test: else what it computes once would seem the first test's alone.
    setupFiles: [at('wasm-tests/node/setup.ts'), at('web/lib/src/model/load_model.ts'), at('web/lib/src/worker/remote_model.ts')],
  },
};
