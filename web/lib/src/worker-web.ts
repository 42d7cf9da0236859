/** attn/worker in browsers. */
import type * as Contract from './worker.js';
import { loaderIn } from './worker/web_host.js';

export * from './common.js';
export { transfer } from './worker/transfer_list.js';

// webpack merges workers that have the same name.
export const load: typeof Contract.load = loaderIn((training) =>
  training
    ? () => new Worker(new URL('./worker-host-train.js', import.meta.url), { type: 'module', name: 'attn-train' })
    : () => new Worker(new URL('./worker-host.js', import.meta.url), { type: 'module', name: 'attn' }),
);
