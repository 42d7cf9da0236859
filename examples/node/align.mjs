// Which words of two sentences correspond? Word alignment as in SimAlign (Jalili Sabet et al. 2020):
// node examples/node/align.mjs --model FOLDER "The old man opened the door." "Der alte Mann öffnete die Tür."
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from 'attn';

const usage = `node examples/node/align.mjs [--model FOLDER] [--layer NUMBER] [FIRST SECOND]

  FIRST SECOND    two sentences, each in quotes
  --model FOLDER  an encoder, default testdata/models/masks, which knows English; for two languages a multilingual one
  --layer NUMBER  of the rows that are compared, default two thirds of the layers; 0 is the embeddings`;

let values;
let sentences;
try {
  ({ values, positionals: sentences } = parseArgs({
    allowPositionals: true,
    options: { model: { type: 'string' }, layer: { type: 'string' }, help: { type: 'boolean' } },
  }));
  if (![0, 2].includes(sentences.length)) throw new Error(`expected two sentences, got ${sentences.length}`);
  if (values.layer !== undefined && !/^\d+$/.test(values.layer)) throw new Error(`--layer is ${values.layer}, expected a whole number`);
} catch (error) {
  console.error(`${error.message}\n\n${usage}`);
  process.exit(2);
}
if (values.help) {
  console.log(usage);
  process.exit();
}
if (sentences.length === 0) sentences = ['The old man opened the door slowly.', 'Slowly, the door was opened by an old woman.'];

/** The words of a sentence, each with the mean of its tokens' rows, divided by its length. */
function wordsOf(model, sentence) {
  const inputs = model.tokenize(sentence);
  const { hiddenStates } = model.forward(inputs, { outputHiddenStates: true, outputLogits: false });
  const layer = Number(values.layer ?? Math.round((2 / 3) * (hiddenStates.length - 1)));
  if (layer >= hiddenStates.length) throw new Error(`--layer is ${layer}, expected at most ${hiddenStates.length - 1}`);
  const { data, dims } = hiddenStates[layer]; // (B,L,E), here with B = 1
  return Array.from(sentence.matchAll(/[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]/gu), ({ 0: text, index }) => {
    const sum = new Float64Array(dims[2]);
    for (const [token, offsets] of inputs.offsets[0].entries())
      if (offsets && offsets[0] < index + text.length && offsets[1] > index)
        for (let e = 0; e < sum.length; ++e) sum[e] += data[token * sum.length + e];
    const length = Math.hypot(...sum); // 0 if the sentence was truncated before the word
    return { text, row: sum.map((value) => value / (length || 1)) };
  });
}
const largest = (list) => list.indexOf(Math.max(...list));

const attn = await load();
try {
  const model = await attn.loadModel(values.model ?? fileURLToPath(new URL('../../testdata/models/masks', import.meta.url)));
  const [first, second] = sentences.map((sentence) => wordsOf(model, sentence));
  const cosines = first.map((a) => second.map((b) => a.row.reduce((sum, value, e) => sum + value * b.row[e], 0)));
  for (const [i, row] of cosines.entries()) {
    const j = largest(row);
    // Two words correspond if they choose each other.
    if (largest(cosines.map((each) => each[j])) === i) console.log(`${row[j].toFixed(2)}  ${first[i].text} – ${second[j].text}`);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
attn.dispose();
