// Searches product reviews by meaning: all-MiniLM-L6-v2 embeds the reviews and the query; the nearest reviews are
// printed.
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from 'attn';
import { Index } from 'attn/search';

const usage = `node examples/node/semantic_search.mjs [--model FOLDER] [--first N] [--top N] [QUERY]

  QUERY           what to look for, default: customer service never answers; "-" reads queries from the input, one per line
  --model FOLDER  a model of sentences, default models/all-MiniLM-L6-v2 (tools/setup models fetches it)
  --first N       only the first N reviews
  --top N         how many answers, default 5
  --hybrid        rank by shared words as well
In a terminal you can enter more queries; an empty line ends the program.`;

const repository = new URL('../../', import.meta.url);
const miniLm = fileURLToPath(new URL('models/all-MiniLM-L6-v2', repository));

let options;
try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      model: { type: 'string', default: miniLm },
      first: { type: 'string', default: String(Number.MAX_SAFE_INTEGER) },
      top: { type: 'string', default: '5' },
      hybrid: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  const [first, top] = ['first', 'top'].map((name) => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} is ${values[name]}; it has to be a whole number from 1 on`);
    return value;
  });
  options = { ...values, first, top, query: positionals.join(' ') || 'customer service never answers' };
} catch (error) {
  console.error(`${error.message}\n\n${usage}`);
  process.exit(2);
}
if (options.help) {
  console.log(usage);
  process.exit();
}

const seconds = (since) => (performance.now() - since) / 1000;

/** Redraws a bar in a terminal, or prints a line every quarter; on stderr, so that results can be piped. */
function progressBar(width = 30) {
  const start = performance.now();
  let quarter = 0;
  return ({ done, total }) => {
    const left = done > 0 ? `, ${Math.ceil((seconds(start) * (total - done)) / done)} s left` : '';
    if (process.stderr.isTTY) {
      const full = Math.round((width * done) / total);
      process.stderr.write(`\r[${'#'.repeat(full)}${'.'.repeat(width - full)}] ${done} of ${total}${left}\u001b[K`);
      if (done === total) process.stderr.write('\r\u001b[K');
    } else if (Math.floor((4 * done) / total) > quarter) {
      quarter = Math.floor((4 * done) / total);
      console.error(`${done} of ${total}`);
    }
  };
}

const attn = await load({ threads: Math.min(8, availableParallelism()) });
const { variant, threads } = attn.info;
let start = performance.now();
const model = await attn.loadModel(options.model).catch((error) => {
  console.error(error.message);
  if (options.model === miniLm && error.code === 'NETWORK') console.error('This fetches all-MiniLM-L6-v2 (91 MB): tools/setup models');
  process.exit(1);
});
console.log(`model loaded in ${seconds(start).toFixed(2)} s (${variant}, ${threads} ${threads === 1 ? 'thread' : 'threads'})`);

const { texts } = JSON.parse(await readFile(new URL('testdata/sentiment/products.json', repository)));
const reviews = texts.slice(0, options.first).map(({ text }) => text);
start = performance.now();
const index = await Index.from(model, reviews, { onProgress: progressBar() });
const took = seconds(start);
console.log(`${reviews.length} reviews indexed in ${took.toFixed(1)} s, ${(reviews.length / took).toFixed(0)} a second`);

async function answer(query) {
  start = performance.now();
  const found = await index.search(query, { k: options.top, hybrid: options.hybrid });
  console.log(`\n“${query}” (${(1000 * seconds(start)).toFixed(1)} ms)`);
  for (const { similarity, text } of found) console.log(`  ${similarity.toFixed(3)}  ${text}`);
}

/** Lines that end with \n. (readline would also end them at U+2028, which texts may contain.) */
async function* linesOf(stream) {
  let rest = '';
  for await (const piece of stream.setEncoding('utf8')) {
    const lines = (rest + piece).split(/\r?\n/);
    rest = lines.pop();
    yield* lines;
  }
  if (rest !== '') yield rest;
}

const inTerminal = process.stdin.isTTY && process.stdout.isTTY;
const ask = () => inTerminal && process.stdout.write('\nquery: ');
if (options.query !== '-') await answer(options.query);
if (inTerminal || options.query === '-') {
  ask();
  for await (const line of linesOf(process.stdin)) {
    if (!line.trim()) break;
    await answer(line.trim());
    ask();
  }
}
attn.dispose();
