import { strict as assert } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageNumbers } from './data.mjs';
import { json, ofHead, openDetails, settled } from './page.mjs';
import { pageTest } from './fixture.mjs';

/** Presses Tab until `isThere`, which runs in the page, accepts the focused element; returns the sections passed. */
async function tabTo(page, what, isThere, most = 400) {
  const passed = [];
  for (let i = 0; i < most; ++i) {
    await page.driver.press('Tab');
    const [found, where] = await page.tool(
      (tools, check, wanted) => {
        const { activeElement } = document;
        const place = activeElement.closest('section')?.id ?? activeElement.closest('header, main, footer, body').tagName;
        return [!!check(tools, activeElement, wanted), place];
      },
      isThere,
      what,
    );
    if (where !== passed.at(-1)) passed.push(where);
    if (found) return passed;
  }
  throw new Error(`${what}: not reached by ${most} times Tab; passed ${passed.join(', ')}`);
}
const hasName = ({ nameOf }, element, name) => nameOf(element) === name;
const hasText = ({ text }, element, words) => text(element) === words;

async function openAll(page) {
  await page.open('table=1&numbers=1&step=2&off=1&causal=1&change=2,0.5,scaled_dot,0,0&x=X@3%3D1.5&pair=No, but the acting was brilliant.&locked=1');
  await page.click('tab', 'Similar texts', '#use');
  for (const button of ['Another model', 'Export', 'View similarities as table', 'View alignment as table', 'View map as table']) {
    await page.shows('button', button);
    await page.click('button', button);
  }
  await openDetails(page);
  await page.fill('Word', 'unputdownable', '#words');
  await page.shows('alert', undefined, '#words');
  await settled(page);
}

/** Controls with something else over them. A script's click() and focus() would not notice. */
const covered = (page) =>
  page.tool(({ nameOf, text }) => {
    const found = [];
    for (const each of document.querySelectorAll('button, input, textarea, select, a[href], summary')) {
      if (
        !each.checkVisibility({ visibilityProperty: true }) ||
        each.disabled ||
        each.matches('.visually-hidden, [type=file]') ||
        each.closest('.visually-hidden, .skip')
      )
        continue;
      each.scrollIntoView({ block: 'center', behavior: 'instant' });
      // The longest line of it.
      const { left, top, width, height } = [...each.getClientRects()].sort((a, b) => b.width - a.width)[0];
      const on = document.elementFromPoint(left + width / 2, top + height / 2);
      if (!each.contains(on) && !each.labels?.[0]?.contains(on))
        found.push(`${each.localName} “${nameOf(each) || text(each)}” is under ${on?.localName}.${on?.className}`);
    }
    return found;
  });

pageTest('every control can be reached with the pointer', async ({ page }) => {
  for (const [width, height] of [
    [1280, 800],
    [375, 800],
  ]) {
    await page.driver.resize(width, height);
    await openAll(page);
    assert.deepEqual(await covered(page), [], `at ${width}`);
    await page.openFresh();
    assert.deepEqual(await covered(page), [], `at ${width}, first picture`);
  }
});

const goToStep = async (page, step) => {
  await page.evaluate((index) => document.querySelectorAll('#steps .step-list button')[index].click(), step - 1);
  const hasCome = ({ text }, number) =>
    text('#steps h3').startsWith(`Step ${number} `) && document.querySelectorAll('#steps :is(.step-body table, .step-body p)').length > 0;
  await page.until(hasCome, `step ${step}`, step);
};

pageTest('every control can be reached and used with the keyboard', async ({ page }) => {
  const data = await packageNumbers();
  await page.open('table=1');
  await settled(page);
  const { driver } = page;
  await tabTo(page, 'Skip to the content', hasText, 3);
  await tabTo(page, 'Sentence', hasName);
  await page.evaluate(() => document.activeElement.select());
  await driver.type('All by keyboard.');
  const forward = (options) => ofHead(data.forward('All by keyboard.', options).attentions[1], 3);
  await page.numbers('Attention weights', forward());
  await tabTo(page, 'Word', hasName);
  await tabTo(page, 'Next step', ({ text }, element, words) => element.closest('#example') && text(element) === words);
  await tabTo(page, 'the map', ({ find }, element) => element === find('grid'));
  await driver.press('End');
  const first = await tabTo(page, 'Causal mask', hasName);
  assert.ok(first.includes('heads'), 'all heads are on the way');
  await driver.press(' ');
  await page.numbers('Attention weights', forward({ isCausal: true }));
  await tabTo(page, 'Texts, one per line', hasName);
  await tabTo(page, 'Next step', ({ text }, element, words) => element.closest('#steps') && text(element) === words);
  await driver.press('Enter');
  await page.until(({ text }) => text('#steps h3').startsWith('Step 2 '), 'Enter goes on');
  await tabTo(page, 'Q', hasName);
  await page.evaluate(() => document.activeElement.select());
  await driver.type('[[1,0,0]]');
  await tabTo(page, 'Run attention', hasText);
  await driver.press('Enter');
  await page.until(({ table }) => table('Weights').rows.length === 1, 'the weights of one query');
  await tabTo(page, 'Measure again', hasText);
});

pageTest('axe-core finds no problem in the light theme', async ({ page, engine }) => {
  await openAll(page);
  await page.axe('light');
  // The markup is the same in all browsers.
  for (let step = 1; step <= 13 && engine === 'chromium'; ++step) {
    await goToStep(page, step);
    await page.axe(`light, step ${step}`, '#steps');
  }
});

pageTest('axe-core finds no problem in the dark theme', async ({ page, t }) => {
  await openAll(page);
  if (await page.driver.dark(true)) t.diagnostic('as the system says');
  else await page.click('button', 'Dark theme');
  await page.until(() => document.documentElement.dataset.theme === 'dark', 'the dark theme');
  try {
    await page.axe('dark');
  } finally {
    if (!(await page.driver.dark(false))) await page.click('button', 'Light theme');
    await page.until(() => document.documentElement.dataset.theme === 'light', 'the light theme');
  }
});

pageTest('on a phone nothing is wider than the screen, and axe-core finds no problem', async ({ page, t }) => {
  await page.driver.resize(375, 800);
  await openAll(page);
  const [width, content] = await page.evaluate(() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]);
  t.diagnostic(`${width} pixels`);
  assert.ok(content <= width, `content is ${content} wide, the screen ${width}`);
  await page.axe('phone');
  for (let step = 1; step <= 13; ++step) {
    await goToStep(page, step);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), `step ${step} is not wider`);
  }
  await page.driver.resize(320, 800);
  await page.until(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth, 'nothing wider than a small phone');
});

pageTest('the printed page has the map, no controls, and nothing cut off', async ({ page, t }) => {
  await page.open('step=2&numbers=1');
  await page.shows('table', 'W_Q');
  const commands = [
    'Add a second text',
    'Share',
    'Another model',
    'Export',
    'View as table',
    'Switch off head',
    'Next step',
    'Dark theme',
    'Run attention',
  ];
  const there = () =>
    page.tool(
      ({ all, text, nameOf }, names) => names.filter((name) => all('button').some((each) => text(each) === name || nameOf(each) === name)),
      commands,
    );
  assert.deepEqual(await there(), commands, 'on the screen');
  // Printing may begin at any moment of a new layout for the screen.
  for (const pause of [0, 0, 0, 20, 40, 1000]) {
    await page.driver.print(false);
    await page.driver.resize(1280, 1000);
    await sleep(100);
    await page.driver.resize(718, 1000);
    if (pause > 0) await sleep(pause);
    if (!(await page.driver.print(true))) return t.diagnostic('cannot be seen here');
    await sleep(50);
    const [width, content] = await page.evaluate(() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]);
    assert.ok(content <= width, `content is ${content} wide, the paper ${width}, after ${pause} ms`);
  }
  try {
    assert.deepEqual(await there(), [], 'controls on paper');
    const cut = await page.tool(({ visible }) =>
      Array.from(document.querySelectorAll('main *'))
        .filter((each) => visible(each) && !each.closest('.visually-hidden') && each.clientWidth > 1 && getComputedStyle(each).overflow !== 'visible')
        .filter((each) => each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1)
        .map((each) => (each.closest('section')?.id ?? '') + ' ' + each.tagName + ' ' + each.className),
    );
    assert.deepEqual(cut, [], 'cut off');
    const map = await page.evaluate(() => {
      const canvas = document.querySelector('#focus canvas');
      canvas.scrollIntoView({ block: 'center', behavior: 'instant' });
      const { left, top, width, height } = canvas.getBoundingClientRect();
      const over = document.elementFromPoint(left + width / 2, top + height / 2);
      return { width, height, top: !!over && canvas.parentElement.contains(over), visible: getComputedStyle(canvas).visibility };
    });
    assert.ok(map.width > 200 && map.height > 200 && map.top && map.visible === 'visible', json(map));
  } finally {
    await page.driver.print(false);
  }
});
