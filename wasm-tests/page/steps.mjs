/** One head step by step, and the example by hand. */
import { strict as assert } from 'node:assert';
import { sentence } from './data.mjs';
import { assertNear, json, ofHead, part, saved, section } from './page.mjs';

const steps = section('steps');
const example = section('example');
const [layer, head] = [1, 3];
const query = `bert.encoder.layer.${layer}.attention.self.query.weight`;
const second = `bert.encoder.layer.${layer}.output.dense.weight`;

const goTo = (page, title) =>
  page.until(
    `(() => { const button = all('button', undefined, ${steps}).find((each) => text(each.querySelector('.step-title')) === ${json(title)}); button?.click(); return !!button; })()`,
    `step ${title}`,
  );

/** Writes over one number of a table, as a visitor does. */
async function write(page, name, row, column, value) {
  await page.until(`!!find('table', ${json(name)}, ${steps})`, name);
  await page.tool(`(find('table', ${json(name)}, ${steps}).tBodies[0].rows[${row}].querySelectorAll('td button')[${column}].click(), true)`);
  const field = `find('table', ${json(name)}, ${steps}).querySelector('input')`;
  await page.driver.fill(await page.until(`${field} && mark(${field})`, 'the field in the cell'), String(value));
  await page.driver.press('Enter');
}

/** What of a matrix stands on the first page of its table, or on the one that begins at a column. */
const window = (tensor, { first = 0, offset = 0 } = {}) =>
  part(tensor, offset, { first, width: Math.min(12, tensor.dims.at(-1) - first), count: Math.min(16, tensor.dims.at(-2)) });
const headOf = (tensor) => window(tensor, { offset: head * tensor.dims[2] * tensor.dims[3] });
/** The columns of one head in a matrix of all. */
const ownColumns = (tensor) => ({ ...window(tensor), at: window(tensor, { first: head * 16 }).at });

/** The tables of each step after X, from a trace of the layer. */
const tablesOf = (trace) => [
  ['Queries, keys, values', 'Q', ownColumns(trace.q_proj)],
  ['Scale', 'S, the scaled scores', headOf(trace.scores)],
  ['Mask', 'Masked scores', headOf(trace.masked_scores)],
  ['Softmax', 'A, the shares', headOf(trace.probabilities)],
  ['Weigh the values', 'AV, the results of this head', headOf(trace.context)],
  ['Heads side by side', 'O, all heads side by side', window(trace.merged, { first: 48 })],
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

/** The table of the last step: before, now and the difference. */
async function assertAnswer(page, before, now) {
  await goTo(page, 'On, to the answer');
  await page.until(`!!find('table', 'The classifier’s answer', ${steps})`, 'the answer');
  await page.until(
    `Math.abs(Number(table('The classifier’s answer', ${steps}).cells[table('The classifier’s answer', ${steps}).rows.indexOf('positive')][1]) - ${now.positive}) < 1e-3`,
    `positive ${now.positive}`,
  );
  const { rows, cells } = await page.table('The classifier’s answer', steps);
  rows.forEach((label, i) =>
    [before[label], now[label], now[label] - before[label]].forEach((value, j) => assertNear(cells[i][j], value, `${label}, column ${j + 1}`)),
  );
}

/** X of the layer with some of its numbers written over. */
function inputWith(data, edits) {
  const x = data.forward(sentence).hiddenStates[layer];
  const values = x.data.slice();
  for (const [index, value] of edits) values[index] = value;
  return { data: values, dims: x.dims };
}

const undo = async (page, data) => {
  await page.click('button', 'Undo all changes', steps);
  await page.until("all('button', 'Undo all').length === 0", 'nothing is changed');
  await assertWalk(page, data.trace(sentence, layer), ['Q', 'A, the shares', 'Norm of R']);
};

export const tests = {
  async "Next goes through all steps with the package's numbers"({ page, data }) {
    await page.open();
    await page.until(`!!find('table', 'X', ${steps})`, 'the first step');
    const trace = data.trace(sentence, layer);
    await page.numbers('X', window(data.forward(sentence).hiddenStates[layer]), steps);
    const seen = [];
    for (;;) {
      const title = await page.tool(`text(${steps}.querySelector('h3'))`);
      const [, number, name] = /^Step (\d+) of 13: (.*)$/.exec(title) ?? assert.fail(title);
      assert.equal(Number(number), seen.push(name));
      const stops = await page.tool(
        `[...${steps}.querySelectorAll('.step-table table')].map((each) => each.querySelectorAll('button[tabindex="0"]').length)`,
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
      if (name === 'Softmax') (await page.table('A, the shares', steps)).totals.forEach((sum) => assertNear(sum, 1, 'row sum'));
      if (await page.tool(`find('button', 'Next step', ${steps}).disabled`)) break;
      await page.click('button', 'Next step', steps);
      await page.until(`text(${steps}.querySelector('h3')) !== ${json(title)}`, 'the next step');
    }
    assert.equal(seen.length, 13);
    await assertAnswer(page, data.answer(sentence), data.answer(sentence));
    // The second map of the feed-forward and the two other projections.
    await goTo(page, 'Feed-forward');
    await page.click('button', 'Second map, F', steps);
    await page.numbers('F, the output of the feed-forward', window(trace.ff_output), steps);
    await goTo(page, 'Queries, keys, values');
    for (const [button, name, tensor] of [
      ['Keys', 'K', trace.k_proj],
      ['Values', 'V', trace.v_proj],
    ]) {
      await page.click('button', button, steps);
      await page.numbers(name, ownColumns(tensor), steps);
    }
    await page.click('button', 'Next head', steps);
    await page.until("find(['combobox', 'slider'], 'Layer').value === '1' && find(['combobox', 'slider'], 'Head').value === '1'", 'the next head');
  },
  async "a cell's dot product is spelled out"({ page, data }) {
    await page.open('step=3&cell=2.4&locked=1');
    const words = await page.until(
      `/before the scale/.test(text(${steps}.querySelector('.step-body'))) && text(${steps}.querySelector('.step-body'))`,
      'the working',
    );
    const tokens = data.tokens(sentence);
    const value = ofHead(data.trace(sentence, layer).scores, head).at(2, 4) * 4;
    const [, sum] = new RegExp(`${tokens[2]} to ${tokens[4]}, before the scale.* = (-?\\d+\\.\\d+)`).exec(words) ?? assert.fail(words);
    assertNear(sum, value, 'the sum');
  },
  async 'a number of X written over: everything after it follows, and undo takes it back'({ page, data }) {
    await page.open();
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
  },
  async 'a number of a weight written over: everything after it follows, and undo takes it back'({ page, data }) {
    await page.open();
    await goTo(page, 'Queries, keys, values');
    // W_Q is shown in × out, and of the columns those of this head: the checkpoint has it out × in.
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
        await page.numbers('F, the output of the feed-forward', window(data.trace(sentence, layer).ff_output), steps);
        await assertAnswer(page, before, data.answer(sentence));
      }),
    );
    await undo(page, data);
  },
  async 'what is no number is refused beside the table'({ page, data }) {
    await page.open();
    await goTo(page, 'X, the input');
    await write(page, 'X', 0, 0, 'much');
    await page.until(`/much.*is not a number/.test(text(find('alert', undefined, ${steps})))`, 'the alert');
    await page.driver.press('Escape');
    await page.until(`all('alert', undefined, ${steps}).length === 0`, 'no alert');
    await page.numbers('X', window(data.forward(sentence).hiddenStates[layer]), steps);
  },
  async 'scale, score function and dropout of the layer'({ page, data }) {
    await page.open();
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
      await run(attention({ scale: factor / 4 }), 'A, the shares');
    }
    await goTo(page, 'Scale');
    await page.click('button', 'Usual scale', steps);
    await goTo(page, 'Compare queries with keys');
    await page.choose('combobox', 'Score function', 'dot', steps);
    await run(attention({ scale: 1 }), 'A, the shares');
    await goTo(page, 'Compare queries with keys');
    await page.choose('combobox', 'Score function', 'scaled_dot', steps);
    await goTo(page, 'Softmax');
    await page.choose('slider', 'Dropout', 0.5, steps);
    await page.choose('spinbutton', 'Dropout seed', 7, steps);
    await run(attention({ dropout: 0.5, seed: 7 }), 'A after dropout');
    await undo(page, data);
  },
  async 'padding, a drawn mask and a dropped head'({ page, data }) {
    await page.open();
    const n = data.tokens(sentence).length;
    await goTo(page, 'Mask');
    await page.until(`!!find('button', 'Hide terrible, token 9', ${steps})`, 'the tokens');
    await page.click('button', 'Hide terrible, token 9', steps);
    const encoding = data.model.tokenize(sentence);
    encoding.attentionMask[8] = 0;
    const hidden = data.model.forward(encoding, { trace: { layers: [layer] } }).trace.get(layer);
    await page.numbers('Masked scores', headOf(hidden.masked_scores), steps);
    await page.click('button', 'Hide terrible, token 9', steps);
    // Cells 2,4 and 5,0.
    for (const [row, column] of [
      [2, 4],
      [5, 0],
    ])
      await page.tool(`(find('table', 'Masked scores', ${steps}).tBodies[0].rows[${row}].querySelectorAll('td button')[${column}].click(), true)`);
    const block = new Uint8Array(n * n);
    block[2 * n + 4] = block[5 * n] = 1;
    const mask = { kind: 'block', data: block, dims: [n, n] };
    await page.numbers('Masked scores', headOf(data.trace(sentence, layer, { mask }).masked_scores), steps);
    await assertWalk(page, data.trace(sentence, layer, { mask }), ['A, the shares', 'Norm of R']);
    await goTo(page, 'Mask');
    await page.click('button', 'Clear the drawn mask', steps);
    await goTo(page, 'Heads side by side');
    await page.click('button', 'Drop head 4, in focus', steps);
    const headMask = data.without(layer * data.heads + head);
    await assertWalk(page, data.trace(sentence, layer, { headMask }), ['O, all heads side by side', 'Y, the output of attention', 'Norm of R']);
    await assertAnswer(page, data.answer(sentence), data.answer(sentence, { headMask }));
    await undo(page, data);
  },
  async 'the worked example shows its real numbers at every step'({ page }) {
    await page.open();
    await page.until(`!find('button', 'Next step', ${example}).disabled && !/starting/.test(text(${example}))`, 'the example');
    const seen = [];
    for (let i = 0; i < 20; i++) {
      seen.push(await page.tool(`text(${example})`));
      const lit = await page.tool(`Array.from(${example}.querySelectorAll('[aria-current=step]'), nameOf)`);
      assert.ok(
        lit.some((name) => name.includes(`, step ${i === 7 ? 7 : i + 1}: `)),
        `step ${i + 1} is lit in the diagram: ${lit}`,
      );
      if (await page.tool(`find('button', 'Next step', ${example}).disabled`)) break;
      await page.click('button', 'Next step', example);
      await page.until(`text(${example}.querySelector('h3')).startsWith('Step ${i + 2} ')`, 'the next step');
    }
    assert.equal(seen.length, 10);
    const all = seen.join('\n');
    for (const number of ['0.063379', '0.468311', '0.982008', '0.880537', '0.119168', '1.936621', '6.683105', '1.595068', '7.963992', '0.358389'])
      assert.ok(all.includes(number), `${number} is shown`);
    for (const short of ['1.5', '7.8', '0.3']) assert.ok(seen[7].includes(short), `the article's ${short} is shown`);
    assert.match(await page.tool(`${example}.querySelector('.lede a').href`), /^https:.*illustrated-self-attention/);
  },
  async 'the diagram of the example leads to each step, by keyboard too, and is saved'({ page }) {
    await page.open();
    const { driver } = page;
    const title = (step) => page.until(`text(${example}.querySelector('h3')).startsWith('Step ${step} of 10')`, `step ${step}`);
    const part = (name) => `find('button', ${json(name)}, ${example})`;
    const press = (name) => page.tool(`(${part(name)}.dispatchEvent(new MouseEvent('click', { bubbles: true })), true)`);
    await page.until(`!!${part('softmax, step 6: Softmax')}`, 'the diagram');
    await press('softmax, step 6: Softmax');
    await title(6);
    const { rows, columns, totals } = await page.table('Shares', example);
    assert.deepEqual(
      [rows, columns, totals],
      [
        ['cats', 'chase', 'mice'],
        ['cats', 'chase', 'mice'],
        ['1.000000', '1.000000', '1.000000'],
      ],
    );
    // One tab stop, the part that is lit; from there by arrows.
    await page.tool(`(${example}.querySelector('svg [tabindex="0"]').focus(), true)`);
    await driver.press('ArrowRight');
    await title(7);
    await page.until("nameOf(document.activeElement) === '· V, step 7: Weigh the values'", 'the focus goes along');
    await driver.press('End');
    await title(10);
    assert.equal(await page.tool(`${example}.querySelectorAll('svg [tabindex="0"]').length`), 1);
    // One lit matrix in the diagram, and no other step is the current one.
    assert.deepEqual(await page.tool(`Array.from(${example}.querySelectorAll('svg [aria-current]'), nameOf)`), ['· Wo, step 10: Mix the heads: Wo']);
    await page.until("location.hash.includes('hand.step=10')", 'the address');
    const { name, text } = await saved(page, () => page.click('button', 'Save diagram as SVG', example));
    assert.equal(name, 'attention-by-hand-step-10.svg');
    assert.match(text, /<title>Attention by hand, step 10 of 10: Mix the heads: Wo<\/title>/);
    assert.ok(!/class=|var\(|rgb\(/.test(text), 'colours of its own');
    // What was changed comes back with the address, and the fields with it.
    await press('X, step 1: Words are rows of numbers');
    await title(1);
    await page.fill('X, cats, number 1', '10', example);
    await page.until('/hand\\.X=10/.test(location.hash)', 'the number in the address');
    await page.open(await driver.evaluate('location.hash.slice(1)'));
    await page.until(`find('spinbutton', 'X, cats, number 1', ${example}).value === '10'`, 'the number');
    await page.click('button', 'Original numbers', example);
    await page.until(`find('spinbutton', 'X, cats, number 1', ${example}).value === '1'`, "the article's number");
  },
  async 'each step of the walk has its picture, with the row and the column in question'({ page, data }) {
    await page.open('cell=2.4&locked=1');
    const rows = data.tokens(sentence).length;
    const picture = `${steps}.querySelector('.blocks svg')`;
    await page.until(`!!${picture}`, 'the walk');
    const seen = new Set();
    for (let step = 1; step <= 13; ++step) {
      await page.tool(`(${steps}.querySelectorAll('.step-list button')[${step - 1}].click(), true)`);
      const name = await page.until(
        `${picture}?.getAttribute('aria-label').startsWith('Picture of step ${step}: ') && nameOf(${picture})`,
        'its picture',
      );
      seen.add(name.replace(/^.*?: /, ''));
      if (step < 13) assert.ok((await page.tool(`${picture}.querySelectorAll('.block-lit').length`)) > 0, `step ${step}: something is lit`);
    }
    assert.equal(seen.size, 13);
    await goTo(page, 'Compare queries with keys');
    const name = await page.until(`/step 3/.test(nameOf(${picture})) && nameOf(${picture})`, 'the picture');
    assert.equal(name, `Picture of step 3: Q, ${rows} × 16, · Kᵀ, 16 × ${rows}, = QKᵀ, ${rows} × ${rows}`);
    // The matrices that both pictures have are the same elements: they move.
    const id = await page.tool(`(globalThis.kept = ${steps}.querySelectorAll('.block')[2], text(kept))`);
    await goTo(page, 'Scale');
    await page.until(`/step 4/.test(nameOf(${picture}))`, 'the picture');
    assert.ok(await page.tool(`text(kept) === ${json(id)} && kept.isConnected`), 'QKᵀ stays');
    // Row 2 and column 4 of Q Kᵀ.
    const [x, y] = await page.tool(
      "/translate\\(([\\d.]+)px, ([\\d.]+)px\\)/.exec(kept.querySelector('.block-lit').style.transform).slice(1).map(Number)",
    );
    const side = await page.tool("Number.parseFloat(kept.querySelector('.block-body').style.width)");
    assert.ok(Math.abs(x - (4 / rows) * side) < 1 && Math.abs(y - (2 / rows) * side) < 1, `${x}, ${y} of ${side}`);
  },
};
