import { describe, expect, it } from 'vitest';
import { arraysIn, nameFor } from '../src/formats/array_files.ts';
import { arraysToJson, arrayToCsv, arrayToNpy } from '../src/export/arrays.ts';

const none = () => Promise.reject(new Error('no safetensors'));
const read = (content: BlobPart, name: string, minRank = 2) => arraysIn(new File([content], name), minRank, none);
const two = { data: Float32Array.of(1, -2.5, 300, 0.5), dims: [2, 2] };

describe('reading arrays from files', () => {
  it.each([
    ['a.json', '[[1, -2.5], [300, 0.5]]'],
    ['a.json', '{"data": [1, -2.5, 300, 0.5], "dims": [2, 2]}'],
    ['a.csv', '1,-2.5\n300,0.5'],
    ['a.txt', 'tensor([[1., -2.5], [300., 0.5]])'],
  ])('returns the 2 × 2 array in %s with the content %s', async (name, text) => expect([...(await read(text, name))]).toEqual([['', two]]));
  it('returns each array of a JSON object by name and skips entries that are not arrays', async () => {
    const text = '{"labels": ["a", "b"], "weights": [[1, "Infinity"], ["NaN", 0.5]], "other": {"data": [1, 2], "dims": [1, 2]}, "layer": 2}';
    const arrays = await read(text, 'a.json');
    expect([...arrays.keys()]).toEqual(['weights', 'other']);
    expect([...arrays.get('weights')!.data]).toEqual([1, Infinity, NaN, 0.5]);
  });
  it('accepts the bare NaN that Python writes into JSON', async () =>
    expect((await read('[[1, NaN]]', 'a.json')).get('')!.data).toEqual(Float32Array.of(1, NaN)));
  it.each([
    ['a.json', '{"labels": ["a"]}', /not an array/],
    ['a.json', '7', /no array/],
    ['a.csv', 'a,b\nc,d', /./],
    ['a.bin', 'x', /no safetensors/],
  ])('rejects %s if it contains no array: %s', (name, text, message) => expect(read(text, name)).rejects.toThrow(message));
  const deep = '['.repeat(100_000);
  it.each([
    ['negative sizes', '{"data": [1, 2], "dims": [-1, -2]}', 'The array has dims (-1, -2). Give 2 to 4 whole numbers of at least 1.'],
    ['fractional sizes', '{"data": [1, 2, 3], "dims": [1.5, 2]}', 'The array has dims (1.5, 2). Give 2 to 4 whole numbers of at least 1.'],
    ['no sizes', '{"data": [1], "dims": []}', 'The array has dims (). Give 2 to 4 whole numbers of at least 1.'],
    ['five sizes', '{"data": [1], "dims": [1, 1, 1, 1, 1]}', 'The array has dims (1, 1, 1, 1, 1). Give 2 to 4 whole numbers of at least 1.'],
    ['too few numbers', '{"data": [1, 2, 3], "dims": [2, 2]}', 'The array has 3 numbers, but its dims (2, 2) need 4.'],
    [
      'negative sizes of a named array',
      '{"a": {"data": [1, 2], "dims": [-1, -2]}}',
      'The array has dims (-1, -2). Give 2 to 4 whole numbers of at least 1.',
    ],
    ['1e39 with sizes', '{"data": [1e39], "dims": [1, 1]}', '1e+39 is too large for float32. The largest number is 3.4e38.'],
    ['1e39 in a list', '[[1e39]]', '1e+39 is too large for float32. The largest number is 3.4e38.'],
    ['1e999 in a list', '[[1e999]]', 'A number is too large for float32. The largest number is 3.4e38.'],
    ['1e999 with sizes', '{"data": [-1e999], "dims": [1, 1]}', 'A number is too large for float32. The largest number is 3.4e38.'],
    ['deep nesting', `${deep}1${']'.repeat(100_000)}`, 'The lists are nested more than four deep. Give rows or a batch of rows.'],
    ['deep nesting without closing brackets', deep, 'The lists are nested more than four deep. Give rows or a batch of rows.'],
    [
      'deep nesting in a named array',
      `{"a": ${deep}1${']'.repeat(100_000)}}`,
      'The lists are nested more than four deep. Give rows or a batch of rows.',
    ],
  ])('rejects JSON with %s', (_, text, message) => expect(read(text, 'a.json')).rejects.toThrow(new Error(message)));
  it('selects the array named like the field or its checkpoint parameter, or else the first one', () => {
    expect(nameFor('Wq', ['wk', 'WQ'])).toBe('WQ');
    expect(nameFor('Wv', ['layer.0.attention.self.query.weight', 'layer.0.attention.self.value.weight'])).toBe('layer.0.attention.self.value.weight');
    expect(nameFor('Wo', ['x', 'layers.0.self_attn.out_proj.weight'])).toBe('layers.0.self_attn.out_proj.weight');
    expect(nameFor('X', ['a', 'b'])).toBe('a');
  });
});

describe('writing arrays to files', () => {
  const deep = { data: Float32Array.from({ length: 12 }, (_, i) => i / 8), dims: [2, 3, 2] };
  it('preserves every value in JSON, including infinities and NaN', async () => {
    const odd = { data: Float32Array.of(1 / 3, -Infinity, NaN, 1e-9), dims: [2, 2] };
    const arrays = await read(arraysToJson({ odd, deep }), 'a.json');
    expect(() => JSON.parse(arraysToJson({ odd }))).not.toThrow();
    expect([...arrays]).toEqual([
      ['odd', odd],
      ['deep', deep],
    ]);
  });
  it('preserves shape and values in .npy', async () => expect([...(await read(arrayToNpy(deep), 'a.npy'))]).toEqual([['', deep]]));
  it('writes one CSV line per row with the number of its head', () => {
    const lines = arrayToCsv(deep, ['head']).trim().split('\r\n');
    expect(lines[0]).toBe('head,row,number 1,number 2');
    expect(lines[4]).toBe('2,1,0.75,0.875');
    expect(lines).toHaveLength(7);
    expect(arrayToCsv({ data: Float32Array.of(1, 2), dims: [1, 2] }, [])).toBe('row,number 1,number 2\r\n1,1,2\r\n');
  });
});
