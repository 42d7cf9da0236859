/** Other models, from files and addresses, and a page that has no WebAssembly or no memory for them. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { repository } from '../support/steps.mjs';
import { sentence } from './data.mjs';
import { json, ofHead, section, settled } from './page.mjs';

const bar = section('sentence');
const ready = "/^Ready/.test(text(find('status')))";
export const shows = (page, name, milliseconds = 30000) =>
  page.until(`text(${bar}.querySelector('.model-name')).includes(${json(name)}) && ${ready}`, `${name} is loaded`, milliseconds);

/** Opens the form for another model; it closes by itself when a model has come. */
async function another(page) {
  const opener = `find('button', 'Another model', ${bar})`;
  await page.until(
    `(${opener}.ariaExpanded === 'true' || ${opener}.click(), all('textbox', 'Address of a model’s folder', ${bar}).length > 0)`,
    'the field',
  );
}

/** Loads a model from an address, by the form in the bar. */
export async function loadFrom(page, address) {
  await another(page);
  await page.fill('Address of a model’s folder', address, bar);
  await page.click('button', 'Load from there', bar);
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
const offer = 'Load all-MiniLM-L6-v2, 91 MB, runs locally';
const pooling = '1_Pooling/config.json';
const files = ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'];

/** Files as a visitor has them, an expression: of a checkpoint, [path, File] each, perhaps in a folder; then those of `others`, by their text. */
const filesOf = (name, paths, others = {}, folder = '') =>
  `Promise.all([
    ...${json(paths)}.map(async (path) => [${json(folder)} + path, await (await fetch(${json(`testdata/models/${name}/`)} + path)).blob()]),
    ...Object.entries(${json(others)}),
  ].map(async (each) => { const [path, content] = await each; return [path, new File([content], path.split('/').at(-1))]; }))`;

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
async function chooseFiles(page, label, made, folder) {
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
      ['model/gone/sentiment', /sentiment could not be loaded\. .*model\.safetensors.*404.*\(NETWORK\).*Check the address/],
      ['model/html/sentiment', /could not be loaded\. .*HTML.*\(FORMAT\)/],
      ['model/plain/nothing', /nothing could not be loaded\. .*config\.json.*404/],
    ]) {
      await loadFrom(page, address);
      assert.match(await page.until(`text(find('alert', undefined, ${bar}))`, 'the alert'), cause);
      assert.match(await page.tool("text(find('status'))"), /could not be loaded/);
      await page.click('button', 'Close', `find('alert', undefined, ${bar})`);
    }
    await loadFrom(page, 'ftp://example.org/');
    await page.until(`/This is no address/.test(text(find('alert', undefined, ${bar})))`, 'an alert for what is no address');
    await page.fill('Sentence', 'Still here.');
    await page.numbers('Attention weights', ofHead(data.forward('Still here.').attentions[1], 3));
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
    const came = async (name, expected) => {
      await shows(page, `${name}, ${expected.layers} × ${expected.heads} heads`);
      await assertHeads(page, expected, [
        [1, 1],
        [expected.layers, expected.heads],
      ]);
    };
    await drop(page, carried.loose(filesOf('tiny-bert', files)));
    await came('your files', bert);
    await chooseFiles(page, 'Choose files', filesOf('tiny-roberta', files));
    await came('your files', roberta);
    await chooseFiles(page, 'Choose a folder', filesOf('tiny-distilbert', files, { 'README.md': 'words' }), 'tiny-distilbert');
    await came('tiny-distilbert', distilbert);
    // The folder is inside another one, and has one inside with a config.json too.
    const inside = [pooling, ...files, 'modules.json', 'sentence_bert_config.json'];
    await drop(page, carried.folder(filesOf('tiny-bert-cls', inside, { 'notes.txt': 'words' }, 'tiny-bert-cls/'), 'downloads'));
    await came('tiny-bert-cls', pooled);
    if (engine === 'chromium') {
      await page.driver.drop([join(repository, 'testdata/models/tiny-bert')], 600, 300);
      await came('tiny-bert', bert);
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
      [carried.loose(filesOf('tiny-bert', files.slice(0, 3), { 'pytorch_model.bin': 'PK' })), /pytorch_model\.bin.*model\.safetensors/],
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
    await page.click('button', offer, bar);
    await shows(page, 'all-MiniLM-L6-v2, 6 × 12 heads', 120000);
    assert.equal(await page.tool(`all('button', ${json(offer)}, ${bar}).length`), 0, 'it is not offered once more');
    const expected = await data.another(mini, sentence);
    await assertHeads(page, expected, [
      [1, 1],
      [3, 12],
      [6, 5],
    ]);
    assert.equal(await page.tool("all('radio', undefined, find('radiogroup', 'Heads as pictures')).length"), 72);
  },
  async 'where all-MiniLM-L6-v2 is not beside the page, its button says what to do'({ page, data }) {
    await page.open('table=1', 'without/models/');
    await page.click('button', offer, bar);
    await assertProblem(page, /all-MiniLM-L6-v2 could not be loaded\. .*404.*\(NETWORK\).*Check the address/);
    await page.until(`!!find('button', ${json(offer)}, ${bar})`, 'the button is there for another try');
    await page.fill('Sentence', 'Still here.');
    await page.numbers('Attention weights', ofHead(data.forward('Still here.').attentions[1], 3));
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
    await assertProblem(page, /large-tiny-bert could not be loaded\. .*memory.*\(MEMORY\).*smaller model/);
    await page.fill('Sentence', 'Still here.');
    await page.numbers('Attention weights', ofHead(data.forward('Still here.').attentions[1], 3));
  },
};
