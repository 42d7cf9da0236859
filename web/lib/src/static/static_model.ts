/** attn/static: text vectors that are the mean of a table's rows. */
import type { Encoding, Tensor } from '../attn.js';
import type { Fetch } from '../host.js';
import type { StaticModel as Contract } from '../static.js';
import { allocate, asOperation, AttnError, describe, fail, reading } from '../args/error.js';
import { frozen, readSource, readTextOptions, readTexts, type Source } from '../args/model_options.js';
import { readCallback, readSignal } from '../args/options.js';
import { readMembers, whole } from '../args/signature.js';
import { abortable } from '../platform/abort.js';
import { instanceKey, unknownIdKey } from '../platform/instance.js';
import { readJson, readObject } from '../tokenizer/schema.js';
import { Tokenizer } from '../tokenizer/text_tokenizer.js';
import { absent, type File, readerOf } from './files.js';
import { readWeights, type Weights } from './weights.js';

export { AttnError };

const loading = 'loadStaticModel';
const noLimit = 2 ** 31 - 1;
/** model2vec's. */
const usualLimit = 512;
const made = Symbol();

interface Parts {
  readonly weights: Weights;
  readonly tokenizer: Tokenizer;
  readonly config: Readonly<Record<string, unknown>>;
  readonly width: number;
  readonly normalize: boolean;
  readonly maxLength: number;
}

/** Index of the code unit after `count` code points. */
function endOf(text: string, count: number): number {
  let at = 0;
  for (let i = 0; i < count && at < text.length; ++i) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return at;
}

interface Rows {
  readonly ids: ArrayLike<number>;
  readonly truncated: boolean;
}

export class StaticModel implements Contract {
  readonly config: Readonly<Record<string, unknown>>;
  readonly tokenizer: Tokenizer;
  readonly hiddenSize: number;
  readonly prompts: Readonly<Record<string, string>> = Object.freeze({});
  readonly #weights: Weights;
  readonly #normalize: boolean;
  readonly #maxLength: number;
  /** The id that no vector counts. */
  readonly #unknown: number | undefined;
  #median = 0;

  constructor(key: typeof made, { weights, tokenizer, config, width, normalize, maxLength }: Parts) {
    if (key !== made) fail('ARGUMENT', 'StaticModel', 'new', 'is called', 'loadStaticModel()');
    this.#weights = weights;
    this.tokenizer = tokenizer;
    this.config = config;
    this.hiddenSize = width;
    this.#normalize = normalize;
    this.#maxLength = maxLength;
    this.#unknown = weights.isModel2Vec ? tokenizer[unknownIdKey] : undefined;
  }

  /** attn/search computes without a module. */
  get [instanceKey](): undefined {
    return undefined;
  }

  get maxLength(): number {
    return this.#maxLength;
  }

  embed(texts: unknown, options?: unknown): Tensor & { truncated: boolean[] } {
    const op = 'embed';
    const list = readTexts(op, texts, false) as string[];
    const { plain } = readTextOptions(op, options, ['maxLength', 'truncation', 'normalize', 'prompt']);
    const { prompt = '', normalize = this.#normalize } = plain;
    const E = this.hiddenSize;
    const size = list.length * E;
    const data = allocate(op, 4 * size, () => new Float32Array(size));
    const sum = new Float64Array(E);
    const truncated = list.map((text, i) => {
      const row = this.#rows(op, prompt + text, plain);
      const count = this.#sum(op, row.ids, sum);
      let factor = 1 / Math.max(1, count);
      if (normalize) {
        const square = sum.reduce((total, value) => total + value * value, 0);
        factor = square === 0 ? 0 : 1 / Math.sqrt(square);
      }
      for (let e = 0; e < E; ++e) data[i * E + e] = sum[e]! * factor;
      return row.truncated;
    });
    return { data, dims: [list.length, E], truncated };
  }

  tokenize(texts: unknown, options?: unknown): Encoding {
    const op = 'tokenize';
    const list = readTexts(op, texts, false) as string[];
    const { plain } = readTextOptions(op, options, ['maxLength', 'truncation']);
    const cut = list.map((text) => this.#cut(text, plain));
    const encoding = asOperation(op, () => this.tokenizer.encode(cut, this.#options(plain)));
    return { ...encoding, truncated: encoding.truncated.map((each, i) => each || cut[i]!.length < list[i]!.length) };
  }

  forward(inputs: Pick<Encoding, 'inputIds' | 'attentionMask' | 'dims'>): { lastHiddenState: Tensor } {
    const op = 'forward';
    const { inputIds, attentionMask, dims } = reading(op, 'inputs', () => {
      const { inputIds, attentionMask, dims } = inputs;
      const size = dims[0]! * dims[1]!;
      if (dims.length !== 2 || inputIds.length !== size || attentionMask.length !== size)
        fail('SHAPE', op, 'inputs', `has ${inputIds.length} ids`, 'the result of tokenize()');
      return { inputIds, attentionMask, dims };
    });
    const E = this.hiddenSize;
    const data = allocate(op, 4 * inputIds.length * E, () => new Float32Array(inputIds.length * E));
    const sum = new Float64Array(E);
    for (let i = 0; i < inputIds.length; ++i)
      if (attentionMask[i]) {
        this.#sum(op, [inputIds[i]!], sum);
        data.set(sum, i * E);
      }
    return { lastHiddenState: { data, dims: [...dims, E] } };
  }

  #options({ maxLength = this.#maxLength, truncation = true }: { maxLength?: number; truncation?: boolean }) {
    return { maxLength, truncation, addSpecialTokens: false };
  }

  #rows(op: string, text: string, options: { maxLength?: number; truncation?: boolean }): Rows {
    const cut = this.#cut(text, options);
    const { inputIds, truncated } = asOperation(op, () => this.tokenizer.encode(cut, this.#options(options)));
    return { ids: inputIds, truncated: truncated[0]! || cut.length < text.length };
  }

  /** model2vec truncates characters first: to the median length of all tokens, times the number of tokens. */
  #cut(text: string, { maxLength = this.#maxLength, truncation = true }: { maxLength?: number; truncation?: boolean }): string {
    if (!truncation || !this.#weights.isModel2Vec || text.length <= maxLength) return text;
    this.#median ||= this.#medianLength();
    return text.slice(0, endOf(text, maxLength * this.#median));
  }

  #medianLength(): number {
    const lengths: number[] = [];
    const { rows } = this.#weights.table;
    const all = this.#weights.mapping?.length ?? rows;
    for (let id = 0; id < all; ++id) {
      const token = this.tokenizer.idToToken(id);
      if (token !== undefined) lengths.push(Array.from(token).length);
    }
    lengths.sort((a, b) => a - b);
    const middle = lengths.length / 2;
    return Math.floor((lengths[Math.ceil(middle) - 1]! + lengths[Math.floor(middle)]!) / 2);
  }

  /** Returns the number of tokens that count. */
  #sum(op: string, ids: ArrayLike<number>, sum: Float64Array): number {
    const { table, mapping, factors } = this.#weights;
    const most = mapping?.length ?? table.rows;
    let count = 0;
    sum.fill(0);
    for (let i = 0; i < ids.length; ++i) {
      const id = ids[i]!;
      if (id === this.#unknown) continue;
      if (!(id >= 0 && id < most)) fail('MISMATCH', op, `token ${i}`, `has the id ${id}`, `an id below ${most}, the rows of the matrix`);
      const row = mapping ? mapping[id]! : id;
      table.add(row, factors ? factors[id]! : 1, sum);
      ++count;
    }
    return count;
  }
}

function limitOf(config: Readonly<Record<string, unknown>>, file: string): number {
  const { max_length: limit = usualLimit } = config;
  if (limit === null) return noLimit;
  if (!Number.isInteger(limit) || (limit as number) < 1 || (limit as number) > noLimit)
    fail('FORMAT', loading, `${file}.max_length`, describe(limit), 'a whole number from 1, or null');
  return limit as number;
}

function normalizes(config: Readonly<Record<string, unknown>>, file: string): boolean {
  const { normalize = false } = config;
  return typeof normalize === 'boolean' ? normalize : fail('FORMAT', loading, `${file}.normalize`, describe(normalize), 'true or false');
}

const isNormalize = (type: unknown) => typeof type === 'string' && type.endsWith('.Normalize');

/** Whether sentence-transformers normalizes. */
function hasNormalize(file: File | undefined): boolean {
  if (!file) return false;
  const modules = readJson(file.bytes, 'modules.json');
  return Array.isArray(modules) && modules.some((each) => isNormalize((each as { type?: unknown } | null)?.type));
}

async function load(source: Source, dim: number | undefined, fetch: Fetch | undefined, signal: AbortSignal): Promise<StaticModel> {
  const read = readerOf(loading, source, fetch, signal);
  const needed = async (name: string) => {
    // Folders of sentence-transformers have either.
    const file = (await read(name)) ?? (await read(`0_StaticEmbedding/${name}`));
    if (!file) throw absent(loading, source, name);
    return file;
  };
  const [json, matrix, configFile] = await Promise.all([needed('tokenizer.json'), needed('model.safetensors'), read('config.json')]);
  const { tokenizer, weights } = asOperation(loading, () => {
    const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': json.bytes });
    return { tokenizer, weights: readWeights(loading, matrix.name, matrix.bytes, tokenizer.vocabularySize) };
  });
  const { isModel2Vec, table } = weights;
  if (dim !== undefined && dim > table.width) fail('CONFIG', loading, 'dim', `is ${dim}`, `at most ${table.width}, the width of the matrix`);
  const modules = isModel2Vec ? undefined : await read('modules.json');
  return asOperation(loading, () => {
    const config = frozen(configFile ? (readObject(configFile.bytes, 'config.json') as Record<string, unknown>) : {});
    const normalize = isModel2Vec ? normalizes(config, 'config.json') : hasNormalize(modules);
    const maxLength = isModel2Vec ? limitOf(config, 'config.json') : noLimit;
    return new StaticModel(made, { weights, tokenizer, config, width: dim ?? table.width, normalize, maxLength });
  });
}

export async function loadStaticModel(source: unknown, options?: unknown): Promise<StaticModel> {
  const from = asOperation(loading, () => readSource(source));
  const { fetch, dim, signal } = reading(loading, 'options', () => {
    const [fetch, dim, signal] = options === undefined ? [] : readMembers(loading, 'options', options, ['fetch', 'dim', 'signal']);
    return {
      fetch: readCallback(loading, 'fetch', fetch) as Fetch | undefined,
      dim: dim === undefined ? undefined : whole(loading, 'dim', dim, 1, noLimit),
      signal: readSignal(loading, signal),
    };
  });
  const ending = new AbortController();
  const onAbort = () => ending.abort(signal!.reason);
  signal?.addEventListener('abort', onAbort);
  if (signal?.aborted) onAbort();
  try {
    return await abortable(ending.signal, () => load(from, dim, fetch, ending.signal), loading);
  } finally {
    signal?.removeEventListener('abort', onAbort);
    ending.abort();
  }
}
