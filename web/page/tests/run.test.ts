import type { Attn as Direct, EncoderTrace, Tensor, TextForwardOptions } from 'attn';
import type { Attn } from 'attn/worker';
import { effect } from '@preact/signals';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { largestDifference } from '../src/arithmetic/differences.ts';
import type { LoadedModel } from '../src/model/loaded.ts';
import { engine, failure, model } from '../src/state/model.ts';
import {
  answers,
  baseline,
  baselineTrace,
  cancelRun,
  follow,
  layerTrace,
  originalOf,
  restoreWeights,
  run,
  runAgain,
  running,
  runsLong,
  type Run,
  wantsParameters,
} from '../src/state/run.ts';
import { status } from '../src/state/status.ts';
import type { LayerChanges } from '../src/state/changes.ts';
import { initialView, update, view, type View } from '../src/state/view.ts';
import { aMoment, failing, gate, open, openNamed, until } from './state.ts';

let attn: Attn;
let direct: Direct;
let of: LoadedModel;
beforeAll(async () => {
  ({ attn, direct, of } = await open('sentiment'));
  follow();
});
afterAll(() => direct.dispose());

const text = 'A dull film, but well played.';
const bias = 'bert.encoder.layer.1.output.dense.bias';
const change: LayerChanges = { layer: 1, factor: 1, score: 'scaled_dot', dropout: 0, seed: 0, edits: [] };

const asked = (of: View | undefined) => JSON.stringify(of && [of.text, of.pair, of.causal, of.padding, of.drawn, of.off, of.weights, of.change]);

const settled = () =>
  until('the run of the view', () => {
    const [made, inside] = [run.value, layerTrace.value];
    const isIt = made && made.model === model.value && asked(made.view) === asked(view.value);
    return isIt && inside?.run === made && inside.layer === Math.min(view.value.layer, made.model.layers - 1) && !running.value;
  });

async function see(changes: Partial<View>): Promise<Run> {
  view.value = { ...initialView, text, ...changes };
  await settled();
  return run.value!;
}

const all = { outputAttentions: true, outputHiddenStates: true } as const;
const forward = async (options: TextForwardOptions = {}, inputs: string | readonly (readonly [string, string])[] = text) =>
  of.text.forward(await of.text.tokenize(inputs as string), { ...all, ...options });

type Forward = Awaited<ReturnType<typeof forward>>;
const same = (a: Tensor | undefined, b: Tensor | undefined) => expect(largestDifference(a!.data, b!.data)).toBe(0);
function expectSame(made: Run, wanted: Forward) {
  expect(made.attentions.length).toBe(wanted.attentions!.length);
  expect(made.hiddenStates.length).toBe(wanted.hiddenStates!.length);
  wanted.attentions!.forEach((each, i) => same(made.attentions[i], each));
  wanted.hiddenStates!.forEach((each, i) => same(made.hiddenStates[i], each));
  same(made.logits, wanted.logits);
}

beforeEach(async () => {
  model.value = of;
  failure.value = undefined;
  status.value = { text: '' };
  await see({});
});

describe('a run', () => {
  it('equals the model, is its own baseline and reports its time if the view has no changes', async () => {
    const made = run.value!;
    expectSame(made, await forward());
    expect(made.tokens).toEqual((await of.text.tokenize(text)).tokens[0]);
    expect(made.milliseconds).toBeGreaterThan(0);
    expect(baseline.value).toBe(made);
    expect(baselineTrace.value).toBeUndefined();
    expect([running.value, runsLong.value]).toEqual([false, false]);
    expect(status.value.text).toMatch(/^Ready: the model sentiment, 2 × 4 heads over 10 tokens in \d+\.\d ms\.$/);
    expect(status.value.failed).toBeUndefined();
  });

  it('traces the layer in focus without its parameters until the story wants them', async () => {
    const before = layerTrace.value!;
    wantsParameters.value = false;
    const layer = before.layer === 0 ? 1 : 0;
    update({ layer });
    await until(`layer ${layer}`, () => layerTrace.value?.layer === layer);
    expect(layerTrace.value!.parameters.size).toBe(0);
    const { trace, run: of } = layerTrace.value!;
    wantsParameters.value = true;
    await until('the parameters', () => layerTrace.value!.parameters.size > 0);
    expect([layerTrace.value!.trace, layerTrace.value!.run], 'nothing is computed again').toEqual([trace, of]);
    expect(layerTrace.value!.trace).toBe(trace);
  });

  it('traces the layer in focus with its parameters and follows the focus without a new run', async () => {
    const made = run.value!;
    for (const layer of [0, 1]) {
      update({ layer });
      await until(`layer ${layer}`, () => layerTrace.value?.layer === layer);
      const { trace } = await forward({ trace: { layers: [layer] } });
      const own = trace!.get(layer)!;
      expect(Object.keys(layerTrace.value!.trace).sort()).toEqual(Object.keys(own).sort());
      for (const [name, tensor] of Object.entries(own)) same(layerTrace.value!.trace[name as keyof EncoderTrace], tensor);
      expect([...layerTrace.value!.parameters.keys()]).toContain(`bert.encoder.layer.${layer}.output.dense.bias`);
    }
    expect(run.value).toBe(made);
    update({ layer: 7 });
    await aMoment();
    expect(layerTrace.value!.layer, 'the last layer of the model').toBe(1);
    const before = layerTrace.value;
    update({ head: 2, threshold: 0.5 });
    await aMoment();
    expect([layerTrace.value, run.value]).toEqual([before, made]);
    expect(layerTrace.value).toBe(before);
  });

  it('uses both texts of a pair', async () => {
    const made = await see({ text: 'Good.', pair: 'Bad.' });
    expectSame(made, await forward({}, [['Good.', 'Bad.']]));
    await see({ text: 'Good.', pair: undefined });
    expect(run.value!.tokens.length).toBeLessThan(made.tokens.length);
  });

  it('is repeated with its baseline if only the second text differs', async () => {
    await see({ text: 'Good.', pair: 'Bad.', causal: true });
    const first = baseline.value!;
    await see({ text: 'Good.', pair: 'Bad, very bad.', causal: true });
    expect(baseline.value!.tokens.length).toBeGreaterThan(first.tokens.length);
    expectSame(baseline.value!, await forward({}, [['Good.', 'Bad, very bad.']]));
  });

  it('applies the causal mask, drawn mask, hidden tokens and switched-off heads, and ignores indices out of range', async () => {
    expectSame(await see({ causal: true }), await forward({ isCausal: true }));
    const length = run.value!.tokens.length;
    const data = new Uint8Array(length * length);
    data[2] = data[length + 3] = 1;
    const mask = { kind: 'block', data, dims: [length, length] } as const;
    expectSame(await see({ drawn: [2, length + 3, length * length] }), await forward({ mask }));
    const headMask = { data: Float32Array.of(1, 0, 1, 1, 1, 1, 1, 0), dims: [2, 4] };
    expectSame(await see({ off: [1, 7, 8] }), await forward({ headMask }));
    const inputs = await of.text.tokenize(text);
    const attentionMask = inputs.attentionMask.slice();
    attentionMask[2] = 0;
    expectSame(await see({ padding: [2, 99] }), await of.text.forward({ ...inputs, attentionMask }, all));
    expect(run.value!.encoding.attentionMask[2], 'the attention mask of the text is unchanged').toBe(1);
  });

  it('with changes has a baseline without them, including the trace of the layer', async () => {
    const plain = await forward({ trace: { layers: [1] } });
    await see({ causal: true });
    expect(baseline.value).not.toBe(run.value);
    expectSame(baseline.value!, plain);
    await until('the baseline of the layer', () => baselineTrace.value?.run === baseline.value);
    same(baselineTrace.value!.trace.output, plain.trace!.get(1)!.output);
    const before = baseline.value;
    await see({ off: [0] });
    expect(baseline.value, 'the baseline is computed once').toBe(before);
    await see({ off: [0], layer: 0 });
    await until('the baseline of the other layer', () => baselineTrace.value?.layer === 0);
    await see({ off: [0], text: 'Another text.' });
    expectSame(baseline.value!, await forward({}, 'Another text.'));
    await see({});
    expect(baselineTrace.value).toBeUndefined();
  });
});

describe('edited weights', () => {
  const weights = [{ name: bias, index: 3, value: 2.5 }];
  const valueOf = async (name = bias) => (await of.text.getParameter(name)).data[3]!;

  it('affect the run but not the baseline, and are restored afterwards', async () => {
    const [own, plain] = [await valueOf(), await forward()];
    expect(originalOf(of, bias, 3)).toBeUndefined();
    const made = await see({ weights });
    expect(await valueOf()).toBe(2.5);
    expect(originalOf(of, bias, 3)).toBe(own);
    expect(originalOf(of, 'another', 3)).toBeUndefined();
    expectSame(made, await forward());
    expectSame(baseline.value!, plain);
    expect(largestDifference(made.logits!.data, plain.logits!.data)).toBeGreaterThan(0);
    const traced = (await forward({ trace: { layers: [1] } })).trace!.get(1)!;
    same(layerTrace.value!.trace.ff_output, traced.ff_output);
    expect(layerTrace.value!.parameters.get(bias)!.data[3]).toBe(2.5);
    expect(largestDifference(baselineTrace.value!.trace.ff_output.data, traced.ff_output!.data)).toBeGreaterThan(1);
    expectSame(await see({}), plain);
    expect(await valueOf()).toBe(own);
    expect(originalOf(of, bias, 3)).toBeUndefined();
  });

  it('can be in one parameter or in several', async () => {
    const name = 'bert.encoder.layer.0.output.dense.bias';
    const [own, other] = [await valueOf(), await valueOf(name)];
    await see({ weights });
    await see({ weights: [...weights, { name: bias, index: 0, value: 1 }, { name, index: 3, value: -1 }] });
    expect([await valueOf(), await valueOf(name), (await of.text.getParameter(bias)).data[0]]).toEqual([2.5, -1, 1]);
    await see({ weights: [{ name, index: 3, value: -1 }] });
    expect([await valueOf(), await valueOf(name)]).toEqual([own, -1]);
    expect([originalOf(of, bias, 3), originalOf(of, name, 3)]).toEqual([undefined, other]);
    await see({});
    expect(await valueOf(name)).toBe(other);
  });

  it('stay in the model if the trace of the baseline fails', async () => {
    let isBroken = false;
    const broken = await openNamed(direct, 'sentiment', {
      forward: async (own, ...args) => {
        const { data } = await broken.text.getParameter(bias);
        if (isBroken && data[3] !== 2.5) throw failing('SHAPE');
        return own(...args);
      },
    });
    model.value = broken;
    await see({ weights });
    isBroken = true;
    update({ layer: 0 });
    await until('the failure', () => status.value.failed && !running.value);
    expect((await broken.text.getParameter(bias)).data[3]).toBe(2.5);
  });

  it('are still undone after an attempt that failed', async () => {
    const own = await valueOf();
    let isBroken = false;
    const broken = await openNamed(direct, 'sentiment', {
      loadStateDict: async (load, ...args) => {
        if (isBroken) throw failing('MEMORY');
        return load(...args);
      },
    });
    model.value = broken;
    await see({ weights });
    isBroken = true;
    await expect(restoreWeights(broken)).rejects.toThrow('planted');
    isBroken = false;
    await restoreWeights(broken);
    expect((await broken.text.getParameter(bias)).data[3]).toBe(own);
  });

  it('have no effect if the model does not contain them', async () => {
    const plain = await forward();
    const { data } = await of.text.getParameter(bias);
    const nowhere = [
      { name: bias, index: data.length, value: 9 },
      { name: 'nothing', index: 0, value: 9 },
    ];
    expectSame(await see({ weights: nowhere }), plain);
    expect(status.value.failed).toBeUndefined();
  });
});

describe('a changed layer', () => {
  const softmaxOf = async (scores: Tensor) => attn.softmax(scores);

  it.each([
    ['a factor', { factor: 2 }, (width: number) => 2 / Math.sqrt(width)],
    ['no scale', { score: 'dot' }, () => 1],
    ['no scale and a factor', { score: 'dot', factor: 0.75 }, () => 0.75],
    ["Luong's function with the unit matrix", { score: 'general', factor: 0.5 }, () => 0.5],
  ] as const)('computes attention with %s', async (_, changes, scaleOf) => {
    const plain = await forward({ trace: { layers: [1] } });
    const { q, k, v } = plain.trace!.get(1) as Required<EncoderTrace>;
    const made = await see({ change: { ...change, ...changes } });
    const { weights, merged } = layerTrace.value!.trace;
    const wanted = await attn.scaledDotProductAttention(q, k, v, { scale: scaleOf(q.dims[3]!), needWeights: true });
    expect(largestDifference(made.attentions[1]!.data, wanted.weights!.data)).toBeLessThan(1e-6);
    expect(largestDifference(weights.data, wanted.weights!.data)).toBeLessThan(1e-6);
    same(made.attentions[0], plain.attentions![0]);
    same(made.hiddenStates[1], plain.hiddenStates![1]);
    expectSame({ ...made, attentions: plain.attentions! }, { ...(await forward({ patch: { layer: 1, merged } })), attentions: plain.attentions! });
    expect(largestDifference(made.logits!.data, plain.logits!.data)).toBeGreaterThan(1e-5);
  });

  it('computes Bahdanau scores as Σ tanh(q + k)', async () => {
    const made = await see({ change: { ...change, score: 'additive' } });
    const { q, k, scores } = layerTrace.value!.trace;
    const width = q.dims[3]!;
    let sum = 0;
    for (let d = 0; d < width; ++d) sum += Math.tanh(q.data[2 * width + d]! + k.data[5 * width + d]!);
    expect(scores.data[2 * made.tokens.length + 5]).toBeCloseTo(sum, 4);
    expect(largestDifference(made.attentions[1]!.data, (await softmaxOf(scores)).data)).toBeLessThan(1e-6);
  });

  it('drops different weights for different seeds', async () => {
    const dropped = async (seed: number) => (await see({ change: { ...change, dropout: 0.5, seed } })).attentions[1]!.data;
    const [first, second, again] = [await dropped(1), await dropped(2), await dropped(1)];
    expect(first).toEqual(again);
    expect(first).not.toEqual(second);
    const zeros = first.filter((value) => value === 0).length / first.length;
    expect(zeros).toBeGreaterThan(0.3);
    expect(zeros).toBeLessThan(0.7);
  });

  it('keeps masked weights at 0', async () => {
    const { tokens, attentions } = await see({ causal: true, padding: [1], change: { ...change, factor: 3 } });
    const length = tokens.length;
    for (let i = 0; i < length; ++i) for (let j = 0; j < length; ++j) if (j > i || j === 1) expect(attentions[1]!.data[i * length + j]).toBe(0);
    expect(attentions[1]!.data[0]).toBe(1);
  });

  it('computes everything after an edited input from the edited values', async () => {
    const plain = await forward();
    const x = plain.hiddenStates![1]!;
    const data = x.data.slice();
    data[5] = 3;
    data[70] = -2;
    const edits = [
      { name: 'X', index: 5, value: 3 },
      { name: 'X', index: 70, value: -2 },
      { name: 'X', index: data.length, value: 9 },
      { name: 'Y', index: 6, value: 9 },
    ];
    const made = await see({ change: { ...change, edits } });
    const patched = await forward({ patch: { layer: 1, hiddenState: { data, dims: x.dims } } });
    expectSame(made, patched);
    expect(largestDifference(made.logits!.data, plain.logits!.data)).toBeGreaterThan(0);
    const scaled = await see({ change: { ...change, edits, factor: 2 } });
    same(scaled.hiddenStates[1], patched.hiddenStates![1]);
    expect(largestDifference(scaled.attentions[1]!.data, patched.attentions![1]!.data)).toBeGreaterThan(0.001);
    expectSame(await see({ change: { ...change, edits: edits.slice(3) } }), plain);
  });

  it('has no effect if the model does not contain it', async () => {
    const plain = await forward();
    expectSame(await see({ layer: 0, change: { ...change, layer: 2, factor: 2 } }), plain);
    expect(status.value.failed).toBeUndefined();
  });

  it('affects the trace of a later layer in focus, but not of an earlier one', async () => {
    await see({ layer: 0, change: { ...change, factor: 2 } });
    const plain = await forward({ trace: { layers: [0] } });
    same(layerTrace.value!.trace.weights, plain.trace!.get(0)!.weights);
    await see({ layer: 1, change: { ...change, layer: 0, factor: 2 } });
    const { merged } = await (async () => {
      update({ layer: 0 });
      await until('layer 0', () => layerTrace.value?.layer === 0);
      return layerTrace.value!.trace;
    })();
    const wanted = await forward({ patch: { layer: 0, merged }, trace: { layers: [1] } });
    update({ layer: 1 });
    await until('layer 1', () => layerTrace.value?.layer === 1);
    same(layerTrace.value!.trace.weights, wanted.trace!.get(1)!.weights);
  });

  it('keeps the relative position scores of MPNet', async () => {
    const mpnet = await openNamed(direct, 'tiny-mpnet');
    model.value = mpnet;
    view.value = { ...initialView, text, layer: 0, change: { ...change, layer: 0, factor: 1, dropout: 1e-9 } };
    await settled();
    const own = await mpnet.text.forward(await mpnet.text.tokenize(text), all);
    expect(largestDifference(run.value!.attentions[0]!.data, own.attentions![0]!.data)).toBeLessThan(2e-6);
  });
});

describe('a long run', () => {
  const held = async () => {
    const forwards = gate();
    const made = await openNamed(direct, 'sentiment', {
      forward: async (own, ...args) => {
        await forwards.pass();
        return own(...args);
      },
    });
    return { forwards, made };
  };

  it('can be cancelled and leaves the previous results until something new is requested', async () => {
    const { made, forwards } = await held();
    const shown = run.value;
    const seen: string[] = [];
    const end = effect(() => void seen.push(`${running.value} ${runsLong.value}`));
    model.value = made;
    await until('a long run', () => runsLong.value);
    expect(seen).toEqual(['false false', 'true false', 'true true']);
    end();
    cancelRun();
    expect([running.value, runsLong.value]).toEqual([false, false]);
    expect(status.value).toEqual({ text: 'Cancelled. You see the results from before.' });
    forwards.let(1);
    await aMoment();
    expect([run.value, forwards.waiting]).toEqual([shown, 0]);
    expect(status.value.text).toMatch(/^Cancelled/);
    forwards.let();
    runAgain();
    await settled();
    expect(run.value!.model).toBe(made);
    expect([running.value, runsLong.value]).toEqual([false, false]);
  });

  it('can be cancelled after its baseline and before its result', async () => {
    const { made, forwards } = await held();
    forwards.let(2);
    model.value = made;
    await settled();
    const shown = run.value;
    update({ text: 'Something else.', causal: true });
    await until('the forward of the baseline', () => forwards.waiting === 1);
    forwards.let(1);
    await until('the forward with its changes', () => forwards.waiting === 1 && baseline.value?.view.text === 'Something else.');
    cancelRun();
    forwards.let(1);
    await aMoment();
    expect(run.value).toBe(shown);
    expect(forwards.waiting).toBe(0);
  });

  it('can be cancelled during its baseline, which is then discarded', async () => {
    const { made, forwards } = await held();
    forwards.let(2);
    model.value = made;
    await settled();
    const before = baseline.value;
    update({ text: 'Something else.', causal: true });
    await until('the forward of the baseline', () => forwards.waiting === 1);
    cancelRun();
    forwards.let(1);
    await aMoment();
    expect(baseline.value).toBe(before);
    expect(forwards.waiting).toBe(0);
  });

  it('is repeated only on request', async () => {
    const before = run.value;
    runAgain();
    await until('another run', () => run.value !== before);
    await settled();
    const next = run.value!;
    expectSame(next, await forward());
    update({ head: 1 });
    await aMoment();
    expect(run.value).toBe(next);
  });

  it('computes only the newest of several requests', async () => {
    const { made, forwards } = await held();
    model.value = made;
    await until('the first forward', () => forwards.waiting === 1);
    for (const word of ['one', 'two', 'three', 'four', 'five']) update({ text: `Number ${word}.` });
    // One for the first run, whose trace is skipped; two for the newest run and its trace.
    forwards.let(3);
    await settled();
    expect(run.value!.view.text).toBe('Number five.');
  });
});

describe('a run that fails', () => {
  const broken = (error: unknown) =>
    openNamed(direct, 'sentiment', {
      forward: async () => {
        throw error;
      },
    });

  it('reports the error and keeps the previous results', async () => {
    const shown = run.value;
    model.value = await broken(failing('MEMORY', 'no memory is left'));
    await until('the failure', () => status.value.failed);
    expect(status.value.text).toBe('Attention could not be computed. no memory is left (MEMORY)');
    expect(failure.value).toBeUndefined();
    await until('the end of the run', () => !running.value);
    expect(run.value).toBe(shown);
  });

  it.each(['ABORTED', 'INTERNAL'] as const)('offers to restart the module after the error %s', async (code) => {
    model.value = await broken(failing(code, 'the worker is gone'));
    await until('the failure', () => failure.value);
    expect(failure.value).toEqual({
      what: 'The module has stopped.',
      words: { cause: `the worker is gone (${code})`, fix: 'Start it again. The text and the view stay.' },
      code,
    });
  });

  it('reports nothing if its model was replaced', async () => {
    const forwards = gate();
    const late = await openNamed(direct, 'sentiment', {
      forward: async () => {
        await forwards.pass();
        throw failing('DISPOSED');
      },
    });
    model.value = late;
    await until('the forward', () => forwards.waiting === 1);
    model.value = of;
    forwards.let();
    await settled();
    expect(status.value.failed).toBeUndefined();
    expect(run.value!.model).toBe(of);
  });

  it('reports nothing after it was cancelled', async () => {
    const forwards = gate();
    model.value = await openNamed(direct, 'sentiment', {
      forward: async () => {
        await forwards.pass();
        throw failing('INTERNAL');
      },
    });
    await until('the forward', () => forwards.waiting === 1);
    cancelRun();
    forwards.let();
    await aMoment();
    expect(status.value.text).toMatch(/^Cancelled/);
    expect(failure.value).toBeUndefined();
  });
});

describe('the output of a classifier', () => {
  const said = (logits: readonly number[] | undefined, config: object = {}, labels: readonly string[] | undefined = ['a', 'b', 'c']) =>
    answers({ model: { ...of, config, labels }, logits: logits && { data: Float32Array.from(logits), dims: [1, logits.length] } } as unknown as Run);

  it('are probabilities or values, sorted by descending score', () => {
    const [first, ...rest] = said([1, 3, 2]);
    expect([first!.label, ...rest.map(({ label }) => label)]).toEqual(['b', 'c', 'a']);
    const sum = Math.exp(1) + Math.exp(2) + Math.exp(3);
    expect(first!.score).toBeCloseTo(Math.exp(3) / sum, 6);
    expect(rest[1]!.score).toBeCloseTo(Math.exp(1) / sum, 6);
    expect(said([1000, 900, 0])[0]!.score).toBe(1);
    expect(said([0, 2, -2], { problem_type: 'multi_label_classification' }).map(({ score }) => score.toFixed(4))).toEqual([
      '0.8808',
      '0.5000',
      '0.1192',
    ]);
    expect(said([0, 2, -2], { problem_type: 'regression' }).map(({ score }) => score)).toEqual([2, 0, -2]);
    expect(said(undefined)).toEqual([]);
    expect(answers({ ...run.value!, model: { ...of, labels: undefined } })).toEqual([]);
  });
  it('match classify() of the package', async () => {
    const [classes] = await of.text.classify([text]);
    const own = answers(run.value!);
    expect(own.map(({ label }) => label)).toEqual(classes!.map(({ label }) => label));
    own.forEach(({ score }, i) => expect(score).toBeCloseTo(classes![i]!.score, 6));
  });
});

it('nothing is computed without a model', async () => {
  const shown = run.value;
  model.value = undefined;
  update({ text: 'Another.' });
  await aMoment();
  expect(run.value).toBe(shown);
  expect(engine.value).toBe(attn);
});
