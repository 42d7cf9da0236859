// node testdata/make/goldens/fine_tuned_files.mjs [FOLDER ...]: fine-tunes each model (all of testdata/models, and
// models/all-MiniLM-L6-v2 if present) to three labels, saves it and compares attn's logits with those of transformers
// for the saved folder (fine_tuned_files.py). Needs the built package and Python with its venv module. Prints a line
// per model; exit 1 if they differ.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load } from '../../../web/lib/dist/node.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const stock = readdirSync(join(root, 'testdata/models'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'static')
  .map(({ name }) => join(root, 'testdata/models', name));
const minilm = join(root, 'models/all-MiniLM-L6-v2');
const folders = process.argv.length > 2 ? process.argv.slice(2) : [...stock, ...(existsSync(minilm) ? [minilm] : [])];

const labels = ['bad', 'good', 'so "so"'];
const texts = ['a warm , funny and clever film', 'dull and far too long', 'tedious', 'a delight', 'it works now and then', 'neither good nor bad'];
const examples = texts.map((text, i) => ({ text, label: [1, 0, 0, 1, 2, 2][i] }));

const out = mkdtempSync(join(tmpdir(), 'attn-fine-tuned-'));
const attn = await load({ threads: 1 });
for (const folder of folders) {
  const model = await attn.loadModel(folder);
  const inputs = model.tokenize([...texts, 'film']);
  await model.fineTune(examples, { epochs: 6, batchSize: 3, learningRate: 1e-3, labels });
  const { logits } = model.forward(inputs);
  const to = join(out, basename(folder));
  for (const [name, bytes] of Object.entries(await model.export())) {
    mkdirSync(dirname(join(to, name)), { recursive: true });
    writeFileSync(join(to, name), bytes);
  }
  const floats = (data) => ({ data: Float32Array.from(data), dims: inputs.dims });
  const expected = { input_ids: floats(inputs.inputIds), attention_mask: floats(inputs.attentionMask), logits };
  writeFileSync(join(to, 'expected.safetensors'), attn.writeSafetensors(expected));
  writeFileSync(join(to, 'labels.json'), JSON.stringify(labels));
  model.dispose();
}
attn.dispose();
const { status } = spawnSync(
  join(root, 'testdata/make/goldens/fine_tuned_files.sh'),
  folders.map((folder) => join(out, basename(folder))),
  { stdio: 'inherit' },
);
rmSync(out, { recursive: true });
process.exitCode = status ?? 1;
