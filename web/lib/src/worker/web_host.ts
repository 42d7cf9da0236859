import { remoteLoader } from './worker_client.js';
import { pageUrl } from '../platform/asset_urls.js';
import { startWorker } from '../platform/start_worker.js';

export const loaderIn = (start: () => Worker) =>
  remoteLoader({
    connect() {
      const { worker, help } = startWorker(start);
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
    models: () => import('./remote_model.js'),
    locate(location) {
      try {
        return new URL(location, pageUrl()).href;
      } catch {
        return location; // fetch reports the error
      }
    },
    locks: () => globalThis.navigator?.locks,
  });
