/**
 * Runs the programs that the page's lab shows, for many states of its fields. JavaScript must print every number of the
 * lab exactly; C++ (against build/installed) and PyTorch within the error bounds of float32; C++ without FMA also
 * exactly, because simd128 has no FMA.
 */
import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { load } from 'attn';
import { runnerImport } from 'vite';
import { limit, skipUnlessCi } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { reference } from './bounds.mjs';
import { statesOf } from './states.mjs';

const work = at('build/tests/lab');
const execute = promisify(execFile);

async function output(program, args, options = {}) {
  try {
    return (await execute(program, args, { timeout: limit.timeout / 2, maxBuffer: 1 << 26, ...options })).stdout;
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

/** Parses a program's output, by name. */
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

/**
 * Compares printed results with those of the lab, `shown`. JavaScript and C++ print floats exactly, PyTorch eight
 * decimals.
 */
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

const attn = await load();
rmSync(work, { recursive: true, force: true });

/** All states with the lab's results and a folder for their programs. */
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
  // The programs do not request weighted_values, which can be very large.
  const names = Object.keys(shown).filter((each) => each !== 'weighted_values');
  cases.push({ name, folder, code, names, shown, expected: reference(inputs), fromFile: file !== undefined });
}
const { variant } = attn.info;
attn.dispose();
assert.ok(cases.some(({ fromFile }) => fromFile) && cases.some(({ fromFile }) => !fromFile), 'numbers in programs, and in files');

// Node truncates printed arrays after 100 numbers by default.
const whole = `data:text/javascript,import util from 'node:util';Object.assign(util.inspect.defaultOptions,{maxArrayLength:null});`;
for (const each of cases)
  test(`the JavaScript program prints the numbers of the lab: ${each.name}`, limit, async () => {
    const text = await output(process.execPath, ['--import', whole, 'program.mjs'], { cwd: each.folder });
    compare('JavaScript', readers.JavaScript(text), each, each.names);
  });

/**
 * Two programs are built as shown: one with its own numbers, one with numbers from a file. The others share an
 * executable with renamed `main` functions, to save time.
 */
const asPasted = ['every option at once', 'multi-head numbers from a file'].map((name) => cases.findIndex((each) => each.name === name));
const together = [...cases.keys()].filter((i) => !asPasted.includes(i));
/** Whether C++ can run without FMA, to compare with a variant of the package without it. */
const withoutFma = process.arch === 'x64' && variant.startsWith('simd');

function writeProject() {
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
}

/** Runs all C++ programs; resolves to their outputs. */
async function runCpp(env) {
  const text = await output(join(work, 'build/together'), [], { env });
  const printed = Object.fromEntries([...text.matchAll(/^program (\d+)\n((?:(?!program ).*\n)*)/gm)].map(([, i, lines]) => [i, lines]));
  for (const i of asPasted) printed[i] = await output(join(work, 'build', `program_${i}`), [], { cwd: cases[i].folder, env });
  return printed;
}

async function buildAndRunCpp() {
  assert.ok(existsSync(at('build/installed')), 'build/installed is missing: cmake --install');
  writeProject();
  await output('cmake', ['-S', work, '-B', join(work, 'build'), `-DCMAKE_PREFIX_PATH=${at('build/installed')}`]);
  await output('cmake', ['--build', join(work, 'build'), '--parallel', '2']);
  return { fastest: await runCpp(process.env), plain: withoutFma && (await runCpp({ ...process.env, ATTN_MAX_ARCH: 'sse4_2' })) };
}
let running;
const cpp = () => (running ??= buildAndRunCpp());

test('the C++ programs compile without warnings', limit, async () => void (await cpp()));
for (const [i, each] of cases.entries())
  test(`the C++ program prints the numbers of the lab: ${each.name}`, limit, async () => {
    const { fastest, plain } = await cpp();
    compare('C++', readers['C++'](fastest[i] ?? ''), each, each.names);
    if (withoutFma) compare('C++', readers['C++'](plain[i] ?? ''), each, each.names, true);
  });

/** Returns the first Python that can run the probe. */
async function pythonFor(probe) {
  for (const program of [at('.setup/bench-venv/bin/python'), at('build/goldens-venv/bin/python'), 'python3'])
    if (await execute(program, ['-c', probe]).catch(() => false)) return program;
  return undefined;
}

const torch = await pythonFor('import torch, safetensors');
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
let printing;
const pyTorch = () =>
  (printing ??= output(torch, ['-B', '-c', runAll, ...cases.map(({ folder }) => folder)]).then((text) => text.split(/^program\n/m).slice(1)));

if (torch)
  for (const [i, each] of cases.entries())
    test(`the PyTorch program prints the numbers of the lab: ${each.name}`, limit, async () => {
      const printed = (await pyTorch())[i];
      const read = readers.PyTorch(printed);
      assert.ok(read.output && read.weights, printed);
      compare('PyTorch', read, each, ['output', 'weights']);
    });
else
  test('the PyTorch programs compile (no Python here has torch and safetensors to run them)', limit, async (t) => {
    const python = await pythonFor('pass');
    if (!python) return skipUnlessCi(t, 'python3 not found');
    const compile = "import sys\nfor name in sys.argv[1:]: compile(open(name).read(), name, 'exec')";
    await output(python, ['-c', compile, ...cases.map(({ folder }) => join(folder, 'program.py'))]);
  });
