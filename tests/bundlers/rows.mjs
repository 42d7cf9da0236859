/**
 * All rows: a tool or host, its folder in tools/, how to build and run an app with attn, and the expected results by
 * part. Production builds with default settings; an unavoidable setting is the row's `setting`. `line` is its name in
 * the table of the package's README. Rows with `gate` run in `make test ALL=1` and the gate, all rows in `make matrix`.
 */
import { angular } from './angular.mjs';
import { bundlers } from './bundlers.mjs';
import { frameworks } from './frameworks.mjs';
import { programs } from './programs.mjs';
import { scopes } from './scopes.mjs';

export const rows = [...bundlers, ...frameworks, ...angular, ...scopes, ...programs];
