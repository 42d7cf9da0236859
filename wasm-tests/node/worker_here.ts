/**
 * Runs both ends of attn/worker in one thread over a port, because mutants cannot be activated in a separate worker.
 */
import { MessageChannel } from 'node:worker_threads';
import type * as Contract from '../../web/lib/src/worker.js';
import type { Endpoint } from '../../web/lib/src/worker/comlink.js';
import { remoteLoader } from '../../web/lib/src/worker/worker_client.js';
import { transfer } from '../../web/lib/src/worker/transfer_list.js';
import nodeEndpoint from '../../web/lib/src/worker/comlink-node.js';
import { serve } from '../../web/lib/src/worker/worker_server.js';
import { load as loadDirect } from '../../web/lib/src/node.js';

export { AttnError } from '../../web/lib/src/args/error.js';
export { transfer };

export const load: typeof Contract.load = remoteLoader({
  connect() {
    const { port1, port2 } = new MessageChannel();
    serve(loadDirect, () => import('../../web/lib/src/model/load_model.js'), nodeEndpoint(port2) as Endpoint);
    port1.unref();
    port2.unref();
    return {
      endpoint: nodeEndpoint(port1),
      help: '',
      onDeath: (callback) => void port1.on('close', () => callback('it ended')),
      terminate: () => port1.close(),
      setWaiting: (waiting) => (waiting ? port1.ref() : port1.unref()),
    };
  },
  models: () => import('../../web/lib/src/worker/remote_model.js'),
  locate: (location) => location,
  locks: () => undefined,
});
