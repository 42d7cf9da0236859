// typescript-eslint's strictest rules with type information for TypeScript, ESLint's own rules for scripts. Run with
// node_modules/.bin/eslint .
import js from '@eslint/js';
import { defineConfig } from 'eslint/config';
import ts from 'typescript-eslint';

/** Globals of Node, and of functions that run in pages. */
const names = [
  ...['Buffer', 'URL', 'URLSearchParams', 'TextDecoder', 'TextEncoder', 'Response', 'Headers', 'AbortController', 'WebAssembly', 'SharedArrayBuffer'],
  ...['fetch', 'structuredClone', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'queueMicrotask'],
  ...['performance', 'crypto', 'console', 'process', 'navigator'],
];

/** Globals of the documentation's page scripts, and of functions that tests run there. */
const inPages = [
  ...['document', 'location', 'parent', 'customElements', 'addEventListener', 'removeEventListener'],
  ...['Blob', 'HTMLElement', 'MutationObserver', 'ResizeObserver'],
];
const inTestedPages = [
  ...inPages,
  ...['innerWidth', 'innerHeight', 'scrollY', 'getComputedStyle', 'requestAnimationFrame', 'crossOriginIsolated', 'PerformanceObserver'],
  ...[
    'Event',
    'ErrorEvent',
    'KeyboardEvent',
    'MouseEvent',
    'PointerEvent',
    'WheelEvent',
    'Touch',
    'TouchEvent',
    'DragEvent',
    'DataTransfer',
    'ImageData',
    'createImageBitmap',
  ],
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
  ...['attnProbe', 'axe'],
];

const patterns = { 'no-control-regex': 'off' };

const off = (...rules) => Object.fromEntries(rules.map((rule) => [rule.includes('/') ? rule : `@typescript-eslint/${rule}`, 'off']));

export default defineConfig(
  {
    ignores: [
      ...['**/dist/', '**/node_modules/', 'build/', '.setup/', 'models/', 'examples/', 'benchmarks/', 'web/page/public/'],
      ...['testdata/*', '!testdata/make/'],
      // Compiled by separate steps, as users would; and tests for Node only, which are in no project.
      ...['tests/packaging/**/*.ts', 'tools/check-embind.ts', 'wasm-tests/node/*.ts', 'wasm-tests/suites/cache_folder.ts'],
    ],
  },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [js.configs.recommended, ts.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // Allows ending a void function early with `return f()`.
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidOperator: true, ignoreVoidReturningFunctions: true },
      ],
      ...off('no-meaningless-void-operator'),
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { attributes: false } }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // `!` marks indices that a loop keeps in range.
      ...off('no-non-null-assertion'),
      // An async function without await turns exceptions into rejections.
      ...off('require-await'),
      // Methods of built-in prototypes are called on objects that shadow them; the package's methods need no `this`.
      ...off('unbound-method'),
      // Letters are code points here.
      ...off('no-misused-spread'),
      'no-undef': 'off',
      ...patterns,
    },
  },
  {
    files: ['web/lib/src/**/*.ts'],
    rules: {
      // Hosts may lack APIs that the DOM and Node types promise, and array elements may be missing.
      ...off('no-unnecessary-condition', 'no-unnecessary-type-assertion'),
    },
  },
  {
    files: ['web/page/src/**'],
    ignores: ['web/page/src/ui/size.ts'],
    rules: { 'no-restricted-globals': ['error', { name: 'ResizeObserver', message: 'Use observeSize, which waits for the next frame.' }] },
  },
  {
    files: ['wasm-tests/**/*.ts', 'web/page/tests/**/*.ts'],
    rules: {
      // Goldens and reports are JSON: unexpected values fail a test.
      ...off('no-unsafe-assignment', 'no-unsafe-member-access', 'no-unsafe-call', 'no-unsafe-argument', 'no-unsafe-return'),
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true, allowArray: true, allowNullish: true }],
      // Tests create bad input, engines lack features, and unused values hold objects for the garbage collector.
      ...off('no-dynamic-delete', 'no-base-to-string', 'no-unnecessary-condition', 'no-extraneous-class'),
      // Casts and type parameters document the type of a value.
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
