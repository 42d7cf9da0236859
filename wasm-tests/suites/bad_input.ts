/**
 * The catalogue of bad input: a call, the code it must give, words its message must hold. After each entry the instance still gives the right numbers
 * and the heap in use is where it was.
 */
import type { Attn, ErrorCode, Mask, MultiHeadAttention, Tensor } from 'attn';
import { assert } from 'chai';
import { assertIsError, assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { loadHere, settledHeap } from '../support/host.ts';
import { assertSameBits, random, tensor } from '../support/tensors.ts';

const g = new Generator(13);
const q = random(g, [2, 3, 4]);
const k = random(g, [2, 5, 4]);
const v = random(g, [2, 5, 6]);
const x = random(g, [2, 3, 8]);
const w = random(g, [5, 8]);

interface Setting {
  readonly attn: Attn;
  readonly mha: MultiHeadAttention;
  /** An instance of its own, for objects that belong elsewhere. */
  readonly other: Attn;
}

interface Entry {
  readonly name: string;
  readonly call: (s: Setting) => unknown;
  readonly code: ErrorCode | readonly ErrorCode[];
  readonly words?: readonly (string | RegExp)[];
}

const entries: Entry[] = [];
const bad = (name: string, code: Entry['code'], words: Entry['words'], call: Entry['call']) => void entries.push({ name, code, words, call });

/** A value where a typed one is due. */
const wrong = <T>(value: unknown): T => value as T;
const withData = (data: unknown, dims: readonly number[] = q.dims): Tensor => wrong({ data, dims });
const withDims = (dims: unknown, data: unknown = q.data): Tensor => wrong({ data, dims });
const sdpa = (s: Setting, options?: unknown) => s.attn.scaledDotProductAttention(q, k, v, wrong(options));
const masked = (s: Setting, mask: unknown) => sdpa(s, { mask });

// Shapes that disagree.
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
bad('query heads no multiple with enableGqa', 'SHAPE', ['3', '2'], (s) =>
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

// Dims that are no dims.
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

// Tensors that are no tensors.
for (const value of [undefined, null, 5, 'tensor', [], [[1, 2]], new Float32Array(24), () => 1, Symbol('t')] as unknown[]) {
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
const detached = () => {
  const data = new Float32Array(24);
  structuredClone(data.buffer, { transfer: [data.buffer] });
  return data;
};
bad('detached data', 'DETACHED', ['query'], (s) => s.attn.scaledDotProductAttention(withData(detached()), k, v));
bad('detached mask', 'DETACHED', ['mask'], (s) => {
  const data = new Uint8Array(15);
  structuredClone(data.buffer, { transfer: [data.buffer] });
  return masked(s, { kind: 'attend', data, dims: [3, 5] });
});
bad('an array shrunk under its view', ['DETACHED', 'SHAPE'], ['query'], (s) => {
  const resizable = Reflect.construct(ArrayBuffer, [96, { maxByteLength: 192 }]) as ArrayBuffer & { resize?(n: number): void };
  const data = new Float32Array(resizable, 0, 24);
  // An engine without resizable buffers detaches instead: the same to the callee.
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

// Masks.
const maskOf = (dims: readonly number[], kind: unknown = 'attend', data: unknown = new Uint8Array(dims.reduce((a, b) => a * b, 1)).fill(1)) => ({
  kind,
  dims,
  data,
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

// Options: the wrong kind of value is ARGUMENT, the right kind out of its range CONFIG.
for (const value of [5, 'causal', true, null, Symbol('o'), () => 1] as unknown[])
  bad(`options: ${String(value)}`, 'ARGUMENT', ['options'], (s) => sdpa(s, value));
const named = (value: unknown) => (typeof value === 'object' ? JSON.stringify(value) : `${String(value)} (${typeof value})`);
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
bad('dropout is not there yet', ['ARGUMENT', 'UNSUPPORTED'], ['dropout'], (s) => sdpa(s, { dropout: 0.5 }));

// Construction.
const construct = (s: Setting, options: unknown) => new s.attn.MultiHeadAttention(wrong(options));
bad('no options', 'ARGUMENT', ['options'], (s) => construct(s, undefined));
bad('null options', 'ARGUMENT', ['options'], (s) => construct(s, null));
bad('a number for options', 'ARGUMENT', ['options'], (s) => construct(s, 8));
bad('embedDim no multiple of numHeads', 'CONFIG', ['embedDim', 'numHeads', '10', '4'], (s) => construct(s, { embedDim: 10, numHeads: 4 }));
for (const [name, values] of Object.entries<readonly unknown[]>({
  embedDim: [undefined, null, '8', 8.5, NaN, 8n, {}],
  numHeads: [undefined, '2', 1.5, NaN, Infinity],
  kdim: ['4', 4.5, NaN, null],
  vdim: [NaN, '4', null],
}))
  for (const value of values)
    bad(`${name}: ${String(value)} (${typeof value})`, 'ARGUMENT', [name], (s) => construct(s, { embedDim: 8, numHeads: 2, [name]: value }));
for (const name of ['embedDim', 'numHeads', 'kdim', 'vdim'])
  for (const value of [0, -8])
    bad(`${name}: ${value}`, ['CONFIG', 'ARGUMENT'], [name], (s) => construct(s, { embedDim: 8, numHeads: 2, [name]: value }));
bad('embedDim past every memory', ['MEMORY', 'CONFIG', 'ARGUMENT'], [], (s) => construct(s, { embedDim: 2 ** 30, numHeads: 2 }));
bad('embedDim whose square is 0 in 32 bits', ['MEMORY', 'CONFIG'], [], (s) => construct(s, { embedDim: 65536, numHeads: 2 }));
for (const [name, values] of Object.entries<readonly unknown[]>({
  bias: [1, 'true', null],
  outProj: [0, 'false', null],
  scale: ['1', NaN, null, Infinity],
}))
  for (const value of values)
    bad(`${name}: ${String(value)} (${typeof value})`, ['ARGUMENT', 'CONFIG'], [name], (s) =>
      construct(s, { embedDim: 8, numHeads: 2, [name]: value }),
    );
for (const name of ['dropout', 'addBiasKv', 'addZeroAttn', 'numKeyValueHeads', 'headDim', 'embed_dim', 'nhead'])
  bad(`construction with ${name}`, ['ARGUMENT', 'UNSUPPORTED', 'CONFIG'], [name], (s) => construct(s, { embedDim: 8, numHeads: 2, [name]: 1 }));

// Modules.
for (const state of [undefined, null, 5, 'state', [1], () => 1] as unknown[])
  bad(`loadStateDict: ${JSON.stringify(state) ?? typeof state}`, ['ARGUMENT', 'MISMATCH'], [], (s) => s.mha.loadStateDict(wrong(state)));
bad('loadStateDict: an entry that is no tensor', ['ARGUMENT', 'DTYPE'], ['in_proj_weight'], (s) =>
  s.mha.loadStateDict({ ...Object.fromEntries(s.mha.stateDict()), in_proj_weight: wrong([1, 2]) }),
);
bad('loadStateDict: an entry of Float64Array', 'DTYPE', ['in_proj_bias'], (s) =>
  s.mha.loadStateDict({ ...Object.fromEntries(s.mha.stateDict()), in_proj_bias: withData(new Float64Array(24), [24]) }),
);
bad('loadStateDict: data of another length', ['SHAPE', 'MISMATCH'], ['in_proj_bias'], (s) =>
  s.mha.loadStateDict({ ...Object.fromEntries(s.mha.stateDict()), in_proj_bias: withData(new Float32Array(23), [24]) }),
);
bad('loadStateDict: a detached entry', 'DETACHED', ['in_proj_bias'], (s) =>
  s.mha.loadStateDict({ ...Object.fromEntries(s.mha.stateDict()), in_proj_bias: withData(detached(), [24]) }),
);
bad('loadStateDict: packed and separate at once', 'MISMATCH', ['in_proj_weight'], (s) =>
  s.mha.loadStateDict({ ...Object.fromEntries(s.mha.stateDict()), 'q_proj.weight': random(g, [8, 8]) }),
);
for (const [name, value] of Object.entries<unknown>({ 'a Set': new Set(['x']), 'a Promise': Promise.resolve(), 'a URL': new URL('file:///x') })) {
  bad(`loadStateDict, not strict: ${name}`, 'ARGUMENT', ['state'], (s) => s.mha.loadStateDict(wrong(value), { strict: false }));
  bad(`options: ${name}`, 'ARGUMENT', ['options'], (s) => sdpa(s, value));
}
bad('options: a Map', 'ARGUMENT', ['options'], (s) => sdpa(s, new Map([['isCausal', true]])));
bad('an additive mask by the name of attend', 'MASK', ['mask', 'additive'], (s) =>
  masked(s, { kind: 'attend', data: Float32Array.of(0, -Infinity, 0, 0, 0), dims: [5] }),
);
bad('initialize: a std whose weights would be infinite', 'CONFIG', ['std'], (s) => s.mha.initialize({ scheme: 'normal', std: 1e38 }));
bad('loadStateDict: a Map whose keys are numbers', ['ARGUMENT', 'MISMATCH'], [], (s) => s.mha.loadStateDict(wrong(new Map([[1, random(g, [1])]]))));
bad("loadStateDict: strict 'no'", 'ARGUMENT', ['strict'], (s) => s.mha.loadStateDict(s.mha.stateDict(), wrong({ strict: 'no' })));
bad('loadStateDict: every name is extra', 'MISMATCH', ['a', 'b'], (s) => s.mha.loadStateDict({ a: random(g, [1]), b: random(g, [1]) }));
bad('initialize: unknown scheme', ['ARGUMENT', 'CONFIG'], ['scheme', 'orthogonal', 'xavier_uniform'], (s) =>
  s.mha.initialize(wrong({ scheme: 'orthogonal' })),
);
for (const seed of [-1, 1.5, NaN, '1', 2 ** 53, null, 1n, Infinity] as unknown[])
  bad(`initialize: seed ${named(seed)}`, typeof seed === 'number' && Number.isInteger(seed) ? 'CONFIG' : 'ARGUMENT', ['seed'], (s) =>
    s.mha.initialize(wrong({ seed })),
  );
for (const std of [-1, NaN, '0.1', Infinity, null] as unknown[])
  bad(`initialize: std ${String(std)} (${typeof std})`, ['ARGUMENT', 'CONFIG'], ['std'], (s) => s.mha.initialize(wrong({ scheme: 'normal', std })));
bad('a method taken off its object', ['ARGUMENT', 'WRONG_INSTANCE', 'DISPOSED'], [], (s) => s.mha.forward.call(wrong({}), x));
bad("another instance's module type over this one's object", 'WRONG_INSTANCE', [], (s) => {
  const foreign = new s.other.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
  try {
    return Object.getPrototypeOf(s.mha).forward.call(foreign, x);
  } finally {
    foreign.dispose();
  }
});

// Disposal while arguments are read.
bad('a getter that disposes the module in use', ['BUSY', 'DISPOSED'], [], (s) => {
  const own = new s.attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
  try {
    return own.forward(x, undefined, undefined, {
      get isCausal() {
        own.dispose();
        return false;
      },
    });
  } finally {
    own.dispose();
  }
});

// Sizes.
bad('scores past the memory', 'MEMORY', ['bytes'], (s) => {
  const long = tensor([1, 40000, 1], new Float32Array(40000));
  return s.attn.scaledDotProductAttention(long, long, long, { needWeights: true });
});
bad('weighted values past the memory', 'MEMORY', [], (s) => {
  const long = tensor([1, 1500, 512], new Float32Array(1500 * 512));
  return s.attn.scaledDotProductAttention(long, long, long, { trace: ['weighted_values'] });
});

// safetensors.
const file = (header: string, data = 0) => {
  const text = new TextEncoder().encode(header);
  const out = new Uint8Array(8 + text.length + data);
  new DataView(out.buffer).setBigUint64(0, BigInt(text.length), true);
  out.set(text, 8);
  return out;
};
const one = (entry: string, data = 8) => file(`{"a":${entry}}`, data);
for (const value of [undefined, null, 'text', 5, [], {}, new Float32Array(4)] as unknown[])
  bad(`parseSafetensors: ${Object.prototype.toString.call(value)}`, ['ARGUMENT', 'DTYPE'], ['bytes'], (s) => s.attn.parseSafetensors(wrong(value)));
bad('parseSafetensors: HTML', 'FORMAT', ['HTML'], (s) => s.attn.parseSafetensors(new TextEncoder().encode('<!doctype html><html></html>')));
bad('parseSafetensors: an LFS pointer', 'FORMAT', ['LFS'], (s) =>
  s.attn.parseSafetensors(new TextEncoder().encode('version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n')),
);
bad('parseSafetensors: no bytes', 'FORMAT', [], (s) => s.attn.parseSafetensors(new Uint8Array(0)));
bad('parseSafetensors: seven bytes', 'FORMAT', ['7'], (s) => s.attn.parseSafetensors(new Uint8Array(7)));
bad('parseSafetensors: a header longer than the file', 'FORMAT', ['header'], (s) => s.attn.parseSafetensors(file('{}').subarray(0, 9)));
bad('parseSafetensors: a header that is no JSON', 'FORMAT', [], (s) => s.attn.parseSafetensors(file('{"a":')));
bad('parseSafetensors: a header that is no object', 'FORMAT', [], (s) => s.attn.parseSafetensors(file('[1]')));
bad('parseSafetensors: offsets past the end', 'FORMAT', ['a'], (s) =>
  s.attn.parseSafetensors(one('{"dtype":"F32","shape":[2],"data_offsets":[0,8]}', 4)),
);
bad('parseSafetensors: bytes that no shape fits', 'FORMAT', ['a'], (s) =>
  s.attn.parseSafetensors(one('{"dtype":"F32","shape":[3],"data_offsets":[0,8]}')),
);
bad('parseSafetensors: reversed offsets', 'FORMAT', ['a'], (s) => s.attn.parseSafetensors(one('{"dtype":"F32","shape":[2],"data_offsets":[8,0]}')));
bad('parseSafetensors: a shape whose product overflows', 'FORMAT', ['a'], (s) =>
  s.attn.parseSafetensors(one('{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}', 0)),
);
bad('parseSafetensors: an unknown type', ['FORMAT', 'UNSUPPORTED'], ['F8'], (s) =>
  s.attn.parseSafetensors(one('{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}')),
);
bad('parseSafetensors: detached bytes', 'DETACHED', ['bytes'], (s) => {
  const bytes = one('{"dtype":"F32","shape":[2],"data_offsets":[0,8]}');
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  return s.attn.parseSafetensors(bytes);
});

describe('bad input', () => {
  let s: Setting;
  let expected: { plain: Tensor; module: Tensor };
  let used: number;
  before(async () => {
    const [attn, other] = [await loadHere({ maximumMemory: 2 ** 28 }), await loadHere()];
    s = { attn, other, mha: new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 }) };
    expected = { plain: attn.scaledDotProductAttention(q, k, v).output, module: s.mha.forward(x).output };
    used = settledHeap(attn);
  });
  after(() => {
    s.attn.dispose();
    s.other.dispose();
  });

  for (const { name, call, code, words } of entries)
    it(`${name}: ${typeof code === 'string' ? code : code.join(' or ')}`, () => {
      assertThrows(() => call(s), code, words);
      assertSameBits(s.attn.scaledDotProductAttention(q, k, v).output, expected.plain, 'afterwards, attention');
      assertSameBits(s.mha.forward(x).output, expected.module, 'afterwards, the module');
      assert.equal(s.attn.info.heap.used, used, 'heap in use afterwards');
    });

  it('the detail names the op, the argument, what was expected and what came', () => {
    const { detail } = assertThrows(() => s.attn.linear(x, random(g, [5, 7])), 'SHAPE');
    assert.equal(detail.op, 'linear');
    assert.isString(detail.argument);
    assert.property(detail, 'expected');
    assert.property(detail, 'got');
    const jsSide = assertThrows(() => s.attn.scaledDotProductAttention(withData(new Float32Array(25)), k, v), 'SHAPE').detail;
    assert.match(String(jsSide.argument), /^query\b/);
    assert.property(jsSide, 'expected');
    assert.property(jsSide, 'got');
  });
});

describe('odd but good input', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());
  const same = (a: Tensor, b = attn.scaledDotProductAttention(q, k, v).output) => assertSameBits(a, b);

  it('shared memory is copied first', () => {
    // Without isolation pages have no SharedArrayBuffer by name; a shared WebAssembly memory gives one all the same.
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const shared = new Float32Array(memory.buffer, 64, 24);
    shared.set(q.data);
    same(attn.scaledDotProductAttention({ data: shared, dims: q.dims } as unknown as Tensor, k, v).output);
  });

  it('properties that hide an array\'s own are not asked', () => {
    const shadowed = random(g, [3, 700]);
    const right = attn.softmax({ data: shadowed.data.slice(), dims: shadowed.dims });
    for (const [name, value] of Object.entries({ BYTES_PER_ELEMENT: 1, length: 8, byteOffset: 4, buffer: new ArrayBuffer(8) }))
      Object.defineProperty(shadowed.data, name, { value });
    assertSameBits(attn.softmax(shadowed), right);
  });

  it('options are read once, proxies and getters included', () => {
    const reads = new Map<PropertyKey, number>();
    const options = new Proxy({ isCausal: true, needWeights: true, trace: ['scores'] } as Record<PropertyKey, unknown>, {
      get(target, key) {
        reads.set(key, (reads.get(key) ?? 0) + 1);
        return target[key];
      },
    });
    const r = attn.scaledDotProductAttention(q, k, v, options as never);
    same(r.output, attn.scaledDotProductAttention(q, k, v, { isCausal: true }).output);
    for (const [key, count] of reads) assert.equal(count, 1, String(key));
  });

  it('tensors are read once too', () => {
    let reads = 0;
    const shifty = {
      dims: q.dims,
      get data() {
        return reads++ === 0 ? q.data : new Float32Array(1);
      },
    };
    same(attn.scaledDotProductAttention(shifty, k, v).output);
  });

  it('a getter may use the instance: BUSY, or the right result', () => {
    let inner: Tensor | undefined;
    const options = {
      get isCausal() {
        inner = attn.scaledDotProductAttention(k, q, random(g, [2, 3, 2])).output;
        return false;
      },
    };
    try {
      same(attn.scaledDotProductAttention(q, k, v, options).output);
      assert.deepEqual([...inner!.dims], [2, 5, 2]);
    } catch (error) {
      assertIsError(error, 'BUSY');
    }
    same(attn.scaledDotProductAttention(q, k, v).output);
  });

  it('frozen objects, null prototypes and undefined options are fine', () => {
    const bare = Object.assign(Object.create(null), { data: q.data, dims: Object.freeze([...q.dims]) }) as Tensor;
    same(attn.scaledDotProductAttention(Object.freeze(bare), k, v, Object.freeze({ mask: undefined, scale: undefined, isCausal: undefined })).output);
    same(attn.scaledDotProductAttention(q, k, v, undefined).output);
  });

  it('a resizable buffer that grew', () => {
    const buffer = Reflect.construct(ArrayBuffer, [96, { maxByteLength: 192 }]) as ArrayBuffer & { resize?(n: number): void };
    const data = new Float32Array(buffer, 0, 24);
    data.set(q.data);
    buffer.resize?.(160);
    same(attn.scaledDotProductAttention({ data, dims: q.dims }, k, v).output);
  });

  it('dims of a result may be changed by the caller, or refuse it: never in a later result', () => {
    const r = attn.scaledDotProductAttention(q, k, v);
    try {
      (r.output.dims as number[])[0] = 99;
    } catch {
      // Frozen is fine too.
    }
    assert.deepEqual([...attn.scaledDotProductAttention(q, k, v).output.dims], [2, 3, 6]);
  });
});
