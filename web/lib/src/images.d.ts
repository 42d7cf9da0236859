/** Types of image models. 'attn' exports all of them. */
import type { AbortSignal, Blob, ImageBitmap } from './host.js';
import type { Tensor } from './types.js';

/**
 * An image:
 *
 * - `ImageData`, or an object with its `data`, `width` and `height`
 * - bytes row by row with `dims` [height, width, channels]
 * - in browsers an `ImageBitmap`, or a `Blob` or `File` of a format that the browser decodes
 *
 * 1 channel is grey, 3 are RGB, and 4 are RGBA; A has no effect.
 * Browsers decode colours of transparent pixels only approximately, and invisible pixels as black.
 */
export type Image =
  | Blob
  | ImageBitmap
  | { readonly data: Uint8Array | Uint8ClampedArray; readonly width: number; readonly height: number }
  | { readonly data: Uint8Array | Uint8ClampedArray; readonly dims: readonly [height: number, width: number, channels: number] };

/** A rectangle in an image, in its pixels. The sides may be fractions. */
export interface ImageCrop {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Result of {@link ImageModel.preprocess}, and input of {@link ImageModel.forward}. */
export interface ImageInputs {
  /** (B,3,height,width), normalized. */
  pixelValues: Tensor;
  /** Rows and columns of patches. */
  grid: [rows: number, columns: number];
  /**
   * The part of each image that the patches cover, in pixels of that image. If it reaches beyond the image, the model
   * sees black there.
   */
  crops: ImageCrop[];
}

/** Options of {@link ImageModel.embed}. */
export interface ImageEmbedOptions {
  /**
   * `'cls'`, the default, is the first token of the last hidden state. `'mean'` is the mean of its patches, and
   * `'pooler'` the pooler's output, which only ViT and DeiT without a head have.
   */
  pooling?: 'cls' | 'mean' | 'pooler' | undefined;
  /** Scales each vector to length 1. Default false. */
  normalize?: boolean | undefined;
  /** Rejects with `ABORTED` when it aborts. */
  signal?: AbortSignal | undefined;
  /** Receives the number of images that are ready. */
  onProgress?: ((p: { done: number; total: number }) => void) | undefined;
}

/** Options of {@link ImageModel.classify}. */
export interface ImageClassifyOptions {
  /** Number of labels for each image, most probable first. Default all. */
  topK?: number | undefined;
  /** Rejects with `ABORTED` when it aborts. */
  signal?: AbortSignal | undefined;
  /** Receives the number of images that are ready. */
  onProgress?: ((p: { done: number; total: number }) => void) | undefined;
}
