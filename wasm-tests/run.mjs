#!/usr/bin/env node
/**
 * Runs test steps of the npm package and of the page: node wasm-tests/run.mjs STEP...; without a step it lists them. Everything is built before
 * (web/lib/dist, build/wasm, build/page, build/native); the last line is "N passed, N failed". A browser that is missing is a skip that is
 * told; with CI=true it is a failure.
 */
import { steps } from './support/steps.mjs';

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(steps, name));
if (!names.length || unknown.length) {
  if (unknown.length) console.error(`no such step: ${unknown.join(', ')}`);
  console.log(`steps: ${Object.keys(steps).join(' ')}`);
  process.exit(unknown.length ? 2 : 0);
}

let [passed, failed] = [0, 0];
for (const name of names) {
  const started = Date.now();
  let result;
  try {
    result = await steps[name]();
  } catch (error) {
    console.error(error);
    result = { passed: 0, failed: 1 };
  }
  if (result.skipped) {
    console.log(`${name}: skipped, ${result.skipped}`);
    if (process.env.CI === 'true') failed++;
  } else console.log(`${name}: ${result.passed} passed, ${result.failed} failed, ${((Date.now() - started) / 1000).toFixed(1)} s`);
  passed += result.passed;
  failed += result.failed;
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
