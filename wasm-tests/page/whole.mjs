/** The page as a whole: how fast it comes, its address, its files, the keyboard, looks and memory. */
import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { pagePolicy } from '../../tools/policies.mjs';
import { sentence } from './data.mjs';
import { loadFrom, shows } from './models.mjs';
import { json, measureAgain, ofHead, saved, section, settled } from './page.mjs';

const bar = section('sentence');
/** What the export of the map saves in this format. */
const exported = (page, format) => saved(page, () => page.click('button', format, "find('group', 'Save what is shown as')"));

/** Presses Tab from the top of the page on until the focus is what the expression says; the sections on the way. */
async function tabTo(page, expression, most = 400) {
  const passed = [];
  for (let i = 0; i < most; ++i) {
    await page.driver.press('Tab');
    const [found, where] = await page.tool(
      `[!!(${expression}), document.activeElement.closest('section')?.id ?? document.activeElement.closest('header, main, footer, body').tagName]`,
    );
    if (where !== passed.at(-1)) passed.push(where);
    if (found) return passed;
  }
  throw new Error(`${expression}: not reached by ${most} times Tab; passed ${passed.join(', ')}`);
}

/** All that opens is open, so that it is looked at too. */
async function openAll(page) {
  await page.open('table=1&step=2&off=1&causal=1&change=2,0.5,scaled_dot,0,0&x=X@3%3D1.5&pair=No, but the acting was brilliant.&locked=1');
  for (const button of ['Another model', 'Export', 'View similarities as table', 'View map as table']) {
    await page.until(`!!find('button', ${json(button)})`, button, 30000);
    await page.click('button', button);
  }
  await page.tool("(document.querySelectorAll('details').forEach((each) => (each.open = true)), true)");
  await page.fill('Word', 'unputdownable', section('words'));
  await page.until(`!!find('alert', undefined, ${section('words')})`, 'an alert');
  await settled(page);
}

const goToStep = async (page, step) => {
  await page.tool(`(${section('steps')}.querySelectorAll('.step-list button')[${step - 1}].click(), true)`);
  await page.until(
    `text(${section('steps')}.querySelector('h3')).startsWith('Step ${step} ') && ${section('steps')}.querySelectorAll('.step-body table, .step-body p').length > 0`,
    `step ${step}`,
  );
};

/** The page as it is, and then each step: in one browser, since what they are made of is the same in all. */
async function axeAtEachStep(page, engine, what) {
  await page.axe(what);
  for (let step = 1; step <= 13 && engine === 'chromium'; ++step) {
    await goToStep(page, step);
    await page.axe(`${what}, step ${step}`, '#steps');
  }
}

export const tests = {
  async 'the first map is on the screen soon after the page opens'({ page, note, engine }) {
    await page.open();
    const milliseconds = Math.round(await page.driver.evaluate('attnProbe.ready'));
    note(`after ${milliseconds} ms`);
    // WebKitGTK draws without a graphics card here, beside compilers.
    assert.ok(milliseconds > 0 && milliseconds < (engine === 'webkit' ? 15000 : 5000), `${milliseconds} ms`);
    assert.equal(await page.tool("getComputedStyle(find('grid')).visibility"), 'visible');
  },
  async 'all that the page fetches is at most 3.3 MB'({ page, note, engine }) {
    await page.open();
    await settled(page);
    // Only this driver tells of the worker's requests.
    if (engine !== 'chromium') return note('not counted here');
    const sizes = await Promise.all(
      page.driver
        .requests()
        .filter((url) => url.startsWith('http') && !url.endsWith('/probe.js'))
        .map(async (url) => [new URL(url).pathname, (await (await fetch(url)).arrayBuffer()).byteLength]),
    );
    const total = sizes.reduce((sum, [, size]) => sum + size, 0);
    note(`${(total / 1e6).toFixed(2)} MB in ${sizes.length} requests`);
    for (const kind of ['.wasm', '.safetensors', '.css', '.js', '.json'])
      assert.ok(
        sizes.some(([path]) => path.endsWith(kind)),
        `${kind} was seen`,
      );
    assert.ok(total <= 3.3e6, json(sizes));
  },
  async 'the page has a CSP of its own, with Trusted Types'({ page }) {
    await page.open();
    const policy = await page.driver.evaluate('document.querySelector(\'meta[http-equiv="Content-Security-Policy"]\').content');
    // A meta tag cannot say who may frame the page; all else is as the server of make demo says it.
    assert.equal(`${policy}; frame-ancestors 'none'`, pagePolicy());
  },
  async 'a link to the page has a card: title, description, language and a picture of its size'({ page }) {
    await page.open();
    const { lang, title, tags } = await page.driver.evaluate(`({
      lang: document.documentElement.lang,
      title: document.title,
      tags: Object.fromEntries(Array.from(document.querySelectorAll('meta[name], meta[property]'), (each) => [each.name || each.getAttribute('property'), each.content])),
    })`);
    assert.equal(lang, 'en');
    assert.deepEqual([tags['og:title'], tags['og:description'], tags['twitter:card']], [title, tags.description, 'summary_large_image']);
    assert.ok(tags.description.length > 70 && tags.description.length < 170, `${tags.description.length} characters`);
    assert.match(tags['og:image:alt'], /attention map/);
    const png = Buffer.from(await (await fetch(new URL(tags['og:image'], page.origin))).arrayBuffer());
    assert.equal(png.toString('latin1', 1, 4), 'PNG');
    assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)].map(String), [tags['og:image:width'], tags['og:image:height']]);
  },
  async 'links lead to papers by https, and to files that are there'({ page }) {
    await page.open();
    await page.tool("(document.querySelectorAll('details').forEach((each) => (each.open = true)), true)");
    const links = await page.driver.evaluate("Array.from(document.querySelectorAll('main a, footer a'), (each) => [each.href, each.rel])");
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
  },
  async 'what strangers type is shown as the model reads it, and what it does not know is said'({ page, data }) {
    await page.open('table=1');
    const said = `text(${bar}.querySelector('[role=note]'))`;
    for (const [text, note] of [
      ['I loved it \u{1F60D}\u{1F525}!', /^\[UNK\] stands for what the model does not know: 1 of these 5 tokens\.$/],
      ['この映画は最高でした。', /^The model knows none of this text: it reads \[UNK\] and nothing else/],
      ['a good film '.repeat(100).trim(), /^Only the first 128 tokens are read/],
      ['', /^There is no text/],
      ['<b>Great</b><script>alert(1)</script> &amp; funny', undefined],
      ['Meh', undefined],
    ]) {
      await page.choose('textbox', 'Sentence', text);
      const tokens = data.tokens(text);
      await page.until(`table('Attention weights').rows.join(' ') === ${json(tokens.join(' '))}`, `${text.slice(0, 20)}: its tokens`);
      if (note) assert.match(await page.until(said, 'the note'), note);
      else assert.equal(await page.tool(`${bar}.querySelectorAll('[role=note]').length`), 0, text);
      assert.deepEqual(await page.tool("all('alert').map(text)"), [], 'nothing is wrong');
      assert.equal(await page.tool("document.querySelectorAll('#app script').length"), 0);
    }
  },
  async 'the view is in the address, and comes back from it in a new page'({ page, data }) {
    await page.open();
    const text = 'Funny, warm & moving: 100 %?';
    await page.fill('Sentence', text);
    await page.choose(['combobox', 'slider'], 'Layer', 1);
    await page.choose(['combobox', 'slider'], 'Head', 3);
    await page.click('checkbox', 'Causal mask');
    await page.click('button', 'View as table');
    await page.until("!!find('button', 'Switch off head')", 'all heads');
    await page.click('button', 'Switch off head');
    await page.click('radio', 'Multi-head');
    await page.fill('Heads', '1');
    await page.fill('Word', 'music');
    const others = ['Line one.', 'Line two.', 'Line three.'].join('\n');
    await page.choose('textbox', 'Texts, one a line', others);
    await page.until("/text=.*words\\.word=music/.test(location.hash) && location.hash.includes('lines=')", 'the address');
    const hash = await page.driver.evaluate('location.hash.slice(1)');
    await page.open(hash);
    const options = { isCausal: true, headMask: data.without(2) };
    const table = await page.numbers('Attention weights', ofHead(data.forward(text, options).attentions[0], 2));
    assert.deepEqual(table.rows, data.tokens(text));
    const values = await page.tool(
      "[find('textbox', 'Sentence').value, find('combobox', 'Layer').value, find('combobox', 'Head').value, find('checkbox', 'Causal mask').checked, find('button', 'Switch off head').ariaPressed, find('radio', 'Multi-head').checked, find('spinbutton', 'Heads').value, find('textbox', 'Word').value, find('textbox', 'Texts, one a line').value]",
    );
    assert.deepEqual(values, [text, '1', '3', true, 'true', true, '1', 'music', others]);
    await page.driver.evaluate("location.hash = 'text=Good.&table=1', undefined");
    await page.numbers('Attention weights', ofHead(data.forward('Good.').attentions[1], 3));
    // An address that is written over while the page is about to write its own.
    await page.tool(`(() => {
      choose(find('textbox', 'Sentence'), 'Typed.');
      for (const end = performance.now() + 400; performance.now() < end; );
      location.hash = 'text=Over.&table=1';
      return true;
    })()`);
    await page.numbers('Attention weights', ofHead(data.forward('Over.').attentions[1], 3));
  },
  async 'an address that makes no sense does no harm'({ page, data }) {
    await page.open(
      'layer=99&head=-1&cell=9999.x&off=77.a&weights=nothing@9=x&change=,,&x=X@-1=2&threshold=9&special=all&step=40&table=1&lab.Q=%5B1&words.neighbours=1e9',
    );
    await page.until("table('Attention weights').rows.length === 12", 'the map');
    await page.numbers('Attention weights', ofHead(data.forward(sentence).attentions[1], 0));
  },
  async 'an address that is too long is an alert, and the page goes on'({ page, data }) {
    const alert = `find('alert', undefined, ${bar})`;
    const first = ofHead(data.forward(sentence).attentions[1], 3);
    for (const hash of [`table=1&weights=a${'@1='.repeat(130_000)}`, `table=1&x=${'X@1=2;'.repeat(65_000)}`]) {
      await page.open(hash);
      assert.match(await page.until(`text(${alert})`, 'the alert'), /This link was not read\. Its address has \d+ characters .* up to 8000/);
      await page.click('button', 'View as table');
      await page.numbers('Attention weights', first);
      await page.until('!location.hash.includes("@")', 'an address of its own');
      await page.click('button', 'Close', bar);
      await page.until(`all('alert', undefined, ${bar}).length === 0`, 'no alert');
    }
    // In the page that is open, too; and as many edits as an address may hold are read.
    await page.driver.evaluate(`location.hash = 'text=' + 'a'.repeat(100000), undefined`);
    await page.until(`text(${alert})`, 'the alert');
    await page.driver.evaluate(`location.hash = 'table=1&x=' + 'X@1=2;'.repeat(1300), undefined`);
    await page.until(
      "all('alert').length === 0 && /1300 numbers of its input edited/.test(text(document.querySelector('.changed')))",
      'the edits',
      30000,
    );
  },
  async 'a link to this view holds the text, and says so'({ page }) {
    await page.open();
    await page.fill('Sentence', 'A secret.');
    await page.click('button', 'Share', bar);
    const said = await page.until(
      `/text is part of/.test(text(${bar}.querySelector('.share'))) && text(${bar}.querySelector('.share'))`,
      'the warning',
    );
    // Where the clipboard is closed the link stands there.
    if (!/Copied/.test(said)) assert.match(await page.tool("find('textbox', 'Link to this view').value"), /#text=A\+secret\.$/);
  },
  async 'files hold exactly what is shown'({ page, data }) {
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
  },
  async 'the keyboard alone comes everywhere and does everything'({ page, data }) {
    await page.open('table=1');
    await settled(page);
    const { driver } = page;
    await tabTo(page, "text(document.activeElement) === 'Skip to the content'", 3);
    await tabTo(page, "nameOf(document.activeElement) === 'Sentence'");
    // Home, then everything that stands there.
    await page.tool('(document.activeElement.select(), true)');
    await driver.type('All by keyboard.');
    const forward = (options) => ofHead(data.forward('All by keyboard.', options).attentions[1], 3);
    await page.numbers('Attention weights', forward());
    await tabTo(page, "document.activeElement === find('grid')");
    await driver.press('End');
    const first = await tabTo(page, "nameOf(document.activeElement) === 'Causal mask'");
    assert.ok(first.includes('heads'), 'all heads are on the way');
    await driver.press(' ');
    await page.numbers('Attention weights', forward({ isCausal: true }));
    await tabTo(page, "document.activeElement.closest('#example') && text(document.activeElement) === 'Next step'");
    await tabTo(page, "document.activeElement.closest('#steps') && text(document.activeElement) === 'Next step'");
    await driver.press('Enter');
    await page.until(`text(${section('steps')}.querySelector('h3')).startsWith('Step 2 ')`, 'Enter goes on');
    await tabTo(page, "nameOf(document.activeElement) === 'Q'");
    await page.tool('(document.activeElement.select(), true)');
    await driver.type('[[1,0,0]]');
    await tabTo(page, "text(document.activeElement) === 'Run attention'");
    await driver.press('Enter');
    await page.until("table('Weights').rows.length === 1", 'the weights of one query');
    await tabTo(page, "nameOf(document.activeElement) === 'Texts, one a line'");
    await tabTo(page, "nameOf(document.activeElement) === 'Word'");
    await tabTo(page, "text(document.activeElement) === 'Measure again'");
  },
  async 'axe-core finds nothing: light'({ page, engine }) {
    await openAll(page);
    await axeAtEachStep(page, engine, 'light');
  },
  async 'axe-core finds nothing: dark'({ page, note, engine }) {
    await openAll(page);
    if (await page.driver.dark(true)) note('as the system says');
    else await page.click('button', 'Dark theme');
    await page.until("document.documentElement.dataset.theme === 'dark'", 'the dark theme');
    try {
      await axeAtEachStep(page, engine, 'dark');
    } finally {
      if (!(await page.driver.dark(false))) await page.click('button', 'Light theme');
      await page.until("document.documentElement.dataset.theme === 'light'", 'the light theme');
    }
  },
  async 'a phone: one column, nothing wider than the screen, axe-core finds nothing'({ page, note }) {
    await page.driver.resize(375, 800);
    await openAll(page);
    const [width, content] = await page.driver.evaluate('[document.documentElement.clientWidth, document.documentElement.scrollWidth]');
    note(`${width} pixels`);
    assert.ok(content <= width, `content is ${content} wide, the screen ${width}`);
    await page.axe('phone');
    for (let step = 1; step <= 13; ++step) {
      await goToStep(page, step);
      assert.ok(
        await page.driver.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth'),
        `step ${step} is not wider`,
      );
    }
    await page.driver.resize(320, 800);
    await page.until('document.documentElement.scrollWidth <= document.documentElement.clientWidth', 'nothing wider than a small phone');
  },
  async 'on paper there is the map, no control, and nothing is cut off'({ page, note }) {
    await page.open('step=2');
    await page.until("!!find('table', 'W_Q')", 'the weights');
    const commands = ['Run', 'Share', 'Another model', 'Export', 'View as table', 'Switch off head', 'Next step', 'Dark theme', 'Run attention'];
    const there = () => page.tool(`${json(commands)}.filter((name) => all('button').some((each) => text(each) === name || nameOf(each) === name))`);
    assert.deepEqual(await there(), commands, 'on the screen');
    // A4 within its margins.
    await page.driver.resize(718, 1000);
    if (!(await page.driver.print(true))) return note('cannot be seen here');
    try {
      assert.deepEqual(await there(), [], 'controls on paper');
      const [width, content] = await page.driver.evaluate('[document.documentElement.clientWidth, document.documentElement.scrollWidth]');
      assert.ok(content <= width, `content is ${content} wide, the paper ${width}`);
      const cut = await page.tool(`Array.from(document.querySelectorAll('main *'))
        .filter((each) => visible(each) && !each.closest('.visually-hidden') && each.clientWidth > 1 && getComputedStyle(each).overflow !== 'visible')
        .filter((each) => each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1)
        .map((each) => (each.closest('section')?.id ?? '') + ' ' + each.tagName + ' ' + each.className)`);
      assert.deepEqual(cut, [], 'cut off');
      const map = await page.tool(`(() => {
        const canvas = ${section('focus')}.querySelector('canvas');
        canvas.scrollIntoView({ block: 'center' });
        const { left, top, width, height } = canvas.getBoundingClientRect();
        const over = document.elementFromPoint(left + width / 2, top + height / 2);
        return { width, height, top: !!over && canvas.parentElement.contains(over), visible: getComputedStyle(canvas).visibility };
      })()`);
      assert.ok(map.width > 200 && map.height > 200 && map.top && map.visible === 'visible', json(map));
    } finally {
      await page.driver.print(false);
    }
  },
  async 'memory stays flat over many edits and changes of the model'({ page, note }) {
    const [least, most, changes] = [100, 500, 20];
    await page.open('step=2');
    await page.until("!!find('table', 'W_Q')", 'the weights');
    const used = async () => {
      await settled(page);
      await measureAgain(page);
      const facts = await page.tool(
        `Object.fromEntries(Array.from(${section('proof')}.querySelectorAll('dt'), (term) => [text(term), text(term.nextElementSibling)]))`,
      );
      // Lower sections follow when the browser has time.
      let held = await page.driver.memory();
      for (let last; held && held.nodes !== last?.nodes; held = await page.driver.memory()) {
        last = held;
        await sleep(1000);
      }
      return { wasm: Number.parseFloat(facts['WASM heap in use']), ...held };
    };
    const edit = (count) =>
      page.tool(`(async () => {
        const until = async (condition, what) => {
          for (const end = performance.now() + 30000; !condition(); await new Promise((done) => setTimeout(done, 4)))
            if (performance.now() > end) throw new Error(what);
        };
        for (let i = 0; i < ${count}; ++i) {
          // Every fourth is a weight that is written over; all are taken back now and then. The others are texts of different length.
          if (i % 40 === 39) find('button', 'Undo all').click();
          else if (i % 4 === 0) {
            const table = find('table', 'W_Q');
            table.tBodies[0].rows[i % 16].querySelectorAll('td button')[i % 12].click();
            await until(() => table.querySelector('input'), 'no field in the cell');
            table.querySelector('input').value = String(i / 100);
            table.querySelector('input').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
            await until(() => document.querySelector('.changed') && !table.querySelector('input'), 'the edit of a weight');
          }
          const words = 1 + (i % 7);
          choose(find('textbox', 'Sentence'), 'good '.repeat(words));
          await until(() => text(find('status')).includes('over ' + (words + 2) + ' tokens'), 'edit ' + i + ' was not computed');
        }
        for (const button of all('button', 'Undo all')) button.click();
        choose(find('textbox', 'Sentence'), 'Good.');
        await until(() => text(find('status')).includes('over 4 tokens'), 'the last text');
        return true;
      })()`);
    const change = async (model) => {
      await loadFrom(page, `model/plain/${model}`);
      await shows(page, model);
    };
    const back = async () => {
      await page.click('button', 'Back to the sentiment classifier', bar);
      await shows(page, 'sentiment classifier');
      await page.fill('Sentence', 'Good.');
      await page.until("/over 4 tokens/.test(text(find('status')))", 'the last text');
    };
    const models = ['tiny-bert', 'tiny-distilbert', 'tiny-mpnet', 'tiny-roberta'];
    // What is kept for the largest text so far, and for each model, is there afterwards.
    await edit(10);
    for (const model of models) await change(model);
    await back();
    const before = await used();
    // As many as the machine does in 40 s: all of them where it has nothing else to do.
    let edits = 0;
    for (const start = Date.now(); edits < least || (edits < most && Date.now() - start < 20000); edits += 50) await edit(50);
    for (let i = 0; i < changes; ++i) await change(models[i % models.length]);
    await back();
    const after = await used();
    const said = `${edits} edits, ${changes + 1} changes: ${json(before)}, then ${json(after)}`;
    note(said);
    assert.ok(after.wasm <= before.wasm + 0.1, said);
    // What the page holds beside the module, of which Chromium alone tells, varies by 1.5 MB and some 300 nodes.
    assert.ok(after.bytes <= before.bytes + 3e6, said);
    assert.ok(after.nodes <= before.nodes + 500 && after.listeners <= before.listeners + 100, said);
  },
};
