import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { at, repository } from './paths.mjs';

/** Runs a program with inherited output; resolves to its exit code, or rejects after a time limit. */
export function run(program, args, { env = {}, seconds = 600, cwd = repository } = {}) {
  return new Promise((done, fail) => {
    const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'inherit', 'inherit'] });
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      fail(new Error(`${program} ${args.join(' ')}: not finished within ${seconds} s`));
    }, seconds * 1000);
    child.on('error', fail);
    child.on('exit', (code) => {
      clearTimeout(timer);
      done(code ?? 1);
    });
  });
}

/** Builds examples/browser with Vite into build/wasm-tests/`name` and returns that folder. */
export async function buildExample(name) {
  const out = at('build/wasm-tests', name);
  const code = await run(process.execPath, [
    at('node_modules/vite/bin/vite.js'),
    'build',
    at('examples/browser'),
    '--outDir',
    out,
    '--emptyOutDir',
    '--logLevel',
    'warn',
  ]);
  if (code !== 0 || !existsSync(join(out, 'index.html'))) throw new Error('examples/browser could not be built');
  return out;
}
