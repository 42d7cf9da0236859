/** attn embed, classify, tag, fill, answer, rank: a line in, a line out. src/command/texts.cpp writes the same bytes. */
import { createReadStream, fstatSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import type { TextModel } from '../attn.js';
import { type Call, Misuse } from './options.js';
import { reason } from '../args/error.js';
import { AttnError, load } from '../node.js';

/** What a line asks for: the strings of a JSON object, or a text. */
interface Query {
  readonly text: string;
  /** The context of a question. */
  readonly context: string;
  readonly documents: readonly string[];
}
/** What is written of a line; vectors alone can be npy. */
interface Result {
  readonly json: string;
  readonly text: string;
  readonly numbers?: Float32Array;
}
type Run = (model: TextModel, queries: readonly Query[], options: Call['options']) => Promise<Result[]>;

/** The fewest digits that are this number of 32 bits, and no other. */
function number(value: number): string {
  if (!Number.isFinite(value)) return 'null';
  const single = Math.fround(value);
  for (let digits = 6; digits < 9; ++digits) {
    const short = Number(single.toPrecision(digits));
    if (Math.fround(short) === single) return String(short);
  }
  return String(Number(single.toPrecision(9)));
}

/** Words between tabs, each without what would end it or the line. */
const columns = (words: readonly string[]) => words.map((word) => word.replace(/[\t\r\n]/g, ' ')).join('\t');
/** An object; numbers that are whole stand as they are. */
const member = ([name, value]: readonly [string, string]) => `${JSON.stringify(name)}:${value}`;
const object = (members: Readonly<Record<string, string>>) => `{${Object.entries(members).map(member).join(',')}}`;
const array = (items: readonly string[]) => `[${items.join(',')}]`;

/** Gives places in a text as Python counts, in characters. Places that come in their order are reached by going through the text once. */
function placesIn(text: string) {
  let [at, characters] = [0, 0];
  const charactersTo = (end: number) => {
    if (end < at) at = characters = 0;
    for (; at < end; ++characters) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
    return String(characters);
  };
  return ({ start, end }: { readonly start: number; readonly end: number }) => ({ start: charactersTo(start), end: charactersTo(end) });
}

const textsOf = (queries: readonly Query[]) => queries.map(({ text }) => text);
/** The options that were given, by the names of the model's. */
function named(options: Call['options'], ...names: readonly (keyof Call['options'])[]): object {
  const camel = (name: string) => name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(names.filter((name) => options[name] !== undefined).map((name) => [camel(name), options[name]]));
}

const runs: Readonly<Record<string, Run>> = {
  async embed(model, queries, options) {
    const { data, dims } = await model.embed(textsOf(queries), named(options, 'max-length', 'batch-size'));
    return queries.map((_, i) => {
      const numbers = data.slice(i * dims[1]!, (i + 1) * dims[1]!);
      if (options.output === 'npy') return { json: '', text: '', numbers };
      const words = Array.from(numbers, number);
      return { json: array(words), text: words.join('\t') };
    });
  },
  async classify(model, queries, options) {
    const results = await model.classify(textsOf(queries), named(options, 'max-length', 'batch-size'));
    return results.map((all) => {
      const first = all.slice(0, options['top-k'] as number | undefined);
      return {
        json: array(first.map(({ label, score }) => object({ label: JSON.stringify(label), score: number(score) }))),
        text: columns(first.flatMap(({ label, score }) => [label, number(score)])),
      };
    });
  },
  async tag(model, queries, options) {
    const results = await model.classifyTokens(textsOf(queries), named(options, 'max-length', 'batch-size', 'stride', 'aggregation'));
    return results.map((entities, i) => {
      const placed = placesIn(queries[i]!.text);
      const json = entities.map((entity) =>
        object({ label: JSON.stringify(entity.label), score: number(entity.score), text: JSON.stringify(entity.text), ...placed(entity) }),
      );
      return { json: array(json), text: columns(entities.flatMap(({ label, text }) => [label, text])) };
    });
  },
  async fill(model, [query], options) {
    const masks = await model.fillMask(query!.text, named(options, 'top-k'));
    const tokens = masks.map((all) =>
      all.map(({ token, id, score, text }) =>
        object({ token: JSON.stringify(token), id: String(id), score: number(score), text: JSON.stringify(text) }),
      ),
    );
    return [{ json: array(tokens.map(array)), text: columns(masks.flat().map(({ token }) => token)) }];
  },
  async answer(model, [query], options) {
    const { text: question, context } = query!;
    const answers = await model.answer(question, context, named(options, 'top-k', 'stride'));
    const placed = placesIn(context);
    const json = answers.map((answer) => object({ text: JSON.stringify(answer.text), score: number(answer.score), ...placed(answer) }));
    return [{ json: array(json), text: columns(answers.map(({ text }) => text)) }];
  },
  async rank(model, [query], options) {
    const documents = await model.rank(query!.text, query!.documents, named(options, 'max-length', 'batch-size', 'top-k'));
    const json = documents.map(({ index, score }) => object({ index: String(index), score: number(score) }));
    return [{ json: array(json), text: columns(documents.map(({ index }) => String(index))) }];
  },
};

/** What the head has to be for. */
const tasks = { classify: 'text-classification', tag: 'token-classification', fill: 'fill-mask', answer: 'question-answering' } as const;

/** The lines of a stream, the last with or without its end. */
async function* linesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let open: Buffer[] = [];
  for await (const piece of stream) {
    let from = 0;
    for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10, from)) {
      yield Buffer.concat([...open, piece.subarray(from, end)]);
      open = [];
      from = end + 1;
    }
    if (from < piece.length) open.push(piece.subarray(from));
  }
  if (open.length > 0) yield Buffer.concat(open);
}

/** A line that is refused, by its number. */
class BadLine extends Error {}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
function decoded(line: Buffer, isFirst: boolean): string {
  try {
    const text = utf8.decode(line);
    return (isFirst ? text.replace(/^\ufeff/, '') : text).replace(/\r$/, '');
  } catch {
    throw new BadLine('is not UTF-8');
  }
}

const hasLoneSurrogate = (text: string) => /[\ud800-\udfff]/u.test(text);

function queryOf(command: string, line: string, isJson: boolean): Query {
  if (!isJson) return { text: line, context: '', documents: [] };
  let value: unknown;
  try {
    value = JSON.parse(line, (_, each: unknown) => {
      if (typeof each === 'string' && hasLoneSurrogate(each)) throw new Error();
      return each;
    });
  } catch {
    throw new BadLine('is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new BadLine('is JSON, but no object');
  const members = value as Readonly<Record<string, unknown>>;
  const text = (name: string) => {
    const each = Object.hasOwn(members, name) ? members[name] : undefined;
    if (typeof each !== 'string') throw new BadLine(`${name} is ${each === undefined || each === null ? 'missing' : 'no string'}`);
    return each;
  };
  if (command === 'answer') return { text: text('question'), context: text('context'), documents: [] };
  if (command !== 'rank') return { text: text('text'), context: '', documents: [] };
  const query = text('query');
  const documents = Object.hasOwn(members, 'documents') ? members['documents'] : undefined;
  if (!Array.isArray(documents) || documents.some((each) => typeof each !== 'string')) throw new BadLine('documents is no list of strings');
  return { text: query, context: '', documents: documents as string[] };
}

/** Where results go: lines, or vectors whose number is known at the end. */
class Output {
  readonly #file: FileHandle | undefined;
  readonly #width: number | undefined;
  readonly #kept: Uint8Array[] = [];
  #rows = 0;

  /** Of `width` numbers a row where it is npy. A pipe cannot be gone back in: vectors wait until their number is known. */
  constructor(file: FileHandle | undefined, width: number | undefined) {
    this.#file = file;
    this.#width = width;
  }

  async start(): Promise<void> {
    if (this.#file && this.#width !== undefined) await this.#put(this.#header());
  }

  async add(results: readonly Result[], isText: boolean): Promise<void> {
    this.#rows += results.length;
    if (this.#width === undefined) {
      await this.#put(Buffer.from(results.map(({ json, text }) => `${isText ? text : json}\n`).join('')));
      return;
    }
    const bytes = results.map(({ numbers }) => new Uint8Array(numbers!.buffer, numbers!.byteOffset, numbers!.byteLength));
    if (this.#file) await this.#put(Buffer.concat(bytes));
    else this.#kept.push(...bytes);
  }

  async end(): Promise<void> {
    if (this.#width === undefined) return;
    if (this.#file) await this.#file.write(this.#header(), 0, undefined, 0);
    else for (const bytes of [this.#header(), ...this.#kept]) await this.#put(bytes);
  }

  /** 128 bytes, whatever the number of rows. */
  #header(): Buffer {
    const dictionary = `{'descr': '<f4', 'fortran_order': False, 'shape': (${this.#rows}, ${this.#width}), }`;
    return Buffer.from(`\x93NUMPY\x01\x00\x76\x00${dictionary.padEnd(117)}\n`, 'latin1');
  }

  async #put(bytes: Uint8Array): Promise<void> {
    if (this.#file) {
      for (let at = 0; at < bytes.length;) at += (await this.#file.write(bytes, at)).bytesWritten;
      return;
    }
    await new Promise<void>((resolve, reject) => process.stdout.write(bytes, (error) => (error ? reject(error) : resolve())));
  }
}

/** How far it is, on a terminal that shows nothing else. */
class Progress {
  readonly #size: number | undefined;
  readonly #shown: boolean;
  #next = 0;

  constructor(size: number | undefined, shown: boolean) {
    this.#size = size;
    this.#shown = shown;
  }

  report(lines: number, bytes: number): void {
    if (!this.#shown || Date.now() < this.#next) return;
    this.#next = Date.now() + 100;
    const share = this.#size ? Math.min(bytes / this.#size, 1) : undefined;
    const bar = share === undefined ? '' : `[${'#'.repeat(Math.floor(share * 30)).padEnd(30, '-')}] ${Math.floor(share * 100)} %, `;
    process.stderr.write(`\r${bar}${lines} lines`);
  }

  clear(): void {
    if (this.#shown) process.stderr.write('\r\x1b[K');
  }
}

/** Texts that are sorted by their lengths together; fewer where they are long. */
const batchesAtATime = 16;
const mostBytes = 4 << 20;

/** Results of the lines, and in the end what the first bad one throws: what stands before it is written. */
async function runLines(model: TextModel, { command, paths: [, path], options }: Call, output: Output, progress: Progress): Promise<void> {
  const isJson = command === 'answer' || command === 'rank' || options.jsonl !== undefined || (path ?? '').endsWith('.jsonl');
  const atOnce = ['embed', 'classify', 'tag'].includes(command) ? batchesAtATime * ((options['batch-size'] as number | undefined) ?? 32) : 1;
  const stream: AsyncIterable<Buffer> = path === undefined ? process.stdin : createReadStream(path);
  let waiting: Query[] = [];
  let [count, bytes, waitingBytes] = [0, 0, 0];
  const flush = async () => {
    if (waiting.length === 0) return;
    const queries = waiting;
    [waiting, waitingBytes] = [[], 0];
    let results: Result[];
    try {
      results = await runs[command]!(model, queries, options);
    } catch (error) {
      if (!(error instanceof AttnError)) throw error;
      const first = count - queries.length + 1;
      const where = queries.length === 1 ? `line ${first}` : `lines ${first} to ${count}`;
      throw new Error(`${where}: ${error.code}: ${error.message}`, { cause: error });
    }
    await output.add(results, options.output === 'text');
    progress.report(count, bytes);
  };
  for await (const line of linesOf(stream)) {
    bytes += line.length + 1;
    let query: Query;
    try {
      query = queryOf(command, decoded(line, count === 0), isJson);
    } catch (error) {
      if (!(error instanceof BadLine)) throw error;
      await flush();
      throw new Error(`line ${count + 1}: ${reason(error)}`, { cause: error });
    }
    ++count;
    waiting.push(query);
    waitingBytes += line.length;
    if (waiting.length >= atOnce || waitingBytes >= mostBytes) await flush();
  }
  await flush();
}

function assertTask(command: string, { task, labels = [] }: TextModel): void {
  const wanted = command === 'rank' ? 'text-classification' : tasks[command as keyof typeof tasks];
  if (wanted !== undefined && task !== wanted) throw new Error(`MODEL is for ${task}, expected one for ${wanted}`);
  if (command === 'rank' && labels.length !== 1) throw new Error(`MODEL has ${labels.length} labels, expected one, as a cross-encoder has`);
}

export async function runTexts(call: Call): Promise<void> {
  const { command, options, paths } = call;
  const isNpy = options.output === 'npy';
  const [folder, path] = paths as [string, string?];
  const out = options.out as string | undefined;
  if (isNpy && out === undefined && process.stdout.isTTY) throw new Misuse('--output npy is nothing to read; --out PATH writes it to a file');
  const source = path === undefined ? undefined : await open(path);
  const size = source ? (await source.stat()).size : fstatSync(0).isFile() ? fstatSync(0).size : undefined;
  await source?.close();
  // ATTN_VARIANT is for tests: the arithmetic that the native library has with ATTN_MAX_ARCH=emulated.
  const variant = process.env['ATTN_VARIANT'] === 'simd' ? 'simd' : 'auto';
  const attn = await load({ variant });
  try {
    const model = await attn.loadModel(folder, { weights: (options.weights as 'float32' | 'int8' | undefined) ?? 'auto' });
    assertTask(command, model);
    const width = isNpy ? (await model.embed([])).dims[1] : undefined;
    const file = out === undefined ? undefined : await open(out, 'w');
    const output = new Output(file, width);
    const progress = new Progress(size, process.stderr.isTTY && (out !== undefined || !process.stdout.isTTY));
    try {
      await output.start();
      try {
        await runLines(model, call, output, progress);
      } finally {
        progress.clear();
        await output.end();
      }
    } finally {
      await file?.close();
    }
  } finally {
    attn.dispose();
  }
}
