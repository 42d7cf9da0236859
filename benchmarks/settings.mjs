/** Reads the environment: HOSTS and CASES (comma-separated texts), QUICK=1 and FULL=1. */
import { readFile } from 'node:fs/promises';

const words = (value) =>
  (value ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean);

/** Longest calls in WebAssembly in GFLOP by kind; FULL=1 includes longer ones. */
const most = { sdpa: 60, encoder: 25 };

export async function settings(environment = process.env) {
  return {
    table: JSON.parse(await readFile(new URL('cases.json', import.meta.url), 'utf8')),
    hosts: words(environment.HOSTS),
    options: {
      texts: words(environment.CASES),
      isQuick: environment.QUICK === '1',
      isFull: environment.FULL === '1',
      most: environment.FULL === '1' ? {} : most,
    },
  };
}
