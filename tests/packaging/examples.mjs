/** The examples: each is run as it stands. */
import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { engines, launch, missing, within } from '../../wasm-tests/browser/drivers.mjs';
import { Checks } from '../../wasm-tests/support/checks.mjs';
import { absentFile } from '../../wasm-tests/support/model_folders.mjs';
import { repository } from '../../wasm-tests/support/paths.mjs';
import { buildExample } from '../../wasm-tests/support/run.mjs';
import { tests as requirements } from './requirements.mjs';
import { tests as serving } from './serve.mjs';

const at = (...parts) => join(repository, ...parts);
const execute = promisify(execFile);

async function output(program, args, { input = '', ...options } = {}) {
  try {
    const running = execute(program, args, { cwd: repository, timeout: 120000, maxBuffer: 1 << 24, ...options });
    // A program may end before it has read anything.
    running.child.stdin.on('error', () => {}).end(input);
    return (await running).stdout;
  } catch (error) {
    throw new Error(`${program} ${args.join(' ')}: exit ${error.code}\n${error.stdout ?? ''}${error.stderr ?? ''}`, { cause: error });
  }
}

/** A program that has to refuse: resolves to its exit code and what it said. */
async function refusal(program, args, options = {}) {
  const error = await execute(program, args, { cwd: repository, timeout: 120000, ...options }).then(
    ({ stdout }) => assert.fail(`${args.join(' ')} ended well: ${stdout}`),
    (failure) => failure,
  );
  return { code: error.code, text: `${error.stdout}${error.stderr}` };
}

/** What each Node example must print: these numbers, or all of a file's text, which CTest holds against the twin in C++ too. */
const prints = {
  'attention.mjs': [/0\.0000 {2}0\.9820 {2}0\.0180/, /1\.9366 {2}6\.6831 {2}1\.5951/],
  'multi_head_attention.mjs': [/output \[ 1, 19, 384 \]/, /PyTorch: \d\.\d+e-[67]/],
};
const texts = Object.fromEntries(
  readdirSync(at('examples/expected')).map((name) => [name.replace('.txt', '.mjs'), readFileSync(at('examples/expected', name), 'utf8')]),
);

const miniLm = at('models/all-MiniLM-L6-v2');

/** The lines of a text that are numbers before words, as [number, words]. */
const numbered = (text, pattern) => [...text.matchAll(pattern)].map(([, number, words]) => [Number(number), words]);

/** What the examples on whole models do; those on MiniLM need models/. */
const ofModels = {
  'classify.mjs': {
    async 'says what the model that comes along thinks'(run) {
      const lines = (await run()).trim().split('\n');
      assert.match(lines[0], /^positive 0\.[89]\d\d {2}A warm, funny and clever film\.$/);
      assert.match(lines[1], /^negative 0\.[789]\d\d {2}The plot is dull/);
      assert.equal(lines.length, 2);
    },
    async 'reads lines'(run) {
      const input = 'A delight from start to end.\n\nA complete waste of time.\n';
      assert.match(
        await run(['-'], { input }),
        /^positive 0\.\d{3} {2}A delight.*\n\w+ 0\.\d{3} {2}\nnegative 0\.\d{3} {2}A complete waste of time\.\n$/,
      );
    },
    async 'says that a model without a head does not classify, and that a folder is empty'(run, refused) {
      assert.match((await refused(['--model', 'testdata/models/tiny-mpnet-mean', 'good'])).text, /without a head/);
      assert.match((await refused(['--model', 'testdata', 'good'])).text, /config\.json is not there/);
    },
  },
  'explain.mjs': {
    async 'finds the words that speak for the answer, and against it'(run) {
      const [praised, panned] = (await run()).split(/^(?=negative)/m);
      assert.match(praised, /^positive 0\.[89]\d\d {2}The ending is dreadful, but the film is warm and funny\.$/m);
      assert.match(panned, /^negative 0\.[89]\d\d {2}The plot is dull, and the acting is dreadful\.$/m);
      const ends = (text) => {
        const words = numbered(text, /^ +(-?\d\.\d{3}) {2}(\S+)$/gm).sort(([a], [b]) => a - b);
        return [words[0][1], words.at(-1)[1]];
      };
      assert.deepEqual(ends(praised), ['dreadful', 'funny']);
      assert.equal(ends(panned)[1], 'dreadful');
    },
    async 'colours them in a terminal, blue for, orange against'(run) {
      const [praised] = (await run([], { env: { ...process.env, FORCE_COLOR: '1' } })).split('\n');
      assert.match(praised, /;48;5;2\d\dmdreadful\x1b\[0m.* the film .*;48;5;75mfunny\x1b\[0m/);
    },
    async 'takes every method, and a label by its name and number'(run) {
      for (const method of ['gradient_x_input', 'attention_rollout', 'attention_gradient', 'leave_one_out']) {
        const words = numbered(await run(['--method', method, 'The plot is dull.']), /^ +(-?\d\.\d{3}) {2}(\S+)$/gm);
        assert.equal(words.reduce((best, word) => (word[0] > best[0] ? word : best))[1], 'dull', method);
      }
      const against = await run(['--target', 'positive', 'The plot is dull.']);
      assert.match(against, /^positive 0\.[12]\d\d {2}The[^]*^ +-0\.[4-9]\d\d {2}dull$/m);
      assert.equal(await run(['--target', '1', 'The plot is dull.']), against);
    },
    async 'says what is mistyped'(run, refused) {
      const { code, text } = await refused(['--method', 'saliency', 'good']);
      assert.equal(code, 2);
      assert.match(text, /^--method is saliency; it has to be one of integrated_gradients, .*\n\nnode examples\/node\/explain\.mjs/);
      assert.match((await refused(['--target', 'good', 'good'])).text, /target "good", expected one of negative, positive/);
      assert.match((await refused(['--model', 'testdata/models/tiny-mpnet-mean', 'good'])).text, /no head/);
    },
  },
  'fine_tune.mjs': {
    async 'learns from a CSV, and writes a folder that is read again'(run) {
      const [csv, out] = [at('build/tests/fine_tune.csv'), at('build/tests/fine_tuned')];
      rmSync(out, { recursive: true, force: true });
      mkdirSync(at('build/tests'), { recursive: true });
      const { texts } = JSON.parse(readFileSync(at('testdata/sentiment/films.json'), 'utf8'));
      const line = ({ text, label }) => `${label ? 'good' : 'so ""so""'}`.replace(/^(.*)$/, '"$1"') + `,"${text.replaceAll('"', '""')}"\r\n`;
      writeFileSync(
        csv,
        `\uFEFFlabel,text\r\n${texts
          .filter((_, i) => i % 4 === 0)
          .map(line)
          .join('')}`,
      );
      const text = await run([csv, '--out', out]);
      assert.match(
        text,
        /^530 texts, labels good, so "so"\n(epoch [123], step \d+ of 81, loss 0\.\d{3}, [6-9]\d\.\d % of held-out texts right\n){3}written/,
      );
      const answers = await output(process.execPath, [at('examples/node/classify.mjs'), '--model', out, 'A delight.', 'Dull and far too long.']);
      assert.match(answers, /^good 0\.\d{3} {2}A delight\.\nso "so" 0\.\d{3} {2}Dull and far too long\.\n$/);
    },
    async 'says which line of the CSV is wrong, and writes nothing'(run, refused) {
      const [csv, out] = [at('build/tests/bad.csv'), at('build/tests/not_written')];
      for (const [content, words] of [
        ['a,good\n"b\nb",bad\nc\n', /bad\.csv, line 4: 1 fields, expected 2, a text and a label$/m],
        ['text,label\na,good\n\n"b,bad\nc,good\n', /bad\.csv, line 4: a quote opens and does not close$/m],
        ['a,good\n"b"b,bad\n', /bad\.csv, line 2: "b" after a closing quote/],
        ['a,good\nb "c",bad\n', /bad\.csv, line 2: a quote in the middle/],
        ['a,good\nb,\n', /bad\.csv, line 2: the label is empty$/m],
        ['id,text,label\n1,a,good\n2,b,bad,worse\n', /bad\.csv, line 3: 4 fields, expected 3$/m],
        ['a,good\nb,good\n', /bad\.csv has one label, good; two/],
        ['', /bad\.csv has no texts/],
      ]) {
        writeFileSync(csv, content);
        const { code, text } = await refused([csv, '--out', out]);
        assert.equal(code, 1, content);
        assert.match(text, words);
      }
      assert.ok(!existsSync(out));
      assert.match((await refused(['none.csv', '--out', out])).text, /ENOENT/);
    },
    async 'says what is mistyped'(run, refused) {
      for (const [args, words] of [
        [['a.csv'], /^--out is missing/],
        [['--out', 'x'], /^expected one CSV file/],
        [['a.csv', '--out', 'x', '--layers', 'last'], /^--layers is last; it has to be head, all or a number/],
        [['a.csv', '--out', 'x', '--epochs', '0'], /^--epochs is 0/],
      ]) {
        const { code, text } = await refused(args);
        assert.equal(code, 2);
        assert.match(text, words);
      }
    },
  },
  'words.mjs': {
    async 'finds neighbours, similarities and analogies'(run) {
      const text = await run();
      assert.match(text, /^nearest to king: kings 0\.690, queen 0\.627, monarch 0\.494, prince 0\.463, monarchy 0\.447$/m);
      assert.match(text, /^dog and puppy: 0\.540$/m);
      assert.match(text, /^king - man \+ woman: queen 0\.511, kings 0\.463/m);
    },
    async 'takes words and analogies of its user'(run) {
      assert.match(await run(['--top', '1', 'Paris']), /^nearest to Paris: parisian 0\.569\n$/);
      assert.match(await run(['paris', '-', 'france', '+', 'italy']), /^paris - france \+ italy: \w+ 0\.\d{3}(, \w+ 0\.\d{3}){4}\n$/);
    },
    async 'says what the tokenizer makes of a word that the table does not have, and what an analogy is'(run, refused) {
      assert.match(
        (await refused(['flibbertigibbet'])).text,
        /“flibbertigibbet” is not one entry of the table: the tokenizer makes fl ##ib .* of it/,
      );
      assert.match((await refused(['king', '-', 'man'])).text, /expected A - B \+ C/);
      assert.equal((await refused(['--top', 'x', 'king'])).code, 2);
    },
  },
  'semantic_search.mjs': {
    async 'indexes reviews and answers, with the time'(run, refused, note) {
      const text = await run(['--first', '370', '--top', '3']);
      assert.match(text, /^model loaded in \d+\.\d\d s \((simd|relaxed), \d threads?\)$/m);
      note(/^370 reviews indexed in \d+\.\d s, \d+ a second$/m.exec(text)?.[0] ?? assert.fail(text));
      assert.match(text, /^“customer service never answers” \(\d+\.\d ms\)$/m);
      const found = numbered(text, /^ {2}(0\.\d{3}) {2}(.*)$/gm);
      assert.deepEqual(
        found.map(([similarity]) => similarity),
        [0.661, 0.596, 0.596],
      );
      for (const [, review] of found) assert.match(review, /customer service/);
    },
    async 'takes a query, and fewer reviews than answers'(run) {
      assert.equal(numbered(await run(['--first', '2', 'the', 'player shows no picture']), /^ {2}(-?\d\.\d{3}) {2}(.*)$/gm).length, 2);
    },
    async 'says what is mistyped'(run, refused) {
      const { code, text } = await refused(['--fisrt', '5']);
      assert.equal(code, 2);
      assert.match(text, /'--fisrt'[^]*--first N/);
      assert.match((await refused(['--first', '0'])).text, /--first is 0; it has to be a whole number/);
    },
  },
};

async function modelExample(checks, name, parts) {
  const program = (flags, args) => [process.execPath, [...flags, at('examples/node', name), ...args]];
  await checks.check(`${name} --help`, async () => assert.match(await output(...program([], ['--help'])), new RegExp(`^node examples/node/${name}`)));
  if (!existsSync(miniLm) && !['classify.mjs', 'explain.mjs', 'fine_tune.mjs'].includes(name)) {
    // tools/test.mjs fetches it; with CI=true its absence is a failure there and here.
    if (process.env.CI === 'true')
      await checks.check(`${name} has its model`, () => assert.fail('models/all-MiniLM-L6-v2 is missing: tools/setup models'));
    else
      await checks.check(`${name} says how to fetch its model`, async () =>
        assert.match((await refusal(...program([], []))).text, /config\.json is not there\n.*tools\/setup models/),
      );
    return;
  }
  for (const [i, [what, run]] of Object.entries(parts).entries())
    for (const flags of i === 0 ? [[], ['--experimental-wasm-relaxed-simd']] : [[]])
      await checks.check(`${name} ${what}${flags.length ? ', with relaxed SIMD' : ''}`, (note) =>
        run(
          (args = [], options) => output(...program(flags, args), options),
          (args) => refusal(...program(flags, args)),
          note,
        ),
      );
}

/** examples/browser/sentiment.html as tools/serve.mjs serves it. */
async function sentimentPage(engine) {
  const server = await serve({ port: 0, root: at('examples/browser') });
  const driver = await launch(engine);
  const status = async (pattern, what) => {
    for (let i = 0; i < 300; ++i) {
      const text = await driver.evaluate("document.querySelector('[role=status]').textContent");
      if (pattern.test(text)) return text;
      await sleep(50);
    }
    throw new Error(`${what}: ${await driver.evaluate("document.querySelector('[role=status]').textContent")}`);
  };
  try {
    await within(driver.open(`${server.url}examples/browser/sentiment.html`), 30000, 'the page did not open');
    await status(/^positive, \d\d\.\d % sure, in \d+\.\d ms$/, 'the first answer');
    await driver.fill('#text', 'The plot is dull, and the acting is dreadful.');
    await status(/^negative, \d\d\.\d % sure/, 'a text that was typed');
    assert.ok((await driver.evaluate("document.querySelector('meter').value")) < 0.3, 'the bar shows the probability of positive');
    await driver.evaluate("(() => { const e = document.querySelector('#text'); e.value = ' '; e.dispatchEvent(new Event('input')); })()");
    await status(/^Write something\.$/, 'no text');
    await driver.evaluate(`(() => { ${readFileSync(at('node_modules/axe-core/axe.min.js'), 'utf8')} })(), undefined`);
    const findings =
      "axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => `${v.id}: ${v.nodes[0].failureSummary}`))";
    assert.deepEqual(await driver.evaluate(findings), [], 'axe-core');
    const messages = (driver.messages() ?? []).filter((text) => !absentFile.test(text));
    assert.deepEqual(messages, [], 'messages in the console');
    const elsewhere = (driver.requests() ?? []).filter((url) => !url.startsWith(server.url) && !/^(data|about|blob):/.test(url));
    assert.deepEqual(elsewhere, [], 'requests to other hosts');
  } finally {
    await within(driver.close(), 20000, `${engine} did not close`).catch((error) => console.log(error.message));
    await server.close();
  }
}

/** What `make demo` prints before it serves. */
async function demo() {
  const text = await output(process.execPath, [at('tools/demo.mjs')], { env: { ...process.env, SERVE: '0' } });
  assert.match(text, /^ {6}\[CLS\] .*\[CLS\]$/m, 'a map');
  assert.match(text, /^Strongest: got → awarded 0\.58, /m);
  assert.ok(Number(/^Largest difference to PyTorch .*: (\d\.\de-\d+)$/m.exec(text)[1]) < 2e-6, 'the difference to PyTorch');
  assert.match(text, /^“It could have been a great film, but the story is dull\.” → negative, [5-9]\d % sure$/m);
  assert.match(text, existsSync(miniLm) ? /^ {3}0\.523 {2}That person is glad\.$/m : /tools\/setup models/);
}

/** The server of `make demo`. */
async function demoServer() {
  const server = await serve({ port: 0, root: at('examples/browser') });
  try {
    const get = async (path) => {
      const response = await fetch(server.url + path);
      return { status: response.status, type: response.headers.get('content-type'), bytes: Buffer.from(await response.arrayBuffer()) };
    };
    const folders = ['testdata/models/sentiment', ...(existsSync(miniLm) ? ['models/all-MiniLM-L6-v2'] : [])];
    for (const path of folders.map((folder) => `${folder}/config.json`)) {
      const { status, type, bytes } = await get(path);
      assert.deepEqual([status, type, bytes.equals(readFileSync(at(path)))], [200, 'application/json', true], path);
    }
    for (const path of ['models/none/config.json', 'models/', 'package.json']) assert.equal((await get(path)).status, 404, path);
    for (const path of ['models/..%2fpackage.json', 'web/lib/dist/..%2fpackage.json']) assert.equal((await get(path)).status, 403, path);
    assert.equal((await get('models/%')).status, 400);
  } finally {
    await server.close();
  }
}

export async function examples() {
  const checks = new Checks('examples');
  const known = [...Object.keys(prints), ...Object.keys(texts)].sort();
  await checks.check('every Node example is known here', () =>
    assert.deepEqual(readdirSync(at('examples/node')).sort(), [...known, ...Object.keys(ofModels)].sort()),
  );
  await checks.check('each that needs no model has a twin in C++', () =>
    assert.deepEqual(
      readdirSync(at('examples/cpp'))
        .filter((name) => name.endsWith('.cpp') && !['embed.cpp', 'executor.cpp', 'views.cpp'].includes(name)) // CTest runs them, and they have no twin
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
  for (const [name, parts] of Object.entries(ofModels)) await modelExample(checks, name, parts);
  await checks.check('make demo', demo);
  await checks.check('make demo serves models beside the page, and nothing else of the repository', demoServer);
  for (const [name, run] of Object.entries({ ...serving, ...requirements })) await checks.check(name, run);
  // The page tests open it in the browsers.
  await checks.check('examples/browser is built by Vite', buildExample);
  for (const engine of engines) {
    const parts = missing(engine);
    if (parts.length === 0 || process.env.CI === 'true')
      await checks.check(`examples/browser/sentiment.html in ${engine}`, () => {
        assert.deepEqual(parts, [], 'programs that are missing');
        return sentimentPage(engine);
      });
    else console.log(`  examples/browser/sentiment.html in ${engine}: left out, ${parts.join(', ')} not found`);
  }
  return checks.counts;
}
