/**
 * Changes a file for each row of the table in a copy of the repository, and compares the steps that `--affected` adds.
 */
import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { affectedBy, table } from './affected.mjs';
import { root } from './processes.mjs';
import { beforeRelease, groups, steps } from './steps.mjs';

const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
const rowOf = (path) => table.find(([expression]) => expression.test(path));
const samples = table.map((row) => [row, files.find((path) => rowOf(path) === row)]);

const copy = mkdtempSync(join(tmpdir(), 'attn-affected-'));
after(() => rmSync(copy, { recursive: true, force: true }));
const git = (...args) => execFileSync('git', ['-C', copy, '-c', 'user.name=test', '-c', 'user.email=test@localhost', ...args], { encoding: 'utf8' });

function listed(path, ...options) {
  const file = join(copy, path);
  const isNew = !existsSync(file);
  mkdirSync(dirname(file), { recursive: true });
  appendFileSync(file, '\n');
  try {
    const out = execFileSync(process.execPath, ['tools/test.mjs', '--list', ...options], {
      cwd: copy,
      encoding: 'utf8',
      env: { ...process.env, BASE: '' },
    });
    return out
      .trim()
      .split('\n')
      .filter((line) => steps.some(({ name }) => name === line));
  } finally {
    if (isNew) rmSync(file);
    else git('checkout', '-q', '--', path);
  }
}
const expected = (wanted) => steps.filter(({ group }) => !group || wanted.has(group)).map(({ name }) => name);

test('setting up the copy', () => {
  git('clone', '-q', '--shared', root, '.');
  execFileSync('cp', ['-R', join(root, 'tools'), copy]);
  writeFileSync(join(copy, '.gitignore'), 'node_modules/\nbuild/\n.setup/\n');
  git('add', '-A');
  git('commit', '-qm', 'base', '--allow-empty');
  const base = git('rev-parse', 'HEAD').trim();
  writeFileSync(join(copy, '.ci/base'), `${base}\n`);
  git('commit', '-qam', 'base');
});

test('every row of the table has a file in the repository', () => {
  for (const [[expression], path] of samples) assert.ok(path, `no file for ${expression}`);
  for (const [expression, names] of table) for (const name of names) assert.ok(groups.has(name), `${expression}: no step is in group '${name}'`);
});

for (const [[expression, names], path] of samples)
  test(`a change in ${path ?? expression} runs ${names.join(', ') || 'only the usual steps'}`, () => {
    assert.deepEqual(listed(path, '--affected'), expected(new Set(names)));
  });

test('an unknown path runs every group, but not what only a release needs', () => {
  assert.equal(affectedBy(['something/new.txt'], groups).size, groups.size);
  assert.deepEqual(listed('something/new.txt', '--affected'), expected(groups));
  assert.ok(steps.some(({ group }) => group === beforeRelease));
});

test('without options only the usual steps run, with --all every step', () => {
  assert.deepEqual(listed('src/attn/attn.hpp'), expected(new Set()));
  assert.deepEqual(
    listed('src/attn/attn.hpp', '--all'),
    steps.map(({ name }) => name),
  );
});

test('every step that another one needs exists', () => {
  for (const { name, needs } of steps)
    for (const need of needs)
      assert.ok(
        steps.some((step) => step.name === need),
        `${name} needs ${need}`,
      );
});
