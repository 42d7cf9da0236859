// Nearest words and analogies in the embedding matrix of all-MiniLM-L6-v2: node examples/node/words.mjs king - man +
// woman
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from 'attn';

const usage = `node examples/node/words.mjs [--model FOLDER] [--top N] [WORD... | A - B + C]

  king               the words nearest to one
  king queen         how similar two are, or each two of several
  king - man + woman what is to "woman" as "king" is to "man"
  --model FOLDER     a model, default models/all-MiniLM-L6-v2 (tools/setup models fetches it)
  --top N            how many words, default 5
Without words: one of each. A word has to be one entry of the table, as most common ones are.`;

const miniLm = fileURLToPath(new URL('../../models/all-MiniLM-L6-v2', import.meta.url));

let options;
try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      model: { type: 'string', default: miniLm },
      top: { type: 'string', default: '5' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  const top = Number(values.top);
  if (!Number.isInteger(top) || top < 1) throw new Error(`--top is ${values.top}; it has to be a whole number from 1 on`);
  options = { ...values, top, question: positionals.join(' ').trim() };
} catch (error) {
  console.error(`${error.message}\n\n${usage}`);
  process.exit(2);
}
if (options.help) {
  console.log(usage);
  process.exit();
}

const attn = await load();
const model = await attn.loadModel(options.model).catch((error) => {
  console.error(error.message);
  if (options.model === miniLm && error.code === 'NETWORK') console.error('This fetches all-MiniLM-L6-v2 (91 MB): tools/setup models');
  process.exit(1);
});
const table = model.wordEmbeddings;

/** Returns the id of a word after the tokenizer's normalisation, which is lowercase for most models. */
function idOf(word) {
  const { inputIds, tokens, offsets } = model.tokenize(word);
  const own = [...inputIds.keys()].filter((i) => offsets[0][i]); // without [CLS] and [SEP]
  if (own.length === 1) return inputIds[own[0]];
  const exact = model.tokenToId(word); // ##ing
  if (exact !== undefined) return exact;
  throw new Error(`“${word}” is not one entry of the table: the tokenizer makes ${own.map((i) => tokens[0][i]).join(' ') || 'nothing'} of it`);
}

const written = (found) => found.map(({ id, similarity }) => `${model.idToToken(id)} ${similarity.toFixed(3)}`).join(', ');

function answer(question) {
  // Only separate minus and plus signs count: "wi-fi" and "##ing" are words.
  const [a, minus, b, plus, c, ...rest] = question.split(/\s+/);
  if (minus === '-' && plus === '+' && c !== undefined && rest.length === 0) {
    return [`${question}: ${written(table.analogy(idOf(b), idOf(a), idOf(c), options.top))}`];
  }
  const words = question.split(/\s+/);
  if (words.includes('-') || words.includes('+')) throw new Error(`“${question}”: expected A - B + C`);
  if (words.length === 1) return [`nearest to ${a}: ${written(table.nearest(idOf(a), options.top))}`];
  return words.flatMap((one, i) => words.slice(i + 1).map((other) => `${one} and ${other}: ${table.similarity(idOf(one), idOf(other)).toFixed(3)}`));
}

const examples = ['king', 'dog', 'dog puppy music', 'king - man + woman', 'paris - france + italy'];
try {
  for (const question of options.question ? [options.question] : examples) for (const line of answer(question)) console.log(line);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
attn.dispose();
