import type { Attn } from '../attn.js';
import type { Engine } from '../engine/engine.js';
import type { NativeLayer } from '../engine/native.js';
import type { Disk } from './model_files.js';

export type LazyTasks = () => Promise<typeof import('./lazy_tasks.js')>;
export type Chat = () => Promise<typeof import('./chat.js')>;
export type Shards = () => Promise<typeof import('./shards.js')>;
export type Gguf = () => Promise<typeof import('./gguf/gguf.js')>;
export type GgufParts = () => Promise<typeof import('./gguf/gguf_parts.js')>;
export type Images = () => Promise<typeof import('./image_model.js')>;

export interface ModelContext {
  readonly engine: Engine;
  instance(): Attn;
  readonly disk: Disk | undefined;
  readonly lazyTasks: LazyTasks;
  readonly chat: Chat;
  readonly shards: Shards;
  readonly gguf: Gguf;
  readonly ggufParts: GgufParts;
  /** Missing on a page that bundles the worker without them. */
  readonly images: Images | undefined;
  /** Frees the handles of garbage-collected models. */
  readonly forgotten: FinalizationRegistry<NativeLayer> | undefined;
  /** Wraps a handle of `owner` in a public layer. `layer` becomes undefined when it is disposed of. */
  adopt(name: string, handle: NativeLayer, owner: object): { readonly layer: { dispose(): void } | undefined };
}
