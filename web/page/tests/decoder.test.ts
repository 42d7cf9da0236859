/** Decoders in the first figure and on the map: the next word, causal attention, grouped key and value heads. */
import { readFileSync } from 'node:fs';
import { AttnError, type Attn as Direct, type EncoderTrace, type Encoding, type Task } from 'attn';
import { logitLens, type LensModel } from 'attn/lens';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { repeatHeads } from '../src/arithmetic/arrays.ts';
import { checkLayer } from '../src/check/layer.ts';
import { explainLoading } from '../src/model/errors.ts';
import { isDecoder, type LoadedModel } from '../src/model/loaded.ts';
import { scoreCap } from '../src/model/kind.ts';
import { withOwnMask } from '../src/state/changes.ts';
import { beginningOf, firstLook, sentences } from '../src/state/first_look.ts';
import { followGuesses, guesses, query, queryAsked } from '../src/state/guess.ts';
import { hasGuesses, lastNorm, layerGuesses } from '../src/state/layer_guesses.ts';
import { chooseFiles, chooseModel } from '../src/state/load_model.ts';
import { shown } from '../src/state/map_view.ts';
import { failure, model } from '../src/state/model.ts';
import { follow, layerTrace, run, withAllHeads } from '../src/state/run.ts';
import { noteInto } from '../src/state/self_check.ts';
import type { Compared } from '../src/state/reference.ts';
import { status } from '../src/state/status.ts';
import { textNotes } from '../src/state/text_notes.ts';
import { anywhere, firstVisit, initialView, update, view } from '../src/state/view.ts';
import { checkedSteps, inTestdata, openModel } from './models.ts';
import { fetchFile, open, openNamed, until } from './state.ts';

vi.stubGlobal('window', globalThis);
vi.stubGlobal('fetch', fetchFile);

const families = ['gpt2', 'llama', 'llama-3', 'mistral', 'qwen2', 'qwen3', 'gemma-2', 'gemma-3', 'neox', 'neox-serial'];
const text = 'The cat sat on the';
const start = { ...initialView, text, cell: anywhere };
let direct: Direct;

async function shownFor(of = model.value!) {
  await until('the numbers of the view', () => {
    const [now, { text: written, off, layer }] = [run.value, view.value];
    const isCurrent = now?.model === of && now.view.text === written && String(now.view.off) === String(off);
    return isCurrent && layerTrace.value?.run === now && layerTrace.value.layer === layer && guesses.value?.run === now;
  });
  return { now: firstLook.value!, made: guesses.value! };
}

beforeAll(async () => {
  ({ direct } = await open('tiny-gpt2', start));
  follow();
  followGuesses();
});

describe.each(families)('a decoder of the family %s', (family) => {
  beforeEach(async () => {
    view.value = start;
    queryAsked.value = undefined;
    if (model.value?.id !== `tiny-${family}`) model.value = await openNamed(direct, `tiny-${family}`);
  });

  it('shows the words after the last one, as nextToken gives them', async () => {
    const { now, made } = await shownFor();
    expect(isDecoder(model.value!)).toBe(true);
    expect([now.token, now.place, now.isBlank]).toEqual([run.value!.tokens.length - 1, now.columns.length - 1, false]);
    const expected = await model.value!.text.nextToken(text, { topK: 4 });
    expect(made.kind).toBe('next');
    expect(made.list).toHaveLength(4);
    for (const [i, { probability, text: written }] of expected.entries()) {
      expect(made.list[i]!.share).toBeCloseTo(probability, 6);
      if (/^ ?[a-z]+$/.test(written)) expect(made.list[i]!.word).toBe(written.trim());
      expect(made.list[i]!.word).not.toBe('');
    }
  });

  it('has scores of the queries and keys of each head, weights that sum to 1, and words without the space before them', async () => {
    for (const head of [0, 1, 2, 3]) {
      update({ head, layer: 1 });
      const { now } = await shownFor();
      const cap = scoreCap(now.of.run.model.config);
      for (const { key, score, isMasked } of now.columns) {
        const plain = now.query.reduce((sum, value, d) => sum + value * key[d]!, 0) / Math.sqrt(now.width);
        if (!isMasked) expect(cap > 0 ? cap * Math.tanh(plain / cap) : plain).toBeCloseTo(score, 4);
      }
      const sum = Array.from(now.sum, (_, d) => now.columns.reduce((all, { weight, value }) => all + weight * value[d]!, 0));
      if (now.elsewhere < 1e-6) sum.forEach((value, d) => expect(value).toBeCloseTo(now.sum[d]!, 4));
      expect(now.elsewhere + now.columns.reduce((all, { weight }) => all + weight, 0)).toBeCloseTo(1, 5);
      for (const { word, start: from, end } of now.columns) if (word.trim()) expect(text.slice(from, end)).toBe(word.trim());
    }
  });

  it('sees no later word: the map is a lower triangle, and a query in the middle has masked keys', async () => {
    await shownFor();
    const { tokens, attentions } = run.value!;
    const [L, { blocked }] = [tokens.length, shown.value!];
    for (let i = 0; i < L; ++i)
      for (let j = i + 1; j < L; ++j) {
        expect(blocked![i * L + j]).toBe(1);
        for (const { data } of attentions) expect(data[i * L + j]).toBe(0);
      }
    expect(blocked![L]).toBe(0);
    queryAsked.value = L - 3;
    await until('the other query', () => query.value === L - 3 && guesses.value!.query === L - 3);
    expect(firstLook.value!.columns.map(({ isMasked }) => isMasked).slice(-3)).toEqual([false, true, true]);
  });

  it('guesses other words with a head off, and shows the best one of the unchanged model', async () => {
    const before = (await shownFor()).made.list;
    update({ off: [0, 1, 2, 3] });
    const { made } = await shownFor();
    expect(made.list).not.toEqual(before);
    expect(made.before![0]!.word).toBe(before[0]!.word);
    expect(made.before![0]!.share).toBeCloseTo(before[0]!.share, 6);
  });

  it('pays the same attention to all visible tokens if its scores are scaled by 0', async () => {
    update({ layer: 1, change: { layer: 1, factor: 0, score: 'scaled_dot', dropout: 0, seed: 0, edits: [] } });
    await until('the changed layer', () => run.value?.view.change && layerTrace.value?.run === run.value && layerTrace.value.layer === 1);
    const { weights, masked_scores: scores } = layerTrace.value!.trace;
    const L = run.value!.tokens.length;
    for (let i = 0; i < weights.data.length; i += L) {
      const visible = Array.from(scores.data.subarray(i, i + L), (score) => score !== -Infinity);
      const share = 1 / visible.filter(Boolean).length;
      visible.forEach((is, j) => expect(weights.data[i + j]).toBeCloseTo(is ? share : 0, 5));
    }
  });

  it('is computed again in double precision, step by step, and a planted error is found', async () => {
    const of = model.value!;
    const inputs = await of.text.tokenize(text);
    const check = async (change: (trace: Required<EncoderTrace>) => void) => {
      const steps = new Map<string, Compared>();
      for (let layer = 0; layer < of.layers; ++layer) {
        const { trace, hiddenStates } = await of.text.forward(inputs, { outputHiddenStates: true, trace: { layers: [layer] } });
        const own = withAllHeads(trace!.get(layer)!, of.heads) as Required<EncoderTrace>;
        change(own);
        const checkable = { ...of, parameter: async (name: string) => of.text.getParameter(name) };
        const rows = Array.from({ length: inputs.dims[1]! }, (_, i) => i);
        await checkLayer(checkable, layer, hiddenStates![layer]!, own, rows, noteInto(steps), async () => undefined);
      }
      return [...steps.values()];
    };
    const right = await check(() => undefined);
    // Its matrix has the heads one after the other, each with its queries, keys and values.
    expect(right.map(({ what }) => what)).toEqual(family.startsWith('neox') ? checkedSteps.slice(0, 3) : checkedSteps);
    for (const { what, passes, difference } of right) expect(`${what} ${passes ? 'passes' : difference}`).toBe(`${what} passes`);
    const wrong = await check(({ v }) => (v.data[v.data.length - 1]! += 0.01));
    expect(wrong.filter(({ passes }) => !passes).map(({ what }) => what)).toEqual(['Weighted sum of the values']);
  });

  it('reads an empty text', async () => {
    update({ text: '' });
    const { made } = await shownFor();
    expect(made.list).toEqual([]);
    expect(status.value.failed).not.toBe(true);
    expect(run.value!.tokens).toHaveLength(1);
  });
});

describe('the guess after each layer', () => {
  it.each([...families.map((family) => `tiny-${family}`), 'tiny-modernbert-mlm'])('of %s has the last norm of the model', async (name) => {
    const of = await openNamed(direct, name);
    const layer = of.layers - 1;
    const { hiddenStates, trace } = await of.text.forward(await of.text.tokenize(text), { outputHiddenStates: true, trace: { layers: [layer] } });
    const { data, dims } = trace!.get(layer)!.ff_residual!;
    const normed = await lastNorm(of, { data, dims: dims.slice(1) });
    normed.data.forEach((value, i) => expect(value).toBeCloseTo(hiddenStates!.at(-1)!.data[i]!, 4));
    expect(normed.data.some((value, i) => Math.abs(value - data[i]!) > 0.01)).toBe(true);
    await of.text.dispose();
  });

  it('leaves rows of a post-norm model as they are', async () => {
    const of = await openNamed(direct, 'masks');
    const x = { data: new Float32Array(of.config['hidden_size'] as number).fill(2), dims: [1, of.config['hidden_size'] as number] };
    expect(await lastNorm(of, x)).toBe(x);
  });

  it.each(['gpt2', 'llama', 'llama-3', 'mistral', 'qwen2', 'qwen3'])('of the decoder %s is that of the logit lens', async (family) => {
    view.value = start;
    queryAsked.value = undefined;
    const of = await openNamed(direct, `tiny-${family}`);
    model.value = { ...of, hiddenSize: 24 };
    await shownFor();
    expect(hasGuesses(of)).toBe(true);
    const stop = layerGuesses.follow();
    await until('the guesses', () => layerGuesses.value.value?.run === run.value);
    stop();
    const { rows, kind } = layerGuesses.value.value!;
    const { predictions } = await logitLens(of.text as unknown as LensModel, text, { positions: [run.value!.tokens.length - 1], topK: 3 });
    expect([rows.length, kind]).toEqual([3, 'next']);
    predictions.forEach(([best], layer) => best!.forEach(({ probability }, i) => expect(rows[layer]![i]!.share).toBeCloseTo(probability, 5)));
  });
});

it('keys and values of fewer heads are repeated for neighbouring queries', () => {
  const x = { data: Float32Array.from([1, 2, 3, 4, 5, 6, 7, 8]), dims: [1, 2, 2, 2] };
  expect(repeatHeads(x, 2)).toBe(x);
  const { data, dims } = repeatHeads(x, 4);
  expect([dims, Array.from(data)]).toEqual([
    [1, 4, 2, 2],
    [1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8],
  ]);
});

it('an encoder has no mask of its own', () => {
  expect(withOwnMask(initialView, { task: 'fill-mask' }).causal).toBe(false);
  expect(withOwnMask(initialView, { task: 'text-generation' }).causal).toBe(true);
});

it('a long text of a decoder ends at the limit of the page, or of the model', () => {
  const tokens = Array.from({ length: 512 }, () => 'a');
  const encoding = { truncated: [true], offsets: [tokens.map((_, i): [number, number] => [i, i + 1])] } as unknown as Encoding;
  const noteOf = (list: readonly string[], task: Task) => textNotes({ tokens: list, encoding, model: { task } as LoadedModel })[0];
  expect(noteOf(tokens, 'text-generation')).toBe('The model reads only the first 512 tokens, the limit of this page.');
  expect(noteOf(tokens.slice(1), 'text-generation')).toBe('The model reads only the first 511 tokens, its limit.');
  expect(noteOf(tokens, 'fill-mask')).toBe('The model reads only the first 512 tokens, its limit.');
});

describe('loading a decoder', () => {
  const filesOf = (name: string) =>
    ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'generation_config.json', 'model.safetensors'].map(
      (file) => [`${name}/${file}`, new Blob([readFileSync(inTestdata(`models/${name}/${file}`))])] as const,
    );

  it('from files continues the example sentence, and the mask model gets its blank back', async () => {
    view.value = firstVisit;
    await chooseFiles(filesOf('tiny-llama'));
    expect(failure.value).toBeUndefined();
    expect(model.value).toMatchObject({ task: 'text-generation', name: 'tiny-llama', layers: 2, heads: 4, labels: undefined, dtype: 'int8' });
    expect(view.value).toMatchObject({ text: 'She drank a cup of', causal: false });
    const { made } = await shownFor();
    expect(made.list).toHaveLength(4);
    await chooseModel('masks');
    expect(view.value.text).toBe(firstVisit.text);
  });

  it('keeps a text of the visitor, but not a second one or the causal mask of an encoder', async () => {
    view.value = { ...start, text: 'Mine ends here.', pair: 'A second one.', causal: true };
    await chooseFiles(filesOf('tiny-gpt2'));
    expect(view.value).toMatchObject({ text: 'Mine ends here.', pair: undefined, causal: false });
  });

  it('has the beginnings of the examples as its examples', () => {
    expect(sentences.map(beginningOf)).toEqual(['She drank a cup of', 'The boy kicked the', 'I went to the', 'My mother and my']);
    expect(beginningOf('I like <mask>, too.')).toBe('I like');
  });

  it('explains that it is too large, or which kind is not supported', async () => {
    const config = JSON.parse(readFileSync(inTestdata('models/tiny-llama/config.json'), 'utf8')) as Record<string, unknown>;
    const load = (settings: Readonly<Record<string, unknown>>) =>
      openModel(direct, 'tiny-llama', undefined, settings).then(
        () => undefined,
        (error: unknown) => error,
      );
    const large = explainLoading(
      await load({
        ...config,
        hidden_size: 2048,
        head_dim: 64,
        num_attention_heads: 32,
        num_key_value_heads: 4,
        num_hidden_layers: 22,
        intermediate_size: 5632,
        vocab_size: 32000,
      }),
      { host: undefined },
    );
    expect(large.cause).toMatch(/^It is too large: it needs 4\.\d GB of memory, and a page can use at most 4\.3 GB\.$/);
    expect(large.fix).toMatch(/smaller model/);
    const other = explainLoading(await load({ model_type: 'mamba', architectures: ['MambaForCausalLM'] }), { host: undefined });
    expect(other.cause).toBe('This kind of model, mamba, is not one that this page computes.');
    expect(other.fix).toMatch(/decoders of the families GPT-2/);
    expect(explainLoading(new AttnError('MEMORY', 'no memory'), { host: undefined }).cause).toBe('There is not enough memory for it.');
    const absent = new AttnError('NETWORK', 'absent', { status: 404, file: 'tiny.gguf' });
    expect(explainLoading(absent, { host: 'example.org' }).cause).toBe('example.org has no such file (404).');
  });
});
