import { strict as assert } from 'node:assert';
import { packageNumbers, sentence } from './data.mjs';
import { assertNear, ofHead, part, saved } from './page.mjs';
import { pageTest } from './fixture.mjs';

const steps = '#steps';
const example = '#example';
const [layer, head] = [1, 3];
const query = `bert.encoder.layer.${layer}.attention.self.query.weight`;
const second = `bert.encoder.layer.${layer}.output.dense.weight`;

const goTo = (page, title) =>
  page.until(
    ({ all, text }, wanted) => {
      const button = all('button', undefined, '#steps').find((each) => text(each.querySelector('.step-title')) === wanted);
      button?.click();
      return !!button;
    },
    `step ${title}`,
    title,
  );

async function press(page, name, row, column) {
  const run = ({ find }, table, i, j) => {
    find('table', table, '#steps').tBodies[0].rows[i].querySelectorAll('td button')[j].click();
    return true;
  };
  await page.until(run, name, name, row, column);
}

async function write(page, name, row, column, value) {
  await press(page, name, row, column);
  const run = ({ find, mark }, table) => {
    const field = find('table', table, '#steps').querySelector('input');
    return field && mark(field);
  };
  await page.driver.fill(await page.until(run, 'the field in the cell', name), String(value));
  await page.driver.press('Enter');
}

/** The part of a matrix on the first page of its table, or on the page that begins at a column. */
const window = (tensor, { first = 0, offset = 0 } = {}) =>
  part(tensor, offset, { first, width: Math.min(12, tensor.dims.at(-1) - first), count: Math.min(16, tensor.dims.at(-2)) });
const headOf = (tensor) => window(tensor, { offset: head * tensor.dims[2] * tensor.dims[3] });
const ownColumns = (tensor) => ({ ...window(tensor), at: window(tensor, { first: head * 16 }).at });

const tablesOf = (trace) => [
  ['Queries, keys, values', 'Q', ownColumns(trace.q_proj)],
  ['Scale', 'S, the scaled scores', headOf(trace.scores)],
  ['Mask', 'Masked scores', headOf(trace.masked_scores)],
  ['Softmax', 'A, the weights', headOf(trace.probabilities)],
  ['Weigh the values', 'AV, the results of this head', headOf(trace.context)],
  ['Concatenate the heads', 'O, all heads concatenated', window(trace.merged, { first: 48 })],
  ['Through W_O', 'Y, the output of attention', window(trace.output)],
  ['Add and norm', 'Z', window(trace.attn_residual)],
  ['Add and norm', 'Norm of Z', window(trace.norm1)],
  ['Feed-forward', 'H, the hidden layer', window(trace.ff_hidden)],
  ['Add and norm again', 'R', window(trace.ff_residual)],
  ['Add and norm again', 'Norm of R', window(trace.norm2)],
];

async function assertWalk(page, trace, names = undefined) {
  for (const [title, name, expected] of tablesOf(trace)) {
    if (names && !names.includes(name)) continue;
    await goTo(page, title);
    await page.numbers(name, expected, steps);
  }
}

async function assertAnswer(page, before, now) {
  await goTo(page, 'The answer');
  await page.shows('table', 'The classifier’s answer', '#steps');
  await page.until(
    ({ table }, positive) => {
      const { rows, cells } = table('The classifier’s answer', '#steps');
      return Math.abs(Number(cells[rows.indexOf('positive')][1]) - positive) < 1e-3;
    },
    `positive ${now.positive}`,
    now.positive,
  );
  const { rows, cells } = await page.table('The classifier’s answer', steps);
  rows.forEach((label, i) =>
    [before[label], now[label], now[label] - before[label]].forEach((value, j) => assertNear(cells[i][j], value, `${label}, column ${j + 1}`)),
  );
}

function inputWith(data, edits) {
  const x = data.forward(sentence).hiddenStates[layer];
  const values = x.data.slice();
  for (const [index, value] of edits) values[index] = value;
  return { data: values, dims: x.dims };
}

const undo = async (page, data) => {
  await page.click('button', 'Undo all changes', steps);
  await page.lacks('button', 'Undo all');
  await assertWalk(page, data.trace(sentence, layer), ['Q', 'A, the weights', 'Norm of R']);
};

pageTest("Next goes through all steps with the package's numbers", async ({ page }) => {
  const data = await packageNumbers();
  await page.open('model=sentiment&numbers=1');
  await page.shows('table', 'X', '#steps');
  const trace = data.trace(sentence, layer);
  await page.numbers('X', window(data.forward(sentence).hiddenStates[layer]), steps);
  const seen = [];
  for (;;) {
    const title = await page.tool(({ text }) => text('#steps h3'));
    const [, number, name] = /^Step (\d+) of 13: (.*)$/.exec(title) ?? assert.fail(title);
    assert.equal(Number(number), seen.push(name));
    const stops = await page.evaluate(() =>
      [...document.querySelectorAll('#steps .step-table table')].map((each) => each.querySelectorAll('button[tabindex="0"]').length),
    );
    assert.ok(
      stops.every((count) => count === 1),
      `${name}: tab stops of each table are ${stops}`,
    );
    for (const [own, table, expected] of tablesOf(trace)) if (own === name) await page.numbers(table, expected, steps);
    if (name === 'Compare queries with keys') {
      const products = { ...headOf(trace.scores), at: (i, j) => headOf(trace.scores).at(i, j) * 4 };
      await page.numbers('Q times K transposed', products, steps);
    }
    if (name === 'Softmax') (await page.table('A, the weights', steps)).totals.forEach((sum) => assertNear(sum, 1, 'row sum'));
    if (await page.tool(({ find }) => find('button', 'Next step', '#steps').disabled)) break;
    await page.click('button', 'Next step', steps);
    await page.until(({ text }, before) => text('#steps h3') !== before, 'the next step', title);
  }
  assert.equal(seen.length, 13);
  await assertAnswer(page, data.answer(sentence), data.answer(sentence));
  await goTo(page, 'Feed-forward');
  await page.click('button', 'Second map, F', steps);
  await page.numbers('F, the output of the feed-forward network', window(trace.ff_output), steps);
  await goTo(page, 'Queries, keys, values');
  for (const [button, name, tensor] of [
    ['Keys', 'K', trace.k_proj],
    ['Values', 'V', trace.v_proj],
  ]) {
    await page.click('button', button, steps);
    await page.numbers(name, ownColumns(tensor), steps);
  }
  await page.click('button', 'Next head', steps);
  await page.until(
    ({ find }) => find(['combobox', 'slider'], 'Layer').value === '1' && find(['combobox', 'slider'], 'Head').value === '1',
    'the next head',
  );
});

pageTest('the dot product of a cell is spelled out', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('step=3&cell=2.4&locked=1&numbers=1');
  const words = await page.until(({ text }) => /before the scale/.test(text('#steps .step-body')) && text('#steps .step-body'), 'the working');
  const tokens = data.tokens(sentence);
  const value = ofHead(data.trace(sentence, layer).scores, head).at(2, 4) * 4;
  const [, sum] = new RegExp(`${tokens[2]} to ${tokens[4]}, before the scale.* = (-?\\d+\\.\\d+)`).exec(words) ?? assert.fail(words);
  assertNear(sum, value, 'the sum');
});

pageTest('editing a number of X updates all later steps, and undo restores them', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open('model=sentiment&numbers=1');
  await goTo(page, 'X, the input');
  await write(page, 'X', 2, 5, 4.25);
  await write(page, 'X', 7, 0, -3);
  const hiddenState = inputWith(data, [
    [2 * 64 + 5, 4.25],
    [7 * 64, -3],
  ]);
  await page.numbers('X', window(hiddenState), steps);
  const options = { patch: { layer, hiddenState } };
  await assertWalk(page, data.trace(sentence, layer, options));
  await assertAnswer(page, data.answer(sentence), data.answer(sentence, options));
  await undo(page, data);
});

pageTest('editing a weight updates all later steps, and undo restores them', { engines: 'chromium', isolated: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open('model=sentiment&numbers=1');
  await goTo(page, 'Queries, keys, values');
  // The page shows W_Q as in × out and only this head's columns; the checkpoint has out × in.
  await write(page, 'W_Q', 3, 2, 2.5);
  await data.edited(query, [[(head * 16 + 2) * 64 + 3, 2.5]], async () => {
    await assertWalk(page, data.trace(sentence, layer));
  });
  await goTo(page, 'Feed-forward');
  await page.click('button', 'Second map, F', steps);
  await write(page, 'W_2', 4, 1, -6);
  const before = data.answer(sentence);
  await data.edited(query, [[(head * 16 + 2) * 64 + 3, 2.5]], () =>
    data.edited(second, [[1 * 256 + 4, -6]], async () => {
      await page.numbers('F, the output of the feed-forward network', window(data.trace(sentence, layer).ff_output), steps);
      await assertAnswer(page, before, data.answer(sentence));
    }),
  );
  await undo(page, data);
});

pageTest('a value that is not a number raises an alert next to the table', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open('model=sentiment&numbers=1');
  await goTo(page, 'X, the input');
  await write(page, 'X', 0, 0, 'much');
  await page.says(/much.*is not a number/, 'alert', undefined, '#steps');
  await page.driver.press('Escape');
  await page.lacks('alert', undefined, '#steps');
  await page.numbers('X', window(data.forward(sentence).hiddenStates[layer]), steps);
});

pageTest('scale, score function and dropout change the layer as in the package', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('model=sentiment&numbers=1');
  const { attn } = data;
  const { q, k, v } = data.trace(sentence, layer);
  const run = async (attend, what) => {
    const { output, weights, trace } = attend;
    const patch = { layer, hiddenState: data.forward(sentence).hiddenStates[layer], merged: data.merged(output) };
    await goTo(page, 'Softmax');
    await page.numbers(what, headOf(trace?.probabilities ?? weights), steps);
    await assertWalk(page, data.trace(sentence, layer, { patch }), ['Y, the output of attention', 'Norm of R']);
    await assertAnswer(page, data.answer(sentence), data.answer(sentence, { patch }));
  };
  const attention = (options) => attn.scaledDotProductAttention(q, k, v, { needWeights: true, ...options });
  for (const factor of [0, 2]) {
    await goTo(page, 'Scale');
    await page.choose('slider', 'Score scale', factor, steps);
    await run(attention({ scale: factor / 4 }), 'A, the weights');
  }
  await goTo(page, 'Scale');
  await page.click('button', 'Default scale', steps);
  await goTo(page, 'Compare queries with keys');
  await page.choose('combobox', 'Score function', 'dot', steps);
  await page.until(({ text }) => /unscaled: step 4 does not divide them by √16/.test(text('#steps .step-body')), 'the missing scale');
  await run(attention({ scale: 1 }), 'A, the weights');
  await goTo(page, 'Compare queries with keys');
  await page.choose('combobox', 'Score function', 'scaled_dot', steps);
  await goTo(page, 'Softmax');
  await page.choose('slider', 'Dropout', 0.5, steps);
  await page.choose('spinbutton', 'Dropout seed', 7, steps);
  await run(attention({ dropout: 0.5, seed: 7 }), 'A after dropout');
  await undo(page, data);
});

pageTest('padding, a drawn mask and a dropped head change the layer as in the package', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('model=sentiment&numbers=1');
  const n = data.tokens(sentence).length;
  await goTo(page, 'Mask');
  await page.shows('button', 'Hide terrible, token 9', '#steps');
  await page.click('button', 'Hide terrible, token 9', steps);
  const encoding = data.model.tokenize(sentence);
  encoding.attentionMask[8] = 0;
  const hidden = data.model.forward(encoding, { trace: { layers: [layer] } }).trace.get(layer);
  await page.numbers('Masked scores', headOf(hidden.masked_scores), steps);
  await page.click('button', 'Hide terrible, token 9', steps);
  for (const [row, column] of [
    [2, 4],
    [5, 0],
  ])
    await press(page, 'Masked scores', row, column);
  const block = new Uint8Array(n * n);
  block[2 * n + 4] = block[5 * n] = 1;
  const mask = { kind: 'block', data: block, dims: [n, n] };
  await page.numbers('Masked scores', headOf(data.trace(sentence, layer, { mask }).masked_scores), steps);
  await assertWalk(page, data.trace(sentence, layer, { mask }), ['A, the weights', 'Norm of R']);
  await goTo(page, 'Mask');
  await page.click('button', 'Clear the drawn mask', steps);
  await goTo(page, 'Concatenate the heads');
  await page.click('button', 'Drop head 4, in focus', steps);
  const headMask = data.without(layer * data.heads + head);
  await assertWalk(page, data.trace(sentence, layer, { headMask }), ['O, all heads concatenated', 'Y, the output of attention', 'Norm of R']);
  await assertAnswer(page, data.answer(sentence), data.answer(sentence, { headMask }));
  await undo(page, data);
});

pageTest('the worked example shows its exact numbers at every step', async ({ page }) => {
  await page.open('model=sentiment&numbers=1');
  await page.until(({ find, text }) => !find('button', 'Next step', '#example').disabled && !/starting/.test(text('#example')), 'the example');
  const seen = [];
  for (let i = 0; i < 20; i++) {
    seen.push(await page.tool(({ text }) => text('#example')));
    const lit = await page.tool(({ nameOf }) => Array.from(document.querySelectorAll('#example [aria-current=step]'), nameOf));
    assert.ok(
      lit.some((name) => name.includes(`, step ${i === 7 ? 7 : i + 1}: `)),
      `step ${i + 1} is lit in the diagram: ${lit}`,
    );
    if (await page.tool(({ find }) => find('button', 'Next step', '#example').disabled)) break;
    await page.click('button', 'Next step', example);
    await page.until(({ text }, next) => text('#example h3').startsWith(`Step ${next} `), 'the next step', i + 2);
  }
  assert.equal(seen.length, 10);
  const all = seen.join('\n');
  for (const number of ['0.063379', '0.468311', '0.982008', '0.880537', '0.119168', '1.936621', '6.683105', '1.595068', '7.963992', '0.358389'])
    assert.ok(all.includes(number), `${number} is shown`);
  for (const short of ['1.5', '7.8', '0.3']) assert.ok(seen[7].includes(short), `the article's ${short} is shown`);
  assert.match(await page.evaluate(() => document.querySelector('#example .lede a').href), /^https:.*illustrated-self-attention/);
});

pageTest('the diagram of the example opens each step by click or key, and can be saved', async ({ page }) => {
  await page.open('model=sentiment&numbers=1');
  const { driver } = page;
  const title = (step) => page.until(({ text }, number) => text('#example h3').startsWith(`Step ${number} of 10`), `step ${step}`, step);
  // Parts of the diagram are SVG elements, which lack click().
  const pressPart = (name) => {
    const run = ({ find }, part) => find('button', part, '#example').dispatchEvent(new MouseEvent('click', { bubbles: true }));
    return page.until(run, name, name);
  };
  await pressPart('softmax, step 6: Softmax');
  await title(6);
  await page.shows('table', 'Shares', example);
  const { rows, columns, totals } = await page.table('Shares', example);
  assert.deepEqual(
    [rows, columns, totals],
    [
      ['cats', 'chase', 'mice'],
      ['cats', 'chase', 'mice'],
      ['1.000000', '1.000000', '1.000000'],
    ],
  );
  await page.evaluate(() => document.querySelector('#example svg [tabindex="0"]').focus());
  await driver.press('ArrowRight');
  await title(7);
  await page.until(({ nameOf }) => nameOf(document.activeElement) === '· V, step 7: Weigh the values', 'the focus goes along');
  await driver.press('End');
  await title(10);
  assert.equal(await page.evaluate(() => document.querySelectorAll('#example svg [tabindex="0"]').length), 1);
  assert.deepEqual(await page.tool(({ nameOf }) => Array.from(document.querySelectorAll('#example svg [aria-current]'), nameOf)), [
    '· Wo, step 10: Mix the heads: Wo',
  ]);
  await page.until(() => location.hash.includes('hand.step=10'), 'the address');
  const { name, text } = await saved(page, () => page.click('button', 'Save diagram as SVG', example));
  assert.equal(name, 'attention-by-hand-step-10.svg');
  assert.match(text, /<title>Attention by hand, step 10 of 10: Mix the heads: Wo<\/title>/);
  assert.ok(!/class=|var\(|rgb\(/.test(text), 'colours of its own');
  await pressPart('X, step 1: Words are rows of numbers');
  await title(1);
  await page.fill('X, cats, number 1', '10', example);
  await page.until(() => /hand\.X=10/.test(location.hash), 'the number in the address');
  await page.open(await page.hash());
  await page.until(({ find }) => find('spinbutton', 'X, cats, number 1', '#example').value === '10', 'the number');
  await page.click('button', 'Original numbers', example);
  await page.until(({ find }) => find('spinbutton', 'X, cats, number 1', '#example').value === '1', "the article's number");
});

pageTest('each step has a picture that highlights the row and column of the cell', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('cell=2.4&locked=1&numbers=1');
  const rows = data.tokens(sentence).length;
  await page.until(() => !!document.querySelector('#steps .blocks svg'), 'the walk');
  const pictureOf = (step) =>
    page.until(
      ({ nameOf }, number) => {
        const picture = document.querySelector('#steps .blocks svg');
        return picture?.getAttribute('aria-label').startsWith(`Picture of step ${number}: `) && nameOf(picture);
      },
      'its picture',
      step,
    );
  const seen = new Set();
  for (let step = 1; step <= 13; ++step) {
    await page.evaluate((index) => document.querySelectorAll('#steps .step-list button')[index].click(), step - 1);
    const name = await pictureOf(step);
    seen.add(name.replace(/^.*?: /, ''));
    if (step < 13)
      assert.ok((await page.evaluate(() => document.querySelectorAll('#steps .blocks svg .block-lit').length)) > 0, `step ${step}: something is lit`);
  }
  assert.equal(seen.size, 13);
  await goTo(page, 'Compare queries with keys');
  const name = await pictureOf(3);
  assert.equal(name, `Picture of step 3: Q, ${rows} × 16, · Kᵀ, 16 × ${rows}, = QKᵀ, ${rows} × ${rows}`);
  // Matrices common to both pictures are the same elements, so that they can be animated.
  const id = await page.tool(({ text }) => {
    globalThis.keptBlock = document.querySelectorAll('#steps .block')[2];
    return text(globalThis.keptBlock);
  });
  await goTo(page, 'Scale');
  await pictureOf(4);
  assert.ok(await page.tool(({ text }, before) => text(globalThis.keptBlock) === before && globalThis.keptBlock.isConnected, id), 'QKᵀ stays');
  const [x, y, side] = await page.evaluate(() => {
    const part = (selector) => globalThis.keptBlock.querySelector(selector).style;
    const [, left, top] = /translate\(([\d.]+)px, ([\d.]+)px\)/.exec(part('.block-lit').transform);
    return [left, top, part('.block-body').width].map(Number.parseFloat);
  });
  assert.ok(Math.abs(x - (4 / rows) * side) < 1 && Math.abs(y - (2 / rows) * side) < 1, `${x}, ${y} of ${side}`);
});
