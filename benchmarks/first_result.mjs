/**
 * node benchmarks/first_result.mjs [ENTRY...]: measures seconds from an empty folder with one file (npm package, wheel
 * or source archive) to the output of the guide's first program, by the guide's commands without ccache. ENTRY is npm,
 * wheel or source; default all.
 */
import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sourceArchive } from '../tools/release/archives.mjs';
import { versionOf } from '../tools/release/versions.mjs';
import { blocksOf, prints } from '../tests/docs/blocks.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const guide = (name) => blocksOf(readFileSync(join(root, `docs/guide/${name}.md`), 'utf8'));
const firstOf = (blocks, language) => blocks.find((each) => each.language === language);

function built(pattern, how) {
  const files = readdirSync(join(root, 'build')).filter((name) => pattern.test(name));
  if (files.length === 0) throw new Error(`there is no such file in build/: ${how}`);
  return join(root, 'build', files.sort((a, b) => statSync(join(root, 'build', b)).mtimeMs - statSync(join(root, 'build', a)).mtimeMs)[0]);
}

/** Each entry: a file, commands of which the last prints `output`, and the program. */
const entries = {
  npm() {
    const file = built(/^attn\.tgz$/, 'make package');
    const program = firstOf(guide('start'), 'js');
    const output = guide('start').find(({ text }) => text.startsWith(`node ${program.name}`)).output;
    return { file, program, output, commands: ['npm install --no-audit --no-fund ./attn.tgz', `node ${program.name}`] };
  },
  wheel() {
    const file = built(/^attn-.*\.whl$/, 'make wheel');
    const program = { ...firstOf(guide('python'), 'python'), name: 'first.py' };
    // The numpy that pip would choose for the wheel, pinned by digest.
    const numpy = { name: 'numpy.txt', text: /^numpy==[^]*?(?=^\w)/m.exec(readFileSync(join(root, 'python/requirements.txt'), 'utf8'))[0] };
    const commands = [
      'python3 -m venv venv',
      'venv/bin/pip install --quiet --require-hashes --only-binary=:all: --no-deps --requirement numpy.txt',
      'venv/bin/pip install --quiet --no-index ./attn-*.whl',
      'venv/bin/python first.py',
    ];
    return { file, program, more: [numpy], output: program.output, commands };
  },
  source(work) {
    const version = versionOf(root);
    const file = join(work, `attn-${version}.tar.gz`);
    sourceArchive(root, file, version);
    const blocks = guide('cpp');
    const program = { ...firstOf(blocks, 'cpp'), name: 'my_program.cpp' };
    const lines = ['cmake_minimum_required(VERSION 3.25)', 'project(first LANGUAGES CXX)', 'add_executable(my_program my_program.cpp)'];
    const cmake = { name: 'CMakeLists.txt', text: `${lines.join('\n')}\n${firstOf(blocks, 'cmake').text}` };
    const install = firstOf(blocks, 'sh').text.trim();
    const commands = [
      `tar xzf attn-${version}.tar.gz`,
      ...install.split(' && ').map((command) => `cd attn-${version} && ${command}`),
      'cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=$HOME/.local && cmake --build build',
      'build/my_program',
    ];
    return { file, program, more: [cmake], output: program.output, commands };
  },
};

const asked = process.argv.slice(2);
for (const [name, entry] of Object.entries(entries)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const work = mkdtempSync(join(tmpdir(), 'attn-first-'));
  try {
    const folder = join(work, 'empty');
    mkdirSync(folder);
    const { file, program, more = [], output, commands } = entry(work);
    cpSync(file, join(folder, file.split('/').at(-1)));
    for (const each of [program, ...more]) writeFileSync(join(folder, each.name), each.text);
    const options = { cwd: folder, encoding: 'utf8', env: { ...process.env, HOME: folder, CCACHE_DISABLE: '1' } };
    let printed = '';
    const seconds = commands.map((command) => {
      const started = performance.now();
      printed = execFileSync('sh', ['-c', command], { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
      return (performance.now() - started) / 1000;
    });
    assert.ok(prints(printed, output), `it printed\n${printed}\ninstead of\n${output}`);
    const parts = commands.map((command, i) => `${seconds[i].toFixed(1)} s  ${command}`);
    console.log(`${name}: ${seconds.reduce((a, b) => a + b).toFixed(1)} s, ${(statSync(file).size / 1e6).toFixed(2)} MB\n  ${parts.join('\n  ')}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
