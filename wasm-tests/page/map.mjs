/** The sentence, one head and all heads. */
import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { sentence } from './data.mjs';
import { assertNear, json, ofHead } from './page.mjs';

const layerBox = "find(['combobox', 'slider'], 'Layer')";
const headBox = "find(['combobox', 'slider'], 'Head')";
const weightsOf = ({ attentions }, layer, head) => ofHead(attentions[layer], head);
const pictures = "all('button', undefined, find('group', 'Heads as pictures'))";
/** The head that the page shows first. */
const [layer, head] = [1, 3];

/** The table of the head in focus is this, and so are its headers. */
async function assertMap(page, expected, labels) {
  const table = await page.numbers('Attention weights', expected);
  assert.deepEqual([table.rows, table.columns], [labels, labels], 'row and column headers');
}

/** Probabilities in the bar, as ["positive", "68.1", "70.0"]: with changes, and without where they are shown. */
const answers = async (page) =>
  (await page.texts('list', "The classifier's answer")).map(
    (text) => /^(\D+)(\d+\.\d) %(?: was (\d+\.\d) %)?$/.exec(text)?.slice(1) ?? assert.fail(text),
  );

async function assertAnswer(page, now, before) {
  const check = async () => {
    const found = await answers(page);
    assert.deepEqual(
      found.map(([label]) => label),
      Object.keys(now),
      'in the order of the labels, whichever is the larger',
    );
    for (const [label, written, was] of found) {
      assertNear(written, now[label], label, 0.01);
      if (before) assertNear(was ?? '', before[label], `${label} before`, 0.01);
      else assert.equal(was, undefined);
    }
  };
  await page.eventually(check);
}

/** Weights of the places of a map: rows averaged, columns summed. */
function gathered({ at }, places, renormalise = false) {
  const rows = places.map((own) => places.map((other) => own.reduce((sum, i) => sum + other.reduce((all, j) => all + at(i, j), 0), 0) / own.length));
  const result = renormalise ? rows.map((row) => row.map((value) => value / row.reduce((a, b) => a + b, 0))) : rows;
  return { count: places.length, width: places.length, at: (i, j) => result[i][j] };
}

export const tests = {
  async 'one status says what is going on'({ page }) {
    await page.open();
    assert.equal(await page.tool("all('status').length"), 1);
    assert.match(
      await page.until("/Ready/.test(text(find('status'))) && text(find('status'))", 'status'),
      /2 × 4 heads over 12 tokens in \d+\.\d ms/,
    );
  },
  async 'the names that outside checks rely on are there'({ page }) {
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
      assert.equal(await page.tool(`${json([role].flat())}.flatMap((role) => all(role, ${json(name)})).length`), 1, name);
    await page.click('radio', 'Multi-head');
    for (const name of ['X', 'Wq', 'Wk', 'Wv', 'Wo']) await page.until(`!!find('textbox', ${json(name)})`, name);
    await page.tool("(find('spinbutton', 'Heads'), true)");
  },
  async "View as table shows the package's numbers for each layer and head"({ page, data }) {
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
  },
  async 'the causal mask runs the module again, and its numbers go with it'({ page, data }) {
    await page.open('table=1');
    const tokens = data.tokens(sentence);
    await assertMap(page, weightsOf(data.forward(sentence), layer, head), tokens);
    await page.click('checkbox', 'Causal mask');
    await assertMap(page, weightsOf(data.forward(sentence, { isCausal: true }), layer, head), tokens);
    await assertAnswer(page, data.answer(sentence, { isCausal: true }), data.answer(sentence));
    await page.click('checkbox', 'Causal mask');
    await assertMap(page, weightsOf(data.forward(sentence), layer, head), tokens);
  },
  async 'a sentence that is typed runs at once'({ page, data }) {
    await page.open('table=1');
    for (const text of ['Not a bad film at all, and never boring.', 'Good.', 'Ça alors, 映画 and emoji 🎬']) {
      await page.fill('Sentence', text);
      await assertMap(page, weightsOf(data.forward(text), layer, head), data.tokens(text));
      await assertAnswer(page, data.answer(text));
    }
    // Faster than the module computes: what stands there in the end is the last text.
    const last = 'A dull, dull, dull waste of time';
    await page.tool(
      `(() => { const field = find('textbox', 'Sentence'); for (let n = 1; n <= ${last.length}; ++n) choose(field, ${json(last)}.slice(0, n)); return true; })()`,
    );
    await assertMap(page, weightsOf(data.forward(last), layer, head), data.tokens(last));
  },
  async 'a run that takes long can be cancelled, and Run begins it again'({ page, data }) {
    await page.open('table=1');
    const first = weightsOf(data.forward(sentence), layer, head);
    await assertMap(page, first, data.tokens(sentence));
    // Whatever is asked of the worker reaches it late.
    await page.driver.evaluate(
      `attnProbe.workers.forEach((worker) => { worker.postMessage = (...given) => setTimeout(() => Worker.prototype.postMessage.apply(worker, given), 600); }), undefined`,
    );
    const text = 'Never mind the script.';
    await page.choose('textbox', 'Sentence', 'Never mind.');
    // What waits for its turn is cancelled with what goes on.
    await page.until(
      `all('button', 'Cancel').length === 1 && (choose(find('textbox', 'Sentence'), ${json(text)}), find('button', 'Cancel').click(), true)`,
      'Cancel',
    );
    assert.match(await page.tool("text(find('status'))"), /^Cancelled\./);
    await page.until("all('button', 'Run').length === 1", 'Run');
    await page.driver.evaluate('attnProbe.workers.forEach((worker) => delete worker.postMessage), undefined');
    // What was cancelled does not come after all.
    await sleep(1500);
    await assertMap(page, first, data.tokens(sentence));
    await page.click('button', 'Run');
    await assertMap(page, weightsOf(data.forward(text), layer, head), data.tokens(text));
    await page.until("/^Ready/.test(text(find('status')))", 'ready');
  },
  async 'an empty text has its special tokens, and a long one is cut where the model ends'({ page, data }) {
    await page.open('table=1');
    await page.choose('textbox', 'Sentence', '');
    await assertMap(page, weightsOf(data.forward(''), layer, head), ['[CLS]', '[SEP]']);
    await page.choose('textbox', 'Sentence', 'good '.repeat(300));
    await page.until(
      "/over 128 tokens/.test(text(find('status'))) && /first 128 tokens/.test(text(document.getElementById('sentence')))",
      'the note',
    );
    await page.until("table('Attention weights').rows.length === 128", 'the map of 128 tokens');
  },
  async 'two texts are compared as a pair'({ page, data }) {
    await page.open('table=1');
    await page.click('button', 'Compare two texts');
    const second = 'No, never again.';
    await page.until("!!find('textbox', 'Second text')", 'the second field');
    await page.fill('Second text', second);
    const pair = [[sentence, second]];
    await assertMap(page, weightsOf(data.forward(pair), layer, head), data.tokens(pair));
    await page.click('button', 'One text only');
    await assertMap(page, weightsOf(data.forward(sentence), layer, head), data.tokens(sentence));
  },
  async 'special tokens are hidden, and rows renormalised where that is chosen'({ page, data }) {
    await page.open('table=1');
    const tokens = data.tokens(sentence);
    const places = tokens.flatMap((token, i) => (token.startsWith('[') ? [] : [[i]]));
    const words = places.map(([i]) => tokens[i]);
    const all = weightsOf(data.forward(sentence), layer, head);
    await page.choose('combobox', 'Special tokens', 'hide');
    await assertMap(page, gathered(all, places), words);
    await page.choose('combobox', 'Special tokens', 'renormalise');
    await assertMap(page, gathered(all, places, true), words);
  },
  async 'sub-words are merged: rows averaged, columns summed'({ page, data }) {
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
  },
  async 'the map is one tab stop; arrows, Home and End move the cell and it is spoken'({ page, data }) {
    await page.open();
    const { driver } = page;
    const grid = "find('grid')";
    assert.equal(await page.tool(`[${grid}, ...${grid}.querySelectorAll('*')].filter((e) => e.tabIndex >= 0).length`), 1, 'tab stops');
    await page.tool(`(${grid}.focus(), true)`);
    const active = `text(document.getElementById(${grid}.getAttribute('aria-activedescendant')))`;
    const tokens = data.tokens(sentence);
    const weights = weightsOf(data.forward(sentence), layer, head);
    const n = tokens.length;
    const expected = (i, j) => `${tokens[i]} to ${tokens[j]}, ${weights.at(i, j).toFixed(2)}`;
    const spoken = (words) =>
      page.until(`[...document.querySelectorAll('[aria-live]')].some((e) => text(e) === ${json(words)})`, `a live region says "${words}"`, 4000);
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
    await spoken(expected(1, 0));
    await driver.press('Enter');
    await page.until("!!find('button', 'locked: let go')", 'the cell is locked');
    await driver.press('Escape');
    await page.until("all('button', 'locked: let go').length === 0", 'the cell is let go');
  },
  async 'keys of the map change head, layer and mask, export and help'({ page }) {
    await page.open();
    const { driver } = page;
    const focus = () => page.tool("(find('grid').focus(), true)");
    await focus();
    const at = (l, h) => page.until(`${layerBox}.value === '${l}' && ${headBox}.value === '${h}'`, `layer ${l}, head ${h}`, 4000);
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
    await page.until("find('checkbox', 'Causal mask').checked", 'm masks');
    await driver.press('e');
    await page.until("nameOf(document.activeElement) === 'PNG'", 'e opens the formats');
    await driver.press('Escape');
    await page.until("nameOf(document.activeElement) === 'Export'", 'Escape closes them');
    await focus();
    await driver.press('?');
    await page.until("find('dialog', 'Keys in the attention map').open", '? opens the list of keys');
    await page.click('button', 'Close', "find('dialog')");
  },
  async 'pointing at a cell shows its number, a click locks it'({ page, data }) {
    await page.open();
    const tokens = data.tokens(sentence);
    const weights = weightsOf(data.forward(sentence), layer, head);
    const point = (type, i, j) =>
      page.tool(`(() => {
        const grid = find('grid'), box = grid.getBoundingClientRect();
        const at = { bubbles: true, pointerType: 'mouse', clientX: box.left + (box.width * (${j} + 0.5)) / ${tokens.length}, clientY: box.top + (box.height * (${i} + 0.5)) / ${tokens.length} };
        return grid.dispatchEvent(new PointerEvent(${json(type)}, at));
      })()`);
    const reading = (i, j) =>
      page.until(
        `text(document.querySelector('.reading-cell')).includes(${json(`${tokens[i]} →to ${tokens[j]} ${weights.at(i, j).toFixed(4)}`)})`,
        `${tokens[i]} to ${tokens[j]} is read`,
        4000,
      );
    await point('pointermove', 2, 4);
    await reading(2, 4);
    await point('click', 8, 9);
    await reading(8, 9);
    await point('pointermove', 2, 4);
    await page.until("!!find('button', 'locked: let go')", 'the lock is said');
    await reading(8, 9);
  },
  async 'the cells on the canvas are as bright as their weights'({ page, data }) {
    await page.open();
    const n = data.tokens(sentence).length;
    const weights = weightsOf(data.forward(sentence), layer, head);
    const brightness = await page.until(
      `(() => {
        const canvas = find('grid').parentElement.querySelector('canvas');
        const { width, data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        // Beside the middle, where a number may stand.
        const pixel = (cell) => Math.floor((cell + 0.15) * width / ${n});
        return Array.from({ length: ${n * n} }, (_, at) => {
          const first = 4 * (pixel(Math.floor(at / ${n})) * width + pixel(at % ${n}));
          return 0.2126 * data[first] + 0.7152 * data[first + 1] + 0.0722 * data[first + 2];
        });
      })()`,
      'the canvas',
    );
    // Of two cells that differ clearly the brighter one is the one with the larger weight.
    for (let a = 0; a < n * n; ++a)
      for (let b = 0; b < n * n; ++b)
        if (weights.at(0, a) > weights.at(0, b) + 0.02)
          assert.ok(
            brightness[a] > brightness[b],
            `cells ${a} and ${b}: ${weights.at(0, a)} at ${brightness[a]}, ${weights.at(0, b)} at ${brightness[b]}`,
          );
  },
  async 'all heads are there as pictures, and one chooses with click and arrow keys'({ page, data }) {
    await page.open('table=1');
    const list = await page.until(
      `${pictures}.length === ${data.layers * data.heads} && ${pictures}.every((each) => each.title) && ${pictures}.map((each) => {
        const canvas = each.querySelector('canvas');
        return { name: nameOf(each), about: each.title, colours: new Set(new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size };
      })`,
      'the pictures',
    );
    list.forEach(({ name, about, colours }, i) => {
      assert.equal(name, `Layer ${Math.floor(i / data.heads) + 1}, head ${(i % data.heads) + 1}`);
      assert.match(about, /^((mostly|often) .*\d+ %|.*about \d+\.\d at a time); entropy \d+\.\d\d$/);
      assert.ok(colours > 5, `${name} has ${colours} colours`);
    });
    const result = data.forward(sentence);
    const tokens = data.tokens(sentence);
    await page.tool(`(${pictures}[1].click(), true)`);
    await assertMap(page, weightsOf(result, 0, 1), tokens);
    assert.equal(await page.tool("all('button', undefined, find('group', 'Heads as pictures')).filter((each) => each.tabIndex === 0).length"), 1);
    // From picture to picture, and from switch to switch.
    for (const kind of ['button', 'checkbox']) {
      await page.tool(`(all('${kind}', undefined, find('group', 'Heads as pictures')).find((each) => each.tabIndex === 0).focus(), true)`);
      for (const [key, l, h] of [
        ['ArrowRight', 0, 2],
        ['ArrowDown', 1, 2],
        ['End', 1, 3],
        ['Home', 0, 0],
        ['ArrowRight', 0, 1],
      ]) {
        await page.driver.press(key);
        const name = kind === 'button' ? `Layer ${l + 1}, head ${h + 1}` : `Switch off layer ${l + 1}, head ${h + 1}`;
        await page.until(
          `${layerBox}.value === '${l + 1}' && ${headBox}.value === '${h + 1}' && nameOf(document.activeElement) === ${json(name)}`,
          `${key} goes to layer ${l + 1}, head ${h + 1}`,
          4000,
        );
      }
    }
    await page.driver.press(' ');
    await page.until("find('checkbox', 'Switch off layer 1, head 2').checked", 'the space bar switches off');
  },
  async 'heads are sorted by entropy and by kind'({ page, data }) {
    await page.open();
    const { attentions } = data.forward(sentence);
    const n = data.tokens(sentence).length;
    const entropies = attentions.flatMap((tensor, l) =>
      Array.from({ length: data.heads }, (_, h) => {
        const weights = tensor.data.subarray(h * n * n, (h + 1) * n * n);
        return { name: `Layer ${l + 1}, head ${h + 1}`, entropy: weights.reduce((sum, w) => sum - (w > 0 ? w * Math.log(w) : 0), 0) / n };
      }),
    );
    const expected = entropies.sort((a, b) => a.entropy - b.entropy).map(({ name }) => name);
    await page.choose('combobox', 'Sort by', 'entropy');
    await page.until(`${pictures}.map(nameOf).join('; ') === ${json(expected.join('; '))}`, `the order is ${expected.join('; ')}`, 4000);
    await page.choose('combobox', 'Sort by', 'kind');
    await page.until(`${pictures}.map(nameOf).join('; ') !== ${json(expected.join('; '))}`, 'another order', 4000);
    const kinds = ['the previous token', 'the next token', 'the token itself', 'special tokens', 'many tokens alike', 'certain tokens'];
    const order = (await page.tool(`${pictures}.map((each) => each.title)`)).map((about) => kinds.findIndex((kind) => about.includes(kind)));
    assert.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
      'heads of a kind stand together',
    );
    assert.ok(new Set(order).size > 1 && !order.includes(-1), 'there are several kinds');
  },
  async "switching a head off changes the classifier's answer"({ page, data }) {
    await page.open('layer=1&head=2');
    await page.click('button', 'Switch off head');
    await page.until(
      "find('button', 'Switch off head').ariaPressed === 'true' && /head 1\\.2 off/.test(text(document.getElementById('sentence')))",
      'it is off',
    );
    await page.until("/was/.test(text(find('list', \"The classifier's answer\")))", 'the answer before');
    const [now, before] = [data.answer(sentence, { headMask: data.without(1) }), data.answer(sentence)];
    assert.ok(Math.abs(now.positive - before.positive) > 0.002, 'the head matters');
    await assertAnswer(page, now, before);
    await page.click('button', 'Undo all');
    await page.until("!/was/.test(text(find('list', \"The classifier's answer\")))", 'the answer again');
    await assertAnswer(page, before);
  },
  async 'each head has its switch beside the answer'({ page, data }) {
    await page.open();
    for (const [layer, head] of [
      [2, 1],
      [1, 3],
    ]) {
      const name = `Switch off layer ${layer}, head ${head}`;
      const options = { headMask: data.without((layer - 1) * data.heads + head - 1) };
      await page.click('checkbox', name);
      await assertAnswer(page, data.answer(sentence, options), data.answer(sentence));
      await page.click('checkbox', name);
      await assertAnswer(page, data.answer(sentence));
    }
  },
  async 'names of rows and columns answer as cells do'({ page, data }) {
    await page.open();
    const tokens = data.tokens(sentence);
    const weights = weightsOf(data.forward(sentence), layer, head);
    const places = tokens.map((_, i) => i);
    const most = (weight) => places.reduce((best, i) => (weight(i) > weight(best) ? i : best));
    const label = (side, i, type) =>
      page.tool(`(() => {
        const { left, top, width, height } = document.querySelector('.map-${side}').children[${i}].getBoundingClientRect();
        const at = { bubbles: true, pointerType: 'mouse', clientX: left + width / 2, clientY: top + height / 2 };
        return document.querySelector('.map-${side}').children[${i}].dispatchEvent(new PointerEvent(${json(type)}, at));
      })()`);
    const reads = (i, j) =>
      page.until(
        `text(document.querySelector('.reading-cell')).includes(${json(`${tokens[i]} →to ${tokens[j]} ${weights.at(i, j).toFixed(4)}`)})`,
        `${tokens[i]} to ${tokens[j]} is read`,
        4000,
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
    await page.until("!!find('button', 'locked: let go') && document.activeElement === find('grid')", 'it is locked, and the keyboard is there');
    await label('columns', 9, 'click');
    await page.until("all('button', 'locked: let go').length === 0", 'it is let go');
  },
};
