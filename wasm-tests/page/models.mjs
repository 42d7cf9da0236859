/** Loads other models in the page: by name or address, by button, and from files. */
import { createServer, get } from 'node:http';
import { strict as assert } from 'node:assert';
import { ofHead } from './page.mjs';

export const bar = '#sentence';
export const modelAlert = ['alert', undefined, '#sentence .model'];

/** Runs in the page: returns its text about the loaded model, without the explanations of words. */
function modelName({ text }) {
  const copy = document.querySelector('#sentence .model-name p').cloneNode(true);
  for (const meaning of copy.querySelectorAll('[role=tooltip]')) meaning.remove();
  return text(copy);
}
export const nameOf = (page) => page.tool(modelName);
export const shows = (page, name) =>
  page.until(
    (tools, describe, part) => describe(tools).includes(part) && /^Ready/.test(tools.text(tools.find('status'))),
    `${name} is loaded`,
    modelName,
    name,
  );

/** Loads a model from the Hub or an address, by the field in the bar. */
export async function loadFrom(page, address) {
  await page.fill('Model', address, bar);
  await page.click('button', 'Load model', bar);
}

/** The button for all-MiniLM-L6-v2 and its size in MB: that of int8 files if they existed when the page was built. */
const offer = /^Load all-MiniLM-L6-v2, (\d+) MB, runs locally$/;
const offers = (page) =>
  page.tool(
    ({ all, text }, pattern) =>
      all('button', undefined, '#sentence')
        .map(text)
        .filter((each) => pattern.test(each)),
    offer,
  );
export const miniIsOffered = async (page) => (await offers(page)).length > 0;
export async function loadMini(page) {
  const button = await page.eventually(async () => {
    const [first] = await offers(page);
    return first ?? assert.fail('the button is missing');
  });
  await page.click('button', button, bar);
  return Number(offer.exec(button)[1]);
}

/** Checks the table's weights and tokens for heads of another model, given as [layer, head] from 1. */
export async function assertHeads(page, expected, heads) {
  for (const [layer, head] of heads) {
    await page.choose(['combobox', 'slider'], 'Layer', layer);
    await page.choose(['combobox', 'slider'], 'Head', head);
    const { rows } = await page.numbers('Attention weights', ofHead(expected.attentions[layer - 1], head - 1));
    assert.deepEqual(rows, expected.tokens);
  }
}

/** Waits for an alert about a model, and closes it. */
export async function assertProblem(page, what) {
  assert.match(await page.says(/./, ...modelAlert), what);
  assert.match(await page.text('status'), /could not be loaded/);
  await page.click('button', 'Close', modelAlert);
  await page.lacks('alert', undefined, bar);
}

/** Proxies the page's server: requests for these model folders get a checkpoint of testdata/models, or 404. */
export async function withModels(origin, folders) {
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

export const modelFiles = ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'];

/**
 * Lists a visitor's files as [path, source]: those of a checkpoint, optionally in a folder, then `others` by their
 * text. A source is { url }, { text } or { base64 }.
 */
export const filesOf = (name, paths, others = {}, folder = '') => [
  ...paths.map((path) => [folder + path, { url: `testdata/models/${name}/${path}` }]),
  ...Object.entries(others).map(([path, text]) => [path, { text }]),
];

export const sharded = [
  'config.json',
  'tokenizer.json',
  'model.safetensors.index.json',
  'model-00001-of-00002.safetensors',
  'model-00002-of-00002.safetensors',
].map((path) => [path, { url: `/hub-files/sharded/main/${path}` }]);

/** Runs in the page: creates [path, File] for each of filesOf(). */
const makeFiles = (files) =>
  Promise.all(
    files.map(async ([path, { url, text, base64 }]) => {
      const content = url ? await (await fetch(url)).blob() : base64 ? Uint8Array.from(atob(base64), (each) => each.charCodeAt(0)) : text;
      return [path, new File([content], path.split('/').at(-1))];
    }),
  );

/**
 * Runs in the page: imitates a browser's DataTransfer, because scripts cannot create folders, and WebKit does not read
 * a scripted one.
 */
function dataTransferOf(files, folder) {
  if (folder === undefined) {
    const data = new DataTransfer();
    for (const [, file] of files) data.items.add(file);
    return { types: data.types, files: data.files, items: [] };
  }
  const tree = {};
  for (const [path, file] of files) {
    const names = path.split('/');
    let at = tree;
    for (const name of names.slice(0, -1)) at = at[name] ??= {};
    at[names.at(-1)] = file;
  }
  const entry = (content, fullPath) => {
    if (content instanceof File) return { isFile: true, isDirectory: false, fullPath, file: (done) => done(content) };
    const createReader = () => {
      const inside = Object.entries(content).map(([name, each]) => entry(each, `${fullPath}/${name}`));
      // Two entries at a time, then an empty list.
      return { readEntries: (done) => setTimeout(() => done(inside.splice(0, 2))) };
    };
    return { isFile: false, isDirectory: true, fullPath, createReader };
  };
  return { types: ['Files'], files: [], items: [{ webkitGetAsEntry: () => entry(tree, `/${folder}`) }] };
}

export async function drop(page, files, folder) {
  const dispatch = (type) =>
    page.evaluate((kind) => {
      const event = new DragEvent(kind, { bubbles: true, cancelable: true });
      Object.defineProperty(event, 'dataTransfer', { value: globalThis.carriedFiles });
      document.querySelector('main').dispatchEvent(event);
      return event.defaultPrevented;
    }, type);
  const carry = async (make, carried, list, name) => {
    globalThis.carriedFiles = carried(await make(list), name);
  };
  await page.evaluate(carry, makeFiles, dataTransferOf, files, folder);
  assert.ok(await dispatch('dragover'), 'the page accepts what is dragged over it');
  await page.until(({ text }) => /Drop a model/.test(text('.drop-hint')), 'the hint');
  assert.ok(await dispatch('drop'), 'the browser itself does not open what was dropped');
  await page.until(() => !document.querySelector('.drop-hint'), 'the hint is gone');
}

/** Opens the section for files, which closes once a model has loaded. */
const openOtherModels = (page) =>
  page.until(({ find }) => {
    const opener = find('button', 'Another model', '#sentence');
    if (opener.ariaExpanded !== 'true') opener.click();
    return document.querySelector('#sentence .other-model').getClientRects().length > 0;
  }, 'the buttons for files');

/** Puts files into a file input like its dialog: with the folder's name as prefix if a folder is chosen. */
export async function chooseFiles(page, label, files, folder) {
  await openOtherModels(page);
  const put = async (make, list, own, name) => {
    const field = document.querySelector(`input[type=file][aria-label="${own}"]`);
    const made = await make(list);
    const data = new DataTransfer();
    for (const [, file] of made) data.items.add(file);
    field.files = data.files;
    if (name) {
      if (!field.webkitdirectory) throw new Error('the field takes no folder');
      Array.from(field.files, (file, i) => Object.defineProperty(file, 'webkitRelativePath', { value: `${name}/${made[i][0]}` }));
    }
    field.dispatchEvent(new Event('change', { bubbles: true }));
  };
  await page.evaluate(put, makeFiles, files, label, folder);
}
