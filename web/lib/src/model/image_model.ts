/** Image models. Loaded with the first one. */
import type { Attn, ImageCrop, ImageInputs, ImageModel as Contract, Tensor, TextModelOutput } from '../attn.js';
import { isPlainObject } from '../args/arrays.js';
import { allocate, AttnError, describe, fail, reading, reason } from '../args/error.js';
import { type GivenImage, type Pixels, readImageOptions, readImages } from '../args/images.js';
import { tell } from '../args/options.js';
import { readArguments } from '../args/signature.js';
import type { Engine } from '../engine/engine.js';
import type { NativeLayer } from '../engine/native.js';
import { aborted } from '../platform/abort.js';
import { disposeSymbol } from '../platform/dispose.js';
import { yieldEvery30ms } from '../platform/event_loop.js';
import { instanceKey } from '../platform/instance.js';
import { type ImageProcessor, preprocess, type Preprocessed } from './image_processor.js';
import { imageHandles, type ModelFacts, signatureOf } from './model_state.js';

interface State {
  readonly context: {
    readonly engine: Engine;
    instance(): Attn;
    readonly forgotten: FinalizationRegistry<NativeLayer> | undefined;
  };
  readonly handle: NativeLayer;
  readonly config: Readonly<Record<string, unknown>>;
  readonly about: ModelFacts;
  /** Undefined without preprocessor_config.json, and for other images than RGB. */
  readonly processor: ImageProcessor | undefined;
}

async function decoded(op: string, { host }: { readonly host: unknown }): Promise<Pixels> {
  if (typeof createImageBitmap !== 'function' || typeof OffscreenCanvas !== 'function')
    fail('ENVIRONMENT', op, 'images', describe(host), 'an object with data and dims', 'This host cannot decode images');
  let bitmap: ImageBitmap | undefined;
  try {
    const isBitmap = Object.prototype.toString.call(host) === '[object ImageBitmap]';
    // PIL ignores colour profiles and does not blend transparent pixels.
    bitmap = isBitmap ? undefined : await createImageBitmap(host as Blob, { premultiplyAlpha: 'none', colorSpaceConversion: 'none' });
    const drawn = bitmap ?? (host as ImageBitmap);
    const { width, height } = drawn;
    const canvas = new OffscreenCanvas(width, height).getContext('2d')!;
    canvas.drawImage(drawn, 0, 0);
    const { data } = canvas.getImageData(0, 0, width, height);
    return { data: new Uint8Array(data.buffer as ArrayBuffer), dims: [height, width, 4] };
  } catch (cause) {
    throw new AttnError('FORMAT', `${op}: images cannot be decoded (${reason(cause)})`, { op, argument: 'images' }, { cause });
  } finally {
    bitmap?.close();
  }
}

/** Undefined: disposed. Outside of the class, so that bundlers can leave out the class. */
const states = new WeakMap<object, State | undefined>();

function stateOf(operation: string, self: ImageModel): State {
  if (!states.has(self)) throw new AttnError('WRONG_INSTANCE', `${operation}: this is another object, expected a model`, { op: operation });
  const state = states.get(self);
  const gone = state?.context.engine.disposed ? 'instance' : 'model';
  if (!state || gone === 'instance') throw new AttnError('DISPOSED', `${operation}: this ${gone} was disposed of`, { op: operation });
  return state;
}

export class ImageModel implements Contract {
  constructor(state: State) {
    states.set(this, state);
    state.context.forgotten?.register(this, state.handle, this);
    imageHandles.set(this, () => stateOf('model', this).handle);
  }

  get config(): Readonly<Record<string, unknown>> {
    return stateOf('config', this).config;
  }

  get labels(): readonly string[] {
    return stateOf('labels', this).about.labels as readonly string[];
  }

  get task(): Contract['task'] {
    return stateOf('task', this).about.task as Contract['task'];
  }

  get notes(): readonly string[] {
    return stateOf('notes', this).about.notes;
  }

  get weights(): 'float32' | 'int8' {
    return stateOf('weights', this).about.quantized ? 'int8' : 'float32';
  }

  async preprocess(images: Parameters<Contract['preprocess']>[0], options?: Parameters<Contract['preprocess']>[1]): Promise<ImageInputs> {
    const op = 'preprocess';
    stateOf(op, this);
    const list = readImages(op, images);
    const { signal } = readImageOptions(op, options);
    let first: Tensor | undefined;
    let data = new Float32Array();
    const crops: ImageCrop[] = [];
    await this.#each(op, list, signal, undefined, ({ pixelValues: pixels, crop }, i) => {
      first ??= pixels;
      crops.push(crop);
      const { dims } = first;
      if (dims.join() !== pixels.dims.join())
        fail(
          'SHAPE',
          op,
          `images[${i}]`,
          `has (${pixels.dims.join()}) values`,
          `(${dims.join()}), as images[0]`,
          'Preprocess images of other sizes separately',
        );
      if (i === 0) data = allocate(op, 4 * list.length * pixels.data.length, () => new Float32Array(list.length * pixels.data.length));
      data.set(pixels.data, i * pixels.data.length);
    });
    const [, channels, height, width] = first!.dims as [number, number, number, number];
    const projection = Array.from(this.parameterShapes()).find(([name]) => name.endsWith('patch_embeddings.projection.weight'))!;
    const [, , rows, columns] = projection[1];
    const grid: [number, number] = [Math.floor(height / rows!), Math.floor(width / columns!)];
    // Patches leave out a rest of the pixels.
    const [down, across] = [(grid[0] * rows!) / height, (grid[1] * columns!) / width];
    return {
      pixelValues: { data, dims: [list.length, channels, height, width] },
      grid,
      crops: crops.map((crop) => ({ ...crop, width: crop.width * across, height: crop.height * down })),
    };
  }

  forward(inputs: Pick<ImageInputs, 'pixelValues'>, options?: Parameters<Contract['forward']>[1]): TextModelOutput {
    const op = 'ImageModel';
    stateOf(op, this);
    const pixels = reading(op, 'inputs', () => {
      if (!isPlainObject(inputs)) fail('ARGUMENT', op, 'inputs', describe(inputs), 'an object with pixelValues');
      return inputs.pixelValues;
    });
    return ask(this, op, 'imageForward', pixels, options) as TextModelOutput;
  }

  async embed(images: Parameters<Contract['embed']>[0], options?: Parameters<Contract['embed']>[1]): Promise<Tensor> {
    const op = 'embed';
    stateOf(op, this);
    const list = readImages(op, images);
    const { plain, signal, onProgress } = readImageOptions(op, options);
    let all = new Float32Array();
    await this.#each(op, list, signal, onProgress, ({ pixelValues }, i) => {
      const { data } = ask(this, op, 'imageEmbed', pixelValues, plain) as Tensor;
      if (i === 0) all = allocate(op, 4 * list.length * data.length, () => new Float32Array(list.length * data.length));
      all.set(data, i * data.length);
    });
    return { data: all, dims: [list.length, all.length / list.length] };
  }

  async classify(
    images: Parameters<Contract['classify']>[0],
    options?: Parameters<Contract['classify']>[1],
  ): Promise<{ label: string; score: number }[][]> {
    const op = 'classify';
    const { labels, task } = stateOf(op, this).about;
    const list = readImages(op, images);
    const { plain, signal, onProgress } = readImageOptions(op, options);
    if (task !== 'image-classification')
      fail('UNSUPPORTED', op, 'the checkpoint', 'is one without a head', 'one with a head for image-classification');
    const results: { label: string; score: number }[][] = [];
    await this.#each(op, list, signal, onProgress, ({ pixelValues }) => {
      const { data } = ask(this, op, 'imageClassify', pixelValues) as Tensor;
      const scored = labels!.map((label, c) => ({ label, score: data[c]! }));
      results.push(scored.sort((a, b) => b.score - a.score).slice(0, plain.topK));
    });
    return results;
  }

  /** Preprocesses images one by one. */
  async #each(
    op: string,
    list: readonly GivenImage[],
    signal: AbortSignal | undefined,
    onProgress: ((p: { done: number; total: number }) => void) | undefined,
    use: (image: Preprocessed, index: number) => void,
  ): Promise<void> {
    const { config, processor } = stateOf(op, this);
    if ((config['num_channels'] ?? 3) !== 3)
      fail('UNSUPPORTED', op, 'the checkpoint', `has images with ${String(config['num_channels'])} channels`, 'a model of images with 3 channels');
    if (!processor) fail('FORMAT', op, 'the checkpoint', 'is a folder without preprocessor_config.json', 'a folder with it');
    const turn = yieldEvery30ms();
    for (const [i, image] of list.entries()) {
      if (signal?.aborted) throw aborted(signal, op);
      const pixels = 'host' in image ? await decoded(op, image) : image;
      await turn();
      if (signal?.aborted) throw aborted(signal, op);
      stateOf(op, this);
      use(preprocess(op, processor, pixels), i);
      if (onProgress) tell(op, onProgress, { done: i + 1, total: list.length });
    }
  }

  parameterShapes(): ReturnType<Contract['parameterShapes']> {
    return ask(this, 'parameterShapes', 'parameterShapes') as ReturnType<Contract['parameterShapes']>;
  }

  stateDict(): ReturnType<Contract['stateDict']> {
    const read = (index: number) => ask(this, 'stateDict', 'getParameter', index) as Tensor;
    return new Map(Array.from(this.parameterShapes().keys(), (name, index) => [name, read(index)]));
  }

  get [instanceKey](): Attn {
    return stateOf('model', this).context.instance();
  }

  dispose(): void {
    const state = states.get(this);
    if (!state) return;
    states.set(this, undefined);
    state.context.forgotten?.unregister(this);
    state.context.engine.free(state.handle);
  }

  [disposeSymbol](): void {
    this.dispose();
  }
}

function ask(model: ImageModel, operation: string, name: string, ...args: readonly unknown[]): unknown {
  const { context } = stateOf(operation, model);
  context.engine.assertUsable(operation);
  const signature = signatureOf(context.engine, name);
  const leaves = readArguments(operation, signature, args);
  return context.engine.call(operation, signature, leaves, stateOf(operation, model).handle);
}

export { readImageProcessor } from './image_processor.js';
