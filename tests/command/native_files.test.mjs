/** Tests how the native program treats files and terminals. Needs build/native. */
import { strict as assert } from 'node:assert';
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { limit, skipUnlessCi } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { bert, filesOf, programs, removeWork, run, runWith, work } from './programs.mjs';

after(removeWork);

const [native] = programs.native;
const cls = at('testdata/models/tiny-bert-cls');

function copyOf(model, name, changed = {}) {
  const folder = join(work, name);
  for (const [file, bytes] of Object.entries({ ...filesOf(model), ...changed })) {
    mkdirSync(join(folder, file, '..'), { recursive: true });
    writeFileSync(join(folder, file), bytes);
  }
  return folder;
}

/** Runs a shell line in which "$@" is the program with its arguments. */
const shell = (script, ...args) =>
  spawnSync('bash', ['-c', script, 'bash', native, ...args], { encoding: 'utf8', cwd: work, timeout: 60_000, env: process.env });

test('--out that is the input is refused, whatever its path, and the input stays', limit, () => {
  const input = join(work, 'input.txt');
  const text = 'she is good\nunhappiness\n';
  writeFileSync(input, text);
  symlinkSync('input.txt', join(work, 'link.txt'));
  linkSync(input, join(work, 'hard.txt'));
  for (const out of ['input.txt', './input.txt', 'link.txt', 'hard.txt'])
    for (const call of [['"$@"', 'input.txt'], ['"$@" < input.txt']]) {
      const [script, ...file] = call;
      const { status, stderr } = shell(script, 'embed', bert, ...file, '--out', out);
      assert.equal(readFileSync(input, 'utf8'), text, out);
      assert.deepEqual([status, stderr], [2, `attn: --out is ${out}, which is the input, expected another file\n`]);
    }
});

test('--out is replaced when the results are complete, and never written through a link', limit, () => {
  writeFileSync(join(work, 'behind.txt'), 'behind');
  symlinkSync('behind.txt', join(work, 'out.txt'));
  assert.equal(runWith('she\n', 'native', 'embed', bert, '--out', 'out.txt').status, 0);
  assert.equal(readFileSync(join(work, 'behind.txt'), 'utf8'), 'behind');
  assert.match(readFileSync(join(work, 'out.txt'), 'utf8'), /^\[.*\]\n$/);
  assert.equal(runWith('she\n', 'native', 'embed', bert, '--output', 'npy', '--out', '/dev/null').status, 0);
  const piped = shell('"$@" <<< she | od -c | head -1', 'embed', bert, '--output', 'npy', '--out', '/dev/stdout');
  assert.match(piped.stdout, /N {3}U {3}M {3}P {3}Y/);
  // Missing folders are not created, because the path may be misspelt.
  assert.match(runWith('she\n', 'native', 'embed', bert, '--out', 'no such/folder/out.txt').stderr, /^attn: no such.*: No such file or directory\n$/);
  assert.ok(!existsSync(join(work, 'no such')));
  const before = readFileSync(join(work, 'out.txt'));
  writeFileSync(join(work, 'long.txt'), 'she is good\n'.repeat(5000));
  const full = shell('trap "" XFSZ; ulimit -f 20; "$@"', 'embed', bert, 'long.txt', '--out', 'out.txt');
  assert.equal(full.status, 1);
  assert.match(full.stderr, /^attn: .*out\.txt: File too large\n$/);
  assert.ok(readFileSync(join(work, 'out.txt')).equals(before));
  assert.deepEqual(
    readdirSync(work).filter((name) => name.startsWith('out.txt')),
    ['out.txt'],
  );
});

test('an interrupted call leaves neither a part of --out nor other files', limit, async () => {
  writeFileSync(join(work, 'vectors.npy'), 'before');
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    const child = spawn(native, ['embed', bert, '--output', 'npy', '--out', 'vectors.npy'], { cwd: work, stdio: ['pipe', 'ignore', 'inherit'] });
    child.stdin.on('error', () => undefined);
    // More than one batch, so that results have been written; the input does not end.
    child.stdin.write('she is good\n'.repeat(2000));
    const begun = () =>
      readdirSync(work).some((name) => /^vectors\.npy.+/.test(name)) || readFileSync(join(work, 'vectors.npy'), 'latin1') !== 'before';
    while (!begun()) await new Promise((done) => setTimeout(done, 20));
    const ended = new Promise((done) => child.on('exit', (code, by) => done([code, by])));
    child.kill(signal);
    assert.deepEqual(await ended, [null, signal]);
    assert.equal(readFileSync(join(work, 'vectors.npy'), 'latin1'), 'before');
    assert.deepEqual(
      readdirSync(work).filter((name) => name.startsWith('vectors')),
      ['vectors.npy'],
    );
  }
});

/**
 * Sends a signal to convert at its third write to a file of OUT, after another program has written there, and stops the writing thread.
 * Sends a signal when the temporary file of --out has just been created.
 */
const stopper = String.raw`
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void count(int fd) {
  static int writes;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  if (!strstr(path, "/out/") || ++writes != 3) return;
  close(open(getenv("THEIR_FILE"), O_CREAT | O_WRONLY, 0600));
  kill(getpid(), SIGINT);
  sleep(30);
}
ssize_t write(int fd, const void* bytes, size_t size) {
  count(fd);
  return ((ssize_t (*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write"))(fd, bytes, size);
}
ssize_t writev(int fd, const struct iovec* parts, int many) {
  count(fd);
  return ((ssize_t (*)(int, const struct iovec*, int))dlsym(RTLD_NEXT, "writev"))(fd, parts, many);
}
static FILE* opened(const char* name, const char* path, const char* mode) {
  FILE* const file = ((FILE* (*)(const char*, const char*))dlsym(RTLD_NEXT, name))(path, mode);
  if (strstr(path, "/created.npy.attn-")) {
    kill(getpid(), SIGINT);
    usleep(300000);
  }
  return file;
}
FILE* fopen(const char* path, const char* mode) { return opened("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return opened("fopen64", path, mode); }`;

test(
  'SIGINT while files are created and written removes them and no others',
  { ...limit, skip: process.platform !== 'linux' && 'no LD_PRELOAD' },
  (t) => {
    writeFileSync(join(work, 'stopper.c'), stopper);
    if (spawnSync('cc', ['-shared', '-fPIC', '-o', 'stopper.so', 'stopper.c', '-ldl'], { cwd: work }).status !== 0)
      return skipUnlessCi(t, 'cc is missing');
    for (const isThere of [false, true]) {
      const parent = join(work, `stopped-${isThere}`);
      mkdirSync(join(parent, ...(isThere ? ['out'] : [])), { recursive: true });
      const env = { ...process.env, LD_PRELOAD: join(work, 'stopper.so'), THEIR_FILE: join(parent, 'out', 'theirs') };
      const { signal } = spawnSync(native, ['convert', bert, join(parent, 'out'), '--weights', 'float32'], { env, timeout: 60_000 });
      assert.equal(signal, 'SIGINT');
      assert.deepEqual(readdirSync(parent, { recursive: true }), ['out', 'out/theirs']);
    }
    const folder = join(work, 'created');
    mkdirSync(folder);
    const env = { ...process.env, LD_PRELOAD: join(work, 'stopper.so'), THEIR_FILE: '/dev/null' };
    const { signal } = spawnSync(native, ['embed', bert, '--out', join(folder, 'created.npy')], { env, input: 'she\n', timeout: 60_000 });
    assert.equal(signal, 'SIGINT');
    // The result may have been complete when the signal was handled.
    assert.deepEqual(
      readdirSync(folder).filter((name) => name !== 'created.npy'),
      [],
    );
  },
);

test('output that cannot be written is reported by every command', limit, () => {
  for (const args of [['--version'], ['--help'], ['embed', '--help'], ['inspect', bert], ['embed', bert], ['embed', bert, '--output', 'npy']]) {
    const full = shell('echo she | "$@" > /dev/full', ...args);
    assert.deepEqual([full.status, full.stderr], [1, 'attn: writing: No space left on device\n'], args.join(' '));
    const closed = shell('echo she | "$@" >&-', ...args);
    assert.deepEqual([closed.status, closed.stderr], [1, 'attn: writing: Bad file descriptor\n'], args.join(' '));
  }
  writeFileSync(join(work, 'she.txt'), 'she\n');
  assert.equal(shell('"$@" >&-', 'embed', bert, 'she.txt', '--out', 'closed.txt').status, 0);
  assert.match(readFileSync(join(work, 'closed.txt'), 'utf8'), /^\[.*\]\n$/);
});

test('standard input that cannot be read is reported', limit, () => {
  for (const command of ['generate', 'score'])
    for (const [input, reason] of [
      ['<&-', 'Bad file descriptor'],
      ['< .', 'Is a directory'],
    ]) {
      const { status, stdout, stderr } = shell(`"$@" ${input}`, command, at('testdata/models/tiny-gpt2'), '-');
      assert.deepEqual([status, stdout, stderr], [1, '', `attn: reading standard input: ${reason}\n`], `${command} ${input}`);
    }
});

test('inspect reads no files outside of the model folder', limit, () => {
  const pooling = JSON.stringify({ pooling_mode: 'SECRET' });
  copyOf(cls, 'secret', { 'config.json': JSON.stringify({ model_type: 'SECRET', hidden_size: 4711 }) });
  mkdirSync(join(work, 'pooled'));
  writeFileSync(join(work, 'pooled', 'config.json'), pooling);
  for (const [transformer, pooled] of [
    ['../secret', '1_Pooling'],
    [join(work, 'secret'), '1_Pooling'],
    ['', '../pooled'],
    ['', join(work, 'pooled')],
  ]) {
    const modules = ['Transformer', 'Pooling'].map((type, i) => ({ type: `sentence_transformers.models.${type}`, path: [transformer, pooled][i] }));
    const folder = copyOf(cls, 'traversal', { 'modules.json': JSON.stringify(modules) });
    const { status, stdout, stderr } = run('native', 'inspect', folder);
    assert.doesNotMatch(stdout + stderr, /SECRET|4711/);
    assert.match(stdout, /^modules {5}Transformer, Pooling/m);
    assert.match(stdout, /^attn {8}refuses it: UNSUPPORTED: .*the path of (Transformer|Pooling) is /m);
    assert.equal(status, 1);
    rmSync(folder, { recursive: true });
  }
});

const hostile = 'a\u001b[31mb\u001b]0;title\u0007c\u009bd\u202ee\u2066f\u200fg\u007fh';
const escaped = 'a\\u001b[31mb\\u001b]0;title\\u0007c\\u009bd\\u202ee\\u2066f\\u200fg\\u007fh';
const controls = /(?![\t\n\r])[\p{Cc}\p{Bidi_Control}]/u;

test('the escaped characters are the controls and all characters that change the text direction', limit, () => {
  const config = JSON.parse(readFileSync(join(bert, 'config.json'), 'utf8'));
  const every = Array.from({ length: 0x110000 }, (_, code) => (code >= 0xd800 && code < 0xe000 ? '' : String.fromCodePoint(code)));
  const label = every.filter((each) => /[\p{C}\p{Z}\p{Bidi_Control}]/u.test(each) && !/[\t\p{Cn}\p{Co}]/u.test(each)).join('x');
  const folder = copyOf(bert, 'every', { 'config.json': JSON.stringify({ ...config, id2label: { ...config.id2label, 0: label } }) });
  const { status, stdout } = run('native', 'inspect', folder);
  assert.equal(status, 0);
  const expected = label.replace(/[\p{Cc}\p{Bidi_Control}]/gu, (each) => `\\u${each.codePointAt(0).toString(16).padStart(4, '0')}`);
  assert.ok(stdout.includes(expected), stdout);
});

test('control characters of files, arguments and texts are printed as escapes, also in JSON', limit, () => {
  const config = JSON.parse(readFileSync(join(bert, 'config.json'), 'utf8'));
  const id2label = { ...config.id2label, 0: hostile };
  const labels = copyOf(bert, 'labels', { 'config.json': JSON.stringify({ ...config, id2label }) });
  const types = copyOf(bert, 'types', { 'config.json': JSON.stringify({ ...config, model_type: hostile, architectures: [hostile] }) });
  const outputs = {
    labels: run('native', 'inspect', labels),
    types: run('native', 'inspect', types),
    text: runWith('she\n', 'native', 'classify', labels, '--output', 'text'),
    json: runWith('she\n', 'native', 'classify', labels),
    error: run('native', 'embed', types),
    path: run('native', 'inspect', hostile),
    command: run('native', hostile),
    option: run('native', 'embed', bert, `--${hostile}`),
    value: run('native', 'embed', bert, '--batch-size', hostile),
    line: run('native', 'embed', bert, 'no\u001bsuch'),
  };
  for (const [name, { stdout, stderr }] of Object.entries(outputs)) {
    assert.doesNotMatch(stdout + stderr, controls, name);
    if (name !== 'line') assert.ok((stdout + stderr).includes(escaped), `${name}: ${stdout}${stderr}`);
  }
  const [all] = outputs.json.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.ok(all.some(({ label }) => label === hostile));
  const entities = runWith('she \u202eParis\u009b\n', 'native', 'tag', at('testdata/models/tiny-bert-ner'), '--output', 'text');
  assert.equal(entities.status, 0);
  assert.doesNotMatch(entities.stdout, controls);
  const broken = copyOf(bert, 'broken', { 'config.json': JSON.stringify({ ...config, model_type: 'x\nattn: all is well' }) });
  assert.equal(run('native', 'embed', broken).stderr.split('\n').length, 2);
});

test('a terminal gets no control characters from a model either', limit, (t) => {
  if (spawnSync('script', ['--version']).error) return skipUnlessCi(t, 'script(1) is missing');
  const config = JSON.parse(readFileSync(join(bert, 'config.json'), 'utf8'));
  const folder = copyOf(bert, 'terminal', { 'config.json': JSON.stringify({ ...config, id2label: { ...config.id2label, 0: hostile } }) });
  for (const call of ['inspect "$MODEL"', 'classify "$MODEL" she.txt --output text']) {
    writeFileSync(join(work, 'she.txt'), 'she\n');
    const { stdout, status } = spawnSync('script', ['-qec', `"$ATTN" ${call}`, '/dev/null'], {
      encoding: 'utf8',
      cwd: work,
      env: { ...process.env, ATTN: native, MODEL: folder },
      timeout: 60_000,
    });
    assert.equal(status, 0, stdout);
    assert.ok(stdout.includes(escaped), stdout);
    assert.doesNotMatch(stdout, controls);
  }
});

test('a FIFO or a device instead of a file is refused without being opened', limit, () => {
  for (const file of ['config.json', 'tokenizer.json', 'model.safetensors', 'modules.json', '1_Pooling/config.json']) {
    const folder = copyOf(cls, 'fifo');
    for (const make of [(path) => spawnSync('mkfifo', [path]), (path) => symlinkSync('/dev/zero', path)]) {
      rmSync(join(folder, file));
      make(join(folder, file));
      const embedded = shell('timeout 20 "$@" <<< she', 'embed', folder);
      assert.equal(embedded.status, 1, `${file}: ${embedded.stderr}`);
      assert.match(embedded.stderr, new RegExp(`^attn: FORMAT: TextModel::load: .*${file.split('/').at(-1)} is .*, expected a regular file\\n$`));
      const inspected = shell('timeout 20 "$@"', 'inspect', folder);
      assert.equal(inspected.status, 1, `${file}: ${inspected.stdout}`);
      assert.match(inspected.stdout, /^attn {8}refuses it: FORMAT: /m);
    }
    rmSync(folder, { recursive: true });
  }
  const folder = copyOf(cls, 'linked');
  copyFileSync(join(folder, 'config.json'), join(work, 'blob'));
  rmSync(join(folder, 'config.json'));
  symlinkSync('../blob', join(folder, 'config.json'));
  assert.equal(run('native', 'inspect', folder).status, 0);
  assert.equal(readlinkSync(join(folder, 'config.json')), '../blob');
  assert.ok(!existsSync(join(folder, '1_Pooling', 'blob')));
});
