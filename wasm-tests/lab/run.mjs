#!/usr/bin/env node
/**
 * The programs that the page's lab shows, run as pasted, for many states of its fields: node wasm-tests/lab/run.mjs. JavaScript has to print every number
 * of the lab to the bit; C++ (against build/installed) and PyTorch (where a Python has it; else Python only compiles them) within the bounds of float32
 * around float64; C++ without FMA, as simd128 is, to the bit too. Two of the C++ programs are built as they stand; of the others, to save time, several are one file, where `main` has a name of its own.
 * The last line is "N passed, N failed".
 */
import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { load } from 'attn';
import { runnerImport } from 'vite';
import { Checks } from '../support/checks.mjs';
import { reference } from './bounds.mjs';
import { statesOf } from './states.mjs';

const at = (...parts) => join(fileURLToPath(new URL('../..', import.meta.url)), ...parts);
const work = at('build/wasm-tests/lab');
const execute = promisify(execFile);

async function output(program, args, options = {}) {
  try {
    return (await execute(program, args, { timeout: 300000, maxBuffer: 1 << 26, ...options })).stdout;
  } catch (error) {
    throw new Error(`${program} ${args.join(' ')}: ${error.code}\n${error.stdout ?? ''}${error.stderr ?? ''}`, { cause: error });
  }
}

const source = async (name) => (await runnerImport(at(name), { logLevel: 'error' })).module;
const [{ Generator }, { initialLab }, { readLab }, { runLab }, { fileOf, inputsFile, snippetsOf }] = await Promise.all(
  ['wasm-tests/support/generator.ts', ...['state/lab', 'lab/inputs', 'lab/run', 'lab/snippets'].map((name) => `web/page/src/${name}.ts`)].map(source),
);

const number = (text) => ({ nan: NaN, '-nan': NaN, inf: Infinity, '-inf': -Infinity })[text] ?? Number(text);
const numbers = (text, pattern) => (text.match(pattern) ?? []).map(number);

/** What a program printed, by name. */
const readers = {
  JavaScript: (text) =>
    Object.fromEntries(
      [...text.matchAll(/(\w+):? \{\s*data: Float32Array\(\d+\) \[([^\]]*)\]/g)].map(([, name, list]) => [name, numbers(list, /[^\s,]+/g)]),
    ),
  'C++': (text) => Object.fromEntries([...text.matchAll(/^(\w+) \([\d,]*\):(.*)$/gm)].map(([, name, list]) => [name, numbers(list, /\S+/g)])),
  PyTorch: (text) =>
    Object.fromEntries(
      [...text.matchAll(/(output|weights)\ntensor\(([^)]*)\)/g)].map(([, name, list]) => [name, numbers(list, /-?(?:inf|nan|[\d.]+(?:e[-+]\d+)?)/g)]),
    ),
};

/** The results of a state, as printed, against those of the lab, which are `shown`. JavaScript and C++ print floats in full, PyTorch eight decimals. */
function compare(title, printed, { shown, expected }, names, sameBits = title === 'JavaScript') {
  for (const name of names) {
    const [ours, theirs, { value, error }] = [shown[name], printed[name], expected[name]];
    assert.equal(theirs?.length, ours.length, `${title}: how many numbers of ${name}`);
    theirs.forEach((each, i) => {
      const told = `${title}: ${name}[${i}] is ${each}, in the lab ${ours[i]}, in float64 ${value[i]} ± ${error[i]}`;
      const [read, ofPrinting] = title === 'PyTorch' ? [each, 5e-9 * Math.max(1, Math.abs(each))] : [Math.fround(each), 0];
      if (sameBits || !Number.isFinite(ours[i]) || (title === 'C++' && error[i] === 0)) assert.equal(read, ours[i], told);
      else assert.ok(Math.abs(read - value[i]) <= error[i] + ofPrinting, told);
    });
  }
}

const checks = new Checks('lab');
const attn = await load();
rmSync(work, { recursive: true, force: true });

/** All states with what the lab shows for them, their programs in folders of their own. */
const cases = [];
for (const [name, changes] of Object.entries(statesOf(new Generator(7)))) {
  const inputs = readLab({ ...initialLab, ...changes, fields: { ...initialLab.fields, ...changes.fields } });
  const result = await runLab(attn, inputs);
  const shown = Object.fromEntries([...result.trace, result.weights, result.output].map(({ name: each, tensor }) => [each, tensor.data]));
  const folder = join(work, String(cases.length));
  mkdirSync(folder, { recursive: true });
  const file = fileOf(inputs);
  if (file) writeFileSync(join(folder, inputsFile), attn.writeSafetensors(file));
  const code = Object.fromEntries(snippetsOf(inputs).map((each) => [each.title, each.code]));
  writeFileSync(join(folder, 'program.mjs'), code.JavaScript);
  writeFileSync(join(folder, 'program.cpp'), code['C++']);
  writeFileSync(join(folder, 'program.py'), code.PyTorch);
  // The programs do not ask for weighted_values, which may be very many.
  const names = Object.keys(shown).filter((each) => each !== 'weighted_values');
  cases.push({ name, folder, code, names, shown, expected: reference(inputs), fromFile: file !== undefined });
}
const { variant } = attn.info;
attn.dispose();
assert.ok(cases.some(({ fromFile }) => fromFile) && cases.some(({ fromFile }) => !fromFile), 'numbers in programs, and in files');

// What Node prints of an array is cut after 100 numbers, unless it is told otherwise.
const whole = `data:text/javascript,import util from 'node:util';Object.assign(util.inspect.defaultOptions,{maxArrayLength:null});`;
for (const each of cases)
  await checks.check(`JavaScript: ${each.name}`, async () => {
    const text = await output(process.execPath, ['--import', whole, 'program.mjs'], { cwd: each.folder });
    compare('JavaScript', readers.JavaScript(text), each, each.names);
  });

/** What the C++ programs printed, by their place; and without FMA, where this machine and Node's variant can be compared so. */
let [compiled, plain] = [];
const withoutFma = process.arch === 'x64' && variant.startsWith('simd');
/** Built as they stand: one from its own numbers, one from a file. */
const asPasted = ['every option at once', 'multi-head numbers from a file'].map((name) => cases.findIndex((each) => each.name === name));
await checks.check(
  'the C++ programs compile without a warning',
  async () => {
    assert.ok(existsSync(at('build/installed')), 'build/installed is missing: cmake --install');
    const together = [...cases.keys()].filter((i) => !asPasted.includes(i));
    for (const [part, members] of [together.slice(0, together.length / 2), together.slice(together.length / 2)].entries()) {
      const programs = members.map((i) => {
        assert.equal(cases[i].code['C++'].split('int main() {').length, 2, `one main in ${cases[i].name}`);
        return cases[i].code['C++'].replace('int main() {', `void program_${i}() {`);
      });
      writeFileSync(join(work, `part_${part}.cpp`), programs.join('\n'));
    }
    writeFileSync(
      join(work, 'main.cpp'),
      `#include <cstdlib>\n#include <filesystem>\n#include <iostream>\n${together.map((i) => `void program_${i}();\n`).join('')}
int main() {
${together.map((i) => `  std::cout << "program ${i}\\n";\n  std::filesystem::current_path(FOLDER "/${i}");\n  program_${i}();\n`).join('')}}\n`,
    );
    writeFileSync(
      join(work, 'CMakeLists.txt'),
      `cmake_minimum_required(VERSION 3.25)
project(lab LANGUAGES CXX)
find_package(attn CONFIG REQUIRED)
link_libraries(attn::attn)
add_compile_options(-O0 -Wall -Wextra -Werror)
add_executable(together main.cpp part_0.cpp part_1.cpp)
target_compile_definitions(together PRIVATE FOLDER="\${CMAKE_SOURCE_DIR}")
${asPasted.map((i) => `add_executable(program_${i} ${i}/program.cpp)\n`).join('')}`,
    );
    await output('cmake', ['-S', work, '-B', join(work, 'build'), `-DCMAKE_PREFIX_PATH=${at('build/installed')}`]);
    await output('cmake', ['--build', join(work, 'build'), '--parallel', '2']);
    const runAll = async (env) => {
      const text = await output(join(work, 'build/together'), [], { env });
      const printed = Object.fromEntries([...text.matchAll(/^program (\d+)\n((?:(?!program ).*\n)*)/gm)].map(([, i, lines]) => [i, lines]));
      for (const i of asPasted) printed[i] = await output(join(work, 'build', `program_${i}`), [], { cwd: cases[i].folder, env });
      return printed;
    };
    compiled = await runAll(process.env);
    if (withoutFma) plain = await runAll({ ...process.env, ATTN_MAX_ARCH: 'sse4_2' });
  },
  300,
);
for (const [i, each] of cases.entries())
  await checks.check(`C++: ${each.name}`, () => {
    compare('C++', readers['C++'](compiled?.[i] ?? ''), each, each.names);
    if (withoutFma) compare('C++', readers['C++'](plain[i] ?? ''), each, each.names, true);
  });

/** The first Python of these that can do something, if there is one. */
async function pythonFor(probe) {
  for (const program of [at('.setup/bench-venv/bin/python'), at('build/goldens-venv/bin/python'), 'python3'])
    if (await execute(program, ['-c', probe]).catch(() => false)) return program;
  return undefined;
}

const torch = await pythonFor('import torch, safetensors');
if (torch) {
  const runAll = `
import os, runpy, sys
for folder in sys.argv[1:]:
    os.chdir(folder)
    print('program', flush=True)
    try:
        runpy.run_path('program.py')
    except Exception as error:
        print(error)
`;
  const text = await output(torch, ['-B', '-c', runAll, ...cases.map(({ folder }) => folder)]);
  const printed = text.split(/^program\n/m).slice(1);
  for (const [i, each] of cases.entries())
    await checks.check(`PyTorch: ${each.name}`, () => {
      const read = readers.PyTorch(printed[i]);
      assert.ok(read.output && read.weights, printed[i]);
      compare('PyTorch', read, each, ['output', 'weights']);
    });
} else {
  const python = await pythonFor('pass');
  console.log(`no Python with torch and safetensors: the PyTorch programs are ${python ? 'compiled, not run' : 'not looked at'}`);
  if (python)
    await checks.check('the PyTorch programs compile', () =>
      output(python, [
        '-c',
        "import sys\nfor name in sys.argv[1:]: compile(open(name).read(), name, 'exec')",
        ...cases.map(({ folder }) => join(folder, 'program.py')),
      ]),
    );
}

const { passed, failed } = checks.counts;
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
