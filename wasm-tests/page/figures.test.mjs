import { strict as assert } from 'node:assert';
import { packageNumbers, sentence } from './data.mjs';
import { assertNear, json, ofHead, saved } from './page.mjs';
import { pageTest } from './fixture.mjs';

const png = [0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10];
const widthOf = ({ bytes }) => new DataView(bytes.buffer).getUint32(16);
const textsOf = (svg) => [...svg.matchAll(/<text[^>]*>([^<]*)</g)].map(([, each]) => each);

function assertPlain(svg) {
  const colours = [...svg.matchAll(/(?:fill|stroke)="([^"]*)"/g)].map(([, each]) => each);
  assert.ok(colours.length > 10, `${colours.length} colours`);
  assert.deepEqual(
    colours.filter((each) => each !== 'none' && !/^#[0-9a-f]{6}$/.test(each)),
    [],
  );
  assert.doesNotMatch(svg, /\b(style|class)=/);
}

async function openEmbedded(page, hash) {
  await page.go(`embed.html?${encodeURIComponent(hash)}#${hash}`);
  await page.until(() => document.documentElement.dataset.ready === 'true', 'the map');
  await page.until(() => document.querySelector('attention-map').shadowRoot.querySelector('canvas').hasAttribute('aria-label'), 'it is drawn');
}
const captionOf = (page) =>
  page.evaluate(() => document.querySelector('attention-map').shadowRoot.querySelector('canvas').getAttribute('aria-label'));
const reading = (page) => page.until(() => document.querySelector('attention-map').shadowRoot.querySelector('p').textContent, 'a cell');

pageTest('saved figures contain the sentence, axis titles, numbers, colour scale and lines', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('special=hide&threshold=0.05');
  await page.click('button', 'Export');
  const save = (format) => saved(page, () => page.click('button', format, ['group', 'Save this map as']));
  const weights = ofHead(data.forward(sentence).attentions[1], 3);
  const [svg, lines] = [(await save('SVG')).text, (await save('Lines as SVG')).text];
  assertPlain(svg);
  assertPlain(lines);
  const texts = textsOf(svg);
  for (const each of ['sentiment classifier, layer 2, head 4', sentence, 'looks (query)', 'is looked at (key)', '0'])
    assert.ok(texts.includes(each), `${each} in ${texts}`);
  assert.ok(texts.some((each) => /Special tokens are hidden\. Weights below 0\.05 are not drawn\./.test(each)));
  // Tokens 1 and 9 of the text with [CLS]: "a" and "terrible".
  const [row, column] = [1, data.tokens(sentence).indexOf('terrible')];
  assert.ok(texts.includes(weights.at(row, column).toFixed(2).slice(1)), 'a number in its cell');
  for (const each of ['looks (query)', 'terrible', sentence]) assert.ok(textsOf(lines).includes(each), each);
  const shown = Array.from({ length: 10 }, (_, i) => Array.from({ length: 10 }, (_, j) => weights.at(i + 1, j + 1))).flat();
  assert.equal(lines.match(/ stroke="/g).length, shown.filter((each) => each >= 0.05).length, 'a line for each weight that is drawn');
  for (const format of ['PNG', 'Lines as PNG']) {
    const picture = await save(format);
    assert.deepEqual([...picture.bytes.subarray(0, 8)], png);
    assert.ok(widthOf(picture) > 600, `${format}: ${widthOf(picture)} pixels`);
  }
  const frame = await save('iframe');
  assert.match(
    frame.text,
    /^<iframe src="http[^"]*embed\.html#model=sentiment&amp;special=hide&amp;threshold=0\.05" title="sentiment classifier, layer 2, head 4"/,
  );
});

pageTest('lines and pictures fit the printed page, wide or narrow', { engines: 'chromium' }, async ({ page }) => {
  const { driver } = page;
  await page.open(
    `text=${encodeURIComponent('The best of the best: the best cast in the best film of the year, and not one dull moment in all of it.')}`,
  );
  await page.until(() => !!document.querySelector('#lab .result canvas'), 'the pictures of the lab');
  assert.ok(await driver.print(true));
  for (const width of [1000, 480]) {
    await driver.resize(width, 900);
    await page.until(
      () => (({ scrollHeight, clientHeight }) => scrollHeight <= clientHeight + 1)(document.querySelector('.lines-frame')),
      `all lines at ${width} pixels`,
    );
    const cut = await page.tool(({ visible }) =>
      Array.from(document.querySelectorAll('main svg, main canvas'))
        .filter((each) => visible(each) && each.getBoundingClientRect().right > innerWidth + 1)
        .map((each) => each.parentElement.className || each.parentElement.id),
    );
    assert.deepEqual(cut, [], `cut off at ${width} pixels`);
  }
  await driver.print(false);
});

pageTest('a saved picture looks as on the page and needs no style sheet', { engines: 'chromium' }, async ({ page }) => {
  await page.open();
  for (const dark of [false, true]) {
    if (!(await page.driver.dark(dark)) && dark) await page.click('button', 'Dark theme');
    const theme = dark ? 'dark' : 'light';
    await page.until((_, expected) => document.documentElement.dataset.theme === expected, 'the theme', theme);
    const words = await page.until(({ all, text }) => {
      const words = Array.from(document.querySelectorAll('.words-map text'), text);
      return words.length > 0 && all('button', 'Save Map of the words as SVG').length === 1 && words;
    }, 'the map');
    const { name, text: svg } = await saved(page, () => page.click('button', 'Save Map of the words as SVG'));
    assert.equal(name, 'attn-words.svg');
    assertPlain(svg);
    assert.deepEqual(textsOf(svg), ['Map of the words', ...words]);
    assert.ok(svg.includes('fill="#ffffff"') && svg.includes('#17181c'), 'colours of the light theme');
    const picture = await saved(page, () => page.click('button', 'Save Map of the words as PNG'));
    assert.deepEqual([...picture.bytes.subarray(0, 8)], png);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), theme, 'the page keeps its theme');
  }
  if (!(await page.driver.dark(false))) await page.click('button', 'Light theme');
});

pageTest('embed.html computes the head in its address and reads cells by pointer and keys', async ({ page }) => {
  const data = await packageNumbers();
  const text = 'Not a bad film at all.';
  await openEmbedded(page, `text=${encodeURIComponent(text)}&layer=2&head=3`);
  const weights = ofHead(data.forward(text).attentions[1], 2);
  const tokens = data.tokens(text);
  assert.match(await captionOf(page), /^sentiment classifier, layer 2, head 3: 9 rows/);
  await page.evaluate(() => document.querySelector('attention-map').shadowRoot.querySelector('canvas').focus());
  for (const key of ['ArrowRight', 'ArrowDown', 'ArrowDown', 'ArrowRight']) await page.driver.press(key);
  const said = await reading(page);
  const [, from, to, weight] = /^(.+) → (.+): ([\d.]+)$/.exec(said) ?? assert.fail(said);
  const [row, column] = [2, 1];
  assert.deepEqual([from, to], [tokens[row], tokens[column]]);
  assertNear(weight, weights.at(row, column), said);
  await page.driver.press('End');
  assert.ok((await reading(page)).startsWith(`${tokens[row]} → [SEP]: `));
  await page.evaluate(() => {
    const map = document.querySelector('attention-map').shadowRoot;
    const { left, top } = map.querySelector('canvas').getBoundingClientRect();
    const { style } = map.querySelector('i');
    const at = { clientX: left + parseFloat(style.left) - parseFloat(style.width), clientY: top + parseFloat(style.top) + 5 };
    map.querySelector('canvas').dispatchEvent(new PointerEvent('pointermove', { ...at, bubbles: true }));
  });
  assert.ok((await reading(page)).startsWith(`${tokens[row]} → ${tokens.at(-2)}: `), 'the cell under the pointer');
  assert.match(await page.evaluate(() => document.querySelector('a').href), /index\.html#model=sentiment&text=Not\+a\+bad\+film\+at\+all\.&head=3$/);
  await page.axe('embed.html');
  await page.go('embed.html?other#model=owner%2Fname');
  await page.until(({ text }) => text('button') === 'Load owner/name from huggingface.co', 'the offer');
  await page.open();
});

pageTest('embed.html draws the numbers in its address, and explains what is wrong with them', async ({ page }) => {
  const hash = (of) =>
    new URLSearchParams(Object.entries(of).map(([name, value]) => [name, typeof value === 'string' ? value : json(value)])).toString();
  await openEmbedded(
    page,
    hash({
      caption: 'Mine',
      tokens: ['the', 'cat'],
      keys: ['a', 'b', 'c'],
      values: [
        [0.9, 0.05, 0.05],
        [0.2, 0.7, 0.1],
      ],
    }),
  );
  const caption = 'Mine: 2 rows that look, 3 columns that are looked at. Arrow keys read single weights.';
  await page.eventually(async () => assert.equal(await captionOf(page), caption));
  const svg = await page.evaluate(() => document.querySelector('attention-map').toSvg());
  assertPlain(svg);
  assert.deepEqual(textsOf(svg).slice(0, 6), ['Mine', 'is looked at (key)', 'looks (query)', '.90', '.05', '.05']);
  assert.ok(!(await page.evaluate(() => attnProbe.requests)).some((each) => /\.(wasm|safetensors)\b/.test(each)), 'nothing is loaded for it');
  for (const [wrong, words] of [
    [{ tokens: ['a'], values: '[[1' }, /“values” in the address is not valid JSON/],
    [{ tokens: 'a', values: [[1]] }, /“tokens” in the address/],
    [{ tokens: ['a'], values: [['1']] }, /rows of numbers/],
  ]) {
    await page.go(`embed.html?${encodeURIComponent(json(wrong))}#${hash(wrong)}`);
    assert.match(await page.says(/./, 'alert'), words);
  }
  await page.go(`embed.html?sizes#${hash({ tokens: ['a', 'b'], values: [[1]] })}`);
  assert.match(await reading(page), /1 rows of 1, expected 2 of 2/);
  await page.open();
});
