/**
 * The packed package (build/attn.tgz) in common tools; --test-name-pattern selects some. Each tool is installed
 * separately in an exact version (tools/) under build/tests/bundlers. Tools of the gate have a lockfile there;
 * ATTN_BUNDLERS=gate runs only these.
 */
import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch, missing } from '../../wasm-tests/browser/drivers.mjs';
import { limit, skipUnlessCi } from '../../wasm-tests/support/node_tests.mjs';
import { repository } from '../../wasm-tests/support/paths.mjs';
import { work } from './apps.mjs';
import { differences } from './readme.mjs';
import { rows } from './rows.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const tarball = join(repository, 'build/attn.tgz');

/** Prepares a new app in a folder with only the tool and the package. */
function prepare({ name, tool }) {
  const folder = join(work, tool ?? name.replace(/\W+/g, '-').toLowerCase());
  mkdirSync(folder, { recursive: true });
  for (const left of readdirSync(folder)) if (left !== 'node_modules') rmSync(join(folder, left), { recursive: true });
  const own = join(folder, 'package.json');
  if (!tool) writeFileSync(own, '{ "name": "app", "private": true, "type": "module" }');
  else {
    cpSync(join(here, 'tools', tool), folder, { recursive: true });
    const [lockfile, installedLockfile] = ['package-lock.json', 'node_modules/.package-lock.json'].map((file) => join(folder, file));
    const isLocked = existsSync(lockfile);
    // `npm ci` requires the lockfile's optional packages of every platform, which some registries lack.
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', ...(isLocked ? [] : ['--no-package-lock'])];
    if (!existsSync(installedLockfile)) execFileSync('npm', ['install', ...flags], { cwd: folder, stdio: 'pipe' });
    // Next and Parcel take the closest folder with a lockfile as the app's root, which would otherwise be the
    // repository.
    if (!isLocked) cpSync(installedLockfile, lockfile);
  }
  // Same result as npm, which would ask a registry even for a tarball.
  const manifest = JSON.parse(readFileSync(own, 'utf8'));
  writeFileSync(own, JSON.stringify({ ...manifest, dependencies: { ...manifest.dependencies, attn: '*' } }, null, 2));
  for (const left of ['attn', '.vite']) rmSync(join(folder, 'node_modules', left), { recursive: true, force: true });
  mkdirSync(join(folder, 'node_modules/attn'), { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '--strip-components=1', '-C', join(folder, 'node_modules/attn')]);
  cpSync(join(here, 'app'), folder, { recursive: true });
  return folder;
}

/** Checks that a part works, or that its error or note begins as expected. */
const isAsExpected = (result, expected) => result === expected || (expected !== undefined && expected !== 'works' && result?.startsWith(expected));

/** Runs a row; resolves to the result of each part. */
async function run(row) {
  if (!existsSync(tarball)) throw new Error('build/attn.tgz is missing: make package');
  const folder = prepare(row);
  const browser = await launch('chromium');
  try {
    return await row.run(folder, browser);
  } finally {
    await browser.close();
  }
}

const parts = missing('chromium');

for (const row of rows.filter(({ gate }) => gate || process.env.ATTN_BUNDLERS !== 'gate')) {
  // All tests of a row share one run.
  let running;
  const results = () => (running ??= run(row));

  for (const [part, expected] of Object.entries(row.says))
    test(`${row.name}: ${part} ${expected === 'works' ? expected : `reports "${expected}"`}`, limit, async (t) => {
      if (parts.length > 0) return skipUnlessCi(t, `${parts.join(', ')} not found`);
      if (row.setting) t.diagnostic(`with ${row.setting}`);
      const result = (await results())[part];
      assert.ok(isAsExpected(result, expected), `${part}: ${result}, expected ${expected}`);
    });

  test(`${row.name}: the app reports no other part`, limit, async (t) => {
    if (parts.length > 0) return skipUnlessCi(t, `${parts.join(', ')} not found`);
    assert.deepEqual(
      Object.keys(await results()).filter((part) => !Object.hasOwn(row.says, part)),
      [],
    );
  });
}

test("the table of bundlers in the package's README agrees with the expectations here", limit, () => assert.deepEqual(differences(), []));
