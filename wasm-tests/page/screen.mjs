/** The first screen: what is on it, that nothing moves, and what the examples find. */
import { readFileSync } from 'node:fs';
import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { repository } from '../support/paths.mjs';
import { json, settled } from './page.mjs';

const examples = JSON.parse(readFileSync(join(repository, 'web/page/src/state/examples.json'), 'utf8'));

/** Of all that moves by itself from the beginning on, as browsers count it. */
export const shifts = (page) =>
  page.driver.evaluate(`new Promise((done) => {
    const seen = [];
    new PerformanceObserver((list) => seen.push(...list.getEntries().map(({ value, sources }) => [value, ...sources.map(({ node }) => node?.className ?? node?.nodeName)]))).observe({
      type: 'layout-shift',
      buffered: true,
    });
    setTimeout(() => done(seen), 100);
  })`);

/** What has to be seen without scrolling. */
const parts = {
  'the sentence': "find('textbox', 'Sentence')",
  'the map': "find('grid')",
  'the answer': "find('list', \"The classifier's answer\")",
  'the heads': "find('group', 'Heads as pictures')",
  'the first switch': "all('checkbox', undefined, find('group', 'Heads as pictures'))[0]",
  'the last switch': "all('checkbox', undefined, find('group', 'Heads as pictures')).at(-1)",
  'the finding': "document.querySelector('.finding')",
  'what is changed': "document.querySelector('.changed')",
};

const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;

/** The sentence of an example, from the package's own numbers. */
function expectedFinding({ text, pair, layer, head, row, column, breaks }, data) {
  const input = pair === undefined ? text : [[text, pair]];
  const tokens = data.tokens(input);
  const { attentions } = data.forward(input);
  const at = (l, h, j) => attentions[l].data[(h * tokens.length + row) * tokens.length + j];
  const quoted = (token) => (token.startsWith('[') ? token : `“${token}”`);
  const [name, key, query, weight] = [`${layer + 1}.${head + 1}`, quoted(tokens[column]), quoted(tokens[row]), at(layer, head, column)];
  if (!breaks) {
    const most = attentions.every(({ dims }, l) => Array.from({ length: dims[1] }, (_, h) => at(l, h, column)).every((other) => other <= weight));
    const first = tokens.every((_, j) => at(layer, head, j) <= weight);
    const rank = most ? ', more than in any other head' : first ? ', more than from any other token' : '';
    return [`In head ${name}, ${query} takes ${percent(weight)} of what it gathers from ${key}${rank}.`];
  }
  const best = (answer) => Object.entries(answer).reduce((a, b) => (b[1] > a[1] ? b : a));
  const [on, off] = [data.answer(text), data.answer(text, { headMask: data.without(layer * data.heads + head) })].map(best);
  assert.notEqual(on[0], off[0], `“${text}” does not flip any more: node tools/page/find_examples.mjs looks for others`);
  const both = `${on[0]}, ${percent(on[1])} with it; ${off[0]}, ${percent(off[1])} without it.`;
  return [
    `Head ${name} carries ${key} to ${query}${query === '[CLS]' ? ', where the answer is read' : ''}. Switch it off and the answer flips: ${both}`,
    `Head ${name} is off, and the answer has flipped: ${both}`,
  ];
}

export const tests = {
  async 'sentence, map, answer, all heads and their switches are on one screen'({ page, data }) {
    for (const [width, height] of [
      [1280, 800],
      [1920, 1000],
    ]) {
      await page.driver.resize(width, height);
      await page.open(`off=${data.layers * data.heads - 1}`);
      await page.until(`!!document.querySelector('.changed') && ${Object.values(parts).join(' && ')} && true`, 'all parts');
      for (const [what, part] of Object.entries(parts)) {
        const { left, top, right, bottom } = await page.tool(`${part}.getBoundingClientRect().toJSON()`);
        const inside = await page.driver.evaluate(
          `${left} >= 0 && ${top} >= 0 && ${right} <= innerWidth && ${bottom} <= innerHeight && scrollY === 0`,
        );
        assert.ok(inside, `${what} at ${width} × ${height}: ${json({ left, top, right, bottom })}`);
      }
    }
  },
  async 'nothing moves while the page comes'({ page, note, engine }) {
    if (engine !== 'chromium') return note('not told here');
    const sums = [];
    for (const [width, height] of [
      [1280, 800],
      [375, 800],
    ]) {
      await page.driver.resize(width, height);
      await page.open();
      await settled(page);
      const seen = await shifts(page);
      const sum = seen.reduce((all, [value]) => all + value, 0);
      assert.ok(sum < 0.02, `${sum} at ${width}: ${json(seen)}`);
      sums.push(`${sum.toFixed(4)} at ${width}`);
    }
    note(sums.join(', '));
  },
  async 'nothing moves when heads are switched off and on'({ page, data }) {
    await page.driver.resize(1280, 800);
    await page.open();
    await settled(page);
    const places = () =>
      page.tool(`Array.from(document.querySelectorAll('#sentence :is(textarea, select, button, input, canvas, ul.answer, h2), #more-title'), (each) => {
        const { left, top } = each.getBoundingClientRect();
        return text(each) === 'All heads on' || text(each) === 'Undo all' || each.closest('.reading') ? '' : [each.localName, left, top].join(' ');
      }).filter(Boolean)`);
    const before = await places();
    for (let head = 0; head < data.heads; ++head) await page.click('checkbox', `Switch off layer 1, head ${head + 1}`);
    await page.until(
      `/${data.heads > 6 ? `(${data.heads})` : `1\\.${data.heads} off`}/.test(text(document.querySelector('.changed')))`,
      'they are off',
    );
    await page.until("/was/.test(text(find('list', \"The classifier's answer\")))", 'the answer before');
    assert.deepEqual(await places(), before);
  },
  async 'each example opens on its head and its cell, and says what is so'({ page, data }) {
    await page.open();
    const box = "find('combobox', 'Examples')";
    assert.equal(await page.tool(`${box}.querySelectorAll('option:not([hidden])').length`), examples.length);
    for (const [i, example] of examples.entries()) {
      const { layer, head, row, column, text, pair, breaks } = example;
      await page.choose('combobox', 'Examples', String(i));
      const [found, broken] = expectedFinding(example, data);
      await page.until(`document.querySelector('.finding').textContent === ${json(found)}`, found);
      const values = await page.tool("[find('textbox', 'Sentence').value, find('combobox', 'Layer').value, find('combobox', 'Head').value]");
      assert.deepEqual(values, [text, String(layer + 1), String(head + 1)]);
      const tokens = data.tokens(pair === undefined ? text : [[text, pair]]);
      await page.until(`text(document.querySelector('.reading-cell .as-query')) === ${json(tokens[row])}`, 'the row');
      assert.equal(await page.tool("text(document.querySelector('.reading-cell .as-key'))"), tokens[column]);
      if (!breaks) continue;
      await page.click('checkbox', `Switch off layer ${layer + 1}, head ${head + 1}`);
      await page.until(`document.querySelector('.finding').textContent === ${json(broken)}`, broken);
      await page.until("!!document.querySelector('.answer .flipped')", 'the answer has flipped');
    }
    assert.ok(
      examples.some(({ breaks }) => breaks),
      'some are to be broken',
    );
  },
  async 'one link carries an example, broken'({ page, data }) {
    const i = examples.findIndex(({ breaks }) => breaks);
    await page.open();
    await page.choose('combobox', 'Examples', String(i));
    await page.click('button', 'Switch off head');
    await page.until('/off=/.test(location.hash) && /text=/.test(location.hash)', 'the address');
    const hash = await page.driver.evaluate('location.hash.slice(1)');
    await page.open(hash);
    const [, broken] = expectedFinding(examples[i], data);
    await page.until(`document.querySelector('.finding').textContent === ${json(broken)}`, broken);
    assert.equal(await page.tool("find('combobox', 'Examples').value"), String(i));
  },
  async 'where the system says the colours, bars, legend and selection stay'({ page, note }) {
    await page.open('off=0');
    await page.until("!!document.querySelector('.answer-old')", 'the answer before');
    if (!(await page.driver.forced(true))) return note('cannot be seen here');
    try {
      const seen = await page.tool(`(() => {
        const style = (selector) => getComputedStyle(document.querySelector(selector));
        return {
          bar: new Set(['.answer-bar', '.answer-now', '.answer-old'].map((each) => style(each).backgroundColor)).size,
          legend: style('.legend-ramp').backgroundImage,
          chosen: style('.head-card.chosen button').outlineStyle + ' ' + style('.head-card:not(.chosen) button').outlineStyle,
          label: new Set(['.map-rows .active > span', '.map-rows span:not(.active) > span'].map((each) => style(each).backgroundColor)).size,
          cell: style('.map-cell').outlineStyle,
          row: style('.map-band').outlineStyle,
        };
      })()`);
      assert.match(seen.legend, /gradient/);
      assert.deepEqual({ ...seen, legend: '' }, { bar: 3, legend: '', chosen: 'solid none', label: 2, cell: 'solid', row: 'solid' });
    } finally {
      await page.driver.forced(false);
    }
  },
};
