import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the repository. */
export const repository = fileURLToPath(new URL('../..', import.meta.url));

/** A path below the root. */
export const at = (...parts) => join(repository, ...parts);
