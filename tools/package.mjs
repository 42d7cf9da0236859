// node tools/package.mjs: packs web/lib as build/attn.tgz, what `npm install attn` would fetch, and says what a page loads of it; --unweighed: packs only.
// --repository URL: where the package says that its source is, which npm's provenance is checked against.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { checkSizes } from './check-size.mjs';

const { values } = parseArgs({ options: { unweighed: { type: 'boolean' }, repository: { type: 'string' } } });
const build = fileURLToPath(new URL('../build', import.meta.url));
const lib = fileURLToPath(new URL('../web/lib', import.meta.url));
mkdirSync(build, { recursive: true });

/** web/lib itself, or a copy whose manifest names the repository. */
function folderToPack() {
  if (!values.repository) return lib;
  const copy = join(build, 'package');
  rmSync(copy, { recursive: true, force: true });
  cpSync(lib, copy, { recursive: true, filter: (path) => basename(path) !== 'node_modules' });
  const path = join(copy, 'package.json');
  const { name, version, description, ...others } = JSON.parse(readFileSync(path, 'utf8'));
  const repository = { type: 'git', url: `git+${values.repository}.git` };
  writeFileSync(path, `${JSON.stringify({ name, version, description, repository, ...others }, null, 2)}\n`);
  return copy;
}

const printed = execFileSync('npm', ['pack', '--json', '--pack-destination', build], {
  cwd: folderToPack(),
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'ignore'],
});
const [{ filename, files }] = JSON.parse(printed);
const packed = join(build, 'attn.tgz');
renameSync(join(build, filename), packed);
console.log(`build/attn.tgz: ${files.length} files, ${(statSync(packed).size / 1000).toFixed(0)} kB`);
if (!values.unweighed) await checkSizes(join(lib, 'dist')); // the tests refuse what is too large
