// Plants bugs in the package and the page's state, and prints those that no test finds: node tools/mutants/run.mjs
// [FILE]... FILE is a part of a path. Reports: build/mutants-GROUP.json (groups.mjs).
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { groups } from './groups.mjs';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const stryker = fileURLToPath(new URL('node_modules/@stryker-mutator/core/bin/stryker.js', import.meta.url));

setPriority(10);
const words = process.argv.slice(2);
const rows = [];
for (const [group, { folder, files }] of Object.entries(groups)) {
  const names = files ?? readdirSync(join(repository, folder)).filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'));
  const picked = names.map((name) => `${folder}/${name}`).filter((path) => words.length === 0 || words.some((word) => path.includes(word)));
  if (picked.length === 0) continue;
  const report = join(repository, 'build', `mutants-${group}.json`);
  rmSync(report, { force: true });
  spawnSync(process.execPath, [stryker, 'run', 'tools/mutants/stryker.mjs', '--mutate', picked.join()], {
    cwd: repository,
    stdio: 'inherit',
    env: { ...process.env, MUTANTS_GROUP: group },
  });
  if (!existsSync(report)) throw new Error(`mutants: no report of ${group}`);
  print(JSON.parse(readFileSync(report, 'utf8')));
}
console.log(`\n${table([['file', 'mutants', 'killed', 'survived', 'not reached', 'found'], ...rows])}`);

function print({ files }) {
  for (const [path, { mutants, source }] of Object.entries(files)) {
    const lines = source.split('\n');
    const count = (...states) => mutants.filter(({ status }) => states.includes(status)).length;
    const [killed, survived, notReached] = [count('Killed', 'Timeout', 'RuntimeError'), count('Survived'), count('NoCoverage')];
    const all = killed + survived + notReached;
    rows.push([path, all, killed, survived, notReached, all === 0 ? '' : `${((100 * killed) / all).toFixed(1)} %`]);
    for (const { status, location, replacement } of mutants) {
      if (status !== 'Survived' && status !== 'NoCoverage') continue;
      const { start, end } = location;
      const text =
        start.line === end.line ? lines[start.line - 1].slice(start.column - 1, end.column - 1) : lines[start.line - 1].slice(start.column - 1);
      console.log(`${path}:${start.line}:${start.column} ${status === 'Survived' ? '' : '(not reached) '}${text.trim()}  ->  ${replacement}`);
    }
  }
}

function table(all) {
  const widths = all[0].map((_, i) => Math.max(...all.map((row) => String(row[i]).length)));
  return all.map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : String(cell).padStart(widths[i]))).join('  ')).join('\n');
}
