import { execFileSync } from 'node:child_process';
import { strict as assert } from 'node:assert';
import { readSafetensorsHeader, traceNames } from 'attn';
import { repository } from '../support/paths.mjs';
import { packageNumbers } from './data.mjs';
import { assertNear, json, matrix, part, saved, transposed } from './page.mjs';
import { pageTest } from './fixture.mjs';

const lab = '#lab';
const inputs = {
  Q: [
    [0.5, -1],
    [2, 0.25],
    [1, 1],
  ],
  K: [
    [1, 0],
    [0, 1],
    [0.5, 0.5],
    [-1, 2],
  ],
  V: [
    [1, 2, 3],
    [4, 5, 6],
    [7, 8, 9],
    [-1, 0, 1],
  ],
};
const selfAttention = {
  X: [
    [1, 0, 1, 0],
    [0, 2, 0, 2],
    [1, 1, 1, 1],
  ],
  Wq: [
    [1, 0, 1, 0.5],
    [1, 0, 0, -1],
    [0, 0, 1, 0],
    [0, 1, 1, 0.25],
  ],
  Wk: [
    [0, 0, 1, 1],
    [1, 1, 0, 0.5],
    [0, 1, 0, -0.5],
    [1, 1, 0, 0],
  ],
  Wv: [
    [0, 2, 0, 1],
    [0, 3, 0, -1],
    [1, 0, 3, 0],
    [1, 1, 0, 2],
  ],
  Wo: [
    [1, 0, 0, 0.5],
    [0, 1, 0, 0],
    [0, 0.5, 1, 0],
    [0, 0, 0, 1],
  ],
};

async function fill(page, fields) {
  for (const [name, rows] of Object.entries(fields)) await page.fill(name, typeof rows === 'string' ? rows : json(rows), lab);
}
const run = (page) => page.click('button', 'Run attention', lab);
const programs = (page) =>
  page.tool(({ text }) =>
    Array.from(document.querySelectorAll('#lab details'), (each) => [text(each.querySelector('summary')), each.querySelector('pre').textContent]),
  );

pageTest("the lab computes attention on the visitor's arrays", { isolated: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  await fill(page, inputs);
  const [Q, K, V] = Object.values(inputs).map(matrix);
  for (const scale of ['', '0.7']) {
    await page.fill('Scale', scale || ' ', lab);
    await run(page);
    const options = { needWeights: true, trace: ['scores'], ...(scale && { scale: Number(scale) }) };
    const { weights, output, trace } = data.attn.scaledDotProductAttention(Q, K, V, options);
    await page.numbers('Weights', part(weights), lab);
    await page.numbers('Output', part(output), lab);
    await page.numbers('scores', part(trace.scores), lab);
  }
});

pageTest('the lab applies every kind of mask', async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  await fill(page, inputs);
  const [Q, K, V] = Object.values(inputs).map(matrix);
  const numbers = [
    [1, 0, 1, 1],
    [1, 1, 0, 1],
    [0, 1, 1, 0],
  ];
  for (const [kind, rows] of [
    ['attend', numbers],
    ['block', numbers],
    ['additive', numbers.map((row) => row.map((value) => -1.5 * value))],
  ]) {
    await fill(page, { Mask: rows });
    await page.choose('combobox', 'Mask numbers mean', kind, lab);
    await run(page);
    const { data: values, dims } = matrix(rows);
    const mask = { kind, data: kind === 'additive' ? values : Uint8Array.from(values), dims };
    const { weights, output } = data.attn.scaledDotProductAttention(Q, K, V, { needWeights: true, mask });
    await page.numbers('Weights', part(weights), lab);
    await page.numbers('Output', part(output), lab);
  }
  await fill(page, { Mask: ' ', 'Key padding': '[1, 1, 0, 1]' });
  await page.click('checkbox', 'Causal: hide later keys', lab);
  await run(page);
  const keyPaddingMask = { kind: 'attend', data: Uint8Array.of(1, 1, 0, 1), dims: [4] };
  await page.numbers(
    'Weights',
    part(data.attn.scaledDotProductAttention(Q, K, V, { needWeights: true, keyPaddingMask, isCausal: true }).weights),
    lab,
  );
});

pageTest('a wrong shape raises an alert next to its field until it is corrected', { engines: 'chromium' }, async ({ page }) => {
  await page.open();
  await fill(page, inputs);
  await fill(page, { K: '[[1,2,3],[4,5,6]]' });
  await run(page);
  assert.match(await page.says(/./, 'alert', undefined, '#lab'), /K|3|2/);
  assert.ok(
    await page.tool(({ find }) => find('alert', undefined, '#lab').parentElement.contains(find('textbox', 'K', '#lab'))),
    'the alert is next to K',
  );
  assert.ok(await page.tool(({ find }) => find('textbox', 'K', '#lab').getAttribute('aria-invalid') === 'true'), 'K is marked');
  assert.equal(await page.count('alert'), 1);
  await fill(page, { K: '[[1,2],[3' });
  await run(page);
  await page.shows('alert', undefined, '#lab');
  await fill(page, { K: inputs.K, Mask: [[1, 0]] });
  await run(page);
  await page.until(
    ({ find }) => find('alert', undefined, '#lab').parentElement.contains(find('textbox', 'Mask', '#lab')),
    'the alert is next to the mask',
  );
  await fill(page, { Mask: ' ', Scale: 'half' });
  await run(page);
  await page.until(
    ({ find }) => find('alert', undefined, '#lab').parentElement.contains(find('textbox', 'Scale', '#lab')),
    'the alert is next to the scale',
  );
  await fill(page, { Scale: ' ' });
  await run(page);
  await page.until(({ all, table }) => all('alert').length === 0 && table('Weights', '#lab').cells.length === 3, 'the numbers are back');
});

pageTest('the lab computes multi-head self-attention with every trace', async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  await page.click(['radio', 'tab', 'button'], 'Multi-head', lab);
  await page.shows('textbox', 'Wq', '#lab');
  const { X, Wq, Wk, Wv, Wo } = selfAttention;
  const mha = new data.attn.MultiHeadAttention({ embedDim: 4, numHeads: 2, bias: false });
  mha.loadStateDict({
    'q_proj.weight': matrix(transposed(Wq)),
    'k_proj.weight': matrix(transposed(Wk)),
    'v_proj.weight': matrix(transposed(Wv)),
    'out_proj.weight': matrix(transposed(Wo)),
  });
  const { output, weights, trace } = mha.forward(matrix(X), undefined, undefined, { needWeights: true, trace: traceNames });
  mha.dispose();
  await fill(page, { ...selfAttention, Scale: ' ', Heads: '2' });
  await run(page);
  await page.numbers('Output', part(output), lab);
  for (const head of [0, 1]) {
    await page.choose('combobox', 'Head shown', head + 1, lab);
    await page.numbers('Weights', part(weights, head * 9), lab);
    for (const name of traceNames) {
      const { data: all, dims } = trace[name];
      const rows = dims.slice(dims.length > 2 ? 1 : 0, -1).reduce((a, b) => a * b, 1);
      await page.numbers(name, part(trace[name], dims.length > 2 ? (head * all.length) / 2 : 0, { count: rows }), lab);
    }
  }
  await fill(page, { Wo: ' ' });
  await run(page);
  await page.numbers('Output', part(trace.merged), lab);
  await fill(page, { Heads: '3' });
  await run(page);
  await page.until(({ all }) => all('alert', undefined, '#lab').length === 1, 'an alert for heads that do not divide the width');
  await fill(page, { Heads: '2' });
  await run(page);
  await page.lacks('alert', undefined, '#lab');
  await page.numbers('Output', part(trace.merged), lab);
});

pageTest('the lab shows programs that compute the same numbers, and the JavaScript one does', async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  await fill(page, inputs);
  await run(page);
  const [Q, K, V] = Object.values(inputs).map(matrix);
  const { output } = data.attn.scaledDotProductAttention(Q, K, V);
  await page.numbers('Output', part(output), lab);
  const code = Object.fromEntries(await programs(page));
  assert.deepEqual(Object.keys(code), ['JavaScript', 'C++', 'PyTorch']);
  assert.match(code['C++'], /#include <attn\//);
  assert.match(code.PyTorch, /^import torch/m);
  for (const [title, program] of Object.entries(code))
    for (const number of ['0.25', '-1', '9']) assert.ok(program.includes(number), `${title} has ${number}`);
  const printed = execFileSync(process.execPath, ['--input-type=module', '-'], { cwd: repository, input: code.JavaScript, encoding: 'utf8' });
  const [, shown] = /^output.*?\[([^\]]*)\]/ms.exec(printed) ?? assert.fail(printed);
  assert.deepEqual(shown.split(',').map(Number).map(Math.fround), [...output.data]);
  await page.evaluate(() => (document.querySelector('#lab details').open = true));
  await page.click('button', 'Copy the JavaScript code', lab);
  await page.until(({ text }) => /Copied|does not allow/.test(text('#lab details')), 'the answer of Copy');
});

pageTest('the lab reads printed arrays, tables and weights in torch order', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  await fill(page, {
    Q: 'tensor([[ 0.5000, -1.0000],\n        [ 2.0000,  0.2500],\n        [ 1.0000,  1.0000]])',
    K: '[[ 1.   0. ]\n [ 0.   1. ]\n [ 0.5  0.5]\n [-1.   2. ]]',
    V: '1,2,3\n4,5,6\n7,8,9\n-1,0,1',
  });
  await run(page);
  const [Q, K, V] = Object.values(inputs).map(matrix);
  await page.numbers('Output', part(data.attn.scaledDotProductAttention(Q, K, V).output), lab);
  // A click in the picture of the weights, at query 3 of 3 and key 2 of 4, shows the number of that cell.
  const weights34 = part(data.attn.scaledDotProductAttention(Q, K, V, { needWeights: true }).weights);
  const shown = await page.tool(({ text }) => {
    const field = document.querySelector('#lab .result .matrix-cells');
    const { left, top, width, height } = field.getBoundingClientRect();
    field.dispatchEvent(new MouseEvent('click', { bubbles: true, clientX: left + (1.5 / 4) * width, clientY: top + (2.5 / 3) * height }));
    return new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(text(field.parentElement.querySelector('.matrix-reading'))))));
  });
  const [, number] = /^query 3, key 2: (\d\.\d{4})$/.exec(shown) ?? assert.fail(shown);
  assertNear(number, weights34.at(2, 1), shown);
  await page.click('radio', 'Multi-head', lab);
  await fill(page, selfAttention);
  await run(page);
  const { cells } = await page.eventually(async () => {
    const table = await page.table('Output', lab);
    assert.equal(table.cells[0].length, 4);
    return table;
  });
  const weights = Object.entries(selfAttention).filter(([name]) => name !== 'X');
  await page.click('checkbox', 'Weights as in PyTorch (out × in)', lab);
  await page.until(() => location.hash.includes('lab.torch=1'), 'the switch in the address');
  await fill(page, Object.fromEntries(weights.map(([name, rows]) => [name, transposed(rows)])));
  await run(page);
  await page.eventually(async () => assert.deepEqual((await page.table('Output', lab)).cells, cells));
});

pageTest('results of the lab are saved to files, and dropped files fill its fields', { engines: 'chromium' }, async ({ page }) => {
  await page.open();
  await fill(page, inputs);
  await run(page);
  const group = ['group', 'Save results', lab];
  const save = (format) => saved(page, () => page.click('button', `Save as ${format}`, group));
  await page.shows('group', 'Save results', '#lab');
  const { cells } = await page.table('Output', lab);
  const same = (rows, what) => rows.forEach((row, i) => row.forEach((value, j) => assert.equal(value.toFixed(6), cells[i][j], `${what}: ${i},${j}`)));
  const asJson = await save('JSON');
  assert.equal(asJson.name, 'attn-lab-output.json');
  same(JSON.parse(asJson.text).output, 'JSON');
  const csv = (await save('CSV')).text.trim().split('\r\n');
  assert.equal(csv[0], 'row,number 1,number 2,number 3');
  same(
    csv.slice(1).map((line) => line.split(',').slice(1).map(Number)),
    'CSV',
  );
  const npy = (await save('.npy')).bytes;
  assert.match(Buffer.from(npy.subarray(10, 128)).toString(), /'<f4'.*\(3, 3\)/);
  await page.choose('combobox', 'Save', 'all arrays', group);
  assert.deepEqual(
    await page.tool(({ all, text }) => all('button', undefined, ['group', 'Save results', '#lab']).map((each) => [text(each), each.disabled])),
    [
      ['CSV', true],
      ['JSON', false],
      ['.npy', true],
      ['safetensors', false],
    ],
  );
  const file = await save('safetensors');
  assert.equal(file.name, 'attn-lab-all-arrays.safetensors');
  const { tensors } = readSafetensorsHeader(file.bytes);
  assert.deepEqual(tensors.weights.shape, [3, 4]);
  assert.ok(['q', 'scores', 'output'].every((name) => name in tensors));
  const dropOn = (name, content, fileName) =>
    page.tool(
      ({ find }, field, bytes, called) => {
        const event = new DragEvent('drop', { bubbles: true, cancelable: true });
        const file = new File([Uint8Array.from(bytes)], called);
        Object.defineProperty(event, 'dataTransfer', { value: { types: ['Files'], files: [file], items: [] } });
        find('textbox', field, '#lab').dispatchEvent(event);
        return event.defaultPrevented;
      },
      name,
      [...Buffer.from(content)],
      fileName,
    );
  const all = (await save('JSON')).text;
  assert.ok(await dropOn('V', all, 'all.json'));
  await page.until(({ find }) => find('combobox', 'Array of all.json for V', '#lab').value === 'v', 'the array named like the field');
  await page.choose('combobox', 'Array of all.json for V', 'output', lab);
  await page.eventually(async () => same(JSON.parse(await page.tool(({ find }) => find('textbox', 'V', '#lab').value)), 'JSON that was dropped'));
  // V of three rows does not match K of four: an alert about the current numbers, not about a refused file.
  await fill(page, { V: inputs.V });
  await run(page);
  await page.shows('table', 'Output', '#lab');
  assert.ok(await dropOn('V', [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, 9], 'cut.npy'));
  const said = await page.says(/./, 'alert', undefined, '#lab');
  assert.match(said, /^cut\.npy: /);
  await run(page);
  await page.says(/could not be computed/, 'status');
  assert.equal(await page.text('alert', undefined, '#lab'), said, 'Run repeats the alert');
  assert.equal(await page.count('table', 'Output', '#lab'), 0, 'and computes nothing');
  await fill(page, { V: inputs.V });
  await run(page);
  await page.until(({ find, all }) => !!find('table', 'Output', '#lab') && all('alert').length === 0, 'numbers again');
});

pageTest('NaN in the result is counted and explained', { engines: 'chromium' }, async ({ page }) => {
  await page.open();
  await page.fill('V', '[[1, 2], [NaN, 4], [5, 6]]', lab);
  await page.click('button', 'Run attention', lab);
  const note = await page.until(({ text }) => text('#lab .results [role=note]'), 'the note');
  assert.equal(note, 'NaN (not a number) is in the place of 3 of the 6 numbers of the output. V contains NaN, and every sum with it is NaN.');
  await page.says(/output \(3, 2\).*NaN/, 'status');
  await page.axe('NaN', '#lab');
});
