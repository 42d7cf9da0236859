/**
 * node benchmarks/search_quality.mjs [--model FOLDER] [--reranker FOLDER] [--passages N] [--queries N] [--python FILE]
 *
 * Prints nDCG@10 of searches over docstrings of Python's standard library: by words (BM25), by vectors, by both, and
 * with --reranker (a cross-encoder) reranked. docstrings.py states the rule by which queries and passages are made; the
 * numbers depend on the version of Python. --passages and --queries limit the set to entries at even distances.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from 'attn';
import { Index } from 'attn/search';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const { values } = parseArgs({
  options: {
    model: { type: 'string', default: path('../models/all-MiniLM-L6-v2') },
    reranker: { type: 'string' },
    passages: { type: 'string', default: 'Infinity' },
    queries: { type: 'string', default: 'Infinity' },
    python: { type: 'string', default: 'python3' },
  },
});

function spread(list, name) {
  const count = Number(values[name]);
  if (!(count >= 1)) throw new Error(`--${name} is ${values[name]}, expected a number from 1`);
  const size = Math.min(list.length, Math.floor(count));
  return Array.from({ length: size }, (_, i) => list[Math.floor((i * list.length) / size)]);
}

const k = 10;
/** One passage is relevant, so the ideal gain is 1. */
const gainOf = (hits, id) => {
  const rank = hits.slice(0, k).findIndex((hit) => hit.id === id);
  return rank < 0 ? 0 : 1 / Math.log2(rank + 2);
};
const by = (name, hits) => hits.toSorted((a, b) => b[name] - a[name]);

const lines = execFileSync(values.python, [path('docstrings.py')], { encoding: 'utf8', maxBuffer: 1 << 28 });
const version = execFileSync(values.python, ['--version'], { encoding: 'utf8' }).trim();
const set = spread(lines.trim().split('\n').map((line) => JSON.parse(line)), 'passages'); // prettier-ignore
const asked = spread(set, 'queries');
console.log(`${version}: ${set.length} passages, ${asked.length} queries`);

const attn = await load();
try {
  const model = await attn.loadModel(values.model);
  const rerank = values.reranker === undefined ? undefined : await attn.loadModel(values.reranker);
  const documents = set.map(({ id, passage }) => ({ id, text: passage }));
  const index = await Index.from(model, documents);
  const sums = { 'words (BM25)': 0, vectors: 0, hybrid: 0, ...(rerank && { reranked: 0 }) };
  for (const { id, query } of asked) {
    // All passages are candidates, so that each has both scores.
    const all = await index.search(query, { hybrid: true, k: set.length, candidates: set.length });
    sums['words (BM25)'] += gainOf(by('wordScore', all.filter(({ wordScore }) => wordScore > 0)), id); // prettier-ignore
    sums.vectors += gainOf(by('similarity', all), id);
    sums.hybrid += gainOf(await index.search(query, { hybrid: true, k }), id);
    if (rerank) sums.reranked += gainOf(await index.search(query, { hybrid: true, rerank, k }), id);
  }
  for (const [name, sum] of Object.entries(sums)) console.log(`${name.padEnd(14)}nDCG@${k} ${(sum / asked.length).toFixed(3)}`);
} finally {
  attn.dispose();
}
