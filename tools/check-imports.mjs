// node tools/check-imports.mjs: a folder of TypeScript or JavaScript imports only from folders below it, without
// cycles; types count like values. Exit 1 if there is a violation. First it checks that planted violations are found.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cruise } from 'dependency-cruiser';

const root = fileURLToPath(new URL('..', import.meta.url));
const folders = ['web/lib/src', 'web/page', 'wasm-tests', 'tests', 'tools', 'testdata/make', 'benchmarks', 'docs/.vitepress', 'docs/tools'];

const lib = 'web/lib/src/';
const page = 'web/page/src/';

/**
 * Folders of the package from the bottom, and the folders that each may import besides itself and the public types.
 */
const libLayers = {
  args: [],
  platform: ['args/'],
  tokenizer: ['args/', 'platform/'],
  static: ['args/', 'platform/', 'tokenizer/schema.ts', 'tokenizer/text_tokenizer.ts', 'model/safetensors_header.ts'],
  cache: ['args/', 'platform/'],
  element: ['search/search.ts', 'worker-web.ts'],
  lens: ['args/', 'platform/', 'tasks/largest.ts'],
  search: ['args/', 'platform/', 'model/safetensors.ts', 'model/safetensors_header.ts'],
  engine: ['args/', 'platform/'],
  model: ['args/', 'platform/', 'tokenizer/', 'engine/'],
  tasks: ['args/', 'platform/', 'tokenizer/', 'engine/', 'model/'],
  load: ['args/', 'platform/', 'tokenizer/', 'engine/', 'model/'],
  worker: ['args/', 'platform/', 'tokenizer/', 'engine/', 'model/', 'load/'],
  cli: [
    'args/',
    'platform/',
    'tokenizer/chunk.ts',
    'model/gguf/',
    'model/model_files.ts',
    'model/safetensors_header.ts',
    'lens/lens.ts',
    'search/search.ts',
    'search/prompts.ts',
    'node.ts',
  ],
};

const pageLayers = {
  styles: [],
  arithmetic: [],
  formats: [],
  model: ['formats/'],
  draw: [],
  check: ['arithmetic/', 'model/'],
  state: ['arithmetic/', 'formats/', 'model/', 'draw/', 'check/'],
  export: ['arithmetic/', 'formats/', 'draw/', 'state/'],
  lab: ['arithmetic/', 'formats/', 'state/'],
  ui: ['styles/', 'arithmetic/', 'formats/', 'draw/', 'state/', 'export/'],
  train: ['formats/', 'draw/', 'state/', 'export/', 'ui/'],
  sections: ['styles/', 'arithmetic/', 'formats/', 'model/', 'draw/', 'state/', 'export/', 'lab/', 'ui/', 'train/'],
};

const exceptions = {
  [`${lib}model/lazy_tasks.ts`]: ['tasks/'],
  [`${page}model/errors.ts`]: ['state/status.ts'],
  [`${page}draw/heatmap.ts`]: ['state/map_view.ts'],
  // The settings of a training run are part of the URL.
  [`${page}state/story_states.ts`]: ['train/state.ts'],
};

function layerRules(root, layers, all = []) {
  const rule = (name, from, allowed) => ({
    name: root + name,
    comment: `imports only from ${allowed.join(', ')}`,
    from,
    to: { path: `^${root}`, pathNot: allowed.map((each) => `^${root}${each}`) },
  });
  const rules = Object.entries(layers).flatMap(([name, below]) => {
    const allowed = [`${name}/`, ...below, ...all];
    const odd = Object.keys(exceptions).filter((file) => file.startsWith(`${root}${name}/`));
    return [
      rule(name, { path: `^${root}${name}/`, pathNot: odd.map((file) => `^${file}$`) }, allowed),
      ...odd.map((file) => rule(name, { path: `^${file}$` }, [...allowed, ...exceptions[file]])),
    ];
  });
  const names = Object.keys(layers).join('|');
  const newFolder = {
    name: `${root} has a new folder`,
    comment: 'it needs a line in tools/check-imports.mjs',
    from: { path: String.raw`^${root}(?!(?:${names})/)\w+/` },
    to: {},
  };
  return [...rules, newFolder];
}

const forbidden = [
  {
    name: 'circle',
    comment: 'imports itself through others',
    from: {},
    to: { circular: true },
  },
  ...layerRules(lib, libLayers, [String.raw`[\w-]+\.d\.ts$`]),
  ...layerRules(page, pageLayers),
  {
    name: 'web/lib',
    comment: 'imports nothing of the page and of tests',
    from: { path: '^web/lib/' },
    to: { path: '^(web/page|wasm-tests|tests|tools)/' },
  },
  {
    name: 'web/page',
    comment: "imports the package by its public names: 'attn', 'attn/worker' and so on",
    from: { path: '^web/page/' },
    to: { path: `^${lib}` },
  },
  {
    name: 'web/page/src',
    comment: 'imports nothing of tests',
    from: { path: `^${page}` },
    to: { path: '^(web/page/tests|wasm-tests|tests|tools)/' },
  },
  {
    name: 'wasm-tests/support',
    comment: 'imports no suite',
    from: { path: '^wasm-tests/support/' },
    to: { path: '^wasm-tests/suites/', pathNot: String.raw`/table\.mjs$` },
  },
];

async function check(base, some) {
  const { output } = await cruise(some, {
    baseDir: base,
    validate: true,
    ruleSet: { forbidden: forbidden.map((rule) => ({ severity: 'error', ...rule })) },
    tsPreCompilationDeps: true,
    doNotFollow: { path: ['node_modules', '/dist/'] },
    exclude: { path: ['/dist/', 'node_modules/'] },
  });
  return output;
}

const placeOf = ({ from, to, cycle }) => [from, ...(cycle?.map(({ name }) => name) ?? [to])].join(' -> ');

const planted = {
  circle: { 'web/page/src/a.ts': "import './b.js';", 'web/page/src/b.ts': "import './a.js';" },
  'circle of types': {
    'web/page/src/a.ts': "import type { B } from './b.ts'; export type A = B;",
    'web/page/src/b.ts': "export type B = typeof import('./a.ts');",
  },
  'web/lib/src/args': {
    'web/lib/src/args/a.ts': "import type { B } from '../engine/b.js'; export type A = B;",
    'web/lib/src/engine/b.ts': 'export type B = 1;',
  },
  'web/page/src/draw': {
    'web/page/src/draw/a.ts': "import type { B } from '../ui/b.ts'; export type A = B;",
    'web/page/src/ui/b.ts': 'export type B = 1;',
  },
  'web/page': { 'web/page/src/a.ts': "export * from '../../lib/src/args/b.js';", 'web/lib/src/args/b.ts': 'export const b = 1;' },
};

async function testRule() {
  for (const [what, files] of Object.entries(planted)) {
    const folder = mkdtempSync(join(tmpdir(), 'attn-imports-'));
    try {
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, name)), { recursive: true });
        writeFileSync(join(folder, name), text);
      }
      const { summary } = await check(folder, ['web']);
      const names = summary.violations.map(({ rule }) => rule.name);
      if (!names.includes(what.replace(' of types', ''))) throw new Error(`import rule: planted '${what}', found ${names.join() || 'nothing'}`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

await testRule();
const { summary } = await check(root, folders);
// One upward import can create dozens of cycles: print the shortest.
const circles = summary.violations.filter(({ cycle }) => cycle).sort((a, b) => a.cycle.length - b.cycle.length);
for (const violation of [...summary.violations.filter(({ cycle }) => !cycle), ...circles.slice(0, 5)]) {
  const { comment } = forbidden.find(({ name }) => name === violation.rule.name);
  console.log(`${violation.rule.name}: ${placeOf(violation)} (${comment})`);
}
if (circles.length > 5) console.log(`and ${circles.length - 5} longer circles`);
console.log(`import rule: ${summary.totalDependenciesCruised} imports in ${summary.totalCruised} files, ${summary.violations.length} broken`);
process.exitCode = summary.violations.length > 0 || summary.totalCruised === 0 ? 1 : 0;
