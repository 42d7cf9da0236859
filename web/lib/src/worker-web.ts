/** attn/worker in browsers. */
import type * as Contract from './worker.js';
import { loaderIn } from './worker/web_host.js';

export * from './common.js';
export { transfer } from './worker/transfer_list.js';

export const load: typeof Contract.load = loaderIn(() => new Worker(new URL('./worker-host.js', import.meta.url), { type: 'module', name: 'attn' }));
