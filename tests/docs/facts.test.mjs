/** Compares lists and numbers in READMEs and guides with the sources and the test data. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import ts from 'typescript';
import { globSync } from '../../tools/test/glob.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';

const read = (path) => readFileSync(at(path), 'utf8');
const json = (path) => JSON.parse(read(path));
const inBackticks = (text) => [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
const sorted = (names) => [...new Set(names)].sort();
/** Cells of the rows of a Markdown table under a heading row that begins with `first`. */
function rowsOf(path, first) {
  const lines = read(path).split('\n');
  const start = lines.findIndex((line) => line.startsWith('|') && line.startsWith(`| ${first}`));
  assert.ok(start >= 0, `${path} has a table that begins with ${first}`);
  const end = lines.findIndex((line, i) => i > start && !line.startsWith('|'));
  return lines.slice(start + 2, end).map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  );
}

/** Names of the members of an interface in a declaration file. */
function membersOf(path, name) {
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest);
  const found = source.statements.find((each) => ts.isInterfaceDeclaration(each) && each.name.text === name);
  assert.ok(found, `${path} declares ${name}`);
  return found.members
    .map((member) => member.name)
    .filter((member) => ts.isIdentifier(member))
    .map(({ text }) => text);
}

test("the package's README lists each member of TextModel", () => {
  const rows = rowsOf('web/lib/README.md', '| |').filter(([kind]) => /\bmodels?$/.test(kind));
  assert.equal(rows.length, 4);
  const members = [
    ...membersOf('web/lib/src/attn.d.ts', 'TextModel'),
    ...membersOf('web/lib/src/tasks.d.ts', 'TextTasks'),
    ...membersOf('web/lib/src/gradients.d.ts', 'ModelGradients'),
  ];
  assert.deepEqual(sorted(rows.flatMap(([, names]) => inBackticks(names)).filter((name) => name !== 'loadModel')), sorted(members));
});

/** Cases of a file of reference numbers. */
function goldens(name) {
  const file = readFileSync(at(`testdata/${name}.safetensors`));
  const header = JSON.parse(file.subarray(8, 8 + Number(file.readBigUInt64LE())));
  return JSON.parse(header.__metadata__.cases).length;
}

const withFiles = (folder, expression) => readdirSync(at(folder)).filter((name) => expression.test(name));

test('the guide on exactness counts the cases of testdata', () => {
  const text = read('docs/guide/exactness.md').replace(/\s+/g, ' ');
  const checkpoints = withFiles('testdata/models', /^tiny-[\w-]+$/);
  const greedy = json('testdata/tasks/generated.json');
  const decoders = new Set(greedy.map(({ model }) => model));
  const { variants } = json('testdata/tokenizers/variants.json');
  const { runs, texts } = json('testdata/tokenizers/draws.json');
  const cases = withFiles('testdata/tokenizers', /^(tiny|all)-.*\.json$/).map((name) => json(`testdata/tokenizers/${name}`).cases.length);
  assert.equal(new Set(cases).size, 1);
  const words = { 9: 'nine', 11: 'eleven' };
  for (const phrase of [
    `${goldens('attention')} cases of attention`,
    `${goldens('multi_head_attention')} of multi-head attention`,
    `${goldens('functional')} of functions and of additive and general attention`,
    `${goldens('transformer')} of encoders, classifiers and embeddings`,
    `${goldens('backward') + goldens('layers_backward') + goldens('encoder_backward')} cases of gradients`,
    `${checkpoints.length} small checkpoints`,
    `${greedy.length / decoders.size} prompts with each of ${words[decoders.size]} checkpoints`,
    `${cases[0]} texts with each of ${words[cases.length]} checkpoints`,
    `${variants.length} tokenizers with one part each`,
    `${(runs.length * texts).toLocaleString('en').replace(',', ' ')} random texts with ${runs.length} tokenizers, ${runs.filter(({ variants }) => variants?.length > 1).length} of which`,
  ])
    assert.ok(text.includes(phrase), `exactness.md lacks "${phrase}"`);
});

/** The model_types of all families in src/attn/models. */
function modelTypes() {
  const declarations = globSync('src/attn/models/*.cpp').flatMap((path) =>
    [...read(path).matchAll(/constexpr std::string_view ([^;]*);/g)].flatMap(([, list]) => [...list.matchAll(/\bk(\w*Types\w*)\[\] = \{([^}]*)\}/g)]),
  );
  return declarations.flatMap(([, , list]) => [...list.matchAll(/"([\w-]+)"/g)].map(([, name]) => name));
}

test('the guide "Which model" lists the model_type of each family in C++, and no other', () => {
  const listed = rowsOf('docs/guide/models.md', '`model_type`').flatMap(([types]) => inBackticks(types).filter((name) => name !== 'alibi'));
  assert.ok(modelTypes().length > 20);
  assert.deepEqual(sorted(listed), sorted(modelTypes()));
});

test('the documents count as many families as C++ has', () => {
  const [, list] = /^extern const Family ([^;]*);/m.exec(read('src/attn/models/family.hpp'));
  const families = list.split(',').length;
  for (const [path, expression, named] of [
    ['README.md', /\(BERT, ModernBERT, GPT-2, Llama, Qwen and (\d+) more families\)/, 5],
    ['README.md', /^\| model families \| (\d+):/m, 0],
    ['README.md', /^\[(\d+) families\]/m, 0],
    ['web/lib/README.md', /There are (\d+) families/, 0],
    ['docs/guide/troubleshooting.md', /^\| (\d+) model families /m, 0],
  ]) {
    const [, count] = expression.exec(read(path)) ?? assert.fail(`${path} lacks ${expression}`);
    assert.equal(Number(count) + named, families, path);
  }
});

test('the documents give one size of the wheel', () => {
  const [, guide] = /^\| wheel, ([\d.]+ MB) \|/m.exec(read('docs/guide/releases.md'));
  assert.ok(read('python/README.md').includes(`the wheel is about ${guide}`), guide);
});
