/** Bad input of functions. For layers see bad_layers.ts, for files bad_files.ts. */
import type { Mask, Tensor } from 'attn';
import { Catalogue, detached, k, maskOf, named, q, type Setting, v, w, withData, withDims, wrong, x } from '../support/catalogue.ts';
import { Generator } from '../support/generator.ts';
import { random, tensor } from '../support/tensors.ts';

const g = new Generator(14);
const catalogue = new Catalogue();
const { bad } = catalogue;

const sdpa = (s: Setting, options?: unknown) => s.attn.scaledDotProductAttention(q, k, v, wrong(options));
const masked = (s: Setting, mask: unknown) => sdpa(s, { mask });

// Mismatched shapes.
bad('data longer than dims', 'SHAPE', ['query', '24', '25'], (s) => s.attn.scaledDotProductAttention(withData(new Float32Array(25)), k, v));
bad('data shorter than dims', 'SHAPE', ['value', '60', '59'], (s) => s.attn.scaledDotProductAttention(q, k, withData(new Float32Array(59), v.dims)));
bad('empty data', 'SHAPE', ['key'], (s) => s.attn.scaledDotProductAttention(q, withData(new Float32Array(0), k.dims), v));
bad('query and key widths differ', 'SHAPE', ['key', 'expected', '4', '5'], (s) => s.attn.scaledDotProductAttention(q, random(g, [2, 5, 5]), v));
bad('numbers of keys and values differ', 'SHAPE', ['value', '5', '7'], (s) => s.attn.scaledDotProductAttention(q, k, random(g, [2, 7, 6])));
bad('batches differ', 'SHAPE', ['key', '2', '3'], (s) => s.attn.scaledDotProductAttention(q, random(g, [3, 5, 4]), random(g, [3, 5, 6])));
bad('ranks differ', 'SHAPE', ['key'], (s) => s.attn.scaledDotProductAttention(q, random(g, [5, 4]), random(g, [5, 6])));
bad('rank 1', 'SHAPE', ['query'], (s) => s.attn.scaledDotProductAttention(random(g, [4]), random(g, [4]), random(g, [4])));
bad('rank 5', 'SHAPE', ['query'], (s) =>
  s.attn.scaledDotProductAttention(random(g, [1, 1, 1, 2, 4]), random(g, [1, 1, 1, 2, 4]), random(g, [1, 1, 1, 2, 4])),
);
bad('heads differ without enableGqa', 'SHAPE', ['key', '4', '2'], (s) =>
  s.attn.scaledDotProductAttention(random(g, [1, 4, 3, 4]), random(g, [1, 2, 3, 4]), random(g, [1, 2, 3, 4])),
);
bad('query heads not a multiple with enableGqa', 'SHAPE', ['3', '2'], (s) =>
  s.attn.scaledDotProductAttention(random(g, [1, 3, 3, 4]), random(g, [1, 2, 3, 4]), random(g, [1, 2, 3, 4]), { enableGqa: true }),
);
bad('key and value heads differ', 'SHAPE', ['value'], (s) =>
  s.attn.scaledDotProductAttention(random(g, [1, 4, 3, 4]), random(g, [1, 2, 3, 4]), random(g, [1, 4, 3, 4]), { enableGqa: true }),
);
bad('linear: widths differ', 'SHAPE', ['linear', 'expected', '8', '7'], (s) => s.attn.linear(x, random(g, [5, 7])));
bad('linear: weight of rank 3', 'SHAPE', ['weight'], (s) => s.attn.linear(x, random(g, [1, 5, 8])));
bad('linear: bias of another length', 'SHAPE', ['bias', '5', '4'], (s) => s.attn.linear(x, w, random(g, [4])));
bad('linear: bias of rank 2', 'SHAPE', ['bias'], (s) => s.attn.linear(x, w, random(g, [1, 5])));
bad('forward: query of another width', 'SHAPE', ['query', '8', '9'], (s) => s.mha.forward(random(g, [2, 3, 9])));
bad('forward: rank 4 names the reshape', 'SHAPE', ['query', /reshape|rank/i], (s) => s.mha.forward(random(g, [1, 2, 3, 8])));
bad('forward: rank 1', 'SHAPE', ['query'], (s) => s.mha.forward(random(g, [8])));
bad('forward: key of another width', 'SHAPE', ['key'], (s) => s.mha.forward(x, random(g, [2, 3, 7]), x));
bad('forward: batches differ', 'SHAPE', [], (s) => s.mha.forward(x, random(g, [3, 3, 8]), random(g, [3, 3, 8])));
bad('forward: rank 2 query with a rank 3 key', 'SHAPE', ['key'], (s) => s.mha.forward(random(g, [3, 8]), x, x));
bad('forward: numbers of keys and values differ', 'SHAPE', ['value'], (s) => s.mha.forward(x, random(g, [2, 4, 8]), random(g, [2, 5, 8])));

// Invalid dims.
for (const [name, dims] of Object.entries<unknown>({
  negative: [-2, -3, 4],
  fractional: [2, 1.5, 8],
  NaN: [2, NaN, 4],
  infinite: [2, Infinity, 4],
  'a string inside': [2, '3', 4],
  'a BigInt inside': [2, 3n, 4],
  'null inside': [2, null, 4],
  'a hole': [2, , 4],
  'a string': '2,3,4',
  'a number': 24,
  'an object': { 0: 2, 1: 3, 2: 4, length: 3 },
  missing: undefined,
  null: null,
  nested: [[2, 3, 4]],
}))
  bad(`dims: ${name}`, 'ARGUMENT', ['query', 'dims'], (s) => s.attn.scaledDotProductAttention(withDims(dims), k, v));
bad('dims: above 2^31 - 1', ['ARGUMENT', 'MEMORY'], ['query'], (s) =>
  s.attn.scaledDotProductAttention(withDims([2 ** 31, 0, 4], new Float32Array(0)), k, v),
);
bad('dims: a product that is 0 in 32 bits', ['SHAPE', 'MEMORY', 'ARGUMENT'], ['query'], (s) =>
  s.attn.scaledDotProductAttention(withDims([65536, 65536, 1], new Float32Array(0)), k, v),
);
bad('dims: a product past 2^53', ['SHAPE', 'MEMORY', 'ARGUMENT'], ['x'], (s) => s.attn.softmax(withDims([2 ** 30, 2 ** 30], new Float32Array(0))));
bad('softmax: dim out of range', 'OUT_OF_RANGE', ['dim'], (s) => s.attn.softmax(x, 3));
bad('softmax: dim below the range', 'OUT_OF_RANGE', ['dim'], (s) => s.attn.softmax(x, -4));
for (const dim of [0.5, NaN, '1', null, {}, 1n])
  bad(`softmax: dim ${String(dim)} (${typeof dim})`, 'ARGUMENT', ['dim'], (s) => s.attn.softmax(x, wrong(dim)));

// Values that are not tensors.
for (const value of [undefined, null, 5, 'tensor', [[1, 2]], new Float32Array(24), () => 1, Symbol('t')] as unknown[]) {
  const name = Object.prototype.toString.call(value);
  bad(`query: ${name}`, ['ARGUMENT', 'DTYPE'], ['query'], (s) => s.attn.scaledDotProductAttention(wrong(value), k, v));
  bad(`value: ${name}`, ['ARGUMENT', 'DTYPE'], ['value'], (s) => s.attn.scaledDotProductAttention(q, k, wrong(value)));
  bad(`linear: x ${name}`, ['ARGUMENT', 'DTYPE'], ['x'], (s) => s.attn.linear(wrong(value), w));
  bad(`forward: query ${name}`, ['ARGUMENT', 'DTYPE'], ['query'], (s) => s.mha.forward(wrong(value)));
}
bad('linear: bias null', ['ARGUMENT', 'DTYPE'], ['bias'], (s) => s.attn.linear(x, w, wrong(null)));
bad('no arguments at all', ['ARGUMENT', 'DTYPE'], ['query'], (s) => (s.attn.scaledDotProductAttention as () => unknown)());

// Types of data.
for (const data of [
  new Float64Array(24),
  new Int32Array(24),
  new Uint8Array(24),
  Array.from({ length: 24 }, () => 1),
  new Array(24),
  new ArrayBuffer(96),
  new DataView(new ArrayBuffer(96)),
  'x'.repeat(24),
  undefined,
  null,
] as unknown[]) {
  const name = Object.prototype.toString.call(data) + (Array.isArray(data) && !(0 in data) ? ' sparse' : '');
  bad(`data: ${name}`, data === undefined || data === null ? ['DTYPE', 'ARGUMENT'] : 'DTYPE', ['query', 'Float32Array'], (s) =>
    s.attn.scaledDotProductAttention(withData(data), k, v),
  );
}
bad('data: an object that only looks like one', 'DTYPE', ['query'], (s) =>
  s.attn.scaledDotProductAttention(withData({ length: 24, [Symbol.toStringTag]: 'Float32Array' }), k, v),
);
bad('data: an object with its prototype', 'DTYPE', ['query'], (s) =>
  s.attn.scaledDotProductAttention(withData(Object.create(Float32Array.prototype)), k, v),
);

// Detached and shrunk buffers.
bad('detached data', 'DETACHED', ['query'], (s) => s.attn.scaledDotProductAttention(withData(detached(new Float32Array(24))), k, v));
bad('detached mask', 'DETACHED', ['mask'], (s) => {
  return masked(s, { kind: 'attend', data: detached(new Uint8Array(15)), dims: [3, 5] });
});
bad('an array shrunk under its view', ['DETACHED', 'SHAPE'], ['query'], (s) => {
  const resizable = Reflect.construct(ArrayBuffer, [96, { maxByteLength: 192 }]) as ArrayBuffer & { resize?(n: number): void };
  const data = new Float32Array(resizable, 0, 24);
  // Without resizable buffers: a detached one has the same effect on the callee.
  if (resizable.resize) resizable.resize(40);
  else structuredClone(resizable, { transfer: [resizable] });
  return s.attn.scaledDotProductAttention(withData(data), k, v);
});
bad('detached while the options are read', ['DETACHED', 'SHAPE'], ['query'], (s) => {
  const data = new Float32Array(24);
  return s.attn.scaledDotProductAttention(withData(data), k, v, {
    get scale() {
      structuredClone(data.buffer, { transfer: [data.buffer] });
      return 1;
    },
  });
});

bad('mask: a bare array', ['MASK', 'ARGUMENT'], ['mask', 'kind'], (s) => masked(s, new Uint8Array(15)));
bad('mask: without kind', 'MASK', ['mask', 'kind'], (s) => masked(s, { data: new Uint8Array(15), dims: [3, 5] }));
for (const kind of ['allow', '', 1, null, 'ATTEND', 'toString', '__proto__'])
  bad(`mask: kind ${String(kind)} (${typeof kind})`, 'MASK', ['mask', 'kind', 'attend', 'block', 'additive'], (s) => masked(s, maskOf([3, 5], kind)));
for (const value of [5, 'causal', true, null] as unknown[]) bad(`mask: ${String(value)}`, ['MASK', 'ARGUMENT'], ['mask'], (s) => masked(s, value));
bad('mask: data longer than dims', ['MASK', 'SHAPE'], ['mask'], (s) => masked(s, maskOf([3, 5], 'attend', new Uint8Array(16))));
bad('mask: another number of keys', 'MASK', ['mask', '4', '5'], (s) => masked(s, maskOf([3, 4])));
bad('mask: another number of queries', 'MASK', ['mask'], (s) => masked(s, maskOf([4, 5])));
bad('mask: another batch', 'MASK', ['mask'], (s) => masked(s, maskOf([3, 3, 5])));
bad('mask: one key only', 'MASK', ['mask'], (s) => masked(s, maskOf([3, 1])));
bad('mask: rank 0', 'MASK', ['mask'], (s) => masked(s, maskOf([])));
bad('mask: rank 5', 'MASK', ['mask'], (s) => masked(s, maskOf([1, 1, 1, 3, 5])));
bad("mask: torch's (B·H,L,S)", 'MASK', ['mask', /\(?B, ?H, ?L, ?S|reshape|\[B, ?H, ?L, ?S/i], (s) =>
  s.mha.forward(x, undefined, undefined, { mask: maskOf([4, 3, 3]) as Mask }),
);
bad('mask: NaN in an additive one', 'MASK', ['mask', 'NaN'], (s) => masked(s, maskOf([5], 'additive', new Float32Array([0, 0, NaN, 0, 0]))));
bad('mask: +Infinity in an additive one', 'MASK', ['mask', 'inf'], (s) =>
  masked(s, maskOf([5], 'additive', new Float32Array([0, Infinity, 0, 0, 0]))),
);
for (const data of [new Float64Array(15), new Int32Array(15), Array.from({ length: 15 }, () => true), new Uint8ClampedArray(15)] as unknown[])
  bad(`mask: ${Object.prototype.toString.call(data)}`, 'DTYPE', ['mask'], (s) => masked(s, maskOf([3, 5], 'attend', data)));
bad('mask: bytes in an additive one', ['DTYPE', 'MASK'], ['mask', 'Float32Array'], (s) => masked(s, maskOf([3, 5], 'additive')));
bad('mask: fractional dims', 'ARGUMENT', ['mask', 'dims'], (s) => masked(s, maskOf([1.5, 10], 'attend', new Uint8Array(15))));
const padded = (s: Setting, keyPaddingMask: unknown) => sdpa(s, { keyPaddingMask });
bad('keyPaddingMask: rank 1', 'MASK', ['keyPaddingMask'], (s) => padded(s, maskOf([5])));
bad('keyPaddingMask: (B,L,S)', 'MASK', ['keyPaddingMask'], (s) => padded(s, maskOf([2, 3, 5])));
bad('keyPaddingMask: another batch', 'MASK', ['keyPaddingMask'], (s) => padded(s, maskOf([3, 5])));
bad('keyPaddingMask: another number of keys', 'MASK', ['keyPaddingMask'], (s) => padded(s, maskOf([2, 4])));
bad('keyPaddingMask: without kind', 'MASK', ['keyPaddingMask', 'kind'], (s) => padded(s, { data: new Uint8Array(10), dims: [2, 5] }));
bad('keyPaddingMask: NaN in an additive one', 'MASK', ['keyPaddingMask', 'NaN'], (s) =>
  padded(s, maskOf([2, 5], 'additive', new Float32Array(10).fill(NaN))),
);

// Options: a wrong type is ARGUMENT, the right type out of range CONFIG.
for (const value of [5, 'causal', true, null, Symbol('o'), () => 1] as unknown[])
  bad(`options: ${String(value)}`, 'ARGUMENT', ['options'], (s) => sdpa(s, value));
for (const [name, values] of Object.entries<readonly unknown[]>({
  isCausal: [1, 'false', null, {}],
  needWeights: [1, 'yes', null],
  averageWeights: [0, 'no', null],
  enableGqa: [1, '', null],
  scale: ['1', null, {}, 1n, true],
  fullyMasked: [0, null],
  trace: ['scores', 1, null, [1], { scores: true }],
}))
  for (const value of values) bad(`${name}: ${named(value)}`, 'ARGUMENT', [name], (s) => sdpa(s, { [name]: value }));
for (const [name, values] of Object.entries<readonly unknown[]>({
  scale: [NaN, Infinity, -Infinity, 1e39],
  fullyMasked: ['Zero', 'toString', ''],
  trace: [['score'], ['scores', 'nope']],
}))
  for (const value of values)
    bad(`${name}: ${named(value)}`, name === 'trace' ? ['CONFIG', 'ARGUMENT'] : 'CONFIG', [name], (s) => sdpa(s, { [name]: value }));
bad("an option in torch's spelling", 'ARGUMENT', ['is_causal'], (s) => sdpa(s, { is_causal: true }));

for (const [name, values] of Object.entries<readonly unknown[]>({
  dropout: [1, 1.5, -0.1, NaN, Infinity, 1 - 1e-12],
  seed: [-1, 2 ** 53],
}))
  for (const value of values) bad(`${name}: ${named(value)}`, 'CONFIG', [name], (s) => sdpa(s, { dropout: 0.5, [name]: value }));
for (const [name, values] of Object.entries<readonly unknown[]>({ dropout: ['0.5', null, true, 1n], seed: [1.5, NaN, '1', null, 1n, {}] }))
  for (const value of values) bad(`${name}: ${named(value)}`, 'ARGUMENT', [name], (s) => sdpa(s, { dropout: 0.5, [name]: value }));
bad("an encoder's trace name", 'ARGUMENT', ['trace[1]', 'norm1'], (s) => sdpa(s, { trace: ['scores', 'norm1'] }));
for (const [given, meant] of Object.entries({
  is_causal: 'isCausal',
  need_weights: 'needWeights',
  keypaddingmask: 'keyPaddingMask',
  attn_mask: 'mask',
  fully_masked: 'fullyMasked',
  dropuot: 'dropout',
}))
  bad(`an option called ${given}`, 'ARGUMENT', [given, `Did you mean ${meant}?`], (s) => sdpa(s, { [given]: undefined }));

for (const [name, values] of Object.entries<readonly unknown[]>({
  softcap: ['1', null, {}, 1n, true, [2]],
  window: [5, null, 'x', true, {}, [], [1], [1, 2, 3], [1, '2'], [0.5, 1], [NaN, 1], [0, Infinity], [null, 0], [0, 1n], [[1], 2], [, 1]],
  queryOffset: [0.5, NaN, Infinity, -Infinity, '1', null, 1n, true, {}, [1]],
  outputPresent: [1, 'yes', null, {}],
  past: [5, null, 'past', true, [k, v], new Map()],
}))
  for (const value of values) bad(`${name}: ${named(value)}`, 'ARGUMENT', [name], (s) => sdpa(s, { [name]: value }));
for (const window of [Int32Array.of(1, 2), { 0: 1, 1: 1, length: 2 }])
  bad(`window: ${Object.prototype.toString.call(window)}`, 'ARGUMENT', ['window', '[left, right]'], (s) => sdpa(s, { window }));
for (const [name, values] of Object.entries<readonly unknown[]>({
  softcap: [-1, -1e-30, NaN, Infinity, -Infinity, 1e39, 1e-40, 1e-60],
  window: [
    [-2, 0],
    [0, -2],
    [-(2 ** 40), 1],
    [2 ** 53, 0],
    [0, 1e300],
  ],
  queryOffset: [2 ** 53, -(2 ** 53), 1e300],
}))
  for (const value of values) bad(`${name}: ${named(value)}, out of range`, 'CONFIG', [name], (s) => sdpa(s, { [name]: value }));
for (const [given, meant] of Object.entries({ soft_cap: 'softcap', query_offset: 'queryOffset', output_present: 'outputPresent', windows: 'window' }))
  bad(`an option called ${given}`, 'ARGUMENT', [given, `Did you mean ${meant}?`], (s) => sdpa(s, { [given]: 1 }));

const past = { key: random(g, [2, 4, 4]), value: random(g, [2, 4, 6]) };
const after = (s: Setting, change: object, options: object = {}) => sdpa(s, { past: { ...past, ...change }, ...options });
bad('past: without a key', 'ARGUMENT', ['past.key'], (s) => after(s, { key: undefined }));
bad('past: without a value', 'ARGUMENT', ['past.value'], (s) => sdpa(s, { past: { key: past.key } }));
bad('past: an unknown member', 'ARGUMENT', ['past.values', 'Did you mean value?'], (s) => after(s, { values: past.value }));
for (const value of [null, 5, 'key', past.key.data, [past.key]] as unknown[])
  bad(`past: a key that is ${Object.prototype.toString.call(value)}`, 'ARGUMENT', ['past.key'], (s) => after(s, { key: value }));
bad('past: a value of Float64Array', 'DTYPE', ['past.value'], (s) => after(s, { value: withData(new Float64Array(48), past.value.dims) }));
bad('past: a detached key', 'DETACHED', ['past.key'], (s) => after(s, { key: withData(detached(new Float32Array(32)), past.key.dims) }));
bad('past: a key detached while its value is read', 'DETACHED', ['past.key'], (s) => {
  const key = { data: past.key.data.slice(), dims: past.key.dims };
  return sdpa(s, {
    past: {
      key,
      get value() {
        structuredClone(key.data.buffer, { transfer: [key.data.buffer] });
        return past.value;
      },
    },
  });
});
bad('past: data that do not match their dims', 'SHAPE', ['past.key'], (s) => after(s, { key: withData(new Float32Array(31), past.key.dims) }));
for (const [what, key, value] of [
  ['another batch', [3, 4, 4], [3, 4, 6]],
  ['another batch of values', [2, 4, 4], [1, 4, 6]],
  ['another width', [2, 4, 5], [2, 4, 6]],
  ['another width of values', [2, 4, 4], [2, 4, 4]],
  ['a rank more', [2, 1, 4, 4], [2, 1, 4, 6]],
  ['a rank less', [4, 4], [4, 6]],
  ['past: different numbers of keys and values', [2, 4, 4], [2, 3, 6]],
  ['no dims', [], []],
] as const)
  bad(`past: ${what}`, 'SHAPE', ['past.'], (s) => after(s, { key: random(g, key), value: random(g, value) }));
bad('past: other heads', 'SHAPE', ['past.key'], (s) => {
  const [a, b] = [random(g, [1, 4, 3, 4]), random(g, [1, 2, 3, 4])];
  return s.attn.scaledDotProductAttention(a, b, b, { enableGqa: true, past: { key: a, value: a } });
});
bad('past: a mask for the new keys only', 'MASK', ['mask', '9', '5'], (s) => after(s, {}, { mask: maskOf([3, 5]) }));
bad('past: key padding for the new keys only', 'MASK', ['keyPaddingMask', '9', '5'], (s) => after(s, {}, { keyPaddingMask: maskOf([2, 5]) }));

const params = { queryWeight: random(g, [7, 4]), keyWeight: random(g, [7, 4]), scoreWeight: random(g, [7]), bias: random(g, [7]) };
const additive = (s: Setting, change: object = {}, options?: unknown, [a, b, c]: readonly Tensor[] = [q, k, v]) =>
  s.attn.additiveAttention(a, b, c, { ...params, ...change }, wrong(options));
const general = (s: Setting, weight: unknown = random(g, [4, 4]), options?: unknown, [a, b, c]: readonly Tensor[] = [q, k, v]) =>
  s.attn.generalAttention(a, b, c, { weight: wrong(weight) }, wrong(options));
for (const value of [undefined, null, 5, 'params', [], true, new Map()] as unknown[]) {
  const name = Object.prototype.toString.call(value);
  bad(`additiveAttention: params ${name}`, 'ARGUMENT', ['params'], (s) => s.attn.additiveAttention(q, k, v, wrong(value)));
  bad(`generalAttention: params ${name}`, 'ARGUMENT', ['params'], (s) => s.attn.generalAttention(q, k, v, wrong(value)));
}
bad('generalAttention: a tensor for params', 'ARGUMENT', ['data'], (s) => s.attn.generalAttention(q, k, v, wrong(random(g, [4, 4]))));
for (const name of ['queryWeight', 'keyWeight', 'scoreWeight']) {
  bad(`additiveAttention: no ${name}`, 'ARGUMENT', [name], (s) => additive(s, { [name]: undefined }));
  bad(`additiveAttention: ${name} null`, 'ARGUMENT', [name], (s) => additive(s, { [name]: null }));
  bad(`additiveAttention: ${name} an array`, 'ARGUMENT', [name], (s) => additive(s, { [name]: [1, 2] }));
  bad(`additiveAttention: ${name} of Float64Array`, 'DTYPE', [name], (s) => additive(s, { [name]: withData(new Float64Array(28), [7, 4]) }));
  bad(`additiveAttention: ${name} detached`, 'DETACHED', [name], (s) => additive(s, { [name]: withData(detached(new Float32Array(28)), [7, 4]) }));
  bad(`additiveAttention: ${name} of rank 3`, 'SHAPE', [name], (s) => additive(s, { [name]: random(g, [1, 7, 4]) }));
}
bad("additiveAttention: a parameter in torch's spelling", 'ARGUMENT', ['query_weight', 'queryWeight'], (s) => additive(s, { query_weight: 1 }));
bad('additiveAttention: queryWeight of another width', 'SHAPE', ['queryWeight', '4', '5'], (s) => additive(s, { queryWeight: random(g, [7, 5]) }));
bad('additiveAttention: keyWeight of another width', 'SHAPE', ['keyWeight', '4', '5'], (s) => additive(s, { keyWeight: random(g, [7, 5]) }));
bad('additiveAttention: keyWeight of another height', 'SHAPE', ['keyWeight', '7', '6'], (s) => additive(s, { keyWeight: random(g, [6, 4]) }));
bad('additiveAttention: scoreWeight of another length', 'SHAPE', ['scoreWeight', '7', '6'], (s) => additive(s, { scoreWeight: random(g, [6]) }));
bad('additiveAttention: scoreWeight of rank 2', 'SHAPE', ['scoreWeight'], (s) => additive(s, { scoreWeight: random(g, [1, 7]) }));
bad('additiveAttention: bias of another length', 'SHAPE', ['bias', '7', '8'], (s) => additive(s, { bias: random(g, [8]) }));
bad('additiveAttention: bias null', 'ARGUMENT', ['bias'], (s) => additive(s, { bias: null }));
bad('generalAttention: weight of another height', 'SHAPE', ['weight', '4', '5'], (s) => general(s, random(g, [5, 4])));
bad('generalAttention: weight of another width', 'SHAPE', ['weight', '4', '5'], (s) => general(s, random(g, [4, 5])));
bad('generalAttention: weight of rank 1', 'SHAPE', ['weight'], (s) => general(s, random(g, [4])));
bad('generalAttention: weight of Int32Array', 'DTYPE', ['weight'], (s) => general(s, withData(new Int32Array(16), [4, 4])));
for (const [op, call] of [
  ['additiveAttention', (s: Setting, options?: unknown, inputs?: readonly Tensor[]) => additive(s, {}, options, inputs)],
  ['generalAttention', (s: Setting, options?: unknown, inputs?: readonly Tensor[]) => general(s, undefined, options, inputs)],
] as const) {
  bad(`${op}: numbers of keys and values differ`, 'SHAPE', [op, 'value'], (s) => call(s, {}, [q, k, random(g, [2, 4, 6])]));
  bad(`${op}: batches differ`, 'SHAPE', [op, 'key'], (s) => call(s, {}, [q, random(g, [3, 5, 4]), random(g, [3, 5, 6])]));
  bad(`${op}: ranks differ`, 'SHAPE', [op, 'key'], (s) => call(s, {}, [q, random(g, [5, 4]), random(g, [5, 6])]));
  bad(`${op}: rank 1`, 'SHAPE', [op, 'query'], (s) => call(s, {}, [random(g, [4]), random(g, [4]), random(g, [4])]));
  bad(`${op}: heads differ`, 'SHAPE', [op, 'key'], (s) => call(s, {}, [random(g, [1, 4, 3, 4]), random(g, [1, 2, 3, 4]), random(g, [1, 2, 3, 4])]));
  bad(`${op}: a mask of other keys`, 'MASK', [op, 'mask'], (s) => call(s, { mask: maskOf([3, 4]) }));
  bad(`${op}: NaN in an additive mask`, 'MASK', ['mask', 'NaN'], (s) => call(s, { mask: maskOf([5], 'additive', new Float32Array(5).fill(NaN)) }));
  bad(`${op}: a key padding mask of another batch`, 'MASK', [op, 'keyPaddingMask'], (s) => call(s, { keyPaddingMask: maskOf([3, 5]) }));
  bad(`${op}: scale NaN`, 'CONFIG', [op, 'scale'], (s) => call(s, { scale: NaN }));
  bad(`${op}: dropout 1`, 'CONFIG', [op, 'dropout'], (s) => call(s, { dropout: 1 }));
  bad(`${op}: an unsupported trace`, 'ARGUMENT', ['trace[0]'], (s) => call(s, { trace: ['ff_hidden'] }));
  bad(`${op}: an unknown option`, 'ARGUMENT', ['causal', 'isCausal'], (s) => call(s, { causal: true }));
  bad(`${op}: options null`, 'ARGUMENT', [op, 'options'], (s) => call(s, null));
  bad(`${op}: scores beyond the memory limit`, 'MEMORY', [op, 'bytes'], (s) => {
    const long = tensor([1, 30000, 4], new Float32Array(120000));
    return call(s, { needWeights: true }, [long, long, long]);
  });
}

for (const [op, call] of [
  ['layerNorm', (s: Setting, t: unknown, weight?: unknown, eps?: unknown) => s.attn.layerNorm(wrong(t), wrong(weight), undefined, wrong(eps))],
  ['rmsNorm', (s: Setting, t: unknown, weight?: unknown, eps?: unknown) => s.attn.rmsNorm(wrong(t), wrong(weight), wrong(eps))],
] as const) {
  for (const value of [undefined, null, 5, new Float32Array(4), []] as unknown[])
    bad(`${op}: x ${Object.prototype.toString.call(value)}`, 'ARGUMENT', [op, 'x'], (s) => call(s, value));
  bad(`${op}: x of Float64Array`, 'DTYPE', [op, 'x'], (s) => call(s, withData(new Float64Array(24))));
  bad(`${op}: x of rank 0`, 'SHAPE', [op, 'x'], (s) => call(s, random(g, [])));
  bad(`${op}: weight of another width`, 'SHAPE', [op, 'weight', '8', '7'], (s) => call(s, x, random(g, [7])));
  bad(`${op}: weight of rank 2`, 'SHAPE', [op, 'weight'], (s) => call(s, x, random(g, [1, 8])));
  bad(`${op}: weight null`, 'ARGUMENT', [op, 'weight'], (s) => call(s, x, null));
  bad(`${op}: weight detached`, 'DETACHED', [op, 'weight'], (s) => call(s, x, withData(detached(new Float32Array(8)), [8])));
  for (const eps of [0, -0, -1e-5, NaN, Infinity, 1e-60, 1e39])
    bad(`${op}: eps ${Object.is(eps, -0) ? '-0' : eps}`, 'CONFIG', [op, 'eps'], (s) => call(s, x, undefined, eps));
  for (const eps of ['1e-5', null, true, 1n, random(g, [8])] as unknown[])
    bad(`${op}: eps ${Object.prototype.toString.call(eps)}`, 'ARGUMENT', [op, 'eps'], (s) => call(s, x, undefined, eps));
}
bad('layerNorm: bias of another width', 'SHAPE', ['bias', '8', '9'], (s) => s.attn.layerNorm(x, random(g, [8]), random(g, [9])));
bad('layerNorm: bias without weight, of another width', 'SHAPE', ['bias', '8', '9'], (s) => s.attn.layerNorm(x, undefined, random(g, [9])));
// C's %g, used by the native library, prints six digits, with an exponent if that is shorter.
for (const [eps, printed] of [
  [-2.5, '-2.5'],
  [-0.1, '-0.1'],
  [-0, '-0'],
  [-123456, '-123456'],
  [-1234567, '-1.23457e+06'],
  [-999999.5, '-1e+06'],
  [-0.0001, '-0.0001'],
  [-0.0000999999, '-9.99999e-05'],
  [-1e-45, '-1.4013e-45'],
  [-3.4e38, '-3.4e+38'],
] as const)
  bad(`layerNorm: eps in the message, ${printed}`, 'CONFIG', [`eps is ${printed},`], (s) => s.attn.layerNorm(x, undefined, undefined, eps));
bad('layerNorm: eps in place of the bias', 'ARGUMENT', ['bias'], (s) => s.attn.layerNorm(x, random(g, [8]), wrong(1e-5)));

for (const name of ['Relu', 'gelu_erf', 'geluTanh', '', 'toString', '__proto__', 'swish'])
  bad(`activation: '${name}'`, 'CONFIG', ['activation', 'name', 'relu', 'gelu_tanh', 'identity'], (s) => s.attn.activation(x, wrong(name)));
for (const name of [undefined, null, 0, true, ['relu'], Symbol('relu')] as unknown[])
  bad(`activation: name ${Object.prototype.toString.call(name)}`, 'ARGUMENT', ['activation', 'name'], (s) => s.attn.activation(x, wrong(name)));
bad('activation: x missing', 'ARGUMENT', ['activation', 'x'], (s) => s.attn.activation(wrong(undefined), 'relu'));
bad('activation: x of Int32Array', 'DTYPE', ['activation', 'x'], (s) => s.attn.activation(withData(new Int32Array(24)), 'relu'));
bad('activation: x of rank 9', 'SHAPE', ['activation', 'x', '9'], (s) => s.attn.activation(withDims([1, 1, 1, 1, 1, 1, 2, 3, 4]), 'relu'));

const sizes: Readonly<Record<string, readonly [op: string, call: (s: Setting, n: unknown) => unknown]>> = {
  'sinusoidalPositions: length': ['length', (s, n) => s.attn.sinusoidalPositions(wrong(n), 4)],
  'sinusoidalPositions: width': ['width', (s, n) => s.attn.sinusoidalPositions(4, wrong(n))],
  'alibiBias: numHeads': ['numHeads', (s, n) => s.attn.alibiBias(wrong(n), 4)],
  'alibiBias: length': ['length', (s, n) => s.attn.alibiBias(2, wrong(n))],
  'alibiBias: keyLength': ['keyLength', (s, n) => s.attn.alibiBias(2, 4, wrong(n))],
};
for (const [title, [argument, call]] of Object.entries(sizes)) {
  for (const value of [undefined, null, '4', 1.5, NaN, Infinity, -Infinity, 4n, {}, [4], true] as unknown[])
    if (value !== undefined || argument !== 'keyLength')
      bad(`${title} ${Object.prototype.toString.call(value)} ${String(value)}`, 'ARGUMENT', [argument], (s) => call(s, value));
  bad(`${title} negative`, argument === 'numHeads' ? 'CONFIG' : 'ARGUMENT', [argument, '-1'], (s) => call(s, -1));
  bad(`${title} past 2^53`, 'OUT_OF_RANGE', [argument], (s) => call(s, 2 ** 53));
  bad(`${title} beyond the memory limit`, 'MEMORY', [], (s) => call(s, 2 ** 31 - 1));
  bad(`${title} past 2^31`, ['MEMORY', 'ARGUMENT', 'OUT_OF_RANGE'], [], (s) => call(s, 2 ** 40));
}
bad('sinusoidalPositions: sizes past 2^31', 'ARGUMENT', ['length', '4294967296'], (s) => s.attn.sinusoidalPositions(2 ** 32, 2 ** 32));
bad('alibiBias: no heads', 'CONFIG', ['numHeads', '0'], (s) => s.attn.alibiBias(0, 4));
const rotary = (s: Setting, options?: unknown, t = random(g, [2, 2, 3, 4])) => s.attn.applyRotary(t, wrong(options));
bad('applyRotary: an odd width', 'SHAPE', ['x', 'even'], (s) => rotary(s, {}, random(g, [1, 2, 3, 5])));
bad('applyRotary: rank 1', 'SHAPE', ['x'], (s) => rotary(s, {}, random(g, [4])));
bad('applyRotary: rank 0', 'SHAPE', ['x'], (s) => rotary(s, {}, random(g, [])));
bad('applyRotary: x missing', 'ARGUMENT', ['x'], (s) => s.attn.applyRotary(wrong(undefined)));
for (const theta of [0, -10000, NaN, Infinity]) bad(`applyRotary: theta ${theta}`, 'CONFIG', ['theta'], (s) => rotary(s, { theta }));
for (const theta of ['10000', null, 1n, true] as unknown[])
  bad(`applyRotary: theta ${named(typeof theta === 'bigint' ? `${theta}n` : theta)}`, 'ARGUMENT', ['theta'], (s) => rotary(s, { theta }));
for (const offset of [1.5, NaN, '1', null, 1n] as unknown[])
  bad(`applyRotary: offset ${named(typeof offset === 'bigint' ? `${offset}n` : offset)}`, 'ARGUMENT', ['offset'], (s) => rotary(s, { offset }));
for (const offset of [2 ** 60, -(2 ** 60)]) bad(`applyRotary: offset ${offset}`, 'CONFIG', ['offset'], (s) => rotary(s, { offset }));
for (const interleaved of [1, 'no', null] as unknown[])
  bad(`applyRotary: interleaved ${named(interleaved)}`, 'ARGUMENT', ['interleaved'], (s) => rotary(s, { interleaved }));
for (const options of [5, null, 'interleaved', true, []] as unknown[])
  bad(`applyRotary: options ${named(options)}`, 'ARGUMENT', ['options'], (s) => rotary(s, options));
bad('applyRotary: an unknown option', 'ARGUMENT', ['Theta', 'Did you mean theta?'], (s) => rotary(s, { Theta: 1 }));

bad('scores beyond the memory limit', 'MEMORY', ['bytes'], (s) => {
  const long = tensor([1, 40000, 1], new Float32Array(40000));
  return s.attn.scaledDotProductAttention(long, long, long, { needWeights: true });
});
bad('weighted values beyond the memory limit', 'MEMORY', [], (s) => {
  const long = tensor([1, 1500, 512], new Float32Array(1500 * 512));
  return s.attn.scaledDotProductAttention(long, long, long, { trace: ['weighted_values'] });
});

catalogue.run('bad input');
