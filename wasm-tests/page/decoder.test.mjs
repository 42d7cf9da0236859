/** Decoders: the next word, causal attention, shared keys and values, GGUF files. */
import { strict as assert } from 'node:assert';
import { join } from 'node:path';
import { load } from 'attn';
import { logitLens } from 'attn/lens';
import { repository } from '../support/paths.mjs';
import { assertProblem, bar, drop, filesOf, loadFrom, modelAlert, modelFiles, shows } from './models.mjs';
import { ofHead } from './page.mjs';
import { pageTest } from './fixture.mjs';

const region = '#first';
const text = 'She drank a cup of';

/** The package's numbers for a decoder with int8 weights, as the page loads it. */
async function numbersOf(path) {
  const attn = await load({ variant: 'simd' });
  const model = await attn.loadModel(join(repository, path), { weights: 'int8' });
  const tokens = (of) => model.tokenize(of).tokens[0];
  const attentions = (of) => model.forward(model.tokenize(of), { outputAttentions: true }).attentions;
  /** Weights of the last word in the second layer, in per cent, without special tokens. */
  const shares = (of, head) => {
    const { data } = attentions(of)[1];
    const [encoding, length] = [model.tokenize(of), tokens(of).length];
    const row = data.subarray((head * length + length - 1) * length, (head + 1) * length * length);
    return Array.from(row, (weight) => String(Math.round(100 * weight))).filter((_, i) => encoding.offsets[0][i]);
  };
  return { model, tokens, attentions, shares, next: (of) => model.nextToken(of, { topK: 4 }) };
}

/** Their shares, because signs without ink are quoted. */
const assertGuesses = (page, expected) =>
  page.eventually(async () => {
    const shown = await page.texts('list', 'Guesses', region);
    assert.deepEqual(
      shown.map((each) => /(\d+ %)$/.exec(each)[1]),
      expected.map(({ probability }) => `${Math.round(100 * probability)} %`),
    );
    expected.forEach(({ text: word }, i) => /^ ?\w+$/.test(word) && assert.ok(shown[i].startsWith(`${word.trim()} `), `${shown[i]} is ${word}`));
  });

const reads = (page, pattern, selector) =>
  page.until(({ text: textOf }, expected, of) => expected.test(textOf(of)), `${selector} to say ${pattern}`, pattern, selector);

const weights = (page) =>
  page.tool(({ all, nameOf }) => all('button', undefined, ['group', 'Words']).map((each) => /weight (\d+) %$/.exec(nameOf(each))?.[1] ?? 'hidden'));

pageTest('a decoder shows the next word, and its last word looks only at those before', async ({ page, engine }) => {
  const { next, attentions, tokens, shares, model } = await numbersOf('testdata/models/tiny-gpt2');
  await page.openFresh();
  await loadFrom(page, 'testdata/models/tiny-gpt2/');
  await shows(page, 'tiny-gpt2, 2 × 4 heads');
  await reads(page, /^To find the next word, a Transformer looks at those before\.$/, '#first h1');
  assert.equal(await page.tool(({ find }) => find('textbox', 'Sentence').value), text, 'the example goes up to its blank');
  await assertGuesses(page, await next(text));
  await reads(page, /^The next word$/, '#guess-title');
  await page.eventually(async () => assert.deepEqual(await weights(page), shares(text, 3)));
  assert.deepEqual(await page.texts('group', 'Examples', region), [
    'Try',
    'She drank a cup of …',
    'The boy kicked the …',
    'I went to the …',
    'My mother and my …',
  ]);

  const mask = ({ find }) => [find('checkbox', 'Causal mask').checked, find('checkbox', 'Causal mask').disabled];
  assert.deepEqual(await page.tool(mask), [true, true]);
  await page.click('button', 'View as table');
  const { rows, cells } = await page.numbers('Attention weights', ofHead(attentions(text)[1], 3));
  assert.deepEqual(rows, tokens(text));
  assert.ok(
    cells.every((row, i) => row.every((cell, j) => j <= i || Number(cell) === 0)),
    'a lower triangle',
  );

  await page.fill('Sentence', 'The boy kicked');
  await assertGuesses(page, await next('The boy kicked'));
  await page.click('button', 'The boy kicked the …', region);
  await assertGuesses(page, await next('The boy kicked the'));
  await page.tool(({ all }) => all('button', undefined, ['group', 'Words'])[1].click());
  await reads(page, /^After “/, '#guess-title');
  await page.eventually(async () =>
    assert.ok(
      (await weights(page)).slice(2).every((each) => each === 'hidden'),
      'later words are hidden',
    ),
  );

  await page.click('button', 'Switch this head off', region);
  await reads(page, /^before the change: /, '#first .before');
  await page.click('button', 'Switch this head on', region);
  await page.fill('Sentence', '');
  await reads(page, /There is no text/, '#first .first-about');
  await page.click('button', 'She drank a cup of …', region);
  await assertGuesses(page, await next(text));

  await page.evaluate(() => document.getElementById('layers').scrollIntoView({ behavior: 'instant' }));
  const { predictions } = await logitLens(model, text, { positions: [tokens(text).length - 1], topK: 1 });
  await page.eventually(async () => {
    const shown = await page.texts('list', 'Guesses after each layer');
    assert.deepEqual(
      shown.map((each) => /^.*?(\d+ %)/.exec(each)[1]),
      predictions.map(([[{ probability }]]) => `${Math.round(100 * probability)} %`),
    );
  });
  for (let step = 1; step <= 13; ++step) {
    await reads(page, new RegExp(`^Step ${step} of 13`), '#steps h3');
    if (step < 13) await page.click('button', 'Next step', '#steps');
  }
  const alerts = ({ all, text: textOf }) =>
    all('alert')
      .map(textOf)
      .filter((each) => each && !each.includes('is not one token'));
  assert.deepEqual(await page.tool(alerts), [], 'nothing failed');
  if (engine === 'chromium') await page.axe('with a decoder', region);
  await page.click('tab', 'Similar texts', '#use');
  await reads(page, /Which words correspond\?A decoder reads each word without the words after it/, '#answer-panel');
  await page.lacks('textbox', 'First sentence', '#use');

  await page.until(() => location.hash.includes('model=') && location.hash.includes('tiny-gpt2'), 'the link names the model');
  const link = await page.hash();
  await page.open(link);
  await page.click('button', 'Load it from there', bar);
  await assertGuesses(page, await next(text));
});

pageTest('a GGUF file is a model, and heads that share keys and values show their own numbers', async ({ page }) => {
  const { next, shares } = await numbersOf('testdata/gguf/tiny-llama.gguf');
  await page.openFresh();
  await drop(page, [['tiny-llama.gguf', { url: 'testdata/gguf/tiny-llama.gguf' }]]);
  await shows(page, 'tiny-llama.gguf, 2 × 4 heads');
  await assertGuesses(page, await next(text));
  for (const head of [0, 1, 2, 3]) {
    await page.click('button', `Head ${head + 5} of 8`, region);
    await page.eventually(async () => assert.deepEqual(await weights(page), shares(text, head)));
  }
  await page.click('button', 'Back to the mask model', bar);
  await reads(page, /^To fill a blank/, '#first h1');
  assert.equal(await page.tool(({ find }) => find('textbox', 'Sentence').value), 'She drank a cup of ________.');
  await loadFrom(page, 'testdata/gguf/tiny-llama.gguf');
  await shows(page, 'tiny-llama.gguf, 2 × 4 heads');
  await assertGuesses(page, await next(text));
});

pageTest('a decoder that is too large, or of another kind, raises an alert that says why', { engines: 'chromium' }, async ({ page }) => {
  await page.openFresh();
  await page.shows('textbox', 'Model', bar);
  const config = { model_type: 'llama', architectures: ['LlamaForCausalLM'], hidden_size: 4096, num_hidden_layers: 80, num_attention_heads: 32 };
  const sizes = { intermediate_size: 14336, vocab_size: 318, max_position_embeddings: 64, rms_norm_eps: 1e-6, hidden_act: 'silu' };
  const others = modelFiles.filter((file) => file !== 'config.json');
  const withConfig = (settings) => filesOf('tiny-llama', others, { 'config.json': JSON.stringify(settings) });
  await drop(page, withConfig({ ...config, ...sizes }));
  await assertProblem(page, /too large: it needs more of memory, and a page can use at most 4\.3 GB.*smaller model/s);
  await drop(page, withConfig({ ...config, ...sizes, model_type: 'mamba', architectures: ['MambaForCausalLM'] }));
  assert.match(await page.says(/mamba/, ...modelAlert), /kind of model, mamba, .*decoders of the families GPT-2/s);
  await page.says(/./, 'list', 'Guesses', region);
});
