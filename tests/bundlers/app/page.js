import { load } from 'attn';
import { load as loadInWorker } from 'attn/worker';
import { attempt, check } from './check.js';
import { checkEntries } from './entries.js';

globalThis.matrix = check(load, loadInWorker, '/tiny-bert').then(async (results) => ({
  ...results,
  entries: await attempt(() => checkEntries('/tiny-bert')),
}));
