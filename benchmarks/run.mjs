/**
 * node benchmarks/run.mjs: runs the cases in every host and writes the report to build/bench. HOSTS, CASES, QUICK and
 * FULL select cases (README.md). `make bench` builds everything first.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { missing } from '../wasm-tests/browser/drivers.mjs';
import { writeReport } from './report/report.mjs';
import { settings } from './settings.mjs';
import { runBrowser } from './wasm/browser.mjs';

const repository = fileURLToPath(new URL('..', import.meta.url));
const folder = join(repository, 'build/bench');
const { table, hosts, options } = await settings();

/** Runs a Node program; passes each line of its output to onLine. */
function program(args, onLine) {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, args, { cwd: repository, stdio: ['ignore', onLine ? 'pipe' : 'inherit', 'inherit'] });
    const lines = onLine && createInterface({ input: child.stdout }).on('line', onLine);
    child.on('error', fail);
    child.on('close', (code) => (lines?.close(), code === 0 ? done() : fail(new Error(`${args.at(-1)} ended with ${code}`))));
  });
}

/** Node 20 needs this flag for relaxed SIMD; newer versions do not recognise it. */
const flag = '--experimental-wasm-relaxed-simd';
const relaxed = spawnSync(process.execPath, [flag, '-e', '0']).status === 0 ? [flag] : [];

const runners = {
  async node(tell) {
    let failed;
    const hear = (line) => {
      const news = JSON.parse(line);
      failed ??= news.fatal;
      tell(news);
    };
    await program([...relaxed, join(repository, 'benchmarks/wasm/node.mjs')], hear).catch((error) => {
      throw failed ? new Error(failed) : error;
    });
  },
  chromium: (tell) => runBrowser('chromium', options, tell),
  firefox: (tell) => runBrowser('firefox', options, tell),
  webkit: (tell) => runBrowser('webkit', options, tell),
};

const records = [];
const notes = [];
let failures = 0;
const wanted = (host) => hosts.length === 0 || hosts.includes(host);
for (const name of hosts)
  if (!(name in runners) && name !== 'native') throw new Error(`no host '${name}': ${[...Object.keys(runners), 'native'].join(' ')}`);

/** Writes after every host, so that an interrupted run leaves results. */
function write() {
  const [{ model }] = cpus();
  const results = {
    machine: { cpu: model, cores: cpus().length, memory_gib: Math.round(totalmem() / 2 ** 30), system: `${process.platform} ${process.arch}` },
    date: new Date().toISOString(),
    quick: options.isQuick,
    notes,
    records,
  };
  writeFileSync(join(folder, 'results.json'), JSON.stringify(results, null, 1));
  return writeReport(results, table, folder);
}

mkdirSync(folder, { recursive: true });
for (const name of readdirSync(folder)) if (/\.svg$|^results\./.test(name)) rmSync(join(folder, name));
for (const [host, runner] of Object.entries(runners)) {
  if (!wanted(host)) continue;
  const parts = host === 'node' ? [] : missing(host);
  if (parts.length) {
    notes.push({ host, note: `not run: ${parts.join(', ')} not found` });
    continue;
  }
  const started = Date.now();
  try {
    await runner(({ record, note, current }) => {
      if (record) records.push(record);
      if (note) notes.push({ host, note });
      if (note || current) console.log(`${host}, ${Math.round((Date.now() - started) / 1000)} s: ${note ?? current}`);
    });
  } catch (error) {
    failures++;
    notes.push({ host, note: `stopped: ${error.message}` });
    console.error(`${host}: ${error.message}`);
  }
  write();
}
if (wanted('native'))
  try {
    rmSync(join(folder, 'native.json'), { force: true });
    await program([join(repository, 'benchmarks/native/run.mjs')]);
    records.push(...[JSON.parse(readFileSync(join(folder, 'native.json'), 'utf8'))].flatMap((read) => read.records ?? read));
  } catch (error) {
    failures++;
    notes.push({ host: 'native', note: `stopped: ${error.message}` });
    console.error(`native: ${error.message}`);
  }

for (const file of write()) console.log(file);
process.exitCode = failures ? 1 : 0;
