/** src/command/texts.cpp writes the same bytes. */
import { fstatSync } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import type { TextModel } from '../attn.js';
import { type Call, Misuse } from './options.js';
import { Output, type Result } from './output.js';
import { quoted } from './printable.js';
import { Progress } from './progress.js';
import { replacing, WrittenSoFar } from './unfinished.js';
import { array, columns, number, object } from './written.js';
import { reason } from '../args/error.js';
import { decodeStrictUtf8 } from '../platform/utf8.js';
import { AttnError, load } from '../node.js';

interface Query {
  readonly text: string;
  readonly context: string;
  readonly documents: readonly string[];
}
type Run = (model: TextModel, queries: readonly Query[], options: Call['options']) => Promise<Result[]>;

/** Counts characters as Python does. Ascending offsets take one pass. */
export function placesIn(text: string) {
  let [at, characters] = [0, 0];
  const charactersTo = (end: number) => {
    if (end < at) at = characters = 0;
    for (; at < end; ++characters) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
    return String(characters);
  };
  return ({ start, end }: { readonly start: number; readonly end: number }) => ({ start: charactersTo(start), end: charactersTo(end) });
}

const textsOf = (queries: readonly Query[]) => queries.map(({ text }) => text);
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
        json: array(first.map(({ label, score }) => object({ label: quoted(label), score: number(score) }))),
        text: columns(first.flatMap(({ label, score }) => [label, number(score)])),
      };
    });
  },
  async tag(model, queries, options) {
    const results = await model.classifyTokens(textsOf(queries), named(options, 'max-length', 'batch-size', 'stride', 'aggregation'));
    return results.map((entities, i) => {
      const placed = placesIn(queries[i]!.text);
      const json = entities.map((entity) =>
        object({ label: quoted(entity.label), score: number(entity.score), text: quoted(entity.text), ...placed(entity) }),
      );
      return { json: array(json), text: columns(entities.flatMap(({ label, text }) => [label, text])) };
    });
  },
  async fill(model, [query], options) {
    const masks = await model.fillMask(query!.text, named(options, 'top-k'));
    const tokens = masks.map((all) =>
      all.map(({ token, id, score, text }) => object({ token: quoted(token), id: String(id), score: number(score), text: quoted(text) })),
    );
    return [{ json: array(tokens.map(array)), text: columns(masks.flat().map(({ token }) => token)) }];
  },
  async answer(model, [query], options) {
    const { text: question, context } = query!;
    const answers = await model.answer(question, context, named(options, 'top-k', 'stride'));
    const placed = placesIn(context);
    const json = answers.map((answer) => object({ text: quoted(answer.text), score: number(answer.score), ...placed(answer) }));
    return [{ json: array(json), text: columns(answers.map(({ text }) => text)) }];
  },
  async rank(model, [query], options) {
    const documents = await model.rank(query!.text, query!.documents, named(options, 'max-length', 'batch-size', 'top-k'));
    const json = documents.map(({ index, score }) => object({ index: String(index), score: number(score) }));
    return [{ json: array(json), text: columns(documents.map(({ index }) => String(index))) }];
  },
};

const tasks = { classify: 'text-classification', tag: 'token-classification', fill: 'fill-mask', answer: 'question-answering' } as const;

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

class BadLine extends Error {}

function decoded(line: Buffer, isFirst: boolean): string {
  try {
    const text = decodeStrictUtf8(line);
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
      if (typeof each === 'string' && hasLoneSurrogate(each)) throw new BadLine('has half a surrogate pair, expected whole characters');
      return each;
    });
  } catch (error) {
    throw error instanceof BadLine ? error : new BadLine('is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new BadLine('is not a JSON object');
  const members = value as Readonly<Record<string, unknown>>;
  const text = (name: string) => {
    const each = Object.hasOwn(members, name) ? members[name] : undefined;
    if (typeof each !== 'string') throw new BadLine(`${name} is ${each === undefined || each === null ? 'missing' : 'not a string'}`);
    return each;
  };
  if (command === 'answer') return { text: text('question'), context: text('context'), documents: [] };
  if (command !== 'rank') return { text: text('text'), context: '', documents: [] };
  const query = text('query');
  const documents = Object.hasOwn(members, 'documents') ? members['documents'] : undefined;
  if (!Array.isArray(documents) || documents.some((each) => typeof each !== 'string')) throw new BadLine('documents is not a list of strings');
  return { text: query, context: '', documents: documents as string[] };
}

/** Limits of texts that are sorted by length together. */
const batchesAtATime = 16;
const mostBytes = 4 << 20;

interface Input {
  readonly file: FileHandle | undefined;
  readonly isJson: boolean;
  readonly size: number | undefined;
}

/** Opens FILE once: a named pipe would lose its writer. */
async function openInput({ command, paths: [, given], options }: Call): Promise<Input> {
  const path = given === '-' ? undefined : given;
  const isJson = ['answer', 'rank'].includes(command) || options.jsonl !== undefined || /\.(jsonl|ndjson)$/i.test(path ?? '');
  const file = path === undefined ? undefined : await open(path);
  const about = file ? await file.stat() : fstatSync(0);
  if (about.isDirectory()) {
    await file?.close();
    throw new Error(`${path ?? 'standard input'}: Is a directory`);
  }
  const out = typeof options.out === 'string' ? await stat(options.out).catch(() => undefined) : undefined;
  if (about.isFile() && out?.ino === about.ino && out.dev === about.dev) {
    await file?.close();
    throw new Misuse(`--out is ${options.out as string}, which is the input, expected another file`);
  }
  return { file, isJson, size: about.isFile() ? about.size : undefined };
}

/** Buffered lines would delay signals and timers. */
const yieldToEventLoop = () => new Promise((resolve) => void setImmediate(resolve));

/** Throws for the first bad line, once the results before it are written. */
async function runLines(
  model: TextModel,
  { command, options }: Call,
  { file, isJson, size }: Input,
  output: Output,
  progress: Progress,
): Promise<void> {
  const atOnce = ['embed', 'classify', 'tag'].includes(command) ? batchesAtATime * ((options['batch-size'] as number | undefined) ?? 32) : 1;
  const stream: AsyncIterable<Buffer> = file?.createReadStream() ?? process.stdin;
  let waiting: { readonly query: Query; readonly line: number }[] = [];
  let [lines, bytes, waitingBytes] = [0, 0, 0];
  const flush = async () => {
    if (waiting.length === 0) return;
    const [from, to] = [waiting[0]!.line, waiting.at(-1)!.line];
    const queries = waiting.map(({ query }) => query);
    [waiting, waitingBytes] = [[], 0];
    let results: Result[];
    try {
      results = await runs[command]!(model, queries, options);
    } catch (error) {
      if (!(error instanceof AttnError)) throw error;
      const where = from === to ? `line ${from}` : `lines ${from} to ${to}`;
      throw new WrittenSoFar(`${where}: ${error.code}: ${error.message}`, { cause: error });
    }
    await output.add(results, options.output === 'text');
    progress.report(lines, bytes, size);
    await yieldToEventLoop();
  };
  for await (const line of linesOf(stream)) {
    bytes += line.length + 1;
    ++lines;
    let query: Query;
    try {
      const text = decoded(line, lines === 1);
      if (isJson && /^[ \t\r]*$/.test(text)) continue;
      query = queryOf(command, text, isJson);
    } catch (error) {
      if (!(error instanceof BadLine)) throw error;
      await flush();
      throw new WrittenSoFar(`line ${lines}: ${reason(error)}`, { cause: error });
    }
    waiting.push({ query, line: lines });
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
  const out = options.out === '-' ? undefined : (options.out as string | undefined);
  if (isNpy && out === undefined && process.stdout.isTTY)
    throw new Misuse('standard output is a terminal, expected a file for --output npy. Use --out PATH.');
  const input = await openInput(call);
  // For tests: simd computes as the native library with ATTN_MAX_ARCH=emulated.
  const variant = process.env['ATTN_VARIANT'] === 'simd' ? 'simd' : 'auto';
  const attn = await load({ variant });
  try {
    const model = await attn.loadModel(paths[0]!, { weights: (options.weights as 'float32' | 'int8' | undefined) ?? 'auto' });
    assertTask(command, model);
    const width = isNpy ? (await model.embed([])).dims[1] : undefined;
    const progress = new Progress('line', process.stderr.isTTY && (out !== undefined || !process.stdout.isTTY));
    const write = async (file?: FileHandle, isFile = false) => {
      const output = new Output(out, file, isFile, width);
      await output.start();
      try {
        await runLines(model, call, input, output, progress);
      } finally {
        progress.clear();
        await output.end();
      }
    };
    await (out === undefined ? write() : replacing(out, write));
  } finally {
    await input.file?.close();
    attn.dispose();
  }
}
