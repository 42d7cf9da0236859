// node tools/package.mjs: packs web/lib as build/attn.tgz, as published to npm, and prints the size that a page
// loads; --unweighed skips the size. --repository URL sets the source repository in the package, which npm's
// provenance check compares.
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
if (!values.unweighed) await checkSizes(join(lib, 'dist'));
