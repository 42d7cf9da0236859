import { fileURLToPath } from 'node:url';
import base from '../../wasm-tests/vitest.config.mjs';

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

export default {
  ...base,
  test: {
    ...base.test,
    include: (process.env.MUTANTS_SUITES ?? '*').split(',').map((name) => `suites/${name}.ts`),
    exclude: ['suites/index.ts'],
    // Also imports lazy modules before any test: otherwise the first test would be credited with code that runs once.
    setupFiles: ['node/setup.ts', at('web/lib/src/model/load_model.ts'), at('web/lib/src/worker/remote_model.ts')],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
};
