// node testdata/make/goldens/int8_files.mjs [FOLDER ...]: saves each model (all of testdata/models, and
// models/all-MiniLM-L6-v2 if present) as int8 and compares attn with transformers and compressed-tensors on the files
// (int8_files.py). Needs the built package and Python with its venv module. Prints a line per model; exit 1 if they
// differ.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

const texts = JSON.parse(readFileSync(join(root, 'testdata/sentiment/films.json'), 'utf8'))
  .texts.slice(0, 200)
  .map(({ text }) => text);

const out = mkdtempSync(join(tmpdir(), 'attn-int8-'));
const attn = await load({ threads: 1 });
for (const folder of folders) {
  const model = await attn.loadModel(folder, { weights: 'int8' });
  const to = join(out, basename(folder));
  for (const [name, bytes] of Object.entries(await model.export())) {
    mkdirSync(dirname(join(to, name)), { recursive: true });
    writeFileSync(join(to, name), bytes);
  }
  const inputs = model.tokenize(texts);
  const floats = (data) => ({ data: Float32Array.from(data), dims: inputs.dims });
  const { hiddenStates, logits } = model.forward(inputs, { outputHiddenStates: true });
  const expected = {
    input_ids: floats(inputs.inputIds),
    attention_mask: floats(inputs.attentionMask),
    embedding: await model.embed(texts, { pooling: 'mean', normalize: false }),
    first_layer: hiddenStates[1],
    ...(logits && { logits }),
  };
  writeFileSync(join(to, 'expected.safetensors'), attn.writeSafetensors(expected));
  model.dispose();
}
const venv = join(root, 'testdata/make/goldens/int8_files.sh');
const { status } = spawnSync(venv, folders.map((folder) => join(out, basename(folder))).flat(), { stdio: 'inherit' });
rmSync(out, { recursive: true });
process.exitCode = status ?? 1;
