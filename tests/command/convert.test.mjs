/**
 * Tests attn convert, inspect, --help and --version of the npm package and the native build. Needs web/lib/dist and
 * build/native.
 */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { load } from 'attn';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { bert, both, bothOfEach, filesOf, programs, removeWork, run, work } from './programs.mjs';

after(removeWork);

const folders = ['testdata/models', 'models'].flatMap((parent) =>
  existsSync(at(parent))
    ? readdirSync(at(parent), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => at(parent, name))
        // models/SmolLM2-135M-Instruct has a .gguf file alone.
        .filter((folder) => readdirSync(folder).some((file) => file.endsWith('.json')))
    : [],
);
assert.ok(folders.length >= 12, folders.join());

/**
 * Folders that the program of the package converts and describes: with each naming of sizes, modules, and without a
 * native tokenizer. For the others the package is called, which is what the program does, without a start of Node.
 */
const byProgram = ['tiny-bert-cls', 'tiny-distilbert', 'tiny-gpt2', 'tiny-nomic'];
let attn;
before(async () => (attn = await load({ threads: 1 })));
after(() => attn.dispose());

async function exported(folder, weights) {
  const model = await attn.loadModel(folder, { weights: weights === 'int8' ? 'int8' : 'float32' });
  const files = Object.entries(await model.export({ weights })).map(([name, bytes]) => [name, Buffer.from(bytes)]);
  model.dispose();
  return Object.fromEntries(files.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function converted(program, folder, out, weights) {
  assert.deepEqual(run(program, 'convert', folder, out, '--weights', weights), { status: 0, stdout: '', stderr: '' });
  return filesOf(out);
}

for (const folder of folders) {
  const name = basename(folder);
  test(`convert: both programs write the same files for ${name}, and attn accepts them`, limit, async (t) => {
    const sizes = {};
    for (const weights of ['float32', 'float16', 'int8']) {
      const out = join(work, name, weights);
      const native = converted('native', folder, out, weights);
      const isRun = byProgram.includes(name);
      const npx = isRun ? converted('npx', folder, `${out}-npx`, weights) : await exported(folder, weights);
      assert.deepEqual(Object.keys(native), Object.keys(npx));
      for (const [file, bytes] of Object.entries(npx)) assert.ok(bytes.equals(native[file]), `${weights}: ${file}`);
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
      // Numbers keep their notation: transformers distinguishes 2.0 from 2.
      const floats = (json) =>
        (
          String(json)
            .replace(/"quantization_config".*/, '')
            .match(/: -?\d+\.\d+/g) ?? []
        ).sort();
      assert.deepEqual(floats(npx['config.json']), floats(given['config.json']));

      const { status, stdout } = run('native', 'inspect', out);
      assert.equal(status, 0);
      assert.match(stdout, new RegExp(`^attn        takes it, as ${weights === 'int8' ? 'int8' : 'float32'}$`, 'm'));
      if (isRun) assert.deepEqual(run('npx', 'inspect', out).stdout, stdout.replace(/^ {12}but texts natively: UNSUPPORTED: .*\n/m, ''));
      sizes[weights] = Object.values(npx).reduce((sum, { length }) => sum + length, 0);
      // Converting int8 again changes nothing; converting it back gives the rounded values.
      if (weights === 'int8') {
        const again = join(work, name, 'again');
        assert.equal(run('native', 'convert', out, again, '--weights', 'int8').status, 0);
        assert.ok(filesOf(again)['model.safetensors'].equals(npx['model.safetensors']));
      }
    }
    const weightsBytes = Object.values(sizes).map((size) => `${(size / 1e6).toFixed(2)} MB`);
    t.diagnostic(weightsBytes.join(', '));
    assert.ok(Math.max(sizes.int8, sizes.float16) < sizes.float32);
    rmSync(join(work, name), { recursive: true });
  });
}

test('inspect prints architecture, sizes, tokenizer, modules, weights and head of a model folder', limit, () => {
  const { status, stdout, stderr } = both('inspect', at('testdata/models/tiny-bert-cls'));
  assert.deepEqual([status, stderr], [0, '']);
  for (const line of [
    /^model {7}BertModel \(bert\)$/m,
    /^sizes {7}2 layers, 4 heads, hidden 32, intermediate 48, vocabulary 339, positions 64$/m,
    /^tokenizer {3}WordPiece$/m,
    /^modules {5}Transformer, Pooling \(cls\), Normalize$/m,
    /^weights {5}37 F16 of 0\.1 MB$/m,
    /^parameters {2}28032$/m,
    /^head {8}none$/m,
    /^attn {8}takes it, as float32$/m,
  ])
    assert.match(stdout, line);
  assert.match(both('inspect', bert).stdout, /^head {8}3 labels: negative, neutral, positive$/m);
  // An interrupted download of the Hub leaves links to nothing.
  const linked = join(work, 'linked');
  mkdirSync(linked);
  for (const [name, bytes] of Object.entries(filesOf(bert))) writeFileSync(join(linked, name), bytes);
  symlinkSync('../blobs/gone', join(linked, 'vocab.txt'));
  assert.equal(both('inspect', linked).stdout, both('inspect', bert).stdout);
});

test('inspect adds up the tensors of all files of a model', limit, async () => {
  const gpt2 = at('testdata/models/tiny-gpt2');
  const folder = join(work, 'sharded');
  mkdirSync(folder);
  for (const [name, bytes] of Object.entries(filesOf(gpt2))) if (name !== 'model.safetensors') writeFileSync(join(folder, name), bytes);
  const model = await attn.loadModel(gpt2);
  const tensors = [...model.stateDict()];
  const files = { 'a.safetensors': tensors.slice(0, 5), 'b.safetensors': tensors.slice(5) };
  const names = Object.entries(files).flatMap(([file, own]) => own.map(([name]) => [name, file]));
  const index = join(folder, 'model.safetensors.index.json');
  writeFileSync(index, JSON.stringify({ weight_map: Object.fromEntries(names) }));
  for (const [file, own] of Object.entries(files)) writeFileSync(join(folder, file), attn.writeSafetensors(Object.fromEntries(own)));
  const { stdout } = run('native', 'inspect', folder);
  const numbers = tensors.reduce((sum, [, { data }]) => sum + data.length, 0);
  const weights = `weights     ${tensors.length} F32 of ${((numbers * 4) / 1e6).toFixed(1)} MB`;
  assert.match(stdout, new RegExp(`^${weights} in 2 files\n[^]*^parameters {2}${numbers}$`, 'm'));
  assert.ok(run('npx', 'inspect', folder).stdout.includes(`${weights} in 2 files\n`));
  writeFileSync(index, JSON.stringify({ weight_map: { a: '../sharded/a.safetensors' } }));
  for (const program of Object.keys(programs)) assert.match(run(program, 'inspect', folder).stdout, /^weights {5}none that can be read$/m);
});

test('inspect describes a .gguf file as the folder that it was made from, with its own types', limit, () => {
  const line = (name, text) => new RegExp(`^${name}.*`, 'm').exec(text)[0];
  for (const model of ['tiny-gpt2', 'tiny-gemma-3', 'tiny-neox']) {
    const described = both('inspect', at(`testdata/gguf/${model}.gguf`));
    assert.equal(described.status, 0);
    const { stdout } = run('native', 'inspect', at('testdata/models', model));
    for (const name of ['model', 'tokenizer', 'parameters', 'head', 'attn']) assert.equal(line(name, described.stdout), line(name, stdout));
    assert.match(
      described.stdout,
      /^sizes {7}2 layers, 4 heads, .*positions 64\n[^]*^weights {5}\d+ \w+ of \d+\.\d MB.*\nfiles {7}1 of \d+\.\d MB$/m,
    );
  }
});

test('inspect --tensors lists name, type and shape of each tensor in the order of the files', limit, () => {
  const listed = (folder) =>
    both('inspect', folder, '--tensors')
      .stdout.split('\n')
      .filter((line) => line.includes('\t'))
      .map((line) => line.split('\t'));
  const folder = at('testdata/models/tiny-bert-cls');
  const bytes = readFileSync(join(folder, 'model.safetensors'));
  const header = JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0))));
  delete header['__metadata__'];
  const stored = Object.entries(header).sort(([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0]);
  assert.deepEqual(
    listed(folder),
    stored.map(([name, { dtype, shape }]) => [name, dtype, `(${shape.join(',')})`]),
  );
  // Shapes of a .gguf file are in torch's order.
  const gguf = listed(at('testdata/gguf/tiny-gpt2.gguf'));
  assert.ok(gguf.some(([name, , shape]) => name === 'token_embd.weight' && shape === '(317,24)'));
  assert.equal(both('inspect', folder).stdout.includes('\t'), false);
});

test('inspect prints no control characters of a hostile .gguf file, and ends for any length in it', limit, () => {
  const whole = readFileSync(at('testdata/gguf/tiny-gpt2.gguf'));
  const name = Buffer.from('general.architecture');
  const place = whole.indexOf(name) + name.length + 4;
  assert.equal(whole.readBigUInt64LE(place), 4n);
  const changed = (change) => {
    const file = Buffer.from(whole);
    change(file);
    return file;
  };
  const files = {
    escapes: changed((file) => file.write('\x1b[2J', place + 8, 'latin1')),
    keys: changed((file) => file.writeBigUInt64LE(2n ** 63n, 16)),
    tensors: changed((file) => file.writeBigUInt64LE(2n ** 63n, 8)),
    text: changed((file) => file.writeBigUInt64LE(2n ** 62n, place)),
    cut: whole.subarray(0, place + 10),
    data: whole.subarray(0, whole.length - 1000),
    empty: Buffer.alloc(0),
    other: Buffer.from('GGUF\x1b[31mnot really'),
  };
  for (const [kind, bytes] of Object.entries(files)) {
    const path = join(work, `${kind}.gguf`);
    writeFileSync(path, bytes);
    for (const program of Object.keys(programs)) {
      const { status, stdout, stderr } = run(program, 'inspect', path);
      assert.equal(status, 1, `${program} ${kind}`);
      assert.match(stdout, /^attn {8}refuses it: (FORMAT|UNSUPPORTED): /m, `${program} ${kind}`);
      assert.doesNotMatch(stdout + stderr, /(?!\n)[\p{Cc}\p{Bidi_Control}]/u, `${program} ${kind}`);
    }
  }
  const gone = both('inspect', join(work, 'gone.gguf'));
  assert.equal(gone.status, 1);
  assert.match(gone.stderr, /^attn: FOLDER is .*gone\.gguf, which is not a folder, expected a model folder$/m);
});

test('inspect describes an unsupported model, gives the reason and exits with 1', limit, () => {
  const folder = join(work, 'refused');
  mkdirSync(folder);
  for (const [name, bytes] of Object.entries(filesOf(bert))) writeFileSync(join(folder, name), bytes);
  const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, quantization_config: { quant_method: 'gptq' } }));
  const { status, stdout } = run('npx', 'inspect', folder);
  // Errors begin with the operation, which differs in the native program.
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
      stderr: `attn: FOLDER is ${path}, which is not a folder, expected a model folder\n`,
    });
  assert.ok(!existsSync(join(work, 'never')));
});

test('convert to float16 names a tensor with values out of range and writes nothing', limit, async () => {
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

test('an invalid call exits with 2 and names the mistake with a hint', limit, async () => {
  const wrong = [
    [['inspct', bert], /^attn: command is inspct, expected one of convert, inspect, .*\. Did you mean inspect\?$/m],
    [['export', bert], /^attn: command is export, expected one of [\w, ]+$/m],
    [['convert', bert, 'out', '--wieghts', 'int8'], /^attn: option --wieghts is unknown, expected one of help, .*\. Did you mean weights\?$/m],
    [['convert', bert, 'out', '--weights', 'int9'], /^attn: --weights is int9, expected one of float32, float16, int8\. Did you mean int8\?$/m],
    [['convert', bert, 'out', '--weights=flaot16'], /^attn: --weights is flaot16, expected one of float32, float16, int8\. Did you mean float16\?$/m],
    [['convert', bert, 'out'], /^attn: --weights is missing, expected one of float32, float16, int8$/m],
    [['convert', bert, 'out', '--weights'], /^attn: --weights is missing, /m],
    [['convert', bert, '--weights', 'int8'], /^attn: convert has 1 arguments, expected FOLDER OUT$/m],
    [['inspect'], /^attn: inspect has 0 arguments, expected FOLDER$/m],
    [['inspect', bert, '--weights', 'int8'], /^attn: inspect takes no --weights$/m],
    [['convert', bert, bert, '--weights', 'int8'], /^attn: OUT is .*, which is not empty, expected a new folder$/m],
    [['convert', bert, join(bert, 'config.json'), '--weights', 'int8'], /^attn: OUT is .*, which is a file, expected a new folder$/m],
    [['convert', bert, '', '--weights', 'int8'], /^attn: OUT is empty$/m],
    [['inspect', ''], /^attn: FOLDER is empty$/m],
    [['convert', bert, 'out', '--', '--weights', 'int8'], /^attn: convert has 4 arguments, expected FOLDER OUT$/m],
    [['convert', '--', bert, 'out'], /^attn: --weights is missing, /m],
    [['embd', bert], /^attn: command is embd, .*\. Did you mean embed\?$/m],
    [['embedding', bert], /^attn: command is embedding, .*\. Did you mean embed\?$/m],
    [['embed'], /^attn: embed has 0 arguments, expected MODEL \[FILE\]$/m],
    [['embed', bert, 'a', 'b'], /^attn: embed has 3 arguments, expected MODEL \[FILE\]$/m],
    [['embed', bert, ''], /^attn: FILE is empty$/m],
    [['embed', bert, '--batchsize', '3'], /^attn: option --batchsize is unknown, .*\. Did you mean batch-size\?$/m],
    [['embed', bert, '--batch-size', '0'], /^attn: --batch-size is 0, expected a whole number from 1 to 999999$/m],
    [['embed', bert, '--batch-size', '1000000'], /^attn: --batch-size is 1000000, expected a whole number/m],
    [['tag', bert, '--stride=-1'], /^attn: --stride is -1, expected a whole number from 0 to 999999$/m],
    [
      ['tag', bert, '--aggregation', 'frist'],
      /^attn: --aggregation is frist, expected one of none, simple, first, average, max\. Did you mean first\?$/m,
    ],
    [['embed', bert, '--out'], /^attn: --out is missing, expected a path$/m],
    [['classify', bert, '--output', 'npy'], /^attn: --output is npy, expected one of jsonl, text$/m],
    [['classify', bert, '--stride', '2'], /^attn: classify takes no --stride$/m],
    [['generate', bert, ''], /^attn: TEXT is empty$/m],
    [['score', bert, '-'], /^attn: TEXT is empty$/m],
    [['generate', bert], /^attn: generate has 1 arguments, expected MODEL TEXT$/m],
    [['generate', bert, 'a', '--max-new-token', '3'], /^attn: option --max-new-token is unknown, .*\. Did you mean max-new-tokens\?$/m],
    [['generate', bert, 'a', '--temperature', '0.0'], /^attn: --temperature is 0\.0, expected a number above 0$/m],
    [['generate', bert, 'a', '--top-p', '1.5'], /^attn: --top-p is 1\.5, expected a number above 0 and at most 1$/m],
    [['generate', bert, 'a', '--min-p=-.5'], /^attn: --min-p is -\.5, expected a number from 0 to 1$/m],
    [['lens', bert], /^attn: TEXT is missing$/m],
    [['lens', bert, 'a', '--method', 'logit-attribution'], /^attn: --target is missing, expected a token$/m],
    [['lens', bert, 'a', '--method', 'patch-activations', '--target', 'a'], /^attn: --corrupted is missing, expected a text$/m],
    [['lens', bert, 'a', '--site', 'mlp'], /^attn: lens --method logit-lens takes no --site$/m],
    [['lens', bert, 'a', '--method', 'logitlens'], /^attn: --method is logitlens, expected one of .*\. Did you mean logit-lens\?$/m],
    [['generate', bert, 'a', '--temperature', '1e-1'], /^attn: --temperature is 1e-1, expected a number above 0$/m],
  ];
  const before = filesOf(bert);
  const results = await bothOfEach(wrong.map(([args]) => args));
  for (const [i, [args, message]] of wrong.entries()) {
    const { status, stdout, stderr } = results[i];
    assert.deepEqual([status, stdout], [2, ''], args.join(' '));
    assert.match(stderr, message);
  }
  assert.deepEqual(filesOf(bert), before);
});

test('convert leaves no files behind if the disk is full, and succeeds when repeated', limit, () => {
  const sentiment = at('testdata/models/sentiment');
  for (const [program, [file, ...first]] of Object.entries(programs))
    for (const exists of [false, true]) {
      const out = join(work, `full-${program}-${exists}`);
      if (exists) mkdirSync(out);
      // Some 0.2 MB a file: the tokenizer fits, the weights do not.
      const limited = ['-c', 'trap "" XFSZ; ulimit -f 450; exec "$@"', 'sh', file, ...first, 'convert', sentiment, out, '--weights', 'int8'];
      const { status, stderr } = spawnSync('sh', limited, { encoding: 'utf8', cwd: work });
      assert.equal(status, 1, stderr);
      assert.match(stderr, /^attn: (\S*model\.safetensors: File too large|ARGUMENT: save_pretrained: .*model\.safetensors)/);
      assert.equal(existsSync(out), exists);
      if (exists) assert.deepEqual(readdirSync(out), []);
      assert.equal(run(program, 'convert', sentiment, out, '--weights', 'int8').status, 0);
    }
});

test('--help and --version print the same in both programs', limit, async () => {
  const { version } = JSON.parse(readFileSync(at('web/lib/package.json'), 'utf8'));
  assert.deepEqual(both('--version'), { status: 0, stdout: `${version}\n`, stderr: '' });
  const { status, stdout, stderr } = both('--help');
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout, /attn convert FOLDER OUT --weights float32\|float16\|int8\n[^]*attn inspect FOLDER\n/);
  const commands = ['convert', 'inspect', 'embed', 'classify', 'tag', 'fill', 'answer', 'rank', 'generate', 'score', 'lens', 'index', 'search'];
  const [short, none, ...helps] = await bothOfEach([['-h'], [], ...commands.map((command) => [command, '--help'])]);
  assert.equal(short.stdout, stdout);
  assert.deepEqual(none, { status: 2, stdout, stderr: '' });
  for (const [i, command] of commands.entries()) {
    assert.match(stdout, new RegExp(`^attn ${command} `, 'm'));
    assert.match(helps[i].stdout, new RegExp(`^attn ${command} [^\\n]*\\n(?!attn)[^]*\\nExit code: `));
  }
});
