/**
 * Tests the commands of attn that read texts, in the npm package and the native build. Needs web/lib/dist and
 * build/native.
 */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { load, readSafetensorsHeader } from 'attn';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { bert, both, bothWith, filesOf, programs, removeWork, run, runWith, work } from './programs.mjs';

/** Creates a head with one label, as cross-encoders have: the first label of tiny-bert. */
function crossEncoder() {
  const folder = join(work, 'cross-encoder');
  mkdirSync(folder);
  for (const [name, bytes] of Object.entries(filesOf(bert))) writeFileSync(join(folder, name), bytes);
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, id2label: { 0: 'LABEL_0' }, label2id: { LABEL_0: 0 } }));
  const file = readFileSync(join(bert, 'model.safetensors'));
  const { tensors, dataStart } = readSafetensorsHeader(file);
  const kept = {};
  const parts = [];
  let at = 0;
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(tensors)) {
    const all = file.subarray(dataStart + data_offsets[0], dataStart + data_offsets[1]);
    const isHead = name.startsWith('classifier.');
    const bytes = isHead ? all.subarray(0, all.length / shape[0]) : all;
    kept[name] = { dtype, shape: isHead ? [1, ...shape.slice(1)] : shape, data_offsets: [at, (at += bytes.length)] };
    parts.push(bytes);
  }
  const text = Buffer.from(JSON.stringify(kept));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(join(folder, 'model.safetensors'), Buffer.concat([length, text, ...parts]));
  return folder;
}

const scorer = crossEncoder();
const model = (name) => at('testdata/models', name);
const texts = ['happiness is good', '', 'Sarah went to Paris 😀 in the "fall"\tsaid\u0001 she', '中文 is unhappiness', 'she '.repeat(80)];
const plainLines = `\ufeff${texts.join('\n')}`;
const jsonLines = texts.map((text, i) => `${JSON.stringify({ id: i, text })}\r\n`).join('');
const linesOf = (stdout) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

const single = ({ score, ...rest }) => ({ ...rest, score: Math.fround(score) });

let attn;
let [cls, three, ner, mlm, qa] = [];
before(async () => {
  attn = await load({ threads: 1, variant: 'simd' });
  [cls, three, ner, mlm, qa] = await Promise.all(
    ['tiny-bert-cls', 'tiny-bert', 'tiny-bert-ner', 'tiny-bert-mlm', 'tiny-bert-qa'].map((name) => attn.loadModel(model(name))),
  );
});
after(async () => {
  await attn.dispose();
  removeWork();
});

test('embed: both programs print the vectors of the package, whatever the format of the input and the batch size', limit, async () => {
  const { data } = await cls.embed(texts);
  const { status, stdout, stderr } = bothWith(plainLines, 'embed', model('tiny-bert-cls'));
  assert.deepEqual([status, stderr], [0, '']);
  assert.deepEqual(Float32Array.from(linesOf(stdout).flat()), data);
  for (const more of [['--batch-size', '1'], ['--batch-size=2']])
    assert.equal(bothWith(plainLines, 'embed', model('tiny-bert-cls'), ...more).stdout, stdout);
  assert.equal(bothWith(jsonLines, 'embed', model('tiny-bert-cls'), '--jsonl').stdout, stdout);
  writeFileSync(join(work, 'texts.jsonl'), jsonLines);
  assert.equal(both('embed', model('tiny-bert-cls'), 'texts.jsonl').stdout, stdout);
  assert.notEqual(bothWith(plainLines, 'embed', model('tiny-bert-cls'), '--max-length', '8').stdout, stdout);
  assert.notEqual(bothWith(plainLines, 'embed', model('tiny-bert-cls'), '--weights', 'int8').stdout, stdout);
  assert.equal(bothWith(plainLines, 'embed', model('tiny-bert-cls'), '--output', 'text').stdout, stdout.replace(/[[\]]/g, '').replaceAll(',', '\t'));
});

test('embed --output npy: both programs write the same NumPy array to a pipe and to a file', limit, async () => {
  const { data, dims } = await cls.embed(texts);
  const npy = Buffer.from(bothWith(plainLines, 'embed', model('tiny-bert-cls'), '--output', 'npy').stdout, 'latin1');
  const header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${dims.join(', ')}), }`;
  assert.equal(npy.toString('latin1', 0, 128), `\x93NUMPY\x01\x00\x76\x00${header.padEnd(117)}\n`);
  assert.ok(npy.subarray(128).equals(Buffer.from(data.buffer)));
  assert.equal(both('embed', model('tiny-bert-cls'), '--output', 'npy').stdout.slice(10, 128).trim(), header.replace(/\(\d+/, '(0'));
  for (const program of Object.keys(programs)) {
    assert.deepEqual(runWith(plainLines, program, 'embed', model('tiny-bert-cls'), '--output', 'npy', '--out', 'out.npy'), {
      status: 0,
      stdout: '',
      stderr: '',
    });
    assert.ok(readFileSync(join(work, 'out.npy')).equals(npy));
  }
});

test('classify: both programs print the labels of the package', limit, async () => {
  const labels = (await three.classify(texts)).map((all) => all.map(({ label }) => label));
  const classified = linesOf(bothWith(plainLines, 'classify', bert).stdout);
  assert.deepEqual(
    classified.map((all) => all.map(({ label }) => label)),
    labels,
  );
  const top = bothWith(plainLines, 'classify', bert, '--top-k', '1', '--output', 'text').stdout;
  assert.equal(top, classified.map(([{ label, score }]) => `${label}\t${score}\n`).join(''));
});

test('tag: both programs print the entities of the package, with offsets in characters', limit, async () => {
  const byText = linesOf(bothWith(plainLines, 'tag', model('tiny-bert-ner'), '--aggregation', 'first', '--stride', '4').stdout);
  const expected = await ner.classifyTokens(texts, { aggregation: 'first', stride: 4 });
  assert.deepEqual(
    byText.map((all) => all.map(({ label, text, score }) => single({ label, text, score }))),
    expected.map((all) => all.map(({ label, text, score }) => single({ label, text, score }))),
  );
  byText.forEach((all, i) => all.forEach(({ text, start, end }) => assert.equal([...texts[i]].slice(start, end).join(''), text)));
  assert.ok(byText[2].some(({ end }) => end > texts[2].indexOf('😀') + 2));
  bothWith(plainLines, 'tag', model('tiny-bert-ner'), '--output', 'text');
});

test('tag: the time for a long line grows in proportion to its length', limit, () => {
  // Counting each offset from the start of the line would exceed the time limit of bothWith(). Spaces cost no tokens.
  const part = `Sarah went to Paris 😀.${' '.repeat(2000)}`;
  const [all] = linesOf(bothWith(part.repeat(4500), 'tag', model('tiny-bert-ner'), '--aggregation', 'first', '--stride', '4').stdout);
  assert.ok(all.length > 10_000 && all.at(-1).end > [...part].length * 4500 - 2025);
});

test('fill: both programs print the predictions of the package', limit, async () => {
  const masked = ['this is [MASK] good', '[MASK] and [MASK]'];
  const filled = linesOf(bothWith(masked.join('\n'), 'fill', model('tiny-bert-mlm'), '--top-k', '3').stdout);
  for (const [i, text] of masked.entries())
    assert.deepEqual(
      filled[i].map((all) => all.map(single)),
      (await mlm.fillMask(text, { topK: 3 })).map((all) => all.map(single)),
    );
  bothWith(masked.join('\n'), 'fill', model('tiny-bert-mlm'), '--output', 'text');
});

test('answer: both programs print the answers of the package, with offsets in characters', limit, async () => {
  const question = { question: 'who is 😀?', context: '😀 it is she who is happy, and\nshe is good' };
  const asked = [JSON.stringify(question), ''].join('\n');
  const answers = linesOf(bothWith(asked, 'answer', model('tiny-bert-qa'), '--top-k', '3').stdout)[0];
  const right = await qa.answer(question.question, question.context, { topK: 3 });
  assert.deepEqual(
    answers.map(({ text, score }) => [text, Math.fround(score)]),
    right.map(({ text, score }) => [text, Math.fround(score)]),
  );
  answers.forEach(({ text, start, end }) => assert.equal([...question.context].slice(start, end).join(''), text));
  const words = bothWith(asked, 'answer', model('tiny-bert-qa'), '--top-k', '3', '--output', 'text').stdout;
  assert.equal(words, `${right.map(({ text }) => text.replaceAll('\n', ' ')).join('\t')}\n`);
});

test('rank: both programs print the ranking of the package', limit, async () => {
  const ranking = { query: 'happiness', documents: ['she is good', 'unhappiness', 'the fall'] };
  const ranked = linesOf(bothWith(JSON.stringify(ranking), 'rank', scorer, '--top-k', '2').stdout)[0];
  const ranker = await attn.loadModel(scorer);
  const byPackage = await ranker.rank(ranking.query, ranking.documents, { topK: 2 });
  assert.deepEqual(
    ranked.map(single),
    byPackage.map(({ index, score }) => single({ index, score })),
  );
  const order = bothWith(JSON.stringify(ranking), 'rank', scorer, '--output', 'text').stdout;
  assert.deepEqual(order.trim().split('\t').sort(), ['0', '1', '2']);
});

test('an invalid line is reported by its number, after the results of the lines before it', limit, () => {
  const good = '{"text":"good"}\n';
  for (const [line, why] of [
    ['{"text":', 'is not JSON'],
    ['{"text":"\\ud800"}', 'has half a surrogate pair, expected whole characters'],
    ['{"text":"a \\ude00\\ud83d film"}', 'has half a surrogate pair, expected whole characters'],
    ['{"text":"\\ud800",}', 'is not JSON'],
    [Buffer.from([0x7b, 0xff]), 'is not UTF-8'],
    ['["good"]', 'is not a JSON object'],
    ['{"txet":"good"}', 'text is missing'],
    ['{"text":3}', 'text is not a string'],
  ]) {
    const input = Buffer.concat([Buffer.from(good + good), Buffer.from(line), Buffer.from(`\n${good}`)]);
    const { status, stdout, stderr } = bothWith(input, 'classify', bert, '--jsonl');
    assert.deepEqual([status, stderr], [1, `attn: line 3: ${why}\n`]);
    assert.equal(linesOf(stdout).length, 2);
  }
  const vectors = bothWith(`${good}${good}{"text":3}\n${good}`, 'embed', bert, '--jsonl', '--output', 'npy').stdout;
  assert.match(vectors, /'shape': \(2, 32\)/);
  assert.equal(vectors.length, 128 + 2 * 4 * 32);
  for (const [line, why] of [
    ['{"query":"good"}', 'documents is not a list of strings'],
    ['{"query":"good","documents":["a",1]}', 'documents is not a list of strings'],
    ['{"documents":[]}', 'query is missing'],
  ])
    assert.deepEqual(bothWith(line, 'rank', scorer), { status: 1, stdout: '', stderr: `attn: line 1: ${why}\n` });
  assert.equal(bothWith('{"question":"who"}', 'answer', model('tiny-bert-qa')).stderr, 'attn: line 1: context is missing\n');
  for (const program of Object.keys(programs)) {
    const { status, stdout, stderr } = runWith('[MASK]\nnone', program, 'fill', model('tiny-bert-mlm'));
    assert.deepEqual([status, linesOf(stdout).length], [1, 1]);
    assert.match(stderr, /^attn: line 2: ARGUMENT: fill/);
    assert.equal(run(program, 'embed', work).status, 1);
  }
  assert.deepEqual(both('embed', bert, 'no such file').stderr, 'attn: no such file: No such file or directory\n');
  assert.deepEqual(both('embed', bert, '.').stderr, 'attn: .: Is a directory\n');
  assert.deepEqual(both('embed', bert, '--out', 'no/out.txt').stderr, 'attn: no/out.txt: No such file or directory\n');
  assert.deepEqual(both('embed', bert, '--out', '.').stderr, 'attn: .: Is a directory\n');
  const misfit = (...args) => bothWith('good', ...args);
  assert.deepEqual(misfit('tag', bert), {
    status: 1,
    stdout: '',
    stderr: 'attn: MODEL is for text-classification, expected one for token-classification\n',
  });
  assert.equal(misfit('rank', bert).stderr, 'attn: MODEL has 3 labels, expected one, as a cross-encoder has\n');
});

test('memory does not grow with the number of lines, and a closed pipe ends the program without an error', limit, () => {
  const long = join(work, 'long.txt');
  writeFileSync(long, 'she is good\n'.repeat(20_000));
  for (const [program, [file, ...first]] of Object.entries(programs)) {
    const shell = (script, ...args) =>
      spawnSync('bash', ['-c', script, 'bash', file, ...first, ...args], { encoding: 'utf8', cwd: work, timeout: 600_000 });
    const { stdout, stderr } = shell('"$@" | head -n 1 | wc -l', 'embed', bert, long, '--max-length', '4');
    assert.deepEqual([stdout.trim(), stderr], ['1', '']);
    const peak = (lines) =>
      Number(/\d+$/.exec(shell(`head -n ${lines} ${long} | /usr/bin/time -f %M "$@" 2>&1 >/dev/null`, 'embed', bert).stdout.trim()));
    // In Node the garbage collector varies by more than that.
    if (program === 'native' && existsSync('/usr/bin/time')) assert.ok(peak(20_000) < peak(2000) + 1500, 'KiB');
  }
});

test('JSON Lines: both programs skip blank lines, recognise .ndjson and capitals, and accept - for standard input and output', limit, () => {
  const line = '{"text":"a warm film"}\n';
  const right = bothWith('a warm film', 'classify', bert).stdout;
  writeFileSync(join(work, 'blank.jsonl'), `${line}\n  \r\n${line}\n`);
  assert.deepEqual(both('classify', bert, 'blank.jsonl'), { status: 0, stdout: right + right, stderr: '' });
  for (const name of ['x.ndjson', 'x.JSONL', 'x.NDJSON']) {
    writeFileSync(join(work, name), line);
    assert.equal(both('classify', bert, name).stdout, right, name);
  }
  assert.equal(bothWith('a warm film', 'classify', bert, '-').stdout, right);
  assert.equal(bothWith('a warm film', 'classify', bert, '-', '--out', '-').stdout, right);
  assert.equal(bothWith(`${line}\n\n3\n`, 'classify', bert, '--jsonl').stderr, 'attn: line 4: is not a JSON object\n');
  assert.equal(bothWith('\n', 'classify', bert).stdout.split('\n').length, 2);
  assert.equal(
    bothWith('{"text":"a \\ud83d film"}', 'classify', bert, '--jsonl').stderr,
    'attn: line 1: has half a surrogate pair, expected whole characters\n',
  );
});
