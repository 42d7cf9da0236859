/** attn/search: an index against cosines in float64, in several segments, with removals, and by a model in a worker. */
import { readSafetensorsHeader, type Attn, type TextModel } from 'attn';
import { Index, type Hit, type SearchDocument } from 'attn/search';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { assertIsError, assertRejects, assertThrows } from '../support/errors.ts';
import { loadCheckpoint } from '../support/model_cases.ts';
import { bytes, disposeSymbol, loadHere, settledHeap, setup, url } from '../support/host.ts';

const model = url('testdata/models/sentiment');
const texts = [
  'a warm film with a good ending',
  'the soup was cold and the waiter slow',
  'an hour of boredom',
  'the battery lasts two days',
  'what a wonderful story about dogs',
  'nobody answers the phone',
  'she plays the violin',
  'the box was open when it came',
];
const idsOf = (hits: readonly Hit[]) => hits.map(({ id }) => id);

/** Cosines in float64. */
function cosines(query: Float32Array, rows: Float32Array): number[] {
  const E = query.length;
  const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, e) => sum + value * b[e], 0);
  return Array.from({ length: rows.length / E }, (_, i) => {
    const row = rows.subarray(i * E, (i + 1) * E);
    return dot(query, row) / Math.sqrt(dot(query, query) * dot(row, row));
  });
}

/** The text whose vector identifies a model. */
const isTestText = (text: string) => text.startsWith('The quick brown fox');

/** A model whose vectors are given by the texts; by default these are numbers separated by commas. */
function modelOf(real: TextModel, width: number, vectorOf = (text: string): ArrayLike<number> => text.split(',').map(Number)): TextModel {
  const embed = (given: string | readonly string[]) => {
    const list = [given].flat();
    const data = new Float32Array(list.length * width);
    list.forEach((text, i) => data.set(isTestText(text) ? [1] : vectorOf(text), i * width));
    return Promise.resolve({ data, dims: [list.length, width], truncated: [] });
  };
  return new Proxy(real, {
    get: (of, name) => (name === 'embed' ? embed : (Reflect.get(of, name, of) as unknown)),
  });
}

describe('search', () => {
  let attn: Attn;
  let films: TextModel;
  before(async () => {
    attn = await loadHere();
    films = await attn.loadModel(model, { cache: 'none' });
  });
  after(() => attn.dispose());

  for (const [vectors, tolerance] of [
    ['int8', 0.01],
    ['float32', 1e-6],
  ] as const)
    it(`${vectors}: similarities are the cosines, and hits are in their order`, async () => {
      const index = await Index.from(films, texts, { vectors });
      const [query, rows] = [await films.embed('a warm film'), await films.embed(texts)];
      const expected = cosines(query.data, rows.data);
      const hits = await index.search('a warm film', { k: 100 });
      assert.sameMembers(idsOf(hits) as number[], [...texts.keys()]);
      hits.forEach(({ id, text, start, end, score, similarity, document }, i) => {
        assert.closeTo(similarity, expected[id as number], tolerance);
        assert.equal(score, similarity);
        if (i > 0) assert.isAtMost(score, hits[i - 1].score);
        assert.deepEqual([text, start, end], [texts[id as number], 0, text.length]);
        assert.deepEqual(document, { id, text });
      });
      assert.deepEqual(await index.search('a warm film', { k: 3 }), hits.slice(0, 3));
      index.dispose();
    });

  it('documents keep their members and ids, and strings get numbers that are not in use', async () => {
    const document = { id: 1, text: texts[0], title: 'Film', pages: [1, 2] };
    const index = await Index.from(films, [texts[1], document, texts[2]]);
    assert.deepEqual(await index.add([{ text: texts[3], id: 'x' }, { text: texts[4] }]), ['x', 3]);
    assert.equal(index.size, 5);
    const [hit] = await index.search(texts[0], { k: 1 });
    assert.deepEqual(hit.document, document);
    assert.isFrozen(hit.document);
    assert.equal(document.title, 'Film');
    assert.deepEqual(new Set(idsOf(await index.search('x'))), new Set([0, 1, 2, 'x', 3]));
    index.dispose();
  });

  for (const vectors of ['int8', 'float32'] as const)
    it(`${vectors}: additions and removals give the index of the remaining documents`, async () => {
      // Vectors of 4096 numbers: a segment has 768 rows, so that these are three.
      const [width, count] = [4096, 2000];
      const row = new Float32Array(width);
      const vectorOf = (text: string) => {
        const i = Number(text);
        for (let e = 0; e < width; ++e) row[e] = ((i * 7919 + e * 104_729) % 997) - 498;
        row[i] += 4000;
        return row;
      };
      const own = modelOf(films, width, vectorOf);
      const text = String;
      const index = await Index.from(own, Array.from({ length: 700 }, (_, i) => text(i)), { vectors }); // prettier-ignore
      await index.add([text(700)]);
      await index.search(text(0), { k: 1 }); // makes layers
      await index.add(Array.from({ length: count - 701 }, (_, i) => text(701 + i)));
      assert.equal(index.size, count);
      for (const i of [0, 699, 700, 701, 767, 768, 1535, 1536, 1999]) assert.deepEqual(idsOf(await index.search(text(i), { k: 1 })), [i]);
      const before = await index.search(text(1), { k: 400 });
      // The first removal leaves gaps, the second one compacts the vectors.
      for (const step of [3, 2]) {
        const gone = Array.from({ length: count }, (_, i) => i).filter((i) => i % step === 0 && (step === 3 || i % 3 !== 0));
        await index.remove(gone);
        const left = before.filter(({ id }) => (id as number) % 3 !== 0 && (step === 3 || (id as number) % 2 !== 0)).slice(0, 100);
        assert.deepEqual(await index.search(text(1), { k: 100 }), left);
      }
      assert.equal(index.size, Array.from({ length: count }, (_, i) => i).filter((i) => i % 2 && i % 3).length);
      assert.deepEqual(await index.add([text(0)]), [count]);
      assert.deepEqual(idsOf(await index.search(text(0), { k: 1 })), [count]);
      index.dispose();
    });

  it('equal scores are in the order of the documents, and zero vectors have similarity 0', async () => {
    const index = await Index.from(modelOf(films, 2), ['0,0', '1,0', '2,0', '-1,0', '3,0']);
    const hits = await index.search('5,0');
    assert.deepEqual(idsOf(hits), [1, 2, 4, 0, 3]);
    assert.closeTo(hits[0].score, 1, 1e-6);
    assert.equal(hits[3].score, 0);
    assert.deepEqual(idsOf(await index.search('5,0', { k: 2 })), [1, 2]);
    assert.deepEqual(await index.search('5,0', { k: 0 }), []);
    index.dispose();
  });

  it('chunk divides texts into passages, which are found by their places', async () => {
    const lines = (text: string) => Array.from(text.matchAll(/[^\n]+/g), ({ 0: line, index }) => ({ start: index, end: index + line.length }));
    for (const chunk of [lines, (text: string) => Promise.resolve(lines(text))]) {
      const documents = [{ id: 'x', text: texts.slice(0, 3).join('\n') }, '\n\n', { id: 'y', text: texts.slice(3).join('\n') }];
      const index = await Index.from(films, documents, { chunk });
      assert.equal(index.size, 3);
      const plain = await Index.from(films, texts);
      const [hits, expected] = [
        await index.search('a warm film', { k: 100, hybrid: true }),
        await plain.search('a warm film', { k: 100, hybrid: true }),
      ];
      assert.deepEqual(
        hits.map(({ text, score }) => [text, score]),
        expected.map(({ text, score }) => [text, score]),
      );
      for (const { id, text, start, end, document } of hits) {
        assert.equal(document.text.slice(start, end), text);
        assert.equal(id, texts.indexOf(text) < 3 ? 'x' : 'y');
      }
      const loaded = await Index.load(films, await index.save(), { chunk });
      assert.equal(loaded.size, 3);
      for (const each of [index, loaded]) {
        await each.remove('x');
        await each.add(['first line\nsecond line']);
        const found = await each.search('a warm film', { k: 100 });
        assert.sameMembers(
          found.map(({ text }) => text),
          [...texts.slice(3), 'first line', 'second line'],
        );
      }
      const { query } = await loaded.explain((await loaded.search('second', { hybrid: true, k: 1 }))[0]);
      assert.equal(query[0].match!.start, 11);
      index.dispose();
    }
    const any = (value: unknown) => value as never;
    await assertRejects(Index.from(films, ['a'], { chunk: any(5) }), 'ARGUMENT', ['chunk is 5, expected a function']);
    await assertRejects(Index.load(films, new Uint8Array(), { chunk: any(5) }), 'ARGUMENT', ['chunk is 5']);
    const bad: readonly (readonly [() => unknown, string])[] = [
      [() => 'a', 'chunk returned something that is "a"'],
      [() => [{ start: 0, end: 4 }], 'chunk()[0] is an object, expected { start, end } with 0 <= start < end <= 3'],
      [() => [{ start: 0, end: 1 }, { start: 1, end: 1 }], 'chunk()[1]'], // prettier-ignore
      [() => [{ start: -1, end: 1 }], 'chunk()[0]'],
      [() => [{ start: 0.5, end: 1 }], 'chunk()[0]'],
      [() => [null], 'chunk()[0] is null'],
      [() => Promise.reject(new Error('no')), 'chunk threw (no)'],
    ];
    for (const [chunk, message] of bad) await assertRejects(Index.from(films, ['abc'], { chunk: any(chunk) }), 'ARGUMENT', [message]);
  });

  it('hybrid search merges the ranks of vectors and words', async () => {
    const own = modelOf(films, 2, (text) => (/^\d/.test(text) ? text.split(',').map(Number) : text === 'the zebra' ? [1, 0] : [0, 1]));
    const documents = ['1,0', '1,1', '0,1', 'a Zebra, a zebra', 'the zebra and the horse', 'horse'];
    const index = await Index.from(own, documents, { vectors: 'float32' });
    // By vectors 0, 1, then the rest in order; by words 3 (twice in fewer words), 4.
    const hits = await index.search('the zebra', { hybrid: true });
    assert.deepEqual(idsOf(hits), [4, 3, 0, 1, 2, 5]);
    const at = (id: number) => hits.find((hit) => hit.id === id)!;
    const byWords = hits.filter(({ wordScore }) => wordScore! > 0).sort((a, b) => b.wordScore! - a.wordScore!);
    assert.deepEqual(idsOf(byWords), [4, 3]);
    // BM25, in which the length of a text is the number of its different words.
    const words = documents.map((text) => text.toLowerCase().match(/\w+/g)!);
    const lengths = words.map((list) => new Set(list).size);
    const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    const termScore = (term: string, i: number) => {
      const [n, frequency] = [words.filter((list) => list.includes(term)).length, words[i].filter((each) => each === term).length];
      const rarity = Math.log(1 + (words.length - n + 0.5) / (n + 0.5));
      return (rarity * 2.2 * frequency) / (frequency + 1.2 * (0.25 + (0.75 * lengths[i]) / mean));
    };
    for (const id of documents.keys()) assert.closeTo(at(id).wordScore!, termScore('the', id) + termScore('zebra', id), 1e-6);
    assert.closeTo(at(4).score, 1 / 61 + 1 / 65, 1e-12);
    assert.closeTo(at(3).score, 1 / 62 + 1 / 64, 1e-12);
    assert.closeTo(at(0).score, 1 / 61, 1e-12);
    assert.equal(at(0).wordScore, 0);
    assert.closeTo(at(1).similarity, Math.SQRT1_2, 1e-6);
    assert.deepEqual(await index.search('the zebra', { hybrid: true, k: 2 }), hits.slice(0, 2));
    assert.deepEqual(idsOf(await index.search('the zebra', { hybrid: true, k: 1, candidates: 1 })), [0]);

    // Later changes count.
    await index.add(['zebra']);
    assert.equal((await index.search('the zebra', { hybrid: true }))[0].id, 4);
    assert.isAbove((await index.search('the zebra', { hybrid: true })).find(({ id }) => id === 6)!.wordScore!, 0);
    await index.remove([3, 4]);
    assert.deepEqual(
      (await index.search('the zebra', { hybrid: true })).filter(({ wordScore }) => wordScore! > 0).map(({ id }) => id),
      [6],
    );
    await index.remove([0, 1]);
    assert.deepEqual(
      (await index.search('the zebra', { hybrid: true })).filter(({ wordScore }) => wordScore! > 0).map(({ id }) => id),
      [6],
    );
    assert.isUndefined((await index.search('the zebra'))[0].wordScore);
    index.dispose();
  });

  it('words of scripts without spaces and of other forms are found', async () => {
    const documents = ['東京の天気', '大阪の天気', 'ÉCOLE', 'ﬁle_name 42', 'constructor __proto__'];
    const index = await Index.from(modelOf(films, 1, () => [0]), documents); // prettier-ignore
    for (const [query, id] of [
      ['東京', 0],
      ['大阪', 1],
      ['école', 2],
      ['FILE_NAME', 3],
      ['42', 3],
      ['__proto__', 4],
    ] as const) {
      const found = (await index.search(query, { hybrid: true })).filter(({ wordScore }) => wordScore! > 0);
      assert.deepEqual(idsOf(found), [id], query);
    }
    assert.isTrue((await index.search('!?', { hybrid: true })).every(({ wordScore }) => wordScore === 0));
    index.dispose();
  });

  it('rerank orders the candidates by a cross-encoder', async () => {
    const ranker = await loadCheckpoint(attn, 'tiny-bert-multilabel');
    await ranker.fineTune([{ text: ['film', 'a'], label: 0 }, { text: ['film', 'film'], label: 1 }], { labels: ['relevance'], layers: 'head' }); // prettier-ignore
    const index = await Index.from(films, texts);
    const query = 'a warm film';
    const all = await ranker.rank(query, texts);
    const hits = await index.search(query, { rerank: ranker, k: 3, candidates: texts.length });
    assert.deepEqual(
      hits.map(({ id, score }) => [id, score]),
      all.slice(0, 3).map(({ index: id, score }) => [id, score]),
    );
    const plain = await index.search(query, { k: 4 });
    const few = await index.search(query, { rerank: ranker, k: 2, candidates: 4, hybrid: true });
    assert.lengthOf(few, 2);
    assert.isNumber(few[0].wordScore);
    const fewer = await index.search(query, { rerank: ranker, candidates: 4, k: 4 });
    assert.sameMembers(idsOf(fewer), idsOf(plain));
    for (const { id, similarity } of fewer) assert.equal(similarity, plain.find((hit) => hit.id === id)!.similarity);
    assert.deepEqual(await index.search(query, { rerank: ranker, k: 0 }), []);
    await assertRejects(index.search(query, { rerank: await loadCheckpoint(attn, 'tiny-bert') }), 'UNSUPPORTED', ['rank']);
    await assertRejects(index.search(query, { rerank: {} as TextModel }), 'ARGUMENT', ['search: rerank is an object']);
    await assertRejects(index.search(query, { hybrid: 1 as never }), 'ARGUMENT', ['hybrid is 1']);
    await assertRejects(index.search(query, { candidates: 0 }), 'CONFIG', ['candidates is 0']);
    index.dispose();
  });

  for (const vectors of ['int8', 'float32'] as const)
    it(`${vectors}: a saved index gives the same hits when it is loaded`, async () => {
      const documents = [...texts, { id: 'x', text: 'lone \ud800 surrogate', list: [1, { a: null }] }, ''];
      const index = await Index.from(films, documents, { vectors, prompts: { query: 'a ' } });
      await index.remove([0, 3]);
      const bytes = await index.save();
      assert.deepEqual(await index.save(), bytes);
      const save = index.save.bind(index) as (...others: unknown[]) => Promise<unknown>;
      await assertRejects(save('films.safetensors'), 'ARGUMENT', ['save: path is "films.safetensors", expected no argument', 'returns the bytes']);
      const loaded = await Index.load(films, bytes);
      assert.equal(loaded.size, 8);
      for (const hybrid of [false, true])
        for (const query of ['warm soup', 'the box']) assert.deepEqual(await loaded.search(query, { hybrid }), await index.search(query, { hybrid }));
      assert.deepEqual(await loaded.save(), bytes);
      assert.deepEqual(await loaded.add(['new']), [0]);
      await loaded.remove([1, 2, 'x', 4, 5]);
      assert.deepEqual(new Set(idsOf(await loaded.search('x'))), new Set([0, 6, 7, 8]));
      const { tensors, metadata } = readSafetensorsHeader(bytes);
      assert.deepEqual(tensors['vectors'].shape, [8, 64]);
      assert.deepEqual(metadata, { format: 'attn/search', prompts: '{"query":"a "}', version: '1' });
      // Anywhere in a larger buffer.
      const shifted = new Uint8Array(bytes.length + 3);
      shifted.set(bytes, 3);
      assert.equal((await Index.load(films, shifted.subarray(3))).size, 8);
      assert.equal((await Index.load(films, bytes.buffer)).size, 8);
    });

  it('an index takes the int8 form of its model, and refuses other models', async () => {
    const bytes = await (await Index.from(films, texts)).save();
    const int8 = await attn.loadModel(model, { cache: 'none', weights: 'int8' });
    assert.equal((await Index.load(int8, bytes)).size, texts.length);
    const other = await attn.loadModel(model, { cache: 'none' });
    const state = other.stateDict();
    for (const [name, { data }] of state) if (name.endsWith('word_embeddings.weight')) data.forEach((value, i) => (data[i] = -value));
    other.loadStateDict(state);
    await assertRejects(Index.load(other, bytes), 'MISMATCH', ['Index.load: model has another vector for a test text']);
    await assertRejects(Index.load(await loadCheckpoint(attn, 'tiny-bert'), bytes), 'MISMATCH', ['vectors of 32 numbers', 'have 64']);
  });

  it('damaged and hostile files are refused', async () => {
    const bytes = await (await Index.from(films, [{ id: 'a', text: 'text' }, 'b'])).save();
    const { dataStart, tensors } = readSafetensorsHeader(bytes);
    const header = new TextDecoder().decode(bytes.subarray(8, dataStart));
    const withHeader = (text: string) => {
      const head = new TextEncoder().encode(text.padEnd(dataStart - 8));
      const file = new Uint8Array(8 + head.length + bytes.length - dataStart);
      new DataView(file.buffer).setBigUint64(0, BigInt(head.length), true);
      file.set(head, 8);
      file.set(bytes.subarray(dataStart), 8 + head.length);
      return file;
    };
    const replaced = (from: string | RegExp, to: string) => {
      assert.match(header, typeof from === 'string' ? new RegExp(from.replace(/[[\](){}]/g, '\\$&')) : from);
      return withHeader(header.replace(from, to));
    };
    const withData = (name: string, change: (view: DataView) => void) => {
      const file = bytes.slice();
      const [start, end] = tensors[name].data_offsets;
      change(new DataView(file.buffer, dataStart + start, end - start));
      return file;
    };
    const text = (from: string, to: string) => withData('documents', (view) => {
      const all = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
      const before = new TextDecoder().decode(all);
      assert.include(before, from);
      all.set(new TextEncoder().encode(before.replace(from, to)));
    }); // prettier-ignore
    const number = (name: string, at: number, value: number) =>
      withData(name, (view) => (name === 'places' ? view.setInt32(4 * at, value, true) : view.setFloat32(4 * at, value, true)));
    for (const [file, ...words] of [
      [new TextEncoder().encode('<!doctype html><html>'), 'HTML'],
      [new Uint8Array(0), 'not a safetensors file'],
      [bytes.subarray(0, 100), 'not a safetensors file'],
      [bytes.subarray(0, -1), 'is cut off'],
      [attn.writeSafetensors({ a: { data: new Float32Array(1), dims: [1] } }), 'another safetensors file'],
      [replaced('attn/search', 'attn/other.'), 'another safetensors file'],
      [replaced('"prompts"', '"prompt_"'), 'no prompts'],
      [replaced('"prompts":"{}"', '"prompts":"[]"'), 'prompts are invalid'],
      [replaced('"prompts":"{}"', '"prompts":"{"'), 'prompts are invalid'],
      [replaced('"I8"', '"U8"'), 'vectors is U8 (2,64)'],
      [replaced('[2,64]', '[2,65]'), 'vectors is I8 (2,65)'],
      [replaced('[2,64]', '[64,2]'), 'vectors is I8 (64,2)'],
      [replaced('"shape":[2,3]', '"shape":[3,2]'), 'places is I32 (3,2)'],
      [replaced('"shape":[2,3]', '"shape":[9007199254740991,3]'), 'places has 24 bytes'],
      [replaced('"shape":[64]', '"shape":[0]'), 'test has 256 bytes'],
      [replaced(/"documents":\{[^}]*\}/, '"documents":{"dtype":"U8","shape":[4000000000],"data_offsets":[0,4000000000]}'), 'documents is cut off'],
      [withHeader(header.replace('"places"', '"plaxes"')), 'no tensor places'],
      [withHeader(header.replace('"places"', '"__proto__"')), 'no tensor places'],
      [number('scales', 0, NaN), 'vector 0 does not have length 1'],
      [number('scales', 1, Infinity), 'vector 1 does not have length 1'],
      [number('scales', 1, 1), 'vector 1 does not have length 1'],
      [number('test', 3, NaN), 'test does not have length 1'],
      [number('places', 0, 2), 'place 0 is outside'],
      [number('places', 0, -1), 'place 0 is outside'],
      [number('places', 1, -1), 'place 0 is outside'],
      [number('places', 1, 5), 'place 0 is outside'],
      [number('places', 5, 2), 'place 1 is outside'],
      [text('"text"', '"texx"'), 'documents[0].text is missing'],
      [text('"a"', ' 17'), 'place'],
      [text('"a"', '1.5'), 'documents[0].id is 1.5'],
      [text('"id":"a"', '"ix":"a"'), 'documents[0] has no id'],
      [text('"a"', ' 0 '), 'same id'],
      [text('[', '{'), 'documents are invalid'],
      [withData('documents', (view) => view.setUint8(8, 0xff)), 'documents are invalid'],
    ] as readonly (readonly [Uint8Array, ...string[]])[]) {
      if (words[0] === 'place') assert.equal((await Index.load(films, file)).size, 2);
      else await assertRejects(Index.load(films, file), 'FORMAT', ['Index.load: ', ...words, 'an index that save() wrote']);
    }
    await assertRejects(Index.load(films, replaced('"version":"1"', '"version":"2"')), 'UNSUPPORTED', ['version 2, expected version 1']);
    await assertRejects(Index.load(films, 'text' as never), 'DTYPE', ['bytes is "text"']);
    await assertRejects(Index.load(null as never, bytes), 'ARGUMENT', ['model is null']);

    // Flipped bits give an error or an index that works.
    let seed = 1;
    const random = (below: number) => Math.floor(((seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647) * below);
    for (let round = 0; round < 300; ++round) {
      const file = bytes.slice();
      for (let flip = 0; flip < 3; ++flip) file[random(file.length)] ^= 1 << random(8);
      try {
        const index = await Index.load(films, file);
        assert.isTrue((await index.search('text')).every(({ score }) => Math.abs(score) < 1.1));
        index.dispose();
      } catch (error) {
        assertIsError(error, ['FORMAT', 'MISMATCH', 'UNSUPPORTED']);
      }
    }
  });

  it('explain gives the most similar word of the text for each word of the query', async () => {
    const text = 'Two days: a warm-hearted, unforgettably good FILM.';
    for (const prompts of [{}, { query: 'look for ', document: 'text: ' }]) {
      const index = await Index.from(films, [text, ...texts], { prompts });
      const hits = await index.search('a good film!');
      const hit = hits.find(({ id }) => id === 0)!;
      const explanation = await index.explain(hit);
      assert.deepEqual(
        explanation.query.map(({ text, start, end }) => [text, start, end]),
        [
          ['a', 0, 1],
          ['good', 2, 6],
          ['film', 7, 11],
        ],
      );
      assert.deepEqual(
        explanation.text.map((word) => word.text),
        ['Two', 'days', 'a', 'warm', 'hearted', 'unforgettably', 'good', 'FILM'],
      );
      for (const { text: word, start, end } of explanation.text) assert.equal(text.slice(start, end), word);

      // The same by token: words of several tokens are sums.
      const states = (given: string, prompt: string) => {
        const inputs = films.tokenize(prompt + given);
        const { data } = films.forward(inputs).lastHiddenState;
        return (start: number, end: number) => {
          const sum = new Float32Array(64);
          inputs.offsets[0].forEach((place, i) => {
            if (place && place[0] < prompt.length + end && place[1] > prompt.length + start) for (let e = 0; e < 64; ++e) sum[e] += data[i * 64 + e];
          });
          return sum;
        };
      };
      const [ofQuery, ofText] = [states('a good film!', prompts.query ?? ''), states(text, prompts.document ?? '')];
      const expected = explanation.query.map(({ start, end }) =>
        explanation.text.map((word) => cosines(ofQuery(start, end), ofText(word.start, word.end))[0]),
      );
      explanation.query.forEach(({ match }, i) => {
        const best = expected[i].indexOf(Math.max(...expected[i]));
        assert.deepEqual([match!.text, match!.start], [explanation.text[best].text, explanation.text[best].start]);
        assert.closeTo(match!.similarity, expected[i][best], 1e-5);
      });
      explanation.text.forEach(({ similarity }, j) => assert.closeTo(similarity, Math.max(...expected.map((row) => row[j])), 1e-5));

      await index.remove(0);
      assert.deepEqual(await index.explain(hit), explanation);
      await assertRejects(index.explain({ ...hit }), 'ARGUMENT', ['explain: hit is an object, expected a hit of this index']);
      await assertRejects(index.explain('a' as never), 'ARGUMENT', ['hit is "a"']);
      const [other] = await (await Index.from(films, ['a'])).search('?');
      assert.deepEqual((await index.explain((await index.search('?!'))[0])).query, []);
      await assertRejects(index.explain(other), 'ARGUMENT', ['a hit of this index']);
    }
  });

  it('documents that are not JSON are named when the index is saved', async () => {
    const loop: Record<string, unknown> = {};
    loop['self'] = loop;
    const index = await Index.from(films, [{ id: 'a', text: 'b' }, { id: 'c', text: 'd', loop }]); // prettier-ignore
    await assertRejects(index.save(), 'ARGUMENT', ['the document with the id "c" has members that JSON cannot hold']);
    await index.remove('c');
    assert.equal((await Index.load(films, await index.save())).size, 1);
    await index.add([{ id: 'c', text: 'd', tags: new Array(4e9) }]); // prettier-ignore
    await assertRejects(index.save(), 'ARGUMENT', ['the document with the id "c" has members that JSON cannot hold']);
  });

  it('prompts go in front of documents and queries', async () => {
    const asked: unknown[] = [];
    const watched = new Proxy(films, {
      get: (of, name) =>
        name === 'embed'
          ? (given: string | readonly string[], options: object) => {
              if (!isTestText([given].flat()[0])) asked.push([given, options]);
              return of.embed(given, options);
            }
          : (Reflect.get(of, name, of) as unknown),
    });
    const prompted = await Index.from(watched, ['a'], { prompts: { document: 'passage: ', query: '' }, batchSize: 2 });
    await prompted.search('b');
    await (await Index.from(watched, ['c'])).search('d');
    assert.deepEqual(
      asked.map(([given, { prompt }]: any) => [given, prompt]), // eslint-disable-line
      [
        [['a'], 'passage: '],
        ['b', ''],
        [['c'], ''],
        ['d', ''],
      ],
    );
  });

  it("an index uses the model's own prompts, in explain() as well", async () => {
    const own = ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'];
    const modules = ['Transformer', 'Pooling'].map((name, i) => ({ path: i === 0 ? '' : '1_Pooling', type: `sentence_transformers.models.${name}` }));
    const files = {
      ...Object.fromEntries(await Promise.all(own.map(async (name) => [name, await bytes(`testdata/models/sentiment/${name}`)] as const))),
      'modules.json': JSON.stringify(modules),
      '1_Pooling/config.json': '{"pooling_mode_mean_tokens": true}',
    };
    const modelWith = (prompts: object) => attn.loadModel({ ...files, 'config_sentence_transformers.json': JSON.stringify({ prompts }) });
    const bare = await modelWith({});
    const given = await Index.from(bare, texts, { prompts: { query: 'look for ', document: 'text: ' } });
    const expected = await given.search('a good film');
    for (const name of ['document', 'passage', 'corpus']) {
      const prompted = await modelWith({ query: 'look for ', [name]: 'text: ' });
      const index = await Index.from(prompted, texts);
      const hits = await index.search('a good film');
      assert.deepEqual(hits, expected);
      assert.deepEqual(await index.explain(hits[0]), await given.explain(expected[0]));
      const overruled = await Index.from(prompted, texts, { prompts: { query: '', document: '' } });
      assert.deepEqual(await overruled.search('a good film'), await (await Index.from(bare, texts)).search('a good film'));
    }
  });

  it('progress counts all documents, and a signal ends the call without a change', async () => {
    const many = Array.from({ length: 1500 }, (_, i) => `text ${i}`);
    const progress: [number, number][] = [];
    const index = await Index.from(films, many, { onProgress: ({ done, total }) => progress.push([done, total]) });
    assert.isTrue(progress.every(([done, total], i) => total === 1500 && (i === 0 || done > progress[i - 1][0])));
    assert.deepEqual(progress.at(-1), [1500, 1500]);
    const controller = new AbortController();
    const adding = index.add(many, { signal: controller.signal, onProgress: () => controller.abort() });
    await assertRejects(adding, 'ABORTED');
    await assertRejects(index.search('a', { signal: controller.signal }), 'ABORTED');
    assert.equal(index.size, 1500);
    index.dispose();
  });

  it('an empty index finds nothing and can grow', async () => {
    const index = await Index.from(films, []);
    assert.deepEqual(await index.search('a'), []);
    assert.deepEqual(await index.add(['a', '']), [0, 1]);
    assert.lengthOf(await index.search('a'), 2);
    await index.remove([0, 1]);
    assert.deepEqual(await index.search('a'), []);
    assert.equal(index.size, 0);
    index.dispose();
  });

  it('calls may overlap', async () => {
    const index = await Index.from(films, texts);
    const [, hits, , all] = await Promise.all([index.add(['a new text']), index.search('a'), index.remove(0), index.search('a', { k: 100 })]);
    assert.isAtLeast(hits.length, texts.length - 1);
    assert.isAtLeast(all.length, texts.length - 1);
    assert.equal(index.size, texts.length);
    const twice = await Promise.allSettled([index.add([{ id: 'same', text: 'a' }]), index.add([{ id: 'same', text: 'b' }])]);
    assert.deepEqual(
      twice.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    );
    index.dispose();
  });

  it('bad arguments are refused, and the index stays as it is', async () => {
    const index = await Index.from(films, [{ id: 'a', text: texts[0] }, texts[1]]);
    const before = await index.search('film');
    const any = (value: unknown) => value as never;
    await assertRejects(Index.from(any({}), texts), 'ARGUMENT', ['Index.from: model is an object, expected a model']);
    await assertRejects(Index.from(films, any('text')), 'ARGUMENT', ['documents is "text", expected an Array']);
    await assertRejects(Index.from(films, any(['a', {}])), 'ARGUMENT', ['documents[1].text is missing']);
    await assertRejects(index.add(any([{ id: 1.5, text: 'a' }])), 'ARGUMENT', ['documents[0].id is 1.5']);
    await assertRejects(index.add([{ id: 'a', text: 'b' }]), 'ARGUMENT', ['add: documents[0].id is "a"', 'Remove it first']);
    await assertRejects(index.add([{ id: 'c', text: 'b' }, { id: 'c', text: 'd' }]), 'ARGUMENT', ['documents[1].id is "c"']); // prettier-ignore
    await assertRejects(index.add(['a'], any({ size: 1 })), 'ARGUMENT', ['option "size" is unknown']);
    await assertRejects(index.add(['a'], { batchSize: 0 }), 'CONFIG', ['batchSize']);
    await assertRejects(Index.from(films, texts, { vectors: any('int4') }), 'CONFIG', ['vectors is "int4", expected one of int8, float32']);
    await assertRejects(Index.from(films, texts, { prompts: any({ query: 1 }) }), 'ARGUMENT', ['prompts.query is 1']);
    await assertRejects(index.remove('b'), 'OUT_OF_RANGE', ['no document with the id "b"']);
    await assertRejects(index.remove(['a', '0']), 'OUT_OF_RANGE', ['Did you mean the number 0?']);
    await assertRejects(index.search(any(['a'])), 'ARGUMENT', ['query is an Array']);
    await assertRejects(index.search('a', { k: -1 }), 'CONFIG', ['k is -1']);
    await assertRejects(Index.from(modelOf(films, 2), ['1,0', '1,NaN']), 'OUT_OF_RANGE', ['text 1 has a vector with NaN']);
    assertThrows(() => new (Index as unknown as new () => Index)(), 'ARGUMENT', ['Index.from()']);
    await assertRejects(async () => Reflect.apply(Index.prototype.search, {}, ['a']), 'WRONG_INSTANCE');
    assert.deepEqual(await index.search('film'), before);
    index.dispose();
  });

  it('dispose frees the memory, and later calls throw DISPOSED', async () => {
    const own = await loadHere();
    const small = await own.loadModel(model, { cache: 'none' });
    const first = await Index.from(small, texts); // what a first call leaves in the heap stays there
    await first.search('a');
    first.dispose(); // otherwise the garbage collector would free it at some time below
    const used = settledHeap(own);
    for (let round = 0; round < 3; ++round) {
      const index = await Index.from(small, texts, { vectors: round % 2 ? 'float32' : 'int8' });
      await index.search('a');
      assert.isAbove(own.info.heap.used, used);
      index[disposeSymbol]();
      index.dispose();
      await assertRejects(index.search('a'), 'DISPOSED', ['this index was disposed of']);
      await assertRejects(index.add(['a']), 'DISPOSED');
      await assertRejects(index.remove(0), 'DISPOSED');
      await assertRejects(index.save(), 'DISPOSED');
      assertThrows(() => index.size, 'DISPOSED');
      assert.equal(settledHeap(own), used);
    }
    const index = await Index.from(small, texts);
    own.dispose();
    await assertRejects(index.search('a'), 'DISPOSED');
  });

  it('an index that does not fit into memory is refused and can be searched with fewer documents', async () => {
    const own = await loadHere({ maximumMemory: 2 ** 25 });
    const rows = (text: string) => new Float32Array(1024).fill(1, Number(text), Number(text) + 1);
    const small = modelOf(await own.loadModel(model, { cache: 'none' }), 1024, rows);
    const text = String;
    const index = await Index.from(small, [text(0)], { vectors: 'float32' });
    await index.add(Array.from({ length: 12_000 }, (_, i) => text(i % 1000)));
    await assertRejects(index.search(text(1)), 'MEMORY');
    await index.remove(Array.from({ length: 11_900 }, (_, i) => i + 1));
    assert.lengthOf(await index.search(text(1), { k: 2 }), 2);
    own.dispose();
  });

  it('an index with the model of a worker gives the same hits', async () => {
    const worker = await loadWorker(setup);
    const remote = await worker.loadModel(model, { cache: 'none' });
    const [index, other] = [await Index.from(films, texts), await Index.from(remote, texts)];
    await other.add(['one more', 'and another']);
    await other.remove([8, 9]);
    for (const query of ['a warm film', 'hunger']) assert.deepEqual(await other.search(query), await index.search(query));
    other.dispose();
    index.dispose();
    await worker.dispose();
  });

  it('documents may be of any type with a text', async () => {
    interface Page extends SearchDocument {
      readonly url: string;
    }
    const page: Page = { text: 'a', url: '/a' };
    const index = await Index.from(films, [page]);
    assert.equal((await index.search('a'))[0].document['url'], '/a');
    index.dispose();
  });
});
