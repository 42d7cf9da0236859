/** The suites by name, for a host that imports them in one go. */
import { checkTable } from './table.mjs';

const files = import.meta.glob(['./*.ts', '!./index.ts']);

export async function importSuites(names: readonly string[]): Promise<void> {
  checkTable(Object.keys(files));
  for (const name of names) await files[`./${name}.ts`]();
}
