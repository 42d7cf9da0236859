import { readFileSync } from 'node:fs';
import { strict as assert } from 'node:assert';
import { packageNumbers, sentence } from './data.mjs';
import { assertAnswer, assertMap, weightsOf } from './map.mjs';
import { chooseFiles, filesOf } from './models.mjs';
import { pageTest } from './fixture.mjs';

pageTest('all heads are shown as pictures, selected by click and arrow keys', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  const list = await page.until(
    ({ all, nameOf }, count) => {
      const pictures = all('button', undefined, ['group', 'Heads as pictures']);
      if (pictures.length !== count || !pictures.every((each) => each.title)) return false;
      return pictures.map((each) => {
        const canvas = each.querySelector('canvas');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return { name: nameOf(each), about: each.title, colours: new Set(new Uint32Array(data.buffer)).size };
      });
    },
    'the pictures',
    data.layers * data.heads,
  );
  list.forEach(({ name, about, colours }, i) => {
    assert.equal(name, `Layer ${Math.floor(i / data.heads) + 1}, head ${(i % data.heads) + 1}`);
    assert.match(about, /^((mostly|often) .*\d+ %|.*about \d+\.\d per query); entropy \d+\.\d\d$/);
    assert.ok(colours > 5, `${name} has ${colours} colours`);
  });
  const result = data.forward(sentence);
  const tokens = data.tokens(sentence);
  await page.tool(({ all }) => all('button', undefined, ['group', 'Heads as pictures'])[1].click());
  await assertMap(page, weightsOf(result, 0, 1), tokens);
  assert.equal(
    await page.tool(({ all }) => all('button', undefined, ['group', 'Heads as pictures']).filter((each) => each.tabIndex === 0).length),
    1,
  );
  for (const kind of ['button', 'checkbox']) {
    await page.tool(({ all }, role) => {
      const inOrder = all(role, undefined, ['group', 'Heads as pictures']);
      inOrder.find((each) => each.tabIndex === 0).focus();
    }, kind);
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
        ({ find, nameOf }, ...expected) => {
          const [layer, head] = ['Layer', 'Head'].map((name) => find(['combobox', 'slider'], name).value);
          return `${[layer, head, nameOf(document.activeElement)]}` === `${expected}`;
        },
        `${key} goes to layer ${l + 1}, head ${h + 1}`,
        l + 1,
        h + 1,
        name,
      );
    }
  }
  await page.driver.press(' ');
  await page.until(({ find }) => find('checkbox', 'Switch off layer 1, head 2').checked, 'the space bar switches off');
});

pageTest('heads can be sorted by entropy and by kind', async ({ page }) => {
  const data = await packageNumbers();
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
  await page.until(
    ({ all, nameOf }, order) => all('button', undefined, ['group', 'Heads as pictures']).map(nameOf).join('; ') === order,
    `the order is ${expected.join('; ')}`,
    expected.join('; '),
  );
  await page.choose('combobox', 'Sort by', 'kind');
  await page.until(
    ({ all, nameOf }, order) => all('button', undefined, ['group', 'Heads as pictures']).map(nameOf).join('; ') !== order,
    'another order',
    expected.join('; '),
  );
  const kinds = [
    'the previous token',
    'the next token',
    'the token itself',
    'special tokens',
    'many tokens evenly',
    'different tokens for different queries',
  ];
  const order = (await page.tool(({ all }) => all('button', undefined, ['group', 'Heads as pictures']).map((each) => each.title))).map((about) =>
    kinds.findIndex((kind) => about.includes(kind)),
  );
  assert.deepEqual(
    order,
    [...order].sort((a, b) => a - b),
    'heads of a kind stand together',
  );
  assert.ok(new Set(order).size > 1 && !order.includes(-1), 'there are several kinds');
});

pageTest("switching a head off changes the classifier's answer", async ({ page }) => {
  const data = await packageNumbers();
  await page.open('layer=1&head=2');
  await page.click('button', 'Switch off head');
  await page.until(({ all, text }) => all('button', 'Switch head on').length === 1 && /head 1\.2 off/.test(text('#sentence')), 'it is off');
  await page.says(/was/, 'list', "The classifier's answer");
  const [now, before] = [data.answer(sentence, { headMask: data.without(1) }), data.answer(sentence)];
  assert.ok(Math.abs(now.positive - before.positive) > 0.002, 'the head matters');
  await assertAnswer(page, now, before);
  await page.click('button', 'Undo all');
  await page.until(({ text, find }) => !/was/.test(text(find('list', "The classifier's answer"))), 'the answer again');
  await assertAnswer(page, before);
});

pageTest('each head has its own switch', async ({ page }) => {
  const data = await packageNumbers();
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
});

pageTest('a model with many heads has larger pictures instead of a checkbox beside each', async ({ page }) => {
  const config = JSON.parse(readFileSync(new URL('../../testdata/models/tiny-bert/config.json', import.meta.url), 'utf8'));
  await page.open();
  const changed = JSON.stringify({ ...config, num_attention_heads: 8 });
  const others = ['model.safetensors', 'tokenizer.json', 'tokenizer_config.json'];
  await chooseFiles(page, 'Choose files', filesOf('tiny-bert', others, { 'config.json': changed }));
  await page.until(({ all }) => all('button', undefined, ['group', 'Heads as pictures']).length === 16, '16 heads');
  const group = ['group', 'Heads as pictures'];
  const sizes = () =>
    page.tool(
      ({ all }, where) => [
        Math.min(...all('button', undefined, where).map((each) => each.getBoundingClientRect().width)),
        Math.max(...all('checkbox', undefined, where).map((each) => each.closest('label').getBoundingClientRect().width)),
      ],
      group,
    );
  const [picture, box] = await sizes();
  assert.ok(picture >= 34 && box <= 1, `pictures of ${picture} px, checkboxes of ${box} px`);
  // The checkbox of the chosen head comes into view with the focus of the keyboard.
  await page.tool(
    ({ all }, where) =>
      all('checkbox', undefined, where)
        .find((each) => each.tabIndex === 0)
        .focus(),
    group,
  );
  const [same, shown] = await sizes();
  assert.ok(same === picture && shown >= 16, `pictures of ${same} px, a checkbox of ${shown} px`);
  await page.click('checkbox', 'Switch off layer 1, head 2', group);
  await page.until(({ text }) => /head 1\.2 off/.test(text('#sentence')), 'it is off');
  await page.axe('many heads', '#heads');
});
