import { fileURLToPath } from 'node:url';
import { groups } from './groups.mjs';

const name = process.env.MUTANTS_GROUP;
const { suites } = groups[name];
if (suites) process.env.MUTANTS_SUITES = suites.join();

export default {
  testRunner: 'vitest',
  vitest: { configFile: `tools/mutants/vitest.${suites ? 'package' : 'page'}.mjs`, related: false },
  testRunnerNodeArgs: ['--expose-gc'],
  ignorePatterns: ['/build', '/models', '/src', '/native-tests', '/tests', '/benchmarks', '/examples', '/.setup', '/tools/mutants/node_modules'],
  plugins: ['@stryker-mutator/vitest-runner', fileURLToPath(new URL('words.mjs', import.meta.url))],
  ignorers: ['words'],
  tempDirName: 'build/mutants',
  reporters: ['json', 'dots'],
  jsonReporter: { fileName: `build/mutants-${name}.json` },
  timeoutMS: 10000,
  coverageAnalysis: 'perTest',
  // Mutants of code that runs at import would need all tests again.
  ignoreStatic: true,
  disableTypeChecks: false,
  allowConsoleColors: false,
};
