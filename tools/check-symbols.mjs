// node tools/check-symbols.mjs LIBRARY: what the compiled library must not have among its symbols. Prints each and ends with a line of totals;
// exit 1 when there is one.
import { execFileSync } from 'node:child_process';

const [library] = process.argv.slice(2);
const lines = execFileSync('nm', ['--demangle', '--defined-only', library], { encoding: 'utf8', maxBuffer: 1 << 28 }).split('\n');
const symbols = lines.filter((line) => /^[0-9a-f]{16} /.test(line));
const broken = symbols
  .filter((line) => /\bxt::/.test(line))
  .map((line) => `${line.slice(17)}: xtensor is what users compile, in their configuration`);
for (const line of broken) console.log(line);
if (symbols.length < 1000) broken.push('');
console.log(`symbols of ${library}: ${symbols.length}, ${broken.length} that do not belong there`);
process.exitCode = broken.length ? 1 : 0;
