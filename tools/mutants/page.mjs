// Mutants of what the page keeps and computes, against the page's own tests.
export default {
  mutate: ['web/page/src/state/**/*.ts'],
  testRunner: 'vitest',
  vitest: { configFile: 'tools/mutants/vitest.page.mjs', related: false },
  ignorePatterns: ['/build', '/models', '/src', '/native-tests', '/benchmarks', '/examples', '/.setup', '/tools/mutants/node_modules'],
  plugins: ['@stryker-mutator/vitest-runner'],
  tempDirName: 'build/mutants',
  reporters: ['clear-text', 'json'],
  jsonReporter: { fileName: 'build/mutants.json' },
  clearTextReporter: { allowColor: false, logTests: false },
  concurrency: 2,
  coverageAnalysis: 'perTest',
  // What is computed once at import would need all tests anew for each.
  ignoreStatic: true,
  allowConsoleColors: false,
};
