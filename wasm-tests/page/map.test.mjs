import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { packageNumbers, sentence } from './data.mjs';
import { assertAnswer, assertMap, head, layer, weightsOf } from './map.mjs';
import { pageTest } from './fixture.mjs';

function gathered({ at }, places, renormalise = false) {
  const rows = places.map((own) => places.map((other) => own.reduce((sum, i) => sum + other.reduce((all, j) => all + at(i, j), 0), 0) / own.length));
  const result = renormalise ? rows.map((row) => row.map((value) => value / row.reduce((a, b) => a + b, 0))) : rows;
  return { count: places.length, width: places.length, at: (i, j) => result[i][j] };
}

pageTest('one status tells what the page is doing', async ({ page }) => {
  await page.open();
  assert.equal(await page.count('status'), 1);
  assert.match(await page.says(/Ready/, 'status'), /2 × 4 heads over 12 tokens in \d+\.\d ms/);
});

pageTest('controls keep the names that other checks rely on', async ({ page }) => {
  await page.open();
  for (const [role, name] of [
    ['textbox', 'Sentence'],
    ['button', 'View as table'],
    [['combobox', 'slider'], 'Layer'],
    [['combobox', 'slider'], 'Head'],
    ['checkbox', 'Causal mask'],
    ['textbox', 'Q'],
    ['textbox', 'K'],
    ['textbox', 'V'],
    ['textbox', 'Scale'],
    ['button', 'Run attention'],
    [['radio', 'tab', 'button'], 'Multi-head'],
  ])
    assert.equal(await page.tool(({ all }, roles, own) => roles.flatMap((role) => all(role, own)).length, [role].flat(), name), 1, name);
  await page.click('radio', 'Multi-head');
  for (const name of ['X', 'Wq', 'Wk', 'Wv', 'Wo']) await page.shows('textbox', name);
  assert.ok(await page.count('spinbutton', 'Heads'));
});

pageTest("View as table shows the package's numbers for each layer and head", { isolated: 'all' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  await page.click('button', 'View as table');
  const result = data.forward(sentence);
  for (let l = 0; l < data.layers; ++l) {
    await page.choose(['combobox', 'slider'], 'Layer', l + 1);
    for (let h = 0; h < data.heads; ++h) {
      await page.choose(['combobox', 'slider'], 'Head', h + 1);
      await assertMap(page, weightsOf(result, l, h), data.tokens(sentence));
    }
  }
  await assertAnswer(page, data.answer(sentence));
});

pageTest('the causal mask changes the weights and the answer', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  const tokens = data.tokens(sentence);
  await assertMap(page, weightsOf(data.forward(sentence), layer, head), tokens);
  await page.click('checkbox', 'Causal mask');
  await assertMap(page, weightsOf(data.forward(sentence, { isCausal: true }), layer, head), tokens);
  await assertAnswer(page, data.answer(sentence, { isCausal: true }), data.answer(sentence));
  await page.until(({ text }) => /\S+ is hidden by the mask, so \S+ cannot attend to it\./.test(text('.reading')), 'the hidden key');
  await page.click('checkbox', 'Causal mask');
  await assertMap(page, weightsOf(data.forward(sentence), layer, head), tokens);
});

pageTest('a typed sentence is computed at once', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  for (const text of ['Not a bad film at all, and never boring.', 'Good.', 'Ça alors, 映画 and emoji 🎬']) {
    await page.fill('Sentence', text);
    await assertMap(page, weightsOf(data.forward(text), layer, head), data.tokens(text));
    await assertAnswer(page, data.answer(text));
  }
  // Faster than the module computes: the result must be that of the last text.
  const last = 'A dull, dull, dull waste of time';
  await page.tool(({ find, choose }, typed) => {
    const field = find('textbox', 'Sentence');
    for (let n = 1; n <= typed.length; ++n) choose(field, typed.slice(0, n));
  }, last);
  await assertMap(page, weightsOf(data.forward(last), layer, head), data.tokens(last));
});

pageTest('a long computation can be cancelled, and Run starts it again', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  const first = weightsOf(data.forward(sentence), layer, head);
  await assertMap(page, first, data.tokens(sentence));
  await page.evaluate(() => {
    attnProbe.workers.forEach((worker) => {
      worker.postMessage = (...given) => setTimeout(() => Worker.prototype.postMessage.apply(worker, given), 600);
    });
  });
  const text = 'Never mind the script.';
  await page.choose('textbox', 'Sentence', 'Never mind.');
  await page.until(
    ({ all, choose, find }, words) => {
      if (all('button', 'Cancel').length !== 1) return false;
      choose(find('textbox', 'Sentence'), words);
      find('button', 'Cancel').click();
      return true;
    },
    'Cancel',
    text,
  );
  assert.match(await page.text('status'), /^Cancelled\./);
  await page.until(({ all }) => all('button', 'Run').length === 1, 'Run');
  await page.evaluate(() => {
    attnProbe.workers.forEach((worker) => delete worker.postMessage);
  });
  await sleep(1500);
  await assertMap(page, first, data.tokens(sentence));
  await page.click('button', 'Run');
  await assertMap(page, weightsOf(data.forward(text), layer, head), data.tokens(text));
  await page.says(/^Ready/, 'status');
});

pageTest('an empty text has its special tokens, and an overlong text is truncated', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  await page.choose('textbox', 'Sentence', '');
  await assertMap(page, weightsOf(data.forward(''), layer, head), ['[CLS]', '[SEP]']);
  const { cell, box } = await page.evaluate(() => {
    const widthOf = (selector) => document.querySelector(selector).getBoundingClientRect().width;
    return { cell: widthOf('.map-field') / 2, box: widthOf('.map-box') };
  });
  assert.ok(cell <= 112.5 && box > 400, `cells of ${cell} px in a box of ${box} px`);
  assert.deepEqual(await page.texts('list', "The classifier's answer"), ['negativeno text', 'positiveno text']);
  assert.deepEqual(await page.texts('list', 'Guesses'), []);
  await page.choose('textbox', 'Sentence', 'good '.repeat(300));
  await page.until(({ text, find }) => /over 128 tokens/.test(text(find('status'))) && /first 128 tokens/.test(text('#first')), 'the note');
  await page.until(({ table }) => table('Attention weights').rows.length === 128, 'the map of 128 tokens');
  const rows = () => document.querySelectorAll('.map-rows > span').length;
  assert.equal(await page.evaluate(rows), 32, 'the map starts with the part around its strongest link');
  await page.tool(({ find }) => find('grid').focus());
  await page.driver.press('0');
  await page.until(() => !document.querySelector('.minimap'), 'all of the map');
  assert.equal(await page.tool(({ find }) => find('button', 'Zoom out').disabled), true);
});

pageTest('two texts are compared as a pair', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  await page.click('button', 'Add a second text');
  const second = 'No, never again.';
  await page.shows('textbox', 'Second text');
  await page.fill('Second text', second);
  const pair = [[sentence, second]];
  await assertMap(page, weightsOf(data.forward(pair), layer, head), data.tokens(pair));
  await page.click('button', 'One text only');
  await assertMap(page, weightsOf(data.forward(sentence), layer, head), data.tokens(sentence));
});

pageTest('special tokens can be hidden, and rows renormalised', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  const tokens = data.tokens(sentence);
  const places = tokens.flatMap((token, i) => (token.startsWith('[') ? [] : [[i]]));
  const words = places.map(([i]) => tokens[i]);
  const all = weightsOf(data.forward(sentence), layer, head);
  await page.choose('combobox', 'Special tokens', 'hide');
  await assertMap(page, gathered(all, places), words);
  await page.choose('combobox', 'Special tokens', 'renormalise');
  await assertMap(page, gathered(all, places, true), words);
});

pageTest('merging sub-words averages rows and sums columns', async ({ page }) => {
  const data = await packageNumbers();
  const text = 'An unputdownable whodunit';
  await page.open(`table=1&text=${encodeURIComponent(text)}`);
  const tokens = data.tokens(text);
  const places = [];
  tokens.forEach((token, i) => (token.startsWith('##') ? places.at(-1).push(i) : places.push([i])));
  assert.ok(places.length < tokens.length, 'the text has words of several tokens');
  await page.click('checkbox', 'Merge sub-words');
  await assertMap(
    page,
    gathered(weightsOf(data.forward(text), layer, head), places),
    ['[CLS]', 'An', 'unputdownable', 'whodunit', '[SEP]'].map((word) => (word === 'An' ? 'an' : word)),
  );
});

pageTest('the map is one tab stop, and a live region announces the cell that keys select', async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  const { driver } = page;
  assert.equal(
    await page.tool(({ find }) => [find('grid'), ...find('grid').querySelectorAll('*')].filter((e) => e.tabIndex >= 0).length),
    1,
    'tab stops',
  );
  await page.tool(({ find }) => find('grid').focus());
  const tokens = data.tokens(sentence);
  const weights = weightsOf(data.forward(sentence), layer, head);
  const n = tokens.length;
  const expected = (i, j) => `${tokens[i]} to ${tokens[j]}, ${weights.at(i, j).toFixed(2)}`;
  const active = (key, i, j) =>
    page.until(
      ({ text, find }, words) => text(document.getElementById(find('grid').getAttribute('aria-activedescendant'))) === words,
      `${key}: the cell is "${expected(i, j)}"`,
      expected(i, j),
    );
  const spoken = (words) =>
    page.until(
      ({ text }, words) => [...document.querySelectorAll('[aria-live]')].some((e) => text(e) === words),
      `a live region says "${words}"`,
      words,
    );
  await driver.press('Home');
  for (let i = 0; i < n; i++) await driver.press('ArrowUp');
  await active('ArrowUp', 0, 0);
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
    await active(key, i, j);
  }
  await spoken(expected(1, 0));
  await driver.press('Enter');
  await page.shows('button', 'Unlock cell');
  await driver.press('Escape');
  await page.lacks('button', 'Unlock cell');
});

pageTest('keys on the map change head, layer and mask, and open export and help', async ({ page }) => {
  await page.open();
  const { driver } = page;
  const focus = () => page.tool(({ find }) => find('grid').focus());
  await focus();
  const at = (l, h) =>
    page.until(
      ({ find }, l, h) => find(['combobox', 'slider'], 'Layer').value === l && find(['combobox', 'slider'], 'Head').value === h,
      `layer ${l}, head ${h}`,
      String(l),
      String(h),
    );
  await at(2, 4);
  for (const [key, l, h] of [
    [',', 2, 3],
    ['[', 1, 3],
    [']', 2, 3],
    ['.', 2, 4],
    ['.', 1, 1],
  ]) {
    await driver.press(key);
    await at(l, h);
  }
  await driver.press('m');
  await page.until(({ find }) => find('checkbox', 'Causal mask').checked, 'm masks');
  await driver.press('e');
  await page.until(({ nameOf }) => nameOf(document.activeElement) === 'PNG', 'e opens the formats');
  await driver.press('Escape');
  await page.until(({ nameOf }) => nameOf(document.activeElement) === 'Export', 'Escape closes them');
  await focus();
  await driver.press('?');
  await page.until(({ find }) => find('dialog', 'Keyboard shortcuts of the attention map').open, '? opens the list of keys');
  await page.click('button', 'Close', ['dialog']);
});

pageTest('pointing at a cell shows its weight, and a click locks it', async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  const tokens = data.tokens(sentence);
  const weights = weightsOf(data.forward(sentence), layer, head);
  const point = (type, i, j) =>
    page.tool(
      ({ find }, kind, row, column, count) => {
        const { left, top, width, height } = find('grid').getBoundingClientRect();
        const at = { clientX: left + (width * (column + 0.5)) / count, clientY: top + (height * (row + 0.5)) / count };
        return find('grid').dispatchEvent(new PointerEvent(kind, { bubbles: true, pointerType: 'mouse', ...at }));
      },
      type,
      i,
      j,
      tokens.length,
    );
  const reading = (i, j) =>
    page.until(
      ({ text }, cell) => text('.reading-cell').includes(cell),
      `${tokens[i]} to ${tokens[j]} is read`,
      `${tokens[i]} →to ${tokens[j]} ${weights.at(i, j).toFixed(4)}`,
    );
  await point('pointermove', 2, 4);
  await reading(2, 4);
  await point('click', 8, 9);
  await reading(8, 9);
  await point('pointermove', 2, 4);
  await page.shows('button', 'Unlock cell');
  await reading(8, 9);
});

pageTest('cells on the canvas are as bright as their weights', async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  const n = data.tokens(sentence).length;
  const weights = weightsOf(data.forward(sentence), layer, head);
  const brightness = await page.until(
    ({ find }, count) => {
      const canvas = find('grid').parentElement.querySelector('canvas');
      const { width, data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      // Not the middle, which may contain a number.
      const pixel = (cell) => Math.floor(((cell + 0.15) * width) / count);
      return Array.from({ length: count ** 2 }, (_, at) => {
        const first = 4 * (pixel(Math.floor(at / count)) * width + pixel(at % count));
        return 0.2126 * data[first] + 0.7152 * data[first + 1] + 0.0722 * data[first + 2];
      });
    },
    'the canvas',
    n,
  );
  // For two cells of clearly different brightness, the brighter one has the larger weight.
  for (let a = 0; a < n * n; ++a)
    for (let b = 0; b < n * n; ++b)
      if (weights.at(0, a) > weights.at(0, b) + 0.02)
        assert.ok(
          brightness[a] > brightness[b],
          `cells ${a} and ${b}: ${weights.at(0, a)} at ${brightness[a]}, ${weights.at(0, b)} at ${brightness[b]}`,
        );
});

pageTest('labels of rows and columns react to pointer and click like cells', async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  const tokens = data.tokens(sentence);
  const weights = weightsOf(data.forward(sentence), layer, head);
  const places = tokens.map((_, i) => i);
  const most = (weight) => places.reduce((best, i) => (weight(i) > weight(best) ? i : best));
  const label = (side, i, type) =>
    page.evaluate(
      (side, i, type) => {
        const { left, top, width, height } = document.querySelector(`.map-${side}`).children[i].getBoundingClientRect();
        const at = { bubbles: true, pointerType: 'mouse', clientX: left + width / 2, clientY: top + height / 2 };
        return document.querySelector(`.map-${side}`).children[i].dispatchEvent(new PointerEvent(type, at));
      },
      side,
      i,
      type,
    );
  const reads = (i, j) =>
    page.until(
      ({ text }, cell) => text('.reading-cell').includes(cell),
      `${tokens[i]} to ${tokens[j]} is read`,
      `${tokens[i]} →to ${tokens[j]} ${weights.at(i, j).toFixed(4)}`,
    );
  await label('rows', 2, 'pointermove');
  await reads(
    2,
    most((j) => weights.at(2, j)),
  );
  await label('columns', 5, 'pointermove');
  await reads(
    most((i) => weights.at(i, 5)),
    5,
  );
  await label('columns', 9, 'click');
  await reads(
    most((i) => weights.at(i, 9)),
    9,
  );
  await page.until(
    ({ find }) => !!find('button', 'Unlock cell') && document.activeElement === find('grid'),
    'it is locked, and the keyboard is there',
  );
  await label('columns', 9, 'click');
  await page.lacks('button', 'Unlock cell');
});
