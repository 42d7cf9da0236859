import { execFile, spawn } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startServer } from '../../wasm-tests/support/server.mjs';
import { repository } from '../../wasm-tests/support/paths.mjs';

export const work = join(repository, 'build/tests/bundlers');
export const model = join(repository, 'testdata/models/tiny-bert');

/** Best result of each part; otherwise the start of a note or an error. */
const onMain = 'one thread instead of 2: the main thread of a page may not wait for others';
export const noWorkers = 'workers cannot be started here';
const all = { attention: 'works', model: 'works', threads: 'works', worker: 'works', workerThreads: 'works' };
export const says = {
  program: all,
  page: { ...all, threads: onMain },
  alone: {
    ...all,
    threads: `one thread instead of 2: ${noWorkers}`,
    worker: `ENVIRONMENT: load: ${noWorkers}`,
    workerThreads: `ENVIRONMENT: load: ${noWorkers}`,
  },
  withoutWorker: { attention: 'works', model: 'works', threads: `one thread instead of 2: ${noWorkers}` },
};

const execute = promisify(execFile);
const environment = { ...process.env, CI: 'true', ASTRO_TELEMETRY_DISABLED: '1', NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' };

export async function run(folder, program, ...args) {
  try {
    return (await execute(program, args, { cwd: folder, env: environment, maxBuffer: 1 << 24, timeout: 1_200_000 })).stdout;
  } catch (error) {
    throw new Error(`${program} ${args.join(' ')}: ${error.code}\n${`${error.stdout}${error.stderr}`.slice(-3000)}`, { cause: error });
  }
}
export const bin = (folder, name, ...args) => run(folder, process.execPath, join(folder, 'node_modules', name), ...args);

export function write(folder, name, text) {
  mkdirSync(join(folder, name, '..'), { recursive: true });
  writeFileSync(join(folder, name), text);
}

export function copyDist(folder, out, names) {
  for (const name of readdirSync(join(folder, 'node_modules/attn/dist')))
    if (names.test(name)) copyFileSync(join(folder, 'node_modules/attn/dist', name), join(out, name));
}

export async function nodeProgram(version) {
  const folder = join(work, `node-${version}`);
  const name = `node-linux-${process.arch}`;
  const program = join(folder, 'node_modules', name, 'bin/node');
  if (existsSync(program)) return program;
  write(folder, 'package.json', JSON.stringify({ private: true, dependencies: { [name]: version } }));
  await run(folder, 'npm', 'install', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund');
  return program;
}

export const html = (script) => `<!doctype html><html lang="en"><head><title>attn</title>${script}</head><body></body></html>`;
export const module = (name) => html(`<script type="module" src="./${name}"></script>`);
export const importMap = (imports) => `<script type="importmap">${JSON.stringify({ imports })}</script>`;

/**
 * Opens a page; resolves to the results of its app. If the app reports nothing, the error contains the last console
 * lines.
 */
export async function inBrowser(browser, url) {
  await browser.open(url);
  const reported = await browser.evaluate(async () => {
    for (let i = 0; i < 300 && !globalThis.matrix; ++i) await new Promise((done) => setTimeout(done, 100));
    return globalThis.matrix ? Promise.race([globalThis.matrix, new Promise((done) => setTimeout(done, 60_000, 'no answer'))]) : 'no answer';
  });
  if (reported === 'no answer') throw new Error(`no answer; the console says:\n${browser.messages().slice(-5).join('\n')}`);
  return reported;
}

export async function served(root, use, options = {}) {
  cpSync(model, join(root, 'tiny-bert'), { recursive: true });
  const server = await startServer({ root, isolated: true, policy: null, ...options });
  try {
    return await use(server.url);
  } finally {
    await server.close();
  }
}

export const page = (build, options) => async (folder, browser) => served(await build(folder), (url) => inBrowser(browser, url), options);

export async function serving(folder, program, args, url, use, env = {}) {
  const child = spawn(program, args, { cwd: folder, env: { ...environment, ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text));
  try {
    for (let i = 0; ; ++i) {
      try {
        await fetch(url);
        break;
      } catch {
        if (i >= 180 || child.exitCode !== null) throw new Error(`${url} does not answer\n${said.slice(-2000)}`);
        await new Promise((done) => setTimeout(done, 500));
      }
    }
    return await use(url);
  } finally {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}

export const printed = (text) => JSON.parse(text.trim().split('\n').at(-1));
