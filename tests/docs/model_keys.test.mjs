// Compares the tables of docs/guide/model-files.md with the readers in src/attn and web/lib, and with the keys of
// transformers' and sentence-transformers' classes (testdata/model_keys.json).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { globSync } from '../../tools/test/glob.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';

const read = (path) => readFileSync(at(path), 'utf8');

function tables() {
  const found = new Map();
  let table = new Map();
  for (const line of read('docs/guide/model-files.md').split('\n')) {
    const heading = /^## (.*)/.exec(line)?.[1];
    if (heading) found.set(heading, (table = new Map()));
    const [, keys, effect] = /^\| (.*) \| (.*) \|$/.exec(line) ?? [];
    if (!keys?.includes('`')) continue;
    const [, kind = ''] = /^(\w+): `/.exec(keys) ?? [];
    for (const [, key] of keys.matchAll(/`([^`]+)`/g)) table.set(kind ? `${kind}.${key}` : key, effect);
  }
  return found;
}

/** Strings that these files search or name, and that are no keys. */
const noKeys = { 'src/attn/models/fine_tuning.cpp': ['norm'], 'src/attn/models/text_model.cpp': ['index'] };

function keysRead(path) {
  const code = read(path).replace(/^\s*\/\/.*$/gm, '');
  const constants = new Map([...code.matchAll(/\*? ?\b(k[A-Z]\w*) = "(\w+)"/g)].map(([, name, key]) => [name, key]));
  const reader = /\b(?:has|find|is_null|whole|size|positive|number|flag|string|activation|object|only|only_false)\(("\w+"|k[A-Z]\w*)/g;
  const helper = /\b(?:must_be|must_be_empty|needed)\(\w+, ("\w+"|k[A-Z]\w*)/g;
  const member = /\bconfig\[("\w+")\]/g;
  const asked = [reader, helper, member].flatMap((pattern) => [...code.matchAll(pattern)].map(([, key]) => key));
  const listed = [...code.matchAll(/for \(const char\* const \w+ : \{([^}]*)\}/g)].flatMap(([, list]) => list.split(',').map((key) => key.trim()));
  const keys = [...asked, ...listed].map((key) => (key.startsWith('"') ? key.slice(1, -1) : constants.get(key)));
  return new Set(keys.filter((key) => key !== undefined && !noKeys[path]?.includes(key)));
}

const page = tables();
/** Keys that only JavaScript reads. */
const ofImages = page.get('preprocessor_config.json');
const imageProcessor = read('web/lib/src/model/image_processor.ts');
const everything = new Map([...page.values()].flatMap((table) => [...table].map(([key, effect]) => [key.replace(/^\w+\./, ''), effect])));

test('each effect begins with one of the words that the page explains', () => {
  for (const [key, effect] of everything) assert.match(effect, /^(obeyed|refused|noted|harmless)\b/, key);
});

test('each key that attn reads is on the page', () => {
  const ofSection = { rope_config: 'config.json', quantization_config: 'quantization_config of config.json' };
  // These have tables of their own, or rows for their members.
  const wholes = ['modules.json', 'sentence_transformers', 'quantization_config'];
  const files = globSync('src/attn/models/**/*.cpp');
  const found = new Set();
  for (const path of [...files, 'src/attn/io/tokenizer/tokenizer_file.cpp']) {
    const section = ofSection[/(\w+)\.cpp$/.exec(path)[1]];
    for (const key of keysRead(path)) {
      found.add(key);
      if (!wholes.includes(key)) assert.ok((section === undefined ? everything : page.get(section)).has(key), `${path} reads ${key}`);
    }
  }
  for (const [, key] of imageProcessor.matchAll(/\b(?:get|flag)\('(\w+)'/g)) assert.ok(ofImages.has(key), `image_processor.ts reads ${key}`);
  // By each way to read a key: as a string, as a constant, through a helper, in a list.
  for (const key of ['model_type', 'rope_theta', 'full_attention', 'low_freq_factor', 'num_bits', 'kv_cache_scheme']) assert.ok(found.has(key), key);
});

test('each key that is obeyed, refused or noted is in the code', () => {
  const code = ['src/attn/models/**/*.cpp', 'src/attn/models/**/*.hpp', 'src/attn/io/tokenizer/*.cpp']
    .flatMap((glob) => globSync(glob))
    .map(read)
    .join('\n');
  const inPackage = [...globSync('web/lib/src/tokenizer/*.ts'), 'web/lib/src/model/chat_files.ts'].map(read).join('\n');
  for (const [key, effect] of everything) {
    if (effect.startsWith('harmless') || key.includes('*') || ['summary_use_proj', 'chat_template'].includes(key)) continue;
    if (ofImages.has(key)) {
      assert.match(imageProcessor, new RegExp(`\\b${key}\\b`));
      continue;
    }
    assert.ok(code.includes(`"${key.split('.').at(-1)}"`), `${key} is not in the C++`);
  }
  for (const [key, effect] of page.get('tokenizer_config.json'))
    if (effect.startsWith('obeyed') && !key.includes('*') && !/_token$|model_input_names/.test(key))
      assert.ok(inPackage.includes(`'${key}'`), `${key} is not in the package`);
});

test("each key of transformers' and sentence-transformers' classes is on the page", () => {
  const { files } = JSON.parse(read('testdata/model_keys.json'));
  const missing = [];
  const check = (table, keys, prefix = '') => {
    for (const key of keys) if (!page.get(table).has(prefix + key)) missing.push(`${table}: ${prefix}${key}`);
  };
  assert.ok(Object.keys(files['config.json']).length >= 14);
  for (const keys of Object.values(files['config.json'])) check('config.json', keys);
  check('tokenizer_config.json', files['tokenizer_config.json']);
  for (const file of ['sentence_bert_config.json', 'config_sentence_transformers.json', 'modules.json']) check(file, files[file]);
  for (const module of ['Pooling', 'Dense', 'Normalize']) check("Modules' own config.json", files[module], `${module}.`);
  assert.deepEqual(missing, []);
});
