import { Worker } from 'node:worker_threads';
import type * as Contract from './worker.js';
import { remoteLoader } from './worker/worker_client.js';
import { transfer } from './worker/transfer_list.js';
import nodeEndpoint from './worker/comlink-node.js';
import { leaveOut } from './platform/asset_urls.js';
import { packageFile } from './platform/node_files.js';

export * from './common.js';
export { transfer };

export const load: typeof Contract.load = remoteLoader({
  connect() {
    const options = { name: 'attn' };
    const worker = packageFile(
      'worker-host-node.cjs', // CommonJS regardless of `type` in the folder's package.json
      () => new Worker(new URL('./worker-host-node.js', import.meta.url), options),
      (url) => new Worker(url, options),
    );
    worker.unref();
    return {
      endpoint: nodeEndpoint(worker),
      help: leaveOut,
      onDeath(callback) {
        worker.on('error', (error) => callback(error.message));
        worker.on('exit', (code) => callback(`it ended with code ${code}`));
      },
      terminate: () => void worker.terminate(),
      setWaiting: (waiting) => (waiting ? worker.ref() : worker.unref()),
    };
  },
  models: () => import('./worker/remote_model.js'),
  locate: (location) => location,
  locks: () => undefined, // the 'exit' event suffices
});
