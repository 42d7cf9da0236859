#!/usr/bin/env node
/**
 * Writes web/page/src/state/examples.json: for the sentences below the head and cell with the largest weight between
 * the given words, and sentences of testdata/sentiment/films.json that the model classifies correctly only with a
 * certain head. Run it after testdata/models/sentiment has changed: node tools/page/find_examples.mjs.
 * web/page/tests/examples.test.ts checks the file.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { load } from 'attn';
import { format, resolveConfig } from 'prettier';

const at = (path) => new URL(`../../${path}`, import.meta.url);
const read = (path) => readFileSync(at(path));

/** `pairs` returns the cells [row, column] of interest; `fixed` is the initial setting of the page. */
const sentences = [
  { what: 'Praise, then blame', text: 'A film with wonderful actors and a terrible script.', fixed: { layer: 1, head: 3, row: 4, column: 8 } },
  { what: 'Negation', text: 'Not a bad film at all, and never boring.', pairs: between('bad', 'not') },
  { what: 'Pronouns', text: 'The actress thanked the director because she loved his script.', pairs: between('she', 'actress') },
  { what: 'Repeated words', text: 'The best of the best: the best cast in the best film of the year.', pairs: between('best', 'best') },
  { what: 'Rare words', text: 'An unputdownable, heartwarming, swashbuckling whodunit.', pairs: inOneWord },
  {
    what: 'A question and an answer',
    text: 'Was the story any good?',
    pair: 'No, but the acting was brilliant.',
    pairs: between('good', 'brilliant'),
  },
];

const [count, longest, margin] = [3, 80, 0.005];

function between(query, key) {
  return (tokens) => tokens.flatMap((a, i) => tokens.flatMap((b, j) => (a === query && b === key && i !== j ? [[i, j]] : [])));
}

function inOneWord(tokens) {
  const word = [];
  tokens.forEach((token, i) => (word[i] = token.startsWith('##') ? word[i - 1] : i));
  return word.flatMap((a, i) => word.flatMap((b, j) => (a === b && i !== j ? [[i, j]] : [])));
}

const folder = 'testdata/models/sentiment';
const attn = await load({ variant: 'simd' });
const model = await attn.loadModel(
  Object.fromEntries(
    ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'].map((name) => [name, read(`${folder}/${name}`)]),
  ),
);
const { num_hidden_layers: layers, num_attention_heads: heads } = JSON.parse(read(`${folder}/config.json`));

const tokenize = (text, pair) => model.tokenize(pair === undefined ? text : [[text, pair]]);

function strongest(encoding, cells, inLayers = Array.from({ length: layers }, (_, i) => i), inHeads = Array.from({ length: heads }, (_, i) => i)) {
  const { attentions } = model.forward(encoding, { outputAttentions: true });
  const length = encoding.tokens[0].length;
  let best = { weight: -1 };
  for (const layer of inLayers)
    for (const head of inHeads)
      for (const [row, column] of cells) {
        const weight = attentions[layer].data[(head * length + row) * length + column];
        if (weight > best.weight) best = { weight, layer, head, row, column };
      }
  const { layer, head, row, column } = best;
  return { layer, head, row, column };
}

function answer(encoding, off) {
  const data = Float32Array.from({ length: layers * heads }, (_, head) => Number(head !== off));
  return attn.softmax(model.forward(encoding, { headMask: { data, dims: [layers, heads] } }).logits).data;
}

/** Cells between words; in the last layer only the row of [CLS], which alone affects the classifier. */
function cellsOf({ tokens: [tokens] }, layer) {
  const isWord = (token) => /^\p{L}/u.test(token);
  const rows = layer === layers - 1 ? [0] : tokens.flatMap((token, i) => (isWord(token) ? [i] : []));
  return rows.flatMap((row) => tokens.flatMap((token, column) => (isWord(token) && column !== row ? [[row, column]] : [])));
}

function breakable() {
  const found = [];
  for (const { text, label } of JSON.parse(read('testdata/sentiment/films.json')).texts) {
    if (text.length > longest || /&\w+;|\.\.\.|\s{2}/.test(text)) continue;
    const encoding = tokenize(text);
    const before = answer(encoding)[label] - 0.5;
    if (before < margin) continue;
    for (let off = 0; off < layers * heads; ++off) {
      const after = 0.5 - answer(encoding, off)[label];
      if (after >= margin) found.push({ text, encoding, off, beyond: Math.min(before, after) });
    }
  }
  found.sort((a, b) => b.beyond - a.beyond || a.off - b.off);
  const chosen = [];
  for (const each of found) if (chosen.length < count && !chosen.some(({ text, off }) => text === each.text || off === each.off)) chosen.push(each);
  return chosen.map(({ text, encoding, off }) => {
    const [layer, head] = [Math.floor(off / heads), off % heads];
    return { text, ...strongest(encoding, cellsOf(encoding, layer), [layer], [head]), breaks: true };
  });
}

const looked = sentences.map(({ what, text, pair, fixed, pairs }) => {
  const encoding = tokenize(text, pair);
  return { what, text, ...(pair !== undefined && { pair }), ...(fixed ?? strongest(encoding, pairs(encoding.tokens[0]))), breaks: false };
});
const examples = [...looked, ...breakable()];
const target = at('web/page/src/state/examples.json');
writeFileSync(target, await format(JSON.stringify(examples), { ...(await resolveConfig(target)), parser: 'json' }));
for (const { text, what = text, pair, layer, head, row, column } of examples) {
  const tokens = tokenize(text, pair).tokens[0];
  console.log(`${layer + 1}.${head + 1} ${tokens[row]} -> ${tokens[column]}: ${what}`);
}
