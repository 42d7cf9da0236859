import { readFileSync } from 'node:fs';
import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { repository } from '../support/paths.mjs';
import { packageNumbers } from './data.mjs';
import { json, settled, shifts } from './page.mjs';
import { pageTest } from './fixture.mjs';

const examples = JSON.parse(readFileSync(join(repository, 'web/page/src/state/examples.json'), 'utf8'));

function partsOfTheScreen({ all, find }) {
  const switches = all('checkbox', undefined, ['group', 'Heads as pictures']);
  const parts = {
    'the map': find('grid'),
    'the answer': find('list', "The classifier's answer"),
    'the heads': find('group', 'Heads as pictures'),
    'the first switch': switches[0],
    'the last switch': switches.at(-1),
    'the finding': document.querySelector('.finding'),
    'what is changed': document.querySelector('.changed'),
  };
  if (!Object.values(parts).every(Boolean)) return undefined;
  return Object.entries(parts).map(([name, element]) => {
    const { left, top, right, bottom } = element.getBoundingClientRect();
    const inside = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
    return { name, inside, left, top, right, bottom };
  });
}

const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;

function expectedFinding({ text, pair, layer, head, row, column, breaks }, data) {
  const input = pair === undefined ? text : [[text, pair]];
  const tokens = data.tokens(input);
  const { attentions } = data.forward(input);
  const at = (l, h, j) => attentions[l].data[(h * tokens.length + row) * tokens.length + j];
  const quoted = (token) => (token.startsWith('[') ? token : `“${token}”`);
  const [name, key, query, weight] = [`ayer ${layer + 1}, head ${head + 1}`, quoted(tokens[column]), quoted(tokens[row]), at(layer, head, column)];
  if (!breaks) {
    const most = attentions.every(({ dims }, l) => Array.from({ length: dims[1] }, (_, h) => at(l, h, column)).every((other) => other <= weight));
    const first = tokens.every((_, j) => at(layer, head, j) <= weight);
    const rank = most ? ', more than in any other head' : first ? ', more than on any other token' : '';
    return [`In l${name}, ${query} puts ${percent(weight)} of its weight on ${key}${rank}.`];
  }
  const best = (answer) => Object.entries(answer).reduce((a, b) => (b[1] > a[1] ? b : a));
  const [on, off] = [data.answer(text), data.answer(text, { headMask: data.without(layer * data.heads + head) })].map(best);
  assert.notEqual(on[0], off[0], `“${text}” does not flip any more: node tools/page/find_examples.mjs looks for others`);
  const both = `${on[0]}, ${percent(on[1])} with it; ${off[0]}, ${percent(off[1])} without it.`;
  return [
    `L${name}, carries ${key} to ${query}${query === '[CLS]' ? ', from which the answer is read' : ''}. Switch it off and the answer flips: ${both}`,
    `L${name}, is off, and the answer has flipped: ${both}`,
  ];
}

pageTest('one screen shows map, answer, all heads and their switches', async ({ page }) => {
  const data = await packageNumbers();
  for (const [width, height] of [
    [1280, 800],
    [1920, 1000],
  ]) {
    await page.driver.resize(width, height);
    await page.open(`sentence&off=${data.layers * data.heads - 1}`);
    await page.until(() => document.getElementById('sentence').getBoundingClientRect().top < 100, 'the part in the address');
    for (const part of await page.until(partsOfTheScreen, 'all parts')) assert.ok(part.inside, `at ${width} × ${height}: ${json(part)}`);
  }
});

pageTest('the layout does not shift while the page loads', { engines: 'chromium' }, async ({ page, t }) => {
  const sums = [];
  for (const [width, height] of [
    [1280, 800],
    [375, 800],
  ]) {
    await page.driver.resize(width, height);
    await page.open();
    await page.until(() => !!document.getElementById('proof'), 'the story');
    await page.says(/^Ready/, 'status');
    await sleep(1500); // for whatever else arrives; scrolling would move things
    const seen = await shifts(page);
    const sum = seen.reduce((all, [value]) => all + value, 0);
    assert.ok(sum < 0.02, `${sum} at ${width}: ${json(seen)}`);
    sums.push(`${sum.toFixed(4)} at ${width}`);
  }
  t.diagnostic(sums.join(', '));
});

pageTest('controls stay in place when heads are switched off', async ({ page }) => {
  const data = await packageNumbers();
  for (const width of [1280, 1024, 768, 375]) {
    await page.driver.resize(width, 800);
    await page.open();
    await settled(page);
    const places = () =>
      page.tool(({ text }) =>
        Array.from(document.querySelectorAll('#sentence :is(textarea, select, button, input, canvas, ul.answer, h2), #more-title'), (each) => {
          const { left, top } = each.getBoundingClientRect();
          return text(each) === 'Undo all' || each.closest('.reading') ? '' : [each.localName, left, top + scrollY].join(' ');
        }).filter(Boolean),
      );
    const before = await places();
    for (let head = 0; head < data.heads; ++head) await page.click('checkbox', `Switch off layer 1, head ${head + 1}`);
    await page.until(
      ({ text }, expected) => text('.changed').includes(expected),
      'they are off',
      data.heads > 6 ? `(${data.heads})` : `1.${data.heads} off`,
    );
    await page.says(/was/, 'list', "The classifier's answer");
    assert.deepEqual(await places(), before, `at ${width}`);
  }
});

pageTest('on a phone the reading of a tapped cell is on the screen, and says whether a mask hides it', async ({ page }) => {
  await page.driver.resize(375, 812);
  await page.open('sentence&causal=1');
  await page.until(() => document.getElementById('sentence').getBoundingClientRect().top < 100, 'the part in the address');
  const tap = (x, y) =>
    page.tool(
      ({ find }, across, down) => {
        const { left, top, width, height } = find('grid').getBoundingClientRect();
        find('grid').dispatchEvent(new MouseEvent('click', { bubbles: true, clientX: left + width * across, clientY: top + height * down }));
      },
      x,
      y,
    );
  await tap(0.45, 0.7);
  await page.until(({ text }) => /of the weight of/.test(text('.reading')), 'the reading');
  await tap(0.9, 0.1);
  await page.until(({ text }) => /is hidden by the mask, so/.test(text('.reading')), 'the reading of a hidden cell');
  const [reading, map] = await page.tool(({ find }) =>
    [document.querySelector('.reading').getBoundingClientRect(), find('grid').getBoundingClientRect()].map(({ top, bottom }) => [top, bottom]),
  );
  // WebKitGTK's windows are at least 447 wide, and the map is square.
  const screen = 812 + (await page.evaluate(() => innerWidth)) - 375;
  assert.ok(
    reading[0] > 40 && reading[1] <= map[0] && map[1] <= screen,
    `the reading is above the map, and both are on the screen: ${reading}, ${map}`,
  );
});

pageTest('each example selects its head and cell and states what they show', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  await page.open();
  assert.equal(await page.tool(({ find }) => find('combobox', 'Examples').querySelectorAll('option:not([hidden])').length), examples.length);
  for (const [i, example] of examples.entries()) {
    const { layer, head, row, column, text, pair, breaks } = example;
    await page.choose('combobox', 'Examples', String(i));
    const [found, broken] = expectedFinding(example, data);
    await page.until((_, words) => document.querySelector('.finding').textContent === words, found, found);
    const values = await page.tool(({ find }) => [
      find('textbox', 'Sentence').value,
      find('combobox', 'Layer').value,
      find('combobox', 'Head').value,
    ]);
    assert.deepEqual(values, [text, String(layer + 1), String(head + 1)]);
    const tokens = data.tokens(pair === undefined ? text : [[text, pair]]);
    await page.until(({ text }, token) => text('.reading-cell .as-query') === token, 'the row', tokens[row]);
    assert.equal(await page.tool(({ text }) => text('.reading-cell .as-key')), tokens[column]);
    if (!breaks) continue;
    await page.click('checkbox', `Switch off layer ${layer + 1}, head ${head + 1}`);
    await page.until((_, words) => document.querySelector('.finding').textContent === words, broken, broken);
    await page.until(() => !!document.querySelector('.answer .flipped'), 'the answer has flipped');
  }
  assert.ok(
    examples.some(({ breaks }) => breaks),
    'some are to be broken',
  );
});

pageTest('a link restores an example with its head switched off', { engines: 'chromium' }, async ({ page }) => {
  const data = await packageNumbers();
  const i = examples.findIndex(({ breaks }) => breaks);
  await page.open();
  await page.choose('combobox', 'Examples', String(i));
  await page.click('button', 'Switch off head');
  await page.until(() => /off=/.test(location.hash) && /text=/.test(location.hash), 'the address');
  const hash = await page.hash();
  await page.open(hash);
  const [, broken] = expectedFinding(examples[i], data);
  await page.until((_, words) => document.querySelector('.finding').textContent === words, broken, broken);
  assert.equal(await page.tool(({ find }) => find('combobox', 'Examples').value), String(i));
});

pageTest('bars, legend and selection stay visible with forced colours', { engines: 'chromium' }, async ({ page }) => {
  await page.open('off=0');
  await page.until(() => !!document.querySelector('.answer-old'), 'the answer before');
  assert.ok(await page.driver.forced(true));
  try {
    const seen = await page.evaluate(() => {
      const style = (selector) => getComputedStyle(document.querySelector(selector));
      return {
        bar: new Set(['.answer-bar', '.answer-now', '.answer-old'].map((each) => style(each).backgroundColor)).size,
        legend: style('.legend-ramp').backgroundImage,
        chosen: style('.head-card.chosen button').outlineStyle + ' ' + style('.head-card:not(.chosen) button').outlineStyle,
        label: new Set(['.map-rows .active > span', '.map-rows span:not(.active) > span'].map((each) => style(each).backgroundColor)).size,
        cell: style('.map-cell').outlineStyle,
        row: style('.map-band').outlineStyle,
      };
    });
    assert.match(seen.legend, /gradient/);
    assert.deepEqual({ ...seen, legend: '' }, { bar: 3, legend: '', chosen: 'solid none', label: 2, cell: 'solid', row: 'solid' });
  } finally {
    await page.driver.forced(false);
  }
});
