import type { Attn as Direct, Tensor } from 'attn';
import type { Attn } from 'attn/worker';
import { signal } from '@preact/signals';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { largestDifference } from '../src/arithmetic/differences.ts';
import { encoderSize, gigaflops, multiplyAdds } from '../src/model/flops.ts';
import { ablating, ablation, ablationFailure, isCurrent, switchEachOff } from '../src/state/ablation.ts';
import { backgroundValue, editedWeights, headsOff, shownModel } from '../src/state/background.ts';
import { followHeads, heads } from '../src/state/heads.ts';
import { lines, linesText, type Lines } from '../src/state/compare_texts.ts';
import { headMaskOf, type LoadedModel } from '../src/model/loaded.ts';
import { engine, model } from '../src/state/model.ts';
import { overlay, toggleInOverlay, toggleOverlay } from '../src/state/overlay.ts';
import { cellInFocus, pointTo } from '../src/state/pointed.ts';
import { answersWithout } from '../src/state/pooling.ts';
import { addCompared, comparison, type Compared } from '../src/state/reference.ts';
import { baselineTrace, follow, layerTrace, run, running } from '../src/state/run.ts';
import { selfCheck } from '../src/state/self_check.ts';
import { headInFocus, layerInFocus, shown } from '../src/state/map_view.ts';
import { disturbanceOf, followSpeed, measure, measuring, samples, speed, speedFailure } from '../src/state/speed.ts';
import { followWalk, ofHead, reach, walk, walkFailure } from '../src/state/walk.ts';
import { changeLayer, initialView, update, view, type View } from '../src/state/view.ts';
import {
  analogy,
  findWords,
  initialWords,
  isWholeWord,
  neighbours,
  similarity,
  tableDims,
  typical,
  updateWords,
  wordMap,
  wordsView,
} from '../src/state/words.ts';
import { checkedSteps } from './models.ts';
import { aMoment, failing, fetchFile, gate, open, openNamed, until, type Changes } from './state.ts';

vi.stubGlobal('window', globalThis);
vi.stubGlobal('fetch', fetchFile);

let attn: Attn;
let direct: Direct;
let of: LoadedModel;
beforeAll(async () => {
  ({ attn, direct, of } = await open('sentiment'));
  follow();
  followHeads();
  followWalk();
});
afterAll(() => direct.dispose());

const text = 'A dull film, but well played.';
const asked = (now: View) => JSON.stringify([now.text, now.pair, now.causal, now.padding, now.drawn, now.off, now.weights, now.change]);
const settled = () =>
  until('the run of the view', () => {
    const [made, inside] = [run.value, layerTrace.value];
    const isIt = made && made.model === model.value && asked(made.view) === asked(view.value);
    return isIt && inside?.run === made && inside.layer === Math.min(view.value.layer, made.model.layers - 1) && !running.value;
  });
async function see(changes: Partial<View>): Promise<void> {
  view.value = { ...initialView, text, ...changes };
  await settled();
}
beforeEach(async () => {
  engine.value = attn;
  model.value = of;
  await see({});
});

const openChanged = (changes: Changes) => openNamed(direct, 'sentiment', changes);
async function show(other: LoadedModel): Promise<void> {
  model.value = other;
  await settled();
}

describe('a background value', () => {
  it('is recomputed for the newest input only, and reports failures', async () => {
    const input = signal<number | undefined>(undefined);
    const jobs = gate();
    const begun: number[] = [];
    const wanted: boolean[] = [];
    const doubled = backgroundValue<number>(() => {
      const value = input.value;
      if (value === undefined) return undefined;
      return async (isWanted) => {
        begun.push(value);
        await jobs.pass();
        wanted.push(isWanted());
        if (value === 13) throw failing('MEMORY', 'too much');
        return value === 99 ? undefined : 2 * value;
      };
    });
    const end = doubled.follow();
    await aMoment(80);
    expect([doubled.value.value, begun.length]).toEqual([undefined, 0]);
    jobs.let(1);
    input.value = 1;
    await until('the value 2', () => doubled.value.value === 2);
    input.value = 3;
    await until('the job', () => jobs.waiting === 1);
    input.value = 4;
    input.value = 5;
    jobs.let(2);
    await until('the value 10', () => doubled.value.value === 10);
    expect([begun, wanted]).toEqual([
      [1, 3, 5],
      [true, false, true],
    ]);
    jobs.let(2);
    input.value = 13;
    await until('the failure of the job', () => doubled.failure.value);
    expect([doubled.failure.value, doubled.value.value]).toEqual(['too much (MEMORY)', 10]);
    input.value = 99;
    await until('no failure', () => doubled.failure.value === undefined);
    expect(doubled.value.value, 'a job without a result keeps the value').toBe(10);
    input.value = 13;
    await until('the job', () => jobs.waiting === 1);
    input.value = 7;
    jobs.let();
    await until('the value 14', () => doubled.value.value === 14);
    expect(doubled.failure.value, 'the failure of an outdated job is ignored').toBeUndefined();
    input.value = undefined;
    await aMoment(80);
    expect(doubled.value.value).toBe(14);
    end();
    input.value = 8;
    await aMoment(150);
    expect(begun).not.toContain(8);
  });

  it('uses the model on the screen with its edited weights and switched-off heads', async () => {
    expect(shownModel.value).toBe(of);
    expect([editedWeights.value, headsOff.value]).toEqual([[], []]);
    const weights = [{ name: 'classifier.bias', index: 0, value: 1 }];
    await see({ off: [1, 7, 8], weights });
    expect([editedWeights.value, headsOff.value]).toEqual([weights, [1, 7]]);
    await see({ off: [7] });
    expect(headsOff.value).toBe(run.value!.view.off);
    model.value = undefined;
    expect(shownModel.value).toBeUndefined();
  });
});

describe('the head in focus', () => {
  it('is limited to layers and heads of the model', async () => {
    update({ layer: 9, head: 9 });
    expect([layerInFocus.value, headInFocus.value]).toEqual([1, 3]);
    update({ layer: 0, head: 2 });
    expect([layerInFocus.value, headInFocus.value]).toEqual([0, 2]);
  });

  it('is shown with its weights, tokens and blocked cells', async () => {
    await see({ layer: 0, head: 2, causal: true });
    const { tokens, attentions } = run.value!;
    const length = tokens.length;
    const all = attentions[0]!.data.subarray(2 * length ** 2, 3 * length ** 2);
    expect(shown.value!.weights).toEqual(all);
    expect(shown.value!.largest).toBe(Math.max(...all));
    expect(shown.value!.places.map(({ label }) => label)).toEqual(tokens);
    expect([...shown.value!.placeOf]).toEqual(tokens.map((_, i) => i));
    expect(shown.value!.blocked!.reduce((a, b) => a + b)).toBe((length * (length - 1)) / 2);
    update({ special: 'hide' });
    expect(shown.value!.places.length).toBe(length - 2);
    expect([...shown.value!.placeOf].filter((place) => place < 0).length).toBe(2);
    const sumOf = (row: number) => shown.value!.weights.subarray(row * (length - 2), (row + 1) * (length - 2)).reduce((a, b) => a + b);
    expect(sumOf(3)).toBeLessThan(0.999);
    update({ special: 'renormalise' });
    expect(sumOf(3)).toBeCloseTo(1, 5);
    const texts = await (async () => {
      await see({ text: 'One.', pair: 'Two.' });
      return shown.value!.places.map(({ source }) => source);
    })();
    expect(new Set(texts)).toEqual(new Set([undefined, 0, 1]));
    run.value = undefined;
    expect([shown.value, layerInFocus.value, headInFocus.value]).toEqual([undefined, view.value.layer, view.value.head]);
    update({ text: 'Another one.' });
    await settled();
  });
});

describe('the overview of all heads', () => {
  it('describes and draws each head', async () => {
    await until('the heads', () => heads.value?.run === run.value);
    const { list } = heads.value!;
    expect(list.map(({ layer, head }) => [layer, head])).toEqual([0, 1].flatMap((layer) => [0, 1, 2, 3].map((head) => [layer, head])));
    const length = run.value!.tokens.length;
    for (const { layer, head, picture, size, shares } of list) {
      expect([size, picture.length]).toEqual([length, length ** 2]);
      expect(Math.max(...picture)).toBe(1);
      const weights = run.value!.attentions[layer]!.data.subarray(head * length ** 2, (head + 1) * length ** 2);
      const largest = Math.max(...weights);
      expect(
        largestDifference(
          picture,
          weights.map((weight) => weight / largest),
        ),
      ).toBeLessThan(1e-6);
      expect(shares.separator, 'averaged over the text, whose first and last tokens are special').toBeCloseTo(
        Array.from({ length: length - 2 }, (_, i) => weights[(i + 1) * length]! + weights[(i + 2) * length - 1]!).reduce((a, b) => a + b) /
          (length - 2),
        5,
      );
    }
  });

  it('has smaller pictures for a long text and shows the newest run', async () => {
    update({ text: 'A film. '.repeat(60) });
    await until('the long run', () => run.value!.tokens.length === 128);
    await until('the heads of the long run', () => heads.value?.run === run.value);
    expect(new Set(heads.value!.list.map(({ size, picture }) => `${size} ${picture.length}`))).toEqual(new Set(['64 4096']));
    const before = heads.value;
    run.value = { ...run.value! };
    run.value = undefined;
    await aMoment();
    expect(heads.value).toBe(before);
    update({ text: 'Short.' });
    await settled();
  });
});

describe('an overlay of several heads', () => {
  it('shows the strongest head and its weight in each cell', async () => {
    await see({ layer: 1, overlay: [0, 3, 9] });
    const { heads: chosen, weights, winners, levels } = overlay.value!;
    expect(chosen).toEqual([0, 3]);
    const largest = Math.max(...weights.flatMap((own) => [...own]));
    winners.forEach((winner, i) => {
      expect(weights[winner]![i]).toBe(Math.max(weights[0]![i]!, weights[1]![i]!));
      expect(levels[i]).toBeCloseTo(weights[winner]![i]! / largest, 6);
    });
    expect(new Set(winners)).toEqual(new Set([0, 1]));
    update({ threshold: 0.2 });
    expect([...overlay.value!.levels].some((level) => level > 0 && level * largest < 0.2)).toBe(false);
    toggleInOverlay(3);
    expect(view.value.overlay).toEqual([0, 9]);
    toggleOverlay();
    expect([view.value.overlay, overlay.value]).toEqual([[], undefined]);
    toggleOverlay();
    expect(view.value.overlay).toEqual([0, 1, 2, 3]);
  });
});

describe('the cell under the pointer', () => {
  it('is in focus at once, and part of the view after the pointer rests', async () => {
    await see({ cell: { row: 1, column: 1 } });
    const before = view.value;
    pointTo({ row: 2, column: 3 });
    pointTo({ row: 2, column: 4 });
    expect([cellInFocus.value, view.value]).toEqual([{ row: 2, column: 4 }, before]);
    await until('the view', () => view.value.cell.column === 4);
    expect(cellInFocus.value).toEqual({ row: 2, column: 4 });
    pointTo({ row: 5, column: 5 });
    update({ cell: { row: 0, column: 0 } });
    expect(cellInFocus.value, 'an explicit choice has priority').toEqual({ row: 0, column: 0 });
    await aMoment(200);
    expect(view.value.cell).toEqual({ row: 0, column: 0 });
  });
});

describe('the walk through one head', () => {
  it('shares identical arrays instead of copying them', async () => {
    await see({ layer: 1 });
    const { scores, masked_scores, probabilities, weights } = layerTrace.value!.trace;
    expect([weights, probabilities, masked_scores]).toEqual([run.value!.attentions[1], weights, scores]);
    expect(weights).toBe(run.value!.attentions[1]);
    expect(probabilities).toBe(weights);
    expect(masked_scores).toBe(scores);
    await see({ layer: 1, causal: true });
    expect(layerTrace.value!.trace.masked_scores).not.toBe(layerTrace.value!.trace.scores);
  });

  const walked = () =>
    until(
      'the walk',
      () => walk.value?.run === run.value && walk.value?.layer === layerTrace.value?.layer && walk.value?.head === Math.min(view.value.head, 3),
    );
  const dot = (a: Tensor, i: number, b: Tensor, j: number) => {
    const width = a.dims[1]!;
    let sum = 0;
    for (let d = 0; d < width; ++d) sum += a.data[i * width + d]! * b.data[j * width + d]!;
    return sum;
  };

  it('contains the products of queries and keys', async () => {
    await walked();
    for (const head of [3, 1, 9]) {
      update({ head });
      await walked();
      const { trace, products } = walk.value!;
      const [q, k] = [ofHead(trace.q, walk.value!.head), ofHead(trace.k, walk.value!.head)];
      expect(q.dims).toEqual([run.value!.tokens.length, 16]);
      expect(products.data[2 * q.dims[0]! + 5]).toBeCloseTo(dot(q, 2, k, 5), 4);
      expect(walkFailure.value).toBeUndefined();
    }
    const before = walk.value;
    update({ threshold: 0.1 });
    await aMoment();
    expect(walk.value, 'the walk is computed once').toBe(before);
  });

  it('contains sums of tanh if the layer has additive scores', async () => {
    changeLayer({ score: 'additive' });
    await settled();
    await walked();
    const { trace, products } = walk.value!;
    const [q, k] = [ofHead(trace.q, 3), ofHead(trace.k, 3)];
    let sum = 0;
    for (let d = 0; d < 16; ++d) sum += Math.tanh(q.data[d]! + k.data[16 + d]!);
    expect(products.data[1]).toBeCloseTo(sum, 4);
    update({ layer: 0 });
    await settled();
    await walked();
    expect(walk.value!.products.data[1], 'another layer has its own products').toBeCloseTo(
      dot(ofHead(walk.value!.trace.q, 3), 0, ofHead(walk.value!.trace.k, 3), 1),
      4,
    );
  });

  it('reports why it failed', async () => {
    engine.value = { ...attn, linear: () => Promise.reject(failing('MEMORY', 'none left')) } as Attn;
    update({ head: 0 });
    await until('the failure', () => walkFailure.value);
    expect(walkFailure.value).toBe('none left (MEMORY)');
    engine.value = attn;
    update({ head: 2 });
    await walked();
    expect(walkFailure.value).toBeUndefined();
  });

  it('shows which values the changes affect', async () => {
    expect(reach.value).toBeUndefined();
    changeLayer({ edits: [{ name: 'X', index: 70, value: 4 }] });
    await settled();
    await until('the reach of the changes', () => reach.value);
    const found = reach.value!;
    expect(found.map(({ place, layer }) => `${place} ${layer}`).filter((each) => !each.endsWith(' 1'))).toEqual([
      'X 0',
      'weights 0',
      'last hidden state undefined',
      'logits undefined',
    ]);
    expect(found.filter(({ layer }) => layer === 1).map(({ place }) => place)).toEqual(
      'X q_proj k_proj v_proj q k v scores masked_scores probabilities weights context merged output attn_residual norm1 ff_hidden ff_output ff_residual norm2'.split(
        ' ',
      ),
    );
    const at = (place: string, layer: number | undefined) => found.find((each) => each.place === place && each.layer === layer)!.difference;
    expect([at('X', 0), at('weights', 0)]).toEqual([0, 0]);
    for (const place of ['X', 'q', 'scores', 'output', 'norm2']) expect(at(place, 1), place).toBeGreaterThan(0);
    expect(at('logits', undefined)).toBe(
      largestDifference(run.value!.logits!.data, (await of.text.forward(await of.text.tokenize(text))).logits!.data),
    );
    update({ layer: 0 });
    await settled();
    expect(reach.value!.map(({ place, layer }) => `${place} ${layer}`).filter((each) => each.endsWith(' 1'))).toEqual(['X 1', 'weights 1']);
    expect(baselineTrace.value!.layer).toBe(0);
  });
});

describe('switching off each head in turn', () => {
  it('measures the effect on the answer and names that answer', async () => {
    await switchEachOff();
    const { effects, answer, text: about } = ablation.value!;
    expect([effects.dims, about, ablating.value]).toEqual([[2, 4], text, undefined]);
    const encoding = await of.text.tokenize(text);
    const all = (await answersWithout(attn, of, encoding, [])).probabilities!.data;
    const best = all[0]! > all[1]! ? 0 : 1;
    expect(answer).toEqual({ label: of.labels![best], probability: all[best] });
    for (const head of [0, 3, 7])
      expect(effects.data[head]).toBeCloseTo((await answersWithout(attn, of, encoding, [head])).probabilities!.data[best]! - all[best]!, 6);
    expect(new Set(effects.data).size).toBeGreaterThan(4);
    expect(isCurrent(ablation.value!)).toBe(true);
    update({ head: 0 });
    expect(isCurrent(ablation.value!)).toBe(true);
    await see({ pair: 'other' });
    expect(isCurrent(ablation.value!)).toBe(false);
    await see({ text: 'other' });
    expect(isCurrent(ablation.value!)).toBe(false);
    await see({ weights: [{ name: 'classifier.bias', index: 0, value: 1 }] });
    expect(isCurrent(ablation.value!)).toBe(false);
    await show(await openChanged({}));
    expect(isCurrent(ablation.value!)).toBe(false);
  });

  it('uses both texts of a pair', async () => {
    await see({ text: 'Good.', pair: 'Bad.' });
    await switchEachOff();
    const encoding = await of.text.tokenize([['Good.', 'Bad.']]);
    const all = (await answersWithout(attn, of, encoding, [])).probabilities!.data;
    expect(ablation.value!.answer!.probability).toBe(Math.max(...all));
    expect(ablation.value!.pair).toBe('Bad.');
  });

  it('measures the effect on the guess for a blank, and names that word', async () => {
    const masks = await openNamed(direct, 'masks');
    await show(masks);
    await see({ text: 'She drank a cup of [MASK].' });
    await switchEachOff();
    const { answer, effects } = ablation.value!;
    const [[first] = []] = await masks.text.fillMask('She drank a cup of [MASK].', { topK: 1 });
    expect(answer!.label).toBe(first!.token);
    expect(answer!.probability).toBeCloseTo(first!.score, 6);
    expect(effects.dims).toEqual([3, 4]);
    const encoding = await masks.text.tokenize('She drank a cup of [MASK].');
    const { logits } = await masks.text.forward(encoding, { headMask: headMaskOf(masks, [7]), outputLogits: true });
    const [width, blank] = [logits!.dims[2]!, encoding.inputIds.indexOf((await masks.text.tokenToId('[MASK]'))!)];
    const { data } = await attn.softmax({ data: logits!.data.slice(blank * width, (blank + 1) * width), dims: [1, width] });
    expect(effects.data[7]).toBeCloseTo(data[(await masks.text.tokenToId(first!.token))!]! - first!.score, 6);
    expect(new Set(effects.data).size).toBeGreaterThan(6);
  });

  it('measures the change in direction of the embedding if the model has no labels', async () => {
    const plain = await openNamed(direct, 'tiny-mpnet-mean');
    await show(plain);
    await switchEachOff();
    const { answer, effects } = ablation.value!;
    expect(answer).toBeUndefined();
    const encoding = await plain.text.tokenize(text);
    const vectorOf = async (off: readonly number[]) => (await answersWithout(attn, plain, encoding, off)).vectors;
    expect(effects.data[1]).toBeCloseTo((await attn.linear(await vectorOf([1]), await vectorOf([]))).data[0]! - 1, 6);
  });

  it('reports progress, can be cancelled and does not start twice', async () => {
    const before = ablation.value;
    const forwards = gate();
    const slow = await openChanged({
      forward: async (own, ...args) => {
        await forwards.pass();
        return own(...args);
      },
    });
    forwards.let(2);
    await show(slow);
    const going = switchEachOff();
    const first = ablating.value!;
    expect([first.done, first.total]).toEqual([0, 8]);
    await switchEachOff();
    expect(ablating.value, 'the first one continues').toBe(first);
    for (const done of [0, 1, 2]) {
      forwards.let(1);
      await until(`${done} done, the next waiting`, () => forwards.waiting === 1 && ablating.value!.done === done);
    }
    ablating.value!.cancel();
    forwards.let(1);
    await going;
    expect([ablation.value, ablating.value, ablationFailure.value, forwards.waiting]).toEqual([before, undefined, undefined, 0]);
    const again = switchEachOff();
    forwards.let(2);
    await until('one head done', () => ablating.value!.done === 1);
    model.value = of;
    forwards.let();
    await again;
    await settled();
    expect(ablation.value, 'the result of a replaced model is discarded').toBe(before);
  });

  it('reports a failure and clears it on the next attempt', async () => {
    const broken = await openChanged({ embed: () => Promise.reject(failing('MEMORY', 'none')) });
    await show(broken);
    await switchEachOff();
    expect([ablationFailure.value, ablating.value]).toEqual(['none (MEMORY)', undefined]);
    await show(of);
    await switchEachOff();
    expect(ablationFailure.value).toBeUndefined();
    const embeds = gate();
    const late = await openChanged({
      embed: async () => {
        await embeds.pass();
        throw failing('DISPOSED');
      },
    });
    await show(late);
    const going = switchEachOff();
    await until('the call of embed', () => embeds.waiting === 1);
    model.value = of;
    embeds.let();
    await going;
    await settled();
    expect(ablationFailure.value, 'the failure of a replaced model is ignored').toBeUndefined();
    model.value = undefined;
    await switchEachOff();
    engine.value = undefined;
    model.value = of;
    await switchEachOff();
    expect(ablating.value).toBeUndefined();
  });
});

describe('a comparison of several texts', () => {
  const texts = Array.from({ length: 9 }, (_, i) => `Text number ${i} is ${i % 2 ? 'good' : 'bad'}.`);
  let end: () => void;
  const linesOf = (holds: (of: Lines) => unknown) => until('the lines', () => lines.value.value && holds(lines.value.value));
  const matrix = async (off: readonly number[]) => {
    const { vectors, probabilities } = await answersWithout(attn, of, await of.text.tokenize(texts), off);
    return { similarity: await attn.linear(vectors, vectors), probabilities: probabilities! };
  };

  it('is computed with all heads and again without the switched-off heads', async () => {
    linesText.value = texts.join('\n');
    end = lines.follow();
    await linesOf((now) => now.texts.length === 9);
    const { all, without, off } = lines.value.value!;
    expect([without, off, lines.value.value!.model]).toEqual([undefined, [], of]);
    const plain = await matrix([]);
    expect(all.similarity.dims).toEqual([9, 9]);
    expect(largestDifference(all.similarity.data, plain.similarity.data)).toBeLessThan(2e-6);
    expect(all.probabilities!.dims).toEqual([9, 2]);
    expect(largestDifference(all.probabilities!.data, plain.probabilities.data)).toBeLessThan(1e-6);
    await see({ off: [5] });
    await linesOf((now) => now.without);
    const { without: some } = lines.value.value!;
    const other = await matrix([5]);
    expect(some!.similarity.dims).toEqual([9, 9]);
    expect(largestDifference(some!.similarity.data, other.similarity.data)).toBeLessThan(2e-6);
    expect(some!.probabilities!.dims).toEqual([9, 2]);
    expect(largestDifference(some!.probabilities!.data, other.probabilities.data)).toBeLessThan(1e-6);
    expect(largestDifference(some!.similarity.data, all.similarity.data)).toBeGreaterThan(1e-4);
  });

  it('is repeated when weights change, but not for too few texts', async () => {
    await linesOf((now) => now.off.length === 0);
    const before = lines.value.value!;
    await see({ weights: [{ name: 'classifier.bias', index: 1, value: 9 }] });
    await linesOf((now) => now !== before);
    expect(lines.value.value!.all.probabilities!.data[1]).toBeGreaterThan(0.9);
    await see({});
    await linesOf((now) => now.all.probabilities!.data[1]! < 0.9 || now.all.probabilities!.data[0]! > 0.1);
    const kept = lines.value.value;
    linesText.value = ' ';
    await aMoment(150);
    expect(lines.value.value).toBe(kept);
  });

  it('has no probabilities if the model has no labels', async () => {
    linesText.value = texts.join('\n');
    await show(await openNamed(direct, 'tiny-mpnet-mean'));
    await linesOf((now) => now.model.id === 'tiny-mpnet-mean');
    expect(lines.value.value!.all.probabilities).toBeUndefined();
    await see({ off: [0] });
    await linesOf((now) => now.without);
    expect(lines.value.value!.without!.probabilities).toBeUndefined();
    end();
  });
});

describe('words', () => {
  const found = async (what: string, holds: () => unknown) => until(what, holds);

  it('are found if they are one token inside a text or an entry of the vocabulary', async () => {
    const words = await findWords(of, ['funny', ' funny ', '##ing', 'unfunnily', '☃', '']);
    const id = await of.text.tokenToId('funny');
    expect(words.slice(0, 2)).toEqual([
      { text: 'funny', id, pieces: ['funny'] },
      { text: 'funny', id, pieces: ['funny'] },
    ]);
    expect(words[2]).toMatchObject({ text: '##ing', id: await of.text.tokenToId('##ing') });
    expect(words[2]!.id).toBeDefined();
    expect(words[3]!.id).toBeUndefined();
    expect(words[3]!.pieces.length).toBeGreaterThan(1);
    expect([words[4]!.id, words[4]!.pieces]).toEqual([undefined, ['[UNK]']]);
    expect(words[5]).toEqual({ text: '', id: undefined, pieces: [] });
    expect(await findWords(of, [])).toEqual([]);
  });

  it('have neighbours, a similarity, analogies and a map', async () => {
    updateWords(initialWords);
    const ends = [neighbours, similarity, analogy, wordMap, typical].map(({ follow: begin }) => begin());
    await found(
      'all word results',
      () => neighbours.value.value && similarity.value.value && analogy.value.value && wordMap.value.value && typical.value.value,
    );
    const table = await of.text.wordEmbeddings;
    const [funny, good, bad, man, king, woman] = (await findWords(of, ['funny', 'good', 'bad', 'man', 'king', 'woman'])).map(({ id }) => id!);
    const near = await table.nearest(funny!, 10);
    expect(neighbours.value.value!.near.map(({ id, similarity: how }) => [id, how])).toEqual(near.map(({ id, similarity: how }) => [id, how]));
    expect(neighbours.value.value!.near[0]!.token).toBe(await of.text.idToToken(near[0]!.id));
    expect(neighbours.value.value!.word.text).toBe('funny');
    // The same mean, pair by pair.
    const places = Array.from({ length: 512 }, (_, i) => Math.floor((i * tableDims(of)![0]!) / 512));
    let sum = 0;
    for (let i = 0; i < 512; i += 8) for (let j = 0; j < 512; j += 8) if (i !== j) sum += await table.similarity(places[i]!, places[j]!);
    expect(typical.value.value).toBeCloseTo(sum / (64 * 63), 1);
    expect(similarity.value.value!.similarity).toBe(await table.similarity(good!, bad!));
    const all = await Promise.all(
      (await table.analogy(man!, king!, woman!, 40)).map(async ({ id }) => [id, (await of.text.idToToken(id))!] as const),
    );
    const words = all.filter(([, token]) => isWholeWord(token)).slice(0, 5);
    expect(analogy.value.value!.near.map(({ id, token }) => [id, token])).toEqual(words);
    expect(['##ah', '4', '.', '[PAD]', 'a'].some(isWholeWord), 'parts of words and signs').toBe(false);
    const { points, missing, shares } = wordMap.value.value!;
    const chosen = initialWords.map.split(' ');
    expect(points.slice(0, chosen.length).map(({ token, of: owner }) => [token, owner])).toEqual(chosen.map((word) => [word, undefined]));
    expect(missing).toEqual([]);
    expect(points.length).toBeGreaterThan(chosen.length);
    expect(points.length).toBeLessThanOrEqual(3 * chosen.length);
    const extra = points[chosen.length]!;
    expect((await table.nearest((await findWords(of, [chosen[extra.of!]!]))[0]!.id!, 2)).map(({ id }) => id)).toContain(
      await of.text.tokenToId(extra.token),
    );
    expect(new Set(points.map(({ token }) => token)).size, 'each token appears once').toBe(points.length);
    expect(shares[0]).toBeGreaterThan(shares[1]);
    expect(points.some(({ x, y }) => x !== 0 && y !== 0)).toBe(true);

    updateWords({ word: 'unfunnily', first: '☃', analogy: ['man', '☃', 'woman'], map: 'good bad ☃', neighbours: 0 });
    await found('results for unknown words', () => neighbours.value.value!.word.text === 'unfunnily' && analogy.value.value!.near.length === 0);
    await found('a map of two words', () => wordMap.value.value!.points.length === 2);
    expect([neighbours.value.value!.near, neighbours.value.value!.word.id]).toEqual([[], undefined]);
    expect([similarity.value.value!.similarity, similarity.value.value!.words.map(({ text: each }) => each)]).toEqual([undefined, ['☃', 'bad']]);
    expect(wordMap.value.value!.missing.map(({ text: each }) => each)).toEqual(['☃']);
    updateWords({ first: 'good', second: '☃', map: '☃ ☂ ☁' });
    await found('an empty map', () => wordMap.value.value!.points.length === 0);
    expect([wordMap.value.value!.missing.length, wordMap.value.value!.shares]).toEqual([3, [0, 0]]);
    await found('the similarity of the new word', () => similarity.value.value!.words[0]!.text === 'good');
    expect(similarity.value.value!.similarity).toBeUndefined();
    const kept = wordMap.value.value;
    updateWords({ map: 'good bad' });
    await aMoment(150);
    expect(wordMap.value.value, 'two words are too few for a map').toBe(kept);
    for (const end of ends) end();
    updateWords(initialWords);
    expect(wordsView.value).toEqual(initialWords);
  });

  it('are looked up again when the weights change', async () => {
    const end = neighbours.follow();
    await found('neighbours', () => neighbours.value.value?.word.text === 'funny');
    const before = neighbours.value.value;
    await see({ weights: [{ name: 'classifier.bias', index: 0, value: 1 }] });
    await found('new neighbours', () => neighbours.value.value !== before);
    model.value = undefined;
    const kept = neighbours.value.value;
    await aMoment(120);
    expect(neighbours.value.value).toBe(kept);
    end();
  });
});

describe('proofs', () => {
  it('recompute every layer step by step and check that rows sum to 1', async () => {
    const end = selfCheck.follow();
    await until('the check', () => selfCheck.value.value?.model === of);
    const { sums, rows, tokens, steps, text: about } = selfCheck.value.value!;
    const length = run.value!.tokens.length;
    expect([sums.count, about, rows, tokens]).toEqual([2 * 4 * length, text, length, length]);
    expect(sums.difference).toBeLessThan(1e-6);
    expect(steps.map(({ what }) => what)).toEqual(checkedSteps);
    for (const { what, passes, count, difference, tolerance } of steps) {
      expect([passes, difference <= tolerance], what).toEqual([true, true]);
      expect(count % length).toBe(0);
      expect(tolerance).toBeLessThan(1e-4);
    }
    const before = selfCheck.value.value;
    await see({ weights: [{ name: 'classifier.bias', index: 0, value: 1 }] });
    await until('another check', () => selfCheck.value.value !== before);
    end();
  });

  it('report a failed step', async () => {
    const other = await openChanged({
      forward: (own, inputs, options) => {
        const result = own(inputs, options) as Awaited<ReturnType<LoadedModel['text']['forward']>>;
        for (const { probabilities } of result.trace?.values() ?? []) probabilities!.data[0]! += 1e-4;
        return result;
      },
    });
    const end = selfCheck.follow();
    await show(other);
    await until('the failed check', () => selfCheck.value.value?.model === other);
    expect(selfCheck.value.value!.steps.filter(({ passes }) => !passes).map(({ what }) => what)).toEqual(['Softmax of the scores']);
    end();
  });

  it('compare the small model with PyTorch only if it is unmodified', async () => {
    const end = comparison.follow();
    await until('the comparison', () => comparison.value.value?.model === of);
    expect(comparison.value.value!.rows.every(({ passes }) => passes)).toBe(true);
    expect(comparison.value.value!.torch).toMatch(/^\d+\.\d+/);
    const before = comparison.value.value;
    await see({ weights: [{ name: 'classifier.bias', index: 0, value: 1 }] });
    await show({ ...of, id: 'other' });
    await aMoment(200);
    expect(comparison.value.value).toBe(before);
    expect(comparison.failure.value).toBeUndefined();
    end();
  });

  it('count the compared values and keep the worst difference', () => {
    const rows = new Map<string, Compared>();
    const tensor = (...data: readonly number[]): Tensor => ({ data: Float32Array.from(data), dims: [data.length] });
    addCompared(rows, 'a', tensor(1, 2), [1, 2.5], 1);
    expect(rows.get('a')).toEqual({ what: 'a', count: 2, difference: 0.5, tolerance: 1, passes: true });
    addCompared(rows, 'a', tensor(3), [3.25], 0.25);
    expect(rows.get('a')).toEqual({ what: 'a', count: 3, difference: 0.5, tolerance: 1, passes: true });
    addCompared(rows, 'a', tensor(3), [5], 4);
    expect(rows.get('a')).toEqual({ what: 'a', count: 4, difference: 2, tolerance: 4, passes: true });
    // A difference beyond its tolerance outranks every one within.
    addCompared(rows, 'a', tensor(3), [4], 0.5);
    expect(rows.get('a')).toEqual({ what: 'a', count: 5, difference: 1, tolerance: 0.5, passes: false });
    addCompared(rows, 'a', tensor(3), [5], 4);
    addCompared(rows, 'a', tensor(3), [3.75], 0.5);
    expect(rows.get('a')).toEqual({ what: 'a', count: 7, difference: 1, tolerance: 0.5, passes: false });
    addCompared(rows, 'a', tensor(3), [5], 1.5);
    expect(rows.get('a')).toEqual({ what: 'a', count: 8, difference: 2, tolerance: 1.5, passes: false });
    addCompared(rows, 'b', tensor(1), [1], 0);
    expect(rows.get('b')!.passes).toBe(true);
  });
});

describe('the speed measurement', () => {
  it('runs once for each model and again on request', async () => {
    let [forwards, largest] = [0, 0];
    const counting = await openChanged({
      forward: (own, encoding, ...more) => {
        ++forwards;
        largest = Math.max(largest, (encoding as { readonly dims: readonly number[] }).dims[0]!);
        return own(encoding, ...more);
      },
    });
    await show(counting);
    const before = forwards;
    engine.value = { ...attn, peak: async (count: number) => (await aMoment(10), count) } as unknown as Attn;
    const end = followSpeed();
    expect(measuring.value).toBe(true);
    void measure();
    await until('the speed', () => speed.value?.model === counting);
    await until('the end of the measurement', () => !measuring.value);
    const { tokens, alone, batch, peaks, way, info } = speed.value!;
    const length = run.value!.tokens.length;
    const each = multiplyAdds(encoderSize(of.config), length).total;
    expect([tokens, alone.copies, alone.multiplyAdds]).toEqual([length, 1, each]);
    expect(batch.copies).toBe(Math.min(256, Math.round(2e8 / each)));
    expect([batch.copies, batch.multiplyAdds]).toEqual([largest, each * largest]);
    expect(alone.milliseconds).toBeGreaterThan(0);
    expect(alone.milliseconds).toBeLessThan(batch.milliseconds);
    expect(forwards - before).toBeGreaterThanOrEqual(samples + 1 + 6);
    // One peak per sample. Each takes at least 10 ms for half a billion operations.
    expect(peaks).toHaveLength(samples + 5);
    expect(peaks).toEqual([...peaks].sort((a, b) => a - b));
    expect(peaks[0]).toBeGreaterThan(0);
    expect(peaks.at(-1)).toBeLessThan(55);
    expect(way).toBeGreaterThanOrEqual(0);
    for (const { share, multiplyAdds: done, milliseconds } of [alone, batch]) {
      expect(share).toBeGreaterThan((0.2 * gigaflops(done, milliseconds)) / peaks.at(-1)!);
      expect(share).toBeLessThan((5 * gigaflops(done, milliseconds)) / peaks[0]!);
    }
    expect(info.variant).toBeDefined();
    expect(speedFailure.value).toBeUndefined();
    const first = speed.value;
    update({ head: 0 });
    await aMoment();
    expect(measuring.value).toBe(false);
    engine.value = { ...attn, peak: () => Promise.reject(failing('MEMORY', 'none')) } as unknown as Attn;
    await measure();
    expect([speedFailure.value, speed.value]).toEqual(['none (MEMORY)', first]);
    engine.value = undefined;
    await measure();
    expect(speed.value).toBe(first);
    end();
  });

  it.each([
    ['the peak is steady', [40, 41, 42, 42, 43], 43, undefined],
    ['one sample of many is low', [12, 41, 42, 42, 43], 43, undefined],
    ['the peak varies', [12, 20, 42, 42, 43], 43, { kind: 'unsteady', from: 12, to: 43 }],
    ['the peak was higher before', [20, 20, 21, 21, 21], 43, { kind: 'slower', from: 21, to: 43 }],
    ['nothing was measured before', [20, 20, 21, 21, 21], 0, undefined],
  ])('detects whether other programs used the computer: %s', (_, peaks, before, expected) => {
    expect(disturbanceOf(peaks, before)).toEqual(expected);
  });
});
