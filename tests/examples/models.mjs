/** Examples in examples/node that use a model; those with MiniLM need models/all-MiniLM-L6-v2. */
import { strict as assert } from 'node:assert';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { output } from './run.mjs';

const numbered = (text, pattern) => [...text.matchAll(pattern)].map(([, number, words]) => [Number(number), words]);

/** The behaviour of each example. The first test of an example also runs with relaxed SIMD. */
export const modelExamples = {
  'align.mjs': {
    async 'prints the words of two sentences that choose each other'(run) {
      assert.deepEqual(
        numbered(await run(), /^(\d\.\d\d) {2}(.+)$/gm).map(([cosine, words]) => (cosine > 0.5 && cosine <= 1 ? words : cosine)),
        ['The – the', 'old – old', 'man – woman', 'opened – opened', 'door – door', 'slowly – Slowly', '. – .'],
      );
    },
    async 'accepts sentences, a layer and another model'(run) {
      assert.match(await run(['--layer', '0', 'The door', 'A door']), /^1\.00 {2}door – door$/m);
      const reviews = await run(['--model', 'testdata/models/sentiment', 'The acting is wonderful.', 'A superb performance by the whole cast.']);
      assert.match(reviews, /^0\.[78]\d {2}wonderful – superb$/m);
    },
    async 'reports a layer that the model does not have, and mistyped arguments'(run, refused) {
      assert.match((await refused(['--layer', '4'])).text, /^--layer is 4, expected at most 3$/m);
      for (const args of [['one sentence'], ['--layer', 'last'], ['--modle', 'x']]) {
        const { code, text } = await refused(args);
        assert.equal(code, 2);
        assert.match(text, /FIRST SECOND {4}two sentences/);
      }
    },
  },
  'classify.mjs': {
    async 'classifies two sentences with the bundled sentiment model'(run) {
      const lines = (await run()).trim().split('\n');
      assert.match(lines[0], /^positive 0\.[89]\d\d {2}A warm, funny and clever film\.$/);
      assert.match(lines[1], /^negative 0\.[789]\d\d {2}The plot is dull/);
      assert.equal(lines.length, 2);
    },
    async 'classifies each line of standard input'(run) {
      const input = 'A delight from start\u2028to end.\n\nA complete waste of time.\n';
      assert.match(
        await run(['-'], { input }),
        /^positive 0\.\d{3} {2}A delight from start\u2028to end\.\n\w+ 0\.\d{3} {2}\nnegative 0\.\d{3} {2}A complete waste of time\.\n$/,
      );
    },
    async 'reports a model without a classification head and a folder without a model'(run, refused) {
      assert.match((await refused(['--model', 'testdata/models/tiny-mpnet-mean', 'good'])).text, /without a head/);
      assert.match((await refused(['--model', 'testdata', 'good'])).text, /config\.json is not there/);
    },
  },
  'explain.mjs': {
    async 'scores the words for and against the answer'(run) {
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
    async 'colours the words in a terminal, blue for and orange against the answer'(run) {
      const [praised] = (await run([], { env: { ...process.env, FORCE_COLOR: '1' } })).split('\n');
      assert.match(praised, /;48;5;2\d\dmdreadful\x1b\[0m.* the film .*;48;5;75mfunny\x1b\[0m/);
    },
    async 'accepts every method, and a target label by name or number'(run) {
      for (const method of ['gradient_x_input', 'attention_rollout', 'attention_gradient', 'leave_one_out']) {
        const words = numbered(await run(['--method', method, 'The plot is dull.']), /^ +(-?\d\.\d{3}) {2}(\S+)$/gm);
        assert.equal(words.reduce((best, word) => (word[0] > best[0] ? word : best))[1], 'dull', method);
      }
      const against = await run(['--target', 'positive', 'The plot is dull.']);
      assert.match(against, /^positive 0\.[12]\d\d {2}The[^]*^ +-0\.[4-9]\d\d {2}dull$/m);
      assert.equal(await run(['--target', '1', 'The plot is dull.']), against);
    },
    async 'reports mistyped options'(run, refused) {
      const { code, text } = await refused(['--method', 'saliency', 'good']);
      assert.equal(code, 2);
      assert.match(text, /^--method is saliency; it has to be one of integrated_gradients, .*\n\nnode examples\/node\/explain\.mjs/);
      assert.match((await refused(['--target', 'good', 'good'])).text, /target is "good", expected one of negative, positive/);
      assert.match((await refused(['--model', 'testdata/models/tiny-mpnet-mean', 'good'])).text, /no head/);
    },
  },
  'generate.mjs': {
    async 'continues a text, the same for the same seed'(run) {
      const greedy = await run();
      assert.match(greedy, /^The old man[^]+\n\nlength after 24 tokens\nperplexity of your text: 1101\.6\n$/);
      const drawn = await run(['--seed', '3', '--tokens', '8', 'The old man']);
      assert.match(drawn, /\n\nlength after 8 tokens\n/);
      assert.equal(await run(['--seed', '3', '--tokens', '8', 'The old man']), drawn);
    },
    async 'reports a model that is no language model, and mistyped options'(run, refused) {
      assert.match((await refused(['--model', 'testdata/models/tiny-bert', 'good'])).text, /text-generation/);
      assert.equal((await refused(['--token', '3'])).code, 2);
    },
  },
  'reactions.mjs': {
    async 'links each atom of a product to an atom of the reactants'(run, refused) {
      const lines = (await run()).trim().split('\n');
      assert.equal(lines.shift(), 'product     reactant  weight');
      const links = lines.map((line) =>
        line
          .trim()
          .split(/ {2,}/)
          .map((cell) => cell.replace(/ \d+$/, '')),
      );
      assert.equal(links.length, 9);
      // Methylamine's two atoms, then those of benzyl without its bromine.
      assert.deepEqual(
        lines.map((line) => Number(/ (\d+) +\d\.\d\d$/.exec(line)[1])),
        [9, 10, 2, 3, 4, 5, 6, 7, 8],
      );
      for (const [product, reactant, weight] of links) {
        assert.equal(product, reactant);
        assert.ok(Number(weight) > 0.3 && Number(weight) <= 1, weight);
      }
      const { code, text } = await refused(['no reaction']);
      assert.equal(code, 2);
      assert.match(text, /REACTION {2}in SMILES/);
    },
  },
  'fine_tune.mjs': {
    async 'trains on a CSV file and writes a model folder that classify.mjs can load'(run) {
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
    async 'reports the line of a malformed CSV file and writes nothing'(run, refused) {
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
    async 'reports mistyped options'(run, refused) {
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
    async 'prints neighbours, similarities and analogies of words'(run) {
      const text = await run();
      assert.match(text, /^nearest to king: kings 0\.690, queen 0\.627, monarch 0\.494, prince 0\.463, monarchy 0\.447$/m);
      assert.match(text, /^dog and puppy: 0\.540$/m);
      assert.match(text, /^king - man \+ woman: queen 0\.511, kings 0\.463/m);
    },
    async 'accepts words and analogies as arguments'(run) {
      assert.match(await run(['--top', '1', 'Paris']), /^nearest to Paris: parisian 0\.569\n$/);
      assert.match(await run(['paris', '-', 'france', '+', 'italy']), /^paris - france \+ italy: \w+ 0\.\d{3}(, \w+ 0\.\d{3}){4}\n$/);
    },
    async 'reports a word that is no single token, and an incomplete analogy'(run, refused) {
      assert.match(
        (await refused(['flibbertigibbet'])).text,
        /“flibbertigibbet” is not one entry of the table: the tokenizer makes fl ##ib .* of it/,
      );
      assert.match((await refused(['king', '-', 'man'])).text, /expected A - B \+ C/);
      assert.equal((await refused(['--top', 'x', 'king'])).code, 2);
    },
  },
  'semantic_search.mjs': {
    async 'indexes reviews and finds the expected ones for a query'(run, refused, note) {
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
    async 'accepts a query, and fewer reviews than results'(run) {
      assert.equal(numbered(await run(['--first', '2', 'the', 'player shows no picture']), /^ {2}(-?\d\.\d{3}) {2}(.*)$/gm).length, 2);
    },
    async 'ranks by words as well'(run) {
      const found = numbered(await run(['--first', '60', '--top', '1', '--hybrid', 'ad-2500']), /^ {2}(-?\d\.\d{3}) {2}(.*)$/gm);
      assert.match(found[0][1], /ad-2500/);
    },
    async 'answers each line of standard input'(run) {
      const input = 'loud\u2028speaker\n\nnot read';
      const text = await run(['--model', 'testdata/models/tiny-mpnet-mean', '--first', '2', '-'], { input });
      assert.deepEqual(text.match(/(?<=^“)[^”]*(?=” \()/gm), ['loud\u2028speaker']);
    },
    async 'reports mistyped options'(run, refused) {
      const { code, text } = await refused(['--fisrt', '5']);
      assert.equal(code, 2);
      assert.match(text, /'--fisrt'[^]*--first N/);
      assert.match((await refused(['--first', '0'])).text, /--first is 0; it has to be a whole number/);
    },
  },
};
