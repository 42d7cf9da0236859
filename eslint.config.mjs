// typescript-eslint's strictest rules, those that ask the compiler for types among them, over all TypeScript; ESLint's own over the scripts.
//   node_modules/.bin/eslint .
import js from '@eslint/js';
import { defineConfig } from 'eslint/config';
import ts from 'typescript-eslint';

/** What scripts find in Node, and what functions find that are run in pages. */
const names = [
  ...['Buffer', 'URL', 'URLSearchParams', 'TextDecoder', 'TextEncoder', 'Response', 'Headers', 'AbortController', 'WebAssembly', 'SharedArrayBuffer'],
  ...['fetch', 'structuredClone', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'queueMicrotask'],
  ...['performance', 'crypto', 'console', 'process', 'navigator'],
];

/** What scripts of the documentation find in pages, and functions that tests run there. */
const inPages = [
  ...['document', 'location', 'parent', 'customElements', 'addEventListener', 'removeEventListener'],
  ...['Blob', 'HTMLElement', 'MutationObserver', 'ResizeObserver'],
];
const inTestedPages = [
  ...inPages,
  ...['innerWidth', 'innerHeight', 'scrollY', 'getComputedStyle', 'requestAnimationFrame', 'crossOriginIsolated', 'PerformanceObserver'],
  ...['Event', 'ErrorEvent', 'KeyboardEvent', 'MouseEvent', 'PointerEvent', 'WheelEvent', 'Touch', 'TouchEvent', 'DragEvent', 'DataTransfer'],
  ...[
    'File',
    'HTMLAnchorElement',
    'Image',
    'FontFace',
    'XMLHttpRequest',
    'WebSocket',
    'EventSource',
    'Worker',
    'MessageChannel',
    'trustedTypes',
    'atob',
  ],
  // The first script of pages of support/server.mjs, and axe-core.
  ...['attnProbe', 'axe'],
];

/** Control characters are looked for to be taken out. */
const patterns = { 'no-control-regex': 'off' };

const off = (...rules) => Object.fromEntries(rules.map((rule) => [rule.includes('/') ? rule : `@typescript-eslint/${rule}`, 'off']));

export default defineConfig(
  {
    ignores: [
      ...['**/dist/', '**/node_modules/', 'build/', '.setup/', 'models/', 'examples/', 'benchmarks/', 'web/page/public/'],
      // Data, except for the scripts that write it.
      ...['testdata/*', '!testdata/make/'],
      // Compiled as their users would compile them, by steps of their own; and what is Vitest's, which is in no project.
      ...['tests/packaging/**/*.ts', 'tools/check-embind.ts', 'wasm-tests/node/*.ts'],
    ],
  },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [js.configs.recommended, ts.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // Sizes and counts are what most messages say.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // `return void …`, and `return` of what gives nothing in a function that gives nothing, end it early.
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidOperator: true, ignoreVoidReturningFunctions: true },
      ],
      ...off('no-meaningless-void-operator'),
      // Handlers of events show their own failures.
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { attributes: false } }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // `!` says that a loop keeps the index inside: tensors are nothing but such.
      ...off('no-non-null-assertion'),
      // What an async function throws is a rejection, which is what its callers wait for.
      ...off('require-await'),
      // Members of built-in prototypes are taken off to be called on what shadows its own; the package's need no `this`.
      ...off('unbound-method'),
      // A letter is a code point here.
      ...off('no-misused-spread'),
      // The compiler knows the names that there are.
      'no-undef': 'off',
      ...patterns,
    },
  },
  {
    files: ['web/lib/src/**/*.ts'],
    rules: {
      // Hosts lack what the types of the DOM and of Node say they have, and arrays what their index type says.
      ...off('no-unnecessary-condition', 'no-unnecessary-type-assertion'),
    },
  },
  {
    files: ['wasm-tests/**/*.ts', 'web/page/tests/**/*.ts'],
    rules: {
      // Goldens and reports are JSON: what does not fit fails a test.
      ...off('no-unsafe-assignment', 'no-unsafe-member-access', 'no-unsafe-call', 'no-unsafe-argument', 'no-unsafe-return'),
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true, allowArray: true, allowNullish: true }],
      // Bad input is made on purpose, engines lack things, and an object is forgotten by a value that nobody reads.
      ...off('no-dynamic-delete', 'no-base-to-string', 'no-unnecessary-condition', 'no-extraneous-class'),
      // A cast, or a type parameter, says what a value is taken for.
      ...off('no-unnecessary-type-assertion', 'no-unnecessary-type-parameters'),
      'no-sparse-arrays': 'off',
      'no-useless-assignment': 'off',
    },
  },
  {
    files: ['**/*.mjs'],
    extends: [js.configs.recommended],
    rules: patterns,
    languageOptions: { globals: Object.fromEntries(names.map((name) => [name, 'readonly'])) },
  },
  {
    files: ['docs/.vitepress/theme/*.mjs', 'docs/public/*.mjs'],
    languageOptions: { globals: Object.fromEntries(inPages.map((name) => [name, 'readonly'])) },
  },
  {
    files: ['wasm-tests/{page,browser,support}/**/*.mjs', 'tests/{docs,examples}/**/*.mjs', 'tools/page/*.mjs'],
    languageOptions: { globals: Object.fromEntries(inTestedPages.map((name) => [name, 'readonly'])) },
  },
);
