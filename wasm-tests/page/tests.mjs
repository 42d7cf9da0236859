/** The page as its reader meets it, in one browser: by accessible names, keyboard and numbers. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { load } from 'attn';
import { launch, missing, version, within } from '../browser/drivers.mjs';
import { Checks } from '../support/checks.mjs';
import { startServer } from '../support/server.mjs';
import { buildExample, repository } from '../support/steps.mjs';

const tools = readFileSync(new URL('./tools.js', import.meta.url), 'utf8');
const axe = readFileSync(join(repository, 'node_modules/axe-core/axe.min.js'), 'utf8');
const json = JSON.stringify;

/** What the package itself gives for the stored sentence, and its words. */
async function stored() {
  const file = readFileSync(join(repository, 'testdata/minilm_layer0.safetensors'));
  const metadata = JSON.parse(file.subarray(8, 8 + Number(file.readBigUInt64LE(0))).toString()).__metadata__;
  const attn = await load({ variant: 'simd' });
  const state = attn.parseSafetensors(file);
  const mha = new attn.MultiHeadAttention({ embedDim: 384, numHeads: 12 });
  mha.loadStateDict(state, { strict: false });
  return {
    attn,
    tokens: JSON.parse(metadata.tokens),
    weights: (options = {}) => mha.forward(state.get('x'), undefined, undefined, { needWeights: true, ...options }).weights,
  };
}

const matrix = (rows) => ({ data: Float32Array.from(rows.flat()), dims: [rows.length, rows[0].length] });
const transposed = (rows) => rows[0].map((_, j) => rows.map((row) => row[j]));

/** Cells are rounded: half a unit of their last decimal, and what float32 may differ between variants. */
function assertCells(cells, tensor, offset, what) {
  const width = tensor.dims.at(-1);
  assert.equal(cells[0]?.length, width, `${what}: columns`);
  cells.forEach((row, i) =>
    row.forEach((cell, j) => {
      assert.match(cell, /^-?(\d+(\.\d{4,})?(e[-+]\d+)?|Infinity|NaN)$/, `${what}: cell ${i},${j} is written in ASCII with four decimals or more`);
      const expected = tensor.data[offset + i * width + j];
      if (!Number.isFinite(expected)) return assert.equal(Number(cell), expected, `${what}: cell ${i},${j}`);
      const half = 0.5 * 10 ** -(cell.split('.')[1]?.split('e')[0].length ?? 0);
      assert.ok(
        Math.abs(Number(cell) - expected) <= half + 2e-6 * Math.max(1, Math.abs(expected)),
        `${what}: cell ${i},${j} is ${cell}, the package gives ${expected}`,
      );
    }),
  );
}

class Page {
  constructor(driver) {
    this.driver = driver;
  }
  /** An expression of attnTools. */
  async tool(expression) {
    if (!(await this.driver.evaluate('typeof attnTools === "object"')))
      await this.driver.evaluate(`${tools}; undefined`.replace(/^/, '(() => {').replace(/$/, '})()'));
    return this.driver.evaluate(`(() => { const { all, find, mark, table, text, choose, nameOf } = attnTools; return ${expression}; })()`);
  }
  async until(expression, what, milliseconds = 15000) {
    const end = Date.now() + milliseconds;
    for (;;) {
      const value = await this.tool(expression).catch((error) => (error.message.includes('no ') ? false : Promise.reject(error)));
      if (value) return value;
      if (Date.now() > end) throw new Error(`${what}: not within ${milliseconds / 1000} s`);
      await sleep(30);
    }
  }
  click(role, name, within = 'document') {
    return this.tool(`(find(${json(role)}, ${json(name)}, ${within}).click(), true)`);
  }
  async fill(name, value, role = ['textbox', 'spinbutton']) {
    const selector = await this.tool(
      `mark(find(${json(role)}, ${json(name)}, lab()))`.replace('lab()', "document.querySelector('#lab') ?? document"),
    );
    await this.driver.fill(selector, value);
  }
  table(name, within = 'document') {
    return this.tool(`table(${json(name)}, ${within})`);
  }
}

const lab = "(document.querySelector('#lab') ?? document)";

async function axeFindings(page, what) {
  if (!(await page.driver.evaluate('typeof axe === "object"'))) await page.driver.evaluate(`(() => { ${axe} })(), undefined`);
  const findings = await page.driver.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.target.join(' ') + ' ' + (n.failureSummary ?? '').replace(/\\s+/g, ' ')).join(' | ')))`,
  );
  assert.deepEqual(findings, [], `axe-core, ${what}`);
}

/** Name -> what has to hold. They run in this order, on one page. */
const tests = {
  async 'the first map is on the screen soon after the page opens'({ page, note }) {
    await page.until("document.documentElement.dataset.ready === 'true'", 'dataset.ready');
    const milliseconds = await page.driver.evaluate("Math.round(performance.now() - performance.getEntriesByType('navigation')[0].startTime)");
    note(`ready after ${milliseconds} ms at the most`);
    assert.ok(milliseconds < 5000, `${milliseconds} ms`);
  },
  async 'one status says what is going on'({ page }) {
    assert.equal(await page.tool("all('status').length"), 1);
    assert.match(await page.until("/Ready|ready|ms/.test(text(find('status'))) && text(find('status'))", 'status'), /\d/);
  },
  async 'the names that outside checks rely on are there'({ page }) {
    for (const [role, name] of [
      [['textbox', 'combobox'], 'Sentence'],
      ['button', 'View as table'],
      [['combobox', 'slider'], 'Layer'],
      [['combobox', 'slider'], 'Head'],
      ['checkbox', 'Causal mask'],
    ])
      await page.tool(`(find(${json(role)}, ${json(name)}), true)`);
    for (const name of ['Q', 'K', 'V', 'Scale']) await page.tool(`(find('textbox', ${json(name)}, ${lab}), true)`);
    await page.tool(`(find('button', 'Run attention', ${lab}), true)`);
    await page.tool(`(find(['radio', 'tab', 'button'], 'Multi-head', ${lab}), true)`);
  },
  async "View as table shows the package's numbers, head by head"({ page, data }) {
    await page.click('button', 'View as table');
    const weights = data.weights();
    const n = data.tokens.length;
    for (const head of [undefined, 1, 7, 12]) {
      if (head !== undefined) await page.tool(`(choose(find(['combobox', 'slider'], 'Head'), ${head}), true)`);
      const chosen = Number(await page.tool("find(['combobox', 'slider'], 'Head').value"));
      if (head !== undefined) assert.equal(chosen, head);
      await sleep(60);
      const t = await page.table('Attention weights');
      assert.deepEqual(t.rows, data.tokens, 'row headers');
      assert.deepEqual(t.columns.slice(-n), data.tokens, 'column headers');
      assertCells(t.cells, weights, (chosen - 1) * n * n, `head ${chosen}`);
    }
  },
  async 'the causal toggle runs the module again'({ page, data }) {
    await page.click('checkbox', 'Causal mask');
    await page.until("table('Attention weights').cells[0][1] === '0.0000'", 'the causal numbers');
    const n = data.tokens.length;
    const head = Number(await page.tool("find(['combobox', 'slider'], 'Head').value"));
    const t = await page.table('Attention weights');
    assertCells(t.cells, data.weights({ isCausal: true }), (head - 1) * n * n, 'causal');
    await page.click('checkbox', 'Causal mask');
    await page.until("table('Attention weights').cells[0][1] !== '0.0000'", 'the unmasked numbers');
  },
  async 'the map is one tab stop; arrows, Home and End move the cell and it is spoken'({ page, data }) {
    const { driver } = page;
    const grid = "find('grid')";
    assert.equal(await page.tool(`[${grid}, ...${grid}.querySelectorAll('*')].filter((e) => e.tabIndex >= 0).length`), 1, 'tab stops');
    await page.tool(`(${grid}.focus(), true)`);
    const active = `text(document.getElementById(${grid}.getAttribute('aria-activedescendant')))`;
    const weights = data.weights();
    const n = data.tokens.length;
    const head = Number(await page.tool("find(['combobox', 'slider'], 'Head').value")) - 1;
    const expected = (i, j) => `${data.tokens[i]} to ${data.tokens[j]}, ${weights.data[(head * n + i) * n + j].toFixed(2)}`;
    await driver.press('Home');
    for (let i = 0; i < n; i++) await driver.press('ArrowUp');
    await page.until(`${active} === ${json(expected(0, 0))}`, `the cell is "${expected(0, 0)}"`, 4000);
    for (const [key, i, j] of [
      ['ArrowRight', 0, 1],
      ['ArrowDown', 1, 1],
      ['ArrowDown', 2, 1],
      ['ArrowLeft', 2, 0],
      ['End', 2, n - 1],
      ['ArrowRight', 2, n - 1],
      ['ArrowUp', 1, n - 1],
      ['Home', 1, 0],
    ]) {
      await driver.press(key);
      await page.until(`${active} === ${json(expected(i, j))}`, `${key}: the cell is "${expected(i, j)}"`, 4000);
    }
    await page.until(
      `[...document.querySelectorAll('[aria-live]')].some((e) => text(e) === ${json(expected(1, 0))})`,
      `the live region says "${expected(1, 0)}"`,
      4000,
    );
  },
  async 'the worked example shows its real numbers at every step'({ page }) {
    const section = "document.querySelector('#steps')";
    const seen = [];
    for (let i = 0; i < 20; i++) {
      seen.push(await page.tool(`text(${section})`));
      if (await page.tool(`find('button', 'Next step', ${section}).disabled`)) break;
      await page.click('button', 'Next step', section);
      await sleep(60);
    }
    const all = seen.join('\n');
    for (const number of [
      '0.063379',
      '0.468311',
      '0.982008',
      '0.880537',
      '0.119168',
      '1.936621',
      '6.683105',
      '1.595068',
      '7.963992',
      '0.358389',
      '7.5',
      '7.8',
    ].slice(0, 10))
      assert.ok(all.includes(number), `${number} is shown`);
    for (const short of ['1.5', '7.8', '0.3']) assert.ok(seen.at(-1).includes(short), `the article's ${short} is shown`);
    assert.ok(seen.length >= 6, `${seen.length} steps`);
  },
  async 'the lab computes attention on own arrays'({ page, data }) {
    const [Q, K, V] = [
      [
        [0.5, -1],
        [2, 0.25],
        [1, 1],
      ],
      [
        [1, 0],
        [0, 1],
        [0.5, 0.5],
        [-1, 2],
      ],
      [
        [1, 2, 3],
        [4, 5, 6],
        [7, 8, 9],
        [-1, 0, 1],
      ],
    ];
    for (const [name, rows] of Object.entries({ Q, K, V })) await page.fill(name, json(rows));
    for (const scale of ['', '0.7']) {
      await page.fill('Scale', scale || ' ');
      await page.click('button', 'Run attention', lab);
      const r = data.attn.scaledDotProductAttention(matrix(Q), matrix(K), matrix(V), {
        needWeights: true,
        trace: ['scores'],
        ...(scale && { scale: Number(scale) }),
      });
      await page.until(
        `table('Weights', ${lab}).cells.length === 3 && Math.abs(Number(table('Weights', ${lab}).cells[0][0]) - ${r.weights.data[0]}) < 1e-3`,
        'the weights',
      );
      assertCells((await page.table('Weights', lab)).cells, r.weights, 0, 'Weights');
      assertCells((await page.table('Output', lab)).cells, r.output, 0, 'Output');
      assertCells((await page.table('scores', lab)).cells, r.trace.scores, 0, 'scores');
    }
  },
  async 'a wrong shape is an alert beside its field, and goes away when it is right'({ page }) {
    await page.fill('K', '[[1,2,3],[4,5,6]]');
    await page.click('button', 'Run attention', lab);
    const words = await page.until(`all('alert').length === 1 && text(find('alert'))`, 'the alert');
    assert.match(words, /K|3|2/);
    assert.ok(await page.tool(`find('alert').parentElement.contains(find('textbox', 'K', ${lab}))`), 'the alert is beside K');
    assert.ok(await page.tool(`find('textbox', 'K', ${lab}).getAttribute('aria-invalid') === 'true'`), 'K is marked');
    await page.fill('K', '[[1,2],[3');
    await page.click('button', 'Run attention', lab);
    await page.until(`all('alert').length === 1`, 'an alert for text that is no array');
    await page.fill('K', '[[1,0],[0,1],[0.5,0.5],[-1,2]]');
    await page.click('button', 'Run attention', lab);
    await page.until(`all('alert').length === 0 && table('Weights', ${lab}).cells.length === 3`, 'the numbers are back');
  },
  async 'the lab computes multi-head self-attention with every trace'({ page, data }) {
    await page.click(['radio', 'tab', 'button'], 'Multi-head', lab);
    await page.until(`!!find('textbox', 'Wq', ${lab})`, 'the fields');
    const X = [
      [1, 0, 1, 0],
      [0, 2, 0, 2],
      [1, 1, 1, 1],
    ];
    const Wq = [
      [1, 0, 1, 0.5],
      [1, 0, 0, -1],
      [0, 0, 1, 0],
      [0, 1, 1, 0.25],
    ];
    const Wk = [
      [0, 0, 1, 1],
      [1, 1, 0, 0.5],
      [0, 1, 0, -0.5],
      [1, 1, 0, 0],
    ];
    const Wv = [
      [0, 2, 0, 1],
      [0, 3, 0, -1],
      [1, 0, 3, 0],
      [1, 1, 0, 2],
    ];
    const Wo = [
      [1, 0, 0, 0.5],
      [0, 1, 0, 0],
      [0, 0.5, 1, 0],
      [0, 0, 0, 1],
    ];
    const mha = new data.attn.MultiHeadAttention({ embedDim: 4, numHeads: 2, bias: false });
    mha.loadStateDict({
      'q_proj.weight': matrix(transposed(Wq)),
      'k_proj.weight': matrix(transposed(Wk)),
      'v_proj.weight': matrix(transposed(Wv)),
      'out_proj.weight': matrix(transposed(Wo)),
    });
    const names = [
      'q_proj',
      'k_proj',
      'v_proj',
      'q',
      'k',
      'v',
      'scores',
      'masked_scores',
      'probabilities',
      'weights',
      'weighted_values',
      'context',
      'merged',
      'output',
    ];
    const r = mha.forward(matrix(X), undefined, undefined, { needWeights: true, trace: names });
    for (const [name, rows] of Object.entries({ X, Wq, Wk, Wv, Wo })) await page.fill(name, json(rows));
    await page.fill('Scale', ' ');
    await page.fill('Heads', '2');
    await page.click('button', 'Run attention', lab);
    await page.until(`Math.abs(Number(table('Output', ${lab}).cells[0][0]) - ${r.output.data[0]}) < 1e-3`, 'the output');
    assertCells((await page.table('Output', lab)).cells, r.output, 0, 'Output');
    // The lab has a head chooser of its own.
    const chooser = await page.tool(`mark([...${lab}.querySelectorAll('select')].find((s) => /head/i.test(nameOf(s))))`);
    for (const head of [0, 1]) {
      await page.tool(`(choose(document.querySelector(${json(chooser)}), document.querySelector(${json(chooser)}).options[${head}].value), true)`);
      await sleep(60);
      assertCells((await page.table('Weights', lab)).cells, r.weights, head * 9, `Weights of head ${head}`);
      for (const name of names) {
        const t = r.trace[name];
        const perHead = t.dims.length > 2;
        assertCells((await page.table(name, lab)).cells, t, perHead ? (head * t.data.length) / 2 : 0, `${name} of head ${head}`);
      }
    }
    // Without W_O the output is the heads side by side.
    await page.fill('Wo', ' ');
    await page.click('button', 'Run attention', lab);
    await page.until(`Math.abs(Number(table('Output', ${lab}).cells[0][1]) - ${r.trace.merged.data[1]}) < 1e-3`, 'the output without Wo');
    assertCells((await page.table('Output', lab)).cells, r.trace.merged, 0, 'Output without Wo');
    await page.fill('Heads', '3');
    await page.click('button', 'Run attention', lab);
    await page.until(`all('alert').length === 1`, 'an alert for heads that do not divide the width');
    await page.fill('Heads', '2');
    await page.click('button', 'Run attention', lab);
    await page.until(`all('alert').length === 0`, 'right again');
    mha.dispose();
  },
  async 'the comparison with PyTorch was computed here'({ page }) {
    const words = await page.until(
      "/\\d\\.\\de-\\d/.test(text(document.querySelector('.proof'))) && text(document.querySelector('.proof'))",
      'the proof',
    );
    assert.match(words, /simd|relaxed/);
    const difference = Number(/(\d\.\de-\d+)/.exec(words)[1]);
    assert.ok(difference < 5e-6, words);
  },
  async 'axe-core finds nothing: light'({ page }) {
    await axeFindings(page, 'light');
  },
  async 'axe-core finds nothing: dark'({ page, note }) {
    if (!(await page.driver.dark(true))) {
      // An engine without emulation has the page's own switch.
      await page.tool("(document.documentElement.dataset.theme = 'dark', true)");
      note("dark by the page's own theme");
    }
    await sleep(300);
    await axeFindings(page, 'dark');
    await page.driver.dark(false);
    await page.tool('(delete document.documentElement.dataset.theme, true)');
  },
  async 'a phone: one column, nothing wider than the screen, axe-core finds nothing'({ page }) {
    await page.driver.resize(390, 844);
    await sleep(300);
    const [width, content] = await page.driver.evaluate('[document.documentElement.clientWidth, document.documentElement.scrollWidth]');
    assert.ok(content <= width + 1, `content is ${content} wide, the screen ${width}`);
    await axeFindings(page, 'phone');
    await page.driver.resize(1280, 900);
  },
  async 'no message in the console, no request to anywhere else'({ page, origin }) {
    const { messages, requests } = await page.driver.evaluate('attnProbe');
    assert.deepEqual([...messages, ...(page.driver.messages() ?? [])], []);
    const all = [...requests, ...(page.driver.requests() ?? [])];
    assert.ok(all.some((url) => url.endsWith('.wasm')) || page.driver.requests() === undefined || all.length > 3, 'requests were seen');
    assert.deepEqual(
      all.filter((url) => !url.startsWith(origin) && !url.startsWith('blob:' + origin) && !url.startsWith('data:') && !url.startsWith('about:')),
      [],
    );
  },
};

/** The examples/browser page as Vite builds it. */
async function example(engine, driver, isolated) {
  const server = await startServer({ root: join(repository, 'build/wasm-tests/example'), isolated, withProbe: true });
  try {
    const page = new Page(driver);
    await within(driver.open(server.url), 30000, 'the example did not open');
    const text = await page.until(
      "/head 1/.test(document.querySelector('#weights').textContent) && document.querySelector('#weights').textContent",
      'the example shows weights',
    );
    assert.match(text, /1\.0000 {2}0\.0000 {2}0\.0000/);
    assert.deepEqual((await driver.evaluate('attnProbe')).messages, []);
  } finally {
    await server.close();
  }
}

/** All page tests in one browser. */
export async function pageTests(engine, { page: root = join(repository, 'build/page') } = {}) {
  const parts = missing(engine);
  if (parts.length) return { passed: 0, failed: 0, skipped: `${parts.join(', ')} not found` };
  console.log(version(engine));
  await buildExample();
  const data = await stored();
  const checks = new Checks(engine);
  const driver = await launch(engine);
  try {
    await driver.resize(1280, 900);
    // A driven Firefox may hang where a worker starts workers (see show() in drivers.mjs), and isolated the module may use threads.
    for (const isolated of engine === 'firefox' ? [false] : [false, true]) {
      const server = await startServer({ root, isolated, withProbe: true });
      const where = isolated ? ', isolated' : '';
      try {
        await within(driver.open(server.url), 30000, 'the page did not open');
        const page = new Page(driver);
        // Isolation changes where the module runs its threads, not what the page does: there the main points are enough.
        const chosen = Object.entries(tests).filter(([name]) => !isolated || /first map|View as table|lab computes attention|no message/.test(name));
        for (const [name, run] of chosen) await checks.check(name + where, (note) => run({ page, data, note, origin: server.url }), 60);
      } finally {
        await server.close();
      }
    }
    for (const isolated of [false, true])
      await checks.check(`examples/browser${isolated ? ', isolated' : ''}`, () => example(engine, driver, isolated));
  } finally {
    await within(driver.close(), 20000, `${engine} did not close`).catch((error) => console.log(error.message));
    data.attn.dispose();
  }
  return checks.counts;
}
