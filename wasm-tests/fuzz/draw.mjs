// Draws expensive files and texts from a number: tokenizer.json files of every kind of part, with counts and lengths
// from 1 to many thousands, and published files with a few changed values.

/** Random numbers from a seed (mulberry32). */
export class Random {
  constructor(seed) {
    this.state = seed;
  }

  next() {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }
  below(count) {
    return Math.floor(this.next() * count);
  }
  pick(list) {
    return list[this.below(list.length)];
  }
  flag() {
    return this.next() < 0.5;
  }
  oneIn(count) {
    return this.below(count) === 0;
  }
  /** Mostly small, so that the file is accepted; sometimes near `most`. */
  size(most) {
    return this.oneIn(8) ? Math.floor(most ** (0.5 + this.next() / 2)) : this.below(4);
  }
  list(most, make) {
    return Array.from({ length: this.size(most) }, (_, i) => make(i));
  }
}

const seeds = [
  'a',
  'b',
  'ab',
  'A',
  ' ',
  '  ',
  '\n',
  '1',
  "'s",
  '.',
  '##',
  'Ġ',
  '▁',
  'é',
  'İ',
  'Σ',
  'ﬁ',
  '\ufdfa',
  '\u0301',
  '\u0323\u0301',
  '中',
  '각',
  '😀',
];
seeds.push('👩‍', '\ud800', '\0', '<mask>', '[UNK]', '<0x61>', 'न\u094d', '\r\n', '\u0345', '\u{1d15e}', '\u200d');

const words = (random, most) => random.pick(seeds).repeat(random.size(most)) + (random.flag() ? random.pick(seeds) : '');
/** Uses the letters of the texts, so that many matches are found. */
const word = (random, most) =>
  random.oneIn(4) ? words(random, most) : 'a'.repeat(1 + random.size(most)) + (random.flag() ? '' : random.pick(seeds));

function o200k() {
  const [capitals, small] = ['[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]', '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]'];
  const [lead, contraction] = ['[^\\r\\n\\p{L}\\p{N}]?', "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"];
  const words = `${lead}${capitals}*${small}+${contraction}|${lead}${capitals}+${small}*${contraction}`;
  return `${words}|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;
}

const regexes = [
  ' {2,}',
  '\\s+',
  '\\s{2,}',
  '\\s{2,}|[\\n\\r\\t]',
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  o200k(),
];
const pattern = (random) => (random.flag() ? { String: word(random, 300) } : { Regex: random.pick(regexes) });

/** Builds sentencepiece's double array with a single rule, for 'a'. */
function charsmap(random) {
  const units = new Uint32Array(257);
  units[0] = 1 << 10;
  units[1 ^ 97] = 97 | 256 | ((1 ^ 97 ^ 98) << 10);
  units[98] = 2 ** 31;
  const blob = Buffer.from(random.pick(['a', 'aa', 'é']).repeat(random.size(200)));
  return Buffer.concat([Buffer.from(Uint32Array.of(4 * 257).buffer), Buffer.from(units.buffer), blob]).toString('base64');
}

function normalizer(random, most) {
  const type = random.pick([
    'BertNormalizer',
    'Lowercase',
    'NFC',
    'NFD',
    'NFKC',
    'NFKD',
    'StripAccents',
    'Strip',
    'Nmt',
    'ByteLevel',
    'Replace',
    'Prepend',
    'Precompiled',
    'Sequence',
  ]);
  switch (type) {
    case 'BertNormalizer':
      return { type, clean_text: random.flag(), handle_chinese_chars: random.flag(), lowercase: random.flag(), strip_accents: random.flag() };
    case 'Strip':
      return { type, strip_left: random.flag(), strip_right: random.flag() };
    case 'Replace':
      return { type, pattern: random.flag() ? { String: random.pick(seeds) } : pattern(random), content: words(random, 300) };
    case 'Prepend':
      return { type, prepend: words(random, 300) };
    case 'Precompiled':
      return { type, precompiled_charsmap: charsmap(random) };
    case 'Sequence':
      return { type, normalizers: sequence(random, most, normalizer) };
  }
  return { type };
}

/** A few parts, or one part many times. */
function sequence(random, most, part) {
  if (random.flag()) return random.list(6, () => part(random, most / 8));
  const one = part(random, most / 8);
  return random.list(most, () => one);
}

function preTokenizer(random, most) {
  const type = random.pick([
    'BertPreTokenizer',
    'Whitespace',
    'WhitespaceSplit',
    'ByteLevel',
    'Metaspace',
    'Punctuation',
    'Digits',
    'Split',
    'CharDelimiterSplit',
    'FixedLength',
    'UnicodeScripts',
    'Sequence',
  ]);
  const behavior = random.pick(['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous']);
  switch (type) {
    case 'ByteLevel':
      return { type, add_prefix_space: random.flag(), trim_offsets: random.flag(), use_regex: random.flag() };
    case 'Metaspace':
      return { type, replacement: random.pick(['▁', 'a', ' ']), prepend_scheme: random.pick(['always', 'first', 'never']), split: random.flag() };
    case 'Punctuation':
      return { type, behavior };
    case 'Digits':
      return { type, individual_digits: random.flag() };
    case 'CharDelimiterSplit':
      return { type, delimiter: random.pick(['a', ' ', '中']) };
    case 'FixedLength':
      return { type, length: 1 + random.size(20) };
    case 'Split':
      return { type, pattern: pattern(random), behavior, invert: random.flag() };
    case 'Sequence':
      return { type, pretokenizers: sequence(random, most, preTokenizer) };
  }
  return { type };
}

function postProcessor(random, most) {
  const type = random.pick(['ByteLevel', 'RobertaProcessing', 'BertProcessing', 'TemplateProcessing', 'Sequence']);
  const flags = { trim_offsets: random.flag(), add_prefix_space: random.flag() };
  const token = () => [word(random, 2000), random.below(9)];
  switch (type) {
    case 'ByteLevel':
      return { type, ...flags };
    case 'RobertaProcessing':
      return { type, ...flags, cls: token(), sep: token() };
    case 'BertProcessing':
      return { type, cls: token(), sep: token() };
    case 'Sequence':
      return { type, processors: sequence(random, most, random.oneIn(4) ? postProcessor : () => ({ type: 'ByteLevel', ...flags })) };
  }
  const [ids, x] = [random.list(1500, () => 1), { SpecialToken: { id: 'x', type_id: 0 } }];
  const text = (id) => ({ Sequence: { id, type_id: 0 } });
  const extra = random.list(1500, () => x);
  return {
    type,
    single: [...extra, text('A')],
    pair: [text('A'), ...extra, text('B')],
    special_tokens: { x: { ids, tokens: ids.map(() => word(random, 50)) } },
  };
}

const byte = (_, value) => `<0x${value.toString(16).toUpperCase().padStart(2, '0')}>`;

function vocabulary(random, most, bytes) {
  const list = ['[UNK]', ...random.list(most, (i) => (random.flag() ? 'a'.repeat(i % 1200) : word(random, 1100)))];
  if (bytes) list.push(...Array.from({ length: 256 }, byte));
  if (random.flag()) list.push(...seeds);
  return list;
}

function model(random, most) {
  const type = random.pick(['WordPiece', 'BPE', 'Unigram', 'WordLevel']);
  const bytes = random.flag();
  const all = vocabulary(random, most, bytes);
  const shared = random.oneIn(8);
  const affix = () => (random.flag() ? '' : words(random, 5000));
  if (type === 'Unigram')
    return { type, unk_id: random.flag() ? 0 : null, byte_fallback: bytes, vocab: all.map((token) => [token, -random.below(20)]) };
  const prefix = affix();
  if (random.flag()) all.push(...all.slice(0, 2000).map((token) => prefix + token));
  const vocab = Object.fromEntries(all.map((token, id) => [token, shared ? 0 : id]));
  if (type === 'WordPiece')
    return { type, unk_token: random.pick(all), continuing_subword_prefix: prefix, max_input_chars_per_word: random.size(1e6) + 1, vocab };
  if (type === 'WordLevel') return { type, unk_token: random.pick(all), vocab };
  const merges = random
    .list(most, (i) => ['a'.repeat(1 + (i % 30)), 'a'.repeat(1 + random.below(30))])
    .filter(([a, b]) => a in vocab && b in vocab && a + b in vocab);
  return {
    type,
    unk_token: random.flag() ? '[UNK]' : null,
    continuing_subword_prefix: random.flag() ? '' : prefix,
    end_of_word_suffix: affix(),
    fuse_unk: random.flag(),
    byte_fallback: bytes,
    ignore_merges: random.flag(),
    vocab,
    merges: random.flag() ? merges : merges.map((pair) => pair.join(' ')),
  };
}

function wholeFile(random, most) {
  const [alike, flags] = [random.flag(), [random.flag(), random.flag(), random.flag()]];
  const added = (i) => {
    const [lstrip, rstrip, normalized] = alike ? flags : [random.flag(), random.flag(), random.flag()];
    return { id: i, content: random.oneIn(3) ? `t${i}` : word(random, 1100), single_word: random.oneIn(4), lstrip, rstrip, normalized };
  };
  return {
    version: '1.0',
    added_tokens: random.list(most, added),
    normalizer: random.oneIn(3) ? null : normalizer(random, most),
    pre_tokenizer: random.oneIn(3) ? null : preTokenizer(random, most),
    post_processor: random.oneIn(3) ? null : postProcessor(random, most),
    padding: random.oneIn(3) ? { pad_token: word(random, 2000) } : null,
    model: model(random, most),
  };
}

/** Mostly large: one value of a file is extreme, while the rest is accepted. */
const far = (random, most) => Math.floor(most ** (0.4 + 0.6 * random.next()));
const bare = { type: 'WordPiece', unk_token: '?', continuing_subword_prefix: '##', max_input_chars_per_word: 100, vocab: { '?': 0, a: 1, '##a': 2 } };
const token = (content, more) => ({ id: 0, content, single_word: false, lstrip: false, rstrip: false, normalized: false, ...more });
const flags = (random) => ({ lstrip: random.flag(), rstrip: random.flag(), normalized: random.flag() });

/** One kind of cost per recipe. */
const recipes = [
  (random) => {
    const model = { type: 'BPE', vocab: Object.fromEntries(Array.from({ length: 256 }, (_, i) => [byte(_, i), i])), merges: [], byte_fallback: true };
    const affix = 's'.repeat(far(random, 1e5));
    return { model: { ...model, [random.pick(['continuing_subword_prefix', 'end_of_word_suffix'])]: affix } };
  },
  (random) => ({
    added_tokens: random.list(4, () => token(random.pick([' ', '  ', '\n', 'a', ' a']), flags(random))).concat(token(' ', flags(random))),
  }),
  (random) => ({ added_tokens: [token(`${random.pick(seeds).repeat(far(random, 2000))}b`, flags(random)), token('a', flags(random))] }),
  (random) => {
    const one = normalizer(random, 4);
    const normalizers = Array.from({ length: far(random, 30_000) }, () => one);
    const added_tokens = Array.from({ length: far(random, 5000) }, (_, i) => token(`t${i}`, { normalized: true }));
    return random.flag() ? { added_tokens, normalizer: { type: 'Sequence', normalizers } } : { normalizer: { type: 'Sequence', normalizers } };
  },
  (random) => ({ normalizer: { type: 'Sequence', normalizers: Array.from({ length: random.below(70) }, () => normalizer(random, 4)) } }),
  (random) => ({ normalizer: { type: 'Replace', pattern: { String: `${'a'.repeat(far(random, 1e5))}b` }, content: 'c' } }),
  (random) => ({
    pre_tokenizer: { type: 'Split', pattern: { Regex: random.pick(regexes) }, behavior: random.pick(['Removed', 'Isolated']), invert: random.flag() },
  }),
  (random) => {
    const one = preTokenizer(random, 4);
    return { pre_tokenizer: { type: 'Sequence', pretokenizers: Array.from({ length: far(random, 20_000) }, () => one) } };
  },
  (random) => ({ model: { type: 'Unigram', unk_id: 0, vocab: Array.from({ length: far(random, 3000) }, (_, i) => ['a'.repeat(i + 1), -i]) } }),
  (random) => {
    const vocab = { '?': 0, '##a': 1, a: 2, ['a'.repeat(far(random, 3000))]: 3, [`##${'a'.repeat(far(random, 3000))}`]: 4 };
    return { model: { ...bare, max_input_chars_per_word: far(random, 1e6), vocab } };
  },
  // Short tokens that resolve to ids of long ones.
  (random) => ({
    model: { ...bare, vocab: { '?': 0, a: 1, ' ': 1, '.': 1, ['Ġ'.repeat(far(random, 1e5))]: 1 } },
    pre_tokenizer: { type: 'BertPreTokenizer' },
  }),
  (random) => {
    const part = { type: 'ByteLevel', trim_offsets: true, add_prefix_space: random.flag() };
    return {
      post_processor: { type: 'Sequence', processors: Array.from({ length: far(random, 20_000) }, () => part) },
      model: { ...bare, vocab: { '?': 0, Ġ: 1, a: 2 } },
    };
  },
  // Only values.
  (random) => {
    const [each, close] = random.pick([
      ['{},', '{}'],
      ['[],', '[]'],
      ['0,', '0'],
      ['"ab",', '0'],
      ['{"a":[0]},', '0'],
    ]);
    return `{"model":{},"x":[${each.repeat(2 ** (18 + 4 * random.next()))}${close}]}`;
  },
];

const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const letterWord = (random, length) => Array.from({ length }, () => letters[random.below(62)]).join('');

/** Draws mostly a vocabulary of words without common prefixes, whose trie would be large. */
export function drawVocabulary(random) {
  const length = 3 + far(random, 1000);
  const all = new Set(Array.from({ length: Math.floor(far(random, 1e6) / length) }, () => letterWord(random, 1 + random.below(length))));
  if (random.flag()) for (const token of [...all]) all.add(token + random.pick(letters));
  const tokens = ['?', ...letters, ...all];
  const stride = random.pick([0, 1, 1, random.below(100)]);
  const vocab = Object.fromEntries(tokens.map((text, i) => [text, i * stride]));
  const merges = [...all].filter((text) => text.length === 2).map((text) => `${text[0]} ${text[1]}`);
  const file = {
    version: '1.0',
    added_tokens: [],
    ...random.pick([
      () => ({ model: { ...bare, vocab } }),
      () => ({ model: { type: 'Unigram', unk_id: 0, vocab: tokens.map((text) => [text, -random.below(9)]) } }),
      () => ({ model: { type: 'BPE', unk_token: '?', vocab, merges: random.flag() ? merges : Array(random.below(20)).fill(merges).flat() } }),
      () => {
        const normalizer = { type: 'Replace', pattern: { String: random.pick(letters) }, content: 'é'.repeat(random.below(256)) };
        return { normalizer, model: bare, added_tokens: tokens.map((text) => token(text, flags(random))) };
      },
    ])(),
  };
  return { bytes: Buffer.from(JSON.stringify(file)), file };
}

/** Lists the positions of values in a file: holder and name. */
function places(value, found = []) {
  if (typeof value !== 'object' || value === null) return found;
  const names = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  // Only the first elements of long lists; otherwise most positions would be in the vocabulary.
  for (const name of names.slice(0, 12)) {
    found.push([value, name]);
    places(value[name], found);
  }
  return found;
}

function change(random, file, most) {
  const [holder, name] = random.pick(places(file));
  const old = holder[name];
  const made = () => {
    if (Array.isArray(old) && old.length > 0 && random.flag()) {
      const one = random.pick(old);
      return [...old, ...random.list(most, () => one)];
    }
    if (typeof old === 'string' && random.flag()) return old.repeat(1 + random.size(most));
    return random.pick([
      () => random.pick([null, true, 0, -1, 2 ** 31 - 1, 1e300, '', [], {}]),
      () => words(random, most),
      () => normalizer(random, most),
      () => preTokenizer(random, most),
      () => random.list(most, () => ({})),
      () => Object.fromEntries(random.list(most, (i) => [`k${i}`, i])),
      () => structuredClone(random.pick(places(file))[0]),
    ])();
  };
  holder[name] = made();
}

/**
 * Draws { bytes, file, rows }: `file` is the parsed form if there is one, `rows` asks for repetitive texts; `published`
 * are real files.
 */
export function drawFile(random, published) {
  if (random.flag()) {
    const parts = random.pick(recipes)(random);
    if (typeof parts === 'string') return { bytes: Buffer.from(parts) };
    const file = { version: '1.0', added_tokens: [], model: bare, ...parts };
    return { bytes: Buffer.from(JSON.stringify(file)), file, rows: true };
  }
  const most = 2 ** (4 + random.below(13));
  const file = random.flag() ? wholeFile(random, most) : structuredClone(random.pick(published));
  for (let changes = random.below(4); changes > 0; --changes) change(random, file, most);
  return { bytes: Buffer.from(JSON.stringify(file)), file };
}

function stringsOf(value, found = []) {
  if (typeof value === 'string') found.push(value);
  else if (typeof value === 'object' && value !== null)
    for (const name of Object.keys(value).slice(0, 30)) {
      found.push(name);
      if (found.length < 300) stringsOf(value[name], found);
    }
  return found;
}

/** Draws texts for a file, from its own words and others, some of them long. */
export function drawTexts(random, { file, rows }) {
  // Repeats one string, for files that are slow on repetition.
  if (rows) {
    const row = (most) => {
      const each = random.pick([' ', '1', 'a', 'a ', 'ab', '.', '\n', ' \n', "'s", 'é', '\u0301', '中']);
      return each.repeat(most / each.length);
    };
    return [row(20), row(3000), row(random.oneIn(4) ? 200_000 : 20_000)];
  }
  const own = stringsOf(file).filter((text) => text !== '' && text.length < 2000);
  const piece = () => (own.length > 0 && random.flag() ? random.pick(own) : random.pick([...seeds, 'a', ' ', '1', 'aaaaab', ' a']));
  const draw = (most) => {
    const all = Array.from({ length: 1 + random.below(4) }, () => {
      const each = piece() + (random.oneIn(4) ? piece() : '');
      return each.repeat(1 + Math.floor(most ** random.next() / each.length));
    });
    return all.join(random.flag() ? ' ' : '').slice(0, most);
  };
  return [draw(200), draw(20_000), ...(random.oneIn(4) ? [draw(200_000)] : [])];
}
