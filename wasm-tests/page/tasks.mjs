/** What "Use it" has for heads of other tasks: names, masks, answers, an order. Expected is what the package gives for the same files. */
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../support/paths.mjs';
import { chooseFiles, loadFrom, shows } from './models.mjs';
import { assertNear, json, section } from './page.mjs';

const use = section('use');
const folderOf = (name) => join(repository, 'testdata/models', name);

/** What a model makes of something, with int8 weights, as the page has them. */
async function byPackage({ attn }, source, run) {
  const model = await attn.loadModel(source, { weights: 'int8' });
  try {
    return await run(model);
  } finally {
    model.dispose();
  }
}

/** Loads one of the models beside the page, by its button. */
async function loadSmall(page, name) {
  const button = await page.until(
    `all('button', undefined, ${use}).map(text).find((each) => each.startsWith(${json(`Load the ${name}, `)}))`,
    `the button for the ${name}`,
  );
  assert.match(button, /, \d\.\d MB$/);
  await page.click('button', button, use);
  await shows(page, name);
}

const expectAlert = async (page, words) => {
  await page.until(`all('alert', undefined, ${use}).some((each) => ${words}.test(text(each)))`, `an alert of ${words}`);
};
const noAlert = (page) => page.until(`all('alert', undefined, ${use}).length === 0`, 'no alert');

/** A list's entries: [name, number]. */
const entries = (page, name) =>
  page.tool(
    `Array.from(find('list', ${json(name)}, ${use}).children, (each) => [text(each.querySelector('.ranked-name')), text(each.lastElementChild)])`,
  );

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

/** The page has not asked for a file of these before. */
const fetched = (page, part) => page.driver.evaluate(`attnProbe.requests.filter((each) => each.includes(${json(part)})).length`);

export const tests = {
  async 'names in a text are marked as classifyTokens finds them, with type and score'({ page, data, note }) {
    await page.open();
    assert.equal(await page.tool(`all('textbox', 'Text with names', ${use}).length`), 0, 'a classifier of texts has no such part');
    await page.until(`all('button', undefined, ${use}).some((each) => /^Load the entity model/.test(text(each)))`, 'the button');
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
        const written = await page.tool(`text(find('group', 'Text with its names marked', ${use}))`);
        let whole = text;
        for (const { end, label, score } of expected.toReversed())
          whole = `${whole.slice(0, end)} ${label} ${(100 * score).toFixed(0)} %${whole.slice(end)}`;
        assert.equal(written, whole);
      });
      return expected.map((each) => `${each.text} ${each.label}`).join(', ');
    };
    note(await assertMarked('Marie Curie was born in Warsaw and worked in Paris for the Sorbonne. In 1903 she won the Nobel Prize.', 'first'));
    await page.axe('names in a text', '#use');
    const own = 'My sister Anna works for Siemens in Berlin since 2019.';
    await page.fill('Text with names', own, use);
    await assertMarked(own, 'first');
    for (const how of ['simple', 'average', 'none']) {
      await page.choose('combobox', 'Tokens become names', how, use);
      await assertMarked(own, how);
    }
    await page.choose('textbox', 'Text with names', 'nothing at all', use);
    await page.until(`/finds no name/.test(text(${use})) && !all('table', 'Names in the text', ${use}).length`, 'no name');
    await page.choose('textbox', 'Text with names', ' ', use);
    await expectAlert(page, '/There is no text/');
    assert.ok(await page.tool(`find('textbox', 'Text with names', ${use}).getAttribute('aria-invalid') === 'true'`));
    await page.choose('textbox', 'Text with names', 'x'.repeat(20001), use);
    await expectAlert(page, '/20001 characters/');
    await page.choose('textbox', 'Text with names', own, use);
    await noAlert(page);
    assert.match(await page.tool(`text(${use})`), /It is the model above\./);
  },
  async 'a mask is filled as fillMask fills it, and put where the caret is'({ page, data, note }) {
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
    note(expected.map(({ token, score }) => `${token} ${score.toFixed(2)}`).join(', '));
    await page.axe('words for a mask', '#use');
    const text = 'He opened the door with a key.';
    await page.fill('Text with a mask', text, use);
    await expectAlert(page, String.raw`/There is no \[MASK\]/`);
    const at = text.indexOf('key');
    await page.tool(`(find('textbox', 'Text with a mask', ${use}).setSelectionRange(${at}, ${at + 3}), true)`);
    await page.click('button', 'Insert [MASK]', use);
    const masked = text.replace('key', '[MASK]');
    await page.until(`find('textbox', 'Text with a mask', ${use}).value === ${json(masked)}`, 'the mask in the place of the word');
    await page.until(`document.activeElement.selectionStart === ${at + 6}`, 'the caret behind it');
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
    await expectAlert(page, '/The masks could not be filled/');
    await page.choose('textbox', 'Text with a mask', first, use);
    await noAlert(page);
  },
  async 'a question is answered as answer() does, and the answer is marked'({ page, data }) {
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
      await page.tool(`text(find('group', 'Text with the answer marked', ${use}))`),
      `${context.slice(0, end)} ${(100 * score).toFixed(0)} %${context.slice(end)}`,
    );
    await page.axe('an answer', '#use');
    await page.choose('textbox', 'Question', '', use);
    await expectAlert(page, '/There is no question/');
    await page.choose('textbox', 'Question', question, use);
    await page.choose('textbox', 'Text to answer from', '', use);
    await expectAlert(page, '/There is no text to answer from/');
    await page.choose('textbox', 'Text to answer from', context, use);
    await noAlert(page);
  },
  async 'a head with one answer puts lines in order, as rank() does'({ page, data }) {
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
    const carried = json(Object.entries(files).map(([name, bytes]) => [name, bytes.toString('base64')]));
    await chooseFiles(
      page,
      'Choose files',
      `Promise.all(${carried}.map(([name, bytes]) => [name, new File([Uint8Array.from(atob(bytes), (each) => each.charCodeAt(0))], name)]))`,
    );
    await page.until(`all('textbox', 'Query', ${use}).length === 1`, 'the part for an order', 30000);
    const query = 'Was it good?';
    const lines = ['It was bad.', 'The film was good!', 'A happy person smiles at the child in the garden.'];
    await page.fill('Query', query, use);
    await page.choose('textbox', 'Lines to rank, one a line', lines.join('\n'), use);
    const ranked = await byPackage(data, files, (model) => model.rank(query, lines));
    await assertList(
      page,
      'Lines by relevance',
      ranked.map(({ index, score }) => [`${index + 1} ${lines[index]}`, score]),
    );
    await page.axe('an order', '#use');
    await page.choose('textbox', 'Lines to rank, one a line', lines[0], use);
    await expectAlert(page, '/at least 2 lines/');
    await page.choose('textbox', 'Lines to rank, one a line', lines.join('\n'), use);
    await page.choose('textbox', 'Query', ' ', use);
    await expectAlert(page, '/There is no query/');
    await page.choose('textbox', 'Query', query, use);
    await noAlert(page);
  },
  async 'a link says the texts of tasks, and offers the model that they are for'({ page }) {
    await page.open();
    await loadSmall(page, 'entity model');
    const own = 'Rosa lives in Lima & works for Oxfam.';
    await page.fill('Text with names', own, use);
    await page.until(`new URLSearchParams(location.hash.slice(1)).get('use.names') === ${json(own)}`, 'the text in the address');
    const hash = await page.driver.evaluate('location.hash.slice(1)');
    await page.open(hash);
    assert.equal(await page.tool(`all('textbox', 'Text with names', ${use}).length`), 0, 'a link loads nothing unasked');
    const bar = section('sentence');
    const offer = await page.until(`all('button', undefined, ${bar}).map(text).find((each) => /^Load entity model/.test(each))`, 'the offer');
    await page.click('button', offer, bar);
    await shows(page, 'entity model');
    await page.until(`find('textbox', 'Text with names', ${use}).value === ${json(own)}`, 'the text');
    await page.until(`find('table', 'Names in the text', ${use}).tBodies[0].rows.length > 0`, 'its names');
  },
};
