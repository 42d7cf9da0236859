/** attn/tokenizer: the tokenizer without the module. */
import { isPlainObject, readBytes } from './arrays.js';
import type { Encoding } from './attn.js';
import { AttnError, describe, fail, hint, reading } from './error.js';
import { readDecodeOptions, readId, readIds, readTextOptions, readTexts, readToken } from './model_options.js';
import type { Tokenizer as Contract, TokenizerFiles } from './tokenizer.js';
import { readObject } from './tokenizer/schema.js';
import { Tokenizer as Inner } from './tokenizer/tokenizer.js';
import { useScripts } from './tokenizer/unicode.js';
import * as unicodeScripts from './tokenizer/unicode_scripts.js';
import { encodeUtf8 } from './utf8.js';

export { AttnError };

/** Errors of the parts below are those of the operation that was called. */
function as<T>(op: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof AttnError)) throw error;
    throw new AttnError(error.code, error.message.replace(/^\w+:/, `${op}:`), { ...error.detail, op }, { cause: error.cause });
  }
}

const names = ['tokenizer.json', 'tokenizer_config.json', 'config.json'] as const;
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
    useScripts(unicodeScripts);
    return as(op, () => {
      const given = reading(op, 'files', () => {
        if (!isPlainObject(files)) fail('ARGUMENT', op, 'files', describe(files), 'an object of files by name');
        for (const name of Object.keys(files))
          if (!(names as readonly string[]).includes(name))
            fail('ARGUMENT', op, 'files', `has ${JSON.stringify(name)}`, `one of them; ${hint(name, names)}`);
        return names.map((name) => {
          const content: unknown = files[name];
          if (content === undefined) return undefined;
          return typeof content === 'string' ? encodeUtf8(content) : readBytes(op, `files[${JSON.stringify(name)}]`, content);
        });
      });
      const [tokenizer, tokenizerConfig, config] = given;
      if (!tokenizer) fail('ARGUMENT', op, 'files["tokenizer.json"]', 'is missing', 'text or bytes');
      const member = (bytes: Uint8Array | undefined, file: string, name: string): unknown =>
        bytes && (readObject(bytes, file) as Readonly<Record<string, unknown>>)[name];
      const modelType = member(config, 'config.json', 'model_type');
      const most = member(tokenizerConfig, 'tokenizer_config.json', 'model_max_length');
      const isLimit = typeof most === 'number' && Number.isInteger(most) && most >= 1 && most < noLimit;
      return new Tokenizer(made, new Inner({ tokenizer, tokenizerConfig, modelType }), isLimit ? most : noLimit);
    });
  }

  get vocabularySize(): number {
    return this.#inner.size;
  }

  encode(texts: Parameters<Contract['encode']>[0], options?: Parameters<Contract['encode']>[1]): Encoding {
    const op = 'encode';
    return as(op, () => {
      const list = readTexts(op, texts, true);
      const { plain } = readTextOptions(op, options, ['maxLength', 'truncation', 'addSpecialTokens', 'truncationSide']);
      return this.#inner.encode(list, { maxLength: this.#maxLength, truncation: true, ...plain });
    });
  }

  decode(ids: ArrayLike<number>, options?: Parameters<Contract['decode']>[1]): string {
    return as('decode', () => this.#inner.decode(readIds(ids), readDecodeOptions(options)));
  }

  tokenToId(token: string): number | undefined {
    return this.#inner.tokenToId(readToken('tokenToId', token));
  }

  idToToken(id: number): string | undefined {
    return this.#inner.idToToken(readId('idToToken', id));
  }
}
