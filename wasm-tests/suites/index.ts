/** Imports suites by name, for hosts that bundle them. */
import { checkMatrix } from './suite_matrix.mjs';

// gguf.ts and start_worker.ts import sources of the package without built files next to them; cache_folder.ts reads files.
const files = import.meta.glob(['./*.ts', '!./index.ts', '!./cache_folder.ts', '!./gguf.ts', '!./start_worker.ts']);

export async function importSuites(names: readonly string[]): Promise<void> {
  checkMatrix(Object.keys(files));
  for (const name of names) await files[`./${name}.ts`]();
}
