/** attn/worker in Node. */
import { Worker } from 'node:worker_threads';
import type * as Contract from './worker.js';
import { remoteLoader } from './worker/client.js';
import { transfer } from './worker/parcel.js';
import nodeEndpoint from './worker/comlink-node.js';
import { leaveOut } from './platform/placed.js';
import { beside } from './platform/beside.js';

export * from './common.js';
export { transfer };

export const load: typeof Contract.load = remoteLoader({
  connect() {
    const options = { name: 'attn' };
    const worker = beside(
      'worker-host-node.cjs', // whatever the folder's package.json has as type
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
  locks: () => undefined, // 'exit' tells
});
