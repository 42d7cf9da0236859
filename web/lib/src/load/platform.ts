/** What load() needs of a host. */
import type { Factory, ThreadWorker } from '../engine/native.js';
import type { complete, hold, prepare } from '../engine/training.js';
import type { LazyTasks } from '../model/model_context.js';
import type { Disk } from '../model/model_files.js';
import type { modelGradients } from '../model/model_gradients.js';
import type { Build } from './wasm_build.js';

/** What models take, apart from what all take. */
export type Models = () => Promise<typeof import('../model/load_model.js')>;
/** Builds and what runs them. */
export interface Builds {
  /** The package's own files. Functions: import.meta.url is not there on every host. */
  readonly urls: { readonly [build in Build]?: () => URL };
  readonly single: Factory;
  /** Both are missing where no worker can be started. */
  readonly threaded?: () => Promise<Factory>;
  readonly createThread?: (onError: (message: string) => void) => ThreadWorker;
}

/** The builds that compute gradients, and what calls of theirs take: training.ts. */
export interface Training extends Builds {
  readonly prepare: typeof prepare;
  readonly hold: typeof hold;
  readonly complete: typeof complete;
  readonly modelGradients: typeof modelGradients;
}

export interface Platform extends Builds {
  /** Missing where nothing can be loaded later. */
  readonly training?: () => Promise<Training>;
  /** Whether that is what load() takes when it is not told. */
  readonly trains?: boolean;
  readonly models: Models;
  readonly lazyTasks: LazyTasks;
  /** How an engine that can be told to takes relaxed SIMD. */
  readonly relaxedBy?: string;
  readonly cores: () => number;
  /** Why there is no shared memory here; undefined where there is. */
  readonly sharingRefusal: () => string | undefined;
  /** Why, with shared memory, more than one thread cannot be had here. */
  readonly waitingRefusal: () => string | undefined;
  /** Opens a file that is not fetched: undefined for what fetch is for. */
  readonly readFile?: (location: string | URL) => Promise<{ name: string; bytes: Uint8Array<ArrayBuffer> }> | undefined;
  /** Folders of models that are not fetched. */
  readonly disk?: Disk;
}
