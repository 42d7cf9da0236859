/**
 * Every code block of the READMEs and the guides is run: what is shown is what runs. A guide has an empty folder of its own, with the packed package in
 * it and models beside it; blocks with the name of a file are written there, and commands find them.
 */
import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { launch, missing } from '../../wasm-tests/browser/drivers.mjs';
import { Checks } from '../../wasm-tests/support/checks.mjs';
import { csp, startServer } from '../../wasm-tests/support/server.mjs';
import { repository } from '../../wasm-tests/support/paths.mjs';
import { blocksOf, prints } from './blocks.mjs';

const at = (...parts) => join(repository, ...parts);
const execute = promisify(execFile);

async function output(program, args, options) {
  try {
    return (await execute(program, args, { timeout: 120000, maxBuffer: 1 << 24, ...options })).stdout;
  } catch (error) {
    throw new Error(`${program} ${args.join(' ')}: exit ${error.code}\n${error.stdout ?? ''}${error.stderr ?? ''}`, { cause: error });
  }
}

function assertPrints(printed, { output: expected }) {
  if (expected !== undefined) assert.ok(prints(printed, expected), `it printed\n${printed}\ninstead of\n${expected}`);
}

/** Commands that something else runs: which file, and the words there. */
const elsewhere = {
  'cmake -S . -B build/release && cmake --build build/release && cmake --install build/release --prefix ~/.local': [
    'tools/test.mjs',
    "'native: plain build'",
  ],
  'python ray_embed.py SOURCE TARGET --model FOLDER --workers 2': ['examples/cluster/check.py', '"ray_embed.py", *common'],
  'spark-submit --py-files corpus.py spark_embed.py SOURCE TARGET --model FOLDER': ['examples/cluster/check.py', '"spark_embed.py", *common'],
  'pip install .': ['tools/test.mjs', "'python: wheel'"],
};

/** A line of a shell: run in the guide's folder where it may be, else known to be run somewhere. */
async function runLine(line, folder) {
  const [, target] = /^make ([a-z-]+)\b/.exec(line) ?? [];
  if (target) return void assert.match(readFileSync(at('Makefile'), 'utf8'), new RegExp(`^${target}\\b.*:`, 'm'), `make ${target}`);
  const [file, words] = elsewhere[line] ?? [];
  if (file) return void assert.ok(readFileSync(at(file), 'utf8').includes(words), `${file} runs it`);
  assert.ok(folder && /^(npm install (\.\/attn\.tgz|attn)|node [\w-]+\.mjs|npx attn [\w/. -]+)$/.test(line), `no test runs "${line}"`);
  if (line.startsWith('npm')) {
    rmSync(join(folder, 'node_modules'), { recursive: true });
    cpSync(at('build/attn.tgz'), join(folder, 'attn.tgz'));
  }
  // What the registry will have is what was packed.
  const [program, ...args] = line.replace(/ attn$/, ' ./attn.tgz').split(' ');
  return output(program, args, { cwd: folder, env: { ...process.env, npm_config_offline: 'true', npm_config_update_notifier: 'false' } });
}

/** What a page of a guide shows in Chromium: its text, and what the maps in it read. */
async function openPage(folder) {
  const server = await startServer({ root: folder, policy: null });
  const driver = await launch('chromium');
  try {
    await driver.open(server.url);
    for (let i = 0; i < 200; ++i) {
      if (await driver.evaluate("document.querySelector('output')?.textContent")) break;
      await sleep(50);
    }
    assert.deepEqual(driver.messages(), [], 'messages in the console');
    assert.match(await driver.evaluate("document.querySelector('output').textContent"), /^(simd|relaxed), 1 thread$/);
    assert.equal(await driver.evaluate("document.querySelector('attention-map').toSvg().match(/<rect /g).length > 9"), true, 'a map of nine cells');
  } finally {
    await driver.close();
    await server.close();
  }
}

/** Headers that a guide gives are those of the servers that the suites and the page run under. */
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

/** The Python that tests run, and whether the wheel was built for it and installed. */
const interpreter = at('.setup/python-venv/bin/python');
const hasWheel = existsSync(interpreter) && readdirSync(at('build')).some((name) => /^attn-.*\.whl$/.test(name));

const needsModel = (text) => /models\/(all-MiniLM[\w-]*)/.exec(text)?.[1];

/** The documents: a name, the text, and where its programs run. */
function documents(work, installed) {
  const guides = readdirSync(at('docs/guide')).filter((name) => name.endsWith('.md'));
  return [
    { name: 'README.md', file: at('README.md'), folder: undefined },
    ...['web/lib/README.md', 'docs/index.md', ...guides.map((name) => `docs/guide/${name}`)].map((name) => {
      const folder = join(work, 'guides', basename(name, '.md'));
      mkdirSync(folder, { recursive: true });
      cpSync(installed, join(folder, 'node_modules'), { recursive: true, verbatimSymlinks: true });
      symlinkSync(join(work, 'models'), join(folder, 'models'));
      return { name, file: at(name), folder };
    }),
  ].map((each) => ({ ...each, blocks: blocksOf(readFileSync(each.file, 'utf8')) }));
}

/** npm's own installation of the packed package, which the guides' folders are copies of. */
async function install(work) {
  const folder = join(work, 'installed');
  mkdirSync(folder);
  mkdirSync(join(folder, 'node_modules'));
  await runLine('npm install ./attn.tgz', folder);
  return join(folder, 'node_modules');
}

async function javaScript(checks, { name, folder, blocks }, scripts) {
  for (const block of blocks) {
    const { language, words, text, line } = block;
    const where = `${name}, line ${line}`;
    if (block.name && folder) writeFileSync(join(folder, block.name), text);
    if (language === 'sh')
      await checks.check(`${where}: commands`, async () => {
        let printed = '';
        for (const each of text.trim().split('\n')) printed = await runLine(each.replace(/\s+#.*$/, ''), folder);
        assertPrints(printed, block);
      });
    else if (language === 'js') {
      if (block.name) {
        const commands = blocks.filter((each) => each.language === 'sh').map((each) => each.text);
        await checks.check(`${where}: a command runs ${block.name}`, () => assert.ok(commands.join('').includes(`node ${block.name}\n`)));
        continue;
      }
      // In the browser alone: the site's tests do.
      if (words === 'live' && /\bdocument\b/.test(text)) continue;
      const model = needsModel(text);
      if (model && !existsSync(at('models', model)) && process.env.CI !== 'true') {
        console.log(`  ${where}: left out, models/${model} is not there (tools/setup models)`);
        continue;
      }
      await checks.check(`${where}: JavaScript`, async () => {
        const file = join(folder ?? scripts, `line${line}.mjs`);
        writeFileSync(file, text);
        assertPrints(await output(process.execPath, [file], { cwd: folder ?? repository }), block);
      });
    } else if (language === 'jsonl' && block.name) {
      const commands = blocks.filter((each) => each.language === 'sh').map((each) => each.text);
      await checks.check(`${where}: a command reads ${block.name}`, () => assert.ok(commands.join('').includes(` ${block.name} `)));
    } else if (language === 'python') {
      if (!hasWheel && process.env.CI !== 'true') {
        console.log(`  ${where}: left out, the wheel is not there (the step 'python: wheel')`);
        continue;
      }
      await checks.check(`${where}: Python`, async () => assertPrints(await output(interpreter, ['-c', text], { cwd: folder ?? repository }), block));
    } else if (language === 'html') {
      assert.ok(block.name === undefined || folder);
      if (block.name && (missing('chromium').length === 0 || process.env.CI === 'true'))
        await checks.check(`${where}: a page`, () => openPage(folder));
    } else if (language === 'http') await checks.check(`${where}: headers`, () => assertHeaders(text));
    else if (!['cpp', 'cmake'].includes(language)) await checks.check(where, () => assert.fail(`nothing runs a block of ${language}`));
  }
}

/** All C++ programs in one project, linked as the guide's block says. */
async function cpp(checks, all, work) {
  const linking = all.flatMap(({ blocks }) => blocks).filter(({ language }) => language === 'cmake');
  const programs = all.flatMap(({ name, folder, blocks }) =>
    blocks
      .filter(({ language }) => language === 'cpp')
      .map((block) => ({
        ...block,
        where: `${name}, line ${block.line}`,
        folder: folder ?? repository,
        target: `${name.replace(/\W/g, '_')}_${block.line}`,
      })),
  );
  const project = join(work, 'cpp');
  mkdirSync(project);
  await checks.check(
    `${programs.length} C++ blocks, against the installed package`,
    async () => {
      const prefix = at('build/installed');
      assert.ok(existsSync(prefix), 'build/installed is missing: cmake --install');
      assert.ok(programs.length > 0 && linking.length > 0);
      for (const { target, text } of programs) writeFileSync(join(project, `${target}.cpp`), text);
      const [{ text: shown }] = linking;
      for (const { text } of linking) assert.equal(text, shown, 'the same lines everywhere');
      const targets = programs.map(({ target }) => `add_executable(${target} ${target}.cpp)\n${shown.replaceAll('my_program', target)}`);
      writeFileSync(join(project, 'CMakeLists.txt'), `cmake_minimum_required(VERSION 3.25)\nproject(docs LANGUAGES CXX)\n${targets.join('')}`);
      await output('cmake', ['-S', project, '-B', join(project, 'build'), `-DCMAKE_PREFIX_PATH=${prefix}`, '-DCMAKE_BUILD_TYPE=Release']);
      await output('cmake', ['--build', join(project, 'build')], { timeout: 300000 });
    },
    300,
  );
  for (const program of programs)
    await checks.check(`${program.where}: C++`, async () =>
      assertPrints(await output(join(project, 'build', program.target), [], { cwd: program.folder }), program),
    );
}

export async function programs() {
  const checks = new Checks('code blocks');
  // Outside of the repository: nothing is found there but what a reader would have.
  const work = mkdtempSync(join(tmpdir(), 'attn-docs-'));
  const scripts = at('build/tests/docs');
  rmSync(scripts, { recursive: true, force: true });
  mkdirSync(scripts, { recursive: true });
  try {
    mkdirSync(join(work, 'models'));
    for (const name of ['sentiment', 'entities', 'masks', 'tiny-bert-qa']) symlinkSync(at('testdata/models', name), join(work, 'models', name));
    for (const name of ['all-MiniLM-L6-v2', 'all-MiniLM-L6-v2-int8'])
      if (existsSync(at('models', name))) symlinkSync(at('models', name), join(work, 'models', name));
    const all = documents(work, await install(work));
    await checks.check('an output that is another is seen', () => {
      assert.ok(prints('a 0.51\nb\nc\n', 'a 0.…\n…\nc\n') && !prints('a 0.51\nb\n', 'a 0.52\n…\n') && !prints('a\nb\n', 'a\n'));
      assert.throws(() => blocksOf('text\n\n```txt\nan output\n```\n'), /of nothing/);
    });
    for (const each of all) await javaScript(checks, each, scripts);
    await cpp(checks, all, work);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return checks.counts;
}
