/**
 * Runs every code block of the READMEs and guides. Each guide has a new folder with the packed package and models;
 * named blocks are written there as files, for commands to use.
 */
import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { launch, missing } from '../../wasm-tests/browser/drivers.mjs';
import { limit, skipUnlessCi } from '../../wasm-tests/support/node_tests.mjs';
import { at, repository } from '../../wasm-tests/support/paths.mjs';
import { csp, startServer } from '../../wasm-tests/support/server.mjs';
import { globSync } from '../../tools/test/glob.mjs';
import { blocksOf, prints } from './blocks.mjs';

const execute = promisify(execFile);

async function output(program, args, options) {
  try {
    return (await execute(program, args, { timeout: limit.timeout / 2, maxBuffer: 1 << 24, ...options })).stdout;
  } catch (error) {
    throw new Error(`${program} ${args.join(' ')}: exit ${error.code}\n${error.stdout ?? ''}${error.stderr ?? ''}`, { cause: error });
  }
}

function assertPrints(printed, { output: expected }) {
  if (expected !== undefined) assert.ok(prints(printed, expected), `it printed\n${printed}\ninstead of\n${expected}`);
}

/** Commands that other files run: the file, and the words there. */
const elsewhere = {
  'cmake -S . -B build/release && cmake --build build/release && cmake --install build/release --prefix ~/.local': [
    'tools/release/source.mjs',
    "'--install'",
  ],
  'python ray_embed.py SOURCE TARGET --model FOLDER --workers 2': ['examples/cluster/check.py', '"ray_embed.py", *common'],
  'spark-submit --py-files corpus.py spark_embed.py SOURCE TARGET --model FOLDER': ['examples/cluster/check.py', '"spark_embed.py", *common'],
  'pip install .': ['tools/test/steps.mjs', "'python: wheel'"],
};

/** Runs a command that compiles main.cpp with the installed library. */
async function compile(line) {
  const folder = mkdtempSync(join(tmpdir(), 'attn-docs-'));
  try {
    writeFileSync(
      join(folder, 'main.cpp'),
      '#include <attn/attn.hpp>\nint main() { return attn::softmax(xt::xtensor<float, 1>{1, 2})(0) > 0.5F; }\n',
    );
    const env = { ...process.env, PKG_CONFIG_PATH: at('build/installed/lib/pkgconfig') };
    await output('bash', ['-ec', line], { cwd: folder, env });
    await output(join(folder, 'my_program'), []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs a line of a shell in the guide's folder if allowed; otherwise it must be known to run elsewhere. */
async function runLine(line, folder) {
  const [, target] = /^make ([a-z-]+)\b/.exec(line) ?? [];
  if (target) return void assert.match(readFileSync(at('Makefile'), 'utf8'), new RegExp(`^${target}\\b.*:`, 'm'), `make ${target}`);
  if (line.startsWith('g++ ')) return compile(line);
  const [file, words] = elsewhere[line] ?? [];
  if (file) return void assert.ok(readFileSync(at(file), 'utf8').includes(words), `${file} runs it`);
  assert.ok(folder && /^(npm install (\.\/attn\.tgz|attn)|node [\w-]+\.mjs|npx attn [\w/. "-]+)$/.test(line), `no test runs "${line}"`);
  if (line.startsWith('npm')) {
    rmSync(join(folder, 'node_modules'), { recursive: true });
    cpSync(at('build/attn.tgz'), join(folder, 'attn.tgz'));
  }
  // The packed file replaces the package from the registry.
  const parts = line.replace(/ attn$/, ' ./attn.tgz').match(/"[^"]*"|\S+/g);
  const [program, ...args] = parts.map((part) => part.replace(/^"(.*)"$/, '$1'));
  return output(program, args, { cwd: folder, env: { ...process.env, npm_config_offline: 'true', npm_config_update_notifier: 'false' } });
}

async function openPage(folder) {
  const server = await startServer({ root: folder, policy: null });
  const driver = await launch('chromium');
  try {
    await driver.open(server.url);
    for (let i = 0; i < 200; ++i) {
      if (await driver.evaluate(() => document.querySelector('output')?.textContent)) break;
      await sleep(50);
    }
    assert.deepEqual(driver.messages(), [], 'messages in the console');
    assert.match(await driver.evaluate(() => document.querySelector('output').textContent), /^(simd|relaxed), 1 thread$/);
    const cells = await driver.evaluate(
      () =>
        document
          .querySelector('attention-map')
          .toSvg()
          .match(/<rect /g).length,
    );
    assert.ok(cells > 9, 'a map of nine cells');
  } finally {
    await driver.close();
    await server.close();
  }
}

async function assertHeaders(text) {
  const server = await startServer({ isolated: true });
  try {
    const { headers } = await fetch(server.url);
    for (const line of text.trim().split('\n')) {
      const [name, value] = line.split(/: (.*)/);
      assert.equal(headers.get(name), value, name);
    }
    assert.equal(headers.get('content-security-policy'), csp);
  } finally {
    await server.close();
  }
}

const interpreter = at('.setup/python-venv/bin/python');
const hasWheel = existsSync(interpreter) && readdirSync(at('build')).some((name) => /^attn-.*\.whl$/.test(name));

const needsModel = (text) => /models\/(all-MiniLM[\w-]*)/.exec(text)?.[1];

function documents() {
  const guides = readdirSync(at('docs/guide')).filter((name) => name.endsWith('.md'));
  const inFolders = ['web/lib/README.md', 'python/README.md', 'docs/index.md', ...guides.map((name) => `docs/guide/${name}`)];
  return [{ name: 'README.md' }, ...inFolders.map((name) => ({ name, folderName: name.replaceAll('/', '-') }))].map((each) => ({
    ...each,
    blocks: blocksOf(readFileSync(at(each.name), 'utf8')),
  }));
}

/** Creates the folder of each guide: the packed package, installed once and copied, the models, and named files. */
async function prepare(work, all) {
  mkdirSync(join(work, 'models'));
  for (const name of ['sentiment', 'entities', 'masks', 'tiny-bert-qa', 'tiny-gpt2', 'static'])
    symlinkSync(at('testdata/models', name), join(work, 'models', name));
  symlinkSync(at('testdata/vision/tiny-vit'), join(work, 'models', 'tiny-vit'));
  for (const name of ['all-MiniLM-L6-v2', 'all-MiniLM-L6-v2-int8'])
    if (existsSync(at('models', name))) symlinkSync(at('models', name), join(work, 'models', name));
  const installed = join(work, 'installed');
  mkdirSync(join(installed, 'node_modules'), { recursive: true });
  await runLine('npm install ./attn.tgz', installed);
  for (const { folderName, blocks } of all) {
    if (!folderName) continue;
    const folder = join(work, 'guides', folderName);
    mkdirSync(folder, { recursive: true });
    cpSync(join(installed, 'node_modules'), join(folder, 'node_modules'), { recursive: true, verbatimSymlinks: true });
    symlinkSync(join(work, 'models'), join(folder, 'models'));
    for (const { name, text } of blocks) if (name) writeFileSync(join(folder, name), text);
  }
}

// Outside of the repository, so that programs find only files that readers have.
const work = mkdtempSync(join(tmpdir(), 'attn-docs-'));
const scripts = at('build/tests/docs');
const all = documents();

before(async () => {
  rmSync(scripts, { recursive: true, force: true });
  mkdirSync(scripts, { recursive: true });
  await prepare(work, all);
});
after(() => rmSync(work, { recursive: true, force: true }));

test('an output that differs from the documented one is detected', limit, () => {
  assert.ok(prints('a 0.51\nb\nc\n', 'a 0.…\n…\nc\n') && !prints('a 0.51\nb\n', 'a 0.52\n…\n') && !prints('a\nb\n', 'a\n'));
  assert.throws(() => blocksOf('text\n\n```txt\nan output\n```\n'), /of nothing/);
});

const testsOf = {
  sh: ({ folder, where, block }) =>
    test(`${where}: the commands print the documented output`, limit, async () => {
      let printed = '';
      for (const each of block.text.trim().split('\n')) printed = await runLine(each.replace(/\s+#.*$/, ''), folder);
      assertPrints(printed, block);
    }),

  js({ folder, where, block, commands }) {
    if (block.name)
      return test(`${where}: a documented command runs ${block.name}`, limit, () => assert.ok(commands.includes(`node ${block.name}\n`)));
    // Programs for pages run in the tests of the site.
    if (block.words === 'live' && /\bdocument\b/.test(block.text)) return;
    test(`${where}: the JavaScript program prints the documented output`, limit, async (t) => {
      const model = needsModel(block.text);
      if (model && !existsSync(at('models', model))) return skipUnlessCi(t, `models/${model} is missing: tools/setup models`);
      const file = join(folder ?? scripts, `line${block.line}.mjs`);
      writeFileSync(file, block.text);
      assertPrints(await output(process.execPath, [file], { cwd: folder ?? repository }), block);
    });
  },

  jsonl({ where, block, commands }) {
    if (!block.name) return test(`${where}: a block of JSON lines has the name of a file`, limit, () => assert.fail('nothing reads it'));
    test(`${where}: a documented command reads ${block.name}`, limit, () => assert.ok(commands.includes(` ${block.name} `)));
  },

  md: ({ where, block, commands }) =>
    test(`${where}: a documented command reads ${block.name} in its folder`, limit, () =>
      assert.ok(block.name && commands.includes('npx attn index . ')),
    ),

  json: ({ where, block }) => test(`${where}: the file is valid JSON`, limit, () => void JSON.parse(block.text)),

  python: ({ folder, where, block }) =>
    test(`${where}: the Python program prints the documented output`, limit, async (t) => {
      if (!hasWheel) return skipUnlessCi(t, "the wheel is missing: the step 'python: wheel'");
      assertPrints(await output(interpreter, ['-c', block.text], { cwd: folder ?? repository }), block);
    }),

  html({ folder, where, block }) {
    if (!block.name) return;
    test(`${where}: the page works in Chromium`, limit, (t) => {
      assert.ok(folder, 'pages are in guides');
      const parts = missing('chromium');
      if (parts.length > 0) return skipUnlessCi(t, `${parts.join(', ')} not found`);
      return openPage(folder);
    });
  },

  http: ({ where, block }) => test(`${where}: the headers are those of the test servers`, limit, () => assertHeaders(block.text)),

  cpp() {},
  cmake() {},
};

for (const { name, folderName, blocks } of all) {
  const commands = blocks
    .filter(({ language }) => language === 'sh')
    .map(({ text }) => text)
    .join('');
  for (const block of blocks) {
    const where = `${name}, line ${block.line}`;
    // Programs with other libraries, in migrate.md, which are not installed.
    if (block.words === 'elsewhere') continue;
    const folder = folderName && join(work, 'guides', folderName);
    const add = testsOf[block.language];
    if (add) add({ folder, where, block, commands });
    else test(`${where}: a test runs blocks of ${block.language}`, limit, () => assert.fail(`nothing runs a block of ${block.language}`));
  }
}

const linking = all.flatMap(({ blocks }) => blocks).filter(({ language }) => language === 'cmake');
const programs = all.flatMap(({ name, folderName, blocks }) =>
  blocks
    .filter(({ language }) => language === 'cpp')
    .map((block) => ({
      ...block,
      where: `${name}, line ${block.line}`,
      folder: folderName ? join(work, 'guides', folderName) : repository,
      target: `${name.replace(/\W/g, '_')}_${block.line}`,
    })),
);

/** The examples in the doc comments of headers, each with the output that its comments promise. They are one program. */
const headers = globSync('src/attn/**/*.hpp');
const headerExamples = headers.flatMap((path) =>
  [...readFileSync(at(path), 'utf8').matchAll(/^ *\/\/\/ @code\n([\s\S]*?)^ *\/\/\/ @endcode$/gm)].map(({ 1: comment, index, input }) => {
    const text = comment.replace(/^ *\/\/\/ ?/gm, '');
    const printed = [...text.matchAll(/std::cout.*;  *\/\/ (.*)/g)].map(([, output]) => output).join('');
    const lines = input.slice(0, index).split('\n').slice(0, -1);
    const about = lines.slice(lines.findLastIndex((line) => !/^ *\/\/\//.test(line)) + 1);
    const isOfTag = about.some((line) => /\/\/\/ @/.test(line)) && !/\/\/\/$/.test(about.at(-1));
    return { where: `${path}, line ${lines.length + 1}`, text, printed, isOfTag };
  }),
);
const headerProgram = `#include <attn/attn.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>
#include <xtensor/xio.hpp>
${headerExamples.map(({ text }, i) => `static void example${i}() {\n${text}}\n`).join('')}
int main() {
${headerExamples.map((_, i) => `  example${i}();\n  std::cout << "\\n@\\n";\n`).join('')}}
`;
const project = join(work, 'cpp');

let building;
const build = () => (building ??= buildAll());
async function buildAll() {
  const prefix = at('build/installed');
  assert.ok(existsSync(prefix), 'build/installed is missing: cmake --install');
  assert.ok(programs.length > 0 && linking.length > 0);
  mkdirSync(project);
  for (const { target, text } of programs) writeFileSync(join(project, `${target}.cpp`), text);
  const [{ text: shown }] = linking;
  for (const { text } of linking) assert.equal(text, shown, 'the same lines everywhere');
  writeFileSync(join(project, 'header_examples.cpp'), headerProgram);
  const targets = [...programs, { target: 'header_examples' }].map(
    ({ target }) => `add_executable(${target} ${target}.cpp)\n${shown.replaceAll('my_program', target)}`,
  );
  // Optimising 200 examples would take longer than everything else here.
  targets.push('target_compile_options(header_examples PRIVATE -O0)\n');
  writeFileSync(join(project, 'CMakeLists.txt'), `cmake_minimum_required(VERSION 3.25)\nproject(docs LANGUAGES CXX)\n${targets.join('')}`);
  await output('cmake', ['-S', project, '-B', join(project, 'build'), `-DCMAKE_PREFIX_PATH=${prefix}`, '-DCMAKE_BUILD_TYPE=Release']);
  await output('cmake', ['--build', join(project, 'build')]);
}

test(`${programs.length} C++ programs compile against the installed package`, limit, build);

for (const program of programs)
  test(`${program.where}: the C++ program prints the documented output`, limit, async () => {
    await build();
    assertPrints(await output(join(project, 'build', program.target), [], { cwd: program.folder }), program);
  });

test('there are examples in the headers, and each promises an output', () => {
  assert.ok(headerExamples.length >= 200, `${headerExamples.length} examples`);
  for (const { where, printed } of headerExamples) assert.notEqual(printed, '', where);
  // Otherwise Doxygen sets the example as text of the last tag, such as @throws.
  for (const { where, isOfTag } of headerExamples) assert.ok(!isOfTag, `${where}: an empty line before the example`);
});

let outputs;
for (const [i, { where, printed }] of headerExamples.entries())
  test(`${where}: the example prints the documented output`, limit, async () => {
    await build();
    outputs ??= output(join(project, 'build/header_examples'), [], { cwd: repository });
    const given = (await outputs).split('\n@\n')[i];
    assert.equal(given.replace(/\s/g, ''), printed.replace(/\s/g, ''), given);
  });
