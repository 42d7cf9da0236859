/**
 * node tools/test.mjs [--affected | --all] [--only TEXT] [--list]: builds the project and runs every kind of test
 * once (make test).
 *   --affected  the usual steps, and those of other groups that the change since .ci/base can affect
 * (tools/test/affected.mjs): instruction sets, sanitizers, fuzzing, Firefox and WebKitGTK, bundlers
 *   --all       every step, also the long ones of the group 'before a release'
 *   --only      the steps whose names contain TEXT; if there are none, the tests whose names contain it, on the
 * existing build: those of the usual steps, or, if there are none, of any step
 *   --list      prints the steps that would run, one per line
 * A step that cannot run counts as a failure, and the others continue. The summary lists the slowest steps and tests,
 * the failures, and "N passed, N failed". With CI=true a missing browser is a failure.
 *
 * Only Node is required: the step "set-up: node" installs the packages.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { affectedBy, changedPaths } from './test/affected.mjs';
import { globSync } from './test/glob.mjs';
import { root } from './test/processes.mjs';
import { runSteps } from './test/runner.mjs';
import { groups as every, steps } from './test/steps.mjs';

const { only, all, affected, list } = parseArgs({
  options: { only: { type: 'string' }, all: { type: 'boolean' }, affected: { type: 'boolean' }, list: { type: 'boolean' } },
}).values;

// Builds must not inherit the flags of make.
for (const name of ['MAKEFLAGS', 'MFLAGS', 'MAKELEVEL']) delete process.env[name];

function stepsWithTest(text) {
  const holds = (file) => readFileSync(join(root, file), 'utf8').includes(text);
  const found = steps.filter(({ files = [] }) => [files].flat().flatMap(globSync).some(holds));
  const usual = found.filter(({ group }) => !group);
  if (usual.length > 0) return usual;
  if (found.length > 0) return found;
  console.error(`no step and no source of a test contains '${text}'; names made from data are searched in the suites and the native tests`);
  return steps.filter(({ name }) => ['native: tests', 'node-simd'].includes(name));
}

function chosen() {
  if (only !== undefined) {
    const named = steps.filter(({ name }) => name.includes(only));
    return named.length > 0 ? [named] : [stepsWithTest(only), { names: only }];
  }
  if (all) return [steps];
  const change = affected ? changedPaths() : { paths: [] };
  const groups = change ? affectedBy(change.paths, every) : every;
  if (!change) console.log('the changes since the last full run are unknown: every group runs');
  else if (affected)
    console.log(`${change.paths.length} files changed since ${change.base}; in addition to the usual steps: ${[...groups].join(', ') || 'none'}`);
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
