/** Runs the two programs `attn`, of the npm package and the native build, with the same arguments. */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { at } from '../../wasm-tests/support/paths.mjs';

/** The working folder of the programs. */
export const work = mkdtempSync(join(tmpdir(), 'attn-command-'));
export const removeWork = () => rmSync(work, { recursive: true });

export const bert = at('testdata/models/tiny-bert');

export const programs = { npx: [process.execPath, at('web/lib/dist/cli.js')], native: [at('build/native/bin/attn')] };
/** The arithmetic that both programs support. */
const env = { ...process.env, ATTN_VARIANT: 'simd', ATTN_MAX_ARCH: 'emulated' };

/** Runs a program with this standard input. */
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
/** Runs both programs, checks that output and exit code are equal, and returns them. */
export function bothWith(input, ...args) {
  const [npx, native] = Object.keys(programs).map((program) => runWith(input, program, ...args));
  assert.deepEqual(native, npx, args.join(' '));
  return npx;
}
export const both = (...args) => bothWith('', ...args);

/** Files of a folder and its subfolders, by path. */
export const filesOf = (folder) =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((path) => [path.slice(folder.length + 1), readFileSync(path)]),
  );
