/** Tests attn generate and attn score of the npm package and the native build. Needs web/lib/dist and build/native. */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { load } from 'attn';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { bert, both, bothWith, controls, hostileGpt2, programs, removeWork, run, shown, work } from './programs.mjs';

const gpt2 = at('testdata/models/tiny-gpt2');
const text = 'The old man';
let attn, model;
before(async () => {
  attn = await load({ threads: 1, variant: 'simd' });
  model = await attn.loadModel(gpt2);
});
after(async () => {
  await attn.dispose();
  removeWork();
});

const ok = (stdout) => ({ status: 0, stdout, stderr: '' });

test('generate: both programs stream and print the text of the package, greedy or drawn, up to a stop string', limit, async () => {
  const greedy = await model.generate(text, { maxNewTokens: 12 });
  assert.deepEqual(both('generate', gpt2, text, '--max-new-tokens', '12'), ok(`${shown(greedy.text)}\n`));
  const { finishReason, ...rest } = greedy;
  assert.deepEqual(JSON.parse(both('generate', gpt2, text, '--max-new-tokens=12', '--json').stdout), { ...rest, finish_reason: finishReason });

  const drawn = { maxNewTokens: 40, doSample: true, temperature: 0.8, topK: 50, topP: 0.95, minP: 0.01, repetitionPenalty: 1.2, seed: 3 };
  const options = ['--max-new-tokens', '40', '--temperature', '0.8', '--top-k', '50', '--top-p', '.95', '--min-p', '0.01', '--seed', '3'];
  const more = [...options, '--repetition-penalty', '1.2'];
  const whole = (await model.generate(text, drawn)).text;
  assert.equal(both('generate', gpt2, text, ...more).stdout, `${shown(whole)}\n`);
  // A stop string that spans tokens, after an earlier start of it that came to nothing.
  const stop = [whole.slice(9, 15), `${whole[2]}${whole[3]}not`];
  const stopped = await model.generate(text, { ...drawn, stop });
  assert.deepEqual([stopped.text, stopped.finishReason], [whole.slice(0, whole.indexOf(stop[0])), 'stop']);
  assert.equal(both('generate', gpt2, text, ...more, '--stop', stop[0], `--stop=${stop[1]}`).stdout, `${shown(stopped.text)}\n`);
});

test('score: both programs print the log probability of each token, the total and the perplexity of the package', limit, async () => {
  const { tokens, perplexity } = await model.scoreTokens(text);
  const { stdout } = bothWith(`${text}\n`, 'score', gpt2, '-', '--json');
  assert.equal(both('score', gpt2, text, '--json').stdout, stdout);
  const scored = JSON.parse(stdout);
  const total = tokens.reduce((sum, { logProbability }) => sum + (logProbability ?? 0), 0);
  assert.deepEqual([scored.log_probability, scored.perplexity].map(Math.fround), [total, perplexity].map(Math.fround));
  assert.deepEqual(
    scored.tokens.map(({ log_probability, entropy, ...each }) => ({ ...each, numbers: [log_probability, entropy].map(Math.fround) })),
    tokens.map(({ logProbability, entropy, ...each }) => ({ ...each, numbers: [logProbability, entropy].map(Math.fround) })),
  );
  const rows = scored.tokens.map(({ token, log_probability }) => `${log_probability ?? '-'}\t${token}\n`);
  const sums = `${scored.log_probability}\ttotal\n${scored.perplexity}\tperplexity\n`;
  assert.equal(both('score', gpt2, text).stdout, rows.join('') + sums);
});

test('generate and score: a .gguf file natively, a closed pipe, and errors for an encoder and for text that is not UTF-8', limit, () => {
  const file = at('testdata/gguf/tiny-gpt2.gguf');
  for (const command of ['generate', 'score'])
    assert.deepEqual(run('native', command, file, text, '--json'), run('native', command, gpt2, text, '--json'));
  const piped = spawnSync('sh', ['-c', '"$@" | head -c 1', 'sh', ...programs.native, 'generate', gpt2, text], { encoding: 'utf8', cwd: work });
  assert.deepEqual([piped.status, piped.stdout.length, piped.stderr], [0, 1, '']);
  const wrong = 'attn: MODEL is for text-classification, expected one for text-generation\n';
  assert.deepEqual(both('generate', bert, text), { status: 1, stdout: '', stderr: wrong });
  assert.deepEqual(bothWith(Buffer.from([0xff]), 'score', gpt2, '-'), { status: 1, stdout: '', stderr: 'attn: TEXT is not UTF-8\n' });
});

test('generate and score: both programs escape the control characters of tokens and texts', limit, async () => {
  const { folder, attacks, text: prompt } = hostileGpt2();
  const hostile = await attn.loadModel(folder);
  const printed = (...args) => {
    const { status, stdout, stderr } = both(...args);
    assert.deepEqual([status, stderr], [0, '']);
    assert.doesNotMatch(stdout, controls);
    return stdout;
  };
  const made = await hostile.generate(prompt, { maxNewTokens: 40, doSample: true, seed: 1 });
  for (const attack of attacks) assert.ok(made.text.includes(attack), `nothing to escape: ${JSON.stringify(made.text)}`);
  const options = ['--max-new-tokens', '40', '--seed', '1'];
  const streamed = printed('generate', folder, prompt, ...options);
  assert.equal(streamed, `${shown(made.text)}\n`);
  for (const escaped of ['\\u001b[2J', '\\u001b]0;owned\\u0007', '\\u009b31m', '\\u202e', '\\u2066', '\\u007f'])
    assert.ok(streamed.includes(escaped), escaped);
  const json = JSON.parse(printed('generate', folder, prompt, ...options, '--json'));
  assert.deepEqual([json.text, json.tokens], [made.text, made.tokens]);

  const { tokens } = await hostile.scoreTokens(prompt);
  const names = tokens.map(({ token }) => token);
  for (const attack of attacks)
    assert.ok(
      names.some((token) => token.startsWith(attack)),
      `nothing to escape: ${JSON.stringify(names)}`,
    );
  const rows = printed('score', folder, prompt).split('\n');
  assert.deepEqual(
    rows.slice(0, names.length).map((row) => row.split('\t')[1]),
    names.map(shown),
  );
  const scored = JSON.parse(printed('score', folder, prompt, '--json'));
  assert.deepEqual(
    scored.tokens.map(({ token }) => token),
    names,
  );
});
