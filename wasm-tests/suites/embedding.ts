import type { Attn, Embedding, Tensor } from 'attn';
import { assert } from 'chai';
import { Generator } from '../support/generator.ts';
import { bytes, loadHere } from '../support/host.ts';
import { assertDistribution, normal, uniform } from '../support/moments.ts';
import { assertDims, assertSameBits, random, rows, take, tensor } from '../support/tensors.ts';

type Neighbours = readonly { readonly id: number; readonly word: string; readonly similarity: number }[];
interface Words {
  readonly axes: readonly string[];
  readonly words: readonly string[];
  readonly table: readonly (readonly number[])[];
  readonly similarity: readonly { readonly a: string; readonly b: string; readonly similarity: number }[];
  readonly nearest: readonly { readonly target: string; readonly k: number; readonly expected: Neighbours }[];
  readonly nearest_to_vector: readonly { readonly target: readonly number[]; readonly k: number; readonly expected: Neighbours }[];
  readonly analogy: readonly { readonly a: string; readonly b: string; readonly c: string; readonly k: number; readonly expected: Neighbours }[];
}
const data: Words = JSON.parse(new TextDecoder().decode(await bytes('testdata/words.json')));

describe('Embedding', () => {
  let attn: Attn;
  let words: Embedding;
  before(async () => {
    attn = await loadHere();
    words = new attn.Embedding({ numEmbeddings: data.words.length, embeddingDim: data.axes.length });
    words.loadStateDict({ weight: rows(data.table) });
  });
  after(() => attn.dispose());
  const g = new Generator(91);
  const id = (word: string) => {
    assert.include(data.words, word);
    return data.words.indexOf(word);
  };
  /** Cosines of float32 sums of a few terms. */
  const tolerance = 1e-6;
  function assertNeighbours(actual: { id: number; similarity: number }[], expected: Neighbours): void {
    assert.deepEqual(
      actual.map((n) => data.words[n.id]),
      expected.map((n) => n.word),
    );
    actual.forEach((n, i) => {
      assert.hasAllKeys(n, ['id', 'similarity']);
      assert.equal(n.id, expected[i].id);
      assert.closeTo(n.similarity, expected[i].similarity, tolerance, expected[i].word);
    });
  }

  describe('words.json', () => {
    it('king is nearest to queen, and man is to bart as woman is to lisa', () => {
      assert.equal(data.words[words.nearest(id('king'), 1)[0].id], 'queen');
      assert.equal(data.words[words.analogy(id('man'), id('bart'), id('woman'), 1)[0].id], 'lisa');
      assert.equal(data.words[words.analogy(id('man'), id('king'), id('woman'), 1)[0].id], 'queen');
    });
    for (const { a, b, similarity } of data.similarity)
      it(`similarity of ${a} and ${b}`, () => {
        assert.closeTo(words.similarity(id(a), id(b)), similarity, tolerance);
        assert.equal(words.similarity(id(a), id(b)), words.similarity(id(b), id(a)), 'either way');
      });
    for (const { target, k, expected } of data.nearest)
      it(`${k} nearest to ${target}`, () => assertNeighbours(words.nearest(id(target), k), expected));
    for (const { target, k, expected } of data.nearest_to_vector)
      it(`${k} nearest to a vector`, () => assertNeighbours(words.nearest(Float32Array.from(target), k), expected));
    for (const { a, b, c, k, expected } of data.analogy)
      it(`${a} : ${b} :: ${c} : ?`, () => assertNeighbours(words.analogy(id(a), id(b), id(c), k), expected));
  });

  describe('neighbours', () => {
    it('k of 0, of all rows, and of more than all', () => {
      assert.deepEqual(words.nearest(0, 0), []);
      for (const k of [data.words.length - 1, data.words.length, 1e9]) assert.lengthOf(words.nearest(0, k), data.words.length - 1, 'all but itself');
      assert.lengthOf(words.nearest(new Float32Array(8).fill(1), 1e9), data.words.length, 'a vector excludes no row');
      assert.lengthOf(words.analogy(0, 1, 2, 1e9), data.words.length - 3);
      assert.lengthOf(words.analogy(0, 0, 0, 1e9), data.words.length - 1);
    });

    it('similarities descend and agree with similarity()', () => {
      const all = words.nearest(3, 100);
      all.forEach((n, i) => {
        if (i) assert.isAtMost(n.similarity, all[i - 1].similarity);
        assert.equal(n.similarity, words.similarity(3, n.id));
      });
      const row = words.forward([3]).data;
      assert.deepEqual(words.nearest(row, 100).slice(1), all);
      assert.equal(words.nearest(row, 1)[0].id, 3);
    });

    it('equal similarities are ordered by id; rows of zeros or NaN come last or have 0, never NaN first', () => {
      const embedding = new attn.Embedding({ numEmbeddings: 6, embeddingDim: 2 });
      embedding.loadStateDict({ weight: tensor([6, 2], [1, 0, 0, 2, 3, 0, 0, 0, NaN, 1, 1, 0]) });
      assert.deepEqual(
        embedding.nearest(0, 2).map((n) => n.id),
        [2, 5],
      );
      const all = embedding.nearest(0, 10);
      assert.lengthOf(all, 5);
      assert.equal(all[4].id, 4, 'NaN is last');
      assert.isTrue(all.slice(0, 4).every((n) => !Number.isNaN(n.similarity)));
      embedding.dispose();
    });

    it('large and tiny rows keep their direction', () => {
      const embedding = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 });
      embedding.loadStateDict({ weight: tensor([3, 2], [3e18, 0, 1e-18, 0, 0, 1e-18]) });
      assert.closeTo(embedding.similarity(0, 1), 1, tolerance);
      assert.closeTo(embedding.similarity(0, 2), 0, tolerance);
      embedding.dispose();
    });
  });

  describe('lookup', () => {
    let embedding: Embedding;
    let weight: Tensor;
    before(() => {
      embedding = new attn.Embedding({ numEmbeddings: 11, embeddingDim: 5 });
      weight = embedding.stateDict().get('weight')!;
    });

    it('rows by id, as Int32Array, BigInt64Array and plain arrays', () => {
      const ids = [10, 0, 3, 3, 7, 0];
      const expected = take(weight, 0, ids);
      for (const given of [ids, Int32Array.from(ids), BigInt64Array.from(ids, BigInt)]) assertSameBits(embedding.forward(given), expected);
    });

    it('dims: any shape, followed by the width; by default one dimension', () => {
      const ids = Int32Array.from({ length: 12 }, (_, i) => i % 11);
      const flat = embedding.forward(ids);
      assertDims(flat, [12, 5], 'no dims');
      for (const dims of [[12], [3, 4], [2, 3, 2], [1, 1, 12], [2, 1, 2, 1, 3, 1, 1]])
        assertSameBits(embedding.forward(ids, dims), { data: flat.data, dims: [...dims, 5] }, `[${dims}]`);
      assertSameBits(embedding.forward([4], []), { data: weight.data.slice(20, 25), dims: [5] }, 'one id without dims is one row');
      for (const dims of [[0], [0, 7], [3, 0]]) assertDims(embedding.forward([], dims), [...dims, 5], `[${dims}]`);
    });

    it('rows are copied bit for bit, whatever their values', () => {
      const odd = tensor([11, 5], (i) => [NaN, Infinity, -Infinity, -0, 1e-45][i % 5]);
      const other = new attn.Embedding({ numEmbeddings: 11, embeddingDim: 5 });
      other.loadStateDict({ weight: odd });
      const row = other.forward([6]);
      assertSameBits(row, { data: odd.data.slice(30, 35), dims: [1, 5] });
      assert.isTrue(Object.is(row.data[3], -0));
      other.dispose();
    });

    it('results are independent copies', () => {
      const r = embedding.forward([1, 2]);
      const copy = r.data.slice();
      embedding.forward([3, 4]);
      assert.deepEqual(r.data, copy);
      r.data.fill(7);
      assertSameBits(embedding.forward([1, 2]), { data: copy, dims: [2, 5] });
    });

    it('loading a table takes room for the table and its copy, no more', async () => {
      const here = await loadHere();
      const dims = [2000, 256];
      const table = new here.Embedding({ numEmbeddings: dims[0], embeddingDim: dims[1] });
      const { used } = here.info.heap;
      table.loadStateDict({ weight: random(g, dims) });
      assert.equal(here.info.heap.used, used);
      assert.isAtMost(here.info.heap.peak - used, 1.01 * 4 * dims[0] * dims[1] + 4096);
      here.dispose();
    });

    it('a new embedding is N(0,1) with a zero padding row; initialisation leaves the row at zero, a state may set it', () => {
      const padded = new attn.Embedding({ numEmbeddings: 200, embeddingDim: 50, paddingIdx: 3 });
      const others = (t: Tensor) => tensor([199, 50], [...t.data.slice(0, 150), ...t.data.slice(200)]);
      for (const [scheme, expected] of [
        ['torch', normal(1)],
        ['xavier_uniform', uniform(Math.sqrt(6 / 250))],
        ['kaiming_normal', normal(Math.sqrt(2 / 50))],
        ['normal', normal(0.02)],
      ] as const) {
        padded.initialize({ scheme, seed: 6 });
        assertDistribution(others(padded.stateDict().get('weight')!), expected, scheme);
        assert.isTrue(
          padded.forward([3]).data.every((value) => value === 0),
          scheme,
        );
      }
      const state = random(g, [200, 50]);
      padded.loadStateDict({ weight: state });
      assertSameBits(padded.forward([3]), { data: state.data.slice(150, 200), dims: [1, 50] });
      assert.equal(padded.parameterCount, 10000);
      assert.deepEqual(
        [...padded.parameterShapes()].map(([name, dims]) => [name, [...dims]]),
        [['weight', [200, 50]]],
      );
      padded.dispose();
    });
  });
});
