// Prints unwanted symbols; exit 1 if there are any.
//   node tools/check-symbols.mjs LIBRARY: names of xtensor.
//   node tools/check-symbols.mjs --kernels FOLDER: functions of kernels that the linker could use for other
// architectures.
//   node tools/check-symbols.mjs --c LIBRARY: differences between exported symbols and attn/c.h.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

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

/** Functions of an architecture have its xsimd type in their names; int8_dot.cpp renames xsimd. */
const types = readFileSync(new URL('../src/attn/kernels/architecture.hpp', import.meta.url), 'utf8');
const ownName = (arch) => (arch === 'default_arch' ? 'xsimd::' : (RegExp(`using ${arch} = ([^;>]+)`).exec(types)?.[1] ?? `xsimd_${arch}::`));

function checkKernels(folder) {
  const objects = readdirSync(folder, { recursive: true }).filter((name) =>
    /attn_kernels_\w+\.dir.*(kernels|backward|int8_dot)\.cpp\.o(bj)?$/.test(name),
  );
  const broken = objects.length === 0 ? [`${folder} has no kernels`] : [];
  let count = 0;
  for (const object of objects) {
    const arch = /attn_kernels_(\w+)\.dir/.exec(object)[1];
    // Weak functions, weak and unique data, except a pointer to the C++ runtime, which is the same in every file.
    const shared = symbolsOf(join(folder, object)).filter(([kind, name]) => /[WVu]/.test(kind) && name !== 'DW.ref.__gxx_personality_v0');
    count += shared.length;
    for (const [, name] of shared) if (!name.includes(ownName(arch))) broken.push(`${arch}: ${name}`);
  }
  return [count, broken];
}

/** The library may be loaded together with any others: private symbols must not be exported. */
function checkC(library) {
  const header = readFileSync(new URL('../src/attn/c.h', import.meta.url), 'utf8');
  const declared = [...header.matchAll(/^ATTN_API [^(]*?(attn_\w+)\(/gm)].map(([, name]) => name);
  const lines = execFileSync('nm', ['--dynamic', '--defined-only', library], { encoding: 'utf8' }).trim().split('\n');
  const shown = lines.map((line) => line.split(' ').slice(1)).filter(([kind]) => kind !== 'A');
  const names = new Set(shown.map(([, name]) => /^(attn_\w+)@@ATTN_C_\d+\.\d+$/.exec(name)?.[1] ?? name));
  const broken = [
    ...declared.filter((name) => !names.has(name)).map((name) => `${name} is declared and missing, or has no version`),
    ...[...names].filter((name) => !declared.includes(name)).map((name) => `${name} is shown and not declared`),
  ];
  return [names.size, declared.length < 40 ? [...broken, `only ${declared.length} functions were found in c.h`] : broken];
}

const check = { '--kernels': checkKernels, '--c': checkC }[process.argv[2]];
const path = process.argv[check ? 3 : 2];
const [count, broken] = (check ?? checkLibrary)(path);
for (const line of broken) console.log(line);
console.log(`symbols of ${path}: ${count}, ${broken.length} unwanted`);
process.exitCode = broken.length ? 1 : 0;
