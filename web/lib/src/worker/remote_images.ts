import type { Tensor } from '../attn.js';
import { isPlainObject } from '../args/arrays.js';
import { describe, fail, reading } from '../args/error.js';
import { readImageOptions, readImages } from '../args/images.js';
import { readArguments } from '../args/signature.js';
import { ask, call, RemoteModel } from './remote_base.js';

export class RemoteImageModel extends RemoteModel {
  async preprocess(images: unknown, options?: unknown): Promise<unknown> {
    return askImages(this, 'preprocess', images, options);
  }

  async forward(inputs: unknown, options?: unknown): Promise<unknown> {
    return call(this, 'imageForward', [inputs, options], (_, signature) => {
      const op = 'ImageModel';
      const pixels = reading(op, 'inputs', () => {
        if (!isPlainObject(inputs)) fail('ARGUMENT', op, 'inputs', describe(inputs), 'an object with pixelValues');
        return inputs['pixelValues'];
      });
      return readArguments(op, signature, [pixels, options]);
    });
  }

  async embed(images: unknown, options?: unknown): Promise<Tensor> {
    return askImages(this, 'embed', images, options);
  }

  async classify(images: unknown, options?: unknown): Promise<unknown> {
    return askImages(this, 'classify', images, options);
  }
}

function askImages(self: unknown, name: 'preprocess' | 'embed' | 'classify', images: unknown, options: unknown): Promise<never> {
  return ask(self, name, () => {
    const list = readImages(name, images).map((image) => ('host' in image ? image.host : { ...image, data: image.data.slice() }));
    const read = readImageOptions(name, options);
    return { args: [list, read.plain], options: read };
  });
}
