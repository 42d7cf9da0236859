/** Other models, from files and addresses, and a page that has no WebAssembly or no memory for them. */
import { existsSync } from 'node:fs';
import { createServer, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { repository } from '../support/paths.mjs';
import { sentence } from './data.mjs';
import { json, ofHead, Page, section, settled } from './page.mjs';

const bar = section('sentence');
const ready = "/^Ready/.test(text(find('status')))";
/** What is said of the model that is loaded, without what the words mean: an expression. */
const said = `(() => {
  const copy = ${bar}.querySelector('.model-name p').cloneNode(true);
  for (const meaning of copy.querySelectorAll('[role=tooltip]')) meaning.remove();
  return text(copy);
})()`;
export const shows = (page, name, milliseconds = 30000) =>
  page.until(`${said}.includes(${json(name)}) && ${ready}`, `${name} is loaded`, milliseconds);

/** Opens what takes files; it closes by itself when a model has come. */
async function another(page) {
  const opener = `find('button', 'Another model', ${bar})`;
  await page.until(
    `(${opener}.ariaExpanded === 'true' || ${opener}.click(), ${bar}.querySelector('.other-model').getClientRects().length > 0)`,
    'the buttons for files',
  );
}

/** Loads a model from the Hub or an address, by the field in the bar. */
export async function loadFrom(page, address) {
  await page.fill('Model', address, bar);
  await page.click('button', 'Load model', bar);
}

/** What the table shows for a head of another model, with its tokens; both from 1. */
async function assertHeads(page, expected, heads) {
  for (const [layer, head] of heads) {
    await page.choose(['combobox', 'slider'], 'Layer', layer);
    await page.choose(['combobox', 'slider'], 'Head', head);
    const { rows } = await page.numbers('Attention weights', ofHead(expected.attentions[layer - 1], head - 1));
    assert.deepEqual(rows, expected.tokens);
  }
}

const mini = 'models/all-MiniLM-L6-v2';
/** The button that loads it, and what it says to bring, in MB: its int8 files, where they were there when the page was built. */
const offer = /^Load all-MiniLM-L6-v2, (\d+) MB, runs locally$/;
const offered = (page) => page.until(`all('button', undefined, ${bar}).map(text).find((each) => ${offer}.test(each))`, 'the button');
export const loadMini = async (page) => {
  const button = await offered(page);
  await page.click('button', button, bar);
  return Number(offer.exec(button)[1]);
};
const weights = 'Weights of the model';
const nameOf = (page) => page.tool(said);

/** The page's server with other folders of models: what is asked for there is a checkpoint of testdata/models, or missing. */
async function withModels(origin, folders) {
  const asked = [];
  const server = createServer((request, response) => {
    const [, folder, file] = /^\/models\/([^/]+)\/(.*)$/.exec(request.url) ?? [];
    if (folder && file === 'config.json') asked.push(folder);
    const path = folder === undefined ? request.url : folders[folder] ? `/testdata/models/${folders[folder]}/${file}` : '/testdata/nothing';
    const onward = get(new URL(path, origin), (answer) => answer.pipe(response.writeHead(answer.statusCode, answer.headers)));
    onward.on('error', () => response.destroy());
  });
  server.keepAliveTimeout = 0;
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    asked,
    close: () => new Promise((closed) => (server.close(closed), server.closeAllConnections())),
  };
}
const pooling = '1_Pooling/config.json';
const files = ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'];

/** Files as a visitor has them, an expression: of a checkpoint, [path, File] each, perhaps in a folder; then those of `others`, by their text. */
const filesOf = (name, paths, others = {}, folder = '') =>
  `Promise.all([
    ...${json(paths)}.map(async (path) => [${json(folder)} + path, await (await fetch(${json(`testdata/models/${name}/`)} + path)).blob()]),
    ...Object.entries(${json(others)}),
  ].map(async (each) => { const [path, content] = await each; return [path, new File([content], path.split('/').at(-1))]; }))`;

/** A model whose weights are in two files. */
const sharded = () =>
  `Promise.all(['config.json', 'tokenizer.json', 'model.safetensors.index.json', 'model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'].map(
    async (path) => [path, new File([await (await fetch('/hub-files/sharded/main/' + path)).blob()], path)],
  ))`;

/**
 * Files in the hand of the pointer, in objects that look like a browser's: a script can make no folders, and WebKit does not read what a script has put
 * into a DataTransfer.
 */
const carried = {
  loose: (made) => `(async () => {
    const data = new DataTransfer();
    for (const [, file] of await ${made}) data.items.add(file);
    return { types: data.types, files: data.files, items: [] };
  })()`,
  folder: (made, name) => `(async () => {
    const tree = {};
    for (const [path, file] of await ${made}) {
      const names = path.split('/');
      let at = tree;
      for (const name of names.slice(0, -1)) at = at[name] ??= {};
      at[names.at(-1)] = file;
    }
    const entry = (content, fullPath) => content instanceof File
      ? { isFile: true, isDirectory: false, fullPath, file: (done) => done(content) }
      : { isFile: false, isDirectory: true, fullPath, createReader() {
          const inside = Object.entries(content).map(([name, each]) => entry(each, fullPath + '/' + name));
          // Two at a time, and none at the end.
          return { readEntries: (done) => setTimeout(() => done(inside.splice(0, 2))) };
        } };
    return { types: ['Files'], files: [], items: [{ webkitGetAsEntry: () => entry(tree, ${json(`/${name}`)}) }] };
  })()`,
};

/** Moves over the page and lets go. */
async function drop(page, data) {
  const event = (type) => `(() => {
    const event = new DragEvent(${json(type)}, { bubbles: true, cancelable: true });
    Object.defineProperty(event, 'dataTransfer', { value: globalThis.carriedFiles });
    document.querySelector('main').dispatchEvent(event);
    return event.defaultPrevented;
  })()`;
  await page.tool(`(async () => { globalThis.carriedFiles = await ${data}; return true; })()`);
  assert.ok(await page.tool(event('dragover')), 'the page takes what is carried over it');
  await page.until("/Drop a model/.test(text(document.querySelector('.drop-hint')))", 'the hint');
  assert.ok(await page.tool(event('drop')), 'the browser itself does not open what was dropped');
  await page.until("!document.querySelector('.drop-hint')", 'the hint is gone');
}

/** Puts files into a field for files, as its dialogue does: with the folder's name in front where a folder is chosen. */
export async function chooseFiles(page, label, made, folder) {
  await another(page);
  await page.tool(`(async () => {
    const field = document.querySelector('input[type=file][aria-label=' + ${json(json(label))} + ']');
    const data = new DataTransfer();
    const files = await ${made};
    for (const [, file] of files) data.items.add(file);
    field.files = data.files;
    const folder = ${json(folder ?? '')};
    if (folder) {
      if (!field.webkitdirectory) throw new Error('the field takes no folder');
      Array.from(field.files, (file, i) => Object.defineProperty(file, 'webkitRelativePath', { value: folder + '/' + files[i][0] }));
    }
    field.dispatchEvent(new Event('change', { bubbles: true }));
    return true;
  })()`);
}

/** An alert where models are chosen, which is then closed. */
async function assertProblem(page, what) {
  const alert = `find('alert', undefined, ${bar}.querySelector('.model'))`;
  const said = await page.until(`text(${alert})`, 'the alert');
  assert.match(said, what);
  assert.match(await page.tool("text(find('status'))"), /could not be loaded/);
  await page.click('button', 'Close', alert);
  await page.until(`all('alert', undefined, ${bar}).length === 0`, 'no alert');
}

export const tests = {
  async 'a model that cannot be loaded is an alert with cause and fix, and the page goes on'({ page, data }) {
    await page.open('table=1');
    for (const [address, cause] of [
      ['model/gone/sentiment', /sentiment could not be loaded\. 127\.0\.0\.1:\d+ has no model\.safetensors.*404.*Check the address.*\(NETWORK\)/],
      ['model/html/sentiment', /could not be loaded\. .*gave a web page.*HTML.*\(FORMAT\)/],
      ['model/plain/nothing', /nothing could not be loaded\. .*has no config\.json there \(404\)/],
    ]) {
      await loadFrom(page, address);
      assert.match(await page.until(`text(find('alert', undefined, ${bar}))`, 'the alert'), cause);
      assert.match(await page.tool("text(find('status'))"), /could not be loaded/);
      await page.click('button', 'Close', `find('alert', undefined, ${bar})`);
    }
    await loadFrom(page, 'ftp://example.org/');
    await page.until(`/This is no address.*owner\\/name/.test(text(find('alert', undefined, ${bar})))`, 'an alert for what is no address');
    await page.fill('Sentence', 'Still here.');
    await page.numbers('Attention weights', ofHead(data.forward('Still here.').attentions[1], 3));
  },
  async 'a model is taken from the Hub by its name, in the layouts in which models are published'({ page, data }) {
    await page.open('table=1', 'without/hub/');
    const bert = await data.another('testdata/models/tiny-bert', sentence);
    const pooled = await data.another('testdata/models/tiny-bert-cls', sentence);
    // What is going to be asked of whom is said before.
    await page.fill('Model', 'tests/plain', bar);
    await page.until(`/Asks huggingface\\.co for config\\.json.* of tests\\/plain\\./.test(text(${bar}.querySelector('#address-plan')))`, 'the plan');
    for (const [written, name, expected] of [
      ['tests/plain', 'tests/plain', bert],
      ['https://huggingface.co/tests/sentences/blob/main/1_Pooling/config.json', 'tests/sentences', pooled],
      ['hf.co/tests/onnx-beside/tree/main/onnx', 'tests/onnx-beside', bert],
      ['tests/legacy', 'tests/legacy', pooled],
      ['https://huggingface.co/tests/inside/tree/main/models/small', 'tests/inside/models/small', bert],
      ['tests/revised@v2.0', 'tests/revised@v2.0', bert],
      ['https://huggingface.co/tests/revised/tree/refs%2Fpr%2F3', 'tests/revised@refs/pr/3', bert],
      ['tests/no-architectures', 'tests/no-architectures', pooled],
    ]) {
      await loadFrom(page, written);
      await shows(page, `${name}, ${expected.layers} × ${expected.heads} heads`);
      await assertHeads(page, expected, [[1, 1]]);
    }
    await page.until("location.hash.includes('model=tests%2Fno-architectures')", 'the name in the address');
    for (const [written, cause, fix] of [
      ['tests/inside', /has no config\.json in tests\/inside \(404\)/, /…\/tree\/main\/folder/],
      ['tests/sharded', /weights are in several files/, /Download the folder and drop it/],
      ['tests/pickle', /a pickle only \(pytorch_model\.bin\)/, /In Python.*save_pretrained/],
      ['tests/onnx-only', /only a graph for onnxruntime/, /Take the model that it was exported from/],
      ['tests/no-tokenizer', /without tokenizer\.json/, /AutoTokenizer/],
      ['tests/decoder', /kind of model/, /families BERT/],
      ['tests/gated', /has no model tests\/gated, or not for everybody \(401\)/, /Check the spelling/],
      ['tests/nothing', /has no model tests\/nothing, or not for everybody \(401\)/, /Check the spelling/],
    ]) {
      await loadFrom(page, written);
      const alert = `find('alert', undefined, ${bar}.querySelector('.model'))`;
      const said = await page.until(`text(${alert}).includes(${json(written)}) && text(${alert})`, `the alert for ${written}`);
      assert.match(said, cause);
      assert.match(said, fix);
      const status = await page.tool("text(find('status'))");
      assert.match(status, /could not be loaded\.$/, 'the status says that, and leaves the cause to the alert');
      await page.click('button', 'Close', alert);
    }
  },
  async 'a model comes from an address, its coming is shown, and it can be cancelled'({ page }) {
    await page.open();
    await loadFrom(page, 'model/slow/large-tiny-bert');
    await page.until(`/tiny-bert: .* of \\d+\\.\\d MB/.test(text(${bar}.querySelector('.progress')))`, 'bytes of all bytes');
    await page.click('button', 'Cancel', bar);
    await page.until("/large-tiny-bert was not loaded: cancelled/.test(text(find('status')))", 'the status');
    // What was still on its way is not shown any more.
    await sleep(300);
    assert.equal(await page.tool(`all('progressbar', undefined, ${bar}).length`), 0, 'no progress');
    await loadFrom(page, 'model/plain/tiny-bert-multilabel');
    await shows(page, 'tiny-bert-multilabel');
    await page.until(`text(find('list', "The classifier's answer")).includes('%')`, 'its answers');
    await page.click('button', 'Back to the sentiment classifier', bar);
    await shows(page, 'sentiment classifier');
  },
  async 'a worker that dies is said, and Restart brings it back with the text'({ page, data }) {
    await page.open('table=1');
    await settled(page);
    const text = 'The show must go on.';
    // As a worker ends that has no memory left.
    await page.driver.evaluate(
      "attnProbe.workers.forEach((worker) => { worker.terminate(); worker.dispatchEvent(new ErrorEvent('error', { message: 'out of memory' })); }), undefined",
    );
    await page.fill('Sentence', text);
    assert.match(
      await page.until(`text(find('alert', undefined, ${bar}))`, 'the alert'),
      /The module has stopped\..*Start it again: the text and the view stay\./,
    );
    await page.click('button', 'Restart', bar);
    await page.numbers('Attention weights', ofHead(data.forward(text).attentions[1], 3));
    assert.equal(await page.tool(`all('alert', undefined, ${bar}).length`), 0);
  },
  async 'files and folders that are dropped or chosen load their model'({ page, data, engine }) {
    await page.open('table=1');
    const bert = await data.another('testdata/models/tiny-bert', sentence);
    const roberta = await data.another('testdata/models/tiny-roberta', sentence);
    const distilbert = await data.another('testdata/models/tiny-distilbert', sentence);
    const pooled = await data.another('testdata/models/tiny-bert-cls', sentence);
    // Each has another name than the one before, or what is shown would be taken for what comes.
    const came = async (name, expected) => {
      await shows(page, `${name}, ${expected.layers} × ${expected.heads} heads`);
      await assertHeads(page, expected, [
        [1, 1],
        [expected.layers, expected.heads],
      ]);
    };
    await drop(page, carried.loose(filesOf('tiny-bert', files)));
    await came('your files', bert);
    await chooseFiles(page, 'Choose a folder', filesOf('tiny-distilbert', files, { 'README.md': 'words' }), 'tiny-distilbert');
    await came('tiny-distilbert', distilbert);
    await chooseFiles(page, 'Choose files', filesOf('tiny-roberta', files));
    await came('your files', roberta);
    // The folder is inside another one, and has one inside with a config.json too.
    const inside = [pooling, ...files, 'modules.json', 'sentence_bert_config.json'];
    await drop(page, carried.folder(filesOf('tiny-bert-cls', inside, { 'notes.txt': 'words' }, 'tiny-bert-cls/'), 'downloads'));
    await came('tiny-bert-cls', pooled);
    // As the Hub's own programs keep it.
    const snapshot = `snapshots/${'0123456789'.repeat(4)}/`;
    await drop(page, carried.folder(filesOf('tiny-roberta', files, { 'refs/main': '0' }, snapshot), 'models--tests--tiny-roberta'));
    await came('tests/tiny-roberta', roberta);
    // Its modules.json names a folder that was left behind.
    await drop(page, carried.loose(filesOf('tiny-bert-cls', [...files, 'modules.json', 'sentence_bert_config.json'])));
    await came('your files', pooled);
    await page.until(`/1_Pooling was not among the files/.test(text(${bar}.querySelector('.model')))`, 'what was done without');
    await drop(page, carried.folder(sharded(), 'tiny-bert'));
    await came('tiny-bert', bert);
    if (engine === 'chromium') {
      await page.driver.drop([join(repository, 'testdata/models/tiny-distilbert')], 600, 300);
      await came('tiny-distilbert', distilbert);
    }
    await page.click('button', 'Back to the sentiment classifier', bar);
    await shows(page, 'sentiment classifier, 2 × 4 heads');
    await page.numbers('Attention weights', ofHead(data.forward(sentence).attentions[1], 3));
  },
  async 'files that are no model are an alert with cause and fix, and the old model goes on'({ page, data }) {
    await page.open('table=1');
    const broken = { 'model.safetensors': '\u0000\u0001 no tensors' };
    let count = 0;
    for (const [made, cause] of [
      [carried.loose(filesOf('', [], { 'cat.png': '\u0089PNG' })), /could not be loaded\. .*config\.json/],
      [carried.loose(filesOf('', [], { 'pytorch_model.bin': 'PK' })), /could not be loaded\. .*(config\.json|pytorch_model\.bin)/],
      [carried.loose(filesOf('', [], { 'bert.zip': 'PK' })), /bert\.zip is an archive.*Unpack it/],
      [carried.loose(filesOf('tiny-bert', files.slice(0, 3), { 'pytorch_model.bin': 'PK' })), /a pickle only.*In Python.*save_pretrained/],
      [carried.loose(filesOf('tiny-bert', ['config.json'])), /could not be loaded\. .*(tokenizer\.json|model\.safetensors)/],
      [carried.loose(filesOf('tiny-bert', files.slice(0, 3), broken)), /header is longer.*\(FORMAT\)/],
      [carried.folder(filesOf('', []), 'empty'), /could not be loaded\. .*config\.json/],
    ]) {
      await drop(page, made);
      await assertProblem(page, cause);
      assert.match(await page.tool(`text(${bar}.querySelector('.model-name'))`), /sentiment classifier, 2 × 4 heads/);
      const text = `Still here ${++count}.`;
      await page.fill('Sentence', text);
      await page.numbers('Attention weights', ofHead(data.forward(text).attentions[1], 3));
    }
  },
  async 'the button loads all-MiniLM-L6-v2, and its numbers are the package’s'({ page, data, note }) {
    if (!existsSync(join(repository, mini, 'model.safetensors'))) {
      assert.notEqual(process.env.CI, 'true', `${mini} is not there`);
      return note(`${mini} is not there`);
    }
    await page.open('table=1');
    const heads = [
      [1, 1],
      [3, 12],
      [6, 5],
    ];
    const megabytes = await loadMini(page);
    await shows(page, 'all-MiniLM-L6-v2, 6 × 12 heads, int8', 120000);
    assert.equal(
      await page.tool(`all('button', undefined, ${bar}).filter((each) => ${offer}.test(text(each))).length`),
      0,
      'it is not offered once more',
    );
    const name = await nameOf(page);
    const [, files, size] = /int8 (made here from|from) files of (\d+\.\d) MB/.exec(name) ?? assert.fail(name);
    assert.ok(Math.abs(Number(size) - megabytes) <= 1, `${megabytes} MB were offered: ${name}`);
    assert.ok(files === 'from' ? Number(size) < 24 : Number(size) > 90, name);
    note(name);
    await assertHeads(page, await data.another(mini, sentence), heads);
    assert.equal(await page.tool("all('button', undefined, find('group', 'Heads as pictures')).length"), 72);
    await page.choose('combobox', weights, 'float32', bar);
    await page.click('button', 'Load it as float32, 91 MB', bar);
    await shows(page, 'all-MiniLM-L6-v2, 6 × 12 heads, float32 from files of 91.3 MB', 120000);
    await assertHeads(page, await data.another(mini, sentence, 'float32'), heads);
  },
  async 'where all-MiniLM-L6-v2 is not beside the page, its button says what to do'({ page, data }) {
    await page.open('table=1', 'without/models/');
    await loadMini(page);
    const alert = `find('alert', undefined, ${bar}.querySelector('.model'))`;
    await page.until(`all('button', 'Load it from huggingface.co, 91 MB', ${alert}).length === 1`, 'the offer to ask the Hub');
    await assertProblem(page, /all-MiniLM-L6-v2 could not be loaded\. .*has no config\.json there \(404\).*Check the address.*\(NETWORK\)/);
    await offered(page);
    await page.fill('Sentence', 'Still here.');
    await page.numbers('Attention weights', ofHead(data.forward('Still here.').attentions[1], 3));
  },
  async 'the button takes int8 files where they are, else makes the weights int8 on the way, and says which'({ page, data }) {
    const name = 'all-MiniLM-L6-v2';
    const models = await Promise.all(['tiny-bert', 'tiny-distilbert'].map((each) => data.another(`testdata/models/${each}`, sentence)));
    for (const [folders, expected, asked] of [
      [{ [`${name}-int8`]: 'tiny-bert', [name]: 'tiny-distilbert' }, models[0], [`${name}-int8`]],
      [{ [name]: 'tiny-distilbert' }, models[1], [`${name}-int8`, name]],
    ]) {
      const server = await withModels(page.origin, folders);
      try {
        const other = new Page(page.driver, server.url);
        await other.open('table=1');
        await loadMini(other);
        await shows(other, `${name}, ${expected.layers} × ${expected.heads} heads, int8`);
        assert.deepEqual(server.asked, asked);
        assert.match(await nameOf(other), /int8 made here from files of 0\.\d MB/);
        await assertHeads(other, expected, [[1, 1]]);
        // The other kind comes from the folder of float32 in any case.
        server.asked.length = 0;
        await other.choose('combobox', weights, 'float32', bar);
        await other.click('button', 'Load it as float32, 91 MB', bar);
        await shows(other, `${name}, ${models[1].layers} × ${models[1].heads} heads, float32`);
        assert.deepEqual(server.asked, [name]);
        // Nothing asks the server any more when it ends.
        await page.open();
      } finally {
        await server.close();
      }
    }
  },
  async 'models come as int8 and by choice as float32, which is in the address; nothing is loaded unasked'({ page, data }) {
    const folder = 'testdata/models/tiny-bert';
    const [int8, float32] = await Promise.all(['int8', 'float32'].map((each) => data.another(folder, sentence, each)));
    const heads = [
      [1, 1],
      [int8.layers, int8.heads],
    ];
    await page.open('table=1');
    assert.match(await nameOf(page), /^sentiment classifier, 2 × 4 heads, float32/);
    assert.deepEqual(await page.tool(`(({ value, options }) => [value, ...Array.from(options, text)])(find('combobox', ${json(weights)}))`), [
      'int8',
      'int8',
      'float32',
    ]);
    await loadFrom(page, folder);
    await shows(page, 'tiny-bert, 2 × 4 heads, int8');
    await assertHeads(page, int8, heads);
    await page.choose('combobox', weights, 'float32', bar);
    await page.until("location.hash.includes('dtype=float32')", 'the choice in the address');
    assert.match(await page.until(`text(${bar}.querySelector('.notice'))`, 'the offer'), /tiny-bert is here with int8 weights\..*Stay with int8/);
    await assertHeads(page, int8, heads);
    await page.click('button', 'Stay with int8', bar);
    await page.until(`find('combobox', ${json(weights)}, ${bar}).value === 'int8' && !${bar}.querySelector('.notice')`, 'no offer');
    await page.choose('combobox', weights, 'float32', bar);
    await page.click('button', 'Load it as float32', bar);
    await shows(page, 'tiny-bert, 2 × 4 heads, float32');
    await assertHeads(page, float32, heads);
    assert.equal(await page.tool(`!!${bar}.querySelector('.notice')`), false);
    // A link to it, in a new page: float32 too.
    const hash = await page.driver.evaluate('location.hash.slice(1)');
    assert.match(hash, /dtype=float32/);
    await page.open(hash);
    await page.click('button', 'Load it from there', bar);
    await shows(page, 'tiny-bert, 2 × 4 heads, float32');
    await assertHeads(page, float32, heads);
    // What is dropped comes so, too; the classifier in the page stays as PyTorch's numbers are.
    await drop(page, carried.loose(filesOf('tiny-bert', files)));
    await shows(page, 'your files, 2 × 4 heads, float32');
    await assertHeads(page, float32, heads);
    await page.choose('combobox', weights, 'int8', bar);
    await page.click('button', 'Load it as int8', bar);
    await shows(page, 'your files, 2 × 4 heads, int8');
    await assertHeads(page, int8, heads);
    await page.click('button', 'Back to the sentiment classifier', bar);
    await shows(page, 'sentiment classifier, 2 × 4 heads, float32');
  },
  async 'without WebAssembly, or memory to begin with, the page says so, what to do, and does not wait'({ page }) {
    for (const [lacks, cause, fix] of [
      ['webassembly', /module could not be started\. .*WebAssembly.*\(ENVIRONMENT\)/, /Chrome or Edge \d+, Firefox \d+, Safari \d+/],
      ['memory', /module could not be started\. .*memory.*\(MEMORY\)/, /Close other pages/],
      ['growth', /could not be loaded\. .*memory.*\(MEMORY\)/, /Close other pages/],
    ]) {
      await page.visit('', `without/${lacks}/`);
      const said = await page.until(`text(find('alert', undefined, ${bar}))`, `an alert without ${lacks}`);
      assert.match(said, cause);
      assert.match(said, fix);
      assert.match(await page.tool("text(find('status'))"), /could not be (started|loaded)/);
      await page.until(`!/starting|loading/i.test(text(document.querySelector('#app')))`, `nothing waits without ${lacks}`);
      await page.axe(`without ${lacks}`);
      // A second start ends in the same way, and so it stays when the alert is closed.
      await page.click('button', 'Restart', bar);
      await page.until(`all('alert', undefined, ${bar}).length === 1 && /could not be/.test(text(find('status')))`, 'the alert again');
      await page.click('button', 'Close', bar);
      await page.until(`all('alert', undefined, ${bar}).length === 0`, 'no alert');
      assert.doesNotMatch(await page.tool("text(document.querySelector('#app'))"), /starting|loading/i);
    }
  },
  async 'a model for which the memory is not enough is an alert, and the old one goes on'({ page, data }) {
    await page.open('table=1', 'without/much-growth/');
    await loadFrom(page, '/model/plain/large-tiny-bert');
    await assertProblem(page, /large-tiny-bert could not be loaded\. .*not enough memory.*smaller model.*\(MEMORY\)/);
    await page.fill('Sentence', 'Still here.');
    await page.numbers('Attention weights', ofHead(data.forward('Still here.').attentions[1], 3));
  },
};
