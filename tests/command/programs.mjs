import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { at } from '../../wasm-tests/support/paths.mjs';

export const work = mkdtempSync(join(tmpdir(), 'attn-command-'));
export const removeWork = () => rmSync(work, { recursive: true });

export const bert = at('testdata/models/tiny-bert');

export const programs = { npx: [process.execPath, at('web/lib/dist/cli.js')], native: [at('build/native/bin/attn')] };
/** The arithmetic that both programs support. */
const env = { ...process.env, ATTN_VARIANT: 'simd', ATTN_MAX_ARCH: 'emulated' };

export function runWith(input, program, ...args) {
  const [file, ...first] = programs[program];
  const { status, stdout, stderr } = spawnSync(file, [...first, ...args], {
    encoding: 'latin1',
    cwd: work,
    timeout: 600_000,
    maxBuffer: 2 ** 26,
    env,
    input: Buffer.from(input),
  });
  const utf8 = (text) => Buffer.from(text, 'latin1').toString();
  return { status, stdout: args.includes('npy') ? stdout : utf8(stdout), stderr: utf8(stderr) };
}
export const run = (program, ...args) => runWith('', program, ...args);
export function bothWith(input, ...args) {
  const [npx, native] = Object.keys(programs).map((program) => runWith(input, program, ...args));
  assert.deepEqual(native, npx, args.join(' '));
  return npx;
}
export const both = (...args) => bothWith('', ...args);
/** Returns the results of `both` for many calls without input. One thread runs all of `npx attn`, because a start of Node takes longer than a call. */
export async function bothOfEach(calls) {
  const worker = new Worker(new URL('many_calls.mjs', import.meta.url), { workerData: { program: programs.npx[1], calls }, env });
  const [all] = await once(worker, 'message');
  calls.forEach((args, i) => assert.deepEqual(run('native', ...args), all[i], args.join(' ')));
  return all;
}

export const filesOf = (folder) =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((path) => [path.slice(folder.length + 1), readFileSync(path)]),
  );
