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
    `${variants.length} tokenizers that each test one component`,
    `${(runs.length * texts).toLocaleString('en').replace(',', ' ')} random texts with ${runs.length} tokenizers, ${runs.filter(({ variants }) => variants?.length > 1).length} of them`,
  ])
    assert.ok(text.includes(phrase), `exactness.md lacks "${phrase}"`);
});

/** The model_types of the families in these files. */
function modelTypes(files = globSync('src/attn/models/**/*.cpp')) {
  const declarations = files.flatMap((path) =>
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

/** What the documents call the families, by model_type; jina has BERT's model_type. */
const familyNames = {
  bert: 'BERT',
  distilbert: 'DistilBERT',
  roberta: 'RoBERTa',
  'xlm-roberta': 'XLM-RoBERTa',
  camembert: 'CamemBERT',
  'data2vec-text': 'data2vec',
  mpnet: 'MPNet',
  modernbert: 'ModernBERT',
  'deberta-v2': 'DeBERTa',
  ernie: 'ERNIE',
  electra: 'ELECTRA',
  albert: 'ALBERT',
  nomic_bert: 'NomicBERT',
  jina: 'Jina2',
  gte: 'GTE',
  new: 'GTE',
  gpt2: 'GPT-2',
  gpt_neox: 'GPT-NeoX',
  llama: 'Llama',
  mistral: 'Mistral',
  qwen2: 'Qwen2',
  qwen3: 'Qwen3',
  gemma2: 'Gemma2',
  gemma3_text: 'Gemma3',
};
const withoutVersion = (name) => name.replace(/^(Qwen|Gemma)\d$/, '$1');
/** The names in a list such as "BERT, data2vec-text, Qwen 2 and 3, and Jina 2". */
const namesIn = (list) =>
  list
    .replace(/\s+/g, ' ')
    .replace(/(\w+) (\d) and (\d)/g, '$1$2, $1$3')
    .replace(/ \(.*?\)|-text/g, '')
    .replace(/ (?=\d)/g, '')
    .split(/,? (?:and|or) |, /);

test('lists of families name each family in C++, and no other', () => {
  const decoders = globSync('src/attn/models/**/*.cpp').filter((path) => /\.text_generation = \{/.test(read(path)));
  const languageModels = new Set(modelTypes(decoders));
  const ofImages = new Set(modelTypes(globSync('src/attn/models/**/*.cpp').filter((path) => /\.image_classification = \{/.test(read(path)))));
  assert.equal(ofImages.size, 4);
  const types = [...modelTypes().filter((type) => !ofImages.has(type)), 'jina'];
  for (const type of types) assert.ok(familyNames[type], `${type} needs a name here`);
  const named = (isDecoder) => sorted(types.filter((type) => languageModels.has(type) === isDecoder).map((type) => familyNames[type]));
  const listIn = (path, expression) => namesIn((expression.exec(read(path)) ?? assert.fail(`${path} lacks ${expression}`))[1]);

  const page = 'web/page/src/model/errors.ts';
  assert.deepEqual(sorted(listIn(page, /^export const encoders =\s+'(.*)';$/m)), named(false));
  assert.deepEqual(sorted(listIn(page, /^export const decoders =\s+'(.*)';$/m)), named(true));
  const [, count] = /reads Hugging Face folders of (\w+) encoder families: /.exec(read('CHANGELOG.md').replace(/\s+/g, ' '));
  assert.equal(count, { 15: 'fifteen' }[named(false).length]);
  assert.deepEqual(sorted(listIn('CHANGELOG.md', /encoder families:\s([^.]*)\./)), named(false));
  assert.deepEqual(sorted(listIn('CHANGELOG.md', /^- Language models:\s([^.]*?) \(also as EmbeddingGemma\)/m)), named(true));
  const inPython = listIn('python/src/text_model.cpp', /Runs a text model from a Hugging Face folder:\s([^.]*?), with or without a head/);
  assert.deepEqual(sorted(inPython), sorted([...named(false), ...named(true)].map(withoutVersion)));

  const rows = rowsOf('docs/guide/generate.md', '`model_type`');
  assert.deepEqual(sorted(rows.flatMap(([list]) => inBackticks(list))), sorted(languageModels));
});

test('the documents agree on the sizes of a download', () => {
  const rows = Object.fromEntries(rowsOf('docs/guide/speed.md', 'a page').map(([page, , relaxed]) => [page, /^(\d+) kB$/.exec(relaxed)[1]]));
  const sizes = (path) =>
    [
      ...read(path)
        .replace(/\s+/g, ' ')
        .matchAll(/(?:A page downloads|, or|\*\*Small\*\*:|no model\) \|) (\d+) kB/g),
    ].map(([, size]) => size);
  const withModel = rows['with one'];
  assert.deepEqual(sizes('README.md'), [withModel, withModel, withModel]);
  assert.deepEqual(sizes('web/lib/README.md'), [rows['without a model'], withModel]);
  const ofTokenizer = ['web/lib/README.md', 'docs/guide/tokenizer.md'].map(
    (path) => /`attn\/tokenizer` is a separate file \((\d+) kB\)/.exec(read(path))[1],
  );
  assert.equal(ofTokenizer[0], ofTokenizer[1]);
});

test('the documents give one size of the wheel', () => {
  const [, guide] = /^\| wheel, ([\d.]+ MB) \|/m.exec(read('docs/guide/releases.md'));
  assert.ok(read('python/README.md').includes(`the wheel is about ${guide}`), guide);
});
