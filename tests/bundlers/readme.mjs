/** Compares the table in the package's README with the rows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../../wasm-tests/support/paths.mjs';
import { rows } from './rows.mjs';

const head = '| tool or place | works | with this |';

/** Summarises a row in the words of the table. */
export function summary({ attention, model, threads, worker, workerThreads }) {
  const code = (text) => `\`${text.split(':')[0]}\``;
  if (attention !== 'works') return code(attention);
  const list = [];
  if (model !== 'works') list.push(`\`loadModel\` is ${code(model)}`);
  if (threads !== 'works' && workerThreads !== 'works') list.push('one thread');
  if (worker === undefined) list.push('no `attn/worker`');
  else if (worker !== 'works') list.push(`\`attn/worker\` is ${code(worker)}`);
  return list.join('; ') || 'all';
}

/** Parses the lines of the table: [names, works, how]. */
export function tableOf(readme) {
  const lines = readme.slice(readme.indexOf(head)).split('\n').slice(2);
  return lines.slice(0, lines.indexOf('')).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

/** Describes the differences between table and rows. */
export function differences(readme = readFileSync(join(repository, 'web/lib/README.md'), 'utf8')) {
  const table = tableOf(readme);
  const named = new Set();
  const found = [];
  for (const { name, line = name, says, setting = '' } of rows) {
    // A line may list several names.
    const lines = table.filter(([names]) => names.split(/, (?![^(]*\))/).includes(line));
    if (lines.length !== 1) {
      found.push(`${lines.length} lines name ${line}`);
      continue;
    }
    const [names, works, how] = lines[0];
    named.add(names);
    if (works !== summary(says)) found.push(`${names}: "${works}", but ${name} says "${summary(says)}"`);
    if (!how.includes(setting)) found.push(`${names}: "${how}", but ${name} needs ${setting}`);
  }
  for (const [names] of table) if (!named.has(names)) found.push(`no row for ${names}`);
  return found;
}
