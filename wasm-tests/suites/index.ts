/** The suites of this set-up, for a host that imports them in one go. */
import { host } from '../support/host.ts';
import { checkTable, suitesOf } from './table.mjs';

const files = import.meta.glob(['./*.ts', '!./index.ts']);
checkTable(Object.keys(files));
for (const name of suitesOf(host)) await files[`./${name}.ts`]();
