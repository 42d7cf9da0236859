/** Bad files: every refusal of parseSafetensors with its message, and invalid input of writeSafetensors. */
import type { StateDict } from 'attn';
import { Catalogue, detached, k, withData, wrong } from '../support/catalogue.ts';
import { Generator } from '../support/generator.ts';
import { host } from '../support/host.ts';
import { random } from '../support/tensors.ts';

const g = new Generator(17);
const catalogue = new Catalogue();
const { bad } = catalogue;

function file(header: string | Uint8Array, data = 0, length?: bigint): Uint8Array<ArrayBuffer> {
  const text = typeof header === 'string' ? new TextEncoder().encode(header) : header;
  const out = new Uint8Array(8 + text.length + data);
  new DataView(out.buffer).setBigUint64(0, length ?? BigInt(text.length), true);
  out.set(text, 8);
  return out;
}
const entry = (shape: readonly number[] | string, offsets: readonly (number | string)[], dtype = 'F32') =>
  `{"dtype":"${dtype}","shape":${typeof shape === 'string' ? shape : JSON.stringify(shape)},"data_offsets":[${offsets}]}`;
const two = (a: string, b: string) => `{"a":${a},"b":${b}}`;
const one = (text: string, data = 8) => file(`{"a":${text}}`, data);
const fine = entry([2], [0, 8]);

for (const value of [
  undefined,
  null,
  'text',
  5,
  [],
  {},
  new Float32Array(4),
  new DataView(new ArrayBuffer(8)),
  new Uint8ClampedArray(8),
] as unknown[])
  bad(`bytes: ${Object.prototype.toString.call(value)}`, 'DTYPE', ['parseSafetensors', 'bytes'], (s) => s.attn.parseSafetensors(wrong(value)));
bad('detached bytes', 'DETACHED', ['parseSafetensors', 'bytes'], (s) => s.attn.parseSafetensors(detached(one(fine))));
bad('a detached ArrayBuffer', 'DETACHED', ['bytes'], (s) => {
  const { buffer } = one(fine);
  structuredClone(buffer, { transfer: [buffer] });
  return s.attn.parseSafetensors(buffer);
});

const refused: readonly (readonly [name: string, bytes: () => Uint8Array, ...words: (string | RegExp)[]])[] = [
  ['HTML', () => new TextEncoder().encode('<!doctype html><html></html>'), 'HTML'],
  ['an LFS pointer', () => new TextEncoder().encode('version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n'), 'LFS'],
  ['no bytes', () => new Uint8Array(0), '0 bytes'],
  ['seven bytes', () => new Uint8Array(7), '7 bytes'],
  ['a header of length 0', () => file(''), 'header is empty'],
  ['a header longer than the file', () => file('{}').subarray(0, 9), 'longer than the file'],
  ['a header of 2^64 - 1 bytes', () => file('{}', 8, 2n ** 64n - 1n), 'longer than the file', '18446744073709551615'],
  ['a header of 2^32 + 2 bytes', () => file('{}', 8, 2n ** 32n + 2n), 'longer than the file'],
  ["a zip, PyTorch's own pickle", () => new TextEncoder().encode('PK\u0003\u0004\u0000\u0000\u0008\u0008 and so on'), 'is a zip', 'save_file'],
  [
    'a pickle, as older versions of PyTorch wrote it',
    () => Uint8Array.of(0x80, 2, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e),
    'is a pickle',
    'save_file',
  ],
  ['a header above 16 MiB', () => file(`{}${' '.repeat(2 ** 24)}`), '16 MiB'],
  ['a truncated download', () => file(`{"a":${entry([4], [0, 16])}}`, 16).subarray(0, -1), '"a"', 'ends after the file'],
  ['no JSON', () => file('{"a":'), 'JSON'],
  ['text after the object', () => file('{} x'), 'more than'],
  ['a second object', () => file('{}{}'), 'more than'],
  ['a byte order mark', () => file('\ufeff{}'), 'JSON'],
  ['a zero byte', () => file('{}\0'), 'JSON'],
  ['bytes that are not UTF-8', () => file(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x7b, 0x7d, 0x7d)), 'UTF-8'],
  ['a lone surrogate', () => file(`{"\\ud800":${fine}}`, 8), 'JSON'],
  ['an Array', () => file('[1]'), 'header', 'an array', 'object'],
  ['a string', () => file('"a"'), 'header', 'a string'],
  ['null', () => file('null'), 'header', 'null'],
  ['a number', () => file('5'), 'header', 'a number'],
  ['true', () => file('true'), 'header', 'true'],
  ['an entry that is not an object', () => one('5'), '"a"', 'a number'],
  ['an object inside an entry', () => one('{"dtype":{}}'), 'object', 'belong'],
  ['fifty objects inside each other', () => one('{"dtype":'.repeat(50) + '1' + '}'.repeat(50)), 'belong'],
  ['Arrays inside each other', () => one('{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}'), '"a"', 'array'],
  ['two tensors of one name', () => file(`{"a":${fine},"a":${entry([0], [8, 8])}}`, 8), '"a"', 'twice'],
  ['two tensors of one name, one escaped', () => file(`{"a":${fine},"\\u0061":${entry([0], [8, 8])}}`, 8), '"a"', 'twice'],
  ['two fields of one name', () => one('{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}'), 'dtype', 'twice'],
  ['an unknown field', () => one('{"dtype":"F32","shape":[2],"data_offsets":[0,8],"strides":[1]}'), 'unknown field', 'strides'],
  ['no dtype', () => one('{"shape":[2],"data_offsets":[0,8]}'), '"a"', 'missing'],
  ['no shape', () => one('{"dtype":"F32","data_offsets":[0,8]}'), '"a"', 'missing'],
  ['no offsets', () => one('{"dtype":"F32","shape":[2]}'), '"a"', 'missing'],
  ['a dtype that is a number', () => one('{"dtype":1,"shape":[2],"data_offsets":[0,8]}'), '"a"', 'a number'],
  ['a shape that is a string', () => one('{"dtype":"F32","shape":"2","data_offsets":[0,8]}'), '"a"', 'a string'],
  ['null for a shape', () => one('{"dtype":"F32","shape":null,"data_offsets":[0,8]}'), '"a"', 'null'],
  ['a negative size', () => one(entry('[-2]', [0, 8])), 'shape', 'negative'],
  ['a fractional size', () => one(entry('[2.5]', [0, 8])), 'shape', 'not whole'],
  ['a size with an exponent', () => one(entry('[2e0]', [0, 8])), 'shape', 'not whole'],
  ['a size larger than any number', () => one(entry('[2e308]', [0, 8])), 'not valid JSON'],
  ['a size above 2^53', () => one(entry('[9007199254740993]', [0, 8])), 'shape', '2^53'],
  ['nine sizes', () => one(entry([1, 1, 1, 1, 1, 1, 1, 1, 2], [0, 8])), 'shape', '8'],
  ['a shape whose product is too large', () => one(entry('[4294967296,4294967296]', [0, 0]), 0), '"a"', 'too large'],
  ['a shape whose product is 0 in 64 bits', () => one(entry('[4294967296,4294967296,0]', [0, 8])), '"a"'],
  ['negative offsets', () => one(entry([2], [-8, 0])), 'data_offsets', 'negative'],
  ['fractional offsets', () => one(entry([2], ['0.0', 8])), 'data_offsets', 'not whole'],
  ['offsets above 2^53', () => one(entry([2], ['9007199254740993', '9007199254741001'])), 'data_offsets', '2^53'],
  ['one offset', () => one(entry([2], [0])), 'data_offsets', '1', 'expected 2'],
  ['three offsets', () => one(entry([2], [0, 4, 8])), 'data_offsets', '3', 'expected 2'],
  ['reversed offsets', () => one(entry([2], [8, 0])), 'reversed'],
  ['offsets past the end', () => one(entry([2], [0, 8]), 4), '"a"', 'ends after the file'],
  ['bytes that do not fit the shape', () => one(entry([3], [0, 8])), '"a"', '12', '8'],
  ['bytes that do not fit the type', () => one(entry([2], [0, 8], 'F16')), '"a"', '4', '8'],
  ['overlapping tensors', () => file(two(entry([2], [0, 8]), entry([2], [4, 12])), 12), 'overlaps'],
  ['overlapping data of two tensors', () => file(two(fine, fine), 8), 'overlaps'],
  ['a hole', () => file(two(entry([1], [0, 4]), entry([1], [8, 12])), 12), 'hole'],
  ['a gap at the beginning', () => one(entry([1], [4, 8])), 'hole'],
  ['bytes after the last tensor', () => one(fine, 9), '8', '9'],
  ['bytes without tensors', () => file('{}', 1), '0', '1'],
  ['metadata that is not an object', () => file('{"__metadata__":5}'), '__metadata__'],
  ['a number in metadata', () => file('{"__metadata__":{"a":1}}'), '__metadata__', 'a number'],
  ['null in metadata', () => file('{"__metadata__":{"a":null}}'), '__metadata__', 'null'],
  ['an Array in metadata', () => file('{"__metadata__":{"a":["b"]}}'), '__metadata__', 'an array'],
  ['an object in metadata', () => file('{"__metadata__":{"a":{}}}'), 'object'],
  ['metadata twice', () => file('{"__metadata__":{},"__metadata__":{}}'), '__metadata__', 'twice'],
];
for (const [name, bytes, ...words] of refused) {
  bad(name, 'FORMAT', words, (s) => s.attn.parseSafetensors(bytes()));
  // The whole file as a view into a larger buffer, at an odd address.
  bad(`${name}, in a larger buffer`, 'FORMAT', words, (s) => {
    const all = bytes();
    const larger = new Uint8Array(all.length + 40).fill(0x20);
    larger.set(all, 3);
    return s.attn.parseSafetensors(larger.subarray(3, 3 + all.length));
  });
}
// Takes two minutes in checked builds; the native tests cover it with the same checks.
if (host.build === 'release')
  bad('more than 100000 tensors', 'FORMAT', ['100000', 'tensors'], (s) =>
    s.attn.parseSafetensors(file(`{${Array.from({ length: 100001 }, (_, i) => `"${i}":${entry([0], [0, 0])}`)}}`)),
  );
for (const dtype of ['F8_E4M3', 'F8_E5M2', 'F8_E8M0', 'F4', 'C64', 'f32', '', 'F32 ', 'F128'])
  bad(`dtype '${dtype}'`, dtype === '' ? 'FORMAT' : 'UNSUPPORTED', ['"a"', dtype], (s) => s.attn.parseSafetensors(one(entry([8], [0, 8], dtype))));
bad('tensors beyond the memory limit', ['MEMORY', 'FORMAT'], ['"a"'], (s) =>
  s.attn.parseSafetensors(one(entry([2 ** 31 - 1], [0, 4 * (2 ** 31 - 1)]))),
);

for (const value of [undefined, null, 5, 'tensors', [], new Set(), new Float32Array(2), () => 1, new URL('file:///x')] as unknown[])
  bad(`tensors: ${Object.prototype.toString.call(value)}`, 'ARGUMENT', ['writeSafetensors', 'tensors'], (s) => s.attn.writeSafetensors(wrong(value)));
const write = (
  name: string,
  code: 'ARGUMENT' | 'DTYPE' | 'SHAPE' | 'DETACHED' | 'MEMORY',
  words: readonly string[],
  tensors: () => unknown,
  metadata?: unknown,
) => bad(`writing ${name}`, code, ['writeSafetensors', ...words], (s) => s.attn.writeSafetensors(wrong<StateDict>(tensors()), wrong(metadata)));
const a = () => ({ a: random(g, [2]) });
write('an entry that is not a tensor', 'ARGUMENT', ['a'], () => ({ a: [1, 2] }));
write('an entry of Float64Array', 'DTYPE', ['a', 'Float32Array'], () => ({ a: withData(new Float64Array(2), [2]) }));
write('an entry of another length', 'SHAPE', ['a', '2', '3'], () => ({ a: withData(new Float32Array(3), [2]) }));
write('a detached entry', 'DETACHED', ['a'], () => ({ a: withData(detached(new Float32Array(2)), [2]) }));
write('an entry of rank 9', 'SHAPE', ['a', '9'], () => ({ a: withData(new Float32Array(1), [1, 1, 1, 1, 1, 1, 1, 1, 1]) }));
write('a tensor called __metadata__', 'ARGUMENT', ['__metadata__'], () => ({ __metadata__: k }));
write('a lone high surrogate in a name', 'ARGUMENT', ['name', 'Unicode'], () => ({ 'a\ud800': k }));
write('a lone low surrogate in a name', 'ARGUMENT', ['name', 'Unicode'], () => new Map([['\udc00a', k]]));
write('a name that is a number', 'ARGUMENT', ['name'], () => new Map([[1, k]]));
for (const metadata of [null, 5, 'text', ['a'], true, new Map([['a', 'b']])] as unknown[])
  write(`metadata ${Object.prototype.toString.call(metadata)}`, 'ARGUMENT', ['metadata'], a, metadata);
for (const value of [5, null, undefined, {}, ['b'], true] as unknown[])
  write(`a metadata value ${Object.prototype.toString.call(value)}`, 'ARGUMENT', ['metadata.format'], a, { format: value });
write('a lone surrogate in metadata', 'ARGUMENT', ['metadata.format', 'Unicode'], a, { format: '\ud83d' });
write('a lone surrogate in a name of metadata', 'ARGUMENT', ['metadata', 'Unicode'], a, { '\ud83d': 'x' });
bad('writing a tensor that a getter of metadata detaches', 'DETACHED', ['writeSafetensors', 'a'], (s) => {
  const data = new Float32Array(2);
  return s.attn.writeSafetensors(
    { a: { data, dims: [2] } },
    Object.defineProperty({}, 'format', { get: () => (detached(data), 'x'), enumerable: true }),
  );
});

catalogue.run('bad files');
