/** The suites by name, for a host that imports them in one go. */
import { checkTable } from './table.mjs';

// That of start_worker.ts takes sources of the package beside which no built files lie, and runs in Node alone.
const files = import.meta.glob(['./*.ts', '!./index.ts', '!./start_worker.ts']);

export async function importSuites(names: readonly string[]): Promise<void> {
  checkTable(Object.keys(files));
  for (const name of names) await files[`./${name}.ts`]();
}
