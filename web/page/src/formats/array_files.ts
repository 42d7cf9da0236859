/** Reads arrays from .npy, safetensors, JSON, CSV, and prints of NumPy or PyTorch. */
import type { Tensor } from 'attn';
import { truncate, longestName } from './truncate.ts';
import { MatrixTextError, parseMatrixText, tooDeep, tooLarge } from './matrix_text.ts';
import { counted, shapeText } from './numbers.ts';
import { isNpy, parseNpy } from './npy.ts';

/** Written as text because JSON has no such numbers. */
const numberWords = ['NaN', 'Infinity', '-Infinity'];
const unquoted = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/"(-?Infinity|NaN)"/g, (quoted, word: string) => (numberWords.includes(word) ? word : quoted));

/** Prints a JSON list for parseMatrixText. JSON.stringify() could overflow the stack, and writes infinite numbers as null. */
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

function described({ data, dims }: Described, minRank: number): Tensor | undefined {
  const isList = (value: unknown): value is number[] => Array.isArray(value) && value.every((each) => typeof each === 'number');
  if (!isList(data) || !isList(dims)) return undefined;
  const shape = truncate(shapeText(dims), longestName);
  if (dims.length < minRank || dims.length > 4 || !dims.every((size) => Number.isSafeInteger(size) && size >= 1))
    throw new MatrixTextError(`The array has dims ${shape}. Give ${minRank} to 4 whole numbers of at least 1.`);
  const count = dims.reduce((a, b) => a * b, 1);
  if (count !== data.length) throw new MatrixTextError(`The array has ${counted(data.length, 'number')}, but its dims ${shape} need ${count}.`);
  const large = data.find((value) => !Number.isFinite(Math.fround(value)));
  if (large !== undefined) throw tooLarge(Number.isFinite(large) ? String(large) : 'A number');
  return { data: Float32Array.from(data), dims };
}

/** The arrays of a JSON file by name; '' for a file that is a single array. */
function inJson(text: string, minRank: number): ReadonlyMap<string, Tensor> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Python writes bare NaN and Infinity, which parseMatrixText accepts.
    return new Map([['', parseMatrixText(text, minRank)]]);
  }
  if (Array.isArray(value)) return new Map([['', parseMatrixText(listText(value), minRank)]]);
  if (typeof value !== 'object' || value === null) throw new Error('The file contains no array.');
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
      failure ??= error as Error; // not an array, for example names
    }
  if (arrays.size === 0) throw failure ?? new Error('The file contains no array.');
  return arrays;
}

const isText = (name: string) => /\.(json|csv|tsv|txt)$/i.test(name);

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

const aliases: Readonly<Record<string, RegExp>> = {
  Q: /^(q|query)$/i,
  K: /^(k|key)$/i,
  V: /^(v|value)$/i,
  Wq: /(^|\.)(q_proj|query|to_q|q_lin|q)\.weight$/i,
  Wk: /(^|\.)(k_proj|key|to_k|k_lin|k)\.weight$/i,
  Wv: /(^|\.)(v_proj|value|to_v|v_lin|v)\.weight$/i,
  Wo: /(^|\.)(out_proj|o_proj|out_lin|to_out|attention\.output\.dense|o)\.weight$/i,
};

/** Otherwise the first, so that the field never keeps its old content. */
export const nameFor = (field: string, names: readonly string[]): string =>
  names.find((each) => each.toLowerCase() === field.toLowerCase()) ?? names.find((each) => aliases[field]?.test(each)) ?? names[0]!;
