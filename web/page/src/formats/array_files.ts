/** Arrays in a file of any kind that people keep them in: .npy, safetensors, JSON, CSV, or a print of NumPy or PyTorch. */
import type { Tensor } from 'attn';
import { parseMatrixText } from './matrix_text.ts';
import { isNpy, parseNpy } from './npy.ts';

/** What JSON has no word for is written as text. */
const numberWords = ['NaN', 'Infinity', '-Infinity'];
const unquoted = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/"(-?Infinity|NaN)"/g, (quoted, word: string) => (numberWords.includes(word) ? word : quoted));

interface Described {
  readonly data?: unknown;
  readonly dims?: unknown;
}

/** The package's own form, { data, dims }. */
function described({ data, dims }: Described): Tensor | undefined {
  const isList = (value: unknown): value is number[] => Array.isArray(value) && value.every((each) => typeof each === 'number');
  if (!isList(data) || !isList(dims) || dims.reduce((a, b) => a * b, 1) !== data.length) return undefined;
  return { data: Float32Array.from(data), dims };
}

/** Every array in a JSON file, by its name; of a file that is one array, that under ''. */
function inJson(text: string, minRank: number): ReadonlyMap<string, Tensor> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Python writes NaN and Infinity bare, as the reader of lists takes them.
    return new Map([['', parseMatrixText(text, minRank)]]);
  }
  if (Array.isArray(value)) return new Map([['', parseMatrixText(unquoted(value), minRank)]]);
  if (typeof value !== 'object' || value === null) throw new Error('There is no array in it.');
  const whole = described(value);
  if (whole) return new Map([['', whole]]);
  const arrays = new Map<string, Tensor>();
  let failure: Error | undefined;
  for (const [name, each] of Object.entries(value) as (readonly [string, unknown])[]) {
    const tensor = typeof each === 'object' && each !== null ? described(each) : undefined;
    if (tensor) arrays.set(name, tensor);
    else if (Array.isArray(each))
      try {
        arrays.set(name, parseMatrixText(unquoted(each), minRank));
      } catch (error) {
        failure ??= error as Error; // names, for example
      }
  }
  if (arrays.size === 0) throw failure ?? new Error('There is no array in it.');
  return arrays;
}

const isText = (name: string) => /\.(json|csv|tsv|txt)$/i.test(name);

/** By their names; of a file that has one without a name, under ''. */
export async function arraysIn(
  file: File,
  minRank: number,
  parseSafetensors: (bytes: Uint8Array) => Promise<ReadonlyMap<string, Tensor>>,
): Promise<ReadonlyMap<string, Tensor>> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (isNpy(bytes) || /\.npy$/i.test(file.name)) return new Map([['', parseNpy(bytes)]]);
  if (!isText(file.name)) return parseSafetensors(bytes);
  const text = new TextDecoder().decode(bytes);
  return /\.json$/i.test(file.name) ? inJson(text, minRank) : new Map([['', parseMatrixText(text, minRank)]]);
}

/** What a checkpoint calls the weights of a field. */
const aliases: Readonly<Record<string, RegExp>> = {
  Q: /^(q|query)$/i,
  K: /^(k|key)$/i,
  V: /^(v|value)$/i,
  Wq: /(^|\.)(q_proj|query|to_q|q_lin|q)\.weight$/i,
  Wk: /(^|\.)(k_proj|key|to_k|k_lin|k)\.weight$/i,
  Wv: /(^|\.)(v_proj|value|to_v|v_lin|v)\.weight$/i,
  Wo: /(^|\.)(out_proj|o_proj|out_lin|to_out|attention\.output\.dense|o)\.weight$/i,
};

/** Of several arrays the one that is called like the field, or else the first: a field is never left with what was in it before. */
export const nameFor = (field: string, names: readonly string[]): string =>
  names.find((each) => each.toLowerCase() === field.toLowerCase()) ?? names.find((each) => aliases[field]?.test(each)) ?? names[0]!;
