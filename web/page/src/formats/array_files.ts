/** Arrays in a file of any kind that people keep them in: .npy, safetensors, JSON, CSV, or a print of NumPy or PyTorch. */
import type { Tensor } from 'attn';
import { cut, longestName } from './cut.ts';
import { MatrixTextError, parseMatrixText, tooDeep, tooLarge } from './matrix_text.ts';
import { counted, shapeText } from './numbers.ts';
import { isNpy, parseNpy } from './npy.ts';

/** What JSON has no word for is written as text. */
const numberWords = ['NaN', 'Infinity', '-Infinity'];
const unquoted = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/"(-?Infinity|NaN)"/g, (quoted, word: string) => (numberWords.includes(word) ? word : quoted));

/** A list of JSON as text for the reader of lists. JSON.stringify() would overflow the stack, and has no word for what JSON.parse() made infinite. */
function listText(list: readonly unknown[]): string {
  const check = (value: unknown, depth: number): void => {
    if (typeof value === 'number' && !Number.isFinite(value)) throw tooLarge('A number');
    if (!Array.isArray(value)) return;
    if (depth === 4) throw tooDeep();
    for (const each of value) check(each, depth + 1);
  };
  check(list, 0);
  return unquoted(list);
}

interface Described {
  readonly data?: unknown;
  readonly dims?: unknown;
}

/** The package's own form, { data, dims }. */
function described({ data, dims }: Described, minRank: number): Tensor | undefined {
  const isList = (value: unknown): value is number[] => Array.isArray(value) && value.every((each) => typeof each === 'number');
  if (!isList(data) || !isList(dims)) return undefined;
  const shape = cut(shapeText(dims), longestName);
  if (dims.length < minRank || dims.length > 4 || !dims.every((size) => Number.isSafeInteger(size) && size >= 1))
    throw new MatrixTextError(`The sizes of the array are ${shape}. Give ${minRank} to 4 whole numbers from 1.`);
  const count = dims.reduce((a, b) => a * b, 1);
  if (count !== data.length) throw new MatrixTextError(`The array has ${counted(data.length, 'number')}, and its sizes ${shape} need ${count}.`);
  const large = data.find((value) => !Number.isFinite(Math.fround(value)));
  if (large !== undefined) throw tooLarge(Number.isFinite(large) ? String(large) : 'A number');
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
  if (Array.isArray(value)) return new Map([['', parseMatrixText(listText(value), minRank)]]);
  if (typeof value !== 'object' || value === null) throw new Error('There is no array in it.');
  const whole = described(value, minRank);
  if (whole) return new Map([['', whole]]);
  const arrays = new Map<string, Tensor>();
  let failure: Error | undefined;
  for (const [name, each] of Object.entries(value) as (readonly [string, unknown])[])
    try {
      const tensor = Array.isArray(each)
        ? parseMatrixText(listText(each), minRank)
        : typeof each === 'object' && each !== null
          ? described(each, minRank)
          : undefined;
      if (tensor) arrays.set(name, tensor);
    } catch (error) {
      failure ??= error as Error; // names, for example
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
