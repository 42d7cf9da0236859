import type { Engine } from '../engine/engine.js';
import type { NativeLayer } from '../engine/native.js';
import type { Disk } from './model_files.js';
import type { modelGradients } from './model_gradients.js';

/** Scripts that few of those who have a model ask for. */
export type LazyTasks = () => Promise<typeof import('./lazy_tasks.js')>;

/** What an instance lends to its models. */
export interface ModelContext {
  readonly engine: Engine;
  readonly disk: Disk | undefined;
  readonly lazyTasks: LazyTasks;
  /** Frees the handles of what is collected. */
  readonly forgotten: FinalizationRegistry<NativeLayer> | undefined;
  /** A layer of the class around a handle that belongs to the owner; it is there until somebody disposes of it. */
  adopt(name: string, handle: NativeLayer, owner: object): { readonly layer: { dispose(): void } | undefined };
  /** What gradients of models take; throws without the training build. */
  gradientsOf(op: string): typeof modelGradients;
}
