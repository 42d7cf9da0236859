/** attn/tokenizer: the tokenizer without WebAssembly. */
import { elements, isPlainObject, readBytes } from '../args/arrays.js';
import { asOperation, AttnError, describe, fail, hint, reading } from '../args/error.js';
import { encodeOptions, readDecodeOptions, readId, readIds, readTextOptions, readTexts, readToken } from '../args/model_options.js';
import type { Encoding } from '../attn.js';
import type { EncodedWords, Tokenizer as Contract, TokenizerFiles } from '../tokenizer.js';
import * as earlyEnd from './early_end.js';
import type { Source } from './post_processors.js';
import { readObject } from './schema.js';
import { type EncodeOptions, Tokenizer as Inner, useEarlyEnd } from './tokenizer.js';
import * as rare from './lazy_parts.js';
import { useLazyParts } from './lazy_slot.js';
import { unknownIdKey } from '../platform/instance.js';
import { encodeUtf8 } from '../platform/utf8.js';

export { AttnError };

/** The nesting depth decides between texts and pairs. */
function wordsOf(op: string, value: unknown): Source[][] {
  const listOf = (each: unknown, path: string): unknown[] => {
    if (!Array.isArray(each)) fail('ARGUMENT', op, path, describe(each), 'an Array of words or of Arrays of words');
    return elements(each as unknown[], (one, i) =>
      typeof one === 'string' || Array.isArray(one) ? one : fail('ARGUMENT', op, `${path}[${i}]`, describe(one), 'a string or an Array of words'),
    );
  };
  const words = (list: readonly unknown[], path: string) =>
    list.map((word, i) => (typeof word === 'string' ? word : fail('ARGUMENT', op, `${path}[${i}]`, describe(word), 'a string')));
  const all = listOf(value, 'texts');
  if (typeof all[0] === 'string') return [[words(all, 'texts')]];
  const lists = all.map((each, i) => listOf(each, `texts[${i}]`));
  const arePairs = lists.some((list) => Array.isArray(list[0]));
  return lists.map((list, i) => {
    const path = `texts[${i}]`;
    if (!arePairs) return [words(list, path)];
    if (list.length !== 2) fail('ARGUMENT', op, path, `has ${list.length} elements`, 'a pair of Arrays of words');
    return list.map((each, which) => words(listOf(each, `${path}[${which}]`), `${path}[${which}]`));
  });
}

const names = ['tokenizer.json', 'tokenizer_config.json', 'config.json', 'special_tokens_map.json', 'added_tokens.json'] as const;
const noLimit = 2 ** 31 - 1;
const made = Symbol();

export class Tokenizer implements Contract {
  readonly #inner: Inner;
  readonly #maxLength: number;

  constructor(key: typeof made, inner: Inner, maxLength: number) {
    if (key !== made) fail('ARGUMENT', 'Tokenizer', 'new', 'is called', 'Tokenizer.fromFiles()');
    this.#inner = inner;
    this.#maxLength = maxLength;
  }

  static fromFiles(files: TokenizerFiles): Tokenizer {
    const op = 'fromFiles';
    useLazyParts(rare);
    useEarlyEnd(earlyEnd);
    return asOperation(op, () => {
      const given = reading(op, 'files', () => {
        if (!isPlainObject(files)) fail('ARGUMENT', op, 'files', describe(files), 'an object of files by name');
        for (const name of Object.keys(files))
          if (!(names as readonly string[]).includes(name))
            fail('ARGUMENT', op, 'files', `has the unknown name ${JSON.stringify(name)}`, `one of ${names.join(', ')}`, hint(name, names));
        return names.map((name) => {
          const content: unknown = files[name];
          if (content === undefined) return undefined;
          return typeof content === 'string' ? encodeUtf8(content) : readBytes(op, `files[${JSON.stringify(name)}]`, content);
        });
      });
      const [tokenizer, tokenizerConfig, config, specialTokensMap, addedTokens] = given;
      if (!tokenizer) fail('ARGUMENT', op, 'files["tokenizer.json"]', 'is missing', 'text or bytes');
      const member = (bytes: Uint8Array | undefined, file: string, name: string): unknown =>
        bytes && (readObject(bytes, file) as Readonly<Record<string, unknown>>)[name];
      const modelType = member(config, 'config.json', 'model_type');
      const limit = (name: string) => member(tokenizerConfig, 'tokenizer_config.json', name) ?? undefined;
      const most = limit('model_max_length') ?? limit('max_len');
      const isLimit = typeof most === 'number' && Number.isInteger(most) && most >= 1 && most < noLimit;
      const all = { tokenizer, tokenizerConfig, specialTokensMap, addedTokens, modelType };
      return new Tokenizer(made, new Inner(all), isLimit ? most : noLimit);
    });
  }

  /** For attn/static. */
  get [unknownIdKey](): number | undefined {
    return this.#inner.unkId;
  }

  get vocabularySize(): number {
    return this.#inner.size;
  }

  encode(texts: Parameters<Contract['encode']>[0], options?: Parameters<Contract['encode']>[1]): Encoding {
    return asOperation('encode', () => {
      const list = readTexts('encode', texts, true);
      return this.#inner.encode(list, this.#options('encode', options));
    });
  }

  encodeWords(texts: Parameters<Contract['encodeWords']>[0], options?: Parameters<Contract['encodeWords']>[1]): EncodedWords {
    const op = 'encodeWords';
    return asOperation(op, () => {
      const list = reading(op, 'texts', () => wordsOf(op, texts));
      const read = this.#options(op, options);
      const rows = list.map((each, i) => this.#inner.row(each, i, read));
      const encoding = this.#inner.pad(rows, read);
      const words = rows.map(({ parts, length }) => {
        const padding = new Array<null>(encoding.dims[1]! - length).fill(null);
        const numbers = parts.flatMap(({ ids, words, special }) => (special ? ids.map(() => null) : words));
        return (read.paddingSide ?? this.#inner.paddingSide) === 'left' ? [...padding, ...numbers] : [...numbers, ...padding];
      });
      return { ...encoding, words };
    });
  }

  #options(op: string, options: unknown): EncodeOptions {
    return { maxLength: this.#maxLength, truncation: true, ...(readTextOptions(op, options, encodeOptions).plain as Partial<EncodeOptions>) };
  }

  decode(ids: ArrayLike<number>, options?: Parameters<Contract['decode']>[1]): string {
    return asOperation('decode', () => this.#inner.decode(readIds(ids), readDecodeOptions(options)));
  }

  tokenToId(token: string): number | undefined {
    return this.#inner.tokenToId(readToken('tokenToId', token));
  }

  idToToken(id: number): string | undefined {
    return this.#inner.idToToken(readId('idToToken', id));
  }
}
