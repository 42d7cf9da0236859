import { describe, expect, it } from 'vitest';
import { arraysIn, nameFor } from '../src/formats/array_files.ts';
import { arraysToJson, arrayToCsv, arrayToNpy } from '../src/export/arrays.ts';

const none = () => Promise.reject(new Error('no safetensors'));
const read = (content: BlobPart, name: string, minRank = 2) => arraysIn(new File([content], name), minRank, none);
const two = { data: Float32Array.of(1, -2.5, 300, 0.5), dims: [2, 2] };

describe('arrays in files', () => {
  it.each([
    ['a.json', '[[1, -2.5], [300, 0.5]]'],
    ['a.json', '{"data": [1, -2.5, 300, 0.5], "dims": [2, 2]}'],
    ['a.csv', '1,-2.5\n300,0.5'],
    ['a.txt', 'tensor([[1., -2.5], [300., 0.5]])'],
  ])('%s: %s', async (name, text) => expect([...(await read(text, name))]).toEqual([['', two]]));
  it('JSON of several: each by its name, and what is no array is passed over', async () => {
    const text = '{"labels": ["a", "b"], "weights": [[1, "Infinity"], ["NaN", 0.5]], "other": {"data": [1, 2], "dims": [1, 2]}, "layer": 2}';
    const arrays = await read(text, 'a.json');
    expect([...arrays.keys()]).toEqual(['weights', 'other']);
    expect([...arrays.get('weights')!.data]).toEqual([1, Infinity, NaN, 0.5]);
  });
  it('JSON as Python writes it, with bare NaN', async () =>
    expect((await read('[[1, NaN]]', 'a.json')).get('')!.data).toEqual(Float32Array.of(1, NaN)));
  it.each([
    ['a.json', '{"labels": ["a"]}', /not an array/],
    ['a.json', '7', /no array/],
    ['a.csv', 'a,b\nc,d', /./],
    ['a.bin', 'x', /no safetensors/],
  ])('%s without one is refused: %s', (name, text, message) => expect(read(text, name)).rejects.toThrow(message));
  const deep = '['.repeat(100_000);
  it.each([
    ['negative sizes', '{"data": [1, 2], "dims": [-1, -2]}', 'The array has dims (-1, -2). Give 2 to 4 whole numbers of at least 1.'],
    ['sizes that are not whole', '{"data": [1, 2, 3], "dims": [1.5, 2]}', 'The array has dims (1.5, 2). Give 2 to 4 whole numbers of at least 1.'],
    ['no sizes', '{"data": [1], "dims": []}', 'The array has dims (). Give 2 to 4 whole numbers of at least 1.'],
    ['five sizes', '{"data": [1], "dims": [1, 1, 1, 1, 1]}', 'The array has dims (1, 1, 1, 1, 1). Give 2 to 4 whole numbers of at least 1.'],
    ['too few numbers', '{"data": [1, 2, 3], "dims": [2, 2]}', 'The array has 3 numbers, but its dims (2, 2) need 4.'],
    ['an array by its name', '{"a": {"data": [1, 2], "dims": [-1, -2]}}', 'The array has dims (-1, -2). Give 2 to 4 whole numbers of at least 1.'],
    ['1e39 with sizes', '{"data": [1e39], "dims": [1, 1]}', '1e+39 is too large for float32. The largest number is 3.4e38.'],
    ['1e39 in a list', '[[1e39]]', '1e+39 is too large for float32. The largest number is 3.4e38.'],
    ['1e999 in a list', '[[1e999]]', 'A number is too large for float32. The largest number is 3.4e38.'],
    ['1e999 with sizes', '{"data": [-1e999], "dims": [1, 1]}', 'A number is too large for float32. The largest number is 3.4e38.'],
    ['deep nesting', `${deep}1${']'.repeat(100_000)}`, 'The lists are nested more than four deep. Give rows or a batch of rows.'],
    ['deep nesting that ends early', deep, 'The lists are nested more than four deep. Give rows or a batch of rows.'],
    ['deep nesting by its name', `{"a": ${deep}1${']'.repeat(100_000)}}`, 'The lists are nested more than four deep. Give rows or a batch of rows.'],
  ])('refuses %s in JSON', (_, text, message) => expect(read(text, 'a.json')).rejects.toThrow(new Error(message)));
  it('the one that is meant: called like the field, or as checkpoints call it', () => {
    expect(nameFor('Wq', ['wk', 'WQ'])).toBe('WQ');
    expect(nameFor('Wv', ['layer.0.attention.self.query.weight', 'layer.0.attention.self.value.weight'])).toBe('layer.0.attention.self.value.weight');
    expect(nameFor('Wo', ['x', 'layers.0.self_attn.out_proj.weight'])).toBe('layers.0.self_attn.out_proj.weight');
    expect(nameFor('X', ['a', 'b'])).toBe('a');
  });
});

describe('results as files', () => {
  const deep = { data: Float32Array.from({ length: 12 }, (_, i) => i / 8), dims: [2, 3, 2] };
  it('JSON is read back as it was, what is not finite included', async () => {
    const odd = { data: Float32Array.of(1 / 3, -Infinity, NaN, 1e-9), dims: [2, 2] };
    const arrays = await read(arraysToJson({ odd, deep }), 'a.json');
    expect(() => JSON.parse(arraysToJson({ odd }))).not.toThrow();
    expect([...arrays]).toEqual([
      ['odd', odd],
      ['deep', deep],
    ]);
  });
  it('.npy is read back as it was', async () => expect([...(await read(arrayToNpy(deep), 'a.npy'))]).toEqual([['', deep]]));
  it('CSV has a line for each row, and says of which head it is', () => {
    const lines = arrayToCsv(deep, ['head']).trim().split('\r\n');
    expect(lines[0]).toBe('head,row,number 1,number 2');
    expect(lines[4]).toBe('2,1,0.75,0.875');
    expect(lines).toHaveLength(7);
    expect(arrayToCsv({ data: Float32Array.of(1, 2), dims: [1, 2] }, [])).toBe('row,number 1,number 2\r\n1,1,2\r\n');
  });
});
