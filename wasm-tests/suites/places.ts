/** Tests softcap, windows, offsets, pasts and rotary positions bit for bit against equivalent calls. */
import type { Attn, AttentionOptions, AttentionResult, EncoderLayerOptions, Mask, MultiHeadAttentionOptions, Tensor } from 'attn';
import { assert } from 'chai';
import { Generator } from '../support/generator.ts';
import { loadHere } from '../support/host.ts';
import * as reference from '../support/reference.ts';
import { assertClose, assertDims, assertSameBits, concat, mask, random, reshape, slice, tensor } from '../support/tensors.ts';

type Window = readonly [number, number];
type Past = { readonly key: Tensor; readonly value: Tensor };

/** Builds the (L,S) mask that is equivalent to a window and causality. */
function maskOfPlaces(L: number, S: number, { window: [left, right] = [-1, -1], queryOffset = 0, isCausal = false }: AttentionOptions): Mask {
  // Compares distances, so that the largest offsets are exact.
  const seen = (distance: number) =>
    (left < 0 || distance >= queryOffset - left) && (right < 0 || distance <= queryOffset + right) && (!isCausal || distance <= queryOffset);
  return mask(
    'attend',
    [L, S],
    Array.from({ length: L * S }, (_, at) => Number(seen((at % S) - Math.floor(at / S)))),
  );
}

function assertSameResults(actual: AttentionResult, expected: AttentionResult, what: string): void {
  assertSameBits(actual.output, expected.output, `output, ${what}`);
  if (expected.weights) assertSameBits(actual.weights, expected.weights, `weights, ${what}`);
}

describe('positions of queries and keys', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  const g = new Generator(77);
  const [B, H, L, S, D, Dv] = [2, 3, 5, 9, 8, 6];
  const [q, k, v] = [random(g, [B, H, L, D], 3), random(g, [B, H, S, D], 3), random(g, [B, H, S, Dv])];
  const run = (options: AttentionOptions = {}) => attn.scaledDotProductAttention(q, k, v, options);

  const windows: readonly Window[] = [
    [0, 0],
    [2, 0],
    [0, 1],
    [-1, 0],
    [1, -1],
    [3, 2],
    [-1, -1],
    [2 ** 53 - 1, 2 ** 53 - 1],
  ];
  const offsets = [0, S - L, -2, 3, -100, 100, 2 ** 31 + 7, -(2 ** 31) - 7, 2 ** 53 - 1, 1 - 2 ** 53];

  describe('softcap', () => {
    it('is c · tanh(score / c) after the scale and before masks, against float64', () => {
      const padding = mask('attend', [B, S], (() => Array.from({ length: B * S }, () => Number(g.below(4) > 0)))());
      for (const softcap of [0.125, 1, 5, 50])
        for (const options of [{}, { scale: 2 }, { isCausal: true }, { mask: { kind: 'additive', ...random(g, [L, S], 4) } }] as AttentionOptions[]) {
          const all = { ...options, keyPaddingMask: padding, softcap };
          const r = run({ ...all, needWeights: true, trace: ['scores', 'masked_scores'] });
          const expected = reference.attention(q, k, v, all);
          const what = `${softcap}, ${JSON.stringify(Object.keys(options))}`;
          assertClose(r.trace!.scores, expected.scores, 2e-6, `scores, ${what}`);
          assertClose(r.trace!.masked_scores, expected.masked_scores, 2e-6, `masked scores, ${what}`);
          assertClose(r.weights, expected.weights, 4e-6, `weights, ${what}`);
          assertClose(r.output, expected.output, 4e-6, `output, ${what}`);
          assert.isTrue(
            r.trace!.scores!.data.every((score) => Math.abs(score) <= softcap),
            'no score exceeds c',
          );
          assertSameBits(run(all).output, r.output, `with and without weights, ${what}`);
        }
    });

    it('0 disables it; infinite scores become ±c, and NaN stays NaN', () => {
      assertSameResults(run({ softcap: 0, needWeights: true }), run({ needWeights: true }), 'softcap 0');
      const [a, b] = [tensor([1, 2], [3e38, 3e38]), tensor([3, 2], [9, 9, -9, -9, NaN, 0])];
      const { scores } = attn.scaledDotProductAttention(a, b, b, { softcap: 2, trace: ['scores'] }).trace!;
      assert.deepEqual([...scores!.data], [2, -2, NaN]);
    });
  });

  describe('window and queryOffset', () => {
    it('equal their mask, for offsets of any size', () => {
      for (const window of windows)
        for (const queryOffset of offsets)
          for (const isCausal of [false, true]) {
            const places = { window, queryOffset, isCausal };
            for (const fullyMasked of ['zero', 'uniform'] as const) {
              const rest = { fullyMasked, needWeights: true };
              const expected = run({ mask: maskOfPlaces(L, S, places), ...rest });
              assertSameResults(run({ ...places, ...rest }), expected, JSON.stringify([places, fullyMasked]));
              assertSameBits(run({ ...places, fullyMasked }).output, expected.output, `without weights, ${JSON.stringify([places, fullyMasked])}`);
            }
          }
    });

    it('combine with masks and key padding', () => {
      for (const window of windows.slice(0, 6)) {
        const places = { window, queryOffset: 2 };
        const given = mask('block', [B, 1, 1, S], (() => Array.from({ length: B * S }, () => g.below(2)))());
        const expected = reference.attention(q, k, v, { ...places, mask: given, softcap: 3 });
        const r = run({ ...places, mask: given, softcap: 3, needWeights: true });
        assertClose(r.weights, expected.weights, 4e-6, `weights, ${window.join()}`);
        assertClose(r.output, expected.output, 4e-6, `output, ${window.join()}`);
      }
    });

    it('offset S − L aligns the last query with the last key, whichever is longer', () => {
      for (const [l, s] of [
        [1, 6],
        [4, 6],
        [6, 6],
        [6, 4],
      ]) {
        const [a, b, c] = [random(g, [l, 4]), random(g, [s, 4]), random(g, [s, 3])];
        const { weights } = attn.scaledDotProductAttention(a, b, c, { isCausal: true, queryOffset: s - l, needWeights: true });
        for (let i = 0; i < l; i++)
          for (let j = 0; j < s; j++) assert.equal(weights!.data[i * s + j] > 0, j <= i + s - l, `L ${l}, S ${s}: query ${i}, key ${j}`);
      }
    });

    it('keys outside the window do not affect the output, not even NaN and infinities', () => {
      const dirty = (t: Tensor, from: number, width: number) => {
        const copy = { data: t.data.slice(), dims: t.dims };
        for (let head = 0; head < B * H; head++) copy.data.fill(NaN, (head * S + from) * width, (head * S + from + 1) * width);
        return copy;
      };
      // Five queries at 0 … 4, with one key to the right, see keys 0 … 5.
      const options = { window: [2, 1], needWeights: true } as const;
      for (const from of [6, 8])
        assertSameResults(attn.scaledDotProductAttention(q, dirty(k, from, D), dirty(v, from, Dv), options), run(options), `key ${from}`);
    });
  });

  /** Slices rows [from, to) of (..,rows,width). */
  const rowsOf = (t: Tensor, from: number, to: number) => slice(t, t.dims.length - 2, from, to);
  const joined = (parts: readonly Tensor[]) => concat(parts, parts[0].dims.length - 2);

  /**
   * Compares one call on all of x with calls on consecutive pieces that use the previous keys and values, bit for bit.
   */
  function assertSameInPieces(
    call: (from: number, to: number, options: AttentionOptions) => AttentionResult,
    rows: number,
    options: AttentionOptions,
    what: string,
  ): void {
    const whole = call(0, rows, { ...options, isCausal: true, outputPresent: true });
    for (const piece of [1, 3]) {
      let past: Past | undefined;
      const outputs: Tensor[] = [];
      for (let from = 0; from < rows; from += piece) {
        const to = Math.min(from + piece, rows);
        const r = call(from, to, { ...options, isCausal: true, outputPresent: true, past });
        outputs.push(r.output);
        past = r.present;
        assert.equal(past!.key.dims.at(-2), to, `${what}: as many keys as there were rows`);
      }
      assertSameBits(joined(outputs), whole.output, `${what}, ${piece} by ${piece}`);
      assertSameBits(past!.key, whole.present!.key, `${what}: keys`);
      assertSameBits(past!.value, whole.present!.value, `${what}: values`);
    }
  }

  describe('past and present', () => {
    it('of functions: pieces give the same as the whole, bit for bit, at every rank', () => {
      const n = 10;
      const params = { queryWeight: random(g, [7, D]), keyWeight: random(g, [7, D]), scoreWeight: random(g, [7]) };
      const weight = random(g, [D, D]);
      for (const front of [[], [2], [2, 4]])
        for (const options of [{}, { softcap: 4 }, { window: [3, -1] }, { enableGqa: true }] as AttentionOptions[]) {
          const shared = front.length === 2 && options.enableGqa ? [2, 2] : front;
          const [a, b, c] = [random(g, [...front, n, D], 2), random(g, [...shared, n, D], 2), random(g, [...shared, n, Dv])];
          const part = (from: number, to: number) => [a, b, c].map((t) => rowsOf(t, from, to)) as [Tensor, Tensor, Tensor];
          const what = `rank ${front.length + 2}, ${JSON.stringify(options)}`;
          assertSameInPieces((from, to, o) => attn.scaledDotProductAttention(...part(from, to), o), n, options, what);
          assertSameInPieces((from, to, o) => attn.additiveAttention(...part(from, to), params, o), n, options, `additive, ${what}`);
          assertSameInPieces((from, to, o) => attn.generalAttention(...part(from, to), { weight }, o), n, options, `general, ${what}`);
        }
    });

    it('of MultiHeadAttention with all options: rotary positions continue after the past', () => {
      const n = 9;
      for (const front of [[], [2]])
        for (const own of [
          {},
          { rotary: {} },
          { rotary: { theta: 500, interleaved: true, offset: -3 }, numKeyValueHeads: 2 },
          { headDim: 6, valueHeadDim: 5, numKeyValueHeads: 1, outProj: false },
        ] as Partial<MultiHeadAttentionOptions>[])
          for (const options of [{}, { softcap: 2, window: [4, 0] }] as AttentionOptions[]) {
            const layer = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 4, ...own });
            const x = random(g, [...front, n, 16], 3);
            assertSameInPieces(
              (from, to, o) => layer.forward(rowsOf(x, from, to), undefined, undefined, o),
              n,
              options,
              `rank ${front.length + 2}, ${JSON.stringify([own, options])}`,
            );
            layer.dispose();
          }
    });

    it('past keys precede the new keys in masks, weights and traces, as if concatenated', () => {
      for (const P of [0, 1, 4]) {
        const [key, value] = [random(g, [B, H, P, D]), random(g, [B, H, P, Dv])];
        const keys = mask('attend', [B, P + S], (() => Array.from({ length: B * (P + S) }, () => Number(g.below(3) > 0)))());
        for (const options of [{ isCausal: true }, { keyPaddingMask: keys }, { window: [2, 2], softcap: 1 }] as AttentionOptions[]) {
          const all = { ...options, needWeights: true, trace: true } as const;
          const r = attn.scaledDotProductAttention(q, k, v, { ...all, past: { key, value } });
          const [a, b] = [concat([key, k], 2), concat([value, v], 2)];
          const expected = attn.scaledDotProductAttention(q, a, b, { ...all, queryOffset: P });
          const what = `${P}, ${Object.keys(options).join()}`;
          assertSameResults(r, expected, what);
          assertSameBits(r.present!.key, a, `keys, ${what}`);
          assertSameBits(r.present!.value, b, `values, ${what}`);
          assert.sameMembers(Object.keys(r.trace!), Object.keys(expected.trace!));
          for (const [name, t] of Object.entries(expected.trace!)) assertSameBits(r.trace![name as 'q'], t, `${name}, ${what}`);
          // An explicit queryOffset takes precedence over the past.
          const moved = { past: { key, value }, queryOffset: 1, isCausal: true, needWeights: true };
          assertSameResults(
            attn.scaledDotProductAttention(q, k, v, moved),
            attn.scaledDotProductAttention(q, a, b, { isCausal: true, queryOffset: 1, needWeights: true }),
            `at 1 with a past of ${P}`,
          );
        }
      }
    });

    it('the present is returned on request or if there is a past; a past is only read', () => {
      assert.notProperty(run(), 'present');
      assert.notProperty(run({ outputPresent: false }), 'present');
      const { present } = run({ outputPresent: true });
      assertSameBits(present!.key, k);
      assertSameBits(present!.value, v);
      const past = { key: random(g, [B, H, 2, D]), value: random(g, [B, H, 2, Dv]) };
      const before = past.key.data.slice();
      assertDims(run({ past, outputPresent: false }).present!.key, [B, H, S + 2, D]);
      assert.deepEqual(past.key.data, before);
      assert.notEqual(run({ past }).present!.key.data.buffer, past.key.data.buffer, 'a copy');
    });

    it('beyond 1024 keys, the block size of rows, and without new keys', () => {
      const P = 1500;
      const [key, value] = [random(g, [P, 4]), random(g, [P, 3])];
      const [a, b, c] = [random(g, [2, 4]), random(g, [2, 4]), random(g, [2, 3])];
      const whole = attn.scaledDotProductAttention(a, concat([key, b], 0), concat([value, c], 0), { isCausal: true, queryOffset: P });
      assertSameBits(attn.scaledDotProductAttention(a, b, c, { isCausal: true, past: { key, value } }).output, whole.output);
      const none = [tensor([0, 4], []), tensor([0, 3], [])] as const;
      const r = attn.scaledDotProductAttention(a, ...none, { past: { key, value } });
      assertSameBits(r.output, attn.scaledDotProductAttention(a, key, value).output, 'all keys are of the past');
      assertSameBits(r.present!.key, key);
    });

    it('a layer in training also accepts a past', () => {
      const layer = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2, dropout: 0.5 });
      const x = random(g, [2, 4, 8]);
      const { present } = layer.forward(x, undefined, undefined, { outputPresent: true });
      layer.train({ seed: 3 });
      const [first, second] = [1, 2].map(() => layer.forward(x, undefined, undefined, { past: present, needWeights: true }));
      assertSameBits(first.present!.key, second.present!.key, 'dropout affects the weights, not the present');
      assert.isTrue(first.weights!.data.some((weight) => weight === 0));
      layer.dispose();
    });
  });

  describe('layers', () => {
    it('MultiHeadAttention with rotary rotates its projections like applyRotary', () => {
      const x = random(g, [2, 7, 12], 2);
      for (const rotary of [{}, { theta: 100 }, { interleaved: true }, { offset: 40, interleaved: true, theta: 7 }, { offset: -40 }]) {
        const layer = new attn.MultiHeadAttention({ embedDim: 12, numHeads: 3, rotary });
        const heads = (t: Tensor) => {
          const parts = [0, 1, 2].map((h) => slice(t, 2, 4 * h, 4 * h + 4));
          return concat(
            parts.map((part) => reshape(part, [2, 1, 7, 4])),
            1,
          );
        };
        for (const queryOffset of [0, 3, -2, 2 ** 31]) {
          const r = layer.forward(x, undefined, undefined, { queryOffset, trace: ['q_proj', 'k_proj', 'q', 'k', 'v', 'context'] }).trace!;
          const at = (offset: number) => ({ ...rotary, offset: (rotary.offset ?? 0) + offset });
          assertSameBits(r.q, attn.applyRotary(heads(r.q_proj!), at(queryOffset)), `queries ${JSON.stringify(rotary)} at ${queryOffset}`);
          assertSameBits(r.k, attn.applyRotary(heads(r.k_proj!), at(0)), `keys ${JSON.stringify(rotary)}`);
          assertSameBits(attn.scaledDotProductAttention(r.q!, r.k!, r.v!).output, r.context, 'context');
        }
        layer.dispose();
      }
    });

    const base = { dModel: 16, nhead: 4, dimFeedforward: 12 };
    const x = random(g, [2, 8, 16], 3);

    it('encoders with a window equal encoders with its mask', () => {
      for (const window of [
        [1, 1],
        [0, 0],
        [2, -1],
        [-1, 0],
      ] as const) {
        for (const Layer of ['TransformerEncoder', 'TransformerClassifier'] as const) {
          const make = (more: object) =>
            new attn[Layer]({ ...base, numLayers: 2, ...(Layer === 'TransformerClassifier' && { numClasses: 3 }), ...more } as never);
          const [a, b] = [make({ window }), make({})];
          const options = { outputAttentions: true, queryOffset: 1 };
          const [r, expected] = [a.forward(x, options), b.forward(x, { ...options, mask: maskOfPlaces(8, 8, { window, queryOffset: 1 }) })];
          assertSameBits(r.output, expected.output, `${Layer}, ${window.join()}`);
          r.attentions!.forEach((t, i) => assertSameBits(t, expected.attentions![i], `layer ${i}`));
          a.dispose();
          b.dispose();
        }
      }
    });

    it('encoders with shared key heads equal encoders with repeated keys and values', () => {
      for (const numKeyValueHeads of [1, 2, 4]) {
        const [a, b] = [new attn.TransformerEncoderLayer({ ...base, numKeyValueHeads }), new attn.TransformerEncoderLayer(base)];
        const state = new Map(a.stateDict());
        if (numKeyValueHeads < 4) {
          for (const name of ['k_proj', 'v_proj'])
            for (const kind of ['weight', 'bias']) {
              const t = state.get(`self_attn.${name}.${kind}`)!;
              assert.equal(t.dims[0], 4 * numKeyValueHeads);
              const head = (h: number) => slice(t, 0, 4 * Math.floor((h * numKeyValueHeads) / 4), 4 * Math.floor((h * numKeyValueHeads) / 4) + 4);
              state.set(`self_attn.${name}.${kind}`, concat([0, 1, 2, 3].map(head), 0));
            }
        }
        b.loadStateDict(state);
        assertSameBits(a.forward(x).output, b.forward(x).output, `${numKeyValueHeads} of 4`);
        a.dispose();
        b.dispose();
      }
    });

    it('a layer with any of these options computes its context like the function', () => {
      const cases: Partial<EncoderLayerOptions>[] = [
        { softcap: 1.5 },
        { rotary: { theta: 50 } },
        { window: [2, 1] },
        { numKeyValueHeads: 2 },
        { softcap: 3, rotary: { interleaved: true, offset: 5 }, window: [-1, 2], numKeyValueHeads: 1 },
      ];
      for (const own of cases)
        for (const call of [{}, { isCausal: true }, { queryOffset: 3, isCausal: true }, { queryOffset: -4 }]) {
          const layer = new attn.TransformerEncoderLayer({ ...base, ...own, norm: 'rms_norm', normFirst: true });
          const r = layer.forward(x, { ...call, trace: { names: ['q', 'k', 'v', 'scores', 'context'] } }).trace!.get(0)!;
          const { softcap, window } = own;
          const expected = attn.scaledDotProductAttention(r.q!, r.k!, r.v!, { ...call, softcap, window, enableGqa: true, trace: ['scores'] });
          assertSameBits(r.context, expected.output, JSON.stringify([own, call]));
          assertSameBits(r.scores, expected.trace!.scores, 'scores');
          layer.dispose();
        }
    });

    it('rotary positions depend on distances only: shifting the whole input gives nearly the same', () => {
      const layer = new attn.TransformerEncoder({ ...base, numLayers: 2, rotary: {} });
      const far = new attn.TransformerEncoder({ ...base, numLayers: 2, rotary: { offset: 1000 } });
      assertClose(far.forward(x).output, layer.forward(x).output, 1e-4);
      // Shifting only the queries changes the output.
      const moved = layer.forward(x, { queryOffset: 5 }).output;
      assert.isTrue(moved.data.some((value, i) => Math.abs(value - layer.forward(x).output.data[i]) > 1e-2));
      layer.dispose();
      far.dispose();
    });
  });
});
