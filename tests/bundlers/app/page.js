import { load } from 'attn';
import { load as loadInWorker } from 'attn/worker';
import { check, checkTraining } from './check.js';

globalThis.matrix = (async () => ({ ...(await check(load, loadInWorker, '/tiny-bert')), ...(await checkTraining(load, loadInWorker)) }))();
