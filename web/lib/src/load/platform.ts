/** The differences between hosts for load(). */
import type { Factory, ThreadWorker } from '../engine/native.js';
import type { complete, hold, prepare } from '../engine/training.js';
import type { LazyTasks } from '../model/model_context.js';
import type { Disk } from '../model/model_files.js';
import type { modelGradients } from '../model/model_gradients.js';
import type { Build } from './wasm_build.js';

/** Code that only models need; loaded with the first one. */
export type Models = () => Promise<typeof import('../model/load_model.js')>;
export interface Builds {
  /** URLs of the package's files. Functions, because not every host has import.meta.url. */
  readonly urls: { readonly [build in Build]?: () => URL };
  readonly single: Factory;
  /** Missing if no worker can be started. */
  readonly threaded?: () => Promise<Factory>;
  readonly createThread?: (onError: (message: string) => void) => ThreadWorker;
}

/** The training builds and the code for their calls. */
export interface Training extends Builds {
  readonly prepare: typeof prepare;
  readonly hold: typeof hold;
  readonly complete: typeof complete;
  readonly modelGradients: typeof modelGradients;
}

export interface Platform extends Builds {
  /** Missing if the host cannot load it. */
  readonly training?: () => Promise<Training>;
  /** Default of load()'s `training`. */
  readonly trains?: boolean;
  readonly models: Models;
  readonly lazyTasks: LazyTasks;
  /** How to enable relaxed SIMD on an engine that has a flag for it. */
  readonly relaxedBy?: string;
  readonly cores: () => number;
  /** Reason why there is no shared memory; undefined if there is. */
  readonly sharingRefusal: () => string | undefined;
  /** Reason why only one thread is possible despite shared memory. */
  readonly waitingRefusal: () => string | undefined;
  /** Reads a local file; undefined for a location that has to be fetched. */
  readonly readFile?: (location: string | URL) => Promise<{ name: string; bytes: Uint8Array<ArrayBuffer> }> | undefined;
  /** Access to local model folders. */
  readonly disk?: Disk;
}
