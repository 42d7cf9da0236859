/** Tests how `npx attn` treats untrusted files, terminals and folders. Needs web/lib/dist. */
import { strict as assert } from 'node:assert';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { bert, filesOf, programs, removeWork, run, runWith, work } from './programs.mjs';

after(removeWork);

const [node, ...first] = programs.npx;
const npx = (...args) => run('npx', ...args);
const timeout = 60_000;
const written = { status: 0, stdout: '', stderr: '' };

function folder(name) {
  const path = join(work, name);
  mkdirSync(path);
  return path;
}

/** Copies tiny-bert with changed files; JSON is changed by a function. */
function model(name, edits) {
  const path = folder(name);
  for (const [file, bytes] of Object.entries(filesOf(bert))) writeFileSync(join(path, file), bytes);
  for (const [file, edit] of Object.entries(edits)) {
    const before = existsSync(join(path, file)) ? JSON.parse(readFileSync(join(path, file), 'utf8')) : undefined;
    writeFileSync(join(path, file), JSON.stringify(edit(before)));
  }
  return path;
}

test('--out refuses the input itself, by whatever name, and leaves it as it was', limit, () => {
  const texts = join(folder('same'), 'texts.txt');
  writeFileSync(texts, 'good\nbad\n');
  symlinkSync(texts, join(work, 'same/symbolic'));
  linkSync(texts, join(work, 'same/hard'));
  for (const out of ['texts.txt', 'symbolic', 'hard']) {
    const path = join(work, 'same', out);
    assert.deepEqual(npx('embed', bert, texts, '--out', path), {
      status: 2,
      stdout: '',
      stderr: `attn: --out is ${path}, which is the input, expected another file\n`,
    });
    const piped = spawnSync('sh', ['-c', '"$@" < same/texts.txt', 'sh', node, ...first, 'embed', bert, '--out', path], { cwd: work, timeout });
    assert.equal(piped.status, 2);
    assert.equal(readFileSync(texts, 'utf8'), 'good\nbad\n');
  }
});

test('--out is replaced once all is written, never through a link, and keeps its mode', limit, () => {
  const here = folder('replaced');
  writeFileSync(join(here, 'target'), 'before', { mode: 0o640 });
  symlinkSync('target', join(here, 'link'));
  assert.deepEqual(runWith('good', 'npx', 'classify', bert, '--out', join(here, 'link')), written);
  assert.match(readFileSync(join(here, 'link'), 'utf8'), /^\[\{"label".*\n$/);
  assert.equal(readFileSync(join(here, 'target'), 'utf8'), 'before');
  assert.deepEqual(readdirSync(here).sort(), ['link', 'target']);
  // Results before a bad line are written.
  assert.equal(runWith('{"text":"good"}\n3', 'npx', 'embed', bert, '--jsonl', '--output', 'npy', '--out', join(here, 'target')).status, 1);
  assert.match(readFileSync(join(here, 'target'), 'latin1'), /'shape': \(1, 32\)/);
  assert.equal(statSync(join(here, 'target')).mode & 0o777, 0o640);
  assert.deepEqual(readdirSync(here).sort(), ['link', 'target']);
});

for (const signal of ['SIGINT', 'SIGTERM'])
  test(`${signal} while --out is written leaves the file unchanged and no other files`, limit, async () => {
    const here = folder(`ended-${signal}`);
    const out = join(here, 'out.npy');
    writeFileSync(out, 'before');
    const child = spawn(node, [...first, 'embed', bert, '--output', 'npy', '--out', out], { stdio: ['pipe', 'ignore', 'inherit'] });
    const ended = once(child, 'exit');
    child.stdin.on('error', () => {});
    child.stdin.write('good\n'.repeat(2000));
    const bytes = () => readdirSync(here).reduce((sum, name) => sum + statSync(join(here, name)).size, 0);
    while (child.exitCode === null && bytes() < 10_000) await sleep(20);
    child.kill(signal);
    assert.deepEqual(await ended, [null, signal]);
    assert.equal(readFileSync(out, 'utf8'), 'before');
    assert.deepEqual(readdirSync(here), ['out.npy']);
  });

test('SIGINT while convert writes leaves OUT unchanged', limit, async () => {
  for (const exists of [false, true]) {
    const parent = folder(`convert-${exists}`);
    const out = join(parent, 'a', 'out');
    if (exists) mkdirSync(out, { recursive: true });
    // For output to a folder, the child stops itself after its first file.
    const preload = join(work, 'stop.mjs');
    writeFileSync(
      preload,
      `import { syncBuiltinESMExports } from 'node:module'; import fs from 'node:fs/promises';
const { writeFile } = fs; let files = 0;
fs.writeFile = async (...args) => { await writeFile(...args); if (++files === 2) { process.kill(process.pid, 'SIGINT'); await new Promise((r) => setTimeout(r, 30_000)); } };
syncBuiltinESMExports();`,
    );
    const { signal } = spawnSync(node, ['--import', preload, ...first, 'convert', bert, out, '--weights', 'int8'], { encoding: 'utf8', timeout });
    assert.equal(signal, 'SIGINT');
    assert.deepEqual(readdirSync(parent, { recursive: true }), exists ? ['a', 'a/out'] : []);
  }
});

/** Runs convert in a process that first imports `code`, with `fs` and `path` of Node and the folder OUT as `out`. */
function convertAfter(name, code, isThere) {
  const out = join(folder(name), 'out');
  if (isThere) mkdirSync(out);
  const preload = join(work, `${name}.mjs`);
  const imports = `import { syncBuiltinESMExports } from 'node:module'; import fs from 'node:fs'; import { join } from 'node:path';`;
  writeFileSync(preload, `${imports} const out = ${JSON.stringify(out)};\n${code}\nsyncBuiltinESMExports();`);
  const call = ['--import', preload, ...first, 'convert', bert, out, '--weights', 'int8'];
  const { status, stderr } = spawnSync(node, call, { encoding: 'utf8', timeout });
  return { out, status, stderr };
}

test('convert removes what it has written if a file cannot be moved into OUT', limit, () => {
  const failing = `const { renameSync } = fs; const moved = [];
fs.renameSync = (from, to) => {
  if (moved.push(to) === 3) throw Object.assign(new Error('no'), { errno: -13, code: 'EACCES', path: from, dest: to });
  renameSync(from, to);
};`;
  for (const isThere of [false, true]) {
    const { out, status, stderr } = convertAfter(`rename-${isThere}`, failing, isThere);
    assert.deepEqual([status, stderr.replace(/\/out\/[\w.]+:/, '/out/NAME:')], [1, `attn: ${out}/NAME: Permission denied\n`]);
    assert.deepEqual(existsSync(out) ? readdirSync(out) : undefined, isThere ? [] : undefined);
  }
});

test('convert keeps files that others put into OUT in the meantime', limit, () => {
  for (const [i, put] of ["fs.mkdirSync(join(out, 'tokenizer.json'))", "fs.writeFileSync(join(out, 'tokenizer.json'), 'mine')"].entries())
    for (const isThere of [false, true]) {
      const late = `const { writeFile } = fs.promises; let files = 0;
fs.promises.writeFile = async (...args) => { await writeFile(...args); if (++files === 2) ${put}; };`;
      const { out, status, stderr } = convertAfter(`late-${i}-${isThere}`, late, isThere);
      assert.deepEqual([status, stderr], [1, `attn: ${join(out, 'tokenizer.json')}: File exists\n`]);
      assert.deepEqual(readdirSync(out), ['tokenizer.json']);
      assert.deepEqual(filesOf(out), i === 0 ? {} : { 'tokenizer.json': Buffer.from('mine') });
    }
});

test('output that cannot be written is an error, also for a device', { ...limit, skip: !existsSync('/dev/full') && 'no /dev/full' }, () => {
  for (const [args, why] of [
    [['--help'], /^attn: writing: .*ENOSPC.*\n$/],
    [['inspect', bert], /^attn: writing: .*ENOSPC.*\n$/],
    [['embed', bert], /^attn: writing: .*ENOSPC.*\n$/],
    [['embed', bert, '--output', 'npy'], /^attn: writing: .*ENOSPC.*\n$/],
  ]) {
    const { status, stderr } = spawnSync('sh', ['-c', 'echo good | "$@" > /dev/full', 'sh', node, ...first, ...args], { encoding: 'utf8', timeout });
    assert.deepEqual([status, why.test(stderr)], [1, true], `${args.join(' ')}: ${stderr}`);
  }
  const full = { status: 1, stdout: '', stderr: 'attn: /dev/full: No space left on device\n' };
  assert.deepEqual(runWith('good', 'npx', 'embed', bert, '--out', '/dev/full'), full);
  for (const output of ['jsonl', 'npy']) {
    const piped = (...out) =>
      spawnSync('sh', ['-c', 'echo good | "$@" | cat', 'sh', node, ...first, 'embed', bert, '--output', output, ...out], { timeout }).stdout;
    const right = piped();
    assert.ok(right.length > 128);
    assert.deepEqual(piped('--out', '/dev/stdout'), right);
  }
});

test('inspect and convert read nothing outside of the folder that contains modules.json', limit, () => {
  const secret = folder('secret');
  writeFileSync(join(secret, 'config.json'), JSON.stringify({ pooling_mode: 'top-secret', model_type: 'top-secret', architectures: ['top-secret'] }));
  const type = (name) => `sentence_transformers.models.${name}`;
  for (const [i, path] of ['../secret', secret, 'a/../../secret', '..'].entries()) {
    for (const kind of ['Pooling', 'Transformer']) {
      const hostile = model(`hostile-${i}-${kind}`, {
        'modules.json': () => [
          { idx: 0, name: '0', path: kind === 'Transformer' ? path : '', type: type('Transformer') },
          { idx: 1, name: '1', path: kind === 'Pooling' ? path : '1_Pooling', type: type('Pooling') },
        ],
      });
      const { status, stdout, stderr } = npx('inspect', hostile);
      assert.doesNotMatch(stdout + stderr, /top-secret/);
      assert.equal(status, 1);
      assert.match(stdout, /^attn {8}refuses it: UNSUPPORTED: .*modules\.json\[\d\]\.path/m);
      assert.equal(npx('convert', hostile, join(work, `out-${i}-${kind}`), '--weights', 'int8').status, 1);
    }
  }
});

/**
 * ESC [ 2 J clears a screen, OSC 0 names a window, U+009B is CSI as one character, U+202E reverses the text direction.
 */
const hostile = 'a\x1b[2J\x1b]0;owned\x07\x9b31m\u202eb\u2066c\x7f';
const plain = 'a\\u001b[2J\\u001b]0;owned\\u0007\\u009b31m\\u202eb\\u2066c\\u007f';
const control = /[\p{Cc}\p{Bidi_C}]/u;
const clean = (text) => assert.ok(!control.test(text.replace(/[\t\r\n]/g, '')), JSON.stringify(text));

test('control characters of labels, config values, names and errors are printed as \\u escapes', limit, () => {
  const labels = { 0: hostile, 1: 'one\nattn        takes it, as a lie', 2: 'two' };
  const path = model('escapes', {
    'config.json': (config) => ({
      ...config,
      id2label: labels,
      label2id: Object.fromEntries(Object.entries(labels).map(([id, label]) => [label, Number(id)])),
      architectures: [config.architectures[0], hostile],
    }),
  });
  const inspected = npx('inspect', path).stdout;
  clean(inspected);
  assert.ok(inspected.includes(plain), inspected);
  assert.match(inspected, /one\\u000aattn {8}takes it/);

  const text = runWith('good', 'npx', 'classify', path, '--output', 'text').stdout;
  clean(text);
  assert.ok(text.includes(plain) && text.includes('one attn '), text);
  const json = runWith('good', 'npx', 'classify', path).stdout;
  clean(json);
  assert.deepEqual(
    JSON.parse(json)
      .map(({ label }) => label)
      .sort(),
    Object.values(labels).sort(),
  );

  for (const args of [
    ['inspect', hostile],
    ['embed', hostile],
    ['embed', bert, hostile],
    [hostile],
    ['embed', bert, `--${hostile}`],
    ['convert', bert, join(work, 'x'), '--weights', hostile],
    ['embed', bert, '--out', `no/${hostile}`],
  ]) {
    const { status, stderr } = npx(...args);
    assert.ok(status > 0);
    clean(stderr);
    assert.ok(stderr.includes('\\u001b[2J'), stderr);
  }
  const refused = npx('inspect', model('refused', { 'config.json': (config) => ({ ...config, model_type: hostile, architectures: [hostile] }) }));
  clean(refused.stdout);
  assert.equal(refused.status, 1);
});

test('a terminal gets no escape sequence from a label', { ...limit, skip: spawnSync('script', ['--version']).status !== 0 && 'no script(1)' }, () => {
  const path = join(work, 'escapes');
  const quoted = [node, ...first, 'classify', path, '--output', 'text'].map((word) => `'${word}'`).join(' ');
  const { stdout } = spawnSync('script', ['-qec', `echo good | ${quoted}`, '/dev/null'], { encoding: 'utf8', timeout });
  assert.ok(stdout.includes(plain), stdout);
  clean(stdout);
});

test('inspect does not wait for a pipe in place of a file', { ...limit, skip: process.platform === 'win32' && 'no FIFOs' }, () => {
  for (const file of ['config.json', 'tokenizer.json', 'modules.json', 'model.safetensors']) {
    const path = model(`fifo-${file}`, {});
    spawnSync('sh', ['-c', 'rm -f "$1"; mkfifo "$1"', 'sh', join(path, file)]);
    const { status, stdout } = npx('inspect', path);
    assert.equal(status, 1, file);
    assert.match(stdout, /^attn {8}refuses it: FORMAT: .*is a FIFO, expected a regular file$/m);
  }
});

test('a named pipe as FILE is opened once, so its writer is not cut off', { ...limit, skip: process.platform === 'win32' && 'no FIFOs' }, () => {
  const script = 'mkfifo named; (for i in $(seq 200); do echo good; sleep 0.01; done) > named & "$@" named; wait $!; echo "writer: $?"';
  const { stdout } = spawnSync('bash', ['-c', script, 'bash', node, ...first, 'classify', bert, '--output', 'text', '--top-k', '1'], {
    encoding: 'utf8',
    cwd: work,
    timeout,
  });
  assert.match(stdout, /^(\w+\t0\.\d+\n){200}writer: 0\n$/);
});
