// node tests/bundlers/run.mjs [TEXT]: the packed package (build/attn.tgz) in the tools that people use, or those whose names hold TEXT.
// Each tool is installed apart, by its lockfile in tools/, under build/tests/bundlers.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, missing } from '../../wasm-tests/browser/drivers.mjs';
import { repository } from '../../wasm-tests/support/paths.mjs';
import { work } from './apps.mjs';
import { differences } from './readme.mjs';
import { rows } from './rows.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const tarball = join(repository, 'build/attn.tgz');

/** A new app in a folder that has the tool and the package, and nothing else. */
function prepare({ name, tool }) {
  const folder = join(work, tool ?? name.replace(/\W+/g, '-').toLowerCase());
  mkdirSync(folder, { recursive: true });
  for (const left of readdirSync(folder)) if (left !== 'node_modules') rmSync(join(folder, left), { recursive: true });
  const own = join(folder, 'package.json');
  if (!tool) writeFileSync(own, '{ "name": "app", "private": true, "type": "module" }');
  else {
    for (const file of ['package.json', 'package-lock.json']) cpSync(join(here, 'tools', tool, file), join(folder, file));
    // `npm ci` wants the optional packages of every platform in the lockfile, and not every registry has all of them.
    if (!existsSync(join(folder, 'node_modules/.package-lock.json')))
      execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'], { cwd: folder, stdio: 'pipe' });
  }
  // As npm would have it, but for the tarball there is no registry to ask.
  const manifest = JSON.parse(readFileSync(own, 'utf8'));
  writeFileSync(own, JSON.stringify({ ...manifest, dependencies: { ...manifest.dependencies, attn: '*' } }, null, 2));
  for (const left of ['attn', '.vite']) rmSync(join(folder, 'node_modules', left), { recursive: true, force: true });
  mkdirSync(join(folder, 'node_modules/attn'), { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '--strip-components=1', '-C', join(folder, 'node_modules/attn')]);
  cpSync(join(here, 'app'), folder, { recursive: true });
  return folder;
}

/** Whether a part says what it should: works, or an error or a note that begins so. */
const isAsExpected = (result, expected) => result === expected || (expected !== undefined && expected !== 'works' && result?.startsWith(expected));

/** Runs rows and prints what each says; resolves to counts of parts, where a row without an answer is one that failed. */
async function matrix(chosen) {
  if (!existsSync(tarball)) throw new Error('build/attn.tgz is missing: make package');
  let [passed, failed] = [0, 0];
  for (const row of chosen) {
    let browser;
    const began = Date.now();
    const lines = [];
    try {
      const folder = prepare(row);
      browser = await launch('chromium');
      const results = await row.run(folder, browser);
      for (const part of new Set([...Object.keys(row.says), ...Object.keys(results)])) {
        const [result, expected] = [results[part], row.says[part]];
        const good = isAsExpected(result, expected);
        if (good) ++passed;
        else ++failed;
        lines.push(`${part}: ${result}${good ? '' : `\n    FAILED, expected ${expected}`}`);
      }
    } catch (error) {
      ++failed;
      lines.push(`FAILED: ${error.message.slice(-1500)}`);
    } finally {
      await browser?.close();
    }
    const seconds = Math.round((Date.now() - began) / 1000);
    console.log([`${row.name} (${seconds} s)${row.setting ? `, with ${row.setting}` : ''}`, ...lines].join('\n    '));
  }
  return { passed, failed };
}

/** The five most used, as a step of the tests. */
export async function matrixStep() {
  const names = ['Vite 8, build', 'webpack', 'esbuild', 'Vitest', 'Node 22.12.0'];
  return matrix(rows.filter(({ name }) => names.includes(name)));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (missing('chromium').length > 0) throw new Error('the matrix needs Chromium: tools/setup browsers');
  const wanted = (process.argv[2] ?? '').toLowerCase();
  const { passed, failed } = await matrix(rows.filter(({ name }) => name.toLowerCase().includes(wanted)));
  const differing = differences();
  for (const difference of differing) console.log(`FAILED, the package's README: ${difference}`);
  console.log(`${passed} passed, ${failed + differing.length} failed`);
  process.exitCode = failed + differing.length === 0 && passed > 0 ? 0 : 1;
}
