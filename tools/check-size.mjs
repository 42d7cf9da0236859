// node tools/check-size.mjs [FOLDER]: what a page loads, as brotli sends it: one .wasm with its glue and the library's
// scripts. FOLDER (web/lib/dist) is the built package. Exit 1 when a variant weighs more than the limit.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { build } from 'vite';

const limit = 150_000;
const root = fileURLToPath(new URL('..', import.meta.url));
const dist = process.argv[2] ?? join(root, 'web/lib/dist');

const brotli = (bytes) =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }).length;
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;

// The library as a page gets it: bundled and minified, the glue (counted by itself) left out.
const bundle = await build({
  root,
  configFile: false,
  logLevel: 'error',
  build: {
    write: false,
    minify: true,
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: { input: join(dist, 'index.js'), preserveEntrySignatures: 'strict', external: [/attn(-threads)?\.mjs$/] },
  },
});
const library = [bundle]
  .flat()
  .flatMap((each) => each.output)
  .reduce((sum, chunk) => sum + (chunk.type === 'chunk' ? brotli(Buffer.from(chunk.code)) : 0), 0);

const variants = readdirSync(dist).filter((name) => /^attn-.*\.wasm$/.test(name));
let failed = variants.length === 4 ? 0 : 1;
if (failed) console.log(`wire size: expected four binaries in ${dist}, found ${variants.length}`);
for (const name of variants) {
  const glue = join(dist, name.includes('threads') ? 'attn-threads.mjs' : 'attn.mjs');
  if (!existsSync(glue)) throw new Error(`${glue} is missing`);
  const parts = { wasm: brotli(readFileSync(join(dist, name))), glue: brotli(readFileSync(glue)), library };
  const total = parts.wasm + parts.glue + parts.library;
  if (total > limit) failed++;
  console.log(
    `wire size: ${name.padEnd(26)} ${kB(parts.wasm)} + glue ${kB(parts.glue)} + library ${kB(parts.library)} = ${kB(total)} brotli` +
      (total > limit ? `, over the limit of ${kB(limit)}` : ''),
  );
}
process.exitCode = failed ? 1 : 0;
