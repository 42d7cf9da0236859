import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { repository } from '../support/paths.mjs';
import { packageNumbers, sentence } from './data.mjs';
import {
  assertHeads,
  assertProblem,
  bar,
  chooseFiles,
  drop,
  filesOf,
  loadFrom,
  loadMini,
  miniIsOffered,
  modelAlert,
  modelFiles,
  nameOf,
  sharded,
  shows,
  withModels,
} from './models.mjs';
import { ofHead, Page, settled } from './page.mjs';
import { pageTest, skipWithout } from './fixture.mjs';

const mini = 'models/all-MiniLM-L6-v2';
const weights = 'Weights of the model';
const pooling = '1_Pooling/config.json';

pageTest('a model that cannot be loaded raises an alert with cause and fix', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  for (const [address, cause] of [
    [
      'model/gone/sentiment',
      /sentiment could not be loaded\. 127\.0\.0\.1:\d+ has a config\.json but no model\.safetensors.*404.*Check the address.*\(NETWORK\)/,
    ],
    ['model/html/sentiment', /could not be loaded\. .*gave a web page.*HTML.*\(FORMAT\)/],
    ['model/plain/nothing', /nothing could not be loaded\. .*has no config\.json there \(404\)/],
  ]) {
    await loadFrom(page, address);
    assert.match(await page.says(/./, 'alert', undefined, '#sentence'), cause);
    assert.match(await page.text('status'), /could not be loaded/);
    await page.click('button', 'Close', ['alert', undefined, bar]);
  }
  await loadFrom(page, 'ftp://example.org/');
  await page.says(/only http and https.*owner\/name/, 'alert', undefined, '#sentence');
  await page.fill('Sentence', 'Still here.');
  await page.numbers('Attention weights', ofHead(data.forward('Still here.').attentions[1], 3));
});

pageTest('models load from the Hub by name, in all the layouts in which they are published', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1', 'without/hub/');
  const bert = await data.another('testdata/models/tiny-bert', sentence);
  const pooled = await data.another('testdata/models/tiny-bert-cls', sentence);
  await page.fill('Model', 'tests/plain', bar);
  await page.until(({ text }) => /Downloads config\.json.* of tests\/plain from huggingface\.co\./.test(text('#sentence #address-plan')), 'the plan');
  for (const [written, name, expected] of [
    ['tests/plain', 'tests/plain', bert],
    ['https://huggingface.co/tests/sentences/blob/main/1_Pooling/config.json', 'tests/sentences', pooled],
    ['hf.co/tests/onnx-beside/tree/main/onnx', 'tests/onnx-beside', bert],
    ['tests/legacy', 'tests/legacy', pooled],
    ['https://huggingface.co/tests/inside/tree/main/models/small', 'tests/inside/models/small', bert],
    ['tests/revised@v2.0', 'tests/revised@v2.0', bert],
    ['https://huggingface.co/tests/revised/tree/refs%2Fpr%2F3', 'tests/revised@refs/pr/3', bert],
    ['tests/sharded', 'tests/sharded', bert],
    ['tests/no-architectures', 'tests/no-architectures', pooled],
  ]) {
    await loadFrom(page, written);
    await shows(page, `${name}, ${expected.layers} × ${expected.heads} heads`);
    await assertHeads(page, expected, [[1, 1]]);
  }
  await page.until(() => location.hash.includes('model=tests%2Fno-architectures'), 'the name in the address');
  for (const [written, cause, fix] of [
    ['tests/inside', /has no config\.json in tests\/inside \(404\)/, /…\/tree\/main\/folder/],
    ['tests/pickle', /a pickle \(pytorch_model\.bin\)/, /save_pretrained.*in Python/],
    ['tests/onnx-only', /an ONNX graph but no model\.safetensors/, /Use the model from which it was exported/],
    ['tests/no-tokenizer', /there is no tokenizer\.json/, /AutoTokenizer/],
    ['tests/decoder', /kind of model/, /families BERT/],
    ['tests/gated', /has no public model tests\/gated \(401\)/, /Check the spelling/],
    ['tests/nothing', /has no public model tests\/nothing \(401\)/, /Check the spelling/],
  ]) {
    await loadFrom(page, written);
    const said = await page.until(
      ({ find, text }, address, where) => {
        const words = text(find(...where));
        return words.includes(address) && words;
      },
      `the alert for ${written}`,
      written,
      modelAlert,
    );
    assert.match(said, cause);
    assert.match(said, fix);
    const status = await page.text('status');
    assert.match(status, /could not be loaded\.$/, 'the status reports it, and leaves the cause to the alert');
    await page.click('button', 'Close', modelAlert);
  }
});

pageTest('loading a model from an address shows progress and can be cancelled', async ({ page }) => {
  await page.open();
  await loadFrom(page, 'model/slow/large-tiny-bert');
  await page.until(({ text }) => /tiny-bert: .* of \d+\.\d MB/.test(text('#sentence .progress')), 'bytes of all bytes');
  await page.click('button', 'Cancel', bar);
  await page.says(/large-tiny-bert was not loaded: cancelled/, 'status');
  await sleep(300);
  assert.equal(await page.count('progressbar', undefined, '#sentence'), 0, 'no progress');
  await loadFrom(page, 'model/plain/tiny-bert-multilabel');
  await shows(page, 'tiny-bert-multilabel');
  await page.until(({ text, find }) => text(find('list', "The classifier's answer")).includes('%'), 'its answers');
  await page.click('button', 'Back to the sentiment classifier', bar);
  await shows(page, 'sentiment classifier');
});

pageTest('after the worker dies, Restart brings it back with the text', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  await settled(page);
  const text = 'The show must go on.';
  // As if the worker ran out of memory.
  await page.evaluate(() => {
    attnProbe.workers.forEach((worker) => {
      worker.terminate();
      worker.dispatchEvent(new ErrorEvent('error', { message: 'out of memory' }));
    });
  });
  await page.fill('Sentence', text);
  assert.match(await page.says(/./, 'alert', undefined, '#sentence'), /The module has stopped\..*Start it again\. The text and the view stay\./);
  await page.click('button', 'Restart', bar);
  await page.numbers('Attention weights', ofHead(data.forward(text).attentions[1], 3));
  assert.equal(await page.count('alert', undefined, '#sentence'), 0);
});

pageTest('dropped or chosen files and folders load their model', async ({ page, engine }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  const bert = await data.another('testdata/models/tiny-bert', sentence);
  const roberta = await data.another('testdata/models/tiny-roberta', sentence);
  const distilbert = await data.another('testdata/models/tiny-distilbert', sentence);
  const pooled = await data.another('testdata/models/tiny-bert-cls', sentence);
  // Each model has a different name, so the previous one is not mistaken for it.
  const came = async (name, expected) => {
    await shows(page, `${name}, ${expected.layers} × ${expected.heads} heads`);
    await assertHeads(page, expected, [
      [1, 1],
      [expected.layers, expected.heads],
    ]);
  };
  await drop(page, filesOf('tiny-bert', modelFiles));
  await came('your files', bert);
  await chooseFiles(page, 'Choose a folder', filesOf('tiny-distilbert', modelFiles, { 'README.md': 'words' }), 'tiny-distilbert');
  await came('tiny-distilbert', distilbert);
  await chooseFiles(page, 'Choose files', filesOf('tiny-roberta', modelFiles));
  await came('your files', roberta);
  // The dropped folder contains another folder with a config.json.
  const inside = [pooling, ...modelFiles, 'modules.json', 'sentence_bert_config.json'];
  await drop(page, filesOf('tiny-bert-cls', inside, { 'notes.txt': 'words' }, 'tiny-bert-cls/'), 'downloads');
  await came('tiny-bert-cls', pooled);
  const snapshot = `snapshots/${'0123456789'.repeat(4)}/`;
  await drop(page, filesOf('tiny-roberta', modelFiles, { 'refs/main': '0' }, snapshot), 'models--tests--tiny-roberta');
  await came('tests/tiny-roberta', roberta);
  await drop(page, filesOf('tiny-bert-cls', [...modelFiles, 'modules.json', 'sentence_bert_config.json']));
  await came('your files', pooled);
  await page.until(({ text }) => /1_Pooling is missing/.test(text('#sentence .model')), 'what was done without');
  await drop(page, sharded, 'tiny-bert');
  await came('tiny-bert', bert);
  if (engine === 'chromium') {
    await page.driver.drop([join(repository, 'testdata/models/tiny-distilbert')], 600, 300);
    await came('tiny-distilbert', distilbert);
  }
  await page.click('button', 'Back to the sentiment classifier', bar);
  await shows(page, 'sentiment classifier, 2 × 4 heads');
  await page.numbers('Attention weights', ofHead(data.forward(sentence).attentions[1], 3));
});

pageTest('files that are no model raise an alert, and the old model stays usable', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  const broken = { 'model.safetensors': '\u0000\u0001 no tensors' };
  let count = 0;
  for (const [cause, ...carried] of [
    [/could not be loaded\. .*config\.json/, filesOf('', [], { 'cat.png': '\u0089PNG' })],
    [/could not be loaded\. .*(config\.json|pytorch_model\.bin)/, filesOf('', [], { 'pytorch_model.bin': 'PK' })],
    [/bert\.zip is an archive.*Unpack it/, filesOf('', [], { 'bert.zip': 'PK' })],
    [/a pickle.*save_pretrained.*in Python/, filesOf('tiny-bert', modelFiles.slice(0, 3), { 'pytorch_model.bin': 'PK' })],
    [/could not be loaded\. .*(tokenizer\.json|model\.safetensors)/, filesOf('tiny-bert', ['config.json'])],
    [/header is longer.*\(FORMAT\)/, filesOf('tiny-bert', modelFiles.slice(0, 3), broken)],
    [/kind of model is not one.*families BERT.*"vit"/, filesOf('../vision/digits', ['config.json', 'model.safetensors', 'preprocessor_config.json'])],
    [/could not be loaded\. .*config\.json/, filesOf('', []), 'empty'],
  ]) {
    await drop(page, ...carried);
    await assertProblem(page, cause);
    assert.match(await page.tool(({ text }) => text('#sentence .model-name')), /sentiment classifier, 2 × 4 heads/);
    const text = `Still here ${++count}.`;
    await page.fill('Sentence', text);
    await page.numbers('Attention weights', ofHead(data.forward(text).attentions[1], 3));
  }
});

const isThere = existsSync(join(repository, mini, 'model.safetensors'));
pageTest("a button loads all-MiniLM-L6-v2, and its numbers are the package's", { skip: skipWithout(isThere ? '' : mini) }, async ({ page, t }) => {
  const data = await packageNumbers();
  assert.ok(isThere, `${mini} not found`);
  await page.open('table=1');
  const heads = [
    [1, 1],
    [3, 12],
    [6, 5],
  ];
  const megabytes = await loadMini(page);
  await shows(page, 'all-MiniLM-L6-v2, 6 × 12 heads, int8');
  assert.equal(await miniIsOffered(page), false, 'it is not offered once more');
  const name = await nameOf(page);
  const [, files, size] = /int8 (made here from|from) files of (\d+\.\d) MB/.exec(name) ?? assert.fail(name);
  assert.ok(Math.abs(Number(size) - megabytes) <= 1, `${megabytes} MB were offered: ${name}`);
  assert.ok(files === 'from' ? Number(size) < 24 : Number(size) > 90, name);
  t.diagnostic(name);
  await assertHeads(page, await data.another(mini, sentence), heads);
  assert.equal(await page.count('button', undefined, ['group', 'Heads as pictures']), 72);
  await page.choose('combobox', weights, 'float32', bar);
  await page.click('button', 'Load it as float32, 91 MB', bar);
  await shows(page, 'all-MiniLM-L6-v2, 6 × 12 heads, float32 from files of 91.3 MB');
  await assertHeads(page, await data.another(mini, sentence, 'float32'), heads);
});

pageTest('a button shows the head that maps the atoms of a reaction', { engines: 'chromium' }, async ({ page }) => {
  await page.openFresh();
  await page.click('button', 'Show it with a reaction');
  await page.says(/^Ready.*reaction model/, 'status');
  const seen = await page.tool(({ find }) => ['Layer', 'Head'].map((name) => find(['combobox', 'slider'], name).value));
  assert.deepEqual(seen, ['11', '6']);
  assert.equal(await page.tool(({ find }) => find('textbox', 'Sentence').value), 'BrCc1ccccc1.CN>>CNCc1ccccc1');
  await page.click('button', 'View as table');
  const { cells } = await page.table('Attention weights');
  const tokens = await page.tool(({ find }) => Array.from(find('table', 'Attention weights').rows[0].cells, (cell) => cell.textContent.trim()));
  const row = (place) => cells[place].map(Number);
  // The product's first two atoms are those of methylamine.
  const arrow = tokens.indexOf('>>') - (tokens.length - cells[0].length);
  for (const [product, reactant] of [
    [1, -2],
    [2, -1],
  ]) {
    const weights = row(arrow + product);
    assert.equal(weights.indexOf(Math.max(...weights)), arrow + reactant);
  }
});

pageTest('if all-MiniLM-L6-v2 is missing, its button explains what to do', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1', 'without/models/');
  await loadMini(page);
  await page.shows('button', 'Load it from huggingface.co, 91 MB', modelAlert);
  await assertProblem(page, /all-MiniLM-L6-v2 could not be loaded\. .*has no config\.json there \(404\).*Check the address.*\(NETWORK\)/);
  await page.eventually(async () => assert.ok(await miniIsOffered(page)));
  await page.fill('Sentence', 'Still here.');
  await page.numbers('Attention weights', ofHead(data.forward('Still here.').attentions[1], 3));
});

pageTest('the button loads int8 files if there are any, and quantizes float32 files otherwise', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
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
      assert.match(await nameOf(other), /int8 converted here from files of 0\.\d MB/);
      await assertHeads(other, expected, [[1, 1]]);
      // The other type is always loaded from the float32 folder.
      server.asked.length = 0;
      await other.choose('combobox', weights, 'float32', bar);
      await other.click('button', 'Load it as float32, 91 MB', bar);
      await shows(other, `${name}, ${models[1].layers} × ${models[1].heads} heads, float32`);
      assert.deepEqual(server.asked, [name]);
      await page.open();
    } finally {
      await server.close();
    }
  }
});

pageTest('models load as int8, or as float32 on request, and the address holds the choice', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  const folder = 'testdata/models/tiny-bert';
  const [int8, float32] = await Promise.all(['int8', 'float32'].map((each) => data.another(folder, sentence, each)));
  const heads = [
    [1, 1],
    [int8.layers, int8.heads],
  ];
  await page.open('table=1');
  assert.match(await nameOf(page), /^sentiment classifier, 2 × 4 heads, float32/);
  assert.deepEqual(
    await page.tool(({ text, find }, name) => {
      const { value, options } = find('combobox', name);
      return [value, ...Array.from(options, text)];
    }, weights),
    ['int8', 'int8', 'float32'],
  );
  await loadFrom(page, folder);
  await shows(page, 'tiny-bert, 2 × 4 heads, int8');
  await assertHeads(page, int8, heads);
  await page.choose('combobox', weights, 'float32', bar);
  await page.until(() => location.hash.includes('dtype=float32'), 'the choice in the address');
  assert.match(await page.until(({ text }) => text('#sentence .notice'), 'the offer'), /tiny-bert is loaded with int8 weights\..*Keep int8/);
  await assertHeads(page, int8, heads);
  await page.click('button', 'Keep int8', bar);
  await page.until(
    ({ find }, name) => find('combobox', name, '#sentence').value === 'int8' && !document.querySelector('#sentence .notice'),
    'no offer',
    weights,
  );
  await page.choose('combobox', weights, 'float32', bar);
  await page.click('button', 'Load it as float32', bar);
  await shows(page, 'tiny-bert, 2 × 4 heads, float32');
  await assertHeads(page, float32, heads);
  assert.equal(await page.evaluate(() => !!document.querySelector('#sentence .notice')), false);
  const hash = await page.hash();
  assert.match(hash, /dtype=float32/);
  await page.open(hash);
  await page.click('button', 'Load it from there', bar);
  await shows(page, 'tiny-bert, 2 × 4 heads, float32');
  await assertHeads(page, float32, heads);
  // Dropped files do so as well; the page's own classifier stays float32, as PyTorch's numbers are.
  await drop(page, filesOf('tiny-bert', modelFiles));
  await shows(page, 'your files, 2 × 4 heads, float32');
  await assertHeads(page, float32, heads);
  await page.choose('combobox', weights, 'int8', bar);
  await page.click('button', 'Load it as int8', bar);
  await shows(page, 'your files, 2 × 4 heads, int8');
  await assertHeads(page, int8, heads);
  await page.click('button', 'Back to the sentiment classifier', bar);
  await shows(page, 'sentiment classifier, 2 × 4 heads, float32');
});

pageTest('without WebAssembly or memory the page explains the error and does not wait', async ({ page }) => {
  for (const [lacks, cause, fix] of [
    ['webassembly', /module could not be started\. .*WebAssembly.*\(ENVIRONMENT\)/, /Chrome or Edge \d+, Firefox \d+, Safari \d+/],
    ['memory', /module could not be started\. .*memory.*\(MEMORY\)/, /Close other pages/],
    ['growth', /could not be loaded\. .*memory.*\(MEMORY\)/, /Close other pages/],
  ]) {
    await page.visit('', `without/${lacks}/`);
    const said = await page.says(/./, 'alert', undefined, '#sentence');
    assert.match(said, cause);
    assert.match(said, fix);
    assert.match(await page.text('status'), /could not be (started|loaded)/);
    await page.until(({ text }) => !/starting|loading/i.test(text('#app')), `nothing waits without ${lacks}`);
    await page.axe(`without ${lacks}`);
    await page.click('button', 'Restart', bar);
    await page.until(
      ({ all, text, find }) => all('alert', undefined, '#sentence').length === 1 && /could not be/.test(text(find('status'))),
      'the alert again',
    );
    await page.click('button', 'Close', bar);
    await page.lacks('alert', undefined, '#sentence');
    assert.doesNotMatch(await page.tool(({ text }) => text('#app')), /starting|loading/i);
  }
});

pageTest('a model too large for the memory raises an alert, and the old model stays usable', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1', 'without/much-growth/');
  await loadFrom(page, '/model/plain/large-tiny-bert');
  await assertProblem(page, /large-tiny-bert could not be loaded\. .*not enough memory.*smaller model.*\(MEMORY\)/);
  await page.fill('Sentence', 'Still here.');
  await page.numbers('Attention weights', ofHead(data.forward('Still here.').attentions[1], 3));
});
