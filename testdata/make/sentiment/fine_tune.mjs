// node testdata/make/sentiment/fine_tune.mjs [head | whole]: compares fineTune() with other training on the same
// texts; both by default.
//   head: the head of all-MiniLM-L6-v2 on 500 texts, in less than a second with cached vectors, and scikit-learn's
// logistic regression on the same vectors.
//   whole: the encoder of train.py from the same initial weights, and train.py itself, both only on the rated reviews
// of films without the teachers' judgements.
// Needs the built package, models/all-MiniLM-L6-v2 and Python with its venv module. Exit 1 if an accuracy is more
// than a point lower.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load } from '../../../web/lib/dist/node.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const work = join(root, 'build/sentiment/fine_tuning');
mkdirSync(work, { recursive: true });
const films = JSON.parse(readFileSync(join(root, 'testdata/sentiment/films.json'), 'utf8'));
const attn = await load({ threads: 1 });

function python(...args) {
  const { status, stdout } = spawnSync(join(root, 'testdata/make/sentiment/fine_tune.sh'), args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error(`fine_tune.sh ${args.join(' ')} ended with ${status}`);
  return stdout.trim().split('\n').at(-1);
}

function compare(what, accuracy, name, other) {
  console.log(`${what}: ${(100 * accuracy).toFixed(1)} % right; ${name}: ${(100 * other).toFixed(1)} %`);
  if (!(accuracy >= other - 0.01)) process.exitCode = 1;
}

async function head() {
  const folder = join(root, 'models/all-MiniLM-L6-v2');
  const labels = ['negative', 'positive'];
  const training = films.texts.filter((_, i) => i % 4 === 0).slice(0, 500);
  const heldOut = films.texts.filter((_, i) => i % 4 === 1 || i % 4 === 2);
  const model = await attn.loadModel(folder);
  const vectors = (some) =>
    model.embed(
      some.map(({ text }) => text),
      { pooling: 'cls', normalize: false },
    );
  const numbers = (some) => ({ data: Float32Array.from(some, ({ label }) => label), dims: [some.length] });
  const file = join(work, 'vectors.safetensors');
  const tensors = { training: await vectors(training), held_out: await vectors(heldOut) };
  writeFileSync(file, attn.writeSafetensors({ ...tensors, training_labels: numbers(training), held_out_labels: numbers(heldOut) }));
  const times = [];
  const examples = training.map(({ text, label }) => ({ text, label }));
  await model.fineTune(examples, { layers: 'head', labels, epochs: 10, onProgress: () => times.push(performance.now()) });
  const answers = await model.classify(heldOut.map(({ text }) => text));
  const right = heldOut.filter(({ label }, i) => answers[i][0].label === labels[label]).length;
  const seconds = ((times.at(-1) - times[0]) / (times.length - 1)) * (times.length / 1000);
  console.log(`head: ${times.length} steps in ${seconds.toFixed(2)} s`);
  if (seconds >= 1) process.exitCode = 1;
  compare('head', right / heldOut.length, 'logistic regression', Number(python('logistic', file)));
  model.dispose();
}

async function whole() {
  const [epochs, masked, keep] = [4, 0.3, 0.998];
  const other = Number(python('start', work));
  const { training, heldOut } = JSON.parse(readFileSync(join(work, 'examples.json'), 'utf8'));
  let state = 1;
  const random = () => (state = (48271 * state) % 0x7fffffff) / 0x7fffffff;
  const hidden = (text) => text.replace(/[\p{L}\p{N}]+/gu, (word) => (random() < masked ? '[MASK]' : word));
  const examples = Array.from({ length: epochs }, () =>
    training.map(({ text, rating }) => ({ text: hidden(text), label: 1 / (1 + Math.exp(-rating)) })),
  ).flat();
  const model = await attn.loadModel(work);
  const mean = new Map();
  const average = (step) => {
    const kept = Math.min(keep, step / (step + 9));
    for (const [name, { data, dims }] of model.stateDict()) {
      const sums = mean.get(name)?.data ?? data.slice();
      for (let i = 0; i < data.length; ++i) sums[i] += (1 - kept) * (data[i] - sums[i]);
      mean.set(name, { data: sums, dims });
    }
  };
  const begun = performance.now();
  await model.fineTune(examples, {
    epochs: 1,
    batchSize: 32,
    learningRate: 1e-3,
    labels: ['positive'],
    onProgress({ step, steps, loss }) {
      average(step);
      if (step % 100 === 0) console.log(`step ${step} of ${steps}, loss ${loss.toFixed(3)}`);
    },
  });
  model.loadStateDict(mean);
  const answers = await model.classify(heldOut.map(({ text }) => text));
  const right = heldOut.filter(({ rating }, i) => answers[i][0].score > 0.5 === rating > 0).length;
  console.log(`whole: ${((performance.now() - begun) / 1000).toFixed(0)} s`);
  compare('whole', right / heldOut.length, 'PyTorch (testdata/make/sentiment/train.py)', other);
  model.dispose();
}

const asked = process.argv.slice(2);
for (const [name, run] of Object.entries({ head, whole })) if (asked.length === 0 || asked.includes(name)) await run();
attn.dispose();
