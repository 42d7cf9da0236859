import { strict as assert } from 'node:assert';
import { pagePolicy } from '../../tools/policies.mjs';
import { packageNumbers, sentence } from './data.mjs';
import { json, ofHead, openDetails, saved, settled } from './page.mjs';
import { pageTest } from './fixture.mjs';

const exported = (page, format) => saved(page, () => page.click('button', format, ['group', 'Save this map as']));

pageTest('the first attention map appears when the page opens', { isolated: 'all' }, async ({ page, t }) => {
  await page.open();
  const milliseconds = Math.round(await page.evaluate(() => attnProbe.ready));
  t.diagnostic(`after ${milliseconds} ms`);
  assert.ok(milliseconds > 0);
  assert.equal(await page.tool(({ find }) => getComputedStyle(find('grid')).visibility), 'visible');
});

// Only Chromium's driver reports requests of workers.
const requested = (page) => page.driver.requests().filter((url) => url.startsWith('http') && !url.endsWith('/probe.js'));

pageTest('a first visitor downloads at most 3 MB', { engines: 'chromium' }, async ({ page, t }) => {
  await page.openFresh();
  await page.says(/^Ready/, 'status');
  const sizes = await Promise.all(requested(page).map(async (url) => [new URL(url).pathname, (await (await fetch(url)).arrayBuffer()).byteLength]));
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  t.diagnostic(`${(total / 1e6).toFixed(2)} MB in ${sizes.length} requests`);
  for (const kind of ['.wasm', '.safetensors', '.css', '.js', '.json'])
    assert.ok(
      sizes.some(([path]) => path.endsWith(kind)),
      `${kind} was seen`,
    );
  assert.ok(total <= 3e6, json(sizes));
});

pageTest('the page downloads the numbers of PyTorch only near the section Proof', { engines: 'chromium' }, async ({ page }) => {
  const references = () => requested(page).filter((url) => url.includes('page_reference')).length;
  await page.open();
  await page.says(/^Ready/, 'status');
  assert.equal(references(), 0);
  await settled(page);
  assert.equal(references(), 1, json(requested(page)));
});

pageTest('the page sets the same CSP with Trusted Types as the demo server', async ({ page }) => {
  await page.open();
  const policy = await page.evaluate(() => document.querySelector('meta[http-equiv="Content-Security-Policy"]').content);
  // A meta tag cannot set frame-ancestors; the rest equals the policy of the `make demo` server.
  assert.equal(`${policy}; frame-ancestors 'none'`, pagePolicy());
});

pageTest('a shared link has a card with title, description, language and picture', { engines: 'chromium' }, async ({ page }) => {
  await page.open();
  const { lang, title, tags } = await page.evaluate(() => ({
    lang: document.documentElement.lang,
    title: document.title,
    tags: Object.fromEntries(
      Array.from(document.querySelectorAll('meta[name], meta[property]'), (each) => [each.name || each.getAttribute('property'), each.content]),
    ),
  }));
  assert.equal(lang, 'en');
  assert.deepEqual([tags['og:title'], tags['og:description'], tags['twitter:card']], [title, tags.description, 'summary_large_image']);
  assert.ok(tags.description.length > 70 && tags.description.length < 170, `${tags.description.length} characters`);
  assert.match(tags['og:image:alt'], /attention map/);
  const png = Buffer.from(await (await fetch(new URL(tags['og:image'], page.origin))).arrayBuffer());
  assert.equal(png.toString('latin1', 1, 4), 'PNG');
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)].map(String), [tags['og:image:width'], tags['og:image:height']]);
});

pageTest('outside links use https, and links within the site lead to existing files', { engines: 'chromium' }, async ({ page }) => {
  await page.open();
  await openDetails(page);
  const links = await page.evaluate(() => Array.from(document.querySelectorAll('main a, footer a'), (each) => [each.href, each.rel]));
  const [outside, own] = [links.filter(([href]) => !href.startsWith(page.origin)), links.filter(([href]) => href.startsWith(page.origin))];
  assert.ok(outside.length >= 9, `${outside.length} links`);
  for (const [href, rel] of outside) assert.ok(href.startsWith('https://') && rel.includes('noreferrer'), `${href} ${rel}`);
  for (const [href] of own.filter(([each]) => !each.includes('#'))) {
    const answer = await fetch(href);
    assert.ok(answer.ok && (await answer.arrayBuffer()).byteLength > 4000, `${href}: ${answer.status}`);
  }
  assert.ok(
    own.some(([href]) => href.endsWith('/NOTICES.txt')),
    'the notices',
  );
});

pageTest('emoji, markup, unknown words and long texts are shown as tokens, with a note', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  for (const [text, note] of [
    ['I loved it \u{1F60D}\u{1F525}!', /^The model does not know 1 of these 5 tokens and reads \[UNK\] instead\.$/],
    ['この映画は最高でした。', /^All tokens of this text are unknown to the model \(\[UNK\]\), so its answer means little\./],
    ['a good film '.repeat(100).trim(), /^The model reads only the first 128 tokens, its limit\./],
    ['', /^There is no text/],
    ['<b>Great</b><script>alert(1)</script> &amp; funny', undefined],
    ['Meh', undefined],
  ]) {
    await page.choose('textbox', 'Sentence', text);
    const tokens = data.tokens(text);
    await page.until(({ table }, rows) => table('Attention weights').rows.join(' ') === rows, `${text.slice(0, 20)}: its tokens`, tokens.join(' '));
    if (note) assert.match(await page.until(({ text }) => text('#first [role=note]'), 'the note'), note);
    else assert.equal(await page.evaluate(() => document.querySelectorAll('#first [role=note]').length), 0, text);
    assert.deepEqual(await page.tool((tools) => tools.all('alert').map((each) => tools.text(each))), [], 'nothing is wrong');
    assert.equal(await page.evaluate(() => document.querySelectorAll('#app script').length), 0);
  }
});

pageTest('the address holds the view, and a new page restores it', { isolated: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  const text = 'Funny, warm & moving: 100 %?';
  await page.fill('Sentence', text);
  await page.choose(['combobox', 'slider'], 'Layer', 1);
  await page.choose(['combobox', 'slider'], 'Head', 3);
  await page.click('checkbox', 'Causal mask');
  await page.click('button', 'View as table');
  await page.shows('button', 'Switch off head');
  await page.click('button', 'Switch off head');
  await page.click('radio', 'Multi-head');
  await page.fill('Heads', '1');
  await page.fill('Word', 'music');
  const others = ['Line one.', 'Line two.', 'Line three.'].join('\n');
  await page.choose('textbox', 'Texts, one per line', others);
  await page.until(() => /text=.*words\.word=music/.test(location.hash) && location.hash.includes('lines='), 'the address');
  const hash = await page.hash();
  await page.open(hash);
  const options = { isCausal: true, headMask: data.without(2) };
  const table = await page.numbers('Attention weights', ofHead(data.forward(text, options).attentions[0], 2));
  assert.deepEqual(table.rows, data.tokens(text));
  const values = await page.tool(({ all, find }) => [
    find('textbox', 'Sentence').value,
    find('combobox', 'Layer').value,
    find('combobox', 'Head').value,
    find('checkbox', 'Causal mask').checked,
    String(all('button', 'Switch head on').length === 1),
    find('radio', 'Multi-head').checked,
    find('spinbutton', 'Heads').value,
    find('textbox', 'Word').value,
    find('textbox', 'Texts, one per line').value,
  ]);
  assert.deepEqual(values, [text, '1', '3', true, 'true', true, '1', 'music', others]);
  await page.evaluate(() => (location.hash = 'text=Good.&table=1'));
  await page.numbers('Attention weights', ofHead(data.forward('Good.').attentions[1], 3));
  await page.tool(({ choose, find }) => {
    choose(find('textbox', 'Sentence'), 'Typed.');
    for (const end = performance.now() + 400; performance.now() < end;);
    location.hash = 'text=Over.&table=1';
  });
  await page.numbers('Attention weights', ofHead(data.forward('Over.').attentions[1], 3));
});

pageTest('the page ignores invalid values in its address', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open(
    'layer=99&head=-1&cell=9999.x&off=77.a&weights=nothing@9=x&change=,,&x=X@-1=2&threshold=9&special=all&step=40&table=1&lab.Q=%5B1&words.neighbours=1e9',
  );
  await page.until(({ table }) => table('Attention weights').rows.length === 12, 'the map');
  await page.numbers('Attention weights', ofHead(data.forward(sentence).attentions[1], 0));
});

pageTest('an overlong address raises an alert, and the page stays usable', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  const fresh = await data.another('testdata/models/masks', 'She drank a cup of [MASK].');
  for (const hash of [`table=1&weights=a${'@1='.repeat(130_000)}`, `table=1&x=${'X@1=2;'.repeat(65_000)}`]) {
    await page.open(hash);
    assert.match(
      await page.says(/./, 'alert', undefined, '#first'),
      /This link is too long to read\. Its address has \d+ characters .* at most 8000/,
    );
    await page.click('button', 'View as table');
    await page.numbers('Attention weights', ofHead(fresh.attentions[1], 3));
    await page.until(() => !location.hash.includes('@'), 'an address without the edits');
    await page.click('button', 'Close', '#first');
    await page.lacks('alert', undefined, '#first');
  }
  await page.evaluate(() => (location.hash = 'text=' + 'a'.repeat(100000)));
  await page.says(/./, 'alert', undefined, '#first');
  await page.evaluate(() => (location.hash = 'table=1&x=' + 'X@1=2;'.repeat(1300)));
  await page.until(({ all, text }) => all('alert').length === 0 && /1300 numbers of its input edited/.test(text('.changed')), 'the edits');
});

pageTest('Share warns that the link contains the text', async ({ page }) => {
  await page.open();
  await page.fill('Sentence', 'A secret.');
  const before = await page.evaluate(() => document.querySelector('.first-figure').getBoundingClientRect().top);
  await page.click('button', 'Share', '#first');
  const said = await page.until(({ text }) => /contains your text: anyone/.test(text('#first .share')) && text('#first .share'), 'the warning');
  assert.equal(await page.evaluate(() => document.querySelector('.first-figure').getBoundingClientRect().top), before, 'nothing moves');
  if (!/Copied/.test(said))
    assert.match(await page.tool(({ find }) => find('textbox', 'Link to this view').value), /#model=sentiment&text=A\+secret\.&cell=auto$/);
});

pageTest('exported files contain exactly the numbers shown', async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  await page.choose('combobox', 'Special tokens', 'hide');
  await page.click('button', 'View as table');
  const tokens = data.tokens(sentence);
  const n = tokens.length - 2;
  const all = ofHead(data.forward(sentence).attentions[1], 3);
  await page.numbers('Attention weights', { count: n, width: n, at: (i, j) => all.at(i + 1, j + 1) });
  const { rows, cells } = await page.table('Attention weights');
  await page.click('button', 'Export');
  const same = (numbers, what) =>
    numbers.forEach((row, i) => row.forEach((value, j) => assert.equal(value.toFixed(4), cells[i][j], `${what}: ${i},${j}`)));
  const csv = await exported(page, 'CSV');
  assert.equal(csv.name, 'attention-sentiment-classifier-layer-2-head-4.csv');
  const lines = csv.text
    .trim()
    .split('\r\n')
    .map((line) => line.match(/"(?:[^"]|"")*"|[^,]+/g));
  assert.deepEqual(lines[0].slice(1).map(JSON.parse), rows);
  same(
    lines.slice(1).map((line) => line.slice(1).map(Number)),
    'CSV',
  );
  const { labels, weights, layer, head, special_tokens: special } = JSON.parse((await exported(page, 'JSON')).text);
  assert.deepEqual([labels, layer, head, special], [rows, 2, 4, 'hide']);
  same(weights, 'JSON');
  const { bytes } = await exported(page, '.npy');
  assert.match(Buffer.from(bytes.subarray(10, 128)).toString(), new RegExp(`'<f4'.*False.*\\(${n}, ${n}\\)`));
  const floats = new Float32Array(bytes.buffer, bytes.length - 4 * n * n);
  same(
    Array.from({ length: n }, (_, i) => [...floats.subarray(i * n, (i + 1) * n)]),
    '.npy',
  );
  const svg = (await exported(page, 'SVG')).text;
  assert.equal(svg.match(/<rect /g).length, n * n + 1, 'a rectangle for each cell, and the paper');
  assert.ok(svg.includes(`<title>film to actors, ${cells[rows.indexOf('film')][rows.indexOf('actors')]}</title>`));
  const png = (await exported(page, 'PNG')).bytes;
  assert.deepEqual([...png.subarray(0, 8)], [0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]);
  assert.ok(new DataView(png.buffer).getUint32(16) > 300, 'pixels across');
});
