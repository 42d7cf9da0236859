import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from 'attn';
import { logitLens } from 'attn/lens';
import { repository } from '../support/paths.mjs';
import { sentence as filmSentence } from './data.mjs';
import { bar, loadFrom, shows } from './models.mjs';
import { shifts } from './page.mjs';
import { pageTest } from './fixture.mjs';

const cup = 'She drank a cup of [MASK].';
const region = '#first';

let numbers;
/** The package's numbers for the page's mask model. */
const maskNumbers = () => (numbers ??= compute());
async function compute() {
  const attn = await load({ variant: 'simd' });
  const model = await attn.loadModel(join(repository, 'testdata/models/masks'), { weights: 'int8' });
  const [layers, heads] = [3, 4];
  const tokens = (text) => model.tokenize(text).tokens[0];
  /** The row of one query in one head: scores and weights by token. */
  const rowOf = (text, layer, head, query) => {
    const trace = model.forward(model.tokenize(text), { trace: { layers: [layer] }, outputLogits: false }).trace.get(layer);
    const length = tokens(text).length;
    const row = ({ data }) => Array.from(data.subarray((head * length + query) * length, (head * length + query + 1) * length));
    return { scores: row(trace.masked_scores), weights: row(trace.weights) };
  };
  const guesses = async (text) => (await model.fillMask(text, { topK: 4 }))[0].map(({ token, score }) => [token, score]);
  /** Without one head: from the logits, because fillMask has no mask of heads. */
  const guessesWithout = (text, off) => {
    const data = Float32Array.from({ length: layers * heads }, (_, i) => Number(i !== off));
    const { logits } = model.forward(model.tokenize(text), { headMask: { data, dims: [layers, heads] } });
    const [, , width] = logits.dims;
    const at = tokens(text).indexOf('[MASK]') * width;
    const { data: shares } = attn.softmax({ data: logits.data.slice(at, at + width), dims: [1, width] });
    return Array.from(shares, (share, id) => [model.idToToken(id), share])
      .sort((a, b) => b[1] - a[1])
      .slice(0, 4);
  };
  const lens = async (text) => {
    const { predictions } = await logitLens(model, text, { positions: [tokens(text).indexOf('[MASK]')], topK: 3 });
    return predictions.map(([best]) => best.map(({ token, probability }) => [token, probability]));
  };
  return { tokens, rowOf, guesses, guessesWithout, lens };
}

const written = (list) => list.map(([word, share]) => `${word} ${Math.round(100 * share)} %`);
const shownGuesses = (page) => page.texts('list', 'Guesses');
const assertGuesses = (page, expected) => page.eventually(async () => assert.deepEqual(await shownGuesses(page), written(expected)));
/** [label, score, weight] of each column. */
const columns = (page) =>
  page.tool(({ all, nameOf }) =>
    all('button', undefined, ['group', 'Words']).map((each) => /^(.*): score (.*), weight (.*) %$/.exec(nameOf(each)).slice(1)),
  );

async function assertColumns(page, text, layer, head, query) {
  const { rowOf, tokens } = await maskNumbers();
  const { scores, weights } = rowOf(text, layer, head, query);
  const expected = tokens(text)
    .map((token, i) => [token, scores[i].toFixed(1).replace('-0.0', '0.0'), String(Math.round(100 * weights[i]))])
    .slice(1, -1);
  await page.eventually(async () => assert.deepEqual(await columns(page), expected));
}

pageTest('the first picture shows the numbers of the mask model, and the whole of it fits the screen', async ({ page, t }) => {
  const { guesses, tokens } = await maskNumbers();
  await page.driver.resize(1280, 800);
  await page.openFresh();
  await assertColumns(page, cup, 1, 3, tokens(cup).indexOf('[MASK]'));
  await assertGuesses(page, await guesses(cup));
  const [first, second] = await guesses(cup);
  assert.ok(first[1] > second[1] && first[0] === 'tea');
  const bottoms = await page.tool(({ find, all }) => ({
    sentence: find('textbox', 'Sentence').getBoundingClientRect().bottom,
    guesses: find('list', 'Guesses').getBoundingClientRect().bottom,
    examples: find('group', 'Examples').getBoundingClientRect().bottom,
    dots: find('group', 'Head dots').getBoundingClientRect().bottom,
    play: find('button', 'Play the steps').getBoundingClientRect().bottom,
    dotCount: all('button', undefined, ['group', 'Head dots']).length,
    exampleCount: all('button', undefined, ['group', 'Examples']).length,
    screen: innerHeight,
  }));
  const { screen, dotCount, exampleCount, ...places } = bottoms;
  for (const [name, bottom] of Object.entries(places)) assert.ok(bottom > 0 && bottom <= screen, `${name}: ${bottom}`);
  assert.deepEqual([dotCount, exampleCount], [12, 4]);
  const stops = await page.evaluate(
    () =>
      Array.from(document.querySelectorAll(':is(.masthead, #first) :is(a, button, input, textarea, select)')).filter(
        (each) => each.tabIndex >= 0 && !each.disabled && each.getClientRects().length > 0 && each.getBoundingClientRect().top < innerHeight,
      ).length,
  );
  t.diagnostic(`${stops} tab stops in the first screen`);
  assert.ok(stops <= 14, `${stops} tab stops`);
});

pageTest('the sentence is edited in place; blanks are written as underscores', async ({ page }) => {
  const { guesses, tokens } = await maskNumbers();
  await page.openFresh();
  await page.fill('Sentence', 'The dog chased the ___.', region);
  const text = 'The dog chased the [MASK].';
  await assertGuesses(page, await guesses(text));
  await assertColumns(page, text, 1, 3, tokens(text).indexOf('[MASK]'));
  assert.match(await page.tool(({ find }) => find('textbox', 'Sentence').value), /^The dog chased the _+\.$/);
  await page.until(() => /model=masks&text=The\+dog\+chased\+the\+%5BMASK%5D/.test(location.hash), 'the address');
  const hash = await page.hash();
  await page.open(hash);
  await assertGuesses(page, await guesses(text));
  for (const written of ['The cat sat on the _', 'She fell off the ___']) {
    await page.fill('Sentence', written, region);
    const closed = `${written.replace(/_+/, '[MASK]')}.`;
    await assertGuesses(page, await guesses(closed));
    assert.match(
      await page.tool(({ find }) => find('textbox', 'Sentence').value),
      /^[A-Z].* _{5,}\.$/,
      'a full stop behind a blank that ends the text',
    );
  }
});

pageTest('the pointer over the words does not ask for them while the visitor writes', { engines: 'chromium' }, async ({ page }) => {
  const { guesses } = await maskNumbers();
  await page.openFresh();
  // Pointing at a word makes it the query, and a click there begins the writing.
  await page.tool(({ all, nameOf, find }) => {
    const { left, top, width } = all('button', undefined, ['group', 'Words'])
      .find((each) => nameOf(each).startsWith('drank:'))
      .getBoundingClientRect();
    const at = { clientX: left + width / 2, clientY: top + 20, bubbles: true, pointerType: 'mouse' };
    document.querySelector('.first-words').dispatchEvent(new PointerEvent('pointermove', at));
    find('textbox', 'Sentence').focus();
  });
  await page.fill('Sentence', 'The capital of France is ___.', region);
  await assertGuesses(page, await guesses('The capital of France is [MASK].'));
  assert.equal(await page.evaluate(() => document.querySelector('#guess-title').textContent), 'Its guess');
  await page.driver.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'BODY');
});

pageTest('a sentence without a blank gets one at its end', async ({ page }) => {
  const { guesses } = await maskNumbers();
  await page.openFresh();
  await page.fill('Sentence', 'He drank a glass of.', region);
  await page.click('button', 'add a blank at the end', region);
  await assertGuesses(page, await guesses('He drank a glass of [MASK].'));
  await page.lacks('button', 'add a blank at the end');
  // The model has not read the last letters when the button is clicked.
  await page.fill('Sentence', 'The boy kicked', region);
  await page.shows('button', 'add a blank at the end', region);
  await page.tool(({ find }) => {
    const field = find('textbox', 'Sentence');
    field.value = 'The boy kicked the';
    field.dispatchEvent(new Event('input', { bubbles: true }));
    find('button', 'add a blank at the end').click();
  });
  await assertGuesses(page, await guesses('The boy kicked the [MASK].'));
  await page.fill('Sentence', '', region);
  await page.until(({ text }) => text('#first [role=note]').startsWith('There is no text'), 'the note');
  assert.doesNotMatch(await page.evaluate(() => document.querySelector('#first').textContent), /“”/);
});

/** The names of the map's rows, whose size depended on the room that they left, once moved it to and fro for ever. */
pageTest('a sentence of any length can be written', { engines: 'chromium' }, async ({ page }) => {
  await page.openFresh();
  const long = 'Antidisestablishmentarianism is not a ___ idea, although nobody in the whole village could explain why it mattered.';
  for (let end = 80; end <= long.length; ++end) {
    await page.fill('Sentence', long.slice(0, end), region);
    await page.until(({ find }, text) => find('textbox', 'Sentence').value.length === text.length + 5, `${end} letters`, long.slice(0, end));
  }
});

pageTest('deleting a part of a blank deletes the blank', { engines: 'chromium' }, async ({ page }) => {
  await page.openFresh();
  await page.tool(({ find }) => {
    const field = find('textbox', 'Sentence');
    field.focus();
    field.setSelectionRange(field.value.length - 1, field.value.length - 1);
  });
  await page.driver.press('Backspace');
  await page.until(({ find }) => find('textbox', 'Sentence').value === 'She drank a cup of .', 'the blank is gone');
  for (const key of ['_', '_', '_']) await page.driver.type(key);
  await page.until(({ find }) => /^She drank a cup of _{5,}\.$/.test(find('textbox', 'Sentence').value), 'a new blank');
  assert.equal(await page.tool(({ find }) => find('textbox', 'Sentence').selectionStart === find('textbox', 'Sentence').value.length - 1), true);
});

pageTest('each example fills its blank, and a head can be chosen and switched off', async ({ page }) => {
  const { guesses, guessesWithout, tokens } = await maskNumbers();
  await page.openFresh();
  for (const [name, text] of [
    ['The boy kicked the ___', 'The boy kicked the [MASK].'],
    ['I went to the ___ to buy some bread', 'I went to the [MASK] to buy some bread.'],
    ['My mother and my ___ came home', 'My mother and my [MASK] came home.'],
    ['She drank a cup of ___', cup],
  ]) {
    await page.click('button', name, region);
    await assertGuesses(page, await guesses(text));
    await assertColumns(page, text, 1, 3, tokens(text).indexOf('[MASK]'));
  }
  await page.click('button', 'Head 5 of 12', region);
  await assertColumns(page, cup, 1, 0, tokens(cup).indexOf('[MASK]'));
  await page.until(({ text }) => /^Head 5 of 12 looks at the word before \(/.test(text('.first-caption')), 'the caption');
  await page.click('button', 'Switch this head off', region);
  await assertGuesses(page, guessesWithout(cup, 4));
  await page.until(({ text }) => /before the change: tea 35 %/.test(text('.first-guess')), 'the guess before');
  const was = (await guesses(cup)).map(([word, share]) => [word, `was ${Math.round(100 * share)} %`]);
  const shown = await page.evaluate(() =>
    Array.from(document.querySelectorAll('.first-guess li'), (each) => [
      each.querySelector('.guess-word').textContent,
      each.querySelector('.guess-share').dataset.was,
    ]),
  );
  for (const [word, before] of was) for (const [other, written] of shown) if (word === other) assert.equal(written, before, word);
  assert.ok(shown.every(([, written]) => /^was \d+ %$/.test(written)));
  await page.click('button', 'Switch this head on', region);
  await assertGuesses(page, await guesses(cup));
  await page.click('button', 'Head 8 of 12', region);
  await page.click('button', 'Switch this head off', region);
  await page.until(({ text }) => /is off; 5 other heads look at these words too/.test(text('.first-caption')), 'the other heads');
  await page.click('button', 'Switch this head on', region);
});

pageTest('pointing at a word makes it the query, and its guess is for a blank in its place', { engines: 'chromium' }, async ({ page }) => {
  const { guesses, tokens } = await maskNumbers();
  await page.openFresh();
  const point = (word, type, down = 110) =>
    page.tool(
      ({ all, nameOf }, wanted, event, below) => {
        const words = document.querySelector('.first-words');
        const { left, width } = all('button', undefined, ['group', 'Words'])
          .find((each) => nameOf(each).startsWith(`${wanted}:`))
          .getBoundingClientRect();
        const clientY = words.getBoundingClientRect().top + below;
        words.dispatchEvent(new PointerEvent(event, { clientX: left + width / 2, clientY, bubbles: true, pointerType: 'mouse' }));
      },
      word,
      type,
      down,
    );
  await point('drank', 'pointermove');
  await assertColumns(page, cup, 1, 3, tokens(cup).indexOf('drank'));
  await page.until(({ text }) => text('#guess-title') === 'If “drank” were blank', 'the title');
  // Both blanks: the guess for the first.
  await assertGuesses(page, await guesses('She [MASK] a cup of [MASK].'));
  await page.until(({ text }) => text('.first-onward') === 'another run, with the word hidden', 'that the guess is not from this sum');
  await point('drank', 'pointerleave');
  await assertGuesses(page, await guesses(cup));
  // The numbers below a word stay while they are read.
  await point('drank', 'pointermove', 290);
  await sleep(300);
  await assertColumns(page, cup, 1, 3, tokens(cup).indexOf('[MASK]'));
  // Not while the visitor writes.
  await page.tool(({ find }) => find('textbox', 'Sentence').focus());
  await point('drank', 'pointermove');
  await sleep(300);
  assert.equal(await page.evaluate(() => document.querySelector('#guess-title').textContent), 'Its guess');
});

pageTest('the steps play, stop and are reached one by one', async ({ page }) => {
  await page.openFresh();
  await page.click('button', 'Play the steps');
  await page.shows('group', 'Steps');
  const isCurrent = (step) =>
    page.until(
      ({ all }, number) =>
        document.querySelector('.first-figure').dataset.step === String(number) &&
        all('button').some((each) => each.ariaCurrent === 'step' || each.getAttribute('aria-current') === 'step'),
      `step ${step}`,
      step,
    );
  await isCurrent(3);
  await isCurrent(5);
  await page.click('button', 'Done');
  await page.lacks('group', 'Steps');
  await page.shows('group', 'Examples');
  await page.click('button', 'Play the steps');
  await page.click('button', 'Pause');
  await page.click('button', 'Next');
  await isCurrent(2);
  await page.driver.resize(375, 800);
  const isShown = (wanted) =>
    page.until((_, is) => (getComputedStyle(document.querySelector('.first-steps')).display !== 'none') === is, `steps ${wanted}`, wanted);
  await isShown(true);
  await page.evaluate(() => document.scrollingElement.scrollTo({ top: 3000, behavior: 'instant' }));
  await isShown(false);
  await page.evaluate(() => document.scrollingElement.scrollTo({ top: 0, behavior: 'instant' }));
  await isShown(true);
  await page.driver.resize(1280, 800);
  await page.click('button', 'Done');
  // Numbers that were counted up follow the picture again.
  await page.evaluate(() => document.querySelector('.first-columns [aria-label^="of:"]').click());
  await page.eventually(async () => {
    const shown = await page.evaluate(() => Array.from(document.querySelectorAll('.first-drawing .weight'), (each) => each.textContent));
    assert.deepEqual(
      shown,
      (await columns(page)).map(([, , weight]) => `${weight} %`),
    );
  });
  await page.click('button', 'Play the steps');
  for (const [step, name] of [
    [5, 'The guess'],
    [1, 'The query meets the keys'],
    [4, 'Values flow'],
    [2, 'Scores'],
  ]) {
    await page.click('button', `Step ${step}: ${name}`);
    await isCurrent(step);
  }
  await sleep(1500);
  await isCurrent(2);
  const pale = await page.evaluate(() => [
    getComputedStyle(document.querySelector('.first-guess')).opacity,
    getComputedStyle(document.querySelector('g.step-2')).opacity,
  ]);
  assert.ok(Number(pale[0]) < 0.2 && Number(pale[1]) === 1, String(pale));
  await page.driver.press('Escape');
  await page.click('button', 'Done');
  await page.lacks('group', 'Steps');
});

pageTest('each part has an address, which is kept, works with Back and is marked in the navigation', async ({ page }) => {
  const top = (id) => page.evaluate((name) => document.getElementById(name).getBoundingClientRect().top, id);
  // The last place may be too short to reach the top.
  const isAt = (id) =>
    page.until(
      (_, name) => {
        const { top } = document.getElementById(name).getBoundingClientRect();
        const isAtEnd = scrollY + innerHeight > document.documentElement.scrollHeight - 2;
        return Math.abs(top - 64) < 40 || (isAtEnd && top > 0 && top < innerHeight);
      },
      `#${id}`,
      id,
    );
  await page.open('train');
  await isAt('train');
  await page.until(({ text }) => text('nav [aria-current]') === 'Training', 'the mark');
  await sleep(600);
  assert.match(await page.hash(), /^train$/);
  await page.fill('Sentence', 'He read the ___.', region);
  await page.until(() => /^#train&model=masks&text=He/.test(location.hash), 'part and state');
  await page.evaluate(() => document.querySelector('nav a[href="#numbers"]').click());
  await isAt('numbers');
  await page.until(() => /^#numbers&model=masks&text=He/.test(location.hash), 'the new part');
  await page.evaluate(() => globalThis.history.back());
  await isAt('train');
  await page.until(() => /^#train&model=masks&text=He/.test(location.hash), 'the text stays');
  assert.ok((await top('first')) < 0);
  for (const id of ['words', 'one', 'all', 'many', 'layers', 'answer', 'numbers', 'example', 'sentence', 'use', 'steps', 'lab', 'proof']) {
    await page.evaluate((name) => (location.hash = name), id);
    await isAt(id);
  }
  assert.deepEqual(await page.tool(({ text }) => Array.from(document.querySelectorAll('h2.part-title'), text)), [
    '1 Words become numbers',
    '2 One word asks',
    '3 All words at once',
    '4 Many heads',
    '5 Add, normalise, think; then again',
    '6 From rows to an answer',
    '7 Nobody told it',
    '8 Every number',
  ]);
});

pageTest("the guesses after each layer are the package's, and change with the sentence", { engines: 'chromium' }, async ({ page }) => {
  const { lens } = await maskNumbers();
  await page.open('layers');
  const rows = () =>
    page.tool(({ find, text }) =>
      Array.from(find('list', 'Guesses after each layer', '#layers').children, (row) => Array.from(row.querySelectorAll('.layer-guess'), text)),
    );
  const assertRows = (expected) => page.eventually(async () => assert.deepEqual(await rows(), expected.map(written)));
  await page.shows('list', 'Guesses after each layer', '#layers');
  await assertRows(await lens(cup));
  await page.axe('layers', '#layers');
  await page.click('button', 'The boy kicked the ___', region);
  await assertRows(await lens('The boy kicked the [MASK].'));
  await page.click('button', 'Change to the sentiment classifier', '#sentence');
  await page.shows('button', 'Change to the mask model', '#layers');
});

pageTest('a link without a model still means the sentiment classifier', async ({ page }) => {
  await page.open('head=1');
  assert.match(await page.text('list', 'Guesses'), /(positive|negative) \d+ %/);
  assert.equal(await page.tool(({ find }) => find('textbox', 'Sentence').value), filmSentence);
  await page.until(() => /^#model=sentiment&head=1$/.test(location.hash), 'the model is named from now on');
  await page.click('button', 'The boy kicked the ___', region);
  await assertGuesses(page, await (await maskNumbers()).guesses('The boy kicked the [MASK].'));
});

pageTest('of a model with many heads the dots show one layer, and they fit the screen', async ({ page }) => {
  await page.driver.resize(1280, 800);
  await page.openFresh();
  await page.click('button', 'Show it with a reaction');
  const dots = () => page.tool(({ all, nameOf }) => all('button', undefined, ['group', 'Head dots']).map(nameOf));
  const areOf = (layer) =>
    page.eventually(async () =>
      assert.deepEqual(
        await dots(),
        Array.from({ length: 8 }, (_, i) => `Head ${8 * layer + i + 1} of 96`),
      ),
    );
  await areOf(10);
  await page.until(({ text }) => /^‹ ?Layer 11 of 12 ?›$/.test(text('.head-layer')), 'the layer');
  const { bottom, screen } = await page.tool(({ find }) => ({
    bottom: find('group', 'Head dots').getBoundingClientRect().bottom,
    screen: innerHeight,
  }));
  assert.ok(bottom <= screen, `${bottom} of ${screen}`);
  await page.click('button', 'Layer before', region);
  await areOf(9);
  await page.click('button', 'Head 74 of 96', region);
  await page.until(({ text }) => /^Head 74 of 96 /.test(text('.first-caption')), 'the caption');
  await page.until(() => /layer=10&head=2/.test(location.hash), 'the head in the address');
});

pageTest('a model that fills no blank gets whole sentences, and stays loaded', async ({ page }) => {
  await page.openFresh();
  await page.shows('textbox', 'Model', bar);
  await loadFrom(page, 'testdata/models/tiny-bert-cls/');
  await shows(page, 'tiny-bert-cls');
  const isText = (text) => page.until(({ find }, expected) => find('textbox', 'Sentence').value === expected, text, text);
  await isText('She drank a cup of coffee.');
  assert.match(await page.tool(({ text }) => text('#first h1')), /^To understand a word/);
  await page.click('button', 'The boy kicked the ball', region);
  await isText('The boy kicked the ball.');
  await shows(page, 'tiny-bert-cls');
  await page.click('button', 'Back to the mask model', bar);
  await isText('The boy kicked the ________.');
});

pageTest('the first screen moves nothing while it loads, and axe-core finds no problem', { engines: 'chromium' }, async ({ page, t }) => {
  for (const [width, height] of [
    [1280, 800],
    [768, 1024],
    [375, 800],
    [320, 700],
  ]) {
    await page.driver.resize(width, height);
    await page.openFresh();
    const seen = await shifts(page);
    const sum = seen.reduce((all, [value]) => all + value, 0);
    t.diagnostic(`${sum.toFixed(4)} at ${width}`);
    assert.ok(sum < 0.02, `${sum} at ${width}: ${JSON.stringify(seen)}`);
    assert.ok(
      await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth),
      `nothing is wider than ${width}`,
    );
    await page.axe(`at ${width}`, region);
  }
  await page.driver.resize(1280, 800);
  await page.driver.dark(true);
  await page.openFresh();
  await page.axe('dark', region);
  await page.click('button', 'Play the steps');
  await page.click('button', 'Step 5: The guess');
  await page.axe('steps', region);
  await page.driver.dark(false);
});

pageTest('notes about the text, switches and messages move nothing, and messages are on the screen', async ({ page }) => {
  for (const [width, height] of [
    [1280, 800],
    [375, 812],
  ]) {
    await page.driver.resize(width, height);
    await page.openFresh();
    await page.until(() => !!document.querySelector('.words-map circle'), 'the map of words');
    const places = () =>
      page.evaluate(() =>
        Array.from(document.querySelectorAll('.first-figure, .first-foot, #sentence'), (each) => each.getBoundingClientRect().top + scrollY),
      );
    // Fonts and the parts of the story may still arrive.
    let before = [];
    for (let now = await places(); now.join() !== before.join(); now = await places()) {
      before = now;
      await sleep(500);
    }
    await page.fill('Sentence', 'She drank a cup \u{1F525} [MASK].', region);
    await page.until(({ text }) => /does not know 1 of these/.test(text('#first [role=note]')), 'the note');
    assert.deepEqual(await places(), before, `the note at ${width}`);
    await page.click('button', 'She drank a cup of ___', region);
    await page.until(() => !document.querySelector('#first [role=note]'), 'no note');
    await page.click('button', 'Switch this head off', region);
    await page.until(({ text }) => /before the change:/.test(text('.first-guess')), 'the guess before');
    assert.deepEqual(await places(), before, `the switch at ${width}`);
  }
  await page.click('button', 'Export');
  await page.click('button', 'CSV');
  const { top, bottom, screen } = await page.until(({ find, text }) => {
    const { top, bottom, width } = find('status').getBoundingClientRect();
    return /^Saved .*\.csv\.$/.test(text(find('status'))) && width > 50 && { top, bottom, screen: innerHeight };
  }, 'the message');
  assert.ok(top >= 0 && bottom <= screen);
});

pageTest('after typing, loading a model and changing the head, the focus is on the strongest link between two words', async ({ page }) => {
  await page.openFresh();
  const focus = () => page.tool(({ text }) => [text('.reading-cell .as-query'), text('.reading-cell .as-key')]);
  const isAt = (expected) => page.eventually(async () => assert.deepEqual(await focus(), expected));
  await isAt(['[MASK]', 'cup']);
  await page.fill('Sentence', 'The boy kicked the ___.', region);
  await isAt(['[MASK]', 'kicked']);
  await page.click('button', 'Head 5 of 12', region);
  await isAt(['[MASK]', 'the']);
  await page.click('button', 'Change to the sentiment classifier', '#sentence');
  await page.until(({ find }) => find('textbox', 'Sentence').value.startsWith('A film'), 'a sentence without a blank');
  await page.eventually(async () => {
    const [from, to] = await focus();
    assert.ok(from && to && from !== to && ![from, to].some((each) => each.startsWith('[')), `${from} to ${to}`);
  });
});

pageTest('the first picture takes at most 2 MB besides the module', { engines: 'chromium' }, async ({ page, t }) => {
  await page.visit('');
  await page.until(() => document.documentElement.dataset.ready === 'true', 'the first picture');
  // The worker requests the module, whose size depends on the build; the parts below follow.
  const sizes = await page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .filter(({ name, startTime }) => startTime < attnProbe.ready && !/\/probe\.js$/.test(name))
      .map(({ name, decodedBodySize }) => [new URL(name).pathname, decodedBodySize]),
  );
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  t.diagnostic(`${(total / 1e6).toFixed(2)} MB in ${sizes.length} requests`);
  for (const each of [/\.safetensors$/, /\/tokenizer-[^/]*\.json$/, /\/worker-host-[^/]*\.js$/, /\/index-[^/]*\.js$/, /\.css$/])
    assert.ok(
      sizes.some(([path, size]) => each.test(path) && size > 0),
      `${each} is seen`,
    );
  assert.ok(total <= 2e6, JSON.stringify(sizes));
});
