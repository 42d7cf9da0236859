/** attn/lens: analyses of language models, against a GPT-2 in float64, finite differences, and models whose heads are known. */
import type { Attn, Encoding, TextForwardOptions, TextModel, Tensor } from 'attn';
import {
  attentionGradient,
  attribute,
  attributionPatching,
  headScores,
  logitAttribution,
  logitLens,
  patchActivations,
  rollout,
  trace,
} from 'attn/lens';
import type { PatchOptions, PatchSite } from 'attn/lens';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { activations, reference, siteNames, towards, type Hook, type Site } from '../support/gpt2_reference.ts';
import { bytes, loadHere, setup, url } from '../support/host.ts';
import { inductionWeights } from '../support/induction.ts';
import { decoders as allDecoders, loadCheckpoint, loadedOnce } from '../support/model_cases.ts';
import { assertClose, assertDims, assertSameBits } from '../support/tensors.ts';

const ids = [20, 131, 7, 250, 64, 99];
/** The same but for two tokens. */
const others = [20, 88, 7, 250, 301, 99];
const isSupported = (name: string) => !/neox|gemma/.test(name);
const decoders = allDecoders.filter(isSupported);
const encoded = (list: readonly number[]): Encoding => ({ inputIds: Int32Array.from(list), dims: [1, list.length] }) as unknown as Encoding;
const sites: readonly PatchSite[] = ['residual', 'attention', 'mlp', 'head'];
/** A model, and the options of its forwards. */
function counted(model: TextModel) {
  const forwards: (TextForwardOptions | undefined)[] = [];
  const watched = new Proxy(model, {
    get(of, name) {
      const value: unknown = Reflect.get(of, name, of);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (name === 'forward') forwards.push(args[1] as TextForwardOptions | undefined);
        return Reflect.apply(value, of, args) as unknown;
      };
    },
  });
  return { watched, forwards };
}
const sum = (values: ArrayLike<number>) => Array.from(values).reduce((all, value) => all + value, 0);

describe('lens', () => {
  let attn: Attn;
  const modelOf = loadedOnce(() => attn);
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  for (const name of decoders)
    it(`${name}: the last layer of logitLens is the model, and earlier ones pass the final norm`, async () => {
      const model = await modelOf(name);
      const { logits, hiddenStates, lastHiddenState } = model.forward(encoded(ids), { outputHiddenStates: true });
      const V = logits!.dims[2];
      const { layers, positions, predictions, tokens } = await logitLens(model, ids, { topK: V });
      assert.deepEqual([layers, positions], [[0, 1, 2], ids.map((_, i) => i)]);
      assert.deepEqual(
        tokens,
        ids.map((id) => model.idToToken(id)!),
      );
      assertSameBits(model.unembed(lastHiddenState), logits);
      for (const [i, row] of predictions[2].entries()) {
        assert.lengthOf(row, V);
        for (const { id, logit, token } of row) {
          assert.equal(logit, logits!.data[i * V + id]);
          assert.equal(token, model.idToToken(id) ?? '');
        }
        row.slice(1).forEach(({ logit }, k) => assert.isAtMost(logit, row[k].logit));
        assert.closeTo(sum(row.map(({ probability }) => probability)), 1, 1e-9);
        assert.closeTo(row[0].probability / row[1].probability, Math.exp(row[0].logit - row[1].logit), 1e-6);
      }

      const state = model.stateDict();
      const find = (end: string) => [...state].find(([each]) => each === end || each.endsWith(`.${end}`))?.[1].data;
      const isRms = model.config['model_type'] !== 'gpt2';
      const [gain, shift] = [find(isRms ? 'model.norm.weight' : 'ln_f.weight')!, find('ln_f.bias')];
      const words = (find('lm_head.weight') ?? find('wte.weight') ?? find('embed_tokens.weight'))!;
      const E = gain.length;
      const epsilon = (isRms ? model.config['rms_norm_eps'] : model.config['layer_norm_epsilon']) as number;
      const x = Array.from(hiddenStates![1].data.subarray(3 * E, 4 * E));
      const mean = isRms ? 0 : sum(x) / E;
      const divisor = Math.sqrt(sum(x.map((value) => (value - mean) ** 2)) / E + epsilon);
      const y = x.map((value, e) => ((value - mean) / divisor) * gain[e] + (shift?.[e] ?? 0));
      const some = await logitLens(model, ids, { layers: [1], positions: [3], topK: 9 });
      assert.deepEqual([some.layers, some.positions, some.predictions.length, some.predictions[0].length], [[1], [3], 1, 1]);
      for (const { id, logit } of some.predictions[0][0]) assert.closeTo(logit, sum(y.map((value, e) => value * words[id * E + e])), 2e-5);
    });

  it('takes texts, and masked language models whose norms are after the blocks', async () => {
    const model = await modelOf('tiny-gpt2');
    const text = 'The old man';
    const { predictions, tokens } = await logitLens(model, text, { layers: [2], topK: 3 });
    assert.deepEqual(tokens, model.tokenize(text).tokens[0]);
    const next = await model.nextToken(text, { topK: 3 });
    assert.deepEqual(
      predictions[0].at(-1)!.map(({ id, logit }) => [id, logit]),
      next.map(({ id, logit }) => [id, logit]),
    );
    const bert = await modelOf('tiny-bert-mlm');
    const inputs = bert.tokenize('she is [MASK].');
    const logits = bert.forward(inputs).logits!;
    const lens = await logitLens(bert, 'she is [MASK].', { topK: 4 });
    const V = logits.dims[2];
    lens.predictions.at(-1)!.forEach((row, i) => row.forEach(({ id, logit }) => assert.equal(logit, logits.data[i * V + id])));
    await assertRejects(logitLens(await modelOf('tiny-modernbert-mlm'), 'she is'), 'UNSUPPORTED', ['logitLens', 'pre-norm']);
    const int8 = await loadCheckpoint(attn, 'tiny-llama', 'int8');
    const [of8] = (await logitLens(int8, ids, { layers: [2], topK: 1 })).predictions;
    const all = int8.forward(encoded(ids)).logits!;
    of8.forEach(([{ id, logit }], i) => assert.equal(logit, all.data[i * all.dims[2] + id]));
    await assertRejects(logitAttribution(int8, ids, { target: 3 }), 'UNSUPPORTED', ['int8']);
    await assertRejects(attributionPatching(int8, ids, others, { answer: 3 }), 'UNSUPPORTED', ['int8']);
    assert.isFinite((await patchActivations(int8, ids, others, { answer: 3 })).recovered.data[1]);
    int8.dispose();
  });

  for (const name of decoders)
    it(`${name}: the parts of logitAttribution add up to the logit`, async () => {
      const model = await modelOf(name);
      const logits = model.forward(encoded(ids)).logits!;
      const logit = (position: number, id: number) => logits.data[position * logits.dims[2] + id];
      for (const [target, contrast, position] of [
        [5, 41, undefined],
        [300, undefined, 2],
        [77, 12, 0],
      ] as const) {
        const { value, embedding, heads, mlps, biases, ...rest } = await logitAttribution(model, ids, { target, contrast, position });
        const at = position ?? ids.length - 1;
        assert.equal(rest.position, at);
        assert.closeTo(value, logit(at, target) - (contrast === undefined ? 0 : logit(at, contrast)), 1e-6);
        assertDims(heads, [2, 4]);
        assertDims(mlps, [2]);
        const parts = [embedding, ...heads.data, ...mlps.data, biases];
        assert.isTrue(parts.every(Number.isFinite));
        assert.closeTo(sum(parts), value, 1e-4 * Math.max(Math.abs(value), 1e-2));
      }
    });

  it('logitAttribution gives each head and MLP what its output adds', async () => {
    const model = await modelOf('tiny-gpt2');
    const run = reference(model);
    const [target, contrast] = [5, 41];
    const value = (hook?: Hook) => {
      const row = run(ids, hook).at(-1)!;
      return row[target] - row[contrast];
    };
    const got = await logitAttribution(model, ids, { target, contrast });
    assert.closeTo(got.value, value(), 1e-5);

    const weights = model.stateDict();
    const find = (end: string) => [...weights].find(([name]) => name.endsWith(end))![1].data;
    const E = 24;
    const residual = activations(run, ids, 'resid_post')[1].at(-1)!;
    const mean = sum(residual) / E;
    const divisor = Math.sqrt(sum(residual.map((each) => (each - mean) ** 2)) / E + 1e-5);
    // What a part adds if the norm's mean and divisor stay: the part through a norm without them.
    const through = (part: ArrayLike<number>) => {
      const middle = sum(part) / E;
      return sum(
        Array.from(
          part,
          (each, e) =>
            ((each - middle) / divisor) * find('ln_f.weight')[e] * (find('wte.weight')[target * E + e] - find('wte.weight')[contrast * E + e]),
        ),
      );
    };
    for (const layer of [0, 1]) {
      const z = activations(run, ids, 'z')[layer].at(-1)!;
      const output = find(`h.${layer}.attn.c_proj.weight`);
      for (let head = 0; head < 4; head++) {
        const part = Array.from({ length: E }, (_, o) => sum(Array.from({ length: 6 }, (__, d) => z[head * 6 + d] * output[(head * 6 + d) * E + o])));
        assert.closeTo(got.heads.data[layer * 4 + head], through(part), 1e-5);
      }
      const bias = find(`h.${layer}.mlp.c_proj.bias`);
      const outputs = activations(run, ids, 'mlp_out');
      const mlp = outputs[layer].at(-1)!.map((each, e) => each - bias[e]);
      assert.closeTo(got.mlps.data[layer], through(mlp), 1e-5);
    }
    assert.closeTo(got.embedding, through(activations(run, ids, 'resid_pre')[0].at(-1)!), 1e-5);
  });

  for (const site of sites)
    it(`patching and its derivative at ${site} are those of the reference`, async () => {
      const model = await modelOf('tiny-gpt2');
      const run = reference(model);
      for (const [answer, contrast, position] of [
        [5, 41, undefined],
        [200, undefined, 4],
      ] as const) {
        const options: PatchOptions = { answer, contrast, position, site };
        const value = (list: readonly number[], hook?: Hook) => {
          const row = run(list, hook)[position ?? ids.length - 1];
          return row[answer] - (contrast === undefined ? 0 : row[contrast]);
        };
        const clean = activations(run, ids, siteNames[site]);
        const span = value(ids) - value(others);
        const columns = site === 'head' ? 4 : ids.length;
        const expected = (share: number) =>
          [0, 1].flatMap((layer) =>
            Array.from({ length: columns }, (_, cell) => (value(others, towards(clean, layer, site, cell, 4, share)) - value(others)) / span / share),
          );
        const patched = await patchActivations(model, ids, others, options);
        assert.closeTo(patched.clean, value(ids), 1e-5);
        assert.closeTo(patched.corrupted, value(others), 1e-5);
        assertClose(patched.recovered, { data: expected(1), dims: [2, columns] }, 2e-4, 'patching');
        const estimated = await attributionPatching(model, ids, others, options);
        assertClose(estimated.recovered, { data: expected(1e-5), dims: [2, columns] }, 2e-4, 'attribution patching');
        if (site === 'head') assert.notProperty(patched, 'positions');
        else {
          const some = await patchActivations(model, ids, others, { ...options, positions: [4, 1] });
          assert.deepEqual(some.positions, [4, 1]);
          const cells = [0, 1].flatMap((layer) => [4, 1].map((cell) => patched.recovered.data[layer * columns + cell]));
          assert.deepEqual([...some.recovered.data], cells);
        }
      }
    });

  for (const name of decoders)
    it(`${name}: a patch of everything that differs recovers all, and a patch of equal values nothing`, async () => {
      const model = await modelOf(name);
      const corrupted = [...ids];
      corrupted[1] = 88;
      const options = { answer: 5, contrast: 41 };
      const { recovered, clean, corrupted: other } = await patchActivations(model, ids, corrupted, options);
      const logits = (list: readonly number[]) => model.forward(encoded(list), { outputLogits: 'last' }).logits!.data;
      assert.equal(clean, logits(ids)[5] - logits(ids)[41]);
      assert.equal(other, logits(corrupted)[5] - logits(corrupted)[41]);
      assert.deepEqual([...recovered.data.slice(0, ids.length)], [0, 1, 0, 0, 0, 0], 'the first layer');
      // Finite differences of the model itself, in float32: a small step towards the clean residual.
      const estimated = await attributionPatching(model, ids, corrupted, options);
      const [from, to] = [corrupted, ids].map((list) => model.forward(encoded(list), { outputHiddenStates: true }).hiddenStates!);
      for (const layer of [0, 1])
        for (const [i] of ids.entries()) {
          const step = (share: number) => {
            const { data, dims } = from[layer];
            const E = dims[2];
            const moved = data.map((each, k) => (Math.floor(k / E) === i ? each + share * (to[layer].data[k] - each) : each));
            const got = model.forward(encoded(corrupted), { outputLogits: 'last', patch: { layer, hiddenState: { data: moved, dims } } }).logits!
              .data;
            return got[5] - got[41];
          };
          const slope = (step(0.01) - step(-0.01)) / 0.02 / (clean - other);
          assert.closeTo(estimated.recovered.data[layer * ids.length + i], slope, 5e-3 * Math.max(1, Math.abs(slope)), `${layer}, ${i}`);
        }
    });

  it('gradients of a trace are those of the difference of two logits', async () => {
    const model = await modelOf('tiny-llama');
    const options = { trace: { layers: [1], names: ['merged', 'weights'] as const }, wrt: ['embeddings', 'attentions'] as const };
    const of = (label: number, contrast?: number) => model.gradients(encoded(ids), { target: { label, contrast, token: 3 }, ...options });
    const [both, a, b] = [of(5, 41), of(5), of(41)];
    assert.closeTo(both.value, a.value - b.value, 1e-6);
    const less = (x: Tensor, y: Tensor) => ({ data: x.data.map((each, i) => each - y.data[i]), dims: x.dims });
    assertClose(both.embeddings, less(a.embeddings!, b.embeddings!), 1e-6);
    assert.deepEqual([...both.trace!.keys()], [1]);
    assertClose(both.trace!.get(1)!.merged, less(a.trace!.get(1)!.merged!, b.trace!.get(1)!.merged!), 1e-6);
    assertSameBits(both.trace!.get(1)!.weights, both.attentions![1]);
    const alone = model.gradients(encoded(ids), { target: { label: 5, contrast: 41, token: 3 }, trace: { names: ['merged'] } });
    assertSameBits(alone.trace!.get(1)!.merged, both.trace!.get(1)!.merged);
    assert.sameMembers(Object.keys(alone), ['value', 'trace']);
    const target = { label: 5, token: 3 };
    assertThrows(() => model.gradients(encoded(ids), { target }), 'ARGUMENT', ['gradients', 'the list of gradients is empty']);
    assertThrows(() => model.gradients(encoded(ids), { target: { ...target, contrast: 400 }, wrt: ['embeddings'] }), 'OUT_OF_RANGE', ['contrast']);
    assertThrows(() => model.gradients(encoded(ids), { target: { component: 1, contrast: 4 } as never, wrt: ['embeddings'] }), 'ARGUMENT', [
      'contrast',
    ]);
    assertThrows(() => model.gradients(encoded(ids), { target, trace: { names: ['x'] } as never }), 'ARGUMENT', ['names']);
    assertThrows(() => model.gradients(encoded(ids), { target, trace: { layers: [2] } }), 'OUT_OF_RANGE', ['layer']);
    assertThrows(() => model.unembed({ data: new Float32Array(23), dims: [1, 23] }), 'SHAPE', ['unembed', '24']);
    assertDims(model.unembed({ data: new Float32Array(48), dims: [2, 1, 24] }), [2, 1, 318]);
    assertThrows(() => model.unembed({} as never), 'ARGUMENT', ['hiddenStates']);
    const bert = await modelOf('tiny-bert');
    assertThrows(() => bert.unembed({ data: new Float32Array(24), dims: [1, 24] }), 'UNSUPPORTED', ['text-generation']);
  });

  it('headScores finds the heads of a model that repeats what followed a token before', async () => {
    const tokenizer = await bytes('testdata/models/tiny-gpt2/tokenizer.json');
    const { config, weights } = inductionWeights();
    const files = {
      'config.json': new TextEncoder().encode(JSON.stringify(config)),
      'tokenizer.json': tokenizer,
      'model.safetensors': attn.writeSafetensors(weights),
    };
    const model = await attn.loadModel(files);
    const { scores, ids: random, tokens } = await headScores(model);
    assert.lengthOf(random, 32);
    assert.deepEqual(random.slice(0, 16), random.slice(16));
    assert.lengthOf(tokens, 32);
    for (const [kind, found] of Object.entries({ previousToken: 0, induction: 2 }))
      scores[kind as 'induction']!.data.forEach((score, i) =>
        i === found ? assert.isAbove(score, 0.9, kind) : assert.isBelow(score, 0.5, `${kind}, head ${i}`),
      );
    // The other heads attend to all tokens alike.
    const text = [7, 3, 9, 4, 3, 9, 4, 3];
    const { scores: exact } = await headScores(model, { text, kinds: ['duplicateToken', 'firstToken', 'induction'] });
    assert.sameMembers(Object.keys(exact), ['duplicateToken', 'firstToken', 'induction']);
    assert.closeTo(exact.firstToken!.data[1], (1 / 2 + 1 / 3 + 1 / 4 + 1 / 5 + 1 / 6 + 1 / 7 + 1 / 8) / 7, 1e-6);
    assert.closeTo(exact.duplicateToken!.data[1], (1 / 5 + 1 / 6 + 1 / 7 + 2 / 8) / 4, 1e-6);
    assert.isAbove(exact.induction!.data[2], 0.9);
    // After 7 3 9 4 3 the model expects 9 again, and the induction head is the reason.
    const parts = await logitAttribution(model, [7, 3, 9, 4, 3], { target: 9, contrast: 5 });
    assert.equal(parts.heads.data.indexOf(Math.max(...parts.heads.data)), 2);
    assert.isAbove(parts.heads.data[2], 0.5 * parts.value);
    assert.deepEqual((await headScores(model, { seed: 1 })).ids, (await headScores(model, { seed: 1 })).ids);
    assert.notDeepEqual((await headScores(model, { seed: 1 })).ids, random);
    model.dispose();
    const bert = await modelOf('tiny-bert');
    assertDims((await headScores(bert, { text: 'she is good', kinds: ['firstToken'] })).scores.firstToken, [2, 4]);
  });

  it('scores of tokens: rollout, attention times gradient, gradient times embedding, leaving out', async () => {
    const model = await modelOf('tiny-gpt2');
    const run = reference(model);
    const position = 4;
    const target = { target: 5, contrast: 41, position };
    const value = (list: readonly number[], at: number, hook?: Hook) => run(list, hook)[at][5] - run(list, hook)[at][41];
    const L = ids.length;
    const patterns = activations(run, ids, 'pattern');
    const mean = (layer: number, i: number, j: number) => sum([0, 1, 2, 3].map((head) => patterns[layer][head * L + i][j])) / 4;
    const step = (layer: number, i: number, j: number) => 0.5 * mean(layer, i, j) + (i === j ? 0.5 : 0);
    const expected = ids.map((_, j) => sum(ids.map((__, i) => step(1, position, i) * step(0, i, j))));
    assertClose({ data: (await rollout(model, ids, { position })).scores, dims: [L] }, { data: expected, dims: [L] }, 1e-6, 'rollout');

    // ∂f/∂A by finite differences.
    const slope = (layer: number, row: number, j: number) => {
      const moved = (by: number) => value(ids, position, (at, site, values) => void (at === layer && site === 'pattern' && (values[row][j] += by)));
      return (moved(1e-5) - moved(-1e-5)) / 2e-5;
    };
    const product = [0, 1].map((layer) =>
      ids.map((_, i) =>
        ids.map((__, j) =>
          j > i
            ? 0
            : sum([0, 1, 2, 3].map((head) => Math.max(0, patterns[layer][head * L + i][j] * slope(layer, head * L + i, j)))) / 4 + (i === j ? 1 : 0),
        ),
      ),
    );
    const flow = ids.map((_, j) => sum(ids.map((__, i) => product[1][position][i] * product[0][i][j])));
    const gradient = await attentionGradient(model, ids, target);
    assertClose({ data: gradient.scores, dims: [L] }, { data: flow, dims: [L] }, 1e-4, 'attention gradient');

    const words = model.wordEmbeddings.forward(ids).data;
    const alongWord = ids.map((_, i) => {
      const moved = (by: number) =>
        value(
          ids,
          position,
          (at, site, values) =>
            void (at === 0 && site === 'resid_pre' && values[i].forEach((each, e) => (values[i][e] = each + by * words[i * 24 + e]))),
        );
      return (moved(1e-5) - moved(-1e-5)) / 2e-5;
    });
    const { scores } = await attribute(model, ids, target);
    assertClose({ data: scores, dims: [L] }, { data: alongWord, dims: [L] }, 1e-4, 'gradient times embedding');

    const whole = value(ids, position);
    const without = ids.map((_, i) =>
      i < position
        ? whole -
          value(
            ids.filter((__, j) => j !== i),
            position - 1,
          )
        : 0,
    );
    const left = await attribute(model, ids, { ...target, method: 'leave_one_out' });
    assertClose({ data: left.scores, dims: [L] }, { data: without, dims: [L] }, 1e-4, 'leaving out');
    assert.deepEqual((await attribute(model, ids, { ...target, method: 'attention_gradient' })).scores, gradient.scores);

    const [{ id: likeliest }] = await model.nextToken('The old man', { topK: 1 });
    assert.deepEqual(await model.attribute('The old man'), await model.attribute('The old man', { target: likeliest, position: 5 }));
    const along = await model.attribute(ids, { ...target, steps: 200 });
    assert.isBelow(along.delta!, 1e-3, 'integrated gradients are complete');
    assert.deepEqual((await attribute(model, ids, { ...target, method: 'integrated_gradients' })).tokens, along.tokens);

    const bert = await modelOf('tiny-bert');
    const text = 'she is good';
    assert.deepEqual((await rollout(bert, text)).scores, (await bert.attribute(text, { method: 'attention_rollout' })).scores);
    const given = { method: 'gradient_x_input', target: 0 } as const;
    assert.deepEqual((await attribute(bert, text, given)).scores, (await bert.attribute(text, given)).scores);
    await assertRejects(attribute(bert, text, { ...given, position: 1 }), 'UNSUPPORTED', ['position']);
    await assertRejects(rollout(bert, [1, 2]), 'ARGUMENT', ['rollout', 'text']);
  });

  it('does the same for a model in attn/worker', async () => {
    const remote = await loadWorker(setup);
    const [there, here] = [await remote.loadModel(url('testdata/models/tiny-llama'), { cache: 'none' }), await modelOf('tiny-llama')];
    const options = { answer: 5, contrast: 41, site: 'head' } as const;
    assert.deepEqual(await logitLens(there, 'The old man'), await logitLens(here, 'The old man'));
    assert.deepEqual(await logitAttribution(there, ids, { target: 5 }), await logitAttribution(here, ids, { target: 5 }));
    assert.deepEqual(await patchActivations(there, ids, others, options), await patchActivations(here, ids, others, options));
    assert.deepEqual(await attributionPatching(there, ids, others, options), await attributionPatching(here, ids, others, options));
    assert.deepEqual(await headScores(there), await headScores(here));
    assert.deepEqual(await attribute(there, ids, { target: 5 }), await attribute(here, ids, { target: 5 }));
    await remote.dispose();
  });

  it("trace has TransformerLens' names and shapes", async () => {
    const gpt2 = await modelOf('tiny-gpt2');
    const run = reference(gpt2);
    const L = ids.length;
    const hooks = {
      resid_pre: 'hook_resid_pre',
      z: 'attn.hook_z',
      attn_out: 'hook_attn_out',
      mlp_out: 'hook_mlp_out',
      resid_post: 'hook_resid_post',
      pattern: 'attn.hook_pattern',
    };
    const cache = await trace(gpt2, ids, Object.values(hooks));
    assert.equal(cache.size, 12);
    for (const [site, hook] of Object.entries(hooks))
      activations(run, ids, site as Site).forEach((rows, layer) => {
        const got = cache.get(`blocks.${layer}.${hook}`)!;
        const shape = site === 'z' ? [1, L, 4, 6] : site === 'pattern' ? [1, 4, L, L] : [1, L, 24];
        assertClose(got, { data: rows.flatMap((row) => [...row]), dims: shape }, 1e-5, hook);
      });
    const model = await modelOf('tiny-llama'); // four heads of queries, two of keys and values
    const names = [
      'blocks.1.attn.hook_q',
      'blocks.1.attn.hook_k',
      'blocks.1.attn.hook_v',
      'blocks.0.hook_resid_mid',
      'blocks.0.mlp.hook_post',
      'blocks.1.attn.hook_attn_scores',
    ];
    const own = model.forward(encoded(ids), { trace: {} }).trace!;
    const got = await trace(model, ids, names);
    assert.deepEqual([...got.keys()], names);
    const expected = [
      own.get(1)!.q_proj,
      own.get(1)!.k_proj,
      own.get(1)!.v_proj,
      own.get(0)!.attn_residual,
      own.get(0)!.ff_hidden,
      own.get(1)!.masked_scores,
    ];
    names.forEach((name, i) => assert.deepEqual(got.get(name)!.data, expected[i]!.data, name));
    assert.deepEqual(
      [...got.values()].map(({ dims }) => [...dims]),
      [
        [1, L, 4, 6],
        [1, L, 2, 6],
        [1, L, 2, 6],
        [1, L, 24],
        [1, L, 40],
        [1, 4, L, L],
      ],
    );
    for (const [given, code, words] of [
      ['blocks.1.attn.hook_pattern', 'ARGUMENT', ['names']],
      [['blocks.2.hook_mlp_out'], 'OUT_OF_RANGE', ['names[0]', 'from 0 to 1']],
      [['attn.hook_paterns'], 'ARGUMENT', ['names[0]', 'attn.hook_pattern']],
      [['toString'], 'ARGUMENT', ['names[0]']],
      [[3], 'ARGUMENT', ['names[0]']],
    ] as const)
      await assertRejects(trace(model, ids, given as never), code, ['trace', ...words]);
  });

  it("agrees with TransformerLens' activations, logit lens, parts of a logit and patches of a GPT-2", async () => {
    const model = await modelOf('tiny-gpt2');
    const expected = attn.parseSafetensors(await bytes('testdata/lens/tiny-gpt2.safetensors'));
    const numbers = (name: string) => [...expected.get(name)!.data];
    const [clean, corrupted, answers] = [numbers('clean'), numbers('corrupted'), numbers('answers')];
    const [answer, contrast] = answers as [number, number];
    const names = [...expected.keys()].filter((name) => name.startsWith('blocks.'));
    assert.lengthOf(names, 24);
    for (const [name, { data, dims }] of await trace(model, clean, names)) {
      const finite = { data: data.map((value) => (value === -Infinity ? 0 : value)), dims };
      assertClose(finite, expected.get(name)!, 1e-5, name);
    }
    const { predictions } = await logitLens(model, clean, { positions: [clean.length - 1], topK: expected.get('lens.ids')!.dims[1] });
    const tokens = predictions.flatMap(([list]) => list!);
    assert.deepEqual(
      tokens.map(({ id }) => id),
      numbers('lens.ids'),
    );
    const near = (got: ArrayLike<number>, name: string, tolerance: number) => {
      const { data, dims } = expected.get(name)!;
      assertClose({ data: Float32Array.from(got), dims: [...dims] }, { data: [...data], dims: [...dims] }, tolerance, name);
    };
    near(
      tokens.map(({ logit }) => logit),
      'lens.logits',
      1e-5,
    );
    const parts = await logitAttribution(model, clean, { target: answer, contrast });
    near(parts.heads.data, 'parts.heads', 1e-5);
    near(parts.mlps.data, 'parts.mlps', 1e-5);
    assert.closeTo(parts.embedding, numbers('parts.embedding')[0]!, 1e-6);
    // A share of the difference of two logits, which is small.
    for (const site of sites) {
      const options = { answer, contrast, site };
      near((await patchActivations(model, clean, corrupted, options)).recovered.data, `patched.${site}`, 1e-4);
      near((await attributionPatching(model, clean, corrupted, options)).recovered.data, `attributed.${site}`, 1e-4);
    }
    // No positions are rotated in a GPT-2; in a Llama they are, and heads come after positions.
    const llama = await modelOf('tiny-llama');
    const hooks = await trace(llama, ids, ['blocks.1.attn.hook_rot_q', 'blocks.1.attn.hook_rot_k']);
    const own = llama.forward(encoded(ids), { trace: { names: ['q', 'k'] } }).trace!.get(1)!;
    for (const [name, H] of [
      ['q', 4],
      ['k', 2],
    ] as const) {
      const { data, dims } = hooks.get(`blocks.1.attn.hook_rot_${name}`)!;
      assert.deepEqual([...dims], [1, ids.length, H, 6]);
      const [at, from] = [
        (position: number, head: number) => (position * H + head) * 6,
        (position: number, head: number) => (head * ids.length + position) * 6,
      ];
      for (const position of ids.keys())
        for (let head = 0; head < H; head++)
          assert.deepEqual(
            data.subarray(at(position, head), at(position, head) + 6),
            own[name]!.data.subarray(from(position, head), from(position, head) + 6),
          );
    }
  });

  it('refuses bad arguments', async () => {
    const [model, bert] = [await modelOf('tiny-gpt2'), await modelOf('tiny-bert')];
    const lens = (options: object, text: unknown = ids) => logitLens(model, text as string, options as never);
    const patch = (options: object, clean: unknown = ids, corrupted: unknown = others) =>
      patchActivations(model, clean as string, corrupted as string, { answer: 5, ...options } as never);
    const parts = (options: object) => logitAttribution(model, ids, { target: 5, ...options } as never);
    for (const [call, code, words] of [
      [lens({ topk: 3 }), 'ARGUMENT', ['logitLens', 'topk', 'topK']],
      [lens({ topK: 0 }), 'CONFIG', ['topK']],
      [lens({ layers: [3] }), 'OUT_OF_RANGE', ['layers[0]', '2']],
      [lens({ layers: 1 }), 'ARGUMENT', ['layers']],
      [lens({ positions: [-1] }), 'OUT_OF_RANGE', ['positions[0]', '5']],
      [lens({ positions: [0.5] }), 'ARGUMENT', ['positions[0]']],
      [lens({ signal: 1 }), 'ARGUMENT', ['signal']],
      [lens({}, ''), 'ARGUMENT', ['at least one token']],
      [lens({}, []), 'ARGUMENT', ['at least one token']],
      [lens({}, [1.5]), 'ARGUMENT', ['text[0]']],
      [lens({}, [400]), 'OUT_OF_RANGE', ['400']],
      [lens({}, null), 'ARGUMENT', ['text']],
      [lens({}, 'and so on '.repeat(100)), 'OUT_OF_RANGE', ['64']],
      [logitLens({} as never, 'x'), 'ARGUMENT', ['model']],
      [logitLens(null as never, 'x'), 'ARGUMENT', ['model']],
      [logitLens(bert, 'x'), 'UNSUPPORTED', ['text-generation']],
      [logitAttribution(bert, 'x', { target: 1 }), 'UNSUPPORTED', ['text-generation']],
      [logitAttribution(model, ids, {} as never), 'ARGUMENT', ['target', 'missing']],
      [parts({ target: {} }), 'ARGUMENT', ['target']],
      [parts({ target: 317 }), 'OUT_OF_RANGE', ['target', '316']],
      [parts({ target: NaN }), 'ARGUMENT', ['target']],
      [parts({ contrast: 'The old man' }), 'OUT_OF_RANGE', ['contrast', 'single token']],
      [parts({ position: 6 }), 'OUT_OF_RANGE', ['position', '5']],
      [patch({ answer: undefined }), 'ARGUMENT', ['answer']],
      [patch({ site: 'heads' }), 'CONFIG', ['site', 'residual']],
      [patch({ site: 'head', positions: [1] }), 'ARGUMENT', ['positions']],
      [patch({}, ids, [1, 2]), 'ARGUMENT', ['corrupted', '6 tokens']],
      [patch({}, ids, ids), 'ARGUMENT', ['answer', 'both']],
      [patchActivations(bert, 'x', 'y', { answer: 1 }), 'UNSUPPORTED', ['patchActivations']],
      [headScores(model, { kinds: ['inductive'] as never }), 'CONFIG', ['kinds[0]']],
      [headScores(model, { kinds: 'induction' as never }), 'ARGUMENT', ['kinds']],
      [headScores(model, { text: [1, 2, 3] }), 'ARGUMENT', ['duplicateToken', 'repeats']],
      [headScores(model, { text: [1], kinds: ['firstToken'] }), 'ARGUMENT', ['two tokens']],
      [headScores(model, { seed: -1 }), 'CONFIG', ['seed']],
      [attribute(model, ids, { target: 'two words' }), 'OUT_OF_RANGE', ['attribute', 'target', 'single token']],
      [attribute(model, ids, { target: 5, position: 6 }), 'OUT_OF_RANGE', ['attribute', 'position']],
      [attribute(model, ids, { target: 5, contrast: 1e6 }), 'OUT_OF_RANGE', ['attribute', 'contrast']],
      [attribute(model, []), 'ARGUMENT', ['attribute', 'text']],
      [attribute(model, ids, { target: 5, method: 'gradients' as never }), 'CONFIG', ['method']],
      [rollout(model, ids, { target: 5 } as never), 'ARGUMENT', ['rollout', 'target']],
    ] as const)
      await assertRejects(call as Promise<unknown>, code, [...words]);
    const controller = new AbortController();
    controller.abort();
    await assertRejects(patch({ signal: controller.signal }), 'ABORTED', ['patchActivations']);
    const { signal } = controller;
    await assertRejects(lens({ signal }), 'ABORTED', ['logitLens']);
    await assertRejects(parts({ signal }), 'ABORTED', ['logitAttribution']);
    await assertRejects(headScores(model, { signal }), 'ABORTED', ['headScores']);
    await assertRejects(rollout(model, ids, { signal }), 'ABORTED', ['rollout']);
    const { watched, forwards } = counted(model);
    await assertRejects(logitLens(watched, ids, { signal }), 'ABORTED', ['logitLens']);
    await assertRejects(logitAttribution(watched, ids, { target: 5, signal }), 'ABORTED', ['logitAttribution']);
    await assertRejects(patchActivations(watched, ids, others, { answer: 5, signal }), 'ABORTED', ['patchActivations']);
    assert.isEmpty(forwards);
    const own = await loadCheckpoint(attn, 'tiny-gpt2');
    own.dispose();
    await assertRejects(logitLens(own, ids), 'DISPOSED', []);
    const none = () => {};
    const odd = { task: 'text-generation', config: { model_type: 'gemma2' }, forward: none, tokenize: none, unembed: none, idToToken: () => 'x' };
    await assertRejects(logitLens(odd as never, ids), 'UNSUPPORTED', ['gemma2']);
    for (const name of allDecoders.filter((each) => !isSupported(each)))
      await assertRejects(logitLens(await modelOf(name), ids), 'UNSUPPORTED', ['model_type']);
  });

  it('trace computes only the layers of its names, and no position is an empty result', async () => {
    const model = await modelOf('tiny-gpt2');
    const { watched, forwards } = counted(model);
    await trace(watched, ids, ['blocks.1.attn.hook_z', 'blocks.1.hook_mlp_out']);
    await trace(watched, ids, ['blocks.1.attn.hook_z', 'hook_resid_pre']);
    await assertRejects(trace(watched, ids, ['blocks.2.attn.hook_z']), 'OUT_OF_RANGE', ['names[0]', '1']);
    assert.deepEqual(
      forwards.map((options) => [options?.outputHiddenStates, options?.trace?.layers]),
      [
        [false, [1]],
        [true, undefined],
      ],
    );
    assertDims((await patchActivations(model, ids, others, { answer: 5, positions: [] })).recovered, [2, 0]);
  });
});
