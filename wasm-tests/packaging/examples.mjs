/** The examples, and the code blocks of README.md and the package's own: each is run as it stands. */
import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Checks } from '../support/checks.mjs';
import { buildExample, repository } from '../support/steps.mjs';

const at = (...parts) => join(repository, ...parts);
const execute = promisify(execFile);

async function output(program, args, options = {}) {
  try {
    const { stdout } = await execute(program, args, { cwd: repository, timeout: 120000, maxBuffer: 1 << 24, ...options });
    return stdout;
  } catch (error) {
    throw new Error(`${program} ${args.join(' ')}: exit ${error.code}\n${error.stdout ?? ''}${error.stderr ?? ''}`);
  }
}

/** What each Node example must print: these numbers, or all of a file's text, which CTest holds against the twin in C++ too. */
const prints = {
  'attention.mjs': [/0\.0000 {2}0\.9820 {2}0\.0180/, /1\.9366 {2}6\.6831 {2}1\.5951/],
  'multi_head_attention.mjs': [/output \[ 1, 19, 384 \]/, /PyTorch: \d\.\d+e-[67]/],
};
const texts = Object.fromEntries(
  readdirSync(at('examples/expected')).map((name) => [name.replace('.txt', '.mjs'), readFileSync(at('examples/expected', name), 'utf8')]),
);

export async function examples() {
  const checks = new Checks('examples');
  const known = [...Object.keys(prints), ...Object.keys(texts)].sort();
  await checks.check('every Node example is known here', () => assert.deepEqual(readdirSync(at('examples/node')).sort(), known));
  await checks.check('each has a twin in C++', () =>
    assert.deepEqual(
      readdirSync(at('examples/cpp'))
        .filter((name) => name.endsWith('.cpp'))
        .sort(),
      known.map((name) => name.replace('.mjs', '.cpp')),
    ),
  );
  for (const name of known)
    for (const flags of [[], ['--experimental-wasm-relaxed-simd']])
      await checks.check(`examples/node/${name}${flags.length ? ' with relaxed SIMD' : ''}`, async () => {
        const text = await output(process.execPath, [...flags, at('examples/node', name)]);
        for (const pattern of prints[name] ?? []) assert.match(text, pattern);
        if (texts[name] !== undefined) assert.equal(text, texts[name]);
      });
  // The page tests open it in the browsers.
  await checks.check('examples/browser is built by Vite', buildExample);
  return checks.counts;
}

/** Fenced blocks of one language. */
function blocks(markdown, languages) {
  return [...markdown.matchAll(/^```(\w+)[^\n]*\n([\s\S]*?)^```/gm)].filter(([, language]) => languages.includes(language)).map(([, , code]) => code);
}

/** A block is a program of its own, or what stands in main(). */
function program(block) {
  if (/\bint\s+main\s*\(/.test(block)) return block;
  const lines = block.split('\n');
  const outside = (line) => /^\s*#|^\s*using\s/.test(line);
  return `${lines.filter(outside).join('\n')}\nint main() {\n${lines.filter((line) => !outside(line)).join('\n')}\n}\n`;
}

export async function readme() {
  const checks = new Checks('README.md');
  const markdown = readFileSync(at('README.md'), 'utf8');
  const work = at('build/wasm-tests/readme');
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });

  const scripts = [markdown, readFileSync(at('web/lib/README.md'), 'utf8')].map((each) => blocks(each, ['js', 'javascript', 'mjs']));
  await checks.check('has JavaScript and C++ to run', () => {
    assert.ok(
      scripts.every((each) => each.length > 0),
      'a js block in each',
    );
    assert.ok(blocks(markdown, ['cpp', 'c++']).length > 0, 'a cpp block');
  });
  for (const [i, code] of scripts.flat().entries())
    await checks.check(`JavaScript block ${i + 1}${i < scripts[0].length ? '' : ', of the package'}`, () => {
      const file = join(work, `block${i + 1}.mjs`);
      writeFileSync(file, code);
      return output(process.execPath, [file]);
    });

  const sources = blocks(markdown, ['cpp', 'c++']).map(program);
  const prefix = at('build/installed');
  await checks.check(
    `${sources.length} C++ blocks, against the installed package`,
    async () => {
      assert.ok(existsSync(prefix), 'build/installed is missing: cmake --install');
      sources.forEach((code, i) => writeFileSync(join(work, `block${i + 1}.cpp`), code));
      writeFileSync(
        join(work, 'CMakeLists.txt'),
        `cmake_minimum_required(VERSION 3.25)\nproject(readme LANGUAGES CXX)\nfind_package(attn CONFIG REQUIRED)\n` +
          sources
            .map((_, i) => `add_executable(block${i + 1} block${i + 1}.cpp)\ntarget_link_libraries(block${i + 1} PRIVATE attn::attn)\n`)
            .join(''),
      );
      await output('cmake', ['-S', work, '-B', join(work, 'build'), `-DCMAKE_PREFIX_PATH=${prefix}`, '-DCMAKE_BUILD_TYPE=Release']);
      await output('cmake', ['--build', join(work, 'build')]);
      for (const i of sources.keys()) await output(join(work, 'build', `block${i + 1}`), []);
    },
    300,
  );

  await checks.check('every make target that it names is there', () => {
    const makefile = readFileSync(at('Makefile'), 'utf8');
    const named = new Set([...markdown.matchAll(/\bmake ([a-z][a-z-]*)\b(?=[`\n ]|$)/gm)].map(([, target]) => target));
    const code = blocks(markdown, ['sh', 'bash', 'console']).join('\n') + [...markdown.matchAll(/`([^`\n]+)`/g)].map(([, text]) => text).join('\n');
    const targets = [...named].filter((target) => new RegExp(`make ${target}\\b`).test(code));
    assert.ok(targets.length > 0, 'some are named');
    for (const target of targets) assert.match(makefile, new RegExp(`^${target}\\b.*:`, 'm'), `make ${target}`);
  });
  return checks.counts;
}
