// node tools/check-size.mjs [FOLDER]: prints the size (Brotli) of the files that a page loads from FOLDER
// (web/lib/dist), with models and on demand. Exit 1 if a limit is exceeded.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { build } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));
// Everything that models need, decoders included.
const limits = { page: 255_500, onDemand: { lazy_tasks: 15_500, shards: 2_000, gguf: 8_000, gguf_parts: 2_500, chat: 16_000, image_model: 4_500 } };
/** Entries that are one file. */
const entryLimits = { tokenizer: 24_600, static: 9_000, cache: 3_000 };

const brotli = (bytes) =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }).length;
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;

/**
 * Bundles and minifies the library as a page would, without the glue, and separately the scripts for models.
 */
async function librarySizes(dist) {
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
  const chunks = [bundle]
    .flat()
    .flatMap((each) => each.output)
    .filter((chunk) => chunk.type === 'chunk');
  const withImports = (firsts) => {
    const all = new Set();
    const add = (name) => {
      const chunk = chunks.find(({ fileName }) => fileName === name);
      if (!chunk || all.has(chunk)) return;
      all.add(chunk);
      chunk.imports.forEach(add);
    };
    for (const { fileName } of firsts) add(fileName);
    return all;
  };
  const size = (list, ...before) =>
    [...list].filter((chunk) => !before.some((set) => set.has(chunk))).reduce((sum, { code }) => sum + brotli(Buffer.from(code)), 0);
  const isOnDemand = ({ name }) => Object.hasOwn(limits.onDemand, name);
  const first = withImports(chunks.filter(({ isEntry }) => isEntry));
  const ofModels = withImports(chunks.filter((chunk) => chunk.isDynamicEntry && !isOnDemand(chunk)));
  return {
    library: size(first),
    models: size(ofModels, first),
    onDemand: Object.fromEntries(chunks.filter(isOnDemand).map((chunk) => [chunk.name, size(withImports([chunk]), first, ofModels)])),
  };
}

export async function checkSizes(dist = join(root, 'web/lib/dist')) {
  const { library, models, onDemand } = await librarySizes(dist);
  const variants = readdirSync(dist).filter((name) => /^attn-.*\.wasm$/.test(name));
  let good = variants.length === 4;
  if (!good) console.log(`wire size: expected four binaries in ${dist}, found ${variants.length}`);
  for (const [name, limit] of Object.entries(entryLimits)) {
    const bytes = brotli(readFileSync(join(dist, `${name}.js`)));
    if (bytes > limit) good = false;
    console.log(`wire size: attn/${name} ${kB(bytes)} brotli, ${bytes > limit ? 'OVER the ' : ''}limit ${kB(limit)}`);
  }
  for (const name of variants) {
    const glue = join(dist, name.includes('threads') ? 'attn-threads.mjs' : 'attn.mjs');
    if (!existsSync(glue)) throw new Error(`${glue} is missing`);
    const parts = { wasm: brotli(readFileSync(join(dist, name))), glue: brotli(readFileSync(glue)), library };
    const without = parts.wasm + parts.glue + parts.library;
    const total = without + models;
    if (total > limits.page) good = false;
    console.log(
      `wire size: ${name.padEnd(32)} ${kB(parts.wasm)} + glue ${kB(parts.glue)} + library ${kB(parts.library)} = ${kB(without)}, + models ${kB(models)} = ` +
        `${kB(total)} brotli, ` +
        (total > limits.page ? `OVER the limit of ${kB(limits.page)}` : `limit ${kB(limits.page)}`),
    );
  }
  for (const [name, limit] of Object.entries(limits.onDemand)) {
    const bytes = onDemand[name];
    if (!(bytes > 0 && bytes <= limit)) good = false;
    console.log(`wire size: on demand ${name} ${kB(bytes)} more, limit ${kB(limit)}`);
  }
  return good;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = (await checkSizes(process.argv[2])) ? 0 : 1;
