import { load } from 'attn';
import { load as loadInWorker } from 'attn/worker';
import { check } from './check.js';

globalThis.matrix = check(load, loadInWorker, '/tiny-bert');
