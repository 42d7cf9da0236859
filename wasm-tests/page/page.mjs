/** A page in a browser, operated by accessible names and keyboard. */
import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { isLeaving, within } from '../browser/drivers.mjs';
import { axeFindings } from '../support/axe.mjs';
import { makeTools } from './tools.mjs';

export const json = JSON.stringify;

/** The longest wait in ms: stops hanging tests, not slow ones. */
const patience = 1000 * Number(process.env.ATTN_PATIENCE ?? 120);

/** A new query makes the browser load a new document, whatever the hash. */
let opened = 0;

/**
 * Places are selectors or [role, name, place]. Functions run in the page: they see their arguments and the page's
 * globals, but not their file.
 */
export class Page {
  constructor(driver, origin) {
    this.driver = driver;
    this.origin = origin;
  }
  /** With the sentiment classifier, unless the address names another model; `openFresh` opens it as a first visitor does. */
  async open(hash = 'model=sentiment', folder = '') {
    await this.visit(hash, folder);
    await this.until(() => document.documentElement.dataset.ready === 'true' && !!document.querySelector('#focus canvas'), 'the first picture');
  }
  openFresh() {
    return this.open('');
  }
  /** Loads the page, or its counterpart in a folder, which may not show a map. */
  async visit(hash = '', folder = '') {
    await this.go(`${folder}?${++opened}#${hash}`);
    // The driver may return while the previous page is still shown.
    await this.until((_, query) => location.search === query && !!document.querySelector('#app > *'), 'the page', `?${opened}`);
  }
  go(path) {
    return within(this.driver.open(`${this.origin}${path}`), patience, `${path.slice(0, 80)} did not open`);
  }
  evaluate(run, ...args) {
    return this.driver.evaluate(run, ...args);
  }
  tool(run, ...args) {
    return this.evaluate((make, own, ...given) => own((globalThis.attnTools ??= make()), ...given), makeTools, run, ...args);
  }
  async until(run, what, ...args) {
    const end = Date.now() + patience;
    for (;;) {
      // An element may be missing until the page is drawn: find() says so, querySelector() gives null.
      const isNotThere = (error) => /no [\w,]+ named|TypeError.*\bnull\b/.test(error.message) || isLeaving(error);
      const asked = this.tool(run, ...args).catch((error) => (isNotThere(error) ? false : Promise.reject(error)));
      const value = await within(asked, patience, `${what}: the page did not answer`);
      if (value) return value;
      if (Date.now() > end) throw new Error(`${what}: not within ${patience / 1000} s`);
      await sleep(30);
    }
  }
  shows(role, name, where) {
    return this.until(({ all }, ...wanted) => all(...wanted).length > 0, `${name ?? role} to be there`, role, name, where);
  }
  lacks(role, name, where) {
    return this.until(({ all }, ...wanted) => all(...wanted).length === 0, `${name ?? role} to be gone`, role, name, where);
  }
  count(role, name, where) {
    return this.tool(({ all }, ...wanted) => all(...wanted).length, role, name, where);
  }
  click(role, name, where) {
    const run = ({ find }, ...wanted) => {
      find(...wanted).click();
      return true;
    };
    return this.until(run, `${name} to be there`, role, name, where);
  }
  choose(role, name, value, where) {
    const run = ({ find, choose }, chosen, ...wanted) => {
      choose(find(...wanted), chosen);
      return true;
    };
    return this.until(run, `${name} to be there`, value, role, name, where);
  }
  async fill(name, value, where) {
    const field = ({ find, mark }, ...wanted) => mark(find(['textbox', 'spinbutton'], ...wanted));
    await this.driver.fill(await this.until(field, `${name} to be there`, name, where), value);
  }
  text(role, name, where) {
    return this.tool(({ find, text }, ...wanted) => text(find(...wanted)), role, name, where);
  }
  says(pattern, role, name, where) {
    const run = ({ find, text }, expected, ...wanted) => {
      const said = text(find(...wanted));
      return expected.test(said) && said;
    };
    return this.until(run, `${name ?? role} to say ${pattern}`, pattern, role, name, where);
  }
  table(name, where) {
    return this.tool(({ table }, ...wanted) => table(...wanted), name, where);
  }
  async eventually(check) {
    const end = Date.now() + patience;
    for (;;) {
      try {
        return await check();
      } catch (error) {
        if (Date.now() > end) throw error;
      }
      await sleep(40);
    }
  }
  numbers(name, expected, where) {
    return this.eventually(async () => {
      const table = await this.table(name, where);
      assertCells(table.cells, expected, name);
      return table;
    });
  }
  texts(role, name, where) {
    return this.tool(({ find, text }, ...wanted) => Array.from(find(...wanted).children, text), role, name, where);
  }
  hash() {
    return this.evaluate(() => location.hash.slice(1));
  }
  async axe(what, part = ':root') {
    // Theme colours may be in transition.
    await this.until(() => document.getAnimations().every((each) => each.playState !== 'running'), 'all is still');
    assert.deepEqual(await axeFindings(this.driver, part), [], `axe-core, ${what}`);
  }
}

/** The last two dimensions of a tensor, from `offset` and from column `first` on. */
export const part = ({ data, dims }, offset = 0, { count = dims.at(-2), width = dims.at(-1), first = 0 } = {}) => ({
  count,
  width,
  at: (i, j) => data[offset + i * dims.at(-1) + first + j],
});
export const ofHead = (tensor, head) => part(tensor, head * tensor.dims[2] * tensor.dims[3]);
export const rowsOf = (rows) => ({ count: rows.length, width: rows[0].length, at: (i, j) => rows[i][j] });

/** Allows half a unit of the last decimal, and float32 differences between variants. */
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

/** Compares a printed number. `unit` is its unit, for example 0.01 for per cent. */
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

export async function saved(page, press) {
  await page.evaluate(() => {
    const blobs = new Map();
    URL.createObjectURL = (blob) => {
      const url = `blob:saved${blobs.size}`;
      blobs.set(url, blob);
      return url;
    };
    globalThis.savedFile = new Promise((done, fail) => {
      HTMLAnchorElement.prototype.click = function () {
        blobs
          .get(this.href)
          .arrayBuffer()
          .then((bytes) => done([this.download, Array.from(new Uint8Array(bytes))]), fail);
      };
    });
  });
  await press();
  const [name, bytes] = await page.evaluate(() => globalThis.savedFile);
  return { name, bytes: Uint8Array.from(bytes), text: Buffer.from(bytes).toString() };
}

export const openDetails = (page) => page.evaluate(() => document.querySelectorAll('details').forEach((each) => (each.open = true)));

/** Layout shifts since the page was opened, as the browser reports them: [value, ...moved elements]. */
export const shifts = (page) =>
  page.evaluate(async () => {
    const seen = [];
    const describe = ({ value, sources }) => [value, ...sources.map(({ node }) => node?.className ?? node?.nodeName)];
    const observer = new PerformanceObserver((list) => seen.push(...list.getEntries().map(describe)));
    observer.observe({ type: 'layout-shift', buffered: true });
    await new Promise((done) => setTimeout(done, 100));
    return seen;
  });

export const factsOf = async (page) =>
  Object.fromEntries(
    await page.tool(({ text }) => Array.from(document.querySelectorAll('#proof dt'), (term) => [text(term), text(term.nextElementSibling)])),
  );

/** The checks and the speed start when the visitor comes near, here from above. */
export const approachProof = (page) =>
  page.until(async () => {
    const proof = document.getElementById('proof');
    if (!proof) return false;
    const details = proof.querySelector('.proof-all');
    if (!details) return false;
    details.open = true;
    const before = scrollY;
    document.scrollingElement.scrollTo({ top: scrollY + proof.getBoundingClientRect().top - innerHeight - 700, behavior: 'instant' });
    const hasBegun = () => !!proof.querySelector('table') || proof.textContent.includes('Measuring');
    for (let i = 0; i < 20 && !hasBegun(); ++i) await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)));
    document.scrollingElement.scrollTo({ top: before, behavior: 'instant' });
    return hasBegun();
  }, 'the section Proof');
const hasSpeed = ({ find }) => find('table', 'Speed') && !find('button', 'Measure again').disabled;
export async function settled(page) {
  await approachProof(page);
  await page.until(hasSpeed, 'the speed');
}
export async function measureAgain(page) {
  await page.tool(
    ({ find }) =>
      new Promise((done) => {
        const button = find('button', 'Measure again');
        new MutationObserver(() => button.disabled && done(true)).observe(button, { attributes: true });
        button.click();
      }),
  );
  await settled(page);
}
