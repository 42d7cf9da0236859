/** One page in one browser, as its reader meets it: by accessible names, keyboard and numbers. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { isLeaving, within } from '../browser/drivers.mjs';
import { repository } from '../support/paths.mjs';

const tools = readFileSync(new URL('./tools.js', import.meta.url), 'utf8');
const axe = readFileSync(join(repository, 'node_modules/axe-core/axe.min.js'), 'utf8');
export const json = JSON.stringify;

/** An expression for the section of this id. */
export const section = (id) => `document.getElementById(${json(id)})`;
export const lab = section('lab');

/** With another query an address is another document, whatever its hash. */
let opened = 0;

export class Page {
  constructor(driver, origin) {
    this.driver = driver;
    this.origin = origin;
  }
  /** Loads the page anew; ready when the first map is drawn. */
  async open(hash = '', folder = '') {
    await this.visit(hash, folder);
    await this.until("document.documentElement.dataset.ready === 'true'", 'the first map', 30000);
  }
  /** Loads the page anew, or what stands for it in a folder; it may not come as far as a map. */
  async visit(hash = '', folder = '') {
    await within(this.driver.open(`${this.origin}${folder}?${++opened}#${hash}`), 30000, 'the page did not open');
    // A driver may be back while the page before is still there.
    await this.until(`location.search === '?${opened}' && !!document.querySelector('#app > *')`, 'the page', 30000);
  }
  /** An expression of attnTools. */
  tool(expression) {
    return this.driver.evaluate(
      `(() => { if (!globalThis.attnTools) { ${tools} } const { all, find, mark, table, text, choose, nameOf, visible } = attnTools; return ${expression}; })()`,
    );
  }
  /** What the expression gives as soon as that is true; what is not there yet is waited for. */
  async until(expression, what, milliseconds = 15000) {
    const end = Date.now() + milliseconds;
    for (;;) {
      const isNotThere = (error) => /no [\w,]+ named/.test(error.message) || isLeaving(error);
      const value = await this.tool(expression).catch((error) => (isNotThere(error) ? false : Promise.reject(error)));
      if (value) return value;
      if (Date.now() > end) throw new Error(`${what}: not within ${milliseconds / 1000} s`);
      await sleep(30);
    }
  }
  /** An expression of attnTools, as soon as what is called so is there. */
  there(name, expression) {
    return this.until(expression, `${name} to be there`);
  }
  click(role, name, within = 'document') {
    return this.there(name, `(find(${json(role)}, ${json(name)}, ${within}).click(), true)`);
  }
  choose(role, name, value, within = 'document') {
    return this.there(name, `(choose(find(${json(role)}, ${json(name)}, ${within}), ${json(value)}), true)`);
  }
  /** Types over what is in a field. */
  async fill(name, value, within = 'document') {
    await this.driver.fill(await this.there(name, `mark(find(['textbox', 'spinbutton'], ${json(name)}, ${within}))`), value);
  }
  table(name, within = 'document') {
    return this.tool(`table(${json(name)}, ${within})`);
  }
  /** What the check gives as soon as it passes; when it does not, what was wrong the last time. */
  async eventually(check, milliseconds = 8000) {
    const end = Date.now() + milliseconds;
    for (;;) {
      try {
        return await check();
      } catch (error) {
        if (Date.now() > end) throw error;
      }
      await sleep(40);
    }
  }
  /** The table as soon as its numbers are those that are expected, as assertCells has it. */
  numbers(name, expected, within = 'document') {
    return this.eventually(async () => {
      const table = await this.table(name, within);
      assertCells(table.cells, expected, name);
      return table;
    });
  }
  texts(role, name, within = 'document') {
    return this.tool(`Array.from(find(${json(role)}, ${json(name)}, ${within}).children, text)`);
  }
  /** `part`: a selector. */
  async axe(what, part = ':root') {
    // Colours may be on their way from one theme to another.
    await this.until("document.getAnimations().every((each) => each.playState !== 'running')", 'all is still');
    if (!(await this.driver.evaluate('typeof axe === "object"'))) await this.driver.evaluate(`(() => { ${axe} })(), undefined`);
    const findings = await this.driver.evaluate(
      `axe.run(${json(part)}, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.target.join(' ') + ' ' + (n.failureSummary ?? '').replace(/\\s+/g, ' ')).join(' | ')))`,
    );
    assert.deepEqual(findings, [], `axe-core, ${what}`);
  }
}

/** The last two dimensions of a tensor, of the matrix that begins at `offset`; columns from `first` on. */
export const part = ({ data, dims }, offset = 0, { count = dims.at(-2), width = dims.at(-1), first = 0 } = {}) => ({
  count,
  width,
  at: (i, j) => data[offset + i * dims.at(-1) + first + j],
});
/** One head of (1,H,L,W). */
export const ofHead = (tensor, head) => part(tensor, head * tensor.dims[2] * tensor.dims[3]);
/** Rows of numbers. */
export const rowsOf = (rows) => ({ count: rows.length, width: rows[0].length, at: (i, j) => rows[i][j] });

/** Cells are rounded: half a unit of their last decimal, and what float32 may differ between variants. */
export function assertCells(cells, { count, width, at }, what) {
  assert.equal(cells.length, count, `${what}: rows`);
  assert.equal(cells[0]?.length, width, `${what}: columns`);
  cells.forEach((row, i) =>
    row.forEach((cell, j) => {
      assert.match(cell, /^-?(\d+(\.\d{4,})?(e[-+]\d+)?|Infinity|NaN)$/, `${what}: cell ${i},${j} is written in ASCII with four decimals or more`);
      assertNear(cell, at(i, j), `${what}: cell ${i},${j}`);
    }),
  );
}

/** A number in text, and what it should be. `unit`: what its last decimal counts, as 0.01 in per cent. */
export function assertNear(written, expected, what, unit = 1) {
  if (!Number.isFinite(expected)) return assert.equal(Number(written), expected, what);
  const half = 0.5 * 10 ** -(written.split('.')[1]?.split('e')[0].length ?? 0) * unit;
  assert.ok(
    Math.abs(Number(written) * unit - expected) <= half + 2e-6 * Math.max(1, Math.abs(expected)),
    `${what} is ${written}, the package gives ${expected}`,
  );
}

export const matrix = (rows) => ({ data: Float32Array.from(rows.flat()), dims: [rows.length, rows[0].length] });
export const transposed = (rows) => rows[0].map((_, j) => rows.map((row) => row[j]));

/** The file that is handed to the visitor by what `press` does: name, bytes and text. */
export async function saved(page, press) {
  await page.tool(`(() => {
    const blobs = new Map();
    URL.createObjectURL = (blob) => (blobs.set('blob:saved' + blobs.size, blob), 'blob:saved' + (blobs.size - 1));
    globalThis.savedFile = new Promise((done, fail) => {
      HTMLAnchorElement.prototype.click = function () {
        blobs.get(this.href).arrayBuffer().then((bytes) => done([this.download, Array.from(new Uint8Array(bytes))]), fail);
      };
    });
    return true;
  })()`);
  await press();
  const [name, bytes] = await page.driver.evaluate('savedFile');
  return { name, bytes: Uint8Array.from(bytes), text: Buffer.from(bytes).toString() };
}

/** All that is computed when the page has been opened: the speed comes last. */
export const settled = (page) => page.until("!!find('table', 'Speed') && !find('button', 'Measure again').disabled", 'the speed', 60000);
/** Presses the button, sees it at work, and waits for the end. */
export async function measureAgain(page) {
  await page.tool(`new Promise((done) => {
    const button = find('button', 'Measure again');
    new MutationObserver(() => button.disabled && done(true)).observe(button, { attributes: true });
    button.click();
  })`);
  await settled(page);
}
