// Comlink's adapter for worker_threads, placed by the build as well.
import type { Endpoint } from 'comlink';
import type { MessagePort, Worker } from 'node:worker_threads';
export default function nodeEndpoint(worker: Worker | MessagePort): Endpoint;
