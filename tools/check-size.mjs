// node tools/check-size.mjs [FOLDER]: what a page loads, as brotli sends it: one .wasm with its glue and the library's
// scripts, and when it calls loadModel those for models, the tokenizer among them. FOLDER (web/lib/dist) is the built package.
// Exit 1 when a variant weighs more than its limit.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { build } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));
/** All in: what a page loads that has everything but training, and one that trains. */
const limits = { without: 175_000, training: 230_000 };

const brotli = (bytes) =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }).length;
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;

/** The library as a page gets it: bundled and minified, the glue (counted by itself) left out; apart what comes with the first model. */
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
      rollupOptions: { input: join(dist, 'index.js'), preserveEntrySignatures: 'strict', external: [/attn(-train)?(-threads)?\.mjs$/] },
    },
  });
  const chunks = [bundle]
    .flat()
    .flatMap((each) => each.output)
    .filter((chunk) => chunk.type === 'chunk');
  /** What comes with these, beside what is there already. */
  const before = new Set();
  const size = (firsts) => {
    let sum = 0;
    const add = (name) => {
      const chunk = chunks.find(({ fileName }) => fileName === name);
      if (!chunk || before.has(chunk)) return;
      before.add(chunk);
      sum += brotli(Buffer.from(chunk.code));
      chunk.imports.forEach(add);
    };
    for (const { fileName } of firsts) add(fileName);
    return sum;
  };
  const library = size(chunks.filter(({ isEntry }) => isEntry));
  const training = size(chunks.filter(({ name }) => name.startsWith('training')));
  return { library, training, models: size(chunks) };
}

/** Prints a line for each binary; whether all eight are there and none is over its limit. */
export async function checkSizes(dist = join(root, 'web/lib/dist')) {
  const { library, training, models } = await librarySizes(dist);
  const variants = readdirSync(dist).filter((name) => /^attn-.*\.wasm$/.test(name));
  let good = variants.length === 8;
  if (!good) console.log(`wire size: expected eight binaries in ${dist}, found ${variants.length}`);
  for (const name of variants) {
    const trains = name.includes('train');
    const limit = trains ? limits.training : limits.without;
    const glue = join(dist, `attn${trains ? '-train' : ''}${name.includes('threads') ? '-threads' : ''}.mjs`);
    if (!existsSync(glue)) throw new Error(`${glue} is missing`);
    const parts = { wasm: brotli(readFileSync(join(dist, name))), glue: brotli(readFileSync(glue)), library: library + (trains ? training : 0) };
    const without = parts.wasm + parts.glue + parts.library;
    const total = without + models;
    if (total > limit) good = false;
    console.log(
      `wire size: ${name.padEnd(32)} ${kB(parts.wasm)} + glue ${kB(parts.glue)} + library ${kB(parts.library)} = ${kB(without)}, + models ${kB(models)} = ` +
        `${kB(total)} brotli, ` +
        (total > limit ? `OVER the limit of ${kB(limit)}` : `limit ${kB(limit)}`),
    );
  }
  return good;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = (await checkSizes(process.argv[2])) ? 0 : 1;
