// node tools/check-includes.mjs [FOLDER]: the include rule. Prints each #include in FOLDER (src, and python/src as
// src/python) that violates it, and totals; exit 1 if there is one.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const standard = /^<[a-z_0-9]+>$/;

// Folders from the bottom up, each with the folders, headers and libraries that it may include besides its own and
// the standard library. Other folders may use only these kernel headers: the rest is compiled once per architecture.
const kernels = ['attn/kernels/kernels.hpp', 'attn/kernels/backward.hpp', 'attn/kernels/activation_name.hpp', 'attn/kernels/philox.hpp'];
const rules = {
  'attn/kernels': [/^<xsimd\/.+>$/, /^"architectures\.inc"$/],
  'attn/tensor': [/^<xtensor\/.+>$/],
  'attn/parallel': [
    'attn/tensor/dry_run.hpp',
    'attn/tensor/error.hpp',
    'attn/tensor/float_environment.hpp',
    'attn/tensor/interruption.hpp',
    'attn/tensor/shape.hpp',
    /^<pthread\.h>$/,
  ],
  'attn/io/tokenizer': ['attn/tensor/', 'attn/io/json.hpp', 'attn/io/old_token_files.hpp', 'attn/io/side.hpp', 'attn/io/tokenizer_limits.hpp'],
  'attn/io/gguf': ['attn/tensor/', 'attn/io/float_formats.hpp', 'attn/io/json_text.hpp', 'attn/io/tokenizer_limits.hpp'],
  'attn/io': ['attn/tensor/', 'attn/io/tokenizer/', /^<nlohmann\/json\.hpp>$/],
  'attn/memory': [...kernels, 'attn/tensor/', 'attn/parallel/'],
  'attn/ops': [...kernels, 'attn/tensor/', 'attn/parallel/', 'attn/memory/'],
  'attn/layers': [...kernels, 'attn/tensor/', 'attn/parallel/', 'attn/memory/', 'attn/ops/'],
  'attn/train': ['attn/tensor/', 'attn/parallel/', 'attn/memory/', 'attn/ops/', 'attn/layers/'],
  'attn/models': [...kernels, 'attn/tensor/', 'attn/parallel/', 'attn/io/', 'attn/memory/', 'attn/ops/', 'attn/layers/', 'attn/train/'],
  'attn/models/families': ['attn/tensor/', 'attn/io/', 'attn/ops/', 'attn/layers/', 'attn/models/'],
  attn: ['attn/tensor/', 'attn/parallel/', 'attn/io/', 'attn/memory/', 'attn/ops/', 'attn/layers/', 'attn/train/', 'attn/models/'],
  command: ['attn/core.hpp', 'attn/io/', /^"[a-z_]+\.hpp"$/],
  c: ['attn/core.hpp', 'attn/c.h', 'attn/tensor/large_pages.hpp', /^<nlohmann\/json\.hpp>$/, /^<pthread\.h>$/],
  python: [
    'attn/core.hpp',
    'attn/context.hpp',
    'attn/io/tokenizer.hpp',
    'attn/tensor/error.hpp',
    'attn/tensor/interruption.hpp',
    'attn/tensor/large_pages.hpp',
    /^"[a-z_]+\.hpp"$/,
    /^<nanobind\/.+>$/,
  ],
  bindings: [
    ...kernels,
    'attn/tensor/',
    'attn/parallel/',
    'attn/io/',
    'attn/memory/',
    'attn/ops/',
    'attn/layers/',
    'attn/train/',
    'attn/models/',
    /^"[a-z_]+\.hpp"$/,
    /^<emscripten\/.+>$/,
    /^<malloc\.h>$/,
  ],
};
const exceptions = {
  'command/texts.cpp': [/^<(unistd|sys\/stat)\.h>$/],
  'command/printed.cpp': [/^<(unistd|fcntl)\.h>$/],
  'command/on_signal.cpp': [/^<pthread\.h>$/],
  'attn/kernels/simd.hpp': [/^<(wasm_simd128|arm_neon)\.h>$/],
  'attn/kernels/int8_dot.hpp': [/^<(wasm_simd128|immintrin|arm_neon)\.h>$/],
  // Refuses unknown names, queries the processor, and is compiled for one architecture only.
  'attn/kernels/dispatch.cpp': ['attn/tensor/error.hpp', /^<sys\/(auxv|sysctl)\.h>$/],
  'attn/context.cpp': ['attn/kernels/dispatch.hpp'],
  'attn/io/tokenizer/unicode.cpp': [/^<utf8proc\.h>$/],
  'attn/tensor/large_pages.cpp': [/^<sys\/mman\.h>$/],
};

const root = resolve(process.argv[2] ?? fileURLToPath(new URL('../src', import.meta.url)));
const python = join(root, '..', 'python', 'src');
const broken = [];
let includes = 0;

const allows = (rule, header) => (typeof rule === 'string' ? header.startsWith(`"${rule}`) : rule.test(header));
if (process.argv[2] === undefined)
  for (const [name, list] of [...Object.entries(rules), ...Object.entries(exceptions)])
    for (const path of [name, ...list])
      if (typeof path === 'string' && !existsSync(path === 'python' ? python : join(root, path)))
        broken.push(`tools/check-includes.mjs: there is no ${path}`);

const sources = (folder, prefix) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => /\.[ch]pp$/.test(name))
    .sort()
    .map((name) => ({ file: join(folder, name), path: prefix + name.split(sep).join('/') }));
const files = sources(root, '');
if (process.argv[2] === undefined) files.push(...sources(python, 'python/'));
for (const { file, path } of files) {
  const folder = path.slice(0, path.lastIndexOf('/'));
  const allowed = rules[folder];
  if (!allowed) {
    broken.push(`${path}: there is no include rule for this folder`);
    continue;
  }
  const patterns = [standard, new RegExp(`^"${folder}/[a-z0-9_]+\\.hpp"$`), ...allowed, ...(exceptions[path] ?? [])];
  readFileSync(file, 'utf8')
    .split('\n')
    .forEach((line, i) => {
      const header = /^\s*#\s*include\s*([<"][^>"]+[>"])/.exec(line)?.[1];
      if (!header) return;
      includes++;
      if (!patterns.some((pattern) => allows(pattern, header))) broken.push(`${path}:${i + 1}: ${folder} may not include ${header}`);
    });
}
if (includes === 0) broken.push(`${relative(process.cwd(), root) || '.'}: no #include was found`);

for (const line of broken) console.log(line);
console.log(`include rule: ${includes} includes in ${files.length} files, ${broken.length} broken`);
process.exitCode = broken.length ? 1 : 0;
