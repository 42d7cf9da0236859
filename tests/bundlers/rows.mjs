/**
 * All rows. Each is a tool or a place to run in, the folder of tools/ that it needs, how it makes and runs an app that uses attn, and what that says by
 * part. Production builds and default settings; where one setting cannot be avoided, it is the row's `setting`. `line` is how the table in the
 * package's README names it. Rows with `gate` run in `make test ALL=1` and in the gate, all rows in `make matrix`.
 */
import { angular } from './angular.mjs';
import { bundlers } from './bundlers.mjs';
import { frameworks } from './frameworks.mjs';
import { programs } from './programs.mjs';
import { scopes } from './scopes.mjs';

export const rows = [...bundlers, ...frameworks, ...angular, ...scopes, ...programs];
