// node tools/package.mjs: packs web/lib as build/attn.tgz, what `npm install attn` would fetch, and says what a page loads of it; --unweighed: packs only.
import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkSizes } from './check-size.mjs';

const build = fileURLToPath(new URL('../build', import.meta.url));
const lib = fileURLToPath(new URL('../web/lib', import.meta.url));
mkdirSync(build, { recursive: true });
const printed = execFileSync('npm', ['pack', '--json', '--pack-destination', build], {
  cwd: lib,
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'ignore'],
});
const [{ filename, files }] = JSON.parse(printed);
const packed = join(build, 'attn.tgz');
renameSync(join(build, filename), packed);
console.log(`build/attn.tgz: ${files.length} files, ${(statSync(packed).size / 1000).toFixed(0)} kB`);
if (!process.argv.includes('--unweighed')) await checkSizes(join(lib, 'dist')); // the tests refuse what is too large
