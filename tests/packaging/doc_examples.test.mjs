/** The examples in the doc comments of the npm package's types: each compiles, runs, and prints what its comments document. */
import { strict as assert } from 'node:assert';
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import ts from 'typescript';
import { launch, missing } from '../../wasm-tests/browser/drivers.mjs';
import { limit, skipUnlessCi } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { startServer } from '../../wasm-tests/support/server.mjs';
import { prints } from '../docs/blocks.mjs';
import { project, tsc } from './consumer.mjs';

const { consumer, install, node, script } = project('doc_examples');
const [sources, compiled] = [join(consumer, 'examples'), join(consumer, 'compiled')];

function examplesOf(file) {
  const text = readFileSync(at('web/lib/src', file), 'utf8');
  return [...text.matchAll(/^ *\* ```ts\n([\s\S]*?)^ *\* ```$/gm)].map((match) => ({
    code: match[1].replaceAll(/^ *\* ?/gm, ''),
    name: `${file.replace('.d.ts', '')}${text.slice(0, match.index).split('\n').length}`,
    where: `${file}, line ${text.slice(0, match.index).split('\n').length}`,
  }));
}

/**
 * Returns the documented output of an example: the comment at the end of a line with console.log, and the comment lines directly below such a line.
 * A comment of one … stands for any lines.
 */
function documentedOutput(code) {
  const expected = [];
  let isOutput = false;
  for (const line of code.split('\n')) {
    const [, below] = /^\s*\/\/ (.*)$/.exec(line) ?? [];
    const [, atEnd] = /console\.log\(.*;.* \/\/ (.*)$/.exec(line) ?? [];
    if (atEnd ?? (isOutput && below)) expected.push(atEnd ?? below);
    isOutput = line.includes('console.log(') || (isOutput && below !== undefined);
  }
  return expected.join('\n');
}

function assertOutput(printed, code) {
  const expected = documentedOutput(code);
  assert.ok(expected, 'the example documents no output');
  assert.ok(prints(printed, expected), `the example printed\n${printed}\ninstead of\n${expected}`);
}

const files = readdirSync(at('web/lib/src')).filter((name) => name.endsWith('.d.ts'));
const examples = files.flatMap(examplesOf);

const needsPage = (code) => /(?<!\.)\bdocument\./.test(code);

function once(work) {
  let running;
  return () => (running ??= work());
}

const compile = once(async () => {
  mkdirSync(sources);
  for (const { name, code } of examples) writeFileSync(join(sources, `${name}.mts`), code);
  const compilerOptions = {
    strict: true,
    target: 'es2022',
    module: 'nodenext',
    lib: ['es2022', 'dom', 'esnext.disposable'],
    types: ['node'],
    skipLibCheck: true,
    typeRoots: [at('node_modules/@types')],
    outDir: compiled,
  };
  writeFileSync(join(sources, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.mts'] }));
  await node([tsc, '-p', sources]);
});

/** A module that imports the examples one after another; `outputs` has what each of them prints. */
const collect = (names, format) => `const outputs = {};
const { log } = console;
for (const name of ${JSON.stringify(names)}) {
  const lines = [];
  console.log = (...parts) => lines.push(${format});
  await import('./compiled/' + name + '.mjs').catch((error) => lines.push(error.stack ?? error));
  outputs[name] = lines.join('\\n');
}
console.log = log;
`;
const namesOf = (inPage) => examples.filter(({ code }) => needsPage(code) === inPage).map(({ name }) => name);

const runInNode = once(async () => {
  await compile();
  const program = `import { format } from 'node:util';\n${collect(namesOf(false), 'format(...parts)')}log(JSON.stringify(outputs));\nprocess.exit();\n`;
  return JSON.parse(await node([script('collect.mjs', program)]));
});

const runInChromium = once(async () => {
  await compile();
  const files = { attn: 'index', 'attn/element': 'element', 'attn/search-element': 'search-element' };
  const imports = Object.fromEntries(Object.entries(files).map(([entry, name]) => [entry, `./node_modules/attn/dist/${name}.js`]));
  const program = `${collect(namesOf(true), "parts.join(' ')")}globalThis.outputs = outputs;\n`;
  script('index.html', `<!doctype html><script type="importmap">${JSON.stringify({ imports })}</script><script type="module">${program}</script>`);
  const server = await startServer({ root: consumer, policy: null });
  const driver = await launch('chromium');
  try {
    await driver.open(server.url);
    for (let i = 0; i < 600 && !(await driver.evaluate(() => 'outputs' in globalThis)); ++i) await sleep(50);
    return await driver.evaluate(() => globalThis.outputs);
  } finally {
    await driver.close();
    await server.close();
  }
});

/** Functions and methods whose doc comment has no example. `[Symbol.dispose]` only calls dispose(). */
function withoutExample(file, text) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found = [];
  const visit = (node) => {
    const isFunction = ts.isFunctionDeclaration(node) || ts.isMethodSignature(node) || ts.isMethodDeclaration(node);
    const name = isFunction ? node.name.getText() : '';
    const comment = ts.getJSDocCommentsAndTags(node).map((part) => part.getFullText());
    if (isFunction && name !== '[Symbol.dispose]' && comment.length > 0 && !comment.some((each) => each.includes('```ts')))
      found.push(`${file}, line ${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}: ${name}`);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

before(() => {
  install();
  mkdirSync(join(consumer, 'models'));
  for (const folder of ['testdata/models', 'testdata/vision'])
    for (const name of readdirSync(at(folder))) symlinkSync(at(folder, name), join(consumer, 'models', name));
});

test('an example whose output differs from the documented output is detected', limit, () => {
  const code = 'console.log(a); // 1 …\nfor (const x of b) console.log(x);\n// 2\n// 3\n\n// a remark\n';
  assert.equal(documentedOutput(code), '1 …\n2\n3');
  assertOutput('1 0.5\n2\n3\n', code);
  assert.throws(() => assertOutput('1 0.5\n2\n4\n', code), /instead of/);
  assert.throws(() => assertOutput('1 0.5\n2\n', code), /instead of/);
  assert.throws(() => assertOutput('', 'f();\n'), /documents no output/);
});

test('every documented function and method of the types has an example', limit, () => {
  const text = 'interface A {\n  /** Counts. */\n  count(): number;\n  /** Frees. */\n  [Symbol.dispose](): void;\n}\n';
  assert.deepEqual(withoutExample('a.d.ts', text), ['a.d.ts, line 3: count']);
  assert.deepEqual(withoutExample('a.d.ts', text.replace('Counts.', 'Counts.\n * ```ts\n * count();\n * ```\n')), []);
  assert.deepEqual(
    files.flatMap((file) => withoutExample(file, readFileSync(at('web/lib/src', file), 'utf8'))),
    [],
  );
});

test('all examples in the doc comments compile', limit, async () => {
  assert.ok(examples.length >= 75, `${examples.length} examples`);
  await compile();
});

for (const { name, code, where } of examples)
  test(`${where}: the example prints the documented output`, limit, async (t) => {
    if (!needsPage(code)) return assertOutput((await runInNode())[name], code);
    const lacking = missing('chromium');
    if (lacking.length > 0) return skipUnlessCi(t, `${lacking.join(', ')} not found`);
    assertOutput((await runInChromium())[name], code);
  });
