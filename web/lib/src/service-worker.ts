/** The package for hosts without import() and workers: service workers and worklets. All code is in this file. */
import type * as Contract from './attn.js';
import single from './engine/glue/attn.mjs';
import { loader } from './load/load.js';
import * as models from './model/load_model.js';
import * as lazyTasks from './model/lazy_tasks.js';
import * as gguf from './model/gguf/gguf.js';
import * as ggufParts from './model/gguf/gguf_parts.js';
import * as images from './model/image_model.js';
import * as chat from './model/chat.js';
import * as shards from './model/shards.js';
import { web } from './load/web.js';

export * from './common.js';

export const load: typeof Contract.load = loader({
  ...web,
  single,
  models: async () => models,
  lazyTasks: async () => lazyTasks,
  chat: async () => chat,
  shards: async () => shards,
  gguf: async () => gguf,
  ggufParts: async () => ggufParts,
  images: async () => images,
});
