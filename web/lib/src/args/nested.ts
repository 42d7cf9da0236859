import type { NestedNumbers, Tensor } from '../attn.js';
import { allocate, describe, fail, reading, shapeText } from './error.js';

const mostDims = 8;

/** The first elements decide the shape, which all others must have. */
export function tensor(values: NestedNumbers): Tensor {
  const op = 'tensor';
  const isList = (value: unknown): value is ArrayLike<unknown> =>
    Array.isArray(value) ||
    (ArrayBuffer.isView(value) && !(value instanceof DataView) && !(value instanceof BigInt64Array || value instanceof BigUint64Array));
  return reading(op, 'values', () => {
    const dims: number[] = [];
    for (let first: unknown = values; isList(first); first = first[0]) {
      if (dims.length === mostDims) fail('SHAPE', op, 'values', 'has more than 8 dimensions', 'at most 8');
      dims.push(first.length);
      if (first.length === 0) break;
    }
    const numbers: number[] = [];
    const add = (value: unknown, depth: number, path: string) => {
      if (depth === dims.length) {
        if (typeof value !== 'number') fail('ARGUMENT', op, path, describe(value), 'a number');
        numbers.push(value);
        return;
      }
      if (!isList(value)) fail(typeof value === 'number' ? 'SHAPE' : 'ARGUMENT', op, path, describe(value), `an Array of ${dims[depth]} elements`);
      if (value.length !== dims[depth]) fail('SHAPE', op, path, `has ${value.length} elements`, `${dims[depth]} as in ${shapeText(dims)}`);
      for (let i = 0; i < dims[depth]; ++i) add(value[i], depth + 1, `${path}[${i}]`);
    };
    add(values, 0, 'values');
    return { data: allocate(op, 4 * numbers.length, () => Float32Array.from(numbers)), dims };
  });
}
