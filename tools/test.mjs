/**
 * node tools/test.mjs [--all | --affected] [--only TEXT] [--list]: builds what is needed and runs every kind of test once (make test).
 *   --all       every step: other instruction sets, sanitizers, fuzzing, Firefox and WebKitGTK, every set-up of the package, bundlers
 *   --affected  beside the usual steps, those of --all that the change since .ci/base can affect (tools/test/affected.mjs): what .ci/run calls
 *   --only      the steps whose names hold TEXT; if there are none, the tests whose names hold it; with what was built before
 *   --list      prints the steps that would run, a line each
 * Each step counts its tests; one that cannot run counts as a failure, and the others go on. At the end come the slowest steps and tests, what failed,
 * and last "N passed, N failed". With CI=true a missing browser is a failure too.
 *
 * It needs nothing but Node itself at first: the packages come with the step "set-up: node".
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { affectedBy, changedPaths } from './test/affected.mjs';
import { globSync } from './test/glob.mjs';
import { root } from './test/processes.mjs';
import { runSteps } from './test/runner.mjs';
import { steps } from './test/steps.mjs';

const { only, all, affected, list } = parseArgs({
  options: { only: { type: 'string' }, all: { type: 'boolean' }, affected: { type: 'boolean' }, list: { type: 'boolean' } },
}).values;

// Started by make, the builds inside would take its flags for theirs.
for (const name of ['MAKEFLAGS', 'MFLAGS', 'MAKELEVEL']) delete process.env[name];

/** The steps that have a test of that name, with the part of the name as filter. */
function stepsWithTest(text) {
  const holds = (file) => readFileSync(join(root, file), 'utf8').includes(text);
  const found = steps.filter(({ files, group }) => files && !group && globSync(files).some(holds));
  if (found.length > 0) return found;
  console.error(`no step and no source of a test holds '${text}'; names made of data are looked for in the suites and natively`);
  return steps.filter(({ name }) => ['native: tests', 'node-simd'].includes(name));
}

function chosen() {
  if (only !== undefined) {
    const named = steps.filter(({ name }) => name.includes(only));
    return named.length > 0 ? [named] : [stepsWithTest(only), { names: only }];
  }
  if (all) return [steps];
  const change = affected ? changedPaths() : { paths: [] };
  if (!change) {
    console.log('what has changed since the last full run is not known: everything runs');
    return [steps];
  }
  const groups = affectedBy(change.paths, new Set(steps.map(({ group }) => group).filter(Boolean)));
  if (affected) console.log(`${change.paths.length} files changed since ${change.base}; beside the usual steps: ${[...groups].join(', ') || 'none'}`);
  return [steps.filter(({ group }) => !group || groups.has(group))];
}

const [entries, options] = chosen();
if (list) {
  for (const { name } of entries) console.log(name);
  process.exit();
}
mkdirSync(join(root, 'build'), { recursive: true });
const { passed, failed } = await runSteps(entries, options);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
