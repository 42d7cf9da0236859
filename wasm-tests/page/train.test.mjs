import { readFileSync } from 'node:fs';
import { strict as assert } from 'node:assert';
import { packageNumbers } from './data.mjs';
import { assertCells, json, saved } from './page.mjs';
import { pageTest } from './fixture.mjs';

const train = '#train';
const kept = JSON.parse(readFileSync(new URL('../../testdata/page_training.json', import.meta.url), 'utf8'));

const figure = (page, name) => page.text('group', name, train);
const number = async (page, name) => Number.parseFloat(await figure(page, name));
const reaches = (page, name, check, ...args) =>
  page.until(({ find, text }, group, own, ...given) => own(text(find('group', group, '#train')), ...given), name, name, check, ...args);
async function pausedAt(page, step) {
  await page.until(
    ({ all, find, text }, expected) =>
      ['Train', 'Train further'].some((name) => all('button', name, '#train').length > 0) && text(find('group', 'Step', '#train')) === expected,
    `step ${step}`,
    String(step),
  );
}
async function press(page, name, step) {
  await page.click('button', name, train);
  await pausedAt(page, step);
  await reaches(page, 'Fingerprint', (said) => !!said);
}
/** Brightness of a map's pixels: the sum of red and green, which grows with the weight. */
const pixels = (page, name) =>
  page.tool(({ all, nameOf }, start) => {
    const canvas = all('img', undefined, '#train').find((each) => nameOf(each).startsWith(start));
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return Array.from({ length: data.length / 4 }, (_, i) => data[4 * i] + data[4 * i + 1]);
  }, name);

const savedBy = (page, button) => saved(page, () => page.click('button', button, train));

pageTest('a model learns to reverse, bit for bit as in Node', { isolated: 'all' }, async ({ page, t }) => {
  await page.open(`train.steps=${kept.steps}&go=train`);
  const fixedWidth = () => (page.driver.requests() ?? []).filter((url) => /attn-simd[\w-]*\.wasm/.test(url)).length;
  const loadedBefore = fixedWidth();
  const before = await pixels(page, 'Expected');
  const start = Date.now();
  await page.click('button', 'Train', train);
  await reaches(page, 'Step', (said) => Number(said) > 0);
  const first = Date.now() - start;
  await reaches(page, 'Held-out accuracy', (said) => Number.parseFloat(said) >= 99);
  const learned = Date.now() - start;
  t.diagnostic(`first step after ${first} ms, 99 % after ${learned} ms`);
  await pausedAt(page, kept.steps);
  assert.equal(await figure(page, 'Fingerprint'), kept.fingerprint);
  await page.shows('button', 'Train further', '#train');
  await page.shows('img', 'Expected, the pattern to learn', '#train');
  if (page.driver.requests()) assert.equal(fixedWidth() - loadedBefore, 1, 'the fixed-width binary is loaded for training');
  assert.ok((await number(page, 'Loss')) < 0.3);
  // The brightest cell of each row is on the antidiagonal.
  const map = await pixels(page, 'Layer 1, head 1');
  for (const cells of [before, map])
    for (let i = 0; i < 8; ++i) {
      const row = cells.slice(8 * i, 8 * i + 8);
      assert.equal(row.indexOf(Math.max(...row)), 7 - i, `row ${i}`);
    }
  const answered = await page.tool(({ find, text }) => Array.from(find('group', 'The answer', '#train').querySelectorAll('strong'), text));
  assert.deepEqual(answered, [...'81828172']);
  for (const name of ['Loss curve', 'Accuracy curve'])
    assert.equal(await page.tool(({ find }, img) => find('img', img, '#train').querySelectorAll('polyline[points*=","]').length, name), 2, name);
  assert.match(await page.tool(({ text }) => text('#train > [aria-live]')), /^Paused\. Step 200, loss 0\.\d\d, (99|100) % right$/);
  const curve = (await savedBy(page, 'Save Loss curve as SVG')).bytes;
  assert.match(Buffer.from(curve).toString(), /^<svg [\s\S]*>Loss curve<[\s\S]*step 200</);
  await page.click('button', 'View its maps as tables', train);
  const { cells } = await page.table('Layer 1, head 1, weights', train);
  cells.forEach((row, i) => assert.ok(Number(row[7 - i]) > 0.5, `row ${i}: ${row}`));
  await page.axe('a trained model', '#train');
});

pageTest('a link restores the settings of training, which can run step by step and next to a second run', async ({ page }) => {
  await page.driver.resize(375, 800);
  await page.open();
  await page.choose('combobox', 'Task', 'brackets', train);
  await page.choose('combobox', 'Initialisation', 'xavier_uniform', train);
  await page.choose('combobox', 'Positions', 'sinusoidal', train);
  await page.fill('Layers of the model', '1', train);
  await page.fill('Heads of the model', '4', train);
  await page.choose('combobox', 'Second run for comparison', 'positions', train);
  await page.until(() => /train\.task=brackets.*train\.beside=positions/.test(location.hash), 'the address');
  const hash = await page.hash();
  await page.open(hash);
  await press(page, 'One step', 1);
  await press(page, 'One step', 2);
  const values = await page.tool(({ find }) =>
    [
      ['combobox', 'Task'],
      ['combobox', 'Initialisation'],
      ['combobox', 'Positions'],
      ['spinbutton', 'Layers of the model'],
      ['spinbutton', 'Heads of the model'],
    ].map((field) => find(...field, '#train').value),
  );
  assert.deepEqual(values, ['brackets', 'xavier_uniform', 'sinusoidal', '1', '4']);
  const names = await page.tool(({ all, nameOf }) =>
    all('img', undefined, '#train')
      .map(nameOf)
      .filter((name) => name.startsWith('Layer')),
  );
  assert.equal(names.filter((name) => /, As set, /.test(name)).length, 4, json(names));
  assert.equal(names.filter((name) => /, with learned|, without positions, /.test(name)).length, 4, json(names));
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), 'wider than a phone');
  const after = await pixels(page, 'Layer 1, head 2');
  await page.tool(({ choose, find }) => choose(find('slider', 'Moment of the run', '#train'), '0'));
  await page.eventually(async () => assert.notDeepEqual(await pixels(page, 'Layer 1, head 2'), after));
  await page.fill('Test example', '( [', train);
  assert.match(await page.says(/./, 'alert', undefined, '#train'), /It has 2 symbols and needs 12/);
  await page.axe('two runs on a phone', '#train');
  await press(page, 'Start again', 0);
  await page.click('button', 'Train', train);
  await reaches(page, 'Step', (said) => Number(said) > 2);
  await page.click('button', 'Pause', train);
  await page.shows('button', 'Train', '#train');
  await page.tool(({ find }) => find('spinbutton', 'Layers of the model', '#train').closest('.train-settings').querySelector('summary').click());
  await page.shows('spinbutton', 'Seed', '#train');
  await page.fill('Seed', '7', train);
  await reaches(page, 'Step', (said) => said === '0');
  await page.until(({ find }) => find('button', 'Start again', '#train').disabled, 'nothing yet');
});

pageTest('a trained classifier is saved, opened in the other sections, and loses heads there', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open('train.task=frequent&train.steps=60');
  await press(page, 'Train', 60);
  const { name, bytes } = await savedBy(page, 'Save as safetensors');
  assert.equal(name, 'attn-frequent-step-60.safetensors');
  const weights = data.attn.parseSafetensors(bytes);
  assert.deepEqual(weights.get('encoder.layers.0.self_attn.in_proj_weight').dims, [96, 32]);
  assert.deepEqual(weights.get('classifier.weight').dims, [5, 32]);
  const answer = await page.tool(({ text, find }) => text(find('group', 'The answer', '#train').querySelector('.one')));
  await page.click('button', 'Open this model in the sections above', train);
  await page.says(/^Ready: trained here: frequent, step 60, 1 × 1 heads over 12 tokens/, 'status');
  assert.equal(await page.tool(({ find }) => find('textbox', 'Sentence').value), 'e a a c d a e a a e d');
  const best = await page.until(({ find, text }) => text(find('list', "The classifier's answer").children[0]), 'its answer');
  assert.ok(best.startsWith(answer), `${best}, trained: ${answer}`);
  await page.evaluate(() => (location.hash += '&off=0'));
  await page.until(
    ({ find, text }, before) => text(find('list', "The classifier's answer").children[0]) !== before,
    'another answer without its head',
    best,
  );
});

pageTest('the explanation of an answer shows the numbers of attribute()', async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  const use = '#use';
  const text = 'The acting is wonderful.';
  await page.shows('button', 'Why?', '#use');
  await page.click('button', 'Why?', use);
  await page.shows('table', 'Attribution', '#use');
  const { rows, columns, cells } = await page.table('Attribution', use);
  const methods = ['leave_one_out', 'integrated_gradients', 'gradient_x_input', 'attention_gradient', 'attention_rollout'];
  assert.equal(columns.length, methods.length);
  const [{ label }] = (await data.model.classify([text]))[0];
  const scores = await Promise.all(methods.map((method) => data.model.attribute(text, { method, target: label })));
  assert.deepEqual(rows, scores[0].tokens);
  assertCells(cells, { count: rows.length, width: methods.length, at: (i, j) => scores[j].scores[i] }, 'Attribution');
  await page.choose('combobox', 'Method', 'attention_rollout', use);
  assert.ok(Number.parseFloat(await page.text('group', 'Delta of integrated gradients', '#use')) < 1, 'per cent');
  await page.axe('the explanation', '.why');
  const link = await page.until(() => /^#model=sentiment&(why=.*)/.exec(location.hash)?.[1], 'the address');
  assert.equal(link, 'why=1.attention_rollout');
  await page.open(link);
  await page.shows('table', 'Attribution', '#use');
  assert.equal(await page.tool(({ find }) => find('combobox', 'Method', '#use').value), 'attention_rollout');
});

pageTest('the settings of training leave no hole, and stay in place when one is changed', { engines: 'chromium' }, async ({ page, t }) => {
  await page.open();
  await page.shows('button', 'Train', '#train');
  const { hole, height } = await page.evaluate(() => {
    const [stage, settings] = ['.train-stage', '.train-settings > :last-child'].map((each) =>
      document.querySelector(`#train ${each}`).getBoundingClientRect(),
    );
    return { hole: Math.round(stage.bottom - settings.bottom), height: Math.round(stage.height) };
  });
  t.diagnostic(`the settings end ${hole} px above the rest`);
  assert.ok(hole < 200, `the settings end ${hole} px above the rest`);
  assert.ok(height < 1000, `${height} px high`);
  await press(page, 'One step', 1);
  // Parts above may still grow.
  const top = () =>
    page.tool(
      ({ find }) =>
        find('combobox', 'Positions', '#train').getBoundingClientRect().top - document.getElementById('train').getBoundingClientRect().top,
    );
  const before = await top();
  await page.choose('combobox', 'Positions', 'none', train);
  await reaches(page, 'Step', (said) => said === '0');
  assert.equal(await top(), before);
  const isOpen = () => page.evaluate(() => document.querySelector('#train .train-settings details').open);
  assert.equal(await isOpen(), false, 'rarely changed settings are closed');
  await page.open('model=sentiment&train.seed=7');
  await page.shows('spinbutton', 'Seed', '#train');
  assert.equal(await isOpen(), true);
});
