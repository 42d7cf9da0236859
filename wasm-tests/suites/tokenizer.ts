/**
 * Compares the tokenizer with Hugging Face's tokenizers (ids, types, tokens, offsets) and tests refused files and
 * properties of any text. It is pure TypeScript, so one set-up of each engine runs it.
 */
import type { AttnError, ErrorCode } from 'attn';
import { assert } from 'chai';
import { AttnError as SourceError } from '../../web/lib/src/args/error.ts';
import { Tokenizer as PublicTokenizer } from '../../web/lib/src/tokenizer/text_tokenizer.ts';
import { readNormalizer } from '../../web/lib/src/tokenizer/normalizers.ts';
import { readPreTokenizer } from '../../web/lib/src/tokenizer/pre_tokenizers.ts';
import { Section } from '../../web/lib/src/tokenizer/schema.ts';
import { Budget, readText, stringOf } from '../../web/lib/src/tokenizer/text.ts';
import * as earlyEnd from '../../web/lib/src/tokenizer/early_end.ts';
import { Tokenizer, useEarlyEnd } from '../../web/lib/src/tokenizer/tokenizer.ts';
import { useLazyParts } from '../../web/lib/src/tokenizer/lazy_slot.ts';
import * as rare from '../../web/lib/src/tokenizer/lazy_parts.ts';
import { assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { bytes, host } from '../support/host.ts';

type Offsets = readonly ([number, number] | null)[];
interface Case {
  readonly text: string | { readonly repeat: string; readonly times: number };
  readonly pair?: string;
  readonly maxLength?: number;
  readonly addSpecialTokens?: boolean;
  readonly truncationSide?: 'left' | 'right';
  readonly truncated?: boolean;
  readonly ids: readonly number[];
  /** All 0 by default. */
  readonly typeIds?: readonly number[];
  readonly tokens: readonly string[];
  readonly offsets: Offsets;
}
interface Variant {
  readonly name: string;
  readonly parts: Readonly<Record<string, unknown>>;
  readonly cases: readonly Case[];
}
interface Settings {
  readonly checkpoint: string;
  readonly changes: object;
  readonly config: object;
  readonly cases: readonly Case[];
}
interface Draws {
  readonly texts: number;
  readonly seed: number;
  readonly counts: readonly number[];
  readonly pieces: readonly string[];
  readonly ranges: readonly (readonly [first: number, last: number])[];
  readonly runs: readonly { readonly checkpoint?: string; readonly variants?: readonly string[]; readonly digest: number }[];
}
interface Sweep {
  readonly name: string;
  readonly normalizer?: object;
  readonly preTokenizer?: object;
  readonly planes: readonly number[];
}

const checkpoints = [
  'tiny-bert',
  'tiny-distilbert',
  'tiny-roberta',
  'tiny-xlm-roberta',
  'tiny-mpnet',
  'tiny-modernbert',
  'tiny-deberta',
  'tiny-albert',
];
const miniLm = 'models/all-MiniLM-L6-v2/tokenizer.json';

const files = new Map<string, Uint8Array<ArrayBuffer>>();

/** Reads every file first: a keep-alive connection does not survive a test that blocks the thread. */
async function readFiles(): Promise<void> {
  if (files.size > 0) return;
  const goldens = [
    ...checkpoints,
    'all-MiniLM-L6-v2',
    'variants',
    'settings',
    'code_points',
    'draws',
    'decoders',
    'options',
    'words',
    'other_tokens',
  ].map((name) => `testdata/tokenizers/${name}.json`);
  const ofModels = checkpoints.flatMap((name) => ['tokenizer.json', 'config.json'].map((file) => `testdata/models/${name}/${file}`));
  for (const path of [...goldens, ...ofModels]) files.set(path, await bytes(path));
  // Not in the repository; downloaded by the set-up.
  await bytes(miniLm).then(
    (file) => files.set(miniLm, file),
    (error: unknown) => host.note(`all-MiniLM-L6-v2 is missing, so its texts are skipped: ${String(error)}`),
  );
}

const read = (path: string) => JSON.parse(new TextDecoder().decode(files.get(path)));
const encode = (value: unknown) => new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value));
const all = { maxLength: 2 ** 31 - 1, truncation: true };

function run(tokenizer: Tokenizer, c: Case, what: string): void {
  const text = typeof c.text === 'string' ? c.text : c.text.repeat.repeat(c.text.times);
  const told = `${what}: ${JSON.stringify(c.text)}${c.pair === undefined ? '' : ` and ${JSON.stringify(c.pair)}`}, ${c.maxLength ?? 'whole'}`;
  const { addSpecialTokens = true, truncationSide = 'right' } = c;
  const options = { maxLength: c.maxLength ?? all.maxLength, truncation: true, addSpecialTokens, truncationSide };
  const encoding = tokenizer.encode([c.pair === undefined ? text : [text, c.pair]], options);
  assert.deepEqual([...encoding.inputIds], [...c.ids], `${told}: ids`);
  assert.deepEqual([...encoding.tokenTypeIds], [...(c.typeIds ?? c.ids.map(() => 0))], `${told}: types`);
  assert.deepEqual(encoding.tokens, [c.tokens], `${told}: tokens`);
  assert.deepEqual(encoding.offsets, [c.offsets], `${told}: offsets`);
  assert.deepEqual(encoding.truncated, [c.truncated ?? false], `${told}: truncated`);
  assert.deepEqual(encoding.dims, [1, c.ids.length], `${told}: dims`);
  assert.isTrue(encoding.attentionMask.length === c.ids.length && encoding.attentionMask.every((m) => m === 1), `${told}: mask`);
}

const fileOf = (checkpoint: string) => files.get(`testdata/models/${checkpoint}/tokenizer.json`)!;
const tokenizerOf = (checkpoint: string) => new Tokenizer({ tokenizer: fileOf(checkpoint) });
const vocabularySize = (checkpoint: string): number => read(`testdata/models/${checkpoint}/config.json`).vocab_size;

describe('tokenizer', () => {
  before(() => useLazyParts(rare));
  before(readFiles);

  for (const name of [...checkpoints, 'all-MiniLM-L6-v2'])
    it(`${name}: every text is encoded as by Hugging Face tokenizers`, () => {
      const { file, cases }: { file: string; cases: Case[] } = read(`testdata/tokenizers/${name}.json`);
      if (file === miniLm && !files.has(file)) return;
      const tokenizer = new Tokenizer({ tokenizer: files.get(file)! });
      assert.isAbove(cases.length, 90);
      for (const c of cases) run(tokenizer, c, name);
    });

  it('each kind of part works alone', () => {
    const { model, variants }: { model: unknown; variants: Variant[] } = read('testdata/tokenizers/variants.json');
    assert.isAbove(variants.length, 60);
    for (const { name, parts, cases } of variants) {
      const tokenizer = new Tokenizer({ tokenizer: encode({ version: '1.0', added_tokens: [], model, ...parts }) });
      for (const c of cases) run(tokenizer, c, name);
    }
  });

  it('texts without special tokens, truncated at the start', () => {
    const { runs }: { runs: { checkpoint: string; cases: Case[] }[] } = read('testdata/tokenizers/options.json');
    assert.lengthOf(runs, checkpoints.length);
    for (const { checkpoint, cases } of runs) {
      const tokenizer = tokenizerOf(checkpoint);
      assert.isAbove(cases.length, 50);
      for (const c of cases) run(tokenizer, c, `${checkpoint}, special tokens ${c.addSpecialTokens}, ${c.truncationSide}`);
    }
  });

  it('tokens that only the files next to tokenizer.json define, and special tokens that are split', () => {
    interface Run {
      readonly checkpoint: string;
      readonly what: string;
      readonly files: Readonly<Record<string, object>>;
      readonly ids: readonly number[];
      readonly tokens: readonly string[];
      readonly size: number;
      readonly text: string;
    }
    const { text, runs }: { text: string; runs: Run[] } = read('testdata/tokenizers/other_tokens.json');
    assert.isAbove(runs.length, 150);
    for (const { checkpoint, what, files: changed, ids, tokens, size, text: decoded } of runs) {
      const others = Object.fromEntries(Object.entries(changed).map(([name, value]) => [name, JSON.stringify(value)]));
      const tokenizer = PublicTokenizer.fromFiles({ 'tokenizer.json': fileOf(checkpoint), ...others });
      const got = tokenizer.encode(text, { maxLength: 1000 });
      assert.deepEqual(got.tokens, [[...tokens]], `${checkpoint}, ${what}`);
      assert.deepEqual([...got.inputIds], [...ids], `${checkpoint}, ${what}`);
      assert.equal(tokenizer.decode(ids, { skipSpecialTokens: true }), decoded, `${checkpoint}, ${what}`);
      assert.equal(tokenizer.vocabularySize, size, `${checkpoint}, ${what}`);
    }
  });

  it('invalid tokens in additional files are refused with the file and the name', () => {
    const given = (files: Record<string, unknown>) => () =>
      PublicTokenizer.fromFiles({
        'tokenizer.json': fileOf('tiny-bert'),
        ...Object.fromEntries(Object.entries(files).map(([name, value]) => [name, JSON.stringify(value)])),
      });
    const config = (value: unknown) => given({ 'tokenizer_config.json': value });
    assertThrows(config({ added_tokens_decoder: { 400: '<e2>' } }), 'FORMAT', ['tokenizer_config.json.added_tokens_decoder.400', 'an object']);
    assertThrows(config({ added_tokens_decoder: { 400: { content: '<e2>', lstrip: 1 } } }), 'FORMAT', ['lstrip']);
    assertThrows(config({ extra_special_tokens: ['<e1>', 5] }), 'FORMAT', ['tokenizer_config.json.extra_special_tokens.1', 'an object']);
    assertThrows(config({ extra_special_tokens: '<e1>' }), 'FORMAT', ['extra_special_tokens']);
    const deep = encode(`{"extra_special_tokens":${'['.repeat(20_000)}${']'.repeat(20_000)}}`);
    const files = { 'tokenizer.json': fileOf('tiny-bert'), 'tokenizer_config.json': deep };
    assertThrows(() => PublicTokenizer.fromFiles(files), 'FORMAT', ['extra_special_tokens.0', 'an object']);
    assertThrows(config({ split_special_tokens: 'yes' }), 'FORMAT', ['split_special_tokens', 'true or false']);
    assertThrows(given({ 'special_tokens_map.json': [] }), 'FORMAT', ['special_tokens_map.json']);
    assertThrows(given({ 'added_tokens.json': { '<e1>': 'a' } }), 'FORMAT', ['added_tokens.json.<e1>']);
  });

  it('lists of words, and padding on either side', () => {
    interface WordCase extends Omit<Case, 'text' | 'pair'> {
      readonly words: readonly string[];
      readonly pair?: readonly string[];
      readonly of: readonly (number | null)[];
    }
    interface Filled {
      readonly texts: string[];
      readonly paddingSide: 'left' | 'right';
      readonly ids: number[][];
      readonly type_ids: number[][];
      readonly tokens: string[][];
      readonly attention_mask: number[][];
    }
    interface Run {
      readonly checkpoint?: string;
      readonly variant?: string;
      readonly cases: readonly WordCase[];
      readonly filled: readonly Filled[];
    }
    const { runs }: { runs: Run[] } = read('testdata/tokenizers/words.json');
    const { model, variants }: { model: unknown; variants: Variant[] } = read('testdata/tokenizers/variants.json');
    assert.isAbove(runs.length, 15);
    for (const { checkpoint, variant, cases, filled } of runs) {
      const parts = variants.find(({ name }) => name === variant)?.parts;
      const file = checkpoint ? fileOf(checkpoint) : encode({ version: '1.0', added_tokens: [], model, ...parts });
      const tokenizer = PublicTokenizer.fromFiles({ 'tokenizer.json': file });
      for (const { words, pair, ids, typeIds, tokens, offsets, of, truncated, ...options } of cases) {
        const got = tokenizer.encodeWords(pair ? [[words, pair]] : [words], options);
        const told = `${checkpoint ?? variant}: ${JSON.stringify([words, pair, options])}`;
        assert.deepEqual([...got.inputIds], [...ids], `${told}: ids`);
        assert.deepEqual([...got.tokenTypeIds], [...(typeIds ?? ids.map(() => 0))], `${told}: types`);
        assert.deepEqual([got.tokens, got.offsets, got.words], [[tokens], [offsets], [of]], told);
        assert.deepEqual(got.truncated, [truncated ?? false], `${told}: truncated`);
      }
      for (const { texts, paddingSide, ids, type_ids, tokens, attention_mask } of filled) {
        const got = tokenizer.encode(texts, { paddingSide });
        const expected = [ids.flat(), type_ids.flat(), attention_mask.flat(), tokens];
        assert.deepEqual([[...got.inputIds], [...got.tokenTypeIds], [...got.attentionMask], got.tokens], expected, `${checkpoint ?? variant}`);
        got.offsets.flat().forEach((place, i) => assert.isTrue(place === null || got.attentionMask[i] === 1));
      }
    }
  });

  it('lists of words: one, several, pairs; padding belongs to no word', () => {
    const tokenizer = PublicTokenizer.fromFiles({ 'tokenizer.json': fileOf('tiny-bert') });
    const [one, several, pairs] = [['a', 'b c'], [['a', 'b c'], ['d']], [[['a', 'b c'], ['d']]] as [string[], string[]][]];
    assert.deepEqual(tokenizer.encodeWords(one).words, [[null, 0, 1, 1, null]]);
    assert.deepEqual(tokenizer.encodeWords(several).words, [
      [null, 0, 1, 1, null],
      [null, 0, null, null, null],
    ]);
    assert.deepEqual(tokenizer.encodeWords(several, { paddingSide: 'left' }).words[1], [null, null, null, 0, null]);
    assert.deepEqual(tokenizer.encodeWords(pairs).words, [[null, 0, 1, 1, null, 0, null]]);
    assert.deepEqual(tokenizer.encodeWords([]).dims, [0, 0]);
    assert.deepEqual(tokenizer.encodeWords([[]]).words, [[null, null]]);
    const given = (value: unknown) => throws(() => tokenizer.encodeWords(value as string[]), 'ARGUMENT').message;
    assert.match(given('a b'), /texts is/);
    assert.match(given(['a', 1]), /texts\[1\] is/);
    assert.match(given([['a'], 'b']), /texts\[1\] is/);
    assert.match(given(new Array(4e9)), /texts\[0\] is/);
    assert.match(given([[['a'], ['b'], ['c']]]), /texts\[0\] has 3/);
    assert.match(given([[['a'], [2]]]), /texts\[0\]\[1\]\[0\] is/);
    const side = throws(() => tokenizer.encode('a', { paddingSide: 'up' as 'left' }), 'CONFIG').message;
    assert.include(side, 'paddingSide');
  });

  it('the truncated part of a long text is skipped only if the result is the same', () => {
    const { model, variants }: { model: unknown; variants: Variant[] } = read('testdata/tokenizers/variants.json');
    const draws: Draws = read('testdata/tokenizers/draws.json');
    let count = 0;
    const counted: typeof earlyEnd.tokensOf = (...args) => {
      const part = earlyEnd.tokensOf(...args);
      if (part) ++count;
      return part;
    };
    const tokens = [
      ...['a b', 'b▁a', 'xy z', 'caxac b'].map((content) => ({ content })),
      { content: 'zz', rstrip: true },
      { content: ' yy', single_word: true },
      { content: '<m>', lstrip: true, rstrip: true },
    ];
    const added = tokens.map((token, id) => ({ id, lstrip: false, rstrip: false, single_word: false, normalized: false, special: true, ...token }));
    const metaspace = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always' };
    const replace = (text: string, content: string) => ({ normalizer: { type: 'Replace', pattern: { String: text }, content } });
    const split = (pattern: object, behavior: string, invert = false) => ({ pre_tokenizer: { type: 'Split', pattern, behavior, invert } });
    const byteLevel = { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true };
    const white = { type: 'WhitespaceSplit' };
    const sequence = (...pretokenizers: object[]) => ({ pre_tokenizer: { type: 'Sequence', pretokenizers } });
    const unigram = variants.find(({ name }) => name === 'Unigram')!.parts['model'];
    const parts: object[] = [
      ...variants.map((variant) => variant.parts),
      ...added.map((token) => ({ pre_tokenizer: byteLevel, added_tokens: [token] })),
      // Every single character, known or unknown, is a token, so a cut inside an added token shows.
      ...added.map((token) => ({ pre_tokenizer: white, added_tokens: [token], model: unigram })),
      ...added.map((token) => ({ pre_tokenizer: white, added_tokens: [{ ...token, normalized: true }] })),
      ...[metaspace, { ...metaspace, prepend_scheme: 'first' }, { ...metaspace, split: false }].flatMap((each) => [
        { pre_tokenizer: each },
        sequence(white, each),
        sequence(each, white),
        sequence(each, byteLevel),
      ]),
      ...['▁', ' ', 'x', ''].flatMap((content) => [white, metaspace, byteLevel].map((each) => ({ ...replace(' ', content), pre_tokenizer: each }))),
      ...['b c', 'c', '  '].map((text) => ({ ...replace(text, '▁'), pre_tokenizer: white })),
      ...['Strip', 'Prepend'].map((type) => ({ normalizer: { type, strip_left: true, strip_right: true, prepend: 'x' }, pre_tokenizer: byteLevel })),
      ...['Isolated', 'Removed', 'MergedWithNext', 'MergedWithPrevious', 'Contiguous'].flatMap((behavior) => [
        split({ Regex: '\\s+' }, behavior),
        split({ String: ' ' }, behavior),
        split({ String: 'a' }, behavior, true),
      ]),
      sequence({ type: 'UnicodeScripts' }, byteLevel),
      sequence({ type: 'FixedLength', length: 5 }, white),
      sequence({ type: 'Digits', individual_digits: false }, byteLevel),
    ];
    const files = [
      ...checkpoints.map((name) => [name, fileOf(name)] as const),
      ...parts.map((part) => [JSON.stringify(part).slice(0, 300), encode({ version: '1.0', added_tokens: [], model, ...part })] as const),
    ];
    const fillers = [
      'ab cd ',
      'word ',
      'a b ',
      'x 12 34 ',
      'Ελλάδα και ',
      'и слово ',
      'שלום עולם ',
      'zz  ',
      '<m>  ',
      ' yy ',
      'é e\u0301 ',
      'long'.repeat(30),
      ' \u0301x ',
      '中文的文本，没有空格。',
      '日本語のがぱテキスト、',
      '한국어 텍스트와 글자 ',
      'ภาษาไทยกก กขค',
      '学校か\u3099ﾊﾟ々〇',
    ];
    try {
      files.forEach(([name, file], run) => {
        const tokenizer = new Tokenizer({ tokenizer: file });
        for (let i = 0; i < 5; ++i) {
          const g = new Generator(0xea510000 + 16 * run + i);
          // Added tokens of the file occur at every place where reading may stop.
          const own = tokens.filter(({ content }) => name.includes(JSON.stringify(content))).map(({ content }) => `${content} ab `);
          const some = [...own, g.pick(fillers), g.pick(fillers), g.pick(fillers), 'ab cd '];
          let text = '';
          // Few tokens in many characters, so that tokens near the end of the read part count.
          const long = () => (i > 0 ? 'w'.repeat(60 + g.below(90)) : '');
          while (text.length < 1500) text += g.below(6) === 0 ? drawText(g, draws) : long() + g.pick(some);
          const [most, plain] = [g.below(i > 0 ? 5 : 20), { truncation: true, addSpecialTokens: false }];
          const pair = [text, text.slice(g.below(700))] as [string, string];
          for (const truncationSide of ['right', 'left'] as const) {
            const of = (maxLength: number) => tokenizer.encode([text, pair[1]], { ...plain, maxLength, truncationSide });
            const both = (maxLength: number) => tokenizer.encode([pair], { ...plain, maxLength, truncationSide });
            useEarlyEnd(undefined);
            const expected = [of(most), both(most)];
            useEarlyEnd({ ...earlyEnd, tokensOf: counted });
            assert.deepEqual([of(most), both(most)], expected, `${name}: ${JSON.stringify(text)}, ${most} from the ${truncationSide}`);
          }
        }
      });
    } finally {
      useEarlyEnd(undefined);
    }
    assert.isAbove(count, 1000);
    host.note(`${count} of ${files.length * 5 * 8} ends were skipped`);
  });

  /** Creates a Unigram model of short strings whose scores make many segmentations almost equally likely. */
  function unspacedModel(g: Generator, letters: string) {
    const vocab: [string, number][] = [['<unk>', 0], ['▁', -3]]; // prettier-ignore
    const add = (piece: string) => vocab.push([piece, -1 - piece.length - g.below(400) / 100]);
    for (const a of letters) {
      if (g.below(9) > 0) add(a);
      for (const b of letters) {
        if (g.below(2) > 0) add(a + b);
        for (const c of letters) if (g.below(4) === 0) add(a + b + c);
      }
    }
    return { type: 'Unigram', unk_id: 0, vocab };
  }

  it('if reading stops within a word, only tokens that do not depend on the rest are used', () => {
    const metaspace = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'never' };
    let differ = 0;
    try {
      for (let i = 0; i < 80; ++i) {
        const g = new Generator(0xea530000 + i);
        const words = Array.from({ length: 6 }, () => Array.from({ length: 40 + g.below(60) }, () => g.pick(['一', '二', '三'])).join(''));
        // Words, their prefixes and suffixes, and words with the start of another: the first tokens then depend on the
        // end of the text.
        const vocab: [string, number][] = [['<unk>', 0], ...['一', '二', '三'].map((each): [string, number] => [each, -20])];
        const add = (piece: string) => vocab.push([piece, -g.below(1000) / 100]);
        for (const word of words)
          for (const other of words) {
            const at = 1 + g.below(word.length - 1);
            [word, word.slice(0, at), word.slice(at), other + word.slice(0, at)].forEach(add);
          }
        const model = { type: 'Unigram', unk_id: 0, vocab: [...new Map(vocab)] };
        const tokenizer = new Tokenizer({ tokenizer: encode({ version: '1.0', added_tokens: [], model, pre_tokenizer: metaspace }) });
        let text = '';
        while (text.length < 1200) text += g.pick(words);
        const options = { maxLength: 1 + g.below(4), truncation: true, addSpecialTokens: false };
        useEarlyEnd(undefined);
        const expected = tokenizer.encode([text], options);
        const beginning = tokenizer.encode([text.slice(0, 16 * options.maxLength + 256)], options);
        if (beginning.inputIds.join() !== expected.inputIds.join()) ++differ;
        useEarlyEnd(earlyEnd);
        assert.deepEqual(tokenizer.encode([text], options), expected, text);
      }
    } finally {
      useEarlyEnd(undefined);
    }
    assert.isAbove(differ, 2, 'texts whose first tokens differ if read alone');
  });

  it('the rest of a text without spaces is skipped only if the result is the same', () => {
    const parts = [
      { pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always' } },
      { pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: false } },
      { pre_tokenizer: { type: 'WhitespaceSplit' } },
      { pre_tokenizer: null },
      { pre_tokenizer: { type: 'Digits', individual_digits: true }, normalizer: { type: 'NFKC' } },
      { pre_tokenizer: { type: 'BertPreTokenizer' }, normalizer: { type: 'NFD' } },
      { pre_tokenizer: { type: 'FixedLength', length: 7 } },
      {
        pre_tokenizer: null,
        added_tokens: [{ id: 0, content: '一二', lstrip: false, rstrip: false, single_word: false, normalized: false, special: true }],
      },
      {
        pre_tokenizer: null,
        added_tokens: [{ id: 0, content: '三', lstrip: false, rstrip: false, single_word: true, normalized: true, special: true }],
      },
    ];
    let count = 0;
    const counted: typeof earlyEnd.tokensOf = (...args) => {
      const part = earlyEnd.tokensOf(...args);
      if (part) ++count;
      return part;
    };
    try {
      for (const [run, part] of parts.entries())
        for (let i = 0; i < 20; ++i) {
          const g = new Generator(0xea520000 + 32 * run + i);
          const model = unspacedModel(g, g.pick(['一二三', '一二三四五', 'かが한글', 'กขค']));
          const tokenizer = new Tokenizer({ tokenizer: encode({ version: '1.0', added_tokens: [], model, ...part }) });
          let text = '';
          while (text.length < 1500)
            text += g.pick([
              '一',
              '二',
              '三',
              '四',
              '五',
              'か',
              'が',
              '한',
              '글',
              'ก',
              'ข',
              'ค',
              '一二三',
              '三一一',
              ...(i % 4 ? [] : ['，', ' ', 'a']),
            ]);
          const options = { maxLength: 1 + g.below(12), truncation: true, addSpecialTokens: false };
          for (const truncationSide of ['right', 'left'] as const) {
            useEarlyEnd(undefined);
            const expected = tokenizer.encode([text], { ...options, truncationSide });
            useEarlyEnd({ ...earlyEnd, tokensOf: counted });
            assert.deepEqual(tokenizer.encode([text], { ...options, truncationSide }), expected, `${JSON.stringify(part)} ${text}`);
          }
        }
    } finally {
      useEarlyEnd(undefined);
    }
    assert.isAbove(count, 80);
    host.note(`${count} of ${2 * 20 * parts.length} ends without a space were skipped`);
  });

  it('truncating a text to 256 tokens costs the same whatever its length, also in scripts without spaces', () => {
    const sentences = {
      Chinese: '我们今天去学校学习，然后回家吃饭。天气很好，大家都很高兴。',
      Japanese: '今日は学校で日本語を勉強して、家に帰りました。天気がよくて、みんな喜んでいます。',
      Korean: '오늘 우리는 학교에서 공부하고 집으로 돌아왔습니다. 날씨가 좋아서 모두 기뻐합니다. ',
      Thai: 'วันนี้พวกเราไปเรียนหนังสือที่โรงเรียน แล้วกลับบ้านไปกินข้าว อากาศดีมาก ทุกคนมีความสุข ',
    };
    try {
      useEarlyEnd(earlyEnd);
      const all = Object.values(sentences).join('');
      const model = unspacedModel(new Generator(1), [...new Set(all)].slice(0, 60).join(''));
      for (const each of all) if (!model.vocab.some(([piece]) => piece === each)) model.vocab.push([each, -9]);
      const pretokenizers = [{ type: 'WhitespaceSplit' }, { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always' }];
      const multilingual = {
        version: '1.0',
        added_tokens: [],
        model,
        normalizer: { type: 'NFKC' },
        pre_tokenizer: { type: 'Sequence', pretokenizers },
      };
      const files = ['tiny-bert', 'tiny-mpnet', 'tiny-roberta', 'tiny-modernbert'].map((name) => [name, fileOf(name)] as const);
      for (const [name, file] of [...files, ['Unigram', encode(multilingual)] as const]) {
        const tokenizer = new Tokenizer({ tokenizer: file });
        for (const [language, sentence] of Object.entries(sentences)) {
          const steps = (characters: number) => {
            const text = sentence.repeat(Math.ceil(characters / sentence.length));
            const budget = new Budget(text.length);
            const { ids } = tokenizer.split(text, 256, 'right', budget);
            assert.isAbove(ids.length, 256);
            return budget.steps;
          };
          steps(40_000); // fills BPE's word cache
          assert.equal(steps(200_000), steps(40_000), `${name}, ${language}`);
        }
      }
    } finally {
      useEarlyEnd(undefined);
    }
  });

  it('a token across the place where reading stops is found', () => {
    const { variants }: { variants: Variant[] } = read('testdata/tokenizers/variants.json');
    const { model } = variants.find(({ name }) => name === 'Unigram')!.parts;
    const token = { id: 0, content: 'caxac b', lstrip: false, rstrip: false, single_word: false, normalized: false, special: true };
    const tokenizer = new Tokenizer({
      tokenizer: encode({ version: '1.0', added_tokens: [token], model, pre_tokenizer: { type: 'WhitespaceSplit' } }),
    });
    const text = `${'w'.repeat(320)}caxac b ${'ab cd '.repeat(200)}`;
    try {
      useEarlyEnd(earlyEnd);
      assert.equal(tokenizer.encode([text], { maxLength: 2, truncation: true }).tokens[0][1], 'caxac b');
    } finally {
      useEarlyEnd(undefined);
    }
  });

  it('decoders return the same text as Hugging Face tokenizers', () => {
    interface Run {
      readonly name?: string;
      readonly checkpoint?: string;
      readonly decoder?: object | null;
      readonly cases: readonly (readonly [ids: number[], whole: string, plain: string])[];
    }
    const { file, runs }: { file: object; runs: Run[] } = read('testdata/tokenizers/decoders.json');
    assert.isAbove(runs.length, 15);
    for (const { name, checkpoint, decoder, cases } of runs) {
      const tokenizer = checkpoint ? tokenizerOf(checkpoint) : new Tokenizer({ tokenizer: encode({ version: '1.0', ...file, decoder }) });
      for (const [ids, ...expected] of cases)
        assert.deepEqual([tokenizer.decode(ids), tokenizer.decode(ids, true)], expected, `${name ?? checkpoint}: ${ids.join()}`);
    }
    for (const decoder of [
      { type: 'Metaspace', replacement: '▁▁', prepend_scheme: 'always' },
      { type: 'Strip', content: '', start: 1, stop: 0 },
    ]) {
      const tokenizer = new Tokenizer({ tokenizer: encode({ version: '1.0', ...file, decoder }) });
      assert.include(throws(() => tokenizer.decode([1]), 'FORMAT').message, 'one character');
    }
  });

  it('random texts, with every combination of parts', () => {
    const { model, variants }: { model: unknown; variants: Variant[] } = read('testdata/tokenizers/variants.json');
    const draws: Draws = read('testdata/tokenizers/draws.json');
    const parts = new Map(variants.map((variant) => [variant.name, variant.parts]));
    assert.isAbove(draws.runs.length, 130);
    draws.runs.forEach(({ checkpoint, variants = [], digest }, run) => {
      const merged = variants.map((name) => parts.get(name)!).reduce((before, more) => ({ ...before, ...more }), {});
      const tokenizer = checkpoint
        ? tokenizerOf(checkpoint)
        : new Tokenizer({ tokenizer: encode({ version: '1.0', added_tokens: [], model, ...merged }) });
      assert.equal(digestOf(tokenizer, draws, run), digest, checkpoint ?? variants.join(', '));
    });
  });

  it('tokenizer_config.json overrides tokenizer.json as in transformers', () => {
    const { settings } = read('testdata/tokenizers/settings.json') as { readonly settings: readonly Settings[] };
    assert.lengthOf(settings, 7);
    for (const { checkpoint, changes, config, cases } of settings) {
      const tokenizer = new Tokenizer({ tokenizer: fileOf(checkpoint), tokenizerConfig: encode(config) });
      for (const c of cases) run(tokenizer, c, `${checkpoint}, ${JSON.stringify(changes)}`);
    }
  });

  it("every code point of Unicode, independent of the engine's Unicode version", () => {
    const { chunk, starts, sweeps }: { chunk: number; starts: number[]; sweeps: Sweep[] } = read('testdata/tokenizers/code_points.json');
    const texts = starts.map((start) => {
      let text = '';
      for (let code = start; code < start + chunk; code++) if (code < 0xd800 || code >= 0xe000) text += `a${String.fromCodePoint(code)}a\n`;
      return readText(text);
    });
    for (const { name, normalizer, preTokenizer, planes } of sweeps) {
      const normalize = normalizer && readNormalizer(new Section(normalizer, name));
      const cut = preTokenizer && readPreTokenizer(new Section(preTokenizer, name));
      const digests = planes.map(() => 0x811c9dc5);
      starts.forEach((start, i) => {
        let digest = digests[start >> 16];
        if (normalize) for (const code of normalize(texts[i]).codes) digest = Math.imul(digest ^ code, 0x01000193);
        if (cut)
          for (const { from, to } of cut([{ text: texts[i], from: 0, to: texts[i].codes.length }]))
            digest = Math.imul(digest ^ (to - from), 0x01000193);
        digests[start >> 16] = digest;
      });
      assert.deepEqual(
        digests.map((digest) => digest >>> 0),
        planes,
        `${name}, by plane`,
      );
    }
  });
});

/**
 * Draws a text from many Unicode ranges; native-tests/io/tokenizer_goldens_test.cpp and
 * testdata/make/goldens/tokenizer_draws.py draw the same.
 */
function drawText(g: Generator, { counts, pieces, ranges }: Draws): string {
  let text = '';
  for (let n = g.pick(counts); n > 0; n--) {
    const kind = g.below(10);
    if (kind < 3) text += g.pick(pieces);
    else if (kind === 3) text += ' ';
    else {
      const [first, last] = g.pick(ranges);
      text += String.fromCodePoint(first + g.below(last - first + 1));
    }
  }
  return text;
}

/**
 * Hashes the encodings of random texts: ids, types, tokens, offsets in characters, truncation. A refused text counts as
 * one word.
 */
function digestOf(tokenizer: Tokenizer, draws: Draws, run: number): number {
  let digest = 0x811c9dc5;
  const fold = (word: number) => void (digest = Math.imul(digest ^ word, 0x01000193));
  for (let i = 0; i < draws.texts; i++) {
    const g = new Generator(draws.seed + run * draws.texts + i);
    const texts: [string, ...string[]] = [drawText(g, draws)];
    if (g.below(5) === 0) texts.push(drawText(g, draws));
    const maxLength = g.below(4) === 0 ? 8 + g.below(8) : all.maxLength;
    let encoding;
    try {
      encoding = tokenizer.encode([texts.length > 1 ? (texts as [string, string]) : texts[0]], { maxLength, truncation: true });
    } catch (error) {
      assert.equal((error as AttnError).code, 'FORMAT', 'an unknown token, and no unk_token');
      fold(0xdead);
      continue;
    }
    const { tokens, offsets, inputIds, tokenTypeIds, truncated } = encoding;
    tokens[0].forEach((token, t) => {
      const codes = Array.from(token, (c) => c.codePointAt(0)!);
      for (const word of [inputIds[t], tokenTypeIds[t], codes.length, ...codes]) fold(word);
      // An offset in a pair does not show to which text it belongs.
      const places = offsets[0][t]?.map((end) => Array.from(texts[0].slice(0, end)).length + 1);
      if (texts.length === 1) (places ?? [0, 0]).forEach(fold);
    });
    fold(inputIds.length);
    fold(truncated[0] ? 1 : 0);
  }
  return digest >>> 0;
}

describe('tokenizer, texts and pairs', () => {
  let bert: Tokenizer;
  before(readFiles);
  before(() => void (bert = tokenizerOf('tiny-bert')));

  it('several texts are padded to the longest, and each is encoded as if alone', () => {
    const texts = ['The film was not bad at all.', '', 'It was [MASK]!', '😀 café'];
    const together = bert.encode(texts, all);
    const [rows, length] = together.dims;
    assert.equal(rows, texts.length);
    texts.forEach((text, row) => {
      const alone = bert.encode([text], all);
      const used = alone.dims[1];
      const at = row * length;
      assert.deepEqual([...together.inputIds.subarray(at, at + used)], [...alone.inputIds]);
      assert.deepEqual(together.tokens[row].slice(0, used), alone.tokens[0]);
      assert.deepEqual(together.offsets[row].slice(0, used), alone.offsets[0]);
      assert.isTrue(together.inputIds.subarray(at + used, at + length).every((id) => id === bert.tokenToId('[PAD]')));
      assert.deepEqual(
        [...together.attentionMask.subarray(at, at + length)],
        Array.from({ length }, (_, i) => (i < used ? 1 : 0)),
      );
      assert.isTrue(
        together.offsets[row].slice(used).every((place) => place === null) && together.tokens[row].slice(used).every((t) => t === '[PAD]'),
      );
    });
    assert.deepEqual(together.truncated, [false, false, false, false]);
  });

  it('the padding token comes from tokenizer_config.json, else from tokenizer.json, else it is [PAD]', () => {
    const tokenizer = fileOf('tiny-bert');
    const padded = (config?: object, padding?: object) => {
      const file = { ...JSON.parse(new TextDecoder().decode(tokenizer)), padding };
      const made = new Tokenizer({ tokenizer: encode(file), ...(config && { tokenizerConfig: encode(config) }) });
      const { tokens, tokenTypeIds } = made.encode(['a', ''], all);
      return [tokens[1][2], tokenTypeIds[5]];
    };
    assert.deepEqual(padded(), ['[PAD]', 0]);
    assert.deepEqual(padded({}, { pad_token: '[MASK]', pad_type_id: 1 }), ['[MASK]', 1]);
    assert.deepEqual(padded({ pad_token: '[UNK]' }, { pad_token: '[MASK]' }), ['[UNK]', 0]);
    assert.deepEqual(padded({ pad_token: { content: '[UNK]' } }), ['[UNK]', 0]);
    assert.deepEqual(padded({ pad_token: 'not in the vocabulary' }), ['not in the vocabulary', 0]);
  });

  it('an empty list of texts, and texts without tokens', () => {
    const none = bert.encode([], all);
    assert.deepEqual([none.dims, none.inputIds.length, none.tokens], [[0, 0], 0, []]);
    const empty = new Tokenizer({ tokenizer: encode({ model: { type: 'Unigram', unk_id: 0, vocab: [['<unk>', 0]] } }) }).encode(['', ''], all);
    assert.deepEqual(
      [empty.dims, empty.tokens, empty.offsets],
      [
        [2, 0],
        [[], []],
        [[], []],
      ],
    );
  });

  it('an overlong text is truncated, or is OUT_OF_RANGE with its index', () => {
    assert.deepEqual(bert.encode(['a', 'a b c'], { maxLength: 4, truncation: true }).truncated, [false, true]);
    assert.deepEqual(bert.encode(['a', 'a b'], { maxLength: 4, truncation: false }).dims, [2, 4]);
    const error = throws(() => bert.encode(['a', 'a b c'], { maxLength: 4, truncation: false }), 'OUT_OF_RANGE');
    assert.deepInclude(error.detail, { index: 1, tokens: 5, maxLength: 4 });
    const room = throws(() => bert.encode([['a', 'b']], { maxLength: 2, truncation: true }), 'OUT_OF_RANGE');
    assert.include(room.message, 'at least 3. There is no room for the special tokens.');
    assert.deepEqual(bert.encode([['a', 'b']], { maxLength: 3, truncation: true }).tokens, [['[CLS]', '[SEP]', '[SEP]']]);
  });

  it('text after the last token that fits is not read', () => {
    const model = { type: 'WordPiece', unk_token: '?', continuing_subword_prefix: '##', max_input_chars_per_word: 9, vocab: { a: 0 } };
    const tokenizer = new Tokenizer({ tokenizer: encode({ model, pre_tokenizer: { type: 'WhitespaceSplit' } }) });
    const cut = tokenizer.encode(['a a a x'], { maxLength: 2, truncation: true });
    assert.deepEqual([[...cut.inputIds], cut.truncated], [[0, 0], [true]]);
    const whole = tokenizer.encode(['a a'], { maxLength: 2, truncation: true });
    assert.deepEqual([[...whole.inputIds], whole.truncated], [[0, 0], [false]]);
    throws(() => tokenizer.encode(['a a a x'], { maxLength: 4, truncation: true }), 'FORMAT');
    // The lengths of both texts decide: 8 and 9 are cut to 3 and 4, 9 and 8 to 4 and 3.
    for (const [first, second, kept] of [
      [8, 9, 3],
      [9, 8, 4],
    ]) {
      const { offsets } = tokenizer.encode([['a '.repeat(first), 'a '.repeat(second)]], { maxLength: 7, truncation: true });
      assert.equal(
        offsets[0].findIndex((place, i) => i > 0 && place![0] === 0),
        kept,
      );
    }
  });

  it('padding larger than the engine can allocate is MEMORY', () => {
    const { Int32Array: own } = globalThis;
    try {
      const small = { construct: (target: typeof Int32Array, [size]: [number]) => (size > 1000 ? new Array(-1) : new target(size)) };
      globalThis.Int32Array = new Proxy(own, small);
      bert.encode(['a '.repeat(500)], all);
      const error = throws(() => bert.encode(['a '.repeat(500), ''], all), 'MEMORY');
      assert.instanceOf(error.cause, RangeError);
    } finally {
      globalThis.Int32Array = own;
    }
  });

  it('more tokens than the module can address are MEMORY', () => {
    throws(() => bert.encode(['a '.repeat(2 ** 16), ...Array(2 ** 14).fill('')], all), 'MEMORY');
  });

  it('a lone surrogate becomes U+FFFD', () => {
    const mirror = new Tokenizer({ tokenizer: encode({ model: { type: 'Unigram', unk_id: 0, vocab: [['<unk>', 0]] } }) });
    const { tokens, offsets } = mirror.encode(['a\ud83d b\ude00\ud83d\ude00\ud83d'], all);
    assert.deepEqual(tokens, [['a\ufffd b\ufffd😀\ufffd']]);
    assert.deepEqual(offsets, [[[0, 8]]]);
  });

  it('names of Object.prototype are words like any other', () => {
    const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf'];
    for (const name of names) assert.isUndefined(bert.tokenToId(name), name);
    const vocab = '{"[UNK]":0,"constructor":1,"__proto__":2,"__":3}';
    const file = `{"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"","max_input_chars_per_word":100,"vocab":${vocab}}}`;
    const tokenizer = new Tokenizer({ tokenizer: encode(file) });
    assert.deepEqual([tokenizer.tokenToId('constructor'), tokenizer.tokenToId('__proto__'), tokenizer.tokenToId('toString')], [1, 2, undefined]);
    assert.deepEqual([tokenizer.idToToken(2), tokenizer.idToToken(9)], ['__proto__', undefined]);
    assert.deepEqual([...tokenizer.encode(['__proto__constructor__'], all).inputIds], [2, 1, 3]);
    assert.deepEqual([...tokenizer.encode(['toString'], all).inputIds], [0]);
  });

  it('properties that others add to Object.prototype are not read as part of a file', () => {
    const before = bert.encode(['Words'], all);
    const prototype = Object.prototype as unknown as Record<string, unknown>;
    try {
      Object.assign(prototype, { normalizer: { type: 'Prepend', prepend: 'x' }, padding: { pad_token: '[MASK]' }, Regex: ' {2,}' });
      const file =
        '{"model":{"type":"WordPiece","unk_token":"a","continuing_subword_prefix":"##","max_input_chars_per_word":9,"vocab":{"a":0,"x":1}}}';
      const tokenizer = new Tokenizer({ tokenizer: encode(file) });
      assert.deepEqual(tokenizer.encode(['a', ''], all).tokens, [['a'], ['[PAD]']]);
      assert.deepEqual(tokenizerOf('tiny-bert').encode(['Words'], all), before);
    } finally {
      for (const name of ['normalizer', 'padding', 'Regex']) delete prototype[name];
    }
  });

  it('every id has a token, and every token has an id', () => {
    for (const name of checkpoints) {
      const tokenizer = tokenizerOf(name);
      const size = vocabularySize(name);
      for (let id = 0; id < size; id++) assert.equal(tokenizer.tokenToId(tokenizer.idToToken(id)!), id, `${name} ${id}`);
      for (const id of [-1, 0.5, size, NaN]) assert.isUndefined(tokenizer.idToToken(id), `${name} ${id}`);
    }
  });

  it('idToToken gives an added token that is matched after normalisation in its normalised form', () => {
    const model = { type: 'WordLevel', unk_token: '?', vocab: { '?': 0 } };
    const added = { id: 1, content: 'New York', single_word: false, lstrip: false, rstrip: false, normalized: true };
    const tokenizer = new Tokenizer({ tokenizer: encode({ model, normalizer: { type: 'Lowercase' }, added_tokens: [added] }) });
    assert.deepEqual([tokenizer.idToToken(1), tokenizer.tokenToId('New York'), tokenizer.tokenToId('new york')], ['new york', 1, undefined]);
    assert.deepEqual(tokenizer.encode(['NEW york'], all).tokens, [['new york']]);
  });

  it('lowerCases depends on the normalizer, not on the vocabulary', () => {
    const model = { type: 'WordPiece', unk_token: '?', continuing_subword_prefix: '##', max_input_chars_per_word: 9, vocab: { '?': 0 } };
    const made = (normalizer?: object) => new Tokenizer({ tokenizer: encode({ model, normalizer }) }).lowerCases;
    assert.isTrue(made({ type: 'Lowercase' }));
    assert.isTrue(made({ type: 'Sequence', normalizers: [{ type: 'NFKC' }, { type: 'Lowercase' }, { type: 'Prepend', prepend: '_' }] }));
    assert.isFalse(made());
    assert.isFalse(made({ type: 'NFKC' }));
    const one = { type: 'Replace', pattern: { String: 'A' }, content: 'a' };
    assert.isFalse(made(one), 'replaces one capital letter only');
    for (const name of checkpoints) {
      const tokenizer = tokenizerOf(name);
      const same = tokenizer.encode(['The'], all).inputIds.join() === tokenizer.encode(['the'], all).inputIds.join();
      assert.equal(tokenizer.lowerCases, same, name);
    }
  });
});

describe('tokenizer, any text', () => {
  before(readFiles);

  const scripts = [
    ...[
      ' !',
      'az',
      'AZ',
      '09',
      '!/',
      'À\u024f',
      '\u0300\u036f',
      'Αώ',
      'Ая',
      '\u0590\u06ff',
      '\u0900\u0d7f',
      '\u1100\u11ff',
      '가힣',
      'ぁヿ',
      '一鿿',
      '\u2000\u206f',
    ],
    ...['😀🙏', '\u{1f1e6}\u{1f1ff}', '\u{e0100}\u{e01ef}', '\0\u001f', '\ud800\udfff', '\ue000\ufffd'],
  ];

  function draw(generator: Generator): string {
    let text = '';
    for (let n = generator.below(40); n > 0; n--) {
      const script = Array.from(generator.pick(scripts), (c) => c.codePointAt(0)!);
      const [first, last] = [script[0], script[script.length - 1]];
      text += generator.oneIn(30) ? '[MASK]' : String.fromCodePoint(first + generator.below(last - first + 1));
    }
    return text;
  }

  for (const name of checkpoints)
    it(`${name}: offsets ascend, stay within the text, split no character, and lie within their words`, () => {
      const tokenizer = tokenizerOf(name);
      const generator = new Generator(11);
      for (let round = 0; round < 300; round++) {
        const text = draw(generator);
        const { offsets, tokens, inputIds } = tokenizer.encode([text], all);
        let [start, end] = [0, 0];
        offsets[0].forEach((place, i) => {
          const told = `${JSON.stringify(text)}: ${tokens[0][i]} at ${place}`;
          assert.isBelow(inputIds[i], vocabularySize(name), told);
          if (!place) return;
          assert.isTrue(place[0] >= start && place[1] >= end && place[0] <= place[1] && place[1] <= text.length, told);
          for (const at of place) assert.isFalse(at > 0 && text.codePointAt(at - 1)! > 0xffff, told);
          [start, end] = place;
        });
      }
    });

  it('long runs of combining marks are ordered as by the engine, with correct offsets', () => {
    const g = new Generator(64);
    // Many combining classes, two that decompose, and two that nothing is reordered across.
    const marks = ['\u0301', '\u0308', '\u0323', '\u0327', '\u0315', '\u0345', '\u0f71', '\u093c', '\u3099', '\u0344', '\u0f73', '\u20dd', '\u0903'];
    const without = (some: readonly string[]) => marks.filter((mark) => !some.includes(mark));
    for (const form of ['NFC', 'NFD', 'NFKC', 'NFKD'])
      for (const kinds of [marks, without(['\u20dd', '\u0903']), ['\u0345', '\u0301'], ['\u0301', '\u20dd'], ['\u0301', '\u0300', '\u0323']])
        for (const length of [63, 64, 65, 400]) {
          const row = Array.from({ length }, () => kinds[g.below(kinds.length)]).join('');
          const text = `a${row}b ﬁ${row}`;
          const { codes, starts, ends } = readNormalizer(new Section({ type: form }, 'form'))(readText(text));
          assert.equal(stringOf(codes), text.normalize(form), `${form} of ${length}`);
          const b = codes.indexOf(98);
          assert.deepEqual([starts[0], starts[b], ends[b]], [0, length + 1, length + 2]);
          assert.lengthOf(starts, codes.length);
        }
  });

  it('words of plain text are slices of it', () => {
    const tokenizer = tokenizerOf('tiny-bert');
    const text = 'The film was bad, the worst of the year.';
    const { offsets, tokens } = tokenizer.encode([text], all);
    offsets[0].forEach((place, i) => place && assert.equal(text.slice(...place).toLowerCase(), tokens[0][i].replace(/^##/, '')));
    assert.equal(offsets[0].filter((place) => place).length, tokens[0].length - 2);
  });

  for (const name of checkpoints)
    it(`${name}: every prefix of a hard text can be encoded`, () => {
      const tokenizer = tokenizerOf(name);
      const text = ' I\u0307 n\u0303 👩‍👩‍👧 각 <mask> [MASK] क्ष\ud83d '.repeat(3);
      for (let end = 0; end <= text.length; end++) tokenizer.encode([text.slice(0, end)], all);
    });

  for (const name of ['tiny-bert', 'tiny-modernbert', 'tiny-xlm-roberta'])
    it(`${name}: the time for a long run of any character does not grow quadratically`, () => {
      const tokenizer = tokenizerOf(name);
      for (const unit of ['a', 'é', '\u0323\u0301', ' ', '!', '\u1100', '[MASK]']) {
        // The engine's own normalize() needs minutes for so many marks.
        const text = unit.repeat(2 ** (unit === '\u0323\u0301' ? 19 : 17) / unit.length);
        assert.equal(tokenizer.encode([text], { maxLength: 64, truncation: true }).truncated.length, 1);
      }
    });
});

/** The tokenizer is imported from the sources, and so is its error class. */
const throws = (call: () => unknown, code: ErrorCode): AttnError => assertThrows(call, code, [], SourceError);

describe('tokenizer, files that it refuses', () => {
  const wordPiece = { type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 100, vocab: { '[UNK]': 0 } };
  const file = (parts: object) => ({ version: '1.0', added_tokens: [], model: wordPiece, ...parts });
  const make = (value: unknown) => new Tokenizer({ tokenizer: encode(value) });
  const deep = (name: string, list: string) => {
    let part: object = { type: name };
    for (let i = 0; i < 64; i++) part = { type: 'Sequence', [list]: [part] };
    return part;
  };
  const bert = { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, lowercase: true };
  const bpe = { type: 'BPE', vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] };
  const added = { id: 0, content: 'x', single_word: false, lstrip: false, rstrip: false, normalized: false };
  const template = { type: 'TemplateProcessing', single: [], pair: [], special_tokens: {} };
  const textA = { Sequence: { id: 'A', type_id: 0 } };
  const replace = (wanted: string, content: string) => ({ type: 'Replace', pattern: { String: wanted }, content });
  const times = (count: number, part: object) => ({ type: 'Sequence', normalizers: Array(count).fill(part) });
  /** Builds sentencepiece's double array with a single rule, for 'a'. */
  const ruleForA = (content: string) => {
    const units = new Uint32Array(257);
    units[0] = 1 << 10;
    units[1 ^ 97] = 97 | 256 | ((1 ^ 97 ^ 98) << 10);
    units[98] = 2 ** 31;
    return {
      type: 'Precompiled',
      precompiled_charsmap: btoa(String.fromCharCode(...new Uint8Array(Uint32Array.of(4 * 257).buffer), ...new Uint8Array(units.buffer)) + content),
    };
  };

  it('minimal files are accepted', () => {
    make(file({}));
    make(file({ normalizer: null, pre_tokenizer: null, post_processor: null, model: bpe, added_tokens: [added] }));
    make({ model: { ...wordPiece, type: undefined } });
  });

  const refusals: readonly (readonly [what: string, code: ErrorCode, value: unknown, names?: string])[] = [
    ['nothing', 'FORMAT', ''],
    ['no JSON', 'FORMAT', '{"model":'],
    ['an array', 'FORMAT', []],
    ['null', 'FORMAT', 'null'],
    ['no model', 'FORMAT', {}, 'tokenizer.json.model'],
    ['another version', 'UNSUPPORTED', file({ version: '2.0' }), '2.0'],
    ['an unknown model', 'UNSUPPORTED', file({ model: { type: 'Lattice', vocab: {} } }), 'Lattice'],
    ['a model without a type', 'UNSUPPORTED', file({ model: { vocab: {} } })],
    ['a model type that is a name of Object.prototype', 'UNSUPPORTED', file({ model: { ...wordPiece, type: 'constructor' } }), 'constructor'],
    ['a vocabulary that is an array', 'FORMAT', file({ model: { ...wordPiece, vocab: [] } }), 'model.vocab'],
    ['an id below 0', 'FORMAT', file({ model: { ...wordPiece, vocab: { a: -1 } } }), 'vocab.a'],
    ['an id with a fraction', 'FORMAT', file({ model: { ...wordPiece, vocab: { a: 0.5 } } })],
    ['an id that is text', 'FORMAT', file({ model: { ...wordPiece, vocab: { a: '1' } } })],
    ['an id beyond 31 bits', 'FORMAT', file({ model: { ...wordPiece, vocab: { a: 2 ** 31 } } })],
    ['a word length below 0', 'FORMAT', file({ model: { ...wordPiece, max_input_chars_per_word: -1 } })],
    ['no unk_token', 'FORMAT', file({ model: { ...wordPiece, unk_token: undefined } }), 'unk_token'],
    ['a normalizer that is text', 'FORMAT', file({ normalizer: 'NFC' })],
    ['an unknown normalizer', 'UNSUPPORTED', file({ normalizer: { type: 'ByteMagic' } }), 'ByteMagic'],
    [
      'an unknown normalizer in a sequence',
      'UNSUPPORTED',
      file({ normalizer: { type: 'Sequence', normalizers: [bert, { type: 'Magic' }] } }),
      'Magic',
    ],
    ['normalizers nested too deep', 'UNSUPPORTED', file({ normalizer: deep('NFC', 'normalizers') })],
    ['an option of a normalizer missing', 'FORMAT', file({ normalizer: { ...bert, lowercase: undefined } }), 'lowercase'],
    ['an option that is not a boolean', 'FORMAT', file({ normalizer: { ...bert, clean_text: 1 } })],
    [
      'a regular expression in Replace',
      'UNSUPPORTED',
      file({ normalizer: { type: 'Replace', pattern: { Regex: '(a+)+$' }, content: '' } }),
      '(a+)+$',
    ],
    ['a long replacement', 'UNSUPPORTED', file({ normalizer: replace('a', 'b'.repeat(257)) }), 'normalizer.content'],
    ['a long Prepend', 'UNSUPPORTED', file({ normalizer: { type: 'Prepend', prepend: 'b'.repeat(257) } }), 'normalizer.prepend'],
    ['a character map with a long replacement', 'UNSUPPORTED', file({ normalizer: ruleForA('b'.repeat(257)) }), 'precompiled_charsmap'],
    [
      'an added token that normalisers make very long',
      'UNSUPPORTED',
      file({ normalizer: times(40, replace('a', 'aa')), added_tokens: [{ ...added, content: 'a', normalized: true }] }),
      'longer once it is normalized',
    ],
    ['a character map that is not base64', 'FORMAT', file({ normalizer: { type: 'Precompiled', precompiled_charsmap: '!' } })],
    ['an empty character map', 'FORMAT', file({ normalizer: { type: 'Precompiled', precompiled_charsmap: '' } })],
    ['a character map that is too short', 'FORMAT', file({ normalizer: { type: 'Precompiled', precompiled_charsmap: 'AAEAAAA=' } })],
    ['a character map whose text is not UTF-8', 'FORMAT', file({ normalizer: { type: 'Precompiled', precompiled_charsmap: 'BAAAAAAAAAD/' } })],
    ['an unknown pre-tokenizer', 'UNSUPPORTED', file({ pre_tokenizer: { type: 'Chat' } }), 'Chat'],
    ['pieces of zero characters', 'FORMAT', file({ pre_tokenizer: { type: 'FixedLength', length: 0 } }), 'pre_tokenizer.length is 0'],
    ['a delimiter of two characters', 'FORMAT', file({ pre_tokenizer: { type: 'CharDelimiterSplit', delimiter: '__' } }), 'pre_tokenizer.delimiter'],
    ['WordLevel without unk_token', 'FORMAT', file({ model: { type: 'WordLevel', vocab: { a: 0 } } }), 'unk_token'],
    ['pre-tokenizers nested too deep', 'UNSUPPORTED', file({ pre_tokenizer: deep('Whitespace', 'pretokenizers') })],
    [
      'an unknown regular expression to split at',
      'UNSUPPORTED',
      file({ pre_tokenizer: { type: 'Split', pattern: { Regex: '.*' }, behavior: 'Isolated', invert: false } }),
    ],
    ['an unknown behavior', 'UNSUPPORTED', file({ pre_tokenizer: { type: 'Punctuation', behavior: 'Doubled' } }), 'Doubled'],
    [
      'a Metaspace replacement of two characters',
      'FORMAT',
      file({ pre_tokenizer: { type: 'Metaspace', replacement: '__' } }),
      'pre_tokenizer.replacement is "__"',
    ],
    ['an empty Metaspace replacement', 'FORMAT', file({ pre_tokenizer: { type: 'Metaspace', replacement: '' } }), 'pre_tokenizer.replacement is ""'],
    [
      'an unknown scheme',
      'UNSUPPORTED',
      file({ pre_tokenizer: { type: 'Metaspace', replacement: '_', prepend_scheme: 'last' } }),
      'pre_tokenizer.prepend_scheme is "last"',
    ],
    ['an unknown post-processor', 'UNSUPPORTED', file({ post_processor: { type: 'Chat' } }), 'Chat'],
    [
      'two post-processors that add tokens',
      'UNSUPPORTED',
      file({ post_processor: { type: 'Sequence', processors: Array(2).fill({ type: 'BertProcessing', sep: ['s', 1], cls: ['c', 2] }) } }),
    ],
    ['a template with an undefined token', 'FORMAT', file({ post_processor: { ...template, single: [{ SpecialToken: { id: 'x', type_id: 0 } }] } })],
    [
      'a template for one text that uses a second',
      'FORMAT',
      file({ post_processor: { ...template, single: [{ Sequence: { id: 'B', type_id: 0 } }] } }),
    ],
    [
      'a template token with more ids than names',
      'FORMAT',
      file({
        post_processor: { ...template, single: [{ SpecialToken: { id: 'x', type_id: 0 } }], special_tokens: { x: { ids: [1, 2], tokens: ['x'] } } },
      }),
    ],
    [
      'a template that repeats a token of many ids',
      'UNSUPPORTED',
      file({
        post_processor: {
          ...template,
          single: [textA, ...Array(11).fill({ SpecialToken: { id: 'x', type_id: 0 } })],
          special_tokens: { x: { ids: Array(100).fill(1), tokens: Array(100).fill('x') } },
        },
      }),
      'post_processor.single',
    ],
    [
      'a template token with many ids',
      'UNSUPPORTED',
      file({
        post_processor: {
          ...template,
          single: [{ SpecialToken: { id: 'x', type_id: 0 } }],
          special_tokens: { x: { ids: Array(1025).fill(1), tokens: Array(1025).fill('x') } },
        },
      }),
      'special_tokens.x.ids',
    ],
    ['a template that uses a text twice', 'UNSUPPORTED', file({ post_processor: { ...template, single: [textA, textA] } }), 'A once'],
    ['a template that uses no text', 'UNSUPPORTED', file({ post_processor: { ...template, single: [] } }), 'A once'],
    ['a pair template with only one text', 'UNSUPPORTED', file({ post_processor: { ...template, single: [textA], pair: [textA] } }), 'pair'],
    ['a sep without an id', 'FORMAT', file({ post_processor: { type: 'BertProcessing', sep: ['s'], cls: ['c', 1] } })],
    ['BPE with dropout', 'UNSUPPORTED', file({ model: { ...bpe, dropout: 0.1 } }), 'dropout'],
    ['BPE without merges', 'FORMAT', file({ model: { ...bpe, merges: undefined } }), 'merges'],
    ['a merge of three', 'FORMAT', file({ model: { ...bpe, merges: ['a b c'] } }), 'merges[0]'],
    ['a merge of a token missing from the vocabulary', 'FORMAT', file({ model: { ...bpe, merges: [['a', 'c']] } })],
    ['a merge into a token missing from the vocabulary', 'FORMAT', file({ model: { ...bpe, merges: [['b', 'a']] } })],
    ['a merge that is a number', 'FORMAT', file({ model: { ...bpe, merges: [1] } })],
    ['Unigram with a vocabulary like WordPiece', 'FORMAT', file({ model: { type: 'Unigram', vocab: { a: 0 } } })],
    ['a piece without a score', 'FORMAT', file({ model: { type: 'Unigram', vocab: [['a']] } }), 'vocab[0]'],
    ['an unk_id beyond the vocabulary', 'FORMAT', file({ model: { type: 'Unigram', unk_id: 1, vocab: [['a', 0]] } }), 'unk_id'],
    ['a piece of more than a thousand characters', 'UNSUPPORTED', file({ model: { type: 'Unigram', vocab: [['a'.repeat(2000), 0]] } })],
    ['added tokens that are not an array', 'FORMAT', file({ added_tokens: {} })],
    ['an added token without content', 'FORMAT', file({ added_tokens: [{ ...added, content: undefined }] }), 'added_tokens[0].content'],
    ['an added token without a flag', 'FORMAT', file({ added_tokens: [{ ...added, lstrip: undefined }] }), 'lstrip'],
    ['an added token of more than a thousand characters', 'UNSUPPORTED', file({ added_tokens: [{ ...added, content: 'a'.repeat(2000) }] })],
    ['a padding token that is a number', 'FORMAT', file({ padding: { pad_token: 1 } })],
    ['too many normalizers', 'UNSUPPORTED', file({ normalizer: times(64, { type: 'Nmt' }) }), 'normalizers[63]'],
    [
      'many normalizers in a few Sequences',
      'UNSUPPORTED',
      file({ normalizer: times(8, times(8, { type: 'Nmt' })) }),
      'normalizer.normalizers[7] is part 65',
    ],
    ['many pre-tokenizers', 'UNSUPPORTED', file({ pre_tokenizer: { type: 'Sequence', pretokenizers: Array(32).fill({ type: 'Whitespace' }) } })],
    [
      'many post-processors',
      'UNSUPPORTED',
      file({ post_processor: { type: 'Sequence', processors: Array(16).fill({ type: 'ByteLevel', trim_offsets: true, add_prefix_space: true }) } }),
      'post_processor.processors[15]',
    ],
    ['a long pattern to replace', 'UNSUPPORTED', file({ normalizer: replace('a'.repeat(257), 'b') }), 'pattern.String'],
    [
      'a long pattern to split at',
      'UNSUPPORTED',
      file({ pre_tokenizer: { type: 'Split', pattern: { String: 'a'.repeat(257) }, behavior: 'Isolated', invert: false } }),
      'pattern.String',
    ],
    ['a character map of megabytes', 'UNSUPPORTED', file({ normalizer: { type: 'Precompiled', precompiled_charsmap: 'A'.repeat(2 ** 22 + 1) } })],
    ['a long prefix of WordPiece', 'UNSUPPORTED', file({ model: { ...wordPiece, continuing_subword_prefix: '#'.repeat(17) } }), 'subword_prefix'],
    ['a long prefix of BPE', 'UNSUPPORTED', file({ model: { ...bpe, continuing_subword_prefix: '#'.repeat(17) } }), 'subword_prefix'],
    ['a long suffix of BPE', 'UNSUPPORTED', file({ model: { ...bpe, end_of_word_suffix: 's'.repeat(5e6) } }), 'end_of_word_suffix'],
    ['a long token of WordPiece', 'UNSUPPORTED', file({ model: { ...wordPiece, vocab: { ['a'.repeat(1025)]: 0 } } }), 'aaa…'],
    ['a long token of BPE', 'UNSUPPORTED', file({ model: { ...bpe, vocab: { ...bpe.vocab, ['a'.repeat(1025)]: 3 } } }), 'aaa…'],
    ['a long padding token', 'UNSUPPORTED', file({ padding: { pad_token: 'a'.repeat(1025) } }), 'pad_token'],
    [
      'a long token of a template',
      'UNSUPPORTED',
      file({
        post_processor: {
          ...template,
          single: [textA, { SpecialToken: { id: 'x', type_id: 0 } }],
          special_tokens: { x: { ids: [1], tokens: ['x'.repeat(1025)] } },
        },
      }),
      'special_tokens.x.tokens',
    ],
    [
      'a template that repeats a token without ids',
      'UNSUPPORTED',
      file({
        post_processor: {
          ...template,
          single: [textA, ...Array(1025).fill({ SpecialToken: { id: 'x', type_id: 0 } })],
          special_tokens: { x: { ids: [], tokens: [] } },
        },
      }),
      'post_processor.single',
    ],
    ['a long sep', 'UNSUPPORTED', file({ post_processor: { type: 'BertProcessing', sep: ['s'.repeat(1025), 0], cls: ['c', 1] } }), 'sep'],
    [
      'too many added tokens',
      'UNSUPPORTED',
      `{"model":${JSON.stringify(wordPiece)},"added_tokens":[${`${JSON.stringify(added)},`.repeat(2 ** 18)}${JSON.stringify(added)}]}`,
      'added_tokens has 262145',
    ],
    [
      'too many added tokens times normalizers',
      'UNSUPPORTED',
      file({
        normalizer: times(60, { type: 'NFKC' }),
        added_tokens: Array.from({ length: 5000 }, (_, i) => ({ ...added, content: `t${i}`, normalized: true })),
      }),
      'tokenizer.json.added_tokens needs more than 256 steps per character',
    ],
    [
      'added tokens that normalisers lengthen',
      'UNSUPPORTED',
      file({
        normalizer: replace('#', 'b'.repeat(250)),
        added_tokens: Array.from({ length: 1000 }, (_, i) => ({ ...added, content: `${i}####`, normalized: true })),
      }),
      'tokenizer.json.added_tokens has 3',
    ],
    [
      'a vocabulary with too many characters',
      'UNSUPPORTED',
      `{"model":{"type":"Unigram","vocab":[${Array.from({ length: 2 ** 14 + 1 }, (_, i) => `["${String(i).padStart(1024, 'a')}",0]`)}]}}`,
      'the vocabulary has 16778240 characters',
    ],
    ['a file of objects', 'UNSUPPORTED', `[${'{},'.repeat(1e6)}{}]`, 'values of'],
    ['a file of arrays in arrays', 'UNSUPPORTED', `${'['.repeat(1e5)}${']'.repeat(1e5)}`, 'values of'],
    ['a file of numbers', 'UNSUPPORTED', `[${'0,'.repeat(1e6)}0]`, 'values of'],
    ['a file of names', 'UNSUPPORTED', `{${Array.from({ length: 1e5 }, (_, i) => `"${i.toString(36)}":0`)}}`, 'values of'],
  ];
  for (const [what, code, value, names] of refusals)
    it(`${what}: ${code}`, () => {
      const error = throws(() => make(value), code);
      if (names) assert.include(error.message, names);
    });

  it('the largest accepted number of everything', () => {
    const [most256, most1024, most16] = ['a'.repeat(256), 'a'.repeat(1024), '#'.repeat(16)];
    const x = { SpecialToken: { id: 'x', type_id: 0 } };
    const pair = [textA, { Sequence: { id: 'B', type_id: 1 } }];
    const special = (ids: number, tokens: string) => ({ x: { ids: Array(ids).fill(0), tokens: Array(ids).fill(tokens) } });
    for (const parts of [
      { normalizer: replace(most256, most256) },
      { normalizer: { type: 'Prepend', prepend: most256 } },
      { normalizer: ruleForA(most256) },
      { normalizer: times(63, { type: 'Nmt' }) },
      { pre_tokenizer: { type: 'Sequence', pretokenizers: Array(31).fill({ type: 'Whitespace' }) } },
      { pre_tokenizer: { type: 'Split', pattern: { String: most256 }, behavior: 'Isolated', invert: false } },
      {
        post_processor: {
          type: 'Sequence',
          processors: Array(15).fill({ type: 'ByteLevel', trim_offsets: true, add_prefix_space: true }),
        },
      },
      { post_processor: { ...template, single: [textA, x], pair, special_tokens: special(1024, 'x') } },
      { post_processor: { ...template, single: [textA, x], pair, special_tokens: special(1, most1024) } },
      { post_processor: { type: 'BertProcessing', sep: [most1024, 0], cls: [most1024, 1] } },
      { model: { ...wordPiece, continuing_subword_prefix: most16, vocab: { '[UNK]': 0, [most1024]: 1 } } },
      { model: { ...bpe, continuing_subword_prefix: most16, end_of_word_suffix: most16, vocab: { ...bpe.vocab, [most1024]: 3 }, merges: [] } },
      { model: { type: 'Unigram', unk_id: 0, vocab: [[most1024, 0]] } },
      { added_tokens: [{ ...added, content: most1024 }], padding: { pad_token: most1024 } },
    ])
      make(file(parts));
  });

  it("the limits of a text's length and steps are exact, and errors name the argument", () => {
    for (const [length, most, code] of [
      [10, 64 * 10 + 4096, 'UNSUPPORTED'],
      [2 ** 20, 5 * 2 ** 20, 'MEMORY'],
    ] as const) {
      const budget = new Budget(length, 'this');
      budget.hold(most);
      assert.isTrue(budget.fits(most));
      assert.isFalse(budget.fits(most + 1));
      const { detail, message } = throws(() => budget.hold(most + 1), code);
      assert.deepEqual(
        { ...detail },
        { op: 'tokenize', argument: 'this', expected: `at most ${most} characters`, got: 'longer once it is normalized' },
      );
      assert.include(message, String(most));
    }
    const budget = new Budget(10);
    const most = 256 * 10 + 2 ** 16;
    budget.spend(most - 1);
    budget.spend(1);
    assert.equal(budget.steps, most);
    const { detail } = throws(() => budget.spend(1), 'UNSUPPORTED');
    assert.deepEqual([detail.op, detail.argument, detail.expected], ['tokenize', 'the text', `at most ${most} steps for 10 characters`]);
    assert.equal(budget.steps, most, 'a refused step does not count');
  });

  it('Metaspace with omitted options, and prefixes before empty texts', () => {
    const pieces = (options: object, text = 'a b') => {
      const whole = readText(text);
      const cut = readPreTokenizer(new Section({ type: 'Metaspace', replacement: '_', ...options }, 'cut'));
      return cut([{ text: whole, from: 0, to: whole.codes.length }]).map(({ text: { codes }, from, to }) => stringOf(codes, from, to));
    };
    assert.deepEqual(pieces({}), ['_a', '_b']);
    assert.deepEqual(pieces({ add_prefix_space: false }), ['a', '_b']);
    assert.deepEqual(pieces({ add_prefix_space: false, prepend_scheme: 'always' }), ['_a', '_b']);
    assert.deepEqual(pieces({ prepend_scheme: 'never' }), ['a', '_b']);
    assert.deepEqual(pieces({ prepend_scheme: 'first' }), ['_a', '_b']);
    for (const text of ['_a', ' a']) assert.deepEqual(pieces({}, text), ['_a']);
    assert.deepEqual(pieces({ split: false }), ['_a_b']);
    const prepend = readNormalizer(new Section({ type: 'Prepend', prepend: 'xy' }, 'prepend'));
    assert.equal(stringOf(prepend(readText('')).codes), '');
    const { codes, starts, ends } = prepend(readText('😀'));
    assert.deepEqual([stringOf(codes), starts, ends], ['xy😀', [0, 0, 0], [2, 2, 2]]);
  });

  it('a text that a few rules lengthen without bound is refused while it grows', () => {
    const metaspace = (replacement: string) => ({ type: 'Metaspace', replacement, prepend_scheme: 'always', split: true });
    const cuts = {
      type: 'Sequence',
      pretokenizers: Array(15)
        .fill([metaspace('_'), metaspace('-')])
        .flat(),
    };
    const bytesAgain = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false };
    for (const parts of [
      { normalizer: times(40, replace('a', 'aa')) },
      { normalizer: times(7, times(7, { type: 'Prepend', prepend: 'a'.repeat(256) })) },
      { normalizer: times(40, ruleForA('aa')) },
      { normalizer: { type: 'Sequence', normalizers: [...Array(12).fill(replace('a', 'aa')), replace('a', '\ufdfa'), { type: 'NFKC' }] } },
      { normalizer: { type: 'Sequence', normalizers: [...Array(12).fill(replace('a', 'aa')), replace('a', '\u0130'), { type: 'Lowercase' }] } },
      { pre_tokenizer: { type: 'Sequence', pretokenizers: Array(30).fill(bytesAgain) } },
      { pre_tokenizer: cuts },
    ]) {
      const error = throws(() => make(file(parts)).encode(['a \u00e9'], all), 'UNSUPPORTED');
      assert.include(error.message, 'longer once it is normalized', JSON.stringify(parts).slice(0, 200));
    }
    // Each part stays within its limits; together they exceed them.
    const between = make(file({ normalizer: times(12, replace('a', 'aa')), added_tokens: [added] }));
    assert.equal(between.encode(['a'], all).dims[1], 1);
    throws(() => between.encode(['ax'.repeat(100)], all), 'UNSUPPORTED');
  });

  it('a tokenizer_config.json with too many values, and one with a long padding token', () => {
    const configured = (config: unknown) => () => new Tokenizer({ tokenizer: encode(file({})), tokenizerConfig: encode(config) });
    assert.include(throws(configured(`[${'{},'.repeat(1e6)}{}]`), 'UNSUPPORTED').message, 'tokenizer_config.json has values of');
    throws(configured({ pad_token: 'a'.repeat(1025) }), 'UNSUPPORTED');
    throws(configured({ pad_token: { content: 'a'.repeat(1025) } }), 'UNSUPPORTED');
  });

  it('a string full of brackets counts as one string', () => {
    make(file({ truncation: '[{,:"\\'.repeat(1e5) }));
  });

  it('added tokens that strip overlapping spaces match Hugging Face tokenizers, up to a limit', () => {
    const rstrip = make(file({ added_tokens: [{ ...added, content: ' ', rstrip: true }] }));
    const { tokens, offsets } = rstrip.encode(['a   b '], all);
    assert.deepEqual(
      [tokens[0], offsets[0]],
      [
        ['[UNK]', '   ', '  ', ' ', '[UNK]', ' '],
        [
          [0, 1],
          [1, 4],
          [2, 4],
          [3, 4],
          [4, 5],
          [5, 6],
        ],
      ],
    );
    const error = throws(() => rstrip.encode([' '.repeat(100_000)], all), 'UNSUPPORTED');
    assert.include(error.message, 'the text needs more than 256 steps per character');
  });

  /** Counts the steps of a text, refused or not, and the elements pushed into arrays meanwhile. */
  function costs(tokenizer: Tokenizer, text: string): { steps: number; pushes: number } {
    const budget = new Budget(text.length);
    const { push } = Array.prototype;
    let pushes = 0;
    Array.prototype.push = function (this: unknown[], value: unknown) {
      ++pushes;
      return push.call(this, value);
    };
    try {
      tokenizer.split(text, Infinity, 'right', budget);
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'UNSUPPORTED', String(error));
    } finally {
      Array.prototype.push = push;
    }
    return { steps: budget.steps, pushes };
  }

  it('published tokenizers need few steps per character, hostile files at most 256', async () => {
    await readFiles();
    const text = 'The film was not bad at all: 你好, ｆｕｌｌ 100 000 🙏🏽 \u0301\ufdfa…    \n'.repeat(100);
    for (const name of checkpoints) assert.isBelow(costs(tokenizerOf(name), text).steps / text.length, 50, name);
    const unigram = { type: 'Unigram', unk_id: 0, vocab: [['?', 0], ...Array.from({ length: 1000 }, (_, i) => ['a'.repeat(i + 1), -i])] };
    const bytes = Object.fromEntries(Array.from({ length: 256 }, (_, b) => [`<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`, b]));
    const token = (content: string, more = {}) => ({ ...added, content, ...more });
    const a1000 = 'a'.repeat(1000);
    for (const parts of [
      { model: unigram },
      { model: { ...wordPiece, max_input_chars_per_word: 1e9, vocab: { '[UNK]': 0, a: 1, '##a': 2, [a1000]: 3, [`##${a1000}`]: 4 } } },
      { model: { type: 'BPE', vocab: bytes, merges: [], byte_fallback: true, continuing_subword_prefix: '#'.repeat(16) } },
      {
        normalizer: { type: 'Sequence', normalizers: [replace('a', 'b'.repeat(20)), replace('\u0301', 'é'.repeat(20))] },
        model: { type: 'BPE', vocab: bytes, merges: [], byte_fallback: true, continuing_subword_prefix: 'é'.repeat(16) },
      },
      // The last normalizer alone would be refused at once.
      { normalizer: { type: 'Sequence', normalizers: [replace('a', `${'a'.repeat(60)}é`), { type: 'NFKC' }] } },
      {
        normalizer: {
          type: 'Sequence',
          normalizers: [replace(' ', 'A'.repeat(126)), { type: 'StripAccents' }, { type: 'NFD' }, bert, { type: 'NFD' }],
        },
      },
      { added_tokens: [token(`${a1000}b`)] },
      { added_tokens: [token(`${a1000}b`, { normalized: true })] },
      { added_tokens: [token('a', { lstrip: true, rstrip: true }), token(' ', { lstrip: true, rstrip: true })] },
      { normalizer: times(60, { type: 'NFKC' }) },
      { normalizer: times(60, replace('a'.repeat(255) + 'b', 'c')) },
      { normalizer: times(60, { type: 'Sequence', normalizers: [] }) },
      { normalizer: { type: 'Sequence', normalizers: [...Array(6).fill(replace('a', 'aa')), ...Array(50).fill({ type: 'Lowercase' })] } },
      { pre_tokenizer: { type: 'Sequence', pretokenizers: Array(31).fill({ type: 'Whitespace' }) } },
      {
        pre_tokenizer: {
          type: 'Sequence',
          pretokenizers: Array(31).fill({ type: 'Split', pattern: { String: `${'a'.repeat(99)}b` }, behavior: 'Isolated', invert: false }),
        },
      },
    ])
      for (const text of ['a'.repeat(8000), 'a b '.repeat(2000), ' '.repeat(8000), '\u0301'.repeat(8000)]) {
        const what = JSON.stringify(parts).slice(0, 200);
        const { steps, pushes } = costs(make(file(parts)), text);
        const most = 256 * text.length + 2 ** 16;
        assert.isAtMost(steps, most, what);
        // Normalised text pushes three elements per character, and may be 64 times as long.
        assert.isAtMost(pushes, most + 3 * 65 * text.length, what);
      }
  });

  it('every supported regular expression is linear in a long run of any character', () => {
    const words = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    const gpt4 =
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    const [capitals, small] = ['[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]', '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]'];
    const cased = `[^\\r\\n\\p{L}\\p{N}]?${capitals}*${small}+|[^\\r\\n\\p{L}\\p{N}]?${capitals}+${small}*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*`;
    for (const expression of [words, gpt4, `${cased}|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`, '\\s{2,}|[\\n\\r\\t]']) {
      const cut = readPreTokenizer(new Section({ type: 'Split', pattern: { Regex: expression }, behavior: 'Isolated', invert: false }, 'split'));
      // A look-ahead at the whole rest after every third digit took minutes for a million digits.
      for (const each of ['1', ' ', '\r\n ', "'", 'A', '中A', '!\u0301']) {
        const text = readText(each.repeat(1_000_000 / each.length));
        assert.isAtMost(cut([{ text, from: 0, to: text.codes.length }]).length, text.codes.length);
      }
    }
  });

  it('a long text may grow by a smaller factor', () => {
    const tokenizer = make(file({ normalizer: replace('a', 'a'.repeat(64)) }));
    assert.equal(tokenizer.encode(['a'.repeat(1000)], all).dims[1], 1);
    throws(() => tokenizer.encode(['a'.repeat(2 ** 18)], all), 'MEMORY');
    // A text of 200 000 characters that grew 24-fold took 290 MB. Byte fallback of Chinese needs a factor of 3 at any
    // length.
    assert.isFalse(new Budget(200_000).fits(24 * 200_000));
    assert.isTrue(new Budget(1e7).fits(3e7));
  });

  it('a template with the largest accepted number of tokens', () => {
    const special_tokens = { x: { ids: Array(512).fill(0), tokens: Array(512).fill('x') } };
    const x = { SpecialToken: { id: 'x', type_id: 0 } };
    const textB = { Sequence: { id: 'B', type_id: 1 } };
    const made = make(file({ post_processor: { ...template, single: [x, textA, x], pair: [textB, x, textA, x], special_tokens } }));
    assert.deepEqual(made.encode(['a'], all).dims, [1, 1025]);
    assert.deepEqual(made.encode([['a', 'b']], all).dims, [1, 1026]);
  });

  it('bytes that are not UTF-8 are FORMAT', () => {
    throws(() => new Tokenizer({ tokenizer: Uint8Array.of(0x7b, 0xff, 0x7d) }), 'FORMAT');
    throws(() => new Tokenizer({ tokenizer: encode(file({})), tokenizerConfig: encode('[') }), 'FORMAT');
  });

  it('tokenizer_config.json sets the truncation and padding side; an unknown side is UNSUPPORTED, a pad_token of another type FORMAT', () => {
    const configured = (config: object) => new Tokenizer({ tokenizer: encode(file({})), tokenizerConfig: encode(config) });
    configured({ truncation_side: 'right', padding_side: 'right', pad_token: null });
    const left = configured({ truncation_side: 'left', padding_side: 'left' }).encode(['ab a b', 'a'], { maxLength: 2, truncation: true });
    assert.deepEqual([left.tokens[0].length, left.offsets[0][0], [...left.attentionMask]], [1, [0, 6], [1, 1]]);
    const { truncationSide, paddingSide } = configured({ truncation_side: 'left', padding_side: 'left' });
    assert.deepEqual([truncationSide, paddingSide], ['left', 'left']);
    throws(() => configured({ truncation_side: 'up' }), 'UNSUPPORTED');
    throws(() => configured({ padding_side: 3 }), 'FORMAT');
    throws(() => configured({ pad_token: 3 }), 'FORMAT');
  });

  it('an unknown token that the vocabulary lacks is an error once it is needed', () => {
    for (const model of [
      { ...wordPiece, vocab: { a: 0 } },
      { ...bpe, unk_token: '<unk>' },
      { type: 'Unigram', vocab: [['a', 0]] },
    ]) {
      const tokenizer = make(file({ model }));
      assert.deepEqual([...tokenizer.encode(['a'], all).inputIds], [0]);
      assert.match(throws(() => tokenizer.encode(['x'], all), 'FORMAT').message, /model\.unk_(token|id) /);
    }
  });

  it('byte fallback is used if the file enables it and the vocabulary has all 256 bytes', () => {
    const names = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
    const tokens = (some: readonly string[], options: object) => {
      const vocab = Object.fromEntries([...some, '?'].map((name, id) => [name, id]));
      return make(file({ model: { type: 'BPE', vocab, merges: [], unk_token: '?', ...options } })).encode(['\u00e9'], all).tokens[0];
    };
    assert.deepEqual(tokens(names, { byte_fallback: true }), ['<0xC3>', '<0xA9>']);
    for (const options of [{}, { byte_fallback: false }]) assert.deepEqual(tokens(names, options), ['?']);
    assert.deepEqual(
      tokens(
        names.filter((name) => name !== '<0xA9>'),
        { byte_fallback: true },
      ),
      ['?'],
    );
  });

  it('a broken character map yields some text, never a crash', () => {
    const generator = new Generator(5);
    for (let round = 0; round < 200; round++) {
      const map = Uint8Array.from({ length: 4 + 256 }, () => generator.below(256));
      map.set([192, 0, 0, 0]);
      map.fill(97, 196);
      const charsmap = btoa(String.fromCharCode(...map));
      const normalize = readNormalizer(new Section({ type: 'Precompiled', precompiled_charsmap: charsmap }, 'map'));
      assert.isString(stringOf(normalize(readText('héllo \u0301 a b c 😀 \0')).codes));
    }
  });
});
