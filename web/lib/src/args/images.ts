/** Reads images, here or in attn/worker before they are sent. */
import type { Image as Contract, ImageEmbedOptions } from '../attn.js';
import { arrayTag, elements, readBytes } from './arrays.js';
import { describe, fail, reading } from './error.js';
import { readCallback, readSignal } from './options.js';
import { choice, readMembers, whole } from './signature.js';

/** Rows of pixels: RGB, RGBA or grey. */
export interface Pixels {
  readonly data: Uint8Array<ArrayBuffer>;
  readonly dims: readonly [height: number, width: number, channels: number];
}
/** An ImageBitmap or Blob, which the host decodes, or the caller's pixels. */
export type GivenImage = Pixels | { readonly host: Contract };

const most = 2 ** 20;
const expected = 'an ImageData, an ImageBitmap, a Blob, or an object with data and dims [height, width, channels]';
const drawable = ['ImageBitmap', 'Blob', 'File'];

function pixelsOf(op: string, name: string, value: Readonly<Record<string, unknown>>): Pixels {
  const { data: given, dims, width: w, height: h } = value;
  const bytes =
    arrayTag(given) === 'Uint8ClampedArray'
      ? readBytes(
          op,
          `${name}.data`,
          new Uint8Array((given as Uint8ClampedArray).buffer, (given as Uint8ClampedArray).byteOffset, (given as Uint8ClampedArray).length),
        )
      : readBytes(op, `${name}.data`, given);
  const { length } = bytes;
  let sides: readonly unknown[] = [h, w];
  if (dims !== undefined) {
    if (!Array.isArray(dims)) fail('ARGUMENT', op, `${name}.dims`, describe(dims), 'an Array [height, width, channels]');
    sides = elements(dims as unknown[], (each) => each);
    if (sides.length !== 3) fail('SHAPE', op, `${name}.dims`, `has ${sides.length} elements`, '[height, width, channels]');
  }
  const [height, width] = ['height', 'width'].map((side, i) =>
    whole(op, dims === undefined ? `${name}.${side}` : `${name}.dims[${i}]`, sides[i], 1, most),
  ) as [number, number];
  const channels = dims === undefined ? length / (height * width) : (sides[2] as number);
  if (![1, 3, 4].includes(channels) || height * width * channels !== length)
    fail('SHAPE', op, `${name}.data`, `has ${length} bytes`, `1, 3 or 4 bytes for each of ${height} x ${width} pixels`);
  return { data: bytes, dims: [height, width, channels] };
}

function imageOf(op: string, name: string, value: unknown): GivenImage {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) fail('ARGUMENT', op, name, describe(value), expected);
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  if (drawable.includes(tag)) return { host: value as Contract };
  if (tag !== 'Object' && tag !== 'ImageData') fail('ARGUMENT', op, name, describe(value), expected);
  return pixelsOf(op, name, value as Readonly<Record<string, unknown>>);
}

/** One image or an Array of images. */
export const readImages = (op: string, value: unknown): GivenImage[] =>
  reading(op, 'images', () => {
    if (!Array.isArray(value)) return [imageOf(op, 'images', value)];
    const list = elements(value as unknown[], (each, i) => imageOf(op, `images[${i}]`, each));
    if (list.length === 0) fail('ARGUMENT', op, 'images', 'is empty', 'at least one image');
    return list;
  });

const poolings = ['cls', 'mean', 'pooler'] as const;
const names = {
  preprocess: ['signal'],
  embed: ['pooling', 'normalize', 'signal', 'onProgress'],
  classify: ['topK', 'signal', 'onProgress'],
} as const;

export interface CheckedImageOptions {
  readonly plain: { readonly pooling?: NonNullable<ImageEmbedOptions['pooling']>; readonly normalize?: boolean; readonly topK?: number };
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((p: { done: number; total: number }) => void) | undefined;
}

export const readImageOptions = (op: keyof typeof names, value: unknown): CheckedImageOptions =>
  reading(op, 'options', () => {
    const values = value === undefined ? [] : readMembers(op, 'options', value, names[op]);
    const { pooling, normalize, topK, signal, onProgress } = Object.fromEntries(names[op].map((name, i) => [name, values[i]]));
    if (normalize !== undefined && typeof normalize !== 'boolean') fail('ARGUMENT', op, 'normalize', describe(normalize), 'true or false');
    return {
      plain: {
        ...(pooling !== undefined && { pooling: poolings[choice(op, 'pooling', pooling, poolings)]! }),
        ...(normalize !== undefined && { normalize }),
        ...(topK !== undefined && { topK: whole(op, 'topK', topK, 1, 2 ** 31 - 1) }),
      },
      signal: readSignal(op, signal),
      onProgress: readCallback(op, 'onProgress', onProgress) as CheckedImageOptions['onProgress'],
    };
  });
