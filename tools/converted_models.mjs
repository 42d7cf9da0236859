/**
 * node tools/converted_models.mjs [int8] [float16]: makes models/all-MiniLM-L6-v2-int8, which the page loads by default, and …-float16 out of the
 * published files by the package's own command, `attn convert`; without arguments int8 alone. Nothing is done where those are not there (tools/setup
 * models), the package is not built yet (make wasm), or it has been done since they came. A folder without prompts gets an empty
 * config_sentence_transformers.json: loaders of sentence-transformers models ask for it, and browsers log a missing file as an error.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const published = at('models/all-MiniLM-L6-v2');
const { bin } = JSON.parse(readFileSync(at('web/lib/package.json'), 'utf8'));
const program = bin?.attn && join(at('web/lib'), bin.attn);

/** When a folder's weights were written; undefined: there are none. */
const written = (folder) => statSync(join(folder, 'model.safetensors'), { throwIfNoEntry: false })?.mtimeMs;

function convert(folder, weights) {
  if (!program || !existsSync(program) || written(published) === undefined || written(folder) >= written(published)) return;
  // Another name until all of it is there.
  const making = `${folder}.making`;
  rmSync(making, { recursive: true, force: true });
  const { status, stderr } = spawnSync(process.execPath, [program, 'convert', published, making, '--weights', weights], { encoding: 'utf8' });
  if (status === 0) {
    rmSync(folder, { recursive: true, force: true });
    renameSync(making, folder);
    console.log(`${folder}: ${(statSync(join(folder, 'model.safetensors')).size / 1e6).toFixed(1)} MB of weights`);
  } else {
    rmSync(making, { recursive: true, force: true });
    console.error(`${folder} could not be made: ${stderr.trim()}`);
    process.exitCode = 1;
  }
}

function addPrompts(folder) {
  const prompts = join(folder, 'config_sentence_transformers.json');
  if (existsSync(join(folder, 'modules.json')) && !existsSync(prompts)) writeFileSync(prompts, '{}\n');
}

for (const weights of process.argv.length > 2 ? process.argv.slice(2) : ['int8']) {
  const folder = `${published}-${weights}`;
  convert(folder, weights);
  addPrompts(folder);
}
