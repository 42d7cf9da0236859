import type { Factory, ThreadWorker } from '../engine/native.js';
import type { Chat, Gguf, GgufParts, Images, LazyTasks, Shards } from '../model/model_context.js';
import type { Disk } from '../model/model_files.js';
import type { Build } from './wasm_build.js';

export type Models = () => Promise<typeof import('../model/load_model.js')>;
export interface Platform {
  /** Functions, because not every host has import.meta.url. */
  readonly urls: { readonly [build in Build]?: () => URL };
  readonly single: Factory;
  /** Missing if no worker can be started. */
  readonly threaded?: () => Promise<Factory>;
  readonly createThread?: (onError: (message: string) => void) => ThreadWorker;
  readonly models: Models;
  readonly lazyTasks: LazyTasks;
  /** Missing in a worker: its client formats conversations. */
  readonly chat?: Chat;
  readonly shards: Shards;
  readonly gguf: Gguf;
  readonly ggufParts: GgufParts;
  readonly images: Images | undefined;
  readonly relaxedBy?: string;
  readonly cores: () => number;
  /** Reason why there is no shared memory, if so. */
  readonly sharingRefusal: () => string | undefined;
  /** Reason why only one thread is possible despite shared memory. */
  readonly waitingRefusal: () => string | undefined;
  /** Undefined if the location has to be fetched. */
  readonly readFile?: (location: string | URL) => Promise<{ name: string; bytes: Uint8Array<ArrayBuffer> }> | undefined;
  readonly disk?: Disk;
}
