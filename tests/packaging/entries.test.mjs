import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { brotliCompressSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { checkpoint, filesOf, project } from './consumer.mjs';

const consumer = project('entries');
before(() => consumer.install());

test('attn/element is a small self-contained file with types that can be imported without a page', limit, async (t) => {
  const code = readFileSync(join(consumer.installed, 'dist/element.js'));
  const size = brotliCompressSync(code).length;
  t.diagnostic(`${size} bytes of brotli`);
  assert.ok(size < 9000, `${size} bytes`);
  // A bundler leaves out the other element.
  const entry = consumer.script('map.mjs', `export { defineAttentionMap } from 'attn/element';`);
  const bundle = await (await rolldown({ input: join(consumer.consumer, entry) })).generate({ minify: true });
  const map = brotliCompressSync(bundle.output[0].code).length;
  t.diagnostic(`${map} bytes for <attention-map> alone`);
  assert.ok(map < 6500, `${map} bytes`);
  assert.doesNotMatch(code.toString(), /\bimport\b|\bfetch\(|WebAssembly|innerHTML/, 'it loads nothing, and writes no HTML');
  for (const name of filesOf(join(consumer.installed, 'dist')))
    if (/\.(js|cjs|mjs)$/.test(name) && !name.startsWith('element'))
      assert.doesNotMatch(readFileSync(join(consumer.installed, 'dist', name), 'utf8'), /attention-map/, `${name} knows nothing of it`);
  const figure = "figureToSvg(mapFigure({ tokens: ['a', 'b'], weights: [0.9, 0.1, 0.4, 0.6], title: 'T' }))";
  const program = `const svg = ${figure};\nconsole.log(svg.match(/<rect /g).length, svg.includes('#fde725'), svg.includes('>.90<'));`;
  assert.equal(
    (await consumer.node([consumer.script('element.mjs', `import { figureToSvg, mapFigure } from 'attn/element';\n${program}`)])).trim(),
    '5 true true',
  );
  const declared = [...readFileSync(join(consumer.installed, 'dist/element.d.ts'), 'utf8').matchAll(/^export (?:class|function) (\w+)/gm)];
  const names = [...new Set(declared.map(([, name]) => name))].sort();
  const exported = consumer.script('names.mjs', `import * as element from 'attn/element';\nconsole.log(Object.keys(element).join());`);
  assert.deepEqual((await consumer.node([exported])).trim().split(','), names, 'what the types declare');
  const required = consumer.script('element.cjs', `const { figureToSvg, mapFigure } = require('attn/element');\n${program}`);
  assert.equal((await consumer.node([required])).trim(), '5 true true');
  const typed = `import type { ImageInputs, Tensor } from 'attn';
import { type AttentionImage, defineAttentionImage, defineAttentionMap, linesFigure, type Figure, type AttentionMap } from 'attn/element';
const define: (name?: string) => typeof AttentionMap = defineAttentionMap;
const map: AttentionMap = document.createElement('attention-map');
map.tokens = ['a', 'b'];
map.weights = { data: Float32Array.of(1, 0, 0, 1), dims: [1, 2, 2] };
map.weights = [[1, 0], Float32Array.of(0, 1)];
map.addEventListener('attention-cell', ({ detail: { row, weight } }) => [row.toFixed(), weight.toFixed()]);
const lines: Figure = linesFigure({ tokens: map.tokens, weights: [1, 0, 0, 1] });
// @ts-expect-error: a number is not a token
map.tokens = [1];
// @ts-expect-error: unknown scale
map.scale = 'column';
const defineImage: (name?: string) => typeof AttentionImage = defineAttentionImage;
const image: AttentionImage = document.createElement('attention-image');
/** What a model returns fits, and any picture of a page. */
export function show({ grid, crops }: ImageInputs, attentions: Tensor[], picture: ImageData | HTMLImageElement | File | ImageBitmap): void {
  Object.assign<AttentionImage, Partial<AttentionImage>>(image, { image: picture, grid, crop: crops[0], weights: attentions[0], head: undefined });
  // @ts-expect-error: a name is not a picture
  image.image = 'cat.png';
}
export { define, defineImage, lines };
`;
  consumer.script('element.ts', typed);
  await consumer.typeCheck('element.ts');
});

test('attn/search-element has types, loads nothing by itself, and can be imported without a DOM', limit, async () => {
  const program = 'console.log(typeof defineAttnSearch);';
  const imported = consumer.script('search_element.mjs', `import { defineAttnSearch } from 'attn/search-element';\n${program}`);
  const required = consumer.script('search_element.cjs', `const { defineAttnSearch } = require('attn/search-element');\n${program}`);
  for (const script of [imported, required]) assert.equal((await consumer.node([script])).trim(), 'function');
  const code = readFileSync(join(consumer.installed, 'dist/search-element.js'), 'utf8');
  assert.deepEqual(code.match(/\bimport\b[^)]*\)/g), ['import("./worker-web.js")', 'import("./search.js")']);
  const typed = `import { defineAttnSearch, type AttnSearch } from 'attn/search-element';
const define: (name?: string) => typeof AttnSearch = defineAttnSearch;
const search: AttnSearch = document.createElement('attn-search');
search.hrefOf = ({ document: { path }, text }) => \`/\${String(path)}?\${text.length}\`;
const loaded: Promise<void> = search.load();
// @ts-expect-error: it returns an address
search.hrefOf = () => 5;
export { define, loaded };
`;
  consumer.script('search_element.ts', typed);
  await consumer.typeCheck('search_element.ts');
});

test('attn/tokenizer is a self-contained file with types that needs no WebAssembly', limit, async (t) => {
  const code = readFileSync(join(consumer.installed, 'dist/tokenizer.js'));
  const size = brotliCompressSync(code).length;
  t.diagnostic(`${size} bytes of brotli`);
  assert.doesNotMatch(code.toString(), /\bimport\s*[({*"'`]|\bfetch\(|WebAssembly\.|new Worker/, 'it loads nothing');
  const program = `const { readFileSync } = process.getBuiltinModule?.('node:fs') ?? globalThis.fs;
const read = (name) => readFileSync(process.argv.at(-1) + '/' + name);
const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': read('tokenizer.json'), 'tokenizer_config.json': read('tokenizer_config.json').toString() });
const { inputIds, tokens, dims, truncated } = tokenizer.encode(['she is good', 'she is good, she is'], { maxLength: 5 });
console.log(tokens[0].join(' '), dims.join(), truncated.join(), tokenizer.decode(inputIds.subarray(0, 5), { skipSpecialTokens: true }));
const bare = tokenizer.encode('she is good', { maxLength: 2, addSpecialTokens: false, truncationSide: 'left' });
console.log(bare.tokens[0].join(' '), tokenizer.idToToken(tokenizer.tokenToId('she')), tokenizer.vocabularySize);
for (const wrong of [() => Tokenizer.fromFiles({}), () => Tokenizer.fromFiles({ 'tokenizer.jsn': '' }), () => Tokenizer.fromFiles({ 'tokenizer.json': '[' }),
  () => tokenizer.encode('a', { maxLength: 0 }), () => tokenizer.encode('a b', { maxLength: 1, truncation: false }), () => new Tokenizer()])
  try { console.log(wrong()); } catch (error) { console.log(error instanceof AttnError, error.code, error.message.slice(0, 30)); }
`;
  const wanted = `[CLS] she is good [SEP] 2,5 false,true she is good
is good she 339
true ARGUMENT fromFiles: files["tokenizer.js
true ARGUMENT fromFiles: files has the unkno
true FORMAT fromFiles: tokenizer.json is n
true CONFIG encode: maxLength is 0, expect
true OUT_OF_RANGE encode: text 0 has 4 tokens, e
true ARGUMENT Tokenizer: new is called, expe
`;
  const head = "import * as fs from 'node:fs';\nglobalThis.fs = fs;\nimport { AttnError, Tokenizer } from 'attn/tokenizer';\n";
  assert.equal(await consumer.node([consumer.script('tokenizer.mjs', head + program), checkpoint]), wanted);
  const required = "globalThis.fs = require('node:fs');\nconst { AttnError, Tokenizer } = require('attn/tokenizer');\n";
  assert.equal(await consumer.node([consumer.script('tokenizer.cjs', required + program), checkpoint]), wanted);
  const typed = `import { AttnError, Tokenizer, type Encoding } from 'attn/tokenizer';
const tokenizer: Tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': new Uint8Array(2), 'config.json': '{}' });
const encoding: Encoding = tokenizer.encode([['a', 'b']], { truncationSide: 'left', addSpecialTokens: false, maxLength: 9 });
const text: string = tokenizer.decode(encoding.inputIds, { skipSpecialTokens: true });
const size: number = tokenizer.vocabularySize;
// @ts-expect-error: the constructor needs files
new Tokenizer();
// @ts-expect-error: unknown side
tokenizer.encode('a', { truncationSide: 'middle' });
// @ts-expect-error: tokenizer.json is required
Tokenizer.fromFiles({});
export const code = (error: unknown) => (error instanceof AttnError ? error.code : [text, size]);
`;
  consumer.script('tokenizer.ts', typed);
  await consumer.typeCheck('tokenizer.ts');
});

test('attn/chunk is a self-contained file with types that works with attn/tokenizer', limit, async (t) => {
  const code = readFileSync(join(consumer.installed, 'dist/chunk.js'));
  const size = brotliCompressSync(code).length;
  t.diagnostic(`${size} bytes of brotli`);
  assert.ok(size < 4000, `${size} bytes`);
  assert.doesNotMatch(code.toString(), /\bimport\s*[({*"'`]|\bfetch\(|WebAssembly\./, 'it loads nothing');
  const program = `const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': fs.readFileSync(process.argv[2] + '/tokenizer.json') });
console.log(chunk(tokenizer, 'She is good. He is good.', { maxTokens: 7 }).map(({ start, end }) => [start, end].join()).join(' '));
try { chunk(tokenizer, 'a', { maxTokens: 1 }); } catch (error) { console.log(error instanceof AttnError, error.code); }
`;
  const wanted = '0,12 13,24\ntrue CONFIG\n';
  const head = "import fs from 'node:fs';\nimport { Tokenizer } from 'attn/tokenizer';\nimport { AttnError, chunk } from 'attn/chunk';\n";
  assert.equal(await consumer.node([consumer.script('chunk.mjs', head + program), checkpoint]), wanted);
  const required =
    "const fs = require('node:fs');\nconst { Tokenizer } = require('attn/tokenizer');\nconst { AttnError, chunk } = require('attn/chunk');\n";
  assert.equal(await consumer.node([consumer.script('chunk.cjs', required + program), checkpoint]), wanted);
  const typed = `import { chunk, type Chunk, type ChunkOptions } from 'attn/chunk';
import { Tokenizer } from 'attn/tokenizer';
const options: ChunkOptions = { maxTokens: 9, overlap: 2, by: 'paragraph' };
const chunks: Chunk[] = chunk(Tokenizer.fromFiles({ 'tokenizer.json': '' }), 'a', options);
// @ts-expect-error: unknown kind
chunk(Tokenizer.fromFiles({ 'tokenizer.json': '' }), 'a', { maxTokens: 9, by: 'word' });
export const count: number = chunks[0].tokenCount;
`;
  consumer.script('chunk.ts', typed);
  await consumer.typeCheck('chunk.ts');
});

test('attn/static is one file with types that imports only the tokenizer', limit, async (t) => {
  const code = readFileSync(join(consumer.installed, 'dist/static.js'));
  const size = brotliCompressSync(code).length;
  t.diagnostic(`${size} bytes of brotli`);
  assert.ok(size < 9000, `${size} bytes`);
  assert.deepEqual(code.toString().match(/\bfrom *["'`]\.[^"'`]*["'`]/g), ['from"./tokenizer.js"']);
  assert.doesNotMatch(code.toString(), /\bimport\s*[(]|WebAssembly\\.|new Worker/, 'it loads nothing else');
  const folder = at('testdata/models/static/tiny-model2vec');
  const program = `(async () => {
  const model = await loadStaticModel(process.argv.at(-1));
  const { dims, truncated } = model.embed(['a warm film', 'cold soup']);
  console.log(dims.join(), truncated.join(), model.hiddenSize, model.tokenizer instanceof Tokenizer);
  const index = await Index.from(model, ['a warm film', 'the soup was cold']);
  console.log((await index.search('cold soup', { k: 1 }))[0].text);
  const { pathToFileURL } = process.getBuiltinModule?.('node:url') ?? {};
  console.log((await loadStaticModel(pathToFileURL(process.argv.at(-1)))).maxLength);
  for (const source of ['owner/name', {}]) await loadStaticModel(source).catch((error) => console.log(error instanceof AttnError, error.code, error.help));
})();
`;
  const help = '"owner/name" looks like a Hub id: pass hub("owner/name") of attn or the path of a copy';
  const wanted = `2,16 false,false 16 true\nthe soup was cold\n16\ntrue NETWORK ${help}\ntrue ARGUMENT undefined\n`;
  const names = { 'attn/search': 'Index', 'attn/static': 'AttnError, loadStaticModel', 'attn/tokenizer': 'Tokenizer' };
  const entries = Object.entries(names);
  const imports = entries.map(([entry, list]) => `import { ${list} } from '${entry}';\n`).join('');
  assert.equal(await consumer.node([consumer.script('static.mjs', imports + program), folder]), wanted);
  const requires = entries.map(([entry, list]) => `const { ${list} } = require('${entry}');\n`).join('');
  assert.equal(await consumer.node([consumer.script('static.cjs', requires + program), folder]), wanted);
  const typed = `import { Index } from 'attn/search';
import { loadStaticModel, type StaticModel } from 'attn/static';
const model: StaticModel = await loadStaticModel({ 'model.safetensors': new Uint8Array(), 'tokenizer.json': '' }, { dim: 64 });
const data: Float32Array = model.embed('a', { normalize: true, maxLength: 9, truncation: false }).data;
const index: Index = await Index.from(model, ['a']);
// @ts-expect-error: a static model does not rank
await index.search('a', { rerank: model });
// @ts-expect-error: unknown option
model.embed('a', { pooling: 'mean' });
export { data };
`;
  consumer.script('static.ts', typed);
  await consumer.typeCheck('static.ts');
});

test('attn/lens is a self-contained file with types that only the command loads', limit, async (t) => {
  const code = readFileSync(join(consumer.installed, 'dist/lens.js'));
  const size = brotliCompressSync(code).length;
  t.diagnostic(`${size} bytes of brotli`);
  assert.ok(size < 9500, `${size} bytes`);
  assert.doesNotMatch(code.toString(), /\bimport\s*[({*"'`]|\bfetch\(|WebAssembly\.|new Worker/, 'it loads nothing');
  for (const name of filesOf(join(consumer.installed, 'dist')))
    if (/\.(js|cjs|mjs)$/.test(name) && !/^(lens|cli)\./.test(name))
      assert.doesNotMatch(readFileSync(join(consumer.installed, 'dist', name), 'utf8'), /attributionPatching/, `${name} knows nothing of it`);
  const program = `for (const wrong of [() => logitLens({}, 'a'), () => headScores(null)])
  wrong().catch((error) => console.log(error instanceof AttnError, error.message));`;
  const wanted = `true logitLens: model is an object, expected a model that loadModel() returned
true headScores: model is null, expected a model that loadModel() returned
`;
  assert.equal(
    await consumer.node([consumer.script('lens.mjs', `import { AttnError, headScores, logitLens } from 'attn/lens';\n${program}`)]),
    wanted,
  );
  const required = consumer.script('lens.cjs', `const { AttnError, headScores, logitLens } = require('attn/lens');\n${program}`);
  assert.equal(await consumer.node([required]), wanted);
  const typed = `import { load } from 'attn';
import { load as loadWorker } from 'attn/worker';
import { logitLens, patchActivations, type LogitLens } from 'attn/lens';
export async function use(): Promise<LogitLens> {
  const model = await (await loadWorker()).loadModel('model');
  const { recovered } = await patchActivations(model, 'a', [1, 2], { answer: ' b', site: 'head' });
  // @ts-expect-error: unknown site
  await patchActivations(model, 'a', 'b', { answer: 1, site: 'heads' });
  // @ts-expect-error: the answer is required
  await patchActivations(model, 'a', 'b', {});
  return logitLens(await (await load()).loadModel('model'), Int32Array.of(1), { layers: [recovered.dims.length] });
}
`;
  consumer.script('lens.ts', typed);
  await consumer.typeCheck('lens.ts');
});

test('attn/search makes, saves and reads an index in both module systems, and only its own files hold it', limit, async (t) => {
  const size = brotliCompressSync(readFileSync(join(consumer.installed, 'dist/search.js'))).length;
  t.diagnostic(`${size} bytes of brotli`);
  assert.ok(size < 12_000, `${size} bytes`);
  for (const name of filesOf(join(consumer.installed, 'dist')))
    if (/\.(js|cjs|mjs)$/.test(name) && !name.startsWith('search.'))
      assert.doesNotMatch(readFileSync(join(consumer.installed, 'dist', name), 'utf8'), /minisearch|MiniSearch/i, `${name} knows nothing of it`);
  const program = `(async () => {
  const model = await (await load()).loadModel(process.argv.at(-1));
  const index = await Index.from(model, ['she is good', { id: 'x', text: 'he is bad' }]);
  const loaded = await Index.load(model, await index.save());
  for (const options of [{}, { hybrid: true }])
    console.log((await loaded.search('he is bad', options)).map(({ id, text }) => id + ' ' + text).join());
  await index.search(1).catch((error) => console.log(error instanceof AttnError, error.message));
})();`;
  const wanted = `x he is bad,0 she is good
x he is bad,0 she is good
true search: query is 1, expected a string
`;
  const imports = "import { load } from 'attn';\nimport { AttnError, Index } from 'attn/search';\n";
  assert.equal(await consumer.node([consumer.script('search.mjs', imports + program), checkpoint]), wanted);
  const requires = "const { load } = require('attn');\nconst { AttnError, Index } = require('attn/search');\n";
  assert.equal(await consumer.node([consumer.script('search.cjs', requires + program), checkpoint]), wanted);
  const typed = `import { load } from 'attn';
import { load as loadWorker } from 'attn/worker';
import { Index, type Hit, type SearchDocument } from 'attn/search';
interface Page extends SearchDocument { readonly url: string }
export async function use(page: Page): Promise<Hit> {
  const model = await (await loadWorker()).loadModel('model');
  using index = await Index.from(model, ['a', page], { vectors: 'float32', prompts: { query: 'q: ' } });
  const [hit] = await index.search('a', { k: 1, hybrid: true, rerank: await (await load()).loadModel('ranker') });
  const words: string[] = (await index.explain(hit!)).query.map(({ match }) => match?.text ?? '');
  new Blob([await index.save(), ...words]);
  // @ts-expect-error: unknown storage
  await Index.from(model, [], { vectors: 'int4' });
  // @ts-expect-error: a document has a text
  await index.add([{ id: 1 }]);
  // @ts-expect-error: the constructor is private
  new Index();
  return hit!;
}
`;
  consumer.script('search.ts', typed);
  await consumer.typeCheck('search.ts');
});

test('an AttnError is an instance of the AttnError of every entry', limit, async () => {
  const dist = join(consumer.installed, 'dist');
  const names = [
    'index.js',
    'node.js',
    'node.cjs',
    'service-worker.js',
    'worker-web.js',
    'worker-node.js',
    'worker-node.cjs',
    'lens.js',
    'lens.cjs',
    'search.js',
    'search.cjs',
    'tokenizer.js',
    'tokenizer.cjs',
    'chunk.js',
    'chunk.cjs',
    'static.js',
    'static.cjs',
  ];
  const program = `const errors = [];
for (const name of ${JSON.stringify(names)}) errors.push((await import(${JSON.stringify(`file://${dist}/`)} + name)).AttnError);
const odd = [];
for (const [i, Thrown] of errors.entries())
  for (const [j, Caught] of errors.entries()) if (!(new Thrown('ARGUMENT', 'x') instanceof Caught)) odd.push([i, j].join());
const [AttnError] = errors;
class Own extends AttnError {}
const others = [new Error('x'), new DOMException('x', 'AbortError'), {}, null, undefined, 1, 'x'];
console.log(odd.join(' '), others.some((each) => each instanceof AttnError), new Own('MASK', 'x') instanceof AttnError, new Own('MASK', 'x') instanceof Own, new AttnError('MASK', 'x') instanceof Own);
console.log(Object.keys(new AttnError('MASK', 'x')).join(), Object.prototype.toString.call(new AttnError('MASK', 'x')));
`;
  assert.equal(await consumer.node([consumer.script('instances.mjs', program)]), ' false true true false\ncode,detail [object Error]\n');
});
