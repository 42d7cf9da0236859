/** Tests that tools and tests install Python packages only in listed versions with digests. */
import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { repository } from '../../wasm-tests/support/paths.mjs';
import { rows } from '../bundlers/rows.mjs';

const read = (path) => readFileSync(join(repository, path), 'utf8');
const lists = [
  'testdata/make/goldens/requirements.txt',
  'testdata/make/goldens/torch.txt',
  'testdata/make/goldens/torch-cpu.txt',
  'benchmarks/peers/requirements.txt',
];
const others = [
  'packaging/wheels/requirements.txt',
  'packaging/wheels/uv.txt',
  'python/requirements.txt',
  'examples/cluster/requirements.txt',
  'examples/cluster/spark.txt',
  'testdata/make/goldens/answers.txt',
];

function entries(path) {
  const found = new Map();
  for (const entry of read(path)
    .replace(/^(#.*|--only-binary :all:)?\n/gm, '')
    .replaceAll('\\\n', ' ')
    .trim()
    .split('\n')) {
    const [, name, version] = /^([\w.-]+)==([\w.+]+)(?: ; platform_system == "Linux")?(?:\s+--hash=sha256:[0-9a-f]{64})+$/.exec(entry) ?? [];
    assert.ok(name, `${path}: ${entry.slice(0, 80)}`);
    assert.ok(!found.has(name), `${path}: ${name} twice`);
    found.set(name, version);
  }
  return found;
}

test('every Python package in a requirements file has an exact version and a digest', limit, () => {
  for (const path of others) assert.ok(entries(path).size > 0, path);
  const pins = new Map();
  for (const [path, list] of lists.map((each) => [each, entries(each)]))
    for (const [name, version] of list) {
      const plain = version.replace('+cpu', '');
      assert.equal(pins.get(name) ?? plain, plain, `${path}: ${name} in two versions`);
      pins.set(name, plain);
    }
  for (const folder of ['testdata/make/goldens', 'benchmarks/peers']) {
    const list = entries(`${folder}/requirements.txt`);
    for (const [, name, version] of read(`${folder}/requirements.in`).matchAll(/^([\w.-]+)==(.+)$/gm))
      assert.equal(name === 'torch' ? pins.get(name) : list.get(name), version, `${folder}: ${name}`);
  }
});

test('every call of pip requires digests and states whether packages are built', limit, () => {
  const files = execFileSync('git', ['ls-files', 'tools', 'benchmarks', 'testdata/make', 'Makefile', '.ci', '.github'], {
    cwd: repository,
    encoding: 'utf8',
  });
  let calls = 0;
  for (const path of files
    .trim()
    .split('\n')
    .filter((each) => /(\.(py|sh|mjs|yml)|tools\/setup|Makefile|run)$/.test(each)))
    for (const line of read(path).split('\n')) {
      if (!/pip\)?"?,? "?(install|download)\b/.test(line) || /--no-index\b/.test(line)) continue;
      calls++;
      assert.match(line, /--require-hashes/, `${path}: ${line}`);
      assert.match(line, /--(only|no)-binary=:all:/, `${path}: ${line}`);
      assert.match(line, /--no-deps/, `${path}: ${line}`);
    }
  assert.equal(calls, 15);
});

test('the bundlers that are tested have exact versions, and lockfiles if they run in the gate', limit, () => {
  const tools = join(repository, 'tests/bundlers/tools');
  const inGate = new Set(rows.filter(({ gate }) => gate).map(({ tool }) => tool));
  for (const tool of readdirSync(tools)) {
    const { dependencies } = JSON.parse(read(`tests/bundlers/tools/${tool}/package.json`));
    for (const [name, version] of Object.entries(dependencies)) assert.match(version, /^\d+\.\d+\.\d+$/, `${tool}: ${name}`);
    assert.equal(existsSync(join(tools, tool, 'package-lock.json')), inGate.has(tool), tool);
  }
});
