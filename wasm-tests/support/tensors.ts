import type { Dims, Mask, Tensor } from 'attn';
import { assert } from 'chai';
import { Generator } from './generator.ts';

export function product(dims: Dims): number {
  return dims.reduce((a, b) => a * b, 1);
}

export function tensor(dims: Dims, data: ArrayLike<number> | ((i: number) => number)): Tensor {
  const size = product(dims);
  const values = typeof data === 'function' ? Float32Array.from({ length: size }, (_, i) => data(i)) : Float32Array.from(data);
  return { data: values, dims: [...dims] };
}

export function random(g: Generator, dims: Dims, factor = 1): Tensor {
  return { data: g.floats(product(dims), factor), dims: [...dims] };
}

export function rows(values: readonly (readonly number[])[]): Tensor {
  return tensor([values.length, values[0].length], values.flat());
}

export function mask(kind: Mask['kind'], dims: Dims, data: ArrayLike<number>): Mask {
  return { kind, dims: [...dims], data: kind === 'additive' ? Float32Array.from(data) : Uint8Array.from(data) };
}

/** Rows [from, to) along dimension `axis`. */
export function slice(t: Tensor, axis: number, from: number, to: number): Tensor {
  const outer = product(t.dims.slice(0, axis));
  const inner = product(t.dims.slice(axis + 1));
  const n = t.dims[axis];
  const data = new Float32Array(outer * (to - from) * inner);
  for (let o = 0; o < outer; o++) data.set(t.data.subarray((o * n + from) * inner, (o * n + to) * inner), o * (to - from) * inner);
  return { data, dims: t.dims.map((d, i) => (i === axis ? to - from : d)) };
}

/** Copies the rows of dimension `axis` in the given order. */
export function take(t: Tensor, axis: number, order: readonly number[]): Tensor {
  const outer = product(t.dims.slice(0, axis));
  const inner = product(t.dims.slice(axis + 1));
  const n = t.dims[axis];
  const data = new Float32Array(outer * order.length * inner);
  for (let o = 0; o < outer; o++)
    order.forEach((from, to) => data.set(t.data.subarray((o * n + from) * inner, (o * n + from + 1) * inner), (o * order.length + to) * inner));
  return { data, dims: t.dims.map((d, i) => (i === axis ? order.length : d)) };
}

/** Concatenates along dimension `axis`. */
export function concat(parts: readonly Tensor[], axis: number): Tensor {
  const outer = product(parts[0].dims.slice(0, axis));
  const widths = parts.map((part) => part.data.length / outer);
  const width = widths.reduce((a, b) => a + b, 0);
  const data = new Float32Array(outer * width);
  for (let o = 0; o < outer; o++)
    widths.reduce((at, w, i) => {
      data.set(parts[i].data.subarray(o * w, (o + 1) * w), at);
      return at + w;
    }, o * width);
  return { data, dims: parts[0].dims.map((d, i) => (i === axis ? parts.reduce((sum, part) => sum + part.dims[axis], 0) : d)) };
}

export function reshape(t: Tensor, dims: Dims): Tensor {
  assert.equal(product(dims), t.data.length, 'reshape keeps the number of elements');
  return { data: t.data, dims: [...dims] };
}

/** Swaps the last two dimensions. */
export function transpose(t: Tensor): Tensor {
  const r = t.dims.length;
  const [m, n] = [t.dims[r - 2], t.dims[r - 1]];
  const outer = product(t.dims.slice(0, r - 2));
  const data = new Float32Array(t.data.length);
  for (let o = 0; o < outer; o++) for (let i = 0; i < m; i++) for (let j = 0; j < n; j++) data[(o * n + j) * m + i] = t.data[(o * m + i) * n + j];
  return { data, dims: [...t.dims.slice(0, r - 2), n, m] };
}

/** Returns a tensor's 32-bit words; every NaN is 0x7fc00000, because signs and payloads differ between engines. */
export function words(t: Tensor): Uint32Array {
  const out = new Uint32Array(t.data.buffer, t.data.byteOffset, t.data.length).slice();
  for (let i = 0; i < out.length; i++) if ((out[i] & 0x7fffffff) >>> 0 > 0x7f800000) out[i] = 0x7fc00000;
  return out;
}

export function assertDims(t: Tensor | undefined, dims: Dims, what = 'dims'): asserts t is Tensor {
  if (t === undefined) assert.fail(`${what}: missing`);
  assert.deepEqual([...t.dims], [...dims], what);
  assert.equal(t.data.length, product(dims), `${what}: length`);
  assert.equal(Object.prototype.toString.call(t.data), '[object Float32Array]', what);
}

export function assertSameBits(actual: Tensor | undefined, expected: Tensor | undefined, what = 'bits'): void {
  if (!actual || !expected) assert.fail(`${what}: missing`);
  assert.deepEqual([...actual.dims], [...expected.dims], `${what}: dims`);
  const a = words(actual);
  const e = words(expected);
  let different = 0;
  let first = -1;
  for (let i = 0; i < e.length; i++)
    if (a[i] !== e[i]) {
      if (first < 0) first = i;
      different++;
    }
  if (different)
    assert.fail(
      `${what}: ${different} of ${e.length} values differ, the first at ${first}: ${actual.data[first]} instead of ${expected.data[first]}`,
    );
}

/**
 * Checks max |actual - expected| <= tolerance · max(1, max |expected|), with NaN and Inf at the same positions. Returns
 * the largest difference.
 */
export function assertClose(
  actual: Tensor | undefined,
  expected: { data: ArrayLike<number>; dims: Dims },
  tolerance: number,
  what = 'values',
): number {
  if (!actual) assert.fail(`${what}: missing`);
  assert.deepEqual([...actual.dims], [...expected.dims], `${what}: dims`);
  let largest = 1;
  for (let i = 0; i < expected.data.length; i++) {
    const e = Math.abs(expected.data[i]);
    if (e > largest && e < Infinity) largest = e;
  }
  let worst = 0;
  let at = 0;
  for (let i = 0; i < expected.data.length; i++) {
    const [x, e] = [actual.data[i], expected.data[i]];
    if (Object.is(x, e) || x === e || (Number.isNaN(x) && Number.isNaN(e))) continue;
    const difference = Math.abs(x - e);
    if (!(difference <= worst)) {
      worst = Number.isNaN(difference) ? Infinity : difference;
      at = i;
    }
  }
  if (worst > tolerance * largest)
    assert.fail(`${what}: |${actual.data[at]} - ${expected.data[at]}| = ${worst} at ${at}, allowed ${tolerance * largest}`);
  return worst;
}
