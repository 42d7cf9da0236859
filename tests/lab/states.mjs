/** States of the lab's fields. Everything is text, as in the fields. */

const written = (value) => (Object.is(value, -0) ? '-0' : String(value));
/** Formats nested rows, or a list of texts, as a user types them. */
const text = (rows) => (Array.isArray(rows) ? `[${rows.map(text).join(', ')}]` : typeof rows === 'string' ? rows : written(rows));

/** Returns changes to the lab's initial numbers, by name; `generator` draws random ones. */
export function statesOf(generator) {
  function random(dims, factor = 1) {
    const [count, ...inner] = dims;
    if (inner.length) return Array.from({ length: count }, () => random(inner, factor));
    return Array.from(generator.floats(count, factor));
  }
  function flags(dims) {
    let index = 0;
    const step = ([count, ...inner]) => Array.from({ length: count }, () => (inner.length ? step(inner) : Number((index++ * 7) % 5 < 3)));
    return step(dims);
  }
  const fields = (arrays) => Object.fromEntries(Object.entries(arrays).map(([name, rows]) => [name, { text: text(rows) }]));

  const attention = (arrays, more = {}) => ({ mode: 'attention', fields: fields(arrays), ...more });
  const multiHead = (arrays, heads, more = {}) => ({ mode: 'multi-head', fields: fields(arrays), heads: String(heads), ...more });

  const small = () => ({ Q: random([3, 4]), K: random([5, 4]), V: random([5, 2]) });
  const batch = () => ({ Q: random([2, 3, 4]), K: random([2, 5, 4]), V: random([2, 5, 2]) });
  const heads = () => ({ Q: random([2, 3, 4, 2]), K: random([2, 3, 5, 2]), V: random([2, 3, 5, 1]) });
  /** E 4, with the same width inside. */
  const self = (dims = [3, 4]) => ({ X: random(dims), Wq: random([4, 4]), Wk: random([4, 4]), Wv: random([4, 4]) });
  const wide = (dims = [3, 4]) => ({ X: random(dims), Wq: random([4, 6]), Wk: random([4, 6]), Wv: random([4, 8]) });

  const additive = [
    ['0', '-Infinity', '0.5', '-1.5', '-0'],
    ['-Infinity', '-Infinity', '-Infinity', '-Infinity', '-Infinity'],
    ['1e-30', '-1e30', '2', '0', '0'],
  ];

  return {
    'attention as it is at first': {},
    'attention with scale 1': { scale: '1' },
    'attention with scale 0': { scale: '0' },
    'attention with a negative scale': attention(small(), { scale: '-0.7' }),
    'attention with a tiny scale': attention(small(), { scale: '1e-30' }),
    'one number each': attention({ Q: [[2]], K: [[3]], V: [[-4]] }),
    'one row each, of whole numbers': attention({ Q: [[3, 2]], K: [[2, 3]], V: [[4, 5]] }),
    'causal, more keys than queries': attention(small(), { causal: true }),
    'a mask for each key': attention({ ...small(), Mask: flags([5]) }),
    'a mask for each query and key that blocks': attention({ ...small(), Mask: flags([3, 5]) }, { maskKind: 'block' }),
    'a mask that is added, one query with no key left': attention({ ...small(), Mask: additive }, { maskKind: 'additive' }),
    'a mask that hides all keys of one query': attention({ ...small(), Mask: [flags([5]), [0, 0, 0, 0, 0], flags([5])] }),
    'true and false': attention({ ...small(), Mask: ['True', 'false', 'true', 'True', 'False'] }),
    'key padding': attention({ ...small(), 'Key padding': [1, 1, 1, 0, 0] }),
    'key padding that blocks': attention({ ...small(), 'Key padding': [0, 0, 1, 0, 1] }, { paddingKind: 'block' }),
    'key padding that is added': attention({ ...small(), 'Key padding': ['0', '-Infinity', '-2', '0.25', '0'] }, { paddingKind: 'additive' }),
    'every option at once': attention(
      { ...small(), Mask: additive, 'Key padding': [0, 0, 0, 0, 1] },
      { maskKind: 'additive', paddingKind: 'block', causal: true, scale: '0.3' },
    ),
    'a batch, with masks': attention({ ...batch(), Mask: flags([2, 3, 5]), 'Key padding': flags([2, 5]) }, { causal: true }),
    'a batch, with one mask for all': attention({ ...batch(), Mask: flags([1, 3, 5]) }, { maskKind: 'block' }),
    'heads, with one mask for all': attention({ ...heads(), Mask: flags([4, 5]), 'Key padding': flags([2, 5]) }),
    'heads, with a mask for each of the batch': attention({ ...heads(), Mask: flags([2, 4, 5]) }, { maskKind: 'block' }),
    'heads, with a mask for each': attention({ ...heads(), Mask: random([2, 3, 4, 5]) }, { maskKind: 'additive', scale: '2' }),
    'awkward numbers': attention({
      Q: [
        ['1e30', '-0', '16777217', '.5'],
        ['+1e-30', '1e-45', '-0.0', '0.1'],
      ],
      K: [
        ['1e-30', '-0', '1e-7', '-3e-39'],
        ['2e-30', '3e30', '-1e-7', '33554432'],
      ],
      V: [
        ['3.4e38', '-0', '123456789'],
        ['-1e-30', '1e-38', '-16777216'],
      ],
    }),
    'no numbers in what is hidden': attention({
      Q: random([3, 2]),
      K: [
        [1, 2],
        ['NaN', 0],
        ['-inf', 1],
        [0.5, -0.5],
      ],
      V: [
        [1, 2],
        ['nan', 1],
        ['Infinity', '-Infinity'],
        [3, 4],
      ],
      Mask: [1, 0, 0, 1],
    }),
    'no numbers in what a mask that is added hides': attention(
      {
        Q: random([2, 2]),
        K: [
          [1, 2],
          ['NaN', 0],
        ],
        V: [
          [1, 2],
          ['nan', 1],
        ],
        Mask: ['0.5', '-inf'],
      },
      { maskKind: 'additive' },
    ),
    'no numbers in what is seen': attention({
      Q: [
        [1, 2],
        ['NaN', 1],
      ],
      K: random([3, 2]),
      V: [
        ['inf', 1],
        [2, 3],
        [4, 5],
      ],
    }),
    'large scores': attention({ Q: random([6, 8], 40), K: random([7, 8], 40), V: random([7, 3], 100) }),
    // Scores around 3000 that differ by about 1: float32 rounds each by 1e-4, which softmax reveals.
    'large scores that are close': attention({
      Q: [
        [30.1, -24.7],
        [20.3, 10.9],
      ],
      K: random([5, 2], 0.05).map(([x, y]) => [100.3 + x, -50.7 + y]),
      V: random([5, 2], 10),
    }),
    'scores that overflow': attention({ Q: [[1e30], [1]], K: [[1e30], [2]], V: [[1], [2]] }),
    'many numbers': attention({ Q: random([24, 24]), K: random([40, 24]), V: random([40, 24]) }, { causal: true }),
    'numbers from a file': attention({ Q: random([40, 64]), K: random([40, 64]), V: random([40, 8]), Mask: flags([40, 40]) }),

    'multi-head as it is at first': { mode: 'multi-head' },
    'multi-head with Wo': multiHead({ ...self(), Wo: random([4, 4]) }, 2),
    'one head': multiHead({ ...self(), Wo: random([4, 4]) }, 1, { causal: true, scale: '1' }),
    'as many heads as numbers': multiHead(self(), 4, { scale: '0.25' }),
    'values wider than keys, no Wo': multiHead(wide(), 2),
    'values wider than keys, Wo back to the width': multiHead({ ...wide(), Wo: random([8, 4]) }, 2),
    'values wider than keys, Wo to another width': multiHead({ ...wide(), Wo: random([8, 3]) }, 2, { causal: true }),
    'one token': multiHead({ ...self([1, 4]), Wo: random([4, 1]) }, 2),
    'multi-head with a mask for each query and key': multiHead({ ...self(), Mask: flags([3, 3]) }, 2, { maskKind: 'block' }),
    'multi-head with a mask for each head': multiHead({ ...self(), Mask: random([1, 2, 3, 3]) }, 2, { maskKind: 'additive' }),
    'multi-head with key padding': multiHead({ ...self(), Wo: random([4, 4]), 'Key padding': [1, 1, 0] }, 2, { causal: true }),
    'a batch of tokens, with masks': multiHead(
      {
        ...wide([2, 3, 4]),
        Wo: random([8, 5]),
        Mask: flags([2, 3, 3]),
        'Key padding': [
          ['0', '0', '-inf'],
          ['0', '0', '0'],
        ],
      },
      2,
      { paddingKind: 'additive', causal: true },
    ),
    'a batch of tokens, with a mask for each head': multiHead({ ...self([2, 3, 4]), Mask: flags([2, 2, 3, 3]) }, 2),
    'no number in a padded token': multiHead(
      {
        ...self(),
        X: [
          [1, 2, 3, 4],
          [-1, 0, 1, 2],
          ['NaN', 0, 'inf', 0],
        ],
        Wo: random([4, 2]),
        'Key padding': [1, 1, 0],
      },
      2,
    ),
    'multi-head with large scores': multiHead({ ...self([5, 4]), X: random([5, 4], 8), Wo: random([4, 4]) }, 2),
    'multi-head numbers from a file': multiHead(
      { X: random([30, 40]), Wq: random([40, 40]), Wk: random([40, 40]), Wv: random([40, 48]), Wo: random([48, 8]) },
      4,
    ),
  };
}
