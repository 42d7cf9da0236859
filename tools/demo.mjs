/**
 * make demo: runs the package in Node on a real sentence, prints one attention head as a map, compares every weight with PyTorch's, and serves
 * the page. SERVE=0 stops after the map; PORT (default 8080) says where the page is served.
 */
import { readFile } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { load } from 'attn';
import { portFromEnvironment, serve } from './serve.mjs';

const runs = 50;
/** From 1. Head 2 of this layer links words by meaning. */
const head = 2;

function metadata(file) {
  const length = Number(file.readBigUInt64LE(0));
  return JSON.parse(file.toString('utf8', 8, 8 + length)).__metadata__;
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return (sorted[(values.length - 1) >> 1] + sorted[values.length >> 1]) / 2;
}

/** Three characters a cell: a shade, and the weight in per cent from 10 up. Colour is an extra for terminals that have it. */
function printMap(tokens, weights, coloured) {
  const size = tokens.length;
  const margin = Math.max(...tokens.map((token) => token.length));
  const largest = Math.max(...weights);
  const shades = [' ', '░', '▒', '▓', '█'];
  const height = margin;
  // The words stand on the right too where the line has room for them.
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
      // Five steps of viridis in the 256-colour table.
      return coloured ? `\u001b[48;5;${[53, 60, 30, 71, 220][level]}m\u001b[38;5;${level > 2 ? 16 : 231}m ${percent}\u001b[0m` : text;
    });
    console.log(`${tokens[i].padStart(margin)} ${cells.join('')}${repeated ? ` ${tokens[i]}` : ''}`);
  }
}

async function show() {
  const file = await readFile(new URL('../testdata/minilm_layer0.safetensors', import.meta.url));
  const about = metadata(file);
  const tokens = JSON.parse(about.tokens);
  const size = tokens.length;

  const attn = await load();
  const tensors = attn.parseSafetensors(file);
  const x = tensors.get('x');
  const layer = new attn.MultiHeadAttention({ embedDim: x.dims[2], numHeads: Number(about.num_heads) });
  layer.loadStateDict(
    Object.fromEntries(['in_proj_weight', 'in_proj_bias', 'out_proj.weight', 'out_proj.bias'].map((name) => [name, tensors.get(name)])),
  );

  const forward = () => layer.forward(x, undefined, undefined, { needWeights: true }).weights.data;
  const weights = forward();
  const times = Array.from({ length: runs }, () => {
    const start = performance.now();
    forward();
    return performance.now() - start;
  });
  const expected = tensors.get('expected.weights').data;
  const difference = expected.reduce((largest, value, i) => Math.max(largest, Math.abs(value - weights[i])), 0);

  console.log(`\n“${about.sentence}”\n`);
  console.log(`What head ${head} of ${about.num_heads} in the first layer of ${about.model} looks at.`);
  console.log('Each row is a word that looks (a query), each column a word that is looked at (a key); numbers are per cent, from 10 up.\n');
  const map = weights.subarray((head - 1) * size * size, head * size * size);
  printMap(tokens, map, process.stdout.isTTY === true && process.stdout.hasColors(256));

  const strongest = Array.from(map, (weight, i) => ({ weight, row: Math.floor(i / size), column: i % size }))
    .filter(({ row, column }) => row !== column && row > 0)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 4)
    .map(({ weight, row, column }) => `${tokens[row]} → ${tokens[column]} ${weight.toFixed(2)}`);
  console.log(`\nStrongest: ${strongest.join(', ')}.`);
  console.log(
    `Largest difference to PyTorch ${about.torch} over all ${expected.length} weights of the ${about.num_heads} heads: ${difference.toExponential(1)}`,
  );
  const { variant, threads, notes } = attn.info;
  console.log(
    `The whole layer takes ${median(times).toFixed(2)} ms (median of ${runs} runs; WebAssembly variant ${variant}, ${threads} ${threads === 1 ? 'thread' : 'threads'}).`,
  );
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
