/** Chunks of texts: places, exact numbers of tokens, and hostile texts. */
import type { Encoding } from 'attn';
import { assert } from 'chai';
import { chunk } from '../../web/lib/src/tokenizer/chunk.ts';
import { Tokenizer } from '../../web/lib/src/tokenizer/text_tokenizer.ts';
import { assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { bytes } from '../support/host.ts';

type Options = NonNullable<Parameters<typeof chunk>[2]>;

const noLimit = 2 ** 31 - 1;
const names = ['tiny-bert', 'tiny-roberta', 'tiny-xlm-roberta'] as const;

async function read(name: string): Promise<Tokenizer> {
  return Tokenizer.fromFiles({ 'tokenizer.json': await bytes(`testdata/models/${name}/tokenizer.json`) });
}

const lengthOf = ({ dims }: Encoding) => dims[1]!;
const countOf = (tokenizer: Tokenizer, text: string) => lengthOf(tokenizer.encode(text, { maxLength: noLimit }));
const plain = (text: string) => text.replaceAll(/\s+/g, '');

/** Asserts what holds for every text and returns the chunks' texts. */
function chunked(tokenizer: Tokenizer, text: string, options: Options): string[] {
  const chunks = chunk(tokenizer, text, options);
  const special = countOf(tokenizer, '');
  let [previous, covered] = [-1, 0];
  for (const [i, { start, end, text: each, tokenCount }] of chunks.entries()) {
    assert.strictEqual(each, text.slice(start, end));
    assert.strictEqual(each, each.trim());
    assert.isAbove(each.length, 0);
    assert.strictEqual(tokenCount, countOf(tokenizer, each), `tokens of ${JSON.stringify(each)}`);
    assert.isAtMost(tokenCount, options.maxTokens!);
    assert.isAbove(start, previous);
    assert.isAbove(end, covered, `chunk ${i} has new text`);
    assert.notMatch(each, /^[\udc00-\udfff]$/);
    if (i > 0) {
      assert.strictEqual(plain(text.slice(Math.min(covered, start), start)), '', 'nothing is left out');
      const shared = text.slice(Math.min(start, covered), covered);
      assert.isAtMost(countOf(tokenizer, shared) - special, options.overlap ?? 0, 'overlap');
      if (!options.overlap) assert.isAtLeast(start, covered);
    } else assert.strictEqual(plain(text.slice(0, start)), '');
    [previous, covered] = [start, end];
  }
  assert.strictEqual(plain(text.slice(covered)), '');
  return chunks.map((each) => each.text);
}

const prose =
  'Anna lives in Lyon. She is a doctor! Does she like it? The city is large,\nand the rivers are wide.\n\n' +
  'Ben lives in Oslo. He reads.\n\n  The winter is long and dark, the summer is short and light, and nobody minds either of them.';

describe('chunks', () => {
  const tokenizers = new Map<string, Tokenizer>();
  before(async () => {
    for (const name of names) tokenizers.set(name, await read(name));
  });
  const bert = () => tokenizers.get('tiny-bert')!;

  it('ends chunks at sentences, and a line that goes on in lowercase ends none', () => {
    assert.deepEqual(chunked(bert(), prose, { maxTokens: 24 }), [
      'Anna lives in Lyon. She is a doctor!',
      'Does she like it?',
      'The city is large,\nand the rivers are',
      'wide.\n\nBen lives in Oslo. He reads.',
      'The winter is long and dark, the summer is',
      'short and light, and nobody',
      'minds either of them.',
    ]);
  });

  it('joins paragraphs that fit, and divides one that does not at its sentences', () => {
    assert.deepEqual(chunked(bert(), prose, { maxTokens: 40, by: 'paragraph' }), [
      'Anna lives in Lyon. She is a doctor! Does she like it?',
      'The city is large,\nand the rivers are wide.\n\nBen lives in Oslo. He reads.',
      'The winter is long and dark, the summer is short and light, and',
      'nobody minds either of them.',
    ]);
    const short = 'Anna reads.\nBen reads.\n\nAnna lives in Lyon. Ben too.\r\n\r\nThe end.';
    assert.deepEqual(chunked(bert(), short, { maxTokens: 22, by: 'paragraph' }), [
      'Anna reads.\nBen reads.',
      'Anna lives in Lyon. Ben too.\r\n\r\nThe end.',
    ]);
  });

  it('fills chunks with words', () => {
    assert.deepEqual(chunked(bert(), prose, { maxTokens: 24, by: 'token' }), [
      'Anna lives in Lyon. She is a doctor!',
      'Does she like it? The city is large,\nand the rivers',
      'are wide.\n\nBen lives in Oslo. He reads.',
      'The winter is long and dark, the summer is',
      'short and light, and nobody',
      'minds either of them.',
    ]);
  });

  it('repeats whole sentences if they fit, else words', () => {
    assert.deepEqual(chunked(bert(), prose, { maxTokens: 24, overlap: 8 }), [
      'Anna lives in Lyon. She is a doctor!',
      'is a doctor! Does she like it?',
      'Does she like it? The city is large,\nand the rivers',
      'and the rivers are wide.',
      'are wide.\n\nBen lives in Oslo. He reads.',
      'He reads.\n\n  The winter is long and dark, the',
      'and dark, the summer is short and',
      'is short and light, and nobody',
      'and nobody minds either of them.',
    ]);
  });

  it('divides text without spaces at its words', () => {
    const text = '北京大学的学生喜欢图书馆。他们学习数学。';
    assert.deepEqual(chunked(bert(), text, { maxTokens: 9 }), ['北京大学的学生', '喜欢图书馆。', '他们学习数学。']);
  });

  it('divides a word that is too long, between tokens, and refuses a character that is too long', () => {
    const address = `https://example.org/${'abcdefgh'.repeat(20)}`;
    for (const tokenizer of tokenizers.values())
      for (const maxTokens of [8, 20]) {
        const chunks = chunked(tokenizer, `see ${address} now`, { maxTokens });
        assert.strictEqual(plain(chunks.join('')), `see${address}now`);
      }
    const error = assertThrows(() => chunk(tokenizers.get('tiny-roberta')!, 'ab 😀', { maxTokens: 4 }), 'OUT_OF_RANGE', [
      'character at 3',
      'larger maxTokens',
    ]);
    assert.strictEqual(error.detail['index'], 3);
  });

  it('has no chunks for white space, and takes lone surrogates', () => {
    for (const tokenizer of tokenizers.values()) {
      for (const text of ['', ' ', '\n\n\t\u2029 ']) assert.deepEqual(chunk(tokenizer, text, { maxTokens: 9 }), []);
      chunked(tokenizer, '\ud800 a\udc00b \udc00\ud800 \ud83d\ude00\ud83d', { maxTokens: 14 });
    }
  });

  it('takes time in proportion to the text', () => {
    const timeOf = (tokenizer: Tokenizer, text: string) => {
      const start = performance.now();
      const chunks = chunk(tokenizer, text, { maxTokens: 200, overlap: 20 });
      assert.isAtMost(chunks.length, text.length / 50);
      return performance.now() - start;
    };
    for (const name of ['tiny-bert', 'tiny-roberta'])
      for (const text of ['a', '北', '\n', '. \n', '\ud800', 'a ']) {
        const of = (length: number) => text.repeat(Math.floor(length / text.length));
        const tokenizer = tokenizers.get(name)!;
        // 8 times the length; 64 times the time, if the time grew with its square. Another program may use the processor,
        // but not each time.
        let [short, long] = [Infinity, Infinity];
        for (let tries = 5; tries > 0 && long >= 30 * short; --tries) {
          short = Math.min(short, Math.max(10, timeOf(tokenizer, of(2 ** 13))));
          long = Math.min(long, timeOf(tokenizer, of(2 ** 16)));
        }
        assert.isBelow(long, 30 * short, `${name} ${JSON.stringify(text)}: ${short} and ${long} ms`);
      }
  });

  it('keeps its promises for any text and options', () => {
    const generator = new Generator(5);
    const parts = [
      'Anna',
      ' ',
      ' ',
      '\n',
      '\n\n',
      '. ',
      '! ',
      '?',
      '北京大学',
      '。',
      '😀',
      '\ud800',
      'internationally',
      '[SEP]',
      '\u0301',
      'ﷺ',
      ',',
      "don't",
      '3.5',
      '\t',
      'ภาษาไทย',
    ];
    for (let n = 0; n < 60; ++n) {
      const text = Array.from({ length: generator.below(60) }, () => generator.pick(parts)).join('');
      const maxTokens = 26 + generator.below(40);
      const overlap = generator.oneIn(2) ? 0 : generator.below(maxTokens - 4);
      for (const by of ['sentence', 'paragraph', 'token'] as const)
        for (const tokenizer of tokenizers.values()) chunked(tokenizer, text, { maxTokens, overlap, by });
    }
  });

  it('cuts no word of a text with spaces', () => {
    const generator = new Generator(6);
    const words = ['Anna', 'internationally', 'is.', 'unbelievable,', '(the', 'end)', 'Ünder', '«où»', '12.5', 'a\nb'];
    for (let n = 0; n < 12; ++n) {
      const text = Array.from({ length: 80 }, () => generator.pick(words)).join(' ');
      for (const tokenizer of tokenizers.values())
        for (const { start, end } of chunk(tokenizer, text, { maxTokens: 40, overlap: generator.below(30) })) {
          assert.match(text[start - 1] ?? ' ', /\s/);
          assert.match(text[end] ?? ' ', /\s/);
        }
    }
  });

  it('ends sentences by punctuation in engines without Intl.Segmenter', () => {
    const { Segmenter } = Intl;
    const without = (work: () => void) => {
      Object.defineProperty(Intl, 'Segmenter', { value: undefined, configurable: true, writable: true });
      delete (Intl as { Segmenter?: unknown }).Segmenter;
      try {
        work();
      } finally {
        Object.defineProperty(Intl, 'Segmenter', { value: Segmenter, configurable: true, writable: true });
      }
    };
    const withIt = chunked(bert(), prose, { maxTokens: 24, overlap: 8 });
    without(() => {
      assert.notProperty(Intl, 'Segmenter');
      assert.deepEqual(chunked(bert(), prose, { maxTokens: 24, overlap: 8 }), withIt);
      const chinese = tokenizers.get('tiny-xlm-roberta')!;
      for (const each of chunked(chinese, '他们学习数学。他喜欢书。'.repeat(8), { maxTokens: 40 })) assert.match(each, /。$/);
      chunked(chinese, '北京大学的学生喜欢图书馆'.repeat(8), { maxTokens: 12 });
    });
  });

  it('refuses other arguments', () => {
    const tokenizer = bert();
    const call = (options: unknown, text: unknown = 'a', of: unknown = tokenizer) => chunk(of as Tokenizer, text as string, options as Options);
    assertThrows(() => call(undefined), 'ARGUMENT', ['chunk: maxTokens is missing']);
    assertThrows(() => call({ maxTokens: '9' }), 'ARGUMENT', ['maxTokens is "9"']);
    assertThrows(() => call({ maxTokens: 2 }), 'CONFIG', ['maxTokens is 2, expected a whole number of at least 3', 'adds 2 special tokens']);
    assertThrows(() => call({ maxTokens: 9, overlap: 7 }), 'CONFIG', ['overlap is 7, expected a whole number below 7']);
    assertThrows(() => call({ maxTokens: 9, overlap: -1 }), 'CONFIG', ['overlap is -1']);
    assertThrows(() => call({ maxTokens: 9, by: 'word' }), 'CONFIG', ['by is "word"', 'sentence, paragraph, token']);
    assertThrows(() => call({ maxTokens: 9, by: 1 }), 'ARGUMENT', ['by is 1']);
    assertThrows(() => call({ maxTokens: 9, overlaps: 1 }), 'ARGUMENT', ['Did you mean overlap?']);
    assertThrows(() => call({ maxTokens: 9 }, ['a']), 'ARGUMENT', ['text is an Array, expected a string']);
    assertThrows(() => call({ maxTokens: 9 }, 'a', {}), 'ARGUMENT', ['tokenizer is an object']);
    assertThrows(() => call({ maxTokens: 9 }, 'a', null), 'ARGUMENT', ['tokenizer is null']);
  });
});
