import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

/** Strings that act on a terminal, or reorder what it shows, if they are printed as they are. */
const attacks = ['\x1b[2J', '\x1b]0;owned\x07', '\x9b31m', '\u202e', '\u2066', '\x7f'];
export const controls = /(?!\n|\t)[\p{Cc}\p{Bidi_Control}]/u;
/** As the commands print a text: control characters are escaped, line breaks are not. */
export const shown = (text) => text.replace(/(?!\n)[\p{Cc}\p{Bidi_Control}]/gu, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Copies tiny-gpt2 with attacks in all tokens but the single bytes. Returns the folder, and a text with one token for each attack. */
export function hostileGpt2() {
  const folder = join(work, 'hostile-gpt2');
  cpSync(at('testdata/models/tiny-gpt2'), folder, { recursive: true });
  const file = join(folder, 'tokenizer.json');
  const tokenizer = JSON.parse(readFileSync(file, 'utf8'));
  const [special] = tokenizer.added_tokens;
  const renamed = Object.entries(tokenizer.model.vocab).map(([token, id]) => [id < 257 ? token : `${attacks[id % attacks.length]}${id}`, id]);
  tokenizer.model = { ...tokenizer.model, vocab: Object.fromEntries(renamed), merges: [] };
  for (const [content, id] of renamed) if (id >= 257) tokenizer.added_tokens.push({ ...special, id, content, special: false });
  writeFileSync(file, JSON.stringify(tokenizer));
  return { folder, attacks, text: `The ${attacks.map((attack, i) => `${attack}${258 + i}`).join('')}` };
}
