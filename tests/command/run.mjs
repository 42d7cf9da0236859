#!/usr/bin/env node
/**
 * The command `attn`, of the package and of the native build: node tests/command/run.mjs. Both must write the same bytes of every model and print
 * the same. Needs web/lib/dist and build/native. The last line is "N passed, N failed".
 */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load } from 'attn';
import { Checks } from '../../wasm-tests/support/checks.mjs';

const at = (...parts) => join(fileURLToPath(new URL('../..', import.meta.url)), ...parts);
const work = at('build/tests/command');
rmSync(work, { recursive: true, force: true });
mkdirSync(work, { recursive: true });
const checks = new Checks('command');

const programs = { npx: [process.execPath, at('web/lib/dist/cli.js')], native: [at('build/native/bin/attn')] };
/** The arithmetic that both have. */
const env = { ...process.env, ATTN_VARIANT: 'simd', ATTN_MAX_ARCH: 'emulated' };
function runWith(input, program, ...args) {
  const [file, ...first] = programs[program];
  const { status, stdout, stderr } = spawnSync(file, [...first, ...args], {
    encoding: 'latin1',
    cwd: work,
    timeout: 100_000,
    maxBuffer: 2 ** 24,
    env,
    input: Buffer.from(input),
  });
  const utf8 = (text) => Buffer.from(text, 'latin1').toString();
  return { status, stdout: args.includes('npy') ? stdout : utf8(stdout), stderr: utf8(stderr) };
}
const run = (program, ...args) => runWith('', program, ...args);
/** What both say, which is the same. */
function bothWith(input, ...args) {
  const [npx, native] = Object.keys(programs).map((program) => runWith(input, program, ...args));
  assert.deepEqual(native, npx, args.join(' '));
  return npx;
}
const both = (...args) => bothWith('', ...args);

const filesOf = (folder) =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((path) => [path.slice(folder.length + 1), readFileSync(path)]),
  );

const folders = ['testdata/models', 'models'].flatMap((parent) =>
  existsSync(at(parent))
    ? readdirSync(at(parent), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => at(parent, name))
    : [],
);
assert.ok(folders.length >= 12, folders.join());

for (const folder of folders) {
  const name = basename(folder);
  await checks.check(`${name}: both programs write the same files, which attn takes as what they are`, async (note) => {
    const sizes = {};
    for (const weights of ['float32', 'float16', 'int8']) {
      const outs = Object.keys(programs).map((program) => join(work, name, weights, program));
      Object.keys(programs).forEach((program, i) =>
        assert.deepEqual(run(program, 'convert', folder, outs[i], '--weights', weights), { status: 0, stdout: '', stderr: '' }),
      );
      const [npx, native] = outs.map(filesOf);
      assert.deepEqual(Object.keys(native), Object.keys(npx));
      for (const [file, bytes] of Object.entries(npx)) assert.ok(bytes.equals(native[file]), `${weights}: ${file}`);
      // What was read but is no weight is as it was.
      const given = filesOf(folder);
      for (const [file, bytes] of Object.entries(npx))
        if (!/^(config\.json|model\.safetensors)$/.test(file)) assert.ok(bytes.equals(given[file]), `${weights}: ${file}`);
      const before = JSON.parse(given['config.json']);
      const { quantization_config, ...after } = JSON.parse(npx['config.json']);
      assert.equal(quantization_config !== undefined, weights === 'int8');
      const type = weights === 'float16' ? 'float16' : 'float32';
      assert.equal(after.dtype ?? after.torch_dtype, type);
      for (const key of Object.keys(before))
        if (!/dtype$|^architectures$|^quantization_config$/.test(key)) assert.deepEqual(after[key], before[key], key);
      // Numbers as they were written: transformers tells 2.0 from 2.
      const floats = (json) =>
        (
          String(json)
            .replace(/"quantization_config".*/, '')
            .match(/: -?\d+\.\d+/g) ?? []
        ).sort();
      assert.deepEqual(floats(npx['config.json']), floats(given['config.json']));

      const { status, stdout } = run('npx', 'inspect', outs[0]);
      assert.equal(status, 0);
      assert.match(stdout, new RegExp(`^attn        takes it, as ${weights === 'int8' ? 'int8' : 'float32'}$`, 'm'));
      const native_ = run('native', 'inspect', outs[0]);
      // The package has more tokenizers.
      assert.equal(native_.stdout.replace(/^ {12}but texts natively: UNSUPPORTED: .*\n/m, ''), stdout);
      assert.equal(native_.status, 0);
      sizes[weights] = Object.values(npx).reduce((sum, { length }) => sum + length, 0);
      // Converting what is int8 already changes nothing, and back it is what was rounded.
      if (weights === 'int8') {
        const again = join(work, name, 'again');
        assert.equal(run('native', 'convert', outs[0], again, '--weights', 'int8').status, 0);
        assert.ok(filesOf(again)['model.safetensors'].equals(npx['model.safetensors']));
      }
    }
    const weightsBytes = Object.values(sizes).map((size) => `${(size / 1e6).toFixed(2)} MB`);
    note(weightsBytes.join(', '));
    assert.ok(Math.max(sizes.int8, sizes.float16) < sizes.float32);
    rmSync(join(work, name), { recursive: true });
  });
}

const bert = at('testdata/models/tiny-bert');
await checks.check('inspect says what a folder is', () => {
  const { status, stdout, stderr } = both('inspect', at('testdata/models/tiny-bert-cls'));
  assert.deepEqual([status, stderr], [0, '']);
  for (const line of [
    /^model {7}BertModel \(bert\)$/m,
    /^sizes {7}2 layers, 4 heads, hidden 32, intermediate 48, vocabulary 339, positions 64$/m,
    /^tokenizer {3}WordPiece$/m,
    /^modules {5}Transformer, Pooling \(cls\), Normalize$/m,
    /^weights {5}37 F16 of 0\.1 MB$/m,
    /^head {8}none$/m,
    /^attn {8}takes it, as float32$/m,
  ])
    assert.match(stdout, line);
  assert.match(both('inspect', bert).stdout, /^head {8}3 labels: negative, neutral, positive$/m);
});

await checks.check('a folder that is refused is told of all the same, and ends with 1', () => {
  const folder = join(work, 'refused');
  mkdirSync(folder);
  for (const [name, bytes] of Object.entries(filesOf(bert))) writeFileSync(join(folder, name), bytes);
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, quantization_config: { quant_method: 'gptq' } }));
  const { status, stdout } = run('npx', 'inspect', folder);
  // Errors begin with the operation that they are of, which is another there.
  assert.deepEqual(run('native', 'inspect', folder), { status: 1, stdout: stdout.replace('loadModel: ', ''), stderr: '' });
  assert.equal(status, 1);
  assert.match(stdout, /^model {7}BertForSequenceClassification \(bert\)$/m);
  assert.match(stdout, /^attn {8}refuses it: UNSUPPORTED: .*quant_method is gptq, expected compressed-tensors$/m);
  for (const program of Object.keys(programs)) {
    const converted = run(program, 'convert', folder, join(work, 'never'), '--weights', 'int8');
    assert.equal(converted.status, 1);
    assert.match(converted.stderr, /^attn: UNSUPPORTED: .*gptq/);
    const empty = join(work, 'nothing');
    mkdirSync(empty, { recursive: true });
    const nothing = run(program, 'inspect', empty);
    assert.equal(nothing.status, 1);
    assert.match(nothing.stdout, /^model {7}\? \(\?\)$/m);
    assert.match(nothing.stdout, /^attn {8}refuses it: (FORMAT|NETWORK): .*config\.json/m);
  }
  for (const path of [join(work, 'not there'), join(folder, 'config.json')])
    assert.deepEqual(both('inspect', path), {
      status: 1,
      stdout: '',
      stderr: `attn: FOLDER is ${path}, which is no folder; expected that of a model\n`,
    });
  assert.ok(!existsSync(join(work, 'never')));
});

await checks.check('a number that float16 has not is refused by its tensor, and nothing is written', async () => {
  const attn = await load({ threads: 1 });
  const model = await attn.loadModel(bert);
  const bias = model.getParameter('classifier.bias');
  bias.data[1] = -70000;
  model.loadStateDict({ 'classifier.bias': bias }, { strict: false });
  const folder = join(work, 'large');
  for (const [name, bytes] of Object.entries(await model.export())) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), bytes);
  }
  await attn.dispose();
  for (const program of Object.keys(programs)) {
    const { status, stderr } = run(program, 'convert', folder, join(work, 'halves'), '--weights', 'float16');
    assert.equal(status, 1);
    assert.match(stderr, /^attn: OUT_OF_RANGE: .*classifier\.bias .*-70000/);
    assert.ok(!existsSync(join(work, 'halves')));
    assert.equal(run(program, 'convert', folder, join(work, `large-${program}`), '--weights', 'int8').status, 0);
  }
});

await checks.check('a call that is wrong ends with 2, names what is wrong and gives a hint', () => {
  const wrong = [
    [['inspct', bert], /^attn: inspct is no command; did you mean inspect\?$/m],
    [['export', bert], /^attn: export is no command; /m],
    [['convert', bert, 'out', '--wieghts', 'int8'], /^attn: --wieghts is no option; did you mean weights\?$/m],
    [['convert', bert, 'out', '--weights', 'int9'], /^attn: --weights is int9; did you mean int8\?$/m],
    [['convert', bert, 'out', '--weights=flaot16'], /^attn: --weights is flaot16; did you mean float16\?$/m],
    [['convert', bert, 'out'], /^attn: --weights is missing; there are float32, float16, int8$/m],
    [['convert', bert, 'out', '--weights'], /^attn: --weights is missing; /m],
    [['convert', bert, '--weights', 'int8'], /^attn: convert takes FOLDER OUT, got 1 of them$/m],
    [['inspect'], /^attn: inspect takes FOLDER, got 0 of them$/m],
    [['inspect', bert, '--weights', 'int8'], /^attn: inspect takes no --weights$/m],
    [['convert', bert, bert, '--weights', 'int8'], /^attn: OUT is .*, which is not empty; expected a new folder$/m],
    [['convert', bert, join(bert, 'config.json'), '--weights', 'int8'], /^attn: OUT is .*, which is a file; expected a new folder$/m],
    [['convert', bert, '', '--weights', 'int8'], /^attn: OUT is empty$/m],
    [['inspect', ''], /^attn: FOLDER is empty$/m],
    [['convert', bert, 'out', '--', '--weights', 'int8'], /^attn: convert takes FOLDER OUT, got 4 of them$/m],
    [['convert', '--', bert, 'out'], /^attn: --weights is missing; /m],
    [['embd', bert], /^attn: embd is no command; did you mean embed\?$/m],
    [['embedding', bert], /^attn: embedding is no command; did you mean embed\?$/m],
    [['embed'], /^attn: embed takes MODEL \[FILE\], got 0 of them$/m],
    [['embed', bert, 'a', 'b'], /^attn: embed takes MODEL \[FILE\], got 3 of them$/m],
    [['embed', bert, ''], /^attn: FILE is empty$/m],
    [['embed', bert, '--batchsize', '3'], /^attn: --batchsize is no option; did you mean batch-size\?$/m],
    [['embed', bert, '--batch-size', '0'], /^attn: --batch-size is 0; expected a whole number from 1 to 999999$/m],
    [['embed', bert, '--batch-size', '1000000'], /^attn: --batch-size is 1000000; expected a whole number/m],
    [['tag', bert, '--stride=-1'], /^attn: --stride is -1; expected a whole number from 0 to 999999$/m],
    [['tag', bert, '--aggregation', 'frist'], /^attn: --aggregation is frist; did you mean first\?$/m],
    [['embed', bert, '--out'], /^attn: --out is missing; expected a path$/m],
    [['classify', bert, '--output', 'npy'], /^attn: --output is npy; there are jsonl, text$/m],
    [['classify', bert, '--stride', '2'], /^attn: classify takes no --stride$/m],
  ];
  const before = filesOf(bert);
  for (const [args, message] of wrong) {
    const { status, stdout, stderr } = both(...args);
    assert.deepEqual([status, stdout], [2, ''], args.join(' '));
    assert.match(stderr, message);
  }
  assert.deepEqual(filesOf(bert), before);
});

await checks.check('where the disk ends nothing is left, and the same call may be made again', () => {
  const sentiment = at('testdata/models/sentiment');
  for (const [program, [file, ...first]] of Object.entries(programs))
    for (const exists of [false, true]) {
      const out = join(work, `full-${program}-${exists}`);
      if (exists) mkdirSync(out);
      // Some 0.2 MB a file: the tokenizer fits, the weights do not.
      const limited = ['-c', 'trap "" XFSZ; ulimit -f 450; exec "$@"', 'sh', file, ...first, 'convert', sentiment, out, '--weights', 'int8'];
      const { status, stderr } = spawnSync('sh', limited, { encoding: 'utf8', cwd: work });
      assert.equal(status, 1, stderr);
      assert.match(stderr, /^attn: (EFBIG|ARGUMENT: save_pretrained: .*model\.safetensors)/);
      assert.equal(existsSync(out), exists);
      if (exists) assert.deepEqual(readdirSync(out), []);
      assert.equal(run(program, 'convert', sentiment, out, '--weights', 'int8').status, 0);
    }
});

/** A head of one label, as cross-encoders have it: that of tiny-bert without its others. */
function crossEncoder() {
  const folder = join(work, 'cross-encoder');
  mkdirSync(folder);
  for (const [name, bytes] of Object.entries(filesOf(bert))) writeFileSync(join(folder, name), bytes);
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, id2label: { 0: 'LABEL_0' }, label2id: { LABEL_0: 0 } }));
  const file = readFileSync(join(bert, 'model.safetensors'));
  const size = Number(file.readBigUInt64LE());
  const header = JSON.parse(file.toString('utf8', 8, 8 + size));
  const kept = {};
  const parts = [];
  let at = 0;
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(header).filter(([name]) => name !== '__metadata__')) {
    const all = file.subarray(8 + size + data_offsets[0], 8 + size + data_offsets[1]);
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

await checks.check('texts: both programs write the same bytes, and what the model says', async () => {
  const attn = await load({ threads: 1, variant: 'simd' });
  const [cls, three, ner, mlm, qa] = await Promise.all(
    ['tiny-bert-cls', 'tiny-bert', 'tiny-bert-ner', 'tiny-bert-mlm', 'tiny-bert-qa'].map((name) => attn.loadModel(model(name))),
  );
  const { data, dims } = await cls.embed(texts);
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

  // One array of NumPy's: the same by a pipe and in a file.
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

  const labels = (await three.classify(texts)).map((all) => all.map(({ label }) => label));
  const classified = linesOf(bothWith(plainLines, 'classify', bert).stdout);
  assert.deepEqual(
    classified.map((all) => all.map(({ label }) => label)),
    labels,
  );
  const top = bothWith(plainLines, 'classify', bert, '--top-k', '1', '--output', 'text').stdout;
  assert.equal(top, classified.map(([{ label, score }]) => `${label}\t${score}\n`).join(''));

  const single = ({ score, ...rest }) => ({ ...rest, score: Math.fround(score) });
  const byText = linesOf(bothWith(plainLines, 'tag', model('tiny-bert-ner'), '--aggregation', 'first', '--stride', '4').stdout);
  const expected = await ner.classifyTokens(texts, { aggregation: 'first', stride: 4 });
  assert.deepEqual(
    byText.map((all) => all.map(({ label, text, score }) => single({ label, text, score }))),
    expected.map((all) => all.map(({ label, text, score }) => single({ label, text, score }))),
  );
  // Places are characters, as Python counts them.
  byText.forEach((all, i) => all.forEach(({ text, start, end }) => assert.equal([...texts[i]].slice(start, end).join(''), text)));
  assert.ok(byText[2].some(({ end }) => end > texts[2].indexOf('😀') + 2));
  bothWith(plainLines, 'tag', model('tiny-bert-ner'), '--output', 'text');
  // What a line takes grows as it does: were every place counted from the start, this one would not be done within a program's time.
  const long = 'Sarah went to Paris 😀. '.repeat(25_000);
  const [all] = linesOf(bothWith(long, 'tag', model('tiny-bert-ner'), '--aggregation', 'first', '--stride', '4').stdout);
  assert.ok(all.length > 10_000 && all.at(-1).end > [...long].length - 25);

  const masked = ['this is [MASK] good', '[MASK] and [MASK]'];
  const filled = linesOf(bothWith(masked.join('\n'), 'fill', model('tiny-bert-mlm'), '--top-k', '3').stdout);
  for (const [i, text] of masked.entries())
    assert.deepEqual(
      filled[i].map((all) => all.map(single)),
      (await mlm.fillMask(text, { topK: 3 })).map((all) => all.map(single)),
    );
  bothWith(masked.join('\n'), 'fill', model('tiny-bert-mlm'), '--output', 'text');

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

  const ranking = { query: 'happiness', documents: ['she is good', 'unhappiness', 'the fall'] };
  const ranked = linesOf(bothWith(JSON.stringify(ranking), 'rank', scorer, '--top-k', '2').stdout)[0];
  const ranker = await attn.loadModel(scorer);
  assert.deepEqual(ranked.map(single), (await ranker.rank(ranking.query, ranking.documents, { topK: 2 })).map(single));
  const order = bothWith(JSON.stringify(ranking), 'rank', scorer, '--output', 'text').stdout;
  assert.deepEqual(order.trim().split('\t').sort(), ['0', '1', '2']);
  await attn.dispose();
});

await checks.check('texts: a line that is refused is named by its number, and what stands before it is written', () => {
  const good = '{"text":"good"}\n';
  for (const [line, why] of [
    ['{"text":', 'is not JSON'],
    ['', 'is not JSON'],
    ['{"text":"\\ud800"}', 'is not JSON'],
    [Buffer.from([0x7b, 0xff]), 'is not UTF-8'],
    ['["good"]', 'is JSON, but no object'],
    ['{"txet":"good"}', 'text is missing'],
    ['{"text":3}', 'text is no string'],
  ]) {
    const input = Buffer.concat([Buffer.from(good + good), Buffer.from(line), Buffer.from(`\n${good}`)]);
    const { status, stdout, stderr } = bothWith(input, 'classify', bert, '--jsonl');
    assert.deepEqual([status, stderr], [1, `attn: line 3: ${why}\n`]);
    assert.equal(linesOf(stdout).length, 2);
    const vectors = bothWith(input, 'embed', bert, '--jsonl', '--output', 'npy').stdout;
    assert.match(vectors, /'shape': \(2, 32\)/);
    assert.equal(vectors.length, 128 + 2 * 4 * 32);
  }
  for (const [line, why] of [
    ['{"query":"good"}', 'documents is no list of strings'],
    ['{"query":"good","documents":["a",1]}', 'documents is no list of strings'],
    ['{"documents":[]}', 'query is missing'],
  ])
    assert.deepEqual(bothWith(line, 'rank', scorer), { status: 1, stdout: '', stderr: `attn: line 1: ${why}\n` });
  assert.equal(bothWith('{"question":"who"}', 'answer', model('tiny-bert-qa')).stderr, 'attn: line 1: context is missing\n');
  for (const program of Object.keys(programs)) {
    const { status, stdout, stderr } = runWith('[MASK]\nnone', program, 'fill', model('tiny-bert-mlm'));
    assert.deepEqual([status, linesOf(stdout).length], [1, 1]);
    assert.match(stderr, /^attn: line 2: ARGUMENT: fill/);
    assert.equal(run(program, 'embed', bert, 'no such file').status, 1);
    assert.equal(run(program, 'embed', work).status, 1);
  }
  const misfit = (...args) => bothWith('good', ...args);
  assert.deepEqual(misfit('tag', bert), {
    status: 1,
    stdout: '',
    stderr: 'attn: MODEL is for text-classification, expected one for token-classification\n',
  });
  assert.equal(misfit('rank', bert).stderr, 'attn: MODEL has 3 labels, expected one, as a cross-encoder has\n');
});

await checks.check('texts: a file of any size takes no memory, and who reads no further ends it quietly', () => {
  const long = join(work, 'long.txt');
  writeFileSync(long, 'she is good\n'.repeat(20_000));
  for (const [program, [file, ...first]] of Object.entries(programs)) {
    const shell = (script, ...args) =>
      spawnSync('bash', ['-c', script, 'bash', file, ...first, ...args], { encoding: 'utf8', cwd: work, timeout: 100_000 });
    const { stdout, stderr } = shell('"$@" | head -n 1 | wc -l', 'embed', bert, long, '--max-length', '4');
    assert.deepEqual([stdout.trim(), stderr], ['1', '']);
    const peak = (lines) =>
      Number(/\d+$/.exec(shell(`head -n ${lines} ${long} | /usr/bin/time -f %M "$@" 2>&1 >/dev/null`, 'embed', bert).stdout.trim()));
    // In Node the collector's habits are more than all of it.
    if (program === 'native' && existsSync('/usr/bin/time')) assert.ok(peak(20_000) < peak(2000) + 1500, 'KiB');
  }
});

await checks.check('help and version', () => {
  const { version } = JSON.parse(readFileSync(at('web/lib/package.json'), 'utf8'));
  assert.deepEqual(both('--version'), { status: 0, stdout: `${version}\n`, stderr: '' });
  const { status, stdout, stderr } = both('--help');
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout, /attn convert FOLDER OUT --weights float32\|float16\|int8\n[^]*attn inspect FOLDER\n/);
  assert.equal(both('-h').stdout, stdout);
  for (const command of ['convert', 'inspect', 'embed', 'classify', 'tag', 'fill', 'answer', 'rank']) {
    assert.match(stdout, new RegExp(`^attn ${command} `, 'm'));
    assert.match(both(command, '--help').stdout, new RegExp(`^attn ${command} [^\\n]*\\n(?!attn)[^]*\\nExit code: `));
  }
  assert.deepEqual(both(), { status: 2, stdout, stderr: '' });
});

rmSync(work, { recursive: true });
const { passed, failed } = checks.counts;
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
