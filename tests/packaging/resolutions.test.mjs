/** Type-checks the declarations of every entry of the npm package under each module resolution. */
import { strict as assert } from 'node:assert';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, test } from 'node:test';
import ts from 'typescript';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { project } from './consumer.mjs';

const { consumer, installed, install } = project('resolutions');
let entries;
before(() => {
  install();
  const { exports } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
  entries = Object.keys(exports)
    .filter((key) => !key.endsWith('.json'))
    .map((key) => key.replace('.', 'attn'));
});

const { ModuleKind, ModuleResolutionKind, ScriptTarget } = ts;
const resolutions = {
  node16: { module: ModuleKind.Node16, moduleResolution: ModuleResolutionKind.Node16 },
  node18: { module: ModuleKind.Node18, moduleResolution: ModuleResolutionKind.Node16 },
  nodenext: { module: ModuleKind.NodeNext, moduleResolution: ModuleResolutionKind.NodeNext },
  bundler: { module: ModuleKind.Preserve, moduleResolution: ModuleResolutionKind.Bundler },
  node10: { module: ModuleKind.CommonJS, moduleResolution: ModuleResolutionKind.Node10 },
};
const libraries = {
  'with lib dom': ['lib.es2022.d.ts', 'lib.dom.d.ts'],
  'with lib webworker': ['lib.es2022.d.ts', 'lib.webworker.d.ts'],
  'without lib dom': ['lib.es2022.d.ts'],
};

/** Caches parsed libraries by module format, because all programs read the same ones. */
const parsed = new Map();
function hostOf(options) {
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, given, ...others) => {
    if (dirname(name) !== dirname(ts.getDefaultLibFilePath(options))) return getSourceFile(name, given, ...others);
    const key = `${name} ${given.impliedNodeFormat}`;
    if (!parsed.has(key)) parsed.set(key, getSourceFile(name, given, ...others));
    return parsed.get(key);
  };
  return host;
}

function programOf(files, compilerOptions) {
  const options = { strict: true, noEmit: true, target: ScriptTarget.ES2022, types: [], skipLibCheck: false, ...compilerOptions };
  return ts.createProgram({ rootNames: files.map((file) => join(consumer, file)), options, host: hostOf(options) });
}

const diagnose = (files, compilerOptions) =>
  ts.getPreEmitDiagnostics(programOf(files, compilerOptions)).map(({ file, start, code, messageText }) => {
    const line = file && file.getLineAndCharacterOfPosition(start).line + 1;
    return `${file?.fileName.replace(/^.*\/node_modules\//, '') ?? ''}:${line} TS${code} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });

for (const [resolution, options] of Object.entries(resolutions))
  for (const [library, lib] of Object.entries(libraries))
    test(`every entry type-checks from ESM and CommonJS, with moduleResolution ${resolution} and ${library}`, limit, () => {
      // The elements extend HTMLElement, so their declarations include lib dom, which conflicts with lib webworker.
      // Resolution node10 ignores `exports`.
      const known = entries.filter(
        (name) => !(/element$/.test(name) && library !== 'with lib dom') && !(name.endsWith('.wasm') && resolution === 'node10'),
      );
      assert.ok(known.length >= 4, known.join());
      const imported = known.map((name, i) => `import * as entry${i} from '${name}';\nexport type Of${i} = typeof entry${i};\n`);
      const required = known.map((name, i) => `import entry${i} = require('${name}');\nexport type Of${i} = typeof entry${i};\n`);
      writeFileSync(join(consumer, 'all.mts'), imported.join(''));
      writeFileSync(join(consumer, 'all.cts'), required.join(''));
      assert.deepEqual(diagnose(['all.mts', 'all.cts'], { ...options, lib }), []);
    });

test('attn/worker exports every type of attn', limit, () => {
  // Parts of Attn and TextModel, which attn/worker declares with promises.
  const parts = ['Gradients', 'ModelGradients', 'TextTasks'];
  writeFileSync(join(consumer, 'names.mts'), "import * as attn from 'attn';\nimport * as worker from 'attn/worker';\nexport { attn, worker };\n");
  const program = programOf(['names.mts'], { ...resolutions.nodenext, lib: libraries['with lib dom'] });
  const checker = program.getTypeChecker();
  const namesOf = (file) => {
    const symbol = checker.getSymbolAtLocation(program.getSourceFile(join(installed, 'dist', file)));
    return checker.getExportsOfModule(symbol).map(({ name }) => name);
  };
  const ofWorker = new Set(namesOf('worker.d.ts'));
  assert.deepEqual(
    namesOf('attn.d.ts').filter((name) => !ofWorker.has(name) && !parts.includes(name)),
    [],
  );
});

test('exported bytes are what new Blob takes, and a response for fetch', limit, () => {
  const text = `import type { Attn, TextModel } from 'attn';
import type { Attn as Remote } from 'attn/worker';
export const blob = (attn: Attn) => new Blob([attn.writeSafetensors({})]);
export const later = async (attn: Remote) => new Response(await attn.writeSafetensors({}));
export const files = async (model: TextModel) => Object.values(await model.export()).map((bytes) => new Blob([bytes]));
`;
  writeFileSync(join(consumer, 'bytes.mts'), text);
  assert.deepEqual(diagnose(['bytes.mts'], { ...resolutions.nodenext, lib: libraries['with lib dom'] }), []);
});

/** The types by which each framework checks JSX. Preact's are its own; the others are reduced to their structure. */
const frameworks = {
  preact: undefined,
  react: {
    'index.d.ts': `export interface HTMLAttributes<T> { className?: string | undefined; onFocus?: (event: T) => void }
export type DetailedHTMLProps<E, T> = E & { ref?: T };
export namespace JSX { interface Element { type: string } interface IntrinsicElements { p: HTMLAttributes<object> } }`,
    'jsx-runtime.d.ts': `import * as React from './index.js';
export namespace JSX { interface Element extends React.JSX.Element {} interface IntrinsicElements extends React.JSX.IntrinsicElements {} }`,
  },
  'solid-js': {
    'index.d.ts': `export type { JSX } from './jsx-runtime.js';`,
    'jsx-runtime.d.ts': `export namespace JSX { interface Element {} interface HTMLAttributes<T> { class?: string; ref?: T }
interface IntrinsicElements { p: HTMLAttributes<object> } }`,
  },
};

for (const [framework, files] of Object.entries(frameworks))
  test(`attention-map, attention-image and attn-search are elements of JSX with ${framework}`, limit, () => {
    const folder = join(consumer, 'node_modules', framework);
    mkdirSync(folder, { recursive: true });
    if (files) writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: framework, types: './index.d.ts' }));
    else cpSync(at('node_modules', framework), folder, { recursive: true });
    for (const [name, text] of Object.entries(files ?? {})) writeFileSync(join(folder, name), text);
    const text = `import type { AttentionMap } from 'attn/element';
import type { AttnSearch } from 'attn/search-element';
export const map = <attention-map tokens={['a', 'b']} weights={[[1, 0], [0, 1]]} scale="row" threshold="0.1" ${framework === 'react' ? 'className' : 'class'}="wide" />;
// @ts-expect-error unknown scale
export const wrong = <attention-map scale="column" />;
// @ts-expect-error unknown attribute
export const unknown = <attention-map depth={1} />;
export type Map = AttentionMap;
export const image = <attention-image src="cat.png" grid={[2, 2]} weights={[[0, 1], [1, 0]]} head={1} />;
// @ts-expect-error three sizes
export const wrongGrid = <attention-image grid={[2, 2, 2]} />;
// @ts-expect-error unknown attribute
export const wrongImage = <attention-image tokens={['a']} />;
export const search = <attn-search src="index.safetensors" model="model" k={3} hrefOf={({ id }) => \`#\${id}\`} ${framework === 'react' ? 'className' : 'class'}="wide" />;
// @ts-expect-error unknown attribute
export const wrongSearch = <attn-search source="index.safetensors" />;
export type Search = AttnSearch;
`;
    writeFileSync(join(consumer, `${framework}.tsx`), text);
    const jsx = { jsx: ts.JsxEmit.ReactJSX, jsxImportSource: framework };
    assert.deepEqual(diagnose([`${framework}.tsx`], { ...resolutions.bundler, ...jsx, lib: libraries['with lib dom'] }), []);
  });
