import type { Task, Tensor } from '../attn.js';
import { aborted } from '../platform/abort.js';
import { takeTurn, yieldEvery30ms } from '../platform/event_loop.js';
import { allocate, AttnError, fail } from '../args/error.js';
import { tell } from '../args/options.js';
import { type Leaf, readArguments, type Signature } from '../args/signature.js';
import { type ModelFacts, type ModelState, signatureOf } from './model_state.js';
import type { CheckedTextOptions, Text, TextOptions } from '../args/model_options.js';
import type { EncodeOptions, Tokenizer } from '../tokenizer/tokenizer.js';

export interface Row {
  readonly index: number;
  readonly ids: Int32Array;
  readonly types: Int32Array;
}

/** Texts sorted at a time, which bounds the memory for long lists. */
const mostSorted = 8192;
const mostTexts = 32;
/** Tokens × `work` that take one thread about 30 ms with float32 and int8 weights: a page can draw after each batch. */
const batchWork = [5e7, 1e8] as const;

export function textsOfBatch({ work, quantized }: ModelFacts, threads: number, tokens: number): number {
  return Math.min(Math.max(1, Math.floor((batchWork[quantized ? 1 : 0] * threads) / (work * tokens))), mostTexts);
}

export function encodeOptionsOf(operation: string, { maxLength, positions, tokenTypes }: ModelFacts, options: TextOptions): EncodeOptions {
  const wanted = options.maxLength ?? maxLength;
  if (wanted > positions)
    throw new AttnError('OUT_OF_RANGE', `${operation}: maxLength is ${wanted}, expected at most ${positions}`, {
      op: operation,
      argument: 'maxLength',
      expected: `at most ${positions}`,
      got: String(wanted),
    });
  const { truncation = true, addSpecialTokens, truncationSide } = options;
  return { maxLength: wanted, truncation, tokenTypes, addSpecialTokens, truncationSide };
}

function joined(operation: string, rows: readonly Row[], name: 'ids' | 'types'): Int32Array {
  const size = rows.reduce((sum, { ids }) => sum + ids.length, 0);
  const all = allocate(operation, 4 * size, () => new Int32Array(size));
  let at = 0;
  for (const row of rows) {
    all.set(row[name], at);
    at += row.ids.length;
  }
  return all;
}

export function tokenized(operation: string, tokenizer: Tokenizer, text: Text, index: number, limit: EncodeOptions): Row & { truncated: boolean } {
  return withTextIndex(operation, index, () => ({ index, ...tokenizer.ids(text, limit) }));
}

/** The tokenizer saw one text, the caller has many. */
export function withTextIndex<T>(op: string, index: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof AttnError) || error.detail['index'] !== 0) throw error;
    const message = error.message.replace(/^\w+:/, `${op}:`).replace(/\btext(s\[0\]| 0\b)/, `texts[${index}]`);
    throw new AttnError(error.code, message, { ...error.detail, op, index });
  }
}

/** `prompt` has precedence over `promptName`, as in sentence-transformers. */
export function promptOf(op: string, { prompts, defaultPrompt }: ModelFacts, { prompt, promptName }: TextOptions): string {
  if (prompt !== undefined) return prompt;
  if (promptName === undefined) return defaultPrompt;
  if (Object.hasOwn(prompts, promptName)) return prompts[promptName]!;
  fail('CONFIG', op, 'promptName', `is ${JSON.stringify(promptName)}`, `one of ${Object.keys(prompts).join(', ')}`);
}

export function assertTask(op: string, { task }: ModelFacts, expected: Task): void {
  if (task === expected) return;
  const got = task === 'embedding' ? 'a model without a head' : `a model for ${task}`;
  const wanted = `a model with a head for ${expected}`;
  throw new AttnError('UNSUPPORTED', `${op}: the checkpoint is ${got}, expected ${wanted}`, {
    op,
    argument: 'the checkpoint',
    expected: wanted,
    got,
  });
}

export interface Work<R extends Row> {
  readonly count: number;
  rowsOf(index: number): readonly R[];
  readonly method: string;
  /** Further arguments. */
  others?(rows: readonly R[]): readonly unknown[];
  /** For methods that do not take joined ids. */
  leavesOf?(rows: readonly R[], signature: Signature): readonly Leaf[];
  use(rows: readonly R[], result: Tensor): void;
}

/** Starts with the longest texts, so that running out of memory shows at once. */
export async function inBatches<R extends Row>(
  op: string,
  find: () => ModelState,
  { plain: { batchSize, priority }, signal, onProgress }: CheckedTextOptions,
  { count, rowsOf, method, others, leavesOf, use }: Work<R>,
): Promise<void> {
  const { about, context } = find();
  const { engine } = context;
  engine.assertUsable(op);
  const signature = signatureOf(engine, method);
  const { threads } = engine.info;
  const turn = async () => {
    await takeTurn(priority === 'user');
    if (signal?.aborted) throw aborted(signal, op);
  };
  let done = 0;
  const report = () => tell(op, onProgress, { done, total: count });
  if (signal?.aborted) throw aborted(signal, op);
  report();
  const sometimes = yieldEvery30ms(turn);
  for (let start = 0; start < count; start += mostSorted) {
    const rows: R[] = [];
    for (let index = start; index < Math.min(start + mostSorted, count); ++index) {
      rows.push(...rowsOf(index));
      await sometimes();
    }
    rows.sort((a, b) => b.ids.length - a.ids.length);
    for (let batch: R[], from = 0; from < rows.length; from += batch.length) {
      await turn();
      batch = rows.slice(from, from + (batchSize ?? textsOfBatch(about, threads, rows[from]!.ids.length)));
      const lengths = () => Int32Array.from(batch, ({ ids }) => ids.length);
      const packed = () => [joined(op, batch, 'ids'), joined(op, batch, 'types'), lengths(), ...(others?.(batch) ?? [])];
      const leaves = leavesOf?.(batch, signature) ?? readArguments(op, signature, packed());
      use(batch, engine.call(op, signature, leaves, find().handle) as Tensor);
      done += batch.length;
      report();
    }
  }
}

export interface ModelAccess {
  find(): ModelState;
  replaceHead(labels: readonly string[], files: ModelState['files'], config: ModelState['config']): void;
}
