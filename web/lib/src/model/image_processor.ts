/** Resizes, crops and normalizes images as preprocessor_config.json specifies and transformers' image processors do. */
import type { ImageCrop, Tensor } from '../attn.js';
import { isPlainObject } from '../args/arrays.js';
import { allocate, describe, fail } from '../args/error.js';
import type { Pixels } from '../args/images.js';

type Size = readonly [height: number, width: number];
/** By PIL's numbers: bilinear or bicubic. */
type Filter = 2 | 3;

export interface ImageProcessor {
  /** A number: the shorter side, which keeps the aspect ratio. */
  readonly size: Size | number | undefined;
  readonly filter: Filter;
  readonly crop: Size | undefined;
  /** Values of the 256 levels of each channel. */
  readonly values: readonly Float32Array<ArrayBuffer>[];
}

const file = 'preprocessor_config.json';
const mostSide = 2 ** 14;

function refuse(code: 'CONFIG' | 'UNSUPPORTED', name: string, value: unknown, expected: string): never {
  fail(code, 'loadModel', `${name} of ${file}`, describe(value), expected);
}

const side = (name: string, value: unknown): number =>
  Number.isInteger(value) && (value as number) > 0 && (value as number) <= mostSide
    ? (value as number)
    : refuse('CONFIG', name, value, `a whole number from 1 to ${mostSide}`);

/** {height, width}, both in an Array, {shortest_edge}, or a number. */
function sizeOf(name: string, value: unknown, isSquare: boolean): Size | number {
  if (Array.isArray(value) && value.length === 2) return [side(`${name}[0]`, value[0]), side(`${name}[1]`, value[1])];
  if (!isPlainObject(value)) return isSquare ? [side(name, value), side(name, value)] : side(name, value);
  const { shortest_edge: shortest, longest_edge: longest, height, width } = value as Record<string, unknown>;
  if ((shortest ?? undefined) === undefined) return [side(`${name}.height`, height), side(`${name}.width`, width)];
  if ((longest ?? undefined) !== undefined) refuse('UNSUPPORTED', `${name}.longest_edge`, longest, 'no such limit');
  return side(`${name}.shortest_edge`, shortest);
}

function channelsOf(name: string, value: unknown, isDivisor: boolean): readonly number[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value, value, value];
  const isRight = (x: unknown) => Number.isFinite(x) && Math.abs(x as number) <= 1e6 && (!isDivisor || Math.abs(x as number) >= 1e-6);
  if (list.length !== 3 || !list.every(isRight)) refuse('CONFIG', name, value, `three finite numbers${isDivisor ? ' other than 0' : ''}`);
  return list as number[];
}

interface Defaults {
  readonly size: Size | number;
  readonly filter: Filter;
  readonly crops: boolean;
  readonly mean: readonly number[];
  readonly std: readonly number[];
}
const half = [0.5, 0.5, 0.5];
const defaults: Readonly<Record<string, Defaults>> = {
  ViT: { size: [224, 224], filter: 2, crops: false, mean: half, std: half },
  DeiT: { size: [256, 256], filter: 3, crops: true, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
  // Defaults of BitImageProcessor, which DINOv2 has.
  Bit: {
    size: 224,
    filter: 3,
    crops: true,
    mean: [0.48145466, 0.4578275, 0.40821073],
    std: [0.26862954, 0.26130258, 0.27577711],
  },
};

export function readImageProcessor(config: object, modelType: unknown): ImageProcessor {
  const get = (name: string) => (config as Readonly<Record<string, unknown>>)[name] ?? undefined;
  const flag = (name: string, otherwise: boolean) => {
    const value = get(name) ?? otherwise;
    return typeof value === 'boolean' ? value : refuse('CONFIG', name, value, 'true or false');
  };
  const type = get('image_processor_type') ?? get('feature_extractor_type');
  const own = modelType === 'vit' ? 'ViT' : modelType === 'deit' ? 'DeiT' : 'Bit';
  const kind = type === undefined ? own : typeof type === 'string' ? /^(ViT|DeiT|Bit)(Image|Feature)/.exec(type)?.[1] : undefined;
  if (kind === undefined) refuse('UNSUPPORTED', 'image_processor_type', type, 'ViTImageProcessor, DeiTImageProcessor or BitImageProcessor');
  const { size, filter, crops, mean, std } = defaults[kind]!;
  if (flag('do_pad', false)) refuse('UNSUPPORTED', 'do_pad', true, 'false');
  const given = get('resample') ?? filter;
  if (!Number.isInteger(given)) refuse('CONFIG', 'resample', given, 'a whole number');
  if (given !== 2 && given !== 3) refuse('UNSUPPORTED', 'resample', given, '2 (bilinear) or 3 (bicubic)');
  const factor = flag('do_rescale', true) ? (get('rescale_factor') ?? 1 / 255) : 1;
  if (typeof factor !== 'number' || !(factor > 0) || factor === Infinity) refuse('CONFIG', 'rescale_factor', factor, 'a positive number');
  const normalizes = flag('do_normalize', true);
  const means = normalizes ? channelsOf('image_mean', get('image_mean') ?? mean, false) : [0, 0, 0];
  const stds = normalizes ? channelsOf('image_std', get('image_std') ?? std, true) : [1, 1, 1];
  const cropped = flag('do_center_crop', crops) ? sizeOf('crop_size', get('crop_size') ?? 224, true) : undefined;
  if (typeof cropped === 'number') refuse('CONFIG', 'crop_size', get('crop_size'), 'a height and a width');
  return {
    size: flag('do_resize', true) ? sizeOf('size', get('size') ?? size, kind !== 'Bit') : undefined,
    filter: given,
    crop: cropped,
    values: means.map((m, c) => Float32Array.from({ length: 256 }, (_, level) => (level * factor - m) / stds[c]!)),
  };
}

/** Bits of PIL's fixed-point weights. */
const bits = 22;

interface Taps {
  /** First source place of each result place. */
  readonly first: Int32Array;
  readonly count: Int32Array;
  /** `most` for each result place. */
  readonly weights: Int32Array;
  readonly most: number;
}

/** As PIL's precompute_coeffs() and normalize_coeffs_8bpc(). */
function tapsOf(op: string, filter: Filter, from: number, to: number): Taps {
  const scale = from / to;
  const width = Math.max(scale, 1);
  const support = (filter - 1) * width;
  const most = Math.floor(2 * support) + 2;
  const [first, count] = [allocate(op, 4 * to, () => new Int32Array(to)), allocate(op, 4 * to, () => new Int32Array(to))];
  const weights = allocate(op, 4 * to * most, () => new Int32Array(to * most));
  const own = new Float64Array(most);
  for (let i = 0; i < to; ++i) {
    const centre = (i + 0.5) * scale;
    const begin = Math.max(Math.floor(centre - support + 0.5), 0);
    const end = Math.min(Math.floor(centre + support + 0.5), from);
    let sum = 0;
    for (let place = begin; place < end; ++place) {
      const x = Math.abs((place - centre + 0.5) / width);
      let weight = 0;
      if (filter === 2) weight = Math.max(1 - x, 0);
      else if (x < 1) weight = (1.5 * x - 2.5) * x * x + 1;
      else if (x < 2) weight = (((x - 5) * x + 8) * x - 4) * -0.5;
      own[place - begin] = weight;
      sum += weight;
    }
    first[i] = begin;
    count[i] = end - begin;
    for (let tap = 0; tap < end - begin; ++tap) {
      const weight = (own[tap]! / sum) * 2 ** bits;
      weights[i * most + tap] = Math.trunc(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
  }
  return { first, count, weights, most };
}

type Bytes = Uint8Array<ArrayBuffer> | Uint8ClampedArray<ArrayBuffer>;
interface Line {
  /** Index of the first source number, and numbers from one source place to the next. */
  readonly from: number;
  readonly step: number;
  /** The same of the result, RGB. */
  readonly to: number;
  readonly toStep: number;
}

/** Resizes one line of pixels; grey is read for all three channels. */
function resizeLine(source: Bytes, channels: number, taps: Taps, { from, step, to, toStep }: Line, result: Uint8ClampedArray): void {
  const { first, count, weights, most } = taps;
  const green = channels > 1 ? 1 : 0;
  for (let i = 0, at = to; i < first.length; ++i, at += toStep) {
    let [r, g, b] = [1 << (bits - 1), 1 << (bits - 1), 1 << (bits - 1)];
    let place = from + first[i]! * step;
    for (let tap = i * most, end = tap + count[i]!; tap < end; ++tap, place += step) {
      const weight = weights[tap]!;
      r += weight * source[place]!;
      g += weight * source[place + green]!;
      b += weight * source[place + 2 * green]!;
    }
    result[at] = r >> bits;
    result[at + 1] = g >> bits;
    result[at + 2] = b >> bits;
  }
}

/** Across, then down, with bytes between them. */
function resize(op: string, filter: Filter, { data, dims }: Pixels, [height, width]: Size): Uint8ClampedArray<ArrayBuffer> {
  const [rows, columns, channels] = dims;
  const image = (h: number) => allocate(op, 3 * h * width, () => new Uint8ClampedArray(3 * h * width));
  const [wide, result] = [image(rows), image(height)];
  const [across, down] = [tapsOf(op, filter, columns, width), tapsOf(op, filter, rows, height)];
  for (let row = 0; row < rows; ++row)
    resizeLine(data, channels, across, { from: row * columns * channels, step: channels, to: 3 * row * width, toStep: 3 }, wide);
  for (let column = 0; column < width; ++column)
    resizeLine(wide, 3, down, { from: 3 * column, step: 3 * width, to: 3 * column, toStep: 3 * width }, result);
  return result;
}

/** Pixel values (1,3,height,width), and the part of the image that they show. */
export interface Preprocessed {
  readonly pixelValues: Tensor;
  readonly crop: ImageCrop;
}

/** Where the crop of `to` places begins in `from`; negative if it is larger. */
const cropBegin = (from: number, to: number) => (from >= to ? Math.trunc((from - to) / 2) : -Math.trunc((to - from + 1) / 2));

/** An image smaller than the crop gets a black border. */
export function preprocess(op: string, { size, filter, crop, values }: ImageProcessor, image: Pixels): Preprocessed {
  const [rows, columns] = image.dims;
  let resized: Size = [rows, columns];
  if (typeof size === 'number') resized = columns <= rows ? [Math.trunc((size * rows) / columns), size] : [size, Math.trunc((size * columns) / rows)];
  else if (size) resized = size;
  const bytes = resize(op, filter, image, resized);
  const [height, width] = crop ?? resized;
  const data = allocate(op, 12 * height * width, () => new Float32Array(3 * height * width));
  const [top, left] = [cropBegin(resized[0], height), cropBegin(resized[1], width)];
  values.forEach((levels, c) => {
    const plane = data.subarray(c * height * width, (c + 1) * height * width).fill(levels[0]!);
    for (let row = Math.max(-top, 0); row < height && row + top < resized[0]; ++row)
      for (let column = Math.max(-left, 0); column < width && column + left < resized[1]; ++column)
        plane[row * width + column] = levels[bytes[3 * ((row + top) * resized[1] + column + left) + c]!]!;
  });
  const [down, across] = [rows / resized[0], columns / resized[1]];
  return {
    pixelValues: { data, dims: [1, 3, height, width] },
    crop: { left: left * across, top: top * down, width: width * across, height: height * down },
  };
}
