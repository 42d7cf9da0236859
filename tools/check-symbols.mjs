// node tools/check-symbols.mjs LIBRARY: what the compiled library must not have among its symbols: names of xtensor's.
// node tools/check-symbols.mjs --kernels FOLDER: what the kernels of each architecture in that build must not: functions that others may have, too,
// and that the linker would take in one architecture's instructions for all.
// Prints each and ends with a line of totals; exit 1 when there is one.
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** [kind, name] of each symbol that is defined there. */
function symbolsOf(file) {
  const lines = execFileSync('nm', ['--demangle', '--defined-only', file], { encoding: 'utf8', maxBuffer: 1 << 28 }).split('\n');
  return lines.map((line) => /^[0-9a-f]{16} (.) (.*)$/.exec(line)?.slice(1)).filter(Boolean);
}

function checkLibrary(library) {
  const symbols = symbolsOf(library);
  const broken = symbols
    .filter(([, name]) => /\bxt::/.test(name))
    .map(([, name]) => `${name}: xtensor is what users compile, in their configuration`);
  if (symbols.length < 1000) broken.push(`${library} has only ${symbols.length} symbols`);
  return [symbols.length, broken];
}

/** What the names of an architecture's own functions hold. */
const architectures = {
  sse4_2: 'xsimd::sse4_2',
  avx2_fma: 'xsimd::fma3<xsimd::avx2>',
  avx512f: 'xsimd::avx512f',
  emulated: 'xsimd::emulated<128',
  default_arch: 'xsimd::',
  avx_vnni: 'xsimd_avx_vnni::',
  avx512_vnni: 'xsimd_avx512_vnni::',
  neon_dotprod: 'xsimd_neon_dotprod::',
};

function checkKernels(folder) {
  const objects = readdirSync(folder, { recursive: true }).filter((name) =>
    /attn_kernels_\w+\.dir.*(kernels|backward|int8_dot)\.cpp\.o(bj)?$/.test(name),
  );
  const broken = objects.length === 0 ? [`${folder} has no kernels`] : [];
  let count = 0;
  for (const object of objects) {
    const arch = /attn_kernels_(\w+)\.dir/.exec(object)[1];
    // Weak functions, weak and unique data; but for a pointer to the C++ runtime's, which is the same in every file.
    const shared = symbolsOf(join(folder, object)).filter(([kind, name]) => /[WVu]/.test(kind) && name !== 'DW.ref.__gxx_personality_v0');
    count += shared.length;
    for (const [, name] of shared) if (!name.includes(architectures[arch])) broken.push(`${arch}: ${name}`);
  }
  return [count, broken];
}

const kernels = process.argv[2] === '--kernels';
const path = process.argv[kernels ? 3 : 2];
const [count, broken] = (kernels ? checkKernels : checkLibrary)(path);
for (const line of broken) console.log(line);
console.log(`symbols of ${path}: ${count}, ${broken.length} that do not belong there`);
process.exitCode = broken.length ? 1 : 0;
