import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { serve } from '../../tools/serve.mjs';
import { engines, launch, missing, within } from '../../wasm-tests/browser/drivers.mjs';
import { axeFindings } from '../../wasm-tests/support/axe.mjs';
import { absentFile } from '../../wasm-tests/support/model_folders.mjs';
import { limit, skipUnlessCi } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { buildExample } from '../../wasm-tests/support/run.mjs';

/** Opens an example, uses it, and checks accessibility, the console, and that nothing asks another host. */
async function usePage(engine, name, use) {
  const server = await serve({ port: 0, root: at('examples/browser') });
  const driver = await launch(engine);
  const shown = () => document.querySelector('[role=status]').textContent;
  const status = async (pattern, what) => {
    for (let i = 0; i < 1200; ++i) {
      const text = await driver.evaluate(shown);
      if (pattern.test(text)) return text;
      await sleep(50);
    }
    throw new Error(`${what}: ${await driver.evaluate(shown)}`);
  };
  try {
    await within(driver.open(`${server.url}examples/browser/${name}`), 30000, 'the page did not open');
    await use(driver, status);
    assert.deepEqual(await axeFindings(driver), [], 'axe-core');
    const messages = (driver.messages() ?? []).filter((text) => !absentFile.test(text));
    assert.deepEqual(messages, [], 'messages in the console');
    const elsewhere = (driver.requests() ?? []).filter((url) => !url.startsWith(server.url) && !/^(data|about|blob):/.test(url));
    assert.deepEqual(elsewhere, [], 'requests to other hosts');
  } finally {
    await within(driver.close(), 20000, `${engine} did not close`).catch((error) => console.log(error.message));
    await server.close();
  }
}

async function useSentiment(driver, status) {
  await status(/^positive, \d\d\.\d % sure, in \d+\.\d ms$/, 'the first answer');
  await driver.fill('#text', 'The plot is dull, and the acting is dreadful.');
  await status(/^negative, \d\d\.\d % sure/, 'a text that was typed');
  assert.ok((await driver.evaluate(() => document.querySelector('meter').value)) < 0.3, 'the bar shows the probability of positive');
  await driver.evaluate(() => {
    const field = document.querySelector('#text');
    field.value = ' ';
    field.dispatchEvent(new Event('input'));
  });
  await status(/^Write something\.$/, 'no text');
}

async function useSearch(driver, status) {
  await status(/^Ready$/, 'the index');
  await driver.fill('#query', 'E1047');
  await status(/^3 hits$/, 'hits');
  const key = (name) =>
    driver.evaluate((key) => {
      const field = document.querySelector('#query');
      field.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      const active = document.getElementById(field.getAttribute('aria-activedescendant'));
      return { expanded: field.getAttribute('aria-expanded'), active: active?.textContent, selected: active?.ariaSelected };
    }, name);
  const { active, ...down } = await key('ArrowDown');
  assert.match(active, /^Error E1047/);
  assert.deepEqual(down, { expanded: 'true', selected: 'true' });
  assert.doesNotMatch((await key('ArrowUp')).active, /E1047/);
  assert.deepEqual(await axeFindings(driver), [], 'axe-core with open hits');
  assert.equal((await key('ArrowDown')).active, active);
  assert.equal((await key('Escape')).expanded, 'false');
  await driver.fill('#query', ' ');
  await status(/^0 hits$/, 'no hits');
  await driver.fill('#query', 'E1047 disc');
  await status(/^3 hits$/, 'hits');
  await key('ArrowDown');
  await key('Enter');
  await status(/^Opened: Error E1047/, 'a hit');
  assert.equal(await driver.evaluate(() => document.activeElement.id), 'e1047');
}

/** Runs in the page: what <attention-image> shows, and its pixels. */
async function otherImages() {
  const { defineAttentionImage, figureToPng, imageFigure } = await import('../../web/lib/dist/element.js');
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const found = {};
  defineAttentionImage('late-image');
  const parts = (element) => ['canvas', 'p', 'i', 'div'].map((name) => element.shadowRoot.querySelector(name));
  const shown = async (properties, isThere = (text) => text !== '') => {
    const element = Object.assign(document.createElement('late-image'), properties);
    document.querySelector('main').append(element);
    for (let i = 0; i < 100; ++i) {
      await frame();
      const [canvas, reading] = parts(element);
      if (canvas.hasAttribute('aria-label') || isThere(reading.textContent)) break;
    }
    return element;
  };
  const failure = async (properties) => {
    const element = await shown(properties);
    const [, reading, , box] = parts(element);
    const text = reading.textContent;
    const isHidden = box.hidden;
    element.remove();
    return `${text}${isHidden ? '' : ', but a picture'}`;
  };

  // A picture of 40 x 20 pixels, red but for a blue square; only the crop is shown.
  const image = new ImageData(40, 20);
  for (let i = 0; i < 800; ++i) image.data.set(i % 40 >= 15 && i % 40 < 25 && i >= 200 && i < 600 ? [0, 0, 255, 255] : [255, 0, 0, 255], 4 * i);
  const crop = { left: 15, top: 5, width: 10, height: 10 };
  const levels = [0, 0.5, 1, 0.25];
  const figure = imageFigure({ image, crop, grid: [2, 2], weights: levels, width: 232, opacity: 0 });
  const canvas = document.createElement('canvas');
  const bitmap = await createImageBitmap(await figureToPng(figure, 1));
  [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  const pixel = (row, column) => {
    const { left, top, width, height } = figure.patches;
    return [...context.getImageData(left + (column + 0.5) * width, top + (row + 0.5) * height, 1, 1).data];
  };
  // Grey of blue.
  found.crop = [pixel(0, 0), pixel(1, 1)].every(([r, g, b]) => r === g && g === b && Math.abs(r - 29) <= 1);
  found.outside = imageFigure({ image, crop: { left: -10, top: 0, width: 20, height: 20 }, grid: [1, 2], weights: [0, 1] }).parts.some(
    ({ kind, image: drawn }) => {
      if (kind !== 'picture') return false;
      const at = (x) => drawn.getContext('2d').getImageData(x * drawn.width, drawn.height / 2, 1, 1).data[0];
      return at(0.25) === 0 && Math.abs(at(0.9) - 76) <= 1;
    },
  );
  context.drawImage(
    await createImageBitmap(await figureToPng(imageFigure({ image, crop, grid: [2, 2], weights: levels, width: 232, opacity: 1 }), 1)),
    0,
    0,
  );
  found.colours = [pixel(0, 0), pixel(1, 0)].map(([r, g, b]) => [r, g, b].map((each) => Math.round(each / 4)).join());

  // Tokens: [CLS] and four patches; two heads.
  const heads = Float32Array.from({ length: 50 }, (_, i) => (i < 25 ? i / 100 : 0));
  const element = await shown({ image, grid: [2, 2], weights: { data: heads, dims: [1, 2, 5, 5] } });
  const [drawn, reading] = parts(element);
  const cells = [];
  element.addEventListener('attention-cell', ({ detail }) => cells.push(detail));
  const press = (key) => drawn.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  const read = async (key) => {
    press(key);
    await frame();
    await frame();
    return reading.textContent;
  };
  found.label = drawn.getAttribute('aria-label');
  found.mean = await read('ArrowDown');
  element.head = 0;
  await frame();
  await frame();
  found.head = await read('ArrowRight');
  found.query = await read('Enter');
  found.queryIndex = element.query;
  found.others = await read('ArrowDown');
  found.cls = await read('Escape');
  found.again = [await read(' '), await read(' ')];
  found.cells = [...cells];
  const asked = [];
  element.addEventListener('attention-query', ({ detail }) => asked.push(detail.query));
  const pointer = (type, x, y) => {
    const { left, top } = drawn.getBoundingClientRect();
    drawn.dispatchEvent(new MouseEvent(type, { clientX: left + x, clientY: top + y, bubbles: true }));
  };
  for (const type of ['pointerdown', 'click']) {
    pointer(type, 40, 40);
    asked.push(type);
  }
  const escapes = () => {
    const event = new KeyboardEvent('keydown', { key: 'Escape', cancelable: true });
    drawn.dispatchEvent(event);
    return event.defaultPrevented;
  };
  found.escapes = [escapes(), escapes()];
  found.asked = [...asked];
  // The last patch of a grid is a query of no smaller one, and JSX sets '' for undefined.
  press('End');
  press(' ');
  Object.assign(element, {
    grid: [1, 1],
    weights: [
      [0.1, 0.9],
      [0.3, 0.7],
    ],
    head: '',
  });
  await frame();
  await frame();
  press('Enter');
  found.smaller = [element.query, await read('Home')];
  found.svg = /<image [^>]*href="data:image\/png/.test(element.toSvg());
  found.png = (await element.toPng()).type;
  element.remove();

  // Half transparent white is white to a model.
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = 'rgba(255, 255, 255, 0.5)';
  context.fillRect(0, 0, canvas.width, canvas.height);
  const { parts: clear } = imageFigure({ image: canvas, grid: [1, 1], weights: [0.001] });
  found.alpha = clear
    .find(({ kind }) => kind === 'picture')
    .image.getContext('2d')
    .getImageData(5, 5, 1, 1)
    .data.join();
  found.legend = clear.filter(({ kind, text }) => kind === 'text' && /^0/.test(text)).map(({ text }) => text);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve));
  const decoded = await shown({ image: blob, grid: [1, 1], weights: [[1]] }, () => false);
  found.blob = parts(decoded)[0].hasAttribute('aria-label');
  decoded.remove();
  const loaded = document.createElement('late-image');
  for (const [name, value] of Object.entries({
    src: canvas.toDataURL(),
    crop: '{"left":0,"top":0,"width":9,"height":9}',
    grid: '[1, 2]',
    weights: '[[0.1, 0.2]]',
    caption: 'By attributes',
  }))
    loaded.setAttribute(name, value);
  document.querySelector('main').append(loaded);
  for (let i = 0; i < 100 && !parts(loaded)[0].hasAttribute('aria-label'); ++i) await frame();
  found.attributes = [parts(loaded)[0].getAttribute('aria-label'), loaded.crop.width];
  loaded.remove();

  // One <img> whose address changes, also before the first image is there.
  const own = new Image();
  const several = Object.assign(document.createElement('late-image'), { image: own, grid: [1, 1], weights: [[1]] });
  const events = [];
  for (const type of ['load', 'error']) several.addEventListener(type, () => events.push(type));
  document.querySelector('main').append(several);
  for (const address of [canvas.toDataURL(), 'data:image/png;base64,AAAA', canvas.toDataURL('image/jpeg')]) {
    own.src = address;
    const count = events.length;
    for (let i = 0; i < 100 && events.length === count; ++i) await frame();
  }
  // A browser may report an image that is complete already.
  found.events = events.filter((type, i) => type !== events[i - 1]);
  several.src = canvas.toDataURL();
  several.image = undefined;
  found.whenLoaded = (await several.toPng()).type;
  several.remove();

  const good = { image, grid: [2, 2], weights: [levels.slice(0, 2), levels.slice(2)] };
  found.failures = [
    await failure({ ...good, weights: [[1, 2, 3]] }),
    await failure({ ...good, weights: { data: heads, dims: [2, 1, 5, 5] } }),
    await failure({ ...good, weights: { data: heads, dims: [2, 5, 5] }, head: 2 }),
    await failure({ ...good, weights: { data: heads, dims: [2, 5, 5] }, query: 5 }),
    await failure({ ...good, weights: [[1], [2, 3]] }),
    await failure({ ...good, image: { data: new Uint8Array(5), width: 2, height: 2 } }),
    await failure({ ...good, image: new Blob(['no image']) }),
    await failure({ ...good, image: undefined, src: 'data:image/png;base64,AAAA' }),
  ];
  return found;
}

async function useDigits(driver, status) {
  await status(/^7, \d\d % sure, in \d+\.\d ms$/, 'the first digit');
  const stroke = (points) =>
    driver.evaluate((list) => {
      const paper = document.querySelector('#paper');
      const { left, top } = paper.getBoundingClientRect();
      list.forEach(([x, y], i) => {
        const type = i === 0 ? 'pointerdown' : i === list.length - 1 ? 'pointerup' : 'pointermove';
        paper.setPointerCapture = () => {};
        paper.dispatchEvent(new PointerEvent(type, { clientX: left + x, clientY: top + y, bubbles: true, pointerId: 1 }));
      });
    }, points);
  await driver.evaluate(() => document.querySelector('#clear').click());
  const circle = Array.from({ length: 40 }, (_, i) => [160 + 60 * Math.cos(i / 6), 160 + 90 * Math.sin(i / 6)]);
  await stroke(circle);
  await status(/^0, \d\d % sure/, 'a circle');
  await driver.evaluate(() => {
    const head = document.querySelector('#head');
    head.value = '2';
    head.dispatchEvent(new Event('change'));
  });
  const label = () => driver.evaluate(() => document.querySelector('attention-image').shadowRoot.querySelector('canvas').getAttribute('aria-label'));
  let named;
  for (let i = 0; i < 400 && !/head 3/.test(named); ++i) {
    await sleep(25);
    named = await label();
  }
  assert.match(named, /^Layer \d, head 3: \d rows and \d columns of patches\. Arrow keys read single weights, Enter/);
  const found = await driver.evaluate(otherImages);
  assert.deepEqual(found, {
    crop: true,
    outside: true,
    colours: ['17,0,21', '63,58,9'],
    label:
      'Attention over an image: 2 rows and 2 columns of patches. Arrow keys read single weights, Enter shows those of a patch, Escape those of [CLS].',
    mean: '[CLS] → row 1, column 1: 0.0050',
    head: '[CLS] → row 1, column 2: 0.0200',
    query: 'row 1, column 2 → row 1, column 2: 0.1200',
    queryIndex: 2,
    others: 'row 1, column 2 → row 2, column 2: 0.1400',
    cls: '[CLS] → row 2, column 2: 0.0400',
    again: ['row 2, column 2 → row 2, column 2: 0.2400', '[CLS] → row 2, column 2: 0.0400'],
    cells: [
      { row: 0, column: 0, weight: Math.fround(0.005) },
      { row: 0, column: 1, weight: Math.fround(0.02) },
      { row: 1, column: 1, weight: Math.fround(0.14) },
    ],
    svg: true,
    png: 'image/png',
    escapes: [true, false],
    asked: ['pointerdown', 1, 'click', 0],
    smaller: [0, '[CLS] → row 1, column 1: 0.9000'],
    alpha: '255,255,255,255',
    legend: ['0', '0.001'],
    events: ['load', 'error', 'load'],
    whenLoaded: 'image/png',
    blob: true,
    attributes: ['By attributes: 1 rows and 2 columns of patches. Arrow keys read single weights.', 9],
    failures: [
      'the weights have the shape (1, 3), expected a grid of (2, 2), or tokens × tokens with 4 patches at the end',
      'the weights have the shape (2, 1, 5, 5), expected those of one image',
      'the head is 2, expected 0 to 1',
      'the query is 5, expected 0 to 4',
      'the rows of the weights have different lengths',
      'the image has 5 bytes, expected 1, 3 or 4 for each of 2 × 2 pixels',
      'the image cannot be decoded',
      'the image data:image/png;base64,AAAA cannot be loaded',
    ],
  });
}

test('Vite builds examples/browser', limit, () => buildExample('example'));

for (const [name, about, use] of [
  ['sentiment.html', 'classifies what is typed', useSentiment],
  ['search.html', 'finds answers by keyboard', useSearch],
  ['digits.html', 'reads a digit and shows where the model looks', useDigits],
])
  for (const engine of engines)
    test(`examples/browser/${name} ${about}, in ${engine}`, limit, (t) => {
      const parts = missing(engine);
      if (parts.length > 0) return skipUnlessCi(t, `${parts.join(', ')} not found`);
      return usePage(engine, name, use);
    });
