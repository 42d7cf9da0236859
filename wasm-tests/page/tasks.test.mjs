import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../support/paths.mjs';
import { chooseFiles, loadFrom, shows } from './models.mjs';
import { packageNumbers } from './data.mjs';
import { assertNear, json } from './page.mjs';
import { pageTest } from './fixture.mjs';

const use = '#use';
const folderOf = (name) => join(repository, 'testdata/models', name);

async function byPackage({ attn }, source, run) {
  const model = await attn.loadModel(source, { weights: 'int8' });
  try {
    return await run(model);
  } finally {
    model.dispose();
  }
}

async function loadSmall(page, name) {
  await page.click('tab', name === 'mask model' ? 'Fill a blank' : 'Names', use);
  const button = await page.until(
    ({ all, text }, words) => {
      const buttons = all('button', undefined, '#use');
      return buttons.map((each) => text(each)).find((each) => each.startsWith(words));
    },
    `the button for the ${name}`,
    `Load the ${name}, `,
  );
  assert.match(button, /, \d\.\d MB$/);
  await page.click('button', button, use);
  await shows(page, name);
}

const expectAlert = (page, words) =>
  page.until(({ all, text }, expected) => all('alert', undefined, '#use').some((each) => expected.test(text(each))), `an alert of ${words}`, words);
const noAlert = (page) => page.lacks('alert', undefined, '#use');

const entries = (page, name) =>
  page.tool(({ find, text }, list) => {
    const { children } = find('list', list, '#use');
    return Array.from(children, (each) => [text(each.querySelector('.ranked-name')), text(each.lastElementChild)]);
  }, name);

async function assertList(page, name, expected) {
  await page.eventually(async () => {
    const found = await entries(page, name);
    assert.deepEqual(
      found.map(([each]) => each),
      expected.map(([each]) => each),
    );
    found.forEach(([each, number], i) => assertNear(number, expected[i][1], each));
  });
}

const fetched = (page, part) => page.evaluate((wanted) => attnProbe.requests.filter((each) => each.includes(wanted)).length, part);

pageTest('named entities are marked with the types and scores of classifyTokens()', async ({ page, t }) => {
  const data = await packageNumbers();
  await page.open();
  assert.equal(await page.count('textbox', 'Text with names', '#use'), 0, 'a classifier of texts has no such part');
  const before = await fetched(page, '/model-');
  await loadSmall(page, 'entity model');
  assert.equal(await fetched(page, '/model-'), before + 1, 'its weights were fetched when it was asked for');
  const assertMarked = async (text, aggregation) => {
    const [expected] = await byPackage(data, folderOf('entities'), (model) =>
      model.classifyTokens([text], { aggregation, ...(aggregation !== 'none' && { stride: 16 }) }),
    );
    assert.ok(expected.length > 1);
    await page.eventually(async () => {
      const { rows, columns, cells } = await page.table('Names in the text', use);
      assert.deepEqual(
        rows,
        expected.map((each) => each.text),
      );
      assert.deepEqual(columns, ['type', 'score', 'from', 'to']);
      cells.forEach(([type, score, from, to], i) => {
        const { label, start, end } = expected[i];
        assert.deepEqual([type, Number(from), Number(to)], [label, start, end]);
        assertNear(score, expected[i].score, rows[i]);
      });
      const written = await page.text('group', 'Text with its names marked', '#use');
      let whole = text;
      for (const { end, label, score } of expected.toReversed())
        whole = `${whole.slice(0, end)} ${label} ${(100 * score).toFixed(0)} %${whole.slice(end)}`;
      assert.equal(written, whole);
    });
    return expected.map((each) => `${each.text} ${each.label}`).join(', ');
  };
  t.diagnostic(await assertMarked('Marie Curie was born in Warsaw and worked in Paris for the Sorbonne. In 1903 she won the Nobel Prize.', 'first'));
  await page.axe('names in a text', '#use');
  const own = 'My sister Anna works for Siemens in Berlin since 2019.';
  await page.fill('Text with names', own, use);
  await assertMarked(own, 'first');
  for (const how of ['simple', 'average', 'none']) {
    await page.choose('combobox', 'Group tokens into', how, use);
    await assertMarked(own, how);
  }
  await page.choose('textbox', 'Text with names', 'nothing at all', use);
  await page.until(({ text, all }) => /finds no name/.test(text('#use')) && !all('table', 'Names in the text', '#use').length, 'no name');
  await page.choose('textbox', 'Text with names', ' ', use);
  await expectAlert(page, /There is no text/);
  assert.ok(await page.tool(({ find }) => find('textbox', 'Text with names', '#use').getAttribute('aria-invalid') === 'true'));
  await page.choose('textbox', 'Text with names', 'x'.repeat(20001), use);
  await expectAlert(page, /20001 characters/);
  await page.choose('textbox', 'Text with names', own, use);
  await noAlert(page);
});

pageTest('[MASK] is inserted at the caret and filled with the candidates of fillMask()', async ({ page, t }) => {
  const data = await packageNumbers();
  await page.open();
  await loadSmall(page, 'mask model');
  const filled = (text) => byPackage(data, folderOf('masks'), (model) => model.fillMask(text, { topK: 8 }));
  const first = 'She drank a cup of [MASK].';
  const [expected] = await filled(first);
  await assertList(
    page,
    'Candidates for the mask',
    expected.map(({ token, score }) => [token, score]),
  );
  t.diagnostic(expected.map(({ token, score }) => `${token} ${score.toFixed(2)}`).join(', '));
  await page.axe('words for a mask', '#use');
  const text = 'He opened the door with a key.';
  await page.fill('Text with a mask', text, use);
  await expectAlert(page, /There is no \[MASK\]/);
  const at = text.indexOf('key');
  await page.tool(({ find }, start) => find('textbox', 'Text with a mask', '#use').setSelectionRange(start, start + 3), at);
  await page.click('button', 'Insert [MASK]', use);
  const masked = text.replace('key', '[MASK]');
  await page.until(
    ({ find }, expected) => find('textbox', 'Text with a mask', '#use').value === expected,
    'the mask in the place of the word',
    masked,
  );
  await page.until((_, place) => document.activeElement.selectionStart === place, 'the caret behind it', at + 6);
  await noAlert(page);
  await assertList(
    page,
    'Candidates for the mask',
    (await filled(masked))[0].map(({ token, score }) => [token, score]),
  );
  const two = 'The [MASK] is on the [MASK].';
  await page.fill('Text with a mask', two, use);
  for (const [i, each] of (await filled(two)).entries())
    await assertList(
      page,
      `Candidates for mask ${i + 1}`,
      each.map(({ token, score }) => [token, score]),
    );
  await page.choose('textbox', 'Text with a mask', `[MASK] ${'word '.repeat(80)}`, use);
  await expectAlert(page, /The masks could not be filled/);
  await page.choose('textbox', 'Text with a mask', first, use);
  await noAlert(page);
});

pageTest('a question gets the answers of answer(), marked in the text', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  await loadFrom(page, 'testdata/models/tiny-bert-qa');
  await shows(page, 'tiny-bert-qa');
  const [question, context] = ['Who smiles?', 'A happy person smiles at the child.'];
  await page.fill('Question', question, use);
  await page.fill('Text to answer from', context, use);
  const answers = await byPackage(data, folderOf('tiny-bert-qa'), (model) => model.answer(question, context, { topK: 3 }));
  await assertList(
    page,
    'Answers',
    answers.map(({ text, score }) => [text, score]),
  );
  const [{ end, score }] = answers;
  assert.equal(
    await page.text('group', 'Text with the answer marked', '#use'),
    `${context.slice(0, end)} ${(100 * score).toFixed(0)} %${context.slice(end)}`,
  );
  await page.axe('an answer', '#use');
  await page.choose('textbox', 'Question', '', use);
  await expectAlert(page, /There is no question/);
  await page.choose('textbox', 'Question', question, use);
  await page.choose('textbox', 'Text to answer from', '', use);
  await expectAlert(page, /There is no text to answer from/);
  await page.choose('textbox', 'Text to answer from', context, use);
  await noAlert(page);
});

pageTest('a model with one output ranks lines like rank()', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  const { attn } = data;
  const read = (file) => readFileSync(join(folderOf('tiny-bert'), file));
  const tensors = attn.parseSafetensors(read('model.safetensors'));
  const { data: rows, dims } = tensors.get('classifier.weight');
  tensors.set('classifier.weight', { data: rows.slice(0, dims[1]), dims: [1, dims[1]] });
  tensors.set('classifier.bias', { data: tensors.get('classifier.bias').data.slice(0, 1), dims: [1] });
  const config = { ...JSON.parse(read('config.json').toString()), id2label: { 0: 'relevant' }, label2id: { relevant: 0 } };
  const files = {
    'config.json': Buffer.from(json(config)),
    'tokenizer.json': read('tokenizer.json'),
    'tokenizer_config.json': read('tokenizer_config.json'),
    'model.safetensors': Buffer.from(attn.writeSafetensors(tensors)),
  };
  await page.open();
  await chooseFiles(
    page,
    'Choose files',
    Object.entries(files).map(([name, bytes]) => [name, { base64: bytes.toString('base64') }]),
  );
  await page.until(({ all }) => all('textbox', 'Query', '#use').length === 1, 'the part for an order');
  const query = 'Was it good?';
  const lines = ['It was bad.', 'The film was good!', 'A happy person smiles at the child in the garden.'];
  await page.fill('Query', query, use);
  await page.choose('textbox', 'Lines to rank, one per line', lines.join('\n'), use);
  const ranked = await byPackage(data, files, (model) => model.rank(query, lines));
  await assertList(
    page,
    'Lines by relevance',
    ranked.map(({ index, score }) => [`${index + 1} ${lines[index]}`, score]),
  );
  await page.axe('an order', '#use');
  await page.choose('textbox', 'Lines to rank, one per line', lines[0], use);
  await expectAlert(page, /at least 2 lines/);
  await page.choose('textbox', 'Lines to rank, one per line', lines.join('\n'), use);
  await page.choose('textbox', 'Query', ' ', use);
  await expectAlert(page, /There is no query/);
  await page.choose('textbox', 'Query', query, use);
  await noAlert(page);
});

pageTest('a link restores the texts of a task and offers its model', { engines: 'chromium' }, async ({ page }) => {
  await page.open();
  await loadSmall(page, 'entity model');
  const own = 'Rosa lives in Lima & works for Oxfam.';
  await page.fill('Text with names', own, use);
  await page.until((_, text) => new URLSearchParams(location.hash.slice(1)).get('use.names') === text, 'the text in the address', own);
  const hash = await page.hash();
  await page.open(hash);
  assert.equal(await page.count('textbox', 'Text with names', '#use'), 0, 'a link loads nothing unasked');
  const bar = '#sentence';
  const offer = await page.until(
    ({ all, text }) =>
      all('button', undefined, '#sentence')
        .map(text)
        .find((each) => /^Load entity model/.test(each)),
    'the offer',
  );
  await page.click('button', offer, bar);
  await shows(page, 'entity model');
  await page.until(({ find }, own) => find('textbox', 'Text with names', '#use').value === own, 'the text', own);
  await page.until(({ find }) => find('table', 'Names in the text', '#use').tBodies[0].rows.length > 0, 'its names');
});

pageTest('fields for text follow the direction of its script', { engines: 'chromium' }, async ({ page }) => {
  await page.openFresh();
  await page.click('button', 'Add a second text');
  await page.shows('textbox', 'Text with a mask', use);
  const fields = await page.tool(({ all, nameOf }) =>
    all('textbox')
      .filter((each) => each.localName === 'textarea' && !each.closest('#lab'))
      .map((each) => [nameOf(each), each.dir]),
  );
  assert.ok(fields.length >= 4, json(fields));
  assert.deepEqual(
    fields.filter(([, dir]) => dir !== 'auto'),
    [],
  );
  const words = await page.tool(({ all }) => all('textbox', undefined, '#words').map((each) => each.dir));
  assert.ok(words.length >= 3 && words.every((dir) => dir === 'auto'), json(words));
});
