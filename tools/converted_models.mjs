/**
 * Makes models/all-MiniLM-L6-v2-int8, which the page loads by default, out of the published files by the package's own command, `attn convert`. Nothing
 * is done where those are not there (tools/setup models), the package is not built yet (make wasm), or it has been done since they came.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const published = at('models/all-MiniLM-L6-v2');
const int8 = `${published}-int8`;
const { bin } = JSON.parse(readFileSync(at('web/lib/package.json'), 'utf8'));
const program = bin?.attn && join(at('web/lib'), bin.attn);

/** When a folder's weights were written; undefined: there are none. */
const written = (folder) => statSync(join(folder, 'model.safetensors'), { throwIfNoEntry: false })?.mtimeMs;

if (program && existsSync(program) && written(published) !== undefined && !(written(int8) >= written(published))) {
  // Another name until all of it is there.
  const making = `${int8}.making`;
  rmSync(making, { recursive: true, force: true });
  const { status, stderr } = spawnSync(process.execPath, [program, 'convert', published, making, '--weights', 'int8'], { encoding: 'utf8' });
  if (status === 0) {
    rmSync(int8, { recursive: true, force: true });
    renameSync(making, int8);
    console.log(`${int8}: ${(statSync(join(int8, 'model.safetensors')).size / 1e6).toFixed(1)} MB of weights`);
  } else {
    rmSync(making, { recursive: true, force: true });
    console.error(`${int8} could not be made: ${stderr.trim()}`);
    process.exitCode = 1;
  }
}
