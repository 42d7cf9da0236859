// Positive or negative? With the bundled small model: node examples/node/classify.mjs "A warm and funny film."
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from 'attn';

const usage = `node examples/node/classify.mjs [--model FOLDER] [TEXT...]

  TEXT...         texts, each in quotes; "-" reads lines from the input
  --model FOLDER  a classifier, default testdata/models/sentiment, which knows film reviews`;

let values;
let texts;
try {
  ({ values, positionals: texts } = parseArgs({
    allowPositionals: true,
    options: { model: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  }));
} catch (error) {
  console.error(`${error.message}\n\n${usage}`);
  process.exit(2);
}
if (values.help) {
  console.log(usage);
  process.exit();
}
if (texts.length === 0) texts = ['A warm, funny and clever film.', 'The plot is dull, and the acting is dreadful.'];

/** Splits at \n only: readline would also split at U+2028, which texts may contain. */
async function* linesOf(stream) {
  let rest = '';
  for await (const piece of stream.setEncoding('utf8')) {
    const lines = (rest + piece).split(/\r?\n/);
    rest = lines.pop();
    yield* lines;
  }
  if (rest !== '') yield rest;
}

const attn = await load();
let model;
try {
  model = await attn.loadModel(values.model ?? fileURLToPath(new URL('../../testdata/models/sentiment', import.meta.url)));
  const lines = texts.length === 1 && texts[0] === '-' ? linesOf(process.stdin) : texts;
  for await (const text of lines) {
    const [[best]] = await model.classify(text);
    console.log(`${best.label} ${best.score.toFixed(3)}  ${text}`);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
attn.dispose();
