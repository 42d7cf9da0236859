/**
 * make demo: shows attention of one layer compared with PyTorch, classifies a text, compares sentences if
 * all-MiniLM-L6-v2 is installed, and serves the page. SERVE=0 skips the server; PORT (default 8080).
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { load, readSafetensorsHeader } from 'attn';
import { portFromEnvironment, serve } from './serve.mjs';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const miniLm = at('models/all-MiniLM-L6-v2');
const sentiment = at('testdata/models/sentiment');

const runs = 30;
/** Counted from 1. Head 2 of MiniLM's first layer links words by meaning. */
const head = 2;
const review = 'It could have been a great film, but the story is dull.';
const asked = 'A happy person';
const sentences = ['That person is glad.', 'The stock market fell by three percent on Monday.'];

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return (sorted[(values.length - 1) >> 1] + sorted[values.length >> 1]) / 2;
}

function printMap(tokens, weights) {
  const coloured = process.stdout.isTTY === true && process.stdout.hasColors(256);
  const size = tokens.length;
  const margin = Math.max(...tokens.map((token) => token.length));
  const largest = Math.max(...weights);
  const shades = [' ', '░', '▒', '▓', '█'];
  const height = margin;
  const repeated = (process.stdout.columns ?? 100) > 2 * margin + 3 * size + 2;
  for (let line = 0; line < height; ++line) {
    const letters = tokens.map((token) => ` ${token.padStart(height)[line]} `).join('');
    console.log(`${' '.repeat(margin)} ${letters}`.trimEnd());
  }
  for (let i = 0; i < size; ++i) {
    const cells = Array.from({ length: size }, (_, j) => {
      const weight = weights[i * size + j];
      const level = Math.min(4, Math.floor((5 * weight) / largest));
      const percent = weight >= 0.995 ? '1.' : weight >= 0.095 ? String(Math.round(100 * weight)) : '  ';
      const text = `${shades[level]}${percent}`;
      return coloured ? `\u001b[48;5;${[53, 60, 30, 71, 220][level]}m\u001b[38;5;${level > 2 ? 16 : 231}m ${percent}\u001b[0m` : text;
    });
    console.log(`${tokens[i].padStart(margin)} ${cells.join('')}${repeated ? ` ${tokens[i]}` : ''}`);
  }
}

function timed(run) {
  let result;
  const times = Array.from({ length: runs }, () => {
    const start = performance.now();
    result = run();
    return performance.now() - start;
  });
  return { result, time: `${median(times).toFixed(2)} ms (median of ${runs} runs)` };
}

function headOf({ data, dims: [, , length] }, h) {
  return data.subarray(h * length * length, (h + 1) * length * length);
}

async function showLayer(attn) {
  const file = await readFile(at('testdata/minilm_layer0.safetensors'));
  const { metadata: about } = readSafetensorsHeader(file);
  const tokens = JSON.parse(about.tokens);
  const size = tokens.length;
  const tensors = attn.parseSafetensors(file);
  const x = tensors.get('x');
  const layer = new attn.MultiHeadAttention({ embedDim: x.dims[2], numHeads: Number(about.num_heads) });
  layer.loadStateDict(
    Object.fromEntries(['in_proj_weight', 'in_proj_bias', 'out_proj.weight', 'out_proj.bias'].map((name) => [name, tensors.get(name)])),
  );
  const { result: weights, time } = timed(() => layer.forward(x, undefined, undefined, { needWeights: true }).weights);
  const expected = tensors.get('expected.weights').data;
  const difference = expected.reduce((largest, value, i) => Math.max(largest, Math.abs(value - weights.data[i])), 0);

  console.log(`\n“${about.sentence}”\n`);
  console.log(`Attention weights of head ${head} of ${about.num_heads} in the first layer of ${about.model}.`);
  console.log('Each row is a word that attends (a query), each column a word that it attends to (a key); numbers are per cent, from 10 up.\n');
  const map = headOf(weights, head - 1);
  printMap(tokens, map);

  const strongest = Array.from(map, (weight, i) => ({ weight, row: Math.floor(i / size), column: i % size }))
    .filter(({ row, column }) => row !== column && row > 0)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 4)
    .map(({ weight, row, column }) => `${tokens[row]} → ${tokens[column]} ${weight.toFixed(2)}`);
  console.log(`\nStrongest: ${strongest.join(', ')}.`);
  console.log(
    `Largest difference to PyTorch ${about.torch} over all ${expected.length} weights of the ${about.num_heads} heads: ${difference.toExponential(1)}`,
  );
  console.log(`The whole layer takes ${time}.`);
  layer.dispose();
}

/** The head whose first row, which the answer is computed from, concentrates on the fewest words. */
function sharpest(weights) {
  const peaks = Array.from({ length: weights.dims[1] }, (_, h) => Math.max(...headOf(weights, h).subarray(0, weights.dims[2])));
  return peaks.indexOf(Math.max(...peaks));
}

async function showSentiment(attn) {
  const model = await attn.loadModel(sentiment);
  const inputs = model.tokenize(review);
  const [[{ label, score }]] = await model.classify(review);
  const { result, time } = timed(() => model.forward(inputs, { outputAttentions: true }));
  const last = result.attentions.at(-1);
  const h = sharpest(last);

  console.log(`\n“${review}” → ${label}, ${(100 * score).toFixed(0)} % sure\n`);
  console.log(
    `So says the small classifier in testdata/models/sentiment. Head ${h + 1} of ${last.dims[1]} in its last layer; the answer is read from [CLS].\n`,
  );
  printMap(inputs.tokens[0], headOf(last, h));
  console.log(`\nThe whole model takes ${time}. Other texts: node examples/node/classify.mjs "…"`);
  model.dispose();
}

async function showSentences(attn) {
  if (!existsSync(miniLm)) {
    console.log('\n`tools/setup models` downloads all-MiniLM-L6-v2 (91 MB) into models/; then this demo also compares sentences.');
    return;
  }
  const start = performance.now();
  const model = await attn.loadModel(miniLm);
  const loaded = performance.now();
  const { data, dims } = await model.embed([asked, ...sentences]);
  const took = performance.now() - loaded;
  model.dispose();
  const [target, ...others] = Array.from({ length: dims[0] }, (_, i) => data.subarray(i * dims[1], (i + 1) * dims[1]));
  console.log(`\nAll of all-MiniLM-L6-v2 (loaded in ${(loaded - start).toFixed(0)} ms, these in ${took.toFixed(0)} ms). Similarity to “${asked}”:`);
  others.forEach((other, i) => {
    const similarity = other.reduce((sum, value, j) => sum + value * target[j], 0);
    console.log(`  ${similarity.toFixed(3).padStart(6)}  ${sentences[i]}`);
  });
}

async function show() {
  const attn = await load();
  await showLayer(attn);
  await showSentiment(attn);
  await showSentences(attn);
  const { variant, threads, notes } = attn.info;
  console.log(`\nWebAssembly variant ${variant}, ${threads} ${threads === 1 ? 'thread' : 'threads'}.`);
  for (const note of notes) console.log(`Note: ${note}`);
  attn.dispose();
}

try {
  await show();
  if (process.env.SERVE !== '0') {
    const { url } = await serve({ port: portFromEnvironment(), host: process.env.HOST || '127.0.0.1' });
    console.log(`\nThe page is at ${url} (Ctrl+C stops it)`);
  }
} catch (error) {
  console.error(`\n${error.message}`);
  process.exitCode = 1;
}
