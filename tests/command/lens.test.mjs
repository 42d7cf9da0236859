/** Tests attn lens of the npm package and the native build. Needs web/lib/dist and build/native. */
import { strict as assert } from 'node:assert';
import { after, before, test } from 'node:test';
import { load } from 'attn';
import { attributionPatching, headScores, logitAttribution, logitLens, patchActivations } from 'attn/lens';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { bert, both, bothWith, controls, hostileGpt2, removeWork, run, shown } from './programs.mjs';

const gpt2 = at('testdata/models/tiny-gpt2');
const [text, corrupted] = ['The old man', 'The odd man'];
let attn, model;
before(async () => {
  attn = await load({ threads: 1, variant: 'simd' });
  model = await attn.loadModel(gpt2);
});
after(async () => {
  await attn.dispose();
  removeWork();
});

const single = (list) => Array.from(list, Math.fround);
const rows = ({ data, dims }) => Array.from({ length: dims[0] }, (_, i) => single(data.subarray(i * dims[1], (i + 1) * dims[1])));
const json = (...args) => JSON.parse(both('lens', gpt2, ...args, '--json').stdout);
const lines = (...args) =>
  both('lens', gpt2, ...args)
    .stdout.trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));

test('lens: both programs print what each layer would predict', limit, async () => {
  const expected = await logitLens(model, text, { topK: 3 });
  const { predictions, ...rest } = json(text, '--top-k', '3');
  assert.deepEqual(rest, { tokens: expected.tokens, layers: expected.layers, positions: expected.positions });
  for (const [layer, positions] of expected.predictions.entries())
    for (const [i, list] of positions.entries())
      assert.deepEqual(
        predictions[layer][i].map(({ logit, probability, ...each }) => ({ ...each, numbers: single([logit, probability]) })),
        list.map(({ logit, probability, ...each }) => ({ ...each, numbers: single([logit, probability]) })),
      );
  const table = lines(text, '--top-k', '2');
  assert.deepEqual(
    table.map(([layer]) => layer),
    ['0', '1', '2'],
  );
  assert.deepEqual(
    table.map(([, ...cells]) => single([cells[1], cells[3]].map(Number))),
    expected.predictions.map((positions) =>
      single(
        positions
          .at(-1)
          .slice(0, 2)
          .map(({ probability }) => probability),
      ),
    ),
  );
  assert.equal(
    bothWith(`${text}\n`, 'lens', gpt2, '-', '--position', '4', '--json').stdout,
    both('lens', gpt2, text, '--position', '4', '--json').stdout,
  );
});

test('lens: both programs split a logit', limit, async () => {
  const options = ['--method', 'logit-attribution', '--target', 'a', '--contrast', 'e'];
  const { heads, mlps, ...expected } = await logitAttribution(model, text, { target: 'a', contrast: 'e' });
  const got = json(text, ...options);
  assert.deepEqual([got.heads.map(single), single(got.mlps)], [rows(heads), single(mlps.data)]);
  for (const name of ['value', 'embedding', 'biases']) assert.equal(Math.fround(got[name]), Math.fround(expected[name]), name);
  assert.deepEqual([got.tokens, got.position], [expected.tokens, expected.position]);
  const table = lines(text, ...options);
  const sum = table.slice(0, -1).reduce((all, [part]) => all + Number(part), 0);
  assert.deepEqual(table.at(-1), [String(got.value), 'total']);
  assert.ok(Math.abs(sum - got.value) < 1e-4 * Math.abs(got.value));
  assert.deepEqual(
    table.slice(1, 6).map(([, name]) => name),
    [0, 1, 2, 3].map((head) => `layer 0 head ${head}`).concat('layer 0 mlp'),
  );
});

test('lens: both programs patch activations, exactly or by one backward, at every site', limit, async () => {
  for (const site of ['residual', 'head', 'attention', 'mlp'])
    for (const [method, analyse] of Object.entries({ 'patch-activations': patchActivations, 'attribution-patching': attributionPatching })) {
      const expected = await analyse(model, text, corrupted, { answer: 'a', contrast: 'e', site });
      const options = ['--method', method, '--target', 'a', '--contrast', 'e', '--corrupted', corrupted, '--site', site];
      const got = json(text, ...options);
      assert.deepEqual([got.clean, got.corrupted].map(Math.fround), [expected.clean, expected.corrupted].map(Math.fround));
      assert.deepEqual(got.recovered.map(single), rows(expected.recovered));
      assert.deepEqual([got.clean_tokens, got.corrupted_tokens], [expected.tokens.clean, expected.tokens.corrupted]);
      const [head, ...table] = lines(text, ...options);
      assert.deepEqual(head.slice(1), site === 'head' ? ['head 0', 'head 1', 'head 2', 'head 3'] : expected.tokens.clean);
      assert.deepEqual(
        table.map((row) => row.slice(1).map(Number)),
        got.recovered,
      );
    }
});

test('lens: both programs score heads, by random tokens unless a text is given', limit, async () => {
  const { scores, ...expected } = await headScores(model);
  const got = json('--method', 'head-scores');
  assert.deepEqual({ tokens: got.tokens, ids: got.ids }, expected);
  const names = { previousToken: 'previous_token', duplicateToken: 'duplicate_token', induction: 'induction', firstToken: 'first_token' };
  for (const [kind, name] of Object.entries(names)) assert.deepEqual(got.scores[name].map(single), rows(scores[kind]), kind);
  const table = lines(text, '--method', 'head-scores', '--kind', 'first-token');
  assert.deepEqual(
    table.map(([kind, layer, ...row]) => [kind, layer, single(row.map(Number))]),
    rows((await headScores(model, { text, kinds: ['firstToken'] })).scores.firstToken).map((row, layer) => ['first-token', String(layer), row]),
  );
  assert.equal(both('lens', bert, 'she is good', '--method', 'head-scores', '--kind', 'first-token').status, 0);
});

test('lens: errors of the model end with status 1', limit, () => {
  for (const [args, message] of [
    [[bert, text], /^attn: UNSUPPORTED: .*text-generation/],
    [[gpt2, text, '--position', '99'], /^attn: OUT_OF_RANGE: .*from 0 to 5/],
    [[gpt2, text, '--method', 'logit-attribution', '--target', 'a man'], /^attn: OUT_OF_RANGE: .*single token/],
    [[gpt2, text, '--method', 'patch-activations', '--target', 'a', '--corrupted', 'The'], /^attn: ARGUMENT: .*6 tokens/],
    [[gpt2, text, '--method', 'head-scores', '--kind', 'induction', '--weights', 'int8'], /^attn: ARGUMENT: .*repeats tokens/],
  ])
    for (const program of ['npx', 'native']) {
      const { status, stdout, stderr } = run(program, 'lens', ...args);
      assert.deepEqual([status, stdout], [1, ''], stderr);
      assert.match(stderr, message);
    }
});

test('lens: both programs escape the control characters of tokens', limit, async () => {
  const { folder, text: hostileText, attacks } = hostileGpt2();
  const hostile = await attn.loadModel(folder);
  const printed = (...args) => {
    const { status, stdout, stderr } = both('lens', folder, ...args);
    assert.deepEqual([status, stderr], [0, ''], args.join(' '));
    assert.doesNotMatch(stdout, controls, args.join(' '));
    return stdout;
  };
  const { tokens, predictions } = await logitLens(hostile, hostileText, { topK: 60 });
  const predicted = predictions.map((positions) => positions.at(-1).map(({ token }) => token));
  for (const attack of attacks)
    for (const list of [tokens, predicted.flat()])
      assert.ok(
        list.some((token) => token.startsWith(attack)),
        `nothing to escape: ${JSON.stringify(list)}`,
      );
  const cells = printed(hostileText, '--top-k', '60').trimEnd().split('\n');
  assert.deepEqual(
    cells.map((line) => line.split('\t').filter((_, i) => i % 2 === 1)),
    predicted.map((list) => list.map(shown)),
  );
  assert.deepEqual(JSON.parse(printed(hostileText, '--top-k', '60', '--json')).tokens, tokens);

  const target = ['--target', tokens.at(-1), '--contrast', tokens.at(-2)];
  const attribution = ['--method', 'logit-attribution', ...target];
  printed(hostileText, ...attribution);
  assert.deepEqual(JSON.parse(printed(hostileText, ...attribution, '--json')).tokens, tokens);
  for (const method of ['patch-activations', 'attribution-patching']) {
    const patching = ['--method', method, ...target, '--corrupted', hostileText.replace('The', 'She')];
    const [head] = printed(hostileText, ...patching).split('\n');
    assert.deepEqual(head.split('\t').slice(1), tokens.map(shown));
    assert.deepEqual(JSON.parse(printed(hostileText, ...patching, '--json')).clean_tokens, tokens);
  }
  assert.deepEqual(JSON.parse(printed(hostileText, '--method', 'head-scores', '--kind', 'first-token', '--json')).tokens, tokens);
  for (const program of ['npx', 'native']) {
    const { status, stderr } = run(program, 'lens', folder, hostileText, '--method', 'logit-attribution', '--target', hostileText);
    assert.equal(status, 1);
    assert.doesNotMatch(stderr, controls);
    assert.ok(stderr.includes('\\u001b[2J'), stderr);
  }
});
