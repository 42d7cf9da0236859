/** Tests convert and --out of both programs on a full disk, a tmpfs of 300 kB. Needs web/lib/dist and build/native. */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { bert, filesOf, programs, removeWork, work } from './programs.mjs';

after(removeWork);

function folder(name) {
  const path = join(work, name);
  mkdirSync(path);
  return path;
}
folder('disk');

/** Runs a call on a disk with the files of `before`, and copies the disk to `left`. The mount namespace ends with the call, and the disk with it. */
function onSmallDisk(before, left, ...call) {
  const script = `mount -t tmpfs -o size=300k tmpfs disk && cp -a "$1/." disk && cd disk || exit 99
    left=$2; shift 2; "$@"; status=$?; cp -a . "$left" && exit $status`;
  return spawnSync('unshare', ['--map-root-user', '--mount', 'sh', '-c', script, 'sh', before, left, ...call], {
    encoding: 'utf8',
    cwd: work,
    timeout: 60_000,
  });
}

const canMount = onSmallDisk(folder('nothing'), folder('nothing-left'), 'true').status === 0;
// Not skipUnlessCi: a container without privileges may not mount anything.
const options = { ...limit, skip: !canMount && 'a tmpfs may not be mounted' };

let calls = 0;
/** Asserts that a call fails for want of space and leaves the disk unchanged. */
function assertRefused(before, message, program, ...args) {
  ++calls;
  const given = folder(`given-${calls}`);
  for (const [name, bytes] of Object.entries(before.files)) writeFileSync(join(given, name), bytes);
  for (const name of before.folders ?? []) mkdirSync(join(given, name));
  const left = folder(`left-${calls}`);
  const { status, stdout, stderr } = onSmallDisk(given, left, ...programs[program], ...args);
  assert.deepEqual([status, stdout], [1, ''], stderr);
  assert.match(stderr, message);
  assert.deepEqual(filesOf(left), filesOf(given));
  assert.deepEqual(readdirSync(left).sort(), readdirSync(given).sort());
}

for (const program of Object.keys(programs)) {
  test(`${program}: --out on a full disk fails, and the old file and no other files stay`, options, () => {
    const texts = join(work, 'texts.txt');
    writeFileSync(texts, 'she is good\n'.repeat(5000));
    for (const output of ['jsonl', 'npy'])
      for (const files of [{}, { 'out.txt': 'before' }])
        assertRefused(
          { files },
          /^attn: out\.txt: No space left on device\n$/,
          program,
          'embed',
          bert,
          texts,
          '--output',
          output,
          '--out',
          'out.txt',
        );
  });

  test(`${program}: convert on a full disk fails, and neither OUT nor files in it stay`, options, () => {
    // Space for the small files alone, and for the first of them.
    for (const [free, name] of [
      [100, 'model.safetensors'],
      [8, 'tokenizer.json'],
    ])
      for (const folders of [[], ['out']]) {
        const files = { other: Buffer.alloc((300 - free) * 1024, 1) };
        const message = new RegExp(`^attn: .*out/${name}: No space left on device`);
        assertRefused({ files, folders }, message, program, 'convert', bert, 'out', '--weights', 'float32');
      }
  });
}
