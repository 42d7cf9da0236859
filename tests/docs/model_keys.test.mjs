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

function keysRead(path) {
  const code = read(path).replace(/^\s*\/\/.*$/gm, '');
  const asked = [...code.matchAll(/\b(?:has|find|is_null|whole|size|positive|number|flag|string|activation|object|only|only_false)\("(\w+)"/g)];
  const listed = [...code.matchAll(/for \(const char\* const \w+ : \{([^}]*)\}/g)].flatMap(([, list]) => [...list.matchAll(/"(\w+)"/g)]);
  const indexed = [...code.matchAll(/\bconfig\["(\w+)"\]/g)];
  return new Set([...asked, ...listed, ...indexed].map(([, key]) => key));
}

const page = tables();
const everything = new Map([...page.values()].flatMap((table) => [...table].map(([key, effect]) => [key.replace(/^\w+\./, ''), effect])));

test('each effect begins with one of the words that the page explains', () => {
  for (const [key, effect] of everything) assert.match(effect, /^(obeyed|refused|noted|harmless)\b/, key);
});

test('each key that attn reads is on the page', () => {
  // The table lists whole sections for quantization_config and rope_parameters; for sizes the code has its own names.
  const sections = ['factor', 'partial_rotary_factor', 'mixed_b', 'rope_type', 'type', 'full_attention', 'sliding_attention', 'AutoModel', 'text'];
  const modules = ['modules.json', 'sentence_transformers'];
  const files = globSync('src/attn/models/*.cpp').filter((path) =>
    /(albert|bert|deberta|distilbert|electra|ernie|gemma|gpt2|gpt_neox|gte|llama|mpnet|roberta|model_config|sentence_config)\.cpp$/.test(path),
  );
  assert.ok(files.length > 12);
  for (const path of [...files, 'src/attn/io/tokenizer/tokenizer_file.cpp'])
    for (const key of keysRead(path)) if (![...sections, ...modules].includes(key)) assert.ok(everything.has(key), `${path} reads ${key}`);
});

test('each key that is obeyed, refused or noted is in the code', () => {
  const code = ['src/attn/models/*.cpp', 'src/attn/models/*.hpp', 'src/attn/io/tokenizer/*.cpp']
    .flatMap((glob) => globSync(glob))
    .map(read)
    .join('\n');
  const inPackage = [...globSync('web/lib/src/tokenizer/*.ts'), 'web/lib/src/model/chat_files.ts'].map(read).join('\n');
  for (const [key, effect] of everything) {
    if (effect.startsWith('harmless') || key.includes('*') || ['summary_use_proj', 'chat_template'].includes(key)) continue;
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
  check('sentence_bert_config.json', files['sentence_bert_config.json']);
  for (const module of ['Pooling', 'Dense', 'Normalize']) check("Modules' own config.json", files[module], `${module}.`);
  assert.deepEqual(missing, []);
});
