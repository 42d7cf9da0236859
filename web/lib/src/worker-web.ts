/** attn/worker in browsers. */
import type * as Contract from './worker.js';
import { remoteLoader } from './worker/client.js';
import { transfer } from './worker/parcel.js';
import { pageUrl } from './platform/placed.js';
import { startWorker } from './platform/start_worker.js';

export { AttnError } from './args/error.js';
export { transfer };

export const load: typeof Contract.load = remoteLoader({
  connect(training) {
    // webpack makes one file of workers with one name.
    const { worker, help } = startWorker(
      training
        ? () => new Worker(new URL('./worker-host-train.js', import.meta.url), { type: 'module', name: 'attn-train' })
        : () => new Worker(new URL('./worker-host.js', import.meta.url), { type: 'module', name: 'attn' }),
    );
    return {
      endpoint: worker,
      help,
      onDeath(callback) {
        worker.addEventListener('error', (event) => {
          event.preventDefault();
          callback(event.message || 'its script could not be loaded');
        });
        worker.addEventListener('messageerror', () => callback('a message could not be read'));
      },
      terminate: () => worker.terminate(),
      setWaiting() {},
    };
  },
  models: () => import('./worker/remote_model.js'),
  locate(location) {
    try {
      return new URL(location, pageUrl()).href;
    } catch {
      return location; // fetch will say what is wrong with it
    }
  },
  locks: () => globalThis.navigator?.locks,
});
