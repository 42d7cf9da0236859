/** Bad input of layers: construction, state, forward, disposal, objects of another instance. */
import type { Attn, Module, Tensor } from 'attn';
import { assert } from 'chai';
import { Catalogue, detached, encoderOptions, k, maskOf, named, q, type Setting, v, withData, withDims, wrong, x } from '../support/catalogue.ts';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { disposeSymbol, loadHere } from '../support/host.ts';
import { random, tensor } from '../support/tensors.ts';

const g = new Generator(16);
const catalogue = new Catalogue();
const { bad } = catalogue;

type ClassName = 'MultiHeadAttention' | 'TransformerEncoderLayer' | 'TransformerEncoder' | 'TransformerClassifier' | 'Embedding';
const construct = (s: Setting | Attn, name: ClassName, options: unknown): Module => new ('attn' in s ? s.attn : s)[name](wrong(options));
const good: Readonly<Record<ClassName, Readonly<Record<string, unknown>>>> = {
  MultiHeadAttention: { embedDim: 8, numHeads: 4 },
  TransformerEncoderLayer: encoderOptions,
  TransformerEncoder: { ...encoderOptions, numLayers: 2 },
  TransformerClassifier: { ...encoderOptions, numLayers: 1, numClasses: 3 },
  Embedding: { numEmbeddings: 6, embeddingDim: 4 },
};
const classNames = Object.keys(good) as ClassName[];
const required: Readonly<Record<ClassName, readonly string[]>> = {
  MultiHeadAttention: ['embedDim', 'numHeads'],
  TransformerEncoderLayer: ['dModel', 'nhead'],
  TransformerEncoder: ['dModel', 'nhead', 'numLayers'],
  TransformerClassifier: ['dModel', 'nhead', 'numLayers', 'numClasses'],
  Embedding: ['numEmbeddings', 'embeddingDim'],
};
const sizes: Readonly<Record<ClassName, readonly string[]>> = {
  MultiHeadAttention: [...required.MultiHeadAttention, 'numKeyValueHeads', 'kdim', 'vdim', 'headDim', 'valueHeadDim'],
  TransformerEncoderLayer: [...required.TransformerEncoderLayer, 'dimFeedforward', 'numKeyValueHeads'],
  TransformerEncoder: [...required.TransformerEncoder, 'dimFeedforward', 'numKeyValueHeads'],
  TransformerClassifier: [...required.TransformerClassifier, 'dimFeedforward', 'numKeyValueHeads'],
  Embedding: required.Embedding,
};
const encoders = ['TransformerEncoderLayer', 'TransformerEncoder', 'TransformerClassifier'] as const;
for (const name of classNames) {
  for (const value of [undefined, null, 8, 'options', [8, 2], true, () => 1, new Map([['embedDim', 8]])] as unknown[])
    bad(`${name}: options ${Object.prototype.toString.call(value)}`, 'ARGUMENT', [name, 'options'], (s) => construct(s, name, value));
  for (const member of required[name])
    bad(`${name}: no ${member}`, 'ARGUMENT', [name, member], (s) => construct(s, name, { ...good[name], [member]: undefined }));
  for (const member of sizes[name]) {
    for (const value of [null, '8', 8.5, NaN, Infinity, 8n, {}, true] as unknown[])
      bad(`${name}: ${member} ${named(value)}`, 'ARGUMENT', [name, member], (s) => construct(s, name, { ...good[name], [member]: value }));
    for (const value of [0, -8, 2 ** 31, 2 ** 53])
      bad(`${name}: ${member} ${value}`, 'CONFIG', [name, member], (s) => construct(s, name, { ...good[name], [member]: value }));
  }
  for (const member of ['device', 'dtype', 'batch_first', 'batchFirst'])
    bad(`${name}: unknown ${member}`, 'ARGUMENT', [name, member], (s) => construct(s, name, { ...good[name], [member]: true }));
}
for (const [name, given, meant] of [
  ['MultiHeadAttention', 'embed_dim', 'embedDim'],
  ['MultiHeadAttention', 'num_kv_heads', 'numHeads'],
  ['MultiHeadAttention', 'addBiasKV', 'addBiasKv'],
  ['TransformerEncoderLayer', 'd_model', 'dModel'],
  ['TransformerEncoderLayer', 'nHead', 'nhead'],
  ['TransformerEncoder', 'num_layers', 'numLayers'],
  ['TransformerEncoder', 'layer_norm_eps', 'layerNormEps'],
  ['TransformerClassifier', 'numClases', 'numClasses'],
  ['Embedding', 'padding_idx', 'paddingIdx'],
] as const)
  bad(`${name}: ${given} for ${meant}`, 'ARGUMENT', [given, 'Did you mean'], (s) => construct(s, name, { ...good[name], [given]: 1 }));
for (const [names, flags] of [
  [['MultiHeadAttention'], ['bias', 'addBiasKv', 'addZeroAttn', 'outProj']],
  [encoders, ['normFirst', 'bias', 'gated']],
  [['TransformerEncoder', 'TransformerClassifier'], ['finalNorm']],
] as const)
  for (const name of names)
    for (const flag of flags)
      for (const value of [1, 'true', null] as unknown[])
        bad(`${name}: ${flag} ${named(value)}`, 'ARGUMENT', [name, flag, 'true or false'], (s) =>
          construct(s, name, { ...good[name], [flag]: value }),
        );
for (const [names, member, kinds, ranges] of [
  [['MultiHeadAttention', ...encoders], 'dropout', ['0.1', null, {}, true], [1, 1.5, -0.1, NaN, Infinity, 1 - 1e-12]],
  [['MultiHeadAttention'], 'scale', ['1', null, true], [NaN, Infinity, -Infinity, 1e39]],
  [encoders, 'layerNormEps', ['1e-5', null], [0, -1e-5, NaN, Infinity, 1e-60]],
  [encoders, 'activation', [0, null, ['relu'], true], ['Relu', 'swish', 'gelu_new', '', 'constructor']],
  [encoders, 'norm', [0, null, true], ['layerNorm', 'batch_norm', '__proto__']],
  [['TransformerClassifier'], 'pooling', [0, null, true], ['average', 'CLS', 'last']],
  [['Embedding'], 'paddingIdx', ['0', null, 0.5, NaN], [-1, 6, 2 ** 31]],
  [encoders, 'softcap', ['2', null, {}, true], [-1, NaN, Infinity, -Infinity, 1e39, 1e-40, 1e-60]],
  [
    encoders,
    'window',
    [5, null, 'x', {}, [1], [1, 2, 3], [1, '2'], [0.5, 1], [1, , 2]],
    [
      [-2, 0],
      [0, -2],
      [2 ** 53, 0],
    ],
  ],
  [
    ['MultiHeadAttention', ...encoders],
    'rotary',
    [5, null, 'rotary', true, [10000], { base: 10000 }, { theta: '1' }, { interleaved: 1 }, { offset: 0.5 }, { offset: null }],
    [{ theta: 0 }, { theta: -10000 }, { theta: NaN }, { theta: Infinity }, { offset: 2 ** 53 }, { offset: -(2 ** 60) }],
  ],
] as const)
  for (const name of names) {
    for (const value of kinds)
      bad(`${name}: ${member} ${named(value)}`, 'ARGUMENT', [name, member], (s) => construct(s, name, { ...good[name], [member]: value }));
    for (const value of ranges)
      bad(`${name}: ${member} ${named(value)}, out of range`, 'CONFIG', [name, member], (s) =>
        construct(s, name, { ...good[name], [member]: value }),
      );
  }
bad('embedDim not a multiple of numHeads', 'CONFIG', ['embedDim', 'numHeads', '10', '4'], (s) =>
  construct(s, 'MultiHeadAttention', { embedDim: 10, numHeads: 4 }),
);
bad('numHeads not a multiple of numKeyValueHeads', 'CONFIG', ['numHeads', 'numKeyValueHeads', '4', '3'], (s) =>
  construct(s, 'MultiHeadAttention', { embedDim: 8, numHeads: 4, numKeyValueHeads: 3 }),
);
bad('MultiHeadAttention: rotary heads of an odd width', 'CONFIG', ['rotary', 'even', '3'], (s) =>
  construct(s, 'MultiHeadAttention', { embedDim: 9, numHeads: 3, rotary: {} }),
);
for (const name of encoders) {
  bad(`${name}: rotary heads of an odd width`, 'CONFIG', [name, 'rotary', 'even', '1'], (s) =>
    construct(s, name, { ...good[name], nhead: 8, rotary: {} }),
  );
  bad(`${name}: nhead not a multiple of numKeyValueHeads`, 'CONFIG', [name, 'nhead', 'numKeyValueHeads', '4', '3'], (s) =>
    construct(s, name, { ...good[name], nhead: 4, numKeyValueHeads: 3 }),
  );
  bad(`${name}: rotary.teta for theta`, 'ARGUMENT', ['rotary.teta', 'Did you mean theta?'], (s) =>
    construct(s, name, { ...good[name], rotary: { teta: 1 } }),
  );
}
for (const name of encoders)
  bad(`${name}: dModel not a multiple of nhead`, 'CONFIG', ['dModel', 'nhead', '8', '3'], (s) => construct(s, name, { ...good[name], nhead: 3 }));
for (const [name, huge] of [
  ['MultiHeadAttention', { embedDim: 2 ** 30, numHeads: 2 }],
  ['MultiHeadAttention', { embedDim: 65536, numHeads: 2 }],
  ['MultiHeadAttention', { embedDim: 8, numHeads: 4, kdim: 2 ** 30 }],
  ['TransformerEncoderLayer', { ...encoderOptions, dimFeedforward: 2 ** 30 }],
  ['TransformerEncoder', { ...encoderOptions, numLayers: 1_000_000 }],
  ['TransformerEncoder', { ...encoderOptions, dModel: 65536, numLayers: 1 }],
  ['TransformerClassifier', { ...encoderOptions, numLayers: 1, numClasses: 2 ** 30 }],
  ['Embedding', { numEmbeddings: 2 ** 30, embeddingDim: 4 }],
  ['Embedding', { numEmbeddings: 65536, embeddingDim: 65536 }],
] as const)
  bad(`${name}: ${JSON.stringify(huge)}, beyond the memory limit`, ['MEMORY', 'CONFIG'], [name], (s) => construct(s, name, huge));
bad('MultiHeadAttention: heads whose widths multiply past 2^31', 'CONFIG', ['headDim'], (s) =>
  construct(s, 'MultiHeadAttention', { embedDim: 8, numHeads: 65536, headDim: 65536 }),
);

const layers: Readonly<Record<ClassName, readonly [get: (s: Setting) => Module, parameter: string, dims: readonly number[]]>> = {
  MultiHeadAttention: [(s) => s.mha, 'in_proj_bias', [24]],
  TransformerEncoderLayer: [(s) => s.layer, 'norm1.weight', [8]],
  TransformerEncoder: [(s) => s.encoder, 'layers.1.linear1.bias', [12]],
  TransformerClassifier: [(s) => s.classifier, 'classifier.weight', [3, 8]],
  Embedding: [(s) => s.embedding, 'weight', [6, 4]],
};
for (const [name, [get, parameter, dims]] of Object.entries(layers)) {
  const count = dims.reduce((a, b) => a * b, 1);
  const load = (s: Setting, change: object, options?: unknown) =>
    get(s).loadStateDict({ ...Object.fromEntries(get(s).stateDict()), ...change }, wrong(options));
  for (const state of [
    undefined,
    null,
    5,
    'state',
    [1],
    () => 1,
    new Set(['x']),
    Promise.resolve(),
    new URL('file:///x'),
    new Float32Array(3),
  ] as unknown[]) {
    const kind = Object.prototype.toString.call(state);
    bad(`${name}: loadStateDict ${kind}`, 'ARGUMENT', ['loadStateDict', 'state'], (s) => get(s).loadStateDict(wrong(state)));
    bad(`${name}: loadStateDict ${kind}, not strict`, 'ARGUMENT', ['state'], (s) => get(s).loadStateDict(wrong(state), { strict: false }));
  }
  for (const entry of [[1, 2], 5, null, undefined] as unknown[])
    bad(`${name}: ${parameter} ${named(entry)}`, 'ARGUMENT', [parameter], (s) => load(s, { [parameter]: entry }));
  bad(`${name}: ${parameter} of Float64Array`, 'DTYPE', [parameter], (s) => load(s, { [parameter]: withData(new Float64Array(count), dims) }));
  bad(`${name}: ${parameter} too short for its dims`, 'SHAPE', [parameter, String(count)], (s) =>
    load(s, { [parameter]: withData(new Float32Array(count - 1), dims) }),
  );
  bad(`${name}: ${parameter} detached`, 'DETACHED', [parameter], (s) => load(s, { [parameter]: withData(detached(new Float32Array(count)), dims) }));
  bad(`${name}: ${parameter} of fractional dims`, 'ARGUMENT', [parameter, 'dims'], (s) =>
    load(s, { [parameter]: withDims([0.5, 2 * count], new Float32Array(count)) }),
  );
  bad(`${name}: an empty state`, 'MISMATCH', ['loadStateDict', 'missing', parameter], (s) => get(s).loadStateDict({}));
  bad(`${name}: mis-shaped and unexpected at once`, 'MISMATCH', ['surplus', parameter, `(${dims})`, `(${[...dims, 1]})`], (s) =>
    load(s, { [parameter]: random(g, [...dims, 1]), surplus: random(g, [1]) }),
  );
  bad(`${name}: a wrong shape, not strict`, 'MISMATCH', [parameter], (s) =>
    get(s).loadStateDict({ [parameter]: random(g, [...dims, 1]) }, { strict: false }),
  );
  bad(`${name}: a Map whose keys are numbers`, 'ARGUMENT', ['state'], (s) => get(s).loadStateDict(wrong(new Map([[1, random(g, [1])]]))));
  bad(`${name}: strict 'no'`, 'ARGUMENT', ['strict'], (s) => load(s, {}, { strict: 'no' }));
  bad(`${name}: an unknown option of loadStateDict`, 'ARGUMENT', ['Strict', 'Did you mean strict?'], (s) => load(s, {}, { Strict: true }));
  for (const options of [5, null, 'torch', true] as unknown[])
    for (const method of ['initialize', 'train'] as const)
      bad(`${name}: ${method} ${named(options)}`, 'ARGUMENT', [method, 'options'], (s) => get(s)[method](wrong(options)));
  bad(`${name}: initialize with an unknown scheme`, 'CONFIG', ['scheme', 'orthogonal', 'xavier_uniform'], (s) =>
    get(s).initialize(wrong({ scheme: 'orthogonal' })),
  );
  for (const method of ['initialize', 'train'] as const) {
    for (const seed of [1.5, NaN, '1', null, 1n, Infinity, {}] as unknown[])
      bad(`${name}: ${method}, seed ${typeof seed === 'bigint' ? '1n' : named(seed)}`, 'ARGUMENT', [method, 'seed'], (s) =>
        get(s)[method](wrong({ seed })),
      );
    for (const seed of [-1, 2 ** 53]) bad(`${name}: ${method}, seed ${seed}`, 'CONFIG', [method, 'seed'], (s) => get(s)[method]({ seed }));
    bad(`${name}: ${method}, sed for seed`, 'ARGUMENT', ['sed', 'Did you mean seed?'], (s) => get(s)[method](wrong({ sed: 1 })));
  }
  for (const std of ['0.1', null, true] as unknown[])
    bad(`${name}: std ${named(std)}`, 'ARGUMENT', ['initialize', 'std'], (s) => get(s).initialize(wrong({ scheme: 'normal', std })));
  for (const std of [-1, NaN, Infinity, 1e38])
    bad(`${name}: std ${std}, out of range`, 'CONFIG', ['std'], (s) => get(s).initialize({ scheme: 'normal', std }));

  for (const self of [undefined, null, {}, 5, Object.create(null)] as unknown[])
    bad(
      `${name}: forward of ${Object.prototype.toString.call(self)} ${named(self)} ${self && Object.getPrototypeOf(self) === null ? 'bare' : ''}`,
      'WRONG_INSTANCE',
      [name],
      (s) => wrong<{ forward: { call(self: unknown, x: Tensor): unknown } }>(get(s)).forward.call(self, x),
    );
  for (const method of ['forward', 'stateDict', 'train', 'eval', 'parameterShapes'])
    bad(
      `${name}: ${method} of another instance's object`,
      'WRONG_INSTANCE',
      [`expected ${name === 'Embedding' ? 'an' : 'a'} ${name} of this instance`],
      (s) => {
        const foreign = construct(s.other, name as ClassName, good[name as ClassName]);
        try {
          return wrong<Record<string, (x: Tensor) => unknown>>(Object.getPrototypeOf(get(s)))[method].call(foreign, x);
        } finally {
          foreign.dispose();
        }
      },
    );
  const next = classNames[(classNames.indexOf(name as ClassName) + 1) % classNames.length];
  bad(`${name}: forward of a ${next}`, 'WRONG_INSTANCE', [name], (s) =>
    wrong<{ forward: { call(self: unknown, x: Tensor): unknown } }>(get(s)).forward.call(layers[next][0](s), x),
  );
  for (const method of ['forward', 'loadStateDict', 'stateDict', 'initialize', 'parameterShapes', 'train', 'eval'])
    bad(`${name}: ${method} after dispose`, 'DISPOSED', [], (s) => {
      const own = construct(s, name as ClassName, good[name as ClassName]);
      own.dispose();
      own.dispose();
      own[disposeSymbol]();
      return wrong<Record<string, (x: unknown) => unknown>>(own)[method](x);
    });
  bad(`${name}: parameterCount after dispose`, 'DISPOSED', [], (s) => {
    const own = construct(s, name as ClassName, good[name as ClassName]);
    own.dispose();
    return own.parameterCount;
  });
  bad(`${name}: a state whose getter disposes the layer`, 'DISPOSED', [], (s) => {
    const own = construct(s, name as ClassName, good[name as ClassName]);
    const state = own.stateDict();
    return void own.loadStateDict({
      ...Object.fromEntries(state),
      get [parameter]() {
        own.dispose();
        return state.get(parameter)!;
      },
    });
  });
  bad(`${name}: an input whose getter disposes the layer`, 'DISPOSED', [], (s) => {
    const own = construct(s, name as ClassName, good[name as ClassName]);
    const disposing = (dims: readonly number[]) => {
      own.dispose();
      return dims;
    };
    const { forward } = wrong<Record<string, (...args: unknown[]) => unknown>>(own);
    if (name === 'Embedding') return forward.call(own, [1, 2], Object.defineProperty([2], 0, { get: () => disposing([2])[0] }));
    return forward.call(own, Object.defineProperty({ data: x.data }, 'dims', { get: () => disposing(x.dims), enumerable: true }));
  });
}
for (const name of ['nearest', 'similarity', 'analogy'] as const)
  bad(`Embedding: ${name} after dispose`, 'DISPOSED', [], (s) => {
    const own = new s.attn.Embedding({ numEmbeddings: 6, embeddingDim: 4 });
    own.dispose();
    return own[name](0, 1, 2, 3);
  });
bad('loadStateDict: packed and separate at once', 'MISMATCH', ['in_proj_weight'], (s) =>
  s.mha.loadStateDict({ ...Object.fromEntries(s.mha.stateDict()), 'q_proj.weight': random(g, [8, 8]) }),
);

bad('MultiHeadAttention: an unknown option of forward', 'ARGUMENT', ['needsWeights', 'Did you mean needWeights?'], (s) =>
  s.mha.forward(x, undefined, undefined, wrong({ needsWeights: true })),
);
bad('MultiHeadAttention: options in place of the key', 'ARGUMENT', ['key'], (s) => s.mha.forward(x, wrong({ needWeights: true })));
bad('MultiHeadAttention: dropout 1 of a call', 'CONFIG', ['dropout'], (s) => s.mha.forward(x, undefined, undefined, { dropout: 1 }));
bad('MultiHeadAttention: masks for the key that addZeroAttn adds', 'MASK', ['mask', '3', '4'], (s) => {
  const own = new s.attn.MultiHeadAttention({ embedDim: 8, numHeads: 2, addZeroAttn: true });
  try {
    return own.forward(x, undefined, undefined, { mask: wrong(maskOf([3, 4])) });
  } finally {
    own.dispose();
  }
});

const continued = (s: Setting, key: readonly number[], value = key, options: object = {}, input: Tensor = x) =>
  s.mha.forward(input, undefined, undefined, { past: { key: random(g, key), value: random(g, value) }, ...options });
for (const [what, key, value] of [
  ['without a batch', [2, 5, 4], [2, 5, 4]],
  ['of another batch', [3, 2, 5, 4], [3, 2, 5, 4]],
  ['of other heads', [2, 1, 5, 4], [2, 1, 5, 4]],
  ['of another width', [2, 2, 5, 8], [2, 2, 5, 8]],
  ['with heads side by side', [2, 5, 8], [2, 5, 8]],
  ['with different numbers of keys and values', [2, 2, 5, 4], [2, 2, 6, 4]],
  ['with values of another width', [2, 2, 5, 4], [2, 2, 5, 3]],
] as const)
  bad(`MultiHeadAttention: a past ${what}`, 'SHAPE', ['MultiHeadAttention', 'past.'], (s) => continued(s, key, value));
bad('MultiHeadAttention: a past with a batch for inputs without', 'SHAPE', ['past.key'], (s) =>
  continued(s, [1, 2, 5, 4], undefined, {}, random(g, [3, 8])),
);
bad('MultiHeadAttention: a past and a mask for the new keys only', 'MASK', ['mask', '8', '3'], (s) =>
  continued(s, [2, 2, 5, 4], undefined, { mask: maskOf([3, 3]) }),
);
for (const member of ['addBiasKv', 'addZeroAttn'])
  for (const [argument, options] of Object.entries({
    past: { past: { key: random(g, [2, 2, 5, 4]), value: random(g, [2, 2, 5, 4]) } },
    outputPresent: { outputPresent: true },
  }))
    bad(`MultiHeadAttention: ${argument} with ${member}`, 'UNSUPPORTED', ['MultiHeadAttention', argument, 'addBiasKv'], (s) => {
      const own = new s.attn.MultiHeadAttention(wrong({ embedDim: 8, numHeads: 2, [member]: true }));
      try {
        return own.forward(x, undefined, undefined, options);
      } finally {
        own.dispose();
      }
    });
for (const [option, value] of Object.entries({ softcap: -1, window: [-3, 0], queryOffset: 2 ** 53 }))
  bad(`MultiHeadAttention: ${option} of a call, out of range`, 'CONFIG', ['MultiHeadAttention', option], (s) =>
    s.mha.forward(x, undefined, undefined, wrong({ [option]: value })),
  );

const getEncoder = {
  TransformerEncoderLayer: (s: Setting) => s.layer,
  TransformerEncoder: (s: Setting) => s.encoder,
  TransformerClassifier: (s: Setting) => s.classifier,
};
for (const name of encoders) {
  const run = (s: Setting, options?: unknown, input: unknown = x) => getEncoder[name](s).forward(wrong(input), wrong(options));
  for (const value of [undefined, null, 5, 'x', [[1, 2]], new Float32Array(48)] as unknown[])
    bad(`${name}: x ${Object.prototype.toString.call(value)}`, 'ARGUMENT', [name, 'x'], (s) => getEncoder[name](s).forward(wrong(value)));
  bad(`${name}: x of Float64Array`, 'DTYPE', [name, 'x'], (s) => run(s, {}, withData(new Float64Array(48), x.dims)));
  bad(`${name}: x detached`, 'DETACHED', [name, 'x'], (s) => run(s, {}, withData(detached(new Float32Array(48)), x.dims)));
  bad(`${name}: x of another width`, 'SHAPE', [name, 'x', '8', '9'], (s) => run(s, {}, random(g, [2, 3, 9])));
  bad(`${name}: x of rank 1`, 'SHAPE', [name, 'x'], (s) => run(s, {}, random(g, [8])));
  bad(`${name}: x of rank 4`, 'SHAPE', [name, 'x', /reshape|\(B, ?L, ?8\)/i], (s) => run(s, {}, random(g, [1, 2, 3, 8])));
  for (const options of [5, null, 'causal', true, [true], new Map()] as unknown[])
    bad(`${name}: options of forward ${Object.prototype.toString.call(options)}`, 'ARGUMENT', [name, 'options'], (s) => run(s, options));
  for (const [given, meant] of Object.entries({
    is_causal: 'isCausal',
    src_key_padding_mask: 'keyPaddingMask',
    output_attention: 'outputAttentions',
    output_hidden_state: 'outputHiddenStates',
  }))
    bad(`${name}: ${given} for ${meant}`, 'ARGUMENT', [given, `Did you mean ${meant}?`], (s) => run(s, { [given]: true }));
  for (const value of [0.5, NaN, Infinity, '1', null, [1], {}] as unknown[])
    bad(`${name}: queryOffset ${named(value)}`, 'ARGUMENT', [name, 'queryOffset'], (s) => run(s, { queryOffset: value }));
  for (const value of [2 ** 53, -(2 ** 60)])
    bad(`${name}: queryOffset ${value}`, 'CONFIG', [name, 'queryOffset'], (s) => run(s, { queryOffset: value }));
  for (const given of ['needWeights', 'scale', 'dropout', 'softcap', 'window', 'past', 'outputPresent', 'rotary'])
    bad(`${name}: ${given} is not an option of forward`, 'ARGUMENT', [given], (s) => run(s, { [given]: true }));
  for (const flag of ['isCausal', 'outputAttentions', 'outputHiddenStates'])
    for (const value of [1, 'yes', null] as unknown[])
      bad(`${name}: ${flag} ${named(value)}`, 'ARGUMENT', [name, flag], (s) => run(s, { [flag]: value }));
  bad(`${name}: fullyMasked 'Zero'`, 'CONFIG', ['fullyMasked', 'zero', 'uniform'], (s) => run(s, { fullyMasked: 'Zero' }));
  bad(`${name}: fullyMasked 0`, 'ARGUMENT', ['fullyMasked'], (s) => run(s, { fullyMasked: 0 }));
  for (const trace of [true, 1, 'scores', ['scores'], null] as unknown[])
    bad(`${name}: trace ${named(trace)}`, 'ARGUMENT', [name, 'trace'], (s) => run(s, { trace }));
  for (const [kind, traced] of Object.entries<unknown>({
    'a number': 0,
    'a string': '0',
    'an object': {},
    'a fraction': [0.5],
    'a string inside': ['0'],
    'a hole': [,],
  }))
    bad(`${name}: trace.layers ${kind}`, 'ARGUMENT', ['trace.layers'], (s) => run(s, { trace: { layers: traced } }));
  for (const traced of [-1, 2, 2 ** 31 - 1])
    bad(`${name}: trace.layers [${traced}]`, 'OUT_OF_RANGE', [name, 'trace.layers', String(traced)], (s) =>
      run(s, { trace: { layers: [0, traced] } }),
    );
  bad(`${name}: trace.layers [2^40]`, 'OUT_OF_RANGE', ['trace.layers'], (s) => run(s, { trace: { layers: [2 ** 40] } }));
  for (const [given, meant] of [
    ['score', 'scores'],
    ['norm_1', 'norm1'],
    ['ffHidden', 'ff_hidden'],
    ['attention_residual', 'attn_residual'],
  ])
    bad(`${name}: trace.names ${given}`, 'ARGUMENT', ['trace.names', given, meant], (s) => run(s, { trace: { names: ['weights', given] } }));
  for (const names of ['scores', 5, null, { scores: true }, [1], [null]] as unknown[])
    bad(`${name}: trace.names ${named(names)}`, 'ARGUMENT', ['trace.names'], (s) => run(s, { trace: { names } }));
  bad(`${name}: trace.layer for trace.layers`, 'ARGUMENT', ['trace.layer', 'Did you mean layers?'], (s) => run(s, { trace: { layer: [0] } }));

  bad(`${name}: a bare array as mask`, 'MASK', ['mask', 'kind'], (s) => run(s, { mask: new Uint8Array(9) }));
  bad(`${name}: a mask without kind`, 'MASK', ['mask', 'kind'], (s) => run(s, { mask: { data: new Uint8Array(9), dims: [3, 3] } }));
  for (const dims of [[4], [3, 4], [4, 3], [3, 3, 3], [2, 3, 3, 3], [2, 2, 3, 4], [3, 1], [], [1, 1, 1, 3, 3]])
    bad(`${name}: a mask of dims [${dims}]`, 'MASK', [name, 'mask'], (s) => run(s, { mask: maskOf(dims) }));
  bad(`${name}: torch's (B·H,L,S) mask`, 'MASK', ['mask', /reshape|\(?B, ?H, ?L, ?S/i], (s) => run(s, { mask: maskOf([4, 3, 3]) }));
  for (const value of [NaN, Infinity])
    bad(`${name}: ${value} in an additive mask`, 'MASK', ['mask', /nan|inf/i], (s) =>
      run(s, { mask: maskOf([3], 'additive', Float32Array.of(0, value, 0)) }),
    );
  bad(`${name}: a mask of Int32Array`, 'DTYPE', ['mask'], (s) => run(s, { mask: maskOf([3, 3], 'attend', new Int32Array(9)) }));
  for (const dims of [[3], [3, 3], [2, 4], [2, 3, 3], [2, 1, 1, 3]])
    bad(`${name}: a key padding mask of dims [${dims}]`, 'MASK', [name, 'keyPaddingMask'], (s) => run(s, { keyPaddingMask: maskOf(dims) }));
  bad(`${name}: a key padding mask without kind`, 'MASK', ['keyPaddingMask', 'kind'], (s) =>
    run(s, { keyPaddingMask: { data: new Uint8Array(6), dims: [2, 3] } }),
  );
  bad(`${name}: attentions beyond the memory limit`, 'MEMORY', [name, 'bytes'], (s) =>
    run(s, { outputAttentions: true }, tensor([1, 20000, 8], new Float32Array(160000))),
  );
  bad(`${name}: x past 2^32 elements`, ['MEMORY', 'SHAPE'], ['x'], (s) => run(s, {}, withDims([2 ** 30, 2 ** 30, 8], new Float32Array(0))));
}

const embed = (s: Setting, ids: unknown, dims?: unknown) => s.embedding.forward(wrong(ids), wrong(dims));
for (const [name, ids, index] of [
  ['an array', [0, 5, 6], 2],
  ['a negative one', [0, -1], 1],
  ['Int32Array', Int32Array.of(1, 7, 0), 1],
  ['BigInt64Array', BigInt64Array.of(0n, 1n, 2n, 6n), 3],
  ['an array, past an int32', [0, 2 ** 31], 1],
  ['BigInt64Array, past a double', BigInt64Array.of(2n ** 62n), 0],
] as const)
  bad(`ids out of range: ${name}`, 'OUT_OF_RANGE', [`ids[${index}]`], (s) => embed(s, ids));
for (const ids of [undefined, null, 5, '0,1', { 0: 1, length: 1 }, new DataView(new ArrayBuffer(8)), new Set([1])] as unknown[])
  bad(`ids: ${Object.prototype.toString.call(ids)}`, ['ARGUMENT', 'DTYPE'], ['Embedding', 'ids'], (s) => embed(s, ids));
for (const ids of [new Float32Array(2), new Uint8Array(2), new Float64Array(2), new BigUint64Array(2), new Int16Array(2)] as unknown[])
  bad(`ids: ${Object.prototype.toString.call(ids)}`, 'DTYPE', ['ids', 'Int32Array'], (s) => embed(s, ids));
for (const [name, id] of Object.entries<unknown>({
  fractional: 0.5,
  NaN,
  'a string': '1',
  'a BigInt': 1n,
  null: null,
  nested: [1],
  undefined,
  infinite: Infinity,
}))
  bad(`ids: ${name} inside`, 'ARGUMENT', ['ids[1]'], (s) => embed(s, [0, id]));
bad('ids: a hole', 'ARGUMENT', ['ids[1]'], (s) => embed(s, [0, , 1]));
bad('ids: detached', 'DETACHED', ['ids'], (s) => embed(s, detached(new Int32Array(4))));
for (const dims of [[3], [2, 3], [], [5, 1]]) bad(`ids: dims [${dims}] for four`, 'SHAPE', ['ids'], (s) => embed(s, [0, 1, 2, 3], dims));
for (const [name, dims] of Object.entries<unknown>({
  negative: [-2, -2],
  fractional: [0.5, 8],
  'a number': 4,
  null: null,
  'a string': '4',
  'a string inside': ['4'],
}))
  bad(`ids: dims ${name}`, 'ARGUMENT', ['dims'], (s) => embed(s, [0, 1, 2, 3], dims));
bad('ids: of rank 8', 'SHAPE', ['ids', 'rank'], (s) => embed(s, [1], [1, 1, 1, 1, 1, 1, 1, 1]));
for (const target of [-1, 6, 2 ** 40]) bad(`nearest: target ${target}`, 'OUT_OF_RANGE', ['nearest', 'target'], (s) => s.embedding.nearest(target, 1));
for (const target of [1.5, NaN, '1', null, undefined, [0, 0, 0, 0], {}, 1n] as unknown[])
  bad(`nearest: target ${named(target)}`, 'ARGUMENT', ['nearest', 'target'], (s) => s.embedding.nearest(wrong(target), 1));
bad('nearest: a vector of Float64Array', 'DTYPE', ['target'], (s) => s.embedding.nearest(wrong(new Float64Array(4)), 1));
bad('nearest: a vector of another width', 'SHAPE', ['target', '4', '5'], (s) => s.embedding.nearest(new Float32Array(5), 1));
bad('nearest: a detached vector', 'DETACHED', ['target'], (s) => s.embedding.nearest(detached(new Float32Array(4)), 1));
for (const [name, call] of [
  ['nearest', (s: Setting, n: unknown) => s.embedding.nearest(0, wrong(n))],
  ['analogy', (s: Setting, n: unknown) => s.embedding.analogy(0, 1, 2, wrong(n))],
] as const)
  for (const n of [undefined, -1, 1.5, NaN, '3', null, 1n] as unknown[]) bad(`${name}: k ${named(n)}`, 'ARGUMENT', [name, 'k'], (s) => call(s, n));
for (const position of [0, 1]) {
  const call = (s: Setting, id: unknown) => s.embedding.similarity(...wrong<[number, number]>(position ? [0, id] : [id, 0]));
  for (const id of [6, -1]) bad(`similarity: ${'ab'[position]} ${id}`, 'OUT_OF_RANGE', ['similarity', 'ab'[position]], (s) => call(s, id));
  for (const id of [undefined, 0.5, '0', null] as unknown[])
    bad(`similarity: ${'ab'[position]} ${named(id)}`, 'ARGUMENT', ['similarity', 'ab'[position]], (s) => call(s, id));
}
for (const position of [0, 1, 2]) {
  const call = (s: Setting, id: unknown) =>
    s.embedding.analogy(...wrong<[number, number, number]>([0, 1, 2].map((n) => (n === position ? id : n))), 1);
  bad(`analogy: ${'abc'[position]} out of range`, 'OUT_OF_RANGE', ['analogy', 'abc'[position], '6'], (s) => call(s, 6));
  bad(`analogy: ${'abc'[position]} a string`, 'ARGUMENT', ['analogy', 'abc'[position]], (s) => call(s, 'king'));
}

catalogue.run('bad input of layers');

describe('a disposed instance', () => {
  it('every function, class and method gives DISPOSED, and repeated disposal is allowed', async () => {
    const attn = await loadHere({ threads: 1 });
    const live = classNames.map((name) => construct(attn, name, good[name]));
    const names = Object.keys(attn).filter((name) => typeof (attn as never)[name] === 'function' && name !== 'dispose');
    assert.includeMembers(names, ['layerNorm', 'applyRotary', 'additiveAttention', 'writeSafetensors', ...classNames]);
    attn.dispose();
    attn.dispose();
    attn[disposeSymbol]();
    for (const name of names) {
      const member = wrong<Record<string, (...args: unknown[]) => unknown>>(attn)[name];
      if (classNames.includes(name as ClassName)) assertThrows(() => construct(attn, name as ClassName, good[name as ClassName]), 'DISPOSED');
      else if (/^[A-Z]/.test(name)) assertThrows(() => new (member as unknown as new (modules: unknown) => unknown)(live), 'DISPOSED');
      else if (name === 'loadModel') await assertRejects(attn.loadModel('folder'), 'DISPOSED', [name]);
      else assertThrows(() => member(q, k, v), 'DISPOSED', [name]);
    }
    assertThrows(() => attn.info, 'DISPOSED');
    for (const layer of live) {
      for (const method of ['forward', 'loadStateDict', 'stateDict', 'initialize', 'parameterShapes', 'train', 'eval'])
        assertThrows(() => wrong<Record<string, (x: unknown) => unknown>>(layer)[method](x), 'DISPOSED');
      assertThrows(() => layer.parameterCount, 'DISPOSED');
      layer.dispose();
    }
  });

  it('a getter that disposes of the instance while arguments are read: DISPOSED, without other effects', async () => {
    for (const name of ['TransformerEncoder', 'TransformerClassifier'] as const) {
      const attn = await loadHere({ threads: 1 });
      const encoder = construct(attn, name, good[name]) as InstanceType<Attn['TransformerEncoder']>;
      assertThrows(
        () =>
          encoder.forward(x, {
            get isCausal() {
              attn.dispose();
              return false;
            },
          }),
        'DISPOSED',
      );
      encoder.dispose();
    }
  });
});
