import type { Tensor } from 'attn';
import { matrixText } from '../formats/matrix_text.ts';
import { product } from '../arithmetic/arrays.ts';
import { float32Text } from './csv.ts';
import { toNpy } from './npy.ts';

/** JSON has no NaN and infinities, so they are written as text. */
const jsonNumber = (value: number) => (Number.isFinite(value) ? float32Text(value) : `"${value}"`);

export function arraysToJson(arrays: Readonly<Record<string, Tensor>>): string {
  const entries = Object.entries(arrays).map(([name, tensor]) => `${JSON.stringify(name)}: ${matrixText(tensor, jsonNumber)}`);
  return `{\n${entries.join(',\n')}\n}\n`;
}

/** One line per row, preceded by its 1-based batch item and head. */
export function arrayToCsv({ data, dims }: Tensor, leading: readonly string[]): string {
  const width = dims.at(-1)!;
  const outer = dims.slice(0, -1);
  const names = [...outer.slice(0, -1).map((_, i) => leading[i] ?? `dimension ${i + 1}`), 'row'].slice(-outer.length);
  const lines = Array.from({ length: product(outer) }, (_, at) => {
    const place = outer.map((size, i) => (Math.floor(at / product(outer.slice(i + 1))) % size) + 1);
    return [...place, ...Array.from(data.subarray(at * width, (at + 1) * width), float32Text)].join(',');
  });
  return `${[...names, ...Array.from({ length: width }, (_, j) => `number ${j + 1}`)].join(',')}\r\n${lines.join('\r\n')}\r\n`;
}

export const arrayToNpy = ({ data, dims }: Tensor): Uint8Array<ArrayBuffer> => toNpy(data, dims);
