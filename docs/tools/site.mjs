/**
 * node docs/tools/site.mjs: the documentation as a folder of files, build/docs: guides, the reference from the doc comments, and beside them the built
 * package and the small model that programs on the pages run with. It works under any path, without a network.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vitepress';
import { writeCppReference } from './cpp_reference.mjs';
import { writeJsReference } from './js_reference.mjs';
import { relocate } from './relocate.mjs';

const docs = fileURLToPath(new URL('..', import.meta.url));
const repository = join(docs, '..');
const out = join(repository, 'build/docs');

/** Of the newest wheel: the words are the same in each. */
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
// A host has a page of its own for addresses that are not there; this one would not find its files from them.
rmSync(join(out, '404.html'));
relocate(out);

const dist = join(repository, 'web/lib/dist');
mkdirSync(join(out, 'attn'));
for (const name of readdirSync(dist)) if (/\.(m?js|wasm)$/.test(name) && !/node|cli/.test(name)) cpSync(join(dist, name), join(out, 'attn', name));
cpSync(join(repository, 'testdata/models/sentiment'), join(out, 'models/sentiment'), { recursive: true });
cpSync(join(repository, 'web/page/public/favicon.svg'), join(out, 'favicon.svg'));
// As text: hosts of files say of other endings that they are to be downloaded.
cpSync(join(repository, 'THIRD_PARTY_NOTICES.md'), join(out, 'NOTICES.txt'));
