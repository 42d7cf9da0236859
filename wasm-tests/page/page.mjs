/** One page in one browser, as its reader meets it: by accessible names, keyboard and numbers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { isLeaving, within } from '../browser/drivers.mjs';
import { axeFindings } from '../support/axe.mjs';
import { makeTools } from './tools.mjs';

export const json = JSON.stringify;

/** How long a test waits for something on the page, in ms: it ends what hangs, not what a slow or busy machine has not done yet. */
const patience = 1000 * Number(process.env.ATTN_PATIENCE ?? 120);

/** With another query an address is another document, whatever its hash. */
let opened = 0;

/**
 * Places are selectors, or [role, name, place]. Functions run in the page: they see their arguments and the page's globals, nothing of the file in which they
 * are written.
 */
export class Page {
  constructor(driver, origin) {
    this.driver = driver;
    this.origin = origin;
  }
  /** Loads the page anew; ready when the first map is drawn. */
  async open(hash = '', folder = '') {
    await this.visit(hash, folder);
    await this.until(() => document.documentElement.dataset.ready === 'true', 'the first map');
  }
  /** Loads the page anew, or what stands for it in a folder; it may not come as far as a map. */
  async visit(hash = '', folder = '') {
    await this.go(`${folder}?${++opened}#${hash}`);
    // A driver may be back while the page before is still there.
    await this.until((_, query) => location.search === query && !!document.querySelector('#app > *'), 'the page', `?${opened}`);
  }
  /** Opens any address below that of the page. */
  go(path) {
    return within(this.driver.open(`${this.origin}${path}`), patience, `${path.slice(0, 80)} did not open`);
  }
  /** Calls run(...args) in the page. */
  evaluate(run, ...args) {
    return this.driver.evaluate(run, ...args);
  }
  /** Calls run(tools, ...args) in the page, with the helpers of tools.mjs. */
  tool(run, ...args) {
    return this.evaluate((make, own, ...given) => own((globalThis.attnTools ??= make()), ...given), makeTools, run, ...args);
  }
  /** What run(tools, ...args) returns as soon as that is true; elements that are not there yet are waited for. */
  async until(run, what, ...args) {
    const end = Date.now() + patience;
    for (;;) {
      const isNotThere = (error) => /no [\w,]+ named/.test(error.message) || isLeaving(error);
      const asked = this.tool(run, ...args).catch((error) => (isNotThere(error) ? false : Promise.reject(error)));
      const value = await within(asked, patience, `${what}: the page did not answer`);
      if (value) return value;
      if (Date.now() > end) throw new Error(`${what}: not within ${patience / 1000} s`);
      await sleep(30);
    }
  }
  /** Waits until there is such an element. */
  shows(role, name, where) {
    return this.until(({ all }, ...wanted) => all(...wanted).length > 0, `${name ?? role} to be there`, role, name, where);
  }
  /** Waits until there is no such element. */
  lacks(role, name, where) {
    return this.until(({ all }, ...wanted) => all(...wanted).length === 0, `${name ?? role} to be gone`, role, name, where);
  }
  /** How many such elements there are. */
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
  /** Types over what is in a field. */
  async fill(name, value, where) {
    const field = ({ find, mark }, ...wanted) => mark(find(['textbox', 'spinbutton'], ...wanted));
    await this.driver.fill(await this.until(field, `${name} to be there`, name, where), value);
  }
  /** The text of an element, with single spaces. */
  text(role, name, where) {
    return this.tool(({ find, text }, ...wanted) => text(find(...wanted)), role, name, where);
  }
  /** The text of an element as soon as there is such an element and its text matches. */
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
  /** What the check gives as soon as it passes; when it does not, what was wrong the last time. */
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
  /** The table as soon as its numbers are those that are expected, as assertCells has it. */
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
  /** The part of the address behind #. */
  hash() {
    return this.evaluate(() => location.hash.slice(1));
  }
  /** `part`: a selector. */
  async axe(what, part = ':root') {
    // Colours may be on their way from one theme to another.
    await this.until(() => document.getAnimations().every((each) => each.playState !== 'running'), 'all is still');
    assert.deepEqual(await axeFindings(this.driver, part), [], `axe-core, ${what}`);
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

/** Layout shifts from the start of the page on, as the browser counts them: [value, ...what moved]. */
export const shifts = (page) =>
  page.evaluate(async () => {
    const seen = [];
    const describe = ({ value, sources }) => [value, ...sources.map(({ node }) => node?.className ?? node?.nodeName)];
    const observer = new PerformanceObserver((list) => seen.push(...list.getEntries().map(describe)));
    observer.observe({ type: 'layout-shift', buffered: true });
    await new Promise((done) => setTimeout(done, 100));
    return seen;
  });

/** The facts about the module that the page lists, by name. */
export const factsOf = async (page) =>
  Object.fromEntries(
    await page.tool(({ text }) => Array.from(document.querySelectorAll('#proof dt'), (term) => [text(term), text(term.nextElementSibling)])),
  );

/** All that is computed when the page has been opened: the speed comes last. */
export const settled = (page) => page.until(({ find }) => find('table', 'Speed') && !find('button', 'Measure again').disabled, 'the speed');
/** Presses the button, sees it at work, and waits for the end. */
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
