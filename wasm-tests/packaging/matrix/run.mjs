// node wasm-tests/packaging/matrix/run.mjs [TEXT]: the packed package (build/attn.tgz) in the tools that people use, or those whose names hold TEXT.
// Each tool is installed apart, by its lockfile in tools/, under build/wasm-tests/matrix.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, missing } from '../../browser/drivers.mjs';
import { repository } from '../../support/steps.mjs';
import { rows } from './rows.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const work = join(repository, 'build/wasm-tests/matrix');
const tarball = join(repository, 'build/attn.tgz');

/** A new app in a folder that has the tool and the package, and nothing else. */
function prepare({ name, tool }) {
  const folder = join(work, tool ?? name.replace(/\W+/g, '-').toLowerCase());
  mkdirSync(folder, { recursive: true });
  if (tool && !existsSync(join(folder, 'node_modules', '.package-lock.json'))) {
    for (const file of ['package.json', 'package-lock.json']) cpSync(join(here, 'tools', tool, file), join(folder, file));
    // `npm ci` wants the optional packages of every platform in the lockfile, and not every registry has all of them.
    execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'], { cwd: folder, stdio: 'pipe' });
  } else if (!tool) writeFileSync(join(folder, 'package.json'), '{ "name": "app", "private": true, "type": "module" }');
  for (const left of ['dist', 'src', 'app', 'public', 'vite.config.js', 'node_modules/attn', 'node_modules/.vite', '.parcel-cache'])
    rmSync(join(folder, left), { recursive: true, force: true });
  mkdirSync(join(folder, 'node_modules/attn'), { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '--strip-components=1', '-C', join(folder, 'node_modules/attn')]);
  cpSync(join(here, 'app'), folder, { recursive: true });
  return folder;
}

/** Runs rows; resolves to what each says: results by part, or an error. */
export async function matrix(chosen) {
  if (!existsSync(tarball)) throw new Error('build/attn.tgz is missing: make package');
  const all = [];
  for (const row of chosen) {
    let browser;
    const began = Date.now();
    const said = { row };
    try {
      const folder = prepare(row);
      browser = await launch('chromium');
      said.results = await row.run(folder, browser);
    } catch (error) {
      said.error = error.message.slice(-1500);
    } finally {
      await browser?.close();
    }
    said.seconds = Math.round((Date.now() - began) / 1000);
    all.push(said);
    const text =
      said.error ??
      Object.entries(said.results)
        .map(([part, result]) => `${part}: ${result}`)
        .join('\n    ');
    console.log(`${row.name} (${said.seconds} s)${row.setting ? `, with ${row.setting}` : ''}\n    ${text}`);
  }
  return all;
}

/** Whether a part's result is as good as it gets there: only a row that is `alone` has no workers, and one may be `without` a part. */
const isFine = ({ alone, without }, part, result) =>
  /^(works$|one thread instead of )/.test(result) ||
  part === without ||
  (alone === true && part.startsWith('worker') && result.startsWith('ENVIRONMENT: '));

/** Counts of parts; a row without an answer is one that failed. */
function counts(all) {
  const fine = all.flatMap(({ row, results }) => (results ? Object.entries(results).map(([part, result]) => isFine(row, part, result)) : [false]));
  const passed = fine.filter(Boolean).length;
  return { passed, failed: fine.length - passed };
}

/** The five most used, as a step of the tests. */
export async function matrixStep() {
  const names = ['Vite 8, build', 'webpack', 'esbuild', 'Vitest', 'Node 22.12.0'];
  return counts(await matrix(rows.filter(({ name }) => names.includes(name))));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (missing('chromium').length > 0) throw new Error('the matrix needs Chromium: tools/setup browsers');
  const { passed, failed } = counts(await matrix(rows.filter(({ name }) => name.toLowerCase().includes((process.argv[2] ?? '').toLowerCase()))));
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}
