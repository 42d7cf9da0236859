import { strict as assert } from 'node:assert';
import { packageNumbers, sentence } from './data.mjs';
import { ofHead } from './page.mjs';
import { pageTest } from './fixture.mjs';

const [layer, head] = [1, 3];
const long = Array.from({ length: 60 }, (_, i) => `${['good', 'dull', 'film', 'and', 'never'][i % 5]} ${['the', 'cast', 'is', 'warm'][i % 4]}`).join(
  ' ',
);

const labels = (page, side) => page.tool(({ text }, side) => Array.from(document.querySelectorAll(`.map-${side} > span`), text), side);
const rowsShown = async (page) => (await labels(page, 'rows')).length;
const open = async (page, hash = '') => {
  await page.open(`text=${encodeURIComponent(long)}${hash}`);
  await page.until(() => document.querySelectorAll('.map-rows > span').length > 0, 'the map');
};
const near = 'part=20.40.12';

pageTest('buttons, keys and wheel zoom a long map, and its labels follow', async ({ page }) => {
  const data = await packageNumbers();
  await open(page);
  const tokens = data.tokens(long);
  const disabled = (name) => page.tool(({ find }, name) => find('button', name).disabled, name);
  assert.deepEqual([await disabled('Zoom in'), await disabled('Zoom out')], [false, true]);
  for (let i = 0; i < 6; ++i) await page.click('button', 'Zoom in');
  await page.until(() => !!document.querySelector('.minimap'), 'where the part is');
  // The address is updated a moment later.
  const count = await page.eventually(async () => {
    const part = await page.evaluate(() => /part=([\d.]+)/.exec(location.hash)?.[1] ?? '');
    const [row, column, rows] = part.split('.').map(Number);
    assert.ok(row <= 4 && row + rows > 4 && column <= 8 && column + rows > 8, `the cell in focus is in ${part}`);
    assert.deepEqual(await labels(page, 'rows'), tokens.slice(row, row + rows));
    assert.deepEqual(await labels(page, 'columns'), tokens.slice(column, column + rows));
    return rows;
  });
  await page.tool(({ find }) => find('grid').focus());
  const counts = async (expected, what) =>
    page.eventually(async () => assert.ok(expected(await rowsShown(page)), `${what}: ${await rowsShown(page)}`));
  await page.driver.press('-');
  await counts((rows) => rows > count, 'away');
  await page.driver.press('0');
  await page.until(() => !document.querySelector('.minimap'), 'all of it');
  for (let i = 0; i < 6; ++i) await page.driver.press('+');
  await page.until(() => !!document.querySelector('.minimap'), 'a part again');
  await page.driver.press('End');
  await page.until(({ text }) => text([...document.querySelectorAll('.map-columns > span')].at(-1)) === '[SEP]', 'the last column comes into view');
  const wheel = (properties) =>
    page.tool(({ find }, properties) => {
      const { left, top, width, height } = find('grid').getBoundingClientRect();
      return find('grid').dispatchEvent(
        new WheelEvent('wheel', { bubbles: true, cancelable: true, clientX: left + width / 2, clientY: top + height / 2, ...properties }),
      );
    }, properties);
  const before = await labels(page, 'rows');
  assert.equal(await wheel({ deltaY: 200 }), false, 'the page stays where it is');
  await page.eventually(async () => assert.notDeepEqual(await labels(page, 'rows'), before));
  const rows = await rowsShown(page);
  assert.equal(await wheel({ deltaY: 100, ctrlKey: true }), false);
  await counts((now) => now > rows, 'the wheel');
  await page.driver.press('0');
  await page.until(() => !document.querySelector('.minimap'), 'all of it');
  assert.equal(await wheel({ deltaY: 200 }), true, 'at the end of the map the page scrolls');
});

pageTest('a zoomed part is in the address, and is read, dragged and moved by the overview', async ({ page }) => {
  const data = await packageNumbers();
  await open(page, `&${near}`);
  const tokens = data.tokens(long);
  const weights = ofHead(data.forward(long).attentions[layer], head);
  assert.deepEqual(await labels(page, 'rows'), tokens.slice(20, 32));
  assert.deepEqual(await labels(page, 'columns'), tokens.slice(40, 52));
  const point = (type, x, y, more = {}) =>
    page.tool(
      ({ find }, type, x, y, more) => {
        const { left, top, width, height } = find('grid').getBoundingClientRect();
        const at = { bubbles: true, pointerType: 'mouse', clientX: left + width * x, clientY: top + height * y, ...more };
        return find('grid').dispatchEvent(new PointerEvent(type, at));
      },
      type,
      x,
      y,
      more,
    );
  await point('pointermove', 3.5 / 12, 5.5 / 12);
  await page.until(
    ({ text }, expected) => text('.reading-cell').includes(expected),
    'the cell',
    `${tokens[25]} →to ${tokens[43]} ${weights.at(25, 43).toFixed(4)}`,
  );
  await point('pointerdown', 0.5, 0.5, { buttons: 1 });
  await point('pointermove', 0.25, 0.5, { buttons: 1 });
  await point('click', 0.25, 0.5);
  await page.eventually(async () => assert.deepEqual(await labels(page, 'columns'), tokens.slice(43, 55)));
  assert.equal(await page.count('button', 'Unlock cell'), 0, 'a drag is no click');
  await page.evaluate(() => {
    const map = document.querySelector('.minimap');
    const { left, top, width } = map.getBoundingClientRect();
    return map.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true, buttons: 1, clientX: left + width - 1, clientY: top + 1 }));
  });
  await page.eventually(async () => assert.deepEqual(await labels(page, 'rows'), tokens.slice(0, 12)));
  assert.equal((await labels(page, 'columns')).at(-1), '[SEP]');
});

pageTest('two fingers zoom and move the map, one finger scrolls the page', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await open(page);
  const whole = data.tokens(long).length;
  /** Positions of fingers relative to the map; returns whether the page may scroll or zoom. */
  const touch = (type, ...fingers) =>
    page.tool(
      ({ find }, type, fingers) => {
        const target = find('grid');
        const { left, top, width, height } = target.getBoundingClientRect();
        const touches = fingers.map(([x, y], identifier) => new Touch({ identifier, target, clientX: left + width * x, clientY: top + height * y }));
        return target.dispatchEvent(new TouchEvent(type, { bubbles: true, cancelable: true, touches }));
      },
      type,
      fingers,
    );
  await touch('touchstart', [0.5, 0.5]);
  assert.equal(await touch('touchmove', [0.5, 0.3]), true, 'one finger scrolls the page');
  await touch('touchstart', [0.45, 0.45], [0.55, 0.55]);
  assert.equal(await touch('touchmove', [0.3, 0.3], [0.7, 0.7]), false, 'two are the map’s');
  await page.until(() => !!document.querySelector('.minimap'), 'a part');
  const part = async () => [await labels(page, 'rows'), await labels(page, 'columns')];
  const [rows, columns] = await part();
  // Four times as far apart: a quarter of the rows, the limit of cell size.
  assert.ok(Math.abs(rows.length - whole / 4) <= 1, `${rows.length} of ${whole} rows`);
  await touch('touchstart', [0.3, 0.3], [0.7, 0.7]);
  await touch('touchmove', [0.1, 0.3], [0.5, 0.7]);
  await page.eventually(async () => assert.notDeepEqual((await part())[1], columns));
  assert.deepEqual((await part())[0], rows, 'across alone');
  const inAddress = () => page.until(() => /part=([\d.]+)/.exec(location.hash)?.[1].split('.').map(Number), 'the part in the address');
  const before = await page.eventually(async () => {
    const now = await inAddress();
    assert.equal(now[2], rows.length);
    return now;
  });
  await touch('touchstart', [0.3, 0.3], [0.7, 0.7]);
  await touch('touchmove', [0.1, 0.2], [0.9, 1]);
  await page.eventually(async () => {
    const now = await inAddress();
    assert.ok(Math.abs(now[2] - before[2] / 2) <= 1, `${now[2]} of ${before[2]} rows`);
    assert.ok(Math.abs(before[0] + 0.5 * before[2] - (now[0] + 0.6 * now[2])) <= 1, `${before} and ${now}`);
  });
  await touch('touchstart', [0.1, 0.1], [0.9, 0.9]);
  for (const near of [0.3, 0.4, 0.46]) await touch('touchmove', [near, near], [1 - near, 1 - near]);
  await page.until(() => !document.querySelector('.minimap'), 'all of it');
});

pageTest('the colour scale becomes logarithmic for sparse heads, and the page says so', async ({ page }) => {
  await open(page);
  const legend = () => page.tool(({ text }) => text('.legend'));
  const note = () => page.tool(({ text }) => text('#colours-note'));
  const found = [];
  for (let l = 1; l <= 2; ++l)
    for (let h = 1; h <= 4; ++h) {
      await page.choose('combobox', 'Layer', String(l));
      await page.choose('combobox', 'Head', String(h));
      const [said, why] = [await legend(), await note()];
      assert.equal(/ log$/.test(said), /^Now: logarithmic/.test(why), `${said}: ${why}`);
      found.push(/ log$/.test(said));
    }
  await page.choose('combobox', 'Colours', 'log');
  await page.until(({ text }) => / log$/.test(text('.legend')) && /colours=log/.test(location.hash), 'logarithmic');
  assert.match(await note(), /^Logarithmic/);
  await page.choose('combobox', 'Colours', 'head');
  await page.until(({ text }) => /^0 \d\.\d\d$/.test(text('.legend')), 'linear');
});

pageTest('the strongest links are listed, and a click selects their cell', async ({ page }) => {
  const data = await packageNumbers();
  await open(page, '&part=60.60.12');
  const tokens = data.tokens(long);
  const weights = ofHead(data.forward(long).attentions[layer], head);
  const all = tokens.flatMap((_, i) => tokens.map((_, j) => [weights.at(i, j), i, j])).sort((a, b) => b[0] - a[0]);
  const list = await page.until(({ find, text }) => Array.from(find('list', 'The strongest links').children, text), 'the links');
  assert.equal(list.length, 12);
  list.forEach((each, i) => assert.ok(each.endsWith(all[i][0].toFixed(4)), `${each}: ${all[i]}`));
  const [, row, column] = all[0];
  await page.tool(({ find }) => find('list', 'The strongest links').querySelector('button').click());
  await page.until(({ find, text }, token) => find('button', 'Unlock cell') && text('.map-rows .active') === token, 'it is in view', tokens[row]);
  assert.equal(await page.tool(({ text }) => text('.map-columns .active')), tokens[column]);
});

pageTest('the overlay shows all heads of a layer in their colours', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('overlay=0.1.2.3');
  const { attentions } = data.forward(sentence);
  const n = data.tokens(sentence).length;
  const chips = await page.until(
    ({ all, nameOf, text }) =>
      all('button', undefined, ['group', 'Heads in the overlay']).map((each) => [
        nameOf(each),
        text(each),
        getComputedStyle(each.querySelector('.overlay-colour')).backgroundColor,
      ]),
    'the heads',
  );
  assert.equal(new Set(chips.map(([, , colour]) => colour)).size, data.heads);
  chips.forEach(([name, written], h) => {
    assert.equal(name, `Head ${h + 1} in the overlay`);
    const weight = ofHead(attentions[layer], h).at(4, 8);
    assert.ok(written.endsWith(weight.toFixed(2).replace('0.', '.')), `${written}: ${weight}`);
  });
  const colours = () =>
    page.tool(({ find }, tokens) => {
      const canvas = find('grid').parentElement.querySelector('canvas');
      const { width, data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const pixel = (cell) => Math.floor(((cell + 0.4) * width) / tokens);
      return Array.from({ length: tokens ** 2 }, (_, at) => {
        const first = 4 * (pixel(Math.floor(at / tokens)) * width + pixel(at % tokens));
        return Array.from(data.subarray(first, first + 4));
      });
    }, n);
  const painted = await colours();
  const wanted = chips.map(([, , colour]) => colour.match(/\d+/g).map(Number));
  let seen = 0;
  for (let i = 0; i < n * n; ++i) {
    const own = wanted.map((_, h) => ofHead(attentions[layer], h).at(Math.floor(i / n), i % n));
    const best = own.indexOf(Math.max(...own));
    const [red, green, blue, alpha] = painted[i];
    // In nearly transparent pixels the colour bytes are rounded.
    if (alpha < 60) continue;
    ++seen;
    const distance = ([r, g, b]) => Math.abs(r - red) + Math.abs(g - green) + Math.abs(b - blue);
    assert.ok(
      wanted.every((colour, h) => h === best || distance(colour) > distance(wanted[best])),
      `cell ${i} has ${painted[i]}, head ${best + 1} the most`,
    );
  }
  assert.ok(seen > 10, `${seen} cells`);
  await page.click('button', 'Head 4 in the overlay');
  await page.until(() => /overlay=0\.1\.2(&|$)/.test(location.hash), 'one less');
  await page.click('checkbox', 'Overlay all heads of the layer');
  await page.until(({ all }) => !/overlay/.test(location.hash) && !all('group', 'Heads in the overlay').length, 'a single head again');
});

pageTest("the products of query and key per dimension add up to the package's score", async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  const { q, k } = data.trace(sentence, layer);
  const n = data.tokens(sentence).length;
  const width = q.dims[3];
  const row = ({ data: values }, i) => values.subarray((head * n + i) * width, (head * n + i + 1) * width);
  const [query, key] = [row(q, 4), row(k, 8)];
  const products = Array.from(query, (value, d) => value * key[d]);
  const sum = products.reduce((a, b) => a + b, 0);
  const said = await page.until(({ text }) => text('.dimensions p'), 'the sentence');
  const [, sign, written, dimension] =
    /add up to ([+−])(\d+\.\d\d)\. The largest contributions come from dimension (\d+) /.exec(said) ?? assert.fail(said);
  assert.ok(Math.abs(Number(`${sign === '−' ? '-' : ''}${written}`) - sum) < 0.011, `${said}: ${sum}`);
  const most = Math.max(...products.map(Math.abs));
  assert.ok(Math.abs(Math.abs(products[Number(dimension) - 1]) - most) < 1e-3, said);
  assert.equal(await page.evaluate(() => document.querySelectorAll('.dimensions rect').length), 3 * width);
  const colours = await page.evaluate(() => Array.from(document.querySelectorAll('.dimensions .strip'), ({ className }) => className.baseVal));
  assert.deepEqual([...new Set(colours)], ['strip of-signed'], 'signs do not have the colours of queries and keys');
});
