// Comlink's adapter for worker_threads, likewise.
import type { Endpoint } from 'comlink';
import type { MessagePort, Worker } from 'node:worker_threads';
export default function nodeEndpoint(worker: Worker | MessagePort): Endpoint;
