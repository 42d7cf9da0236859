/**
 * node docs/tools/site.mjs: builds the documentation in build/docs: guides, generated references, and next to them the
 * built package and the small model for programs on the pages. It works under any path, without a network.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vitepress';
import { writeCppReference } from './cpp_reference.mjs';
import { writeJsReference } from './js_reference.mjs';
import { relocate } from './relocate.mjs';

const docs = fileURLToPath(new URL('..', import.meta.url));
const repository = join(docs, '..');
const out = join(repository, 'build/docs');

/** From the newest wheel; all have the same comments. */
function writePythonReference(folder) {
  const build = join(repository, 'build');
  const wheels = readdirSync(build).filter((name) => /^attn-.*\.whl$/.test(name));
  const age = (name) => -statSync(join(build, name)).mtimeMs;
  const [wheel] = wheels.sort((a, b) => age(a) - age(b));
  if (!wheel) throw new Error('there is no build/attn-*.whl (make wheel), which the Python reference is made of');
  execFileSync(join(repository, '.setup/python-venv/bin/python'), [join(docs, 'tools/python_reference.py'), join(build, wheel), folder], {
    stdio: 'inherit',
  });
}

for (const name of ['js', 'cpp', 'python']) rmSync(join(docs, 'reference', name), { recursive: true, force: true });
await writeJsReference(join(docs, 'reference/js'));
await writeCppReference(join(docs, 'reference/cpp'));
writePythonReference(join(docs, 'reference/python'));

await build(docs, { outDir: out, logLevel: 'warn' });
// Hosts have their own page for missing files; from such addresses this one would not find its files.
rmSync(join(out, '404.html'));
relocate(out);

const dist = join(repository, 'web/lib/dist');
mkdirSync(join(out, 'attn'));
for (const name of readdirSync(dist)) if (/\.(m?js|wasm)$/.test(name) && !/node|cli/.test(name)) cpSync(join(dist, name), join(out, 'attn', name));
for (const name of ['sentiment', 'entities', 'masks', '../vision/digits'])
  cpSync(join(repository, 'testdata/models', name), join(out, 'models', basename(name)), { recursive: true });
cpSync(join(repository, 'web/page/public/favicon.svg'), join(out, 'favicon.svg'));
// As .txt, because static hosts offer unknown endings as downloads.
cpSync(join(repository, 'THIRD_PARTY_NOTICES.md'), join(out, 'NOTICES.txt'));
