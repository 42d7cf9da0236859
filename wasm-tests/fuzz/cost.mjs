// node wasm-tests/fuzz/cost.mjs [--seconds N] [--seed N] [--one N]: tokenizer.json files and texts that try to be expensive, in Node.
//
// What a case costs is the oracle: CPU time and steps for each byte of the file and character of the text, and memory: what stays of a file, and all that
// a child process has. A case is drawn by its number (draw.mjs), so a finding is run again by --one NUMBER. cost.test.mjs is the short run with a fixed
// seed; the long run is --seconds 3600.
import { fork } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { drawFile, drawTexts, drawVocabulary, Random } from './draw.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const repository = join(here, '..', '..');
const bundle = join(repository, 'build', 'wasm-tests', 'fuzz', 'tokenizer.mjs');

/** What a case may cost: ten times what the most expensive ones do, on a slow machine. */
const most = {
  /** Megabytes of the heap of a process: for values of ten times a file's bytes, and some hundred bytes for each character of a text. */
  megabytes: 160,
  /** Nanoseconds of CPU for each byte of the file, and milliseconds beside. */
  perByte: 5000,
  perFile: 500,
  /** For each character of the text. */
  perCharacter: 40_000,
  perText: 500,
  /** Steps for each character, by the package's own count: what it promises. And nanoseconds for each of them: what it does not count would show. */
  steps: 256,
  moreSteps: 2 ** 16,
  perStep: 1000,
  /** Bytes that stay of a file once it is read, for each of its own, and beside: what the engine remembers of the code that ran. */
  kept: 10,
  moreKept: 2 ** 20,
};

/** Cases that cost too much once. */
const found = [123324129, 123325280, 136287348];

/** Bytes that are in use. */
function used() {
  globalThis.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const milliseconds = ({ user, system }) => (user + system) / 1000;

/** Runs one case; what is wrong with it, or its costs. */
function runCase(number, published, { AttnError, Budget, Tokenizer }) {
  const random = new Random(number);
  const drawn = number % 8 === 7 ? drawVocabulary(random) : drawFile(random, published);
  const { bytes } = drawn;
  if (bytes.length > 32e6) return {};
  const texts = drawTexts(random, drawn);
  const told = { parse: 0, steps: 0, perCharacter: 0, perStep: 0, kept: 0, outcome: 'read' };
  const attempt = (work) => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof AttnError) || error.code === 'INTERNAL') throw new Error(`no AttnError: ${error?.stack ?? error}`, { cause: error });
      if (error.message.length > 2000) throw new Error(`a message of ${error.message.length} characters`, { cause: error });
      told.outcome = `${error.code} ${error.message.replace(/[0-9]+/g, '0').slice(0, 60)}`;
    }
  };
  let since = process.cpuUsage();
  const spent = () => {
    const now = milliseconds(process.cpuUsage(since));
    since = process.cpuUsage();
    return now;
  };
  const before = used();
  spent();
  const tokenizer = attempt(() => new Tokenizer({ tokenizer: bytes }));
  told.parse = spent();
  if (told.parse > most.perFile + (most.perByte * bytes.length) / 1e6) throw new Error(`reading ${bytes.length} bytes took ${told.parse} ms`);
  if (!tokenizer) return told;
  const kept = used() - before;
  if (kept > most.kept * bytes.length + most.moreKept) throw new Error(`${bytes.length} bytes stay as ${kept} in memory`);
  told.kept = kept / (bytes.length + 1e5);
  for (const text of texts) {
    const budget = new Budget(text.length);
    spent();
    attempt(() => tokenizer.split(text, Infinity, 'right', budget));
    const time = spent();
    if (time > most.perText + (most.perCharacter * text.length) / 1e6) throw new Error(`${text.length} characters took ${time} ms`);
    if (budget.steps > most.steps * text.length + most.moreSteps) throw new Error(`${text.length} characters took ${budget.steps} steps`);
    if (time > most.perText + (most.perStep * (budget.steps + text.length)) / 1e6) throw new Error(`${budget.steps} steps took ${time} ms`);
    told.perStep = Math.max(told.perStep, (1e6 * time) / (budget.steps + text.length + 1e5));
    told.steps = Math.max(told.steps, budget.steps / (text.length + 100));
    told.perCharacter = Math.max(told.perCharacter, (1e6 * time) / (text.length + 1000));
    // And with all around it.
    if (text.length > 5000) continue;
    attempt(() => tokenizer.encode([text, ''], { maxLength: 2 ** 31 - 1, truncation: true }));
    attempt(() => tokenizer.encode([[text, text.slice(0, 100)]], { maxLength: 64, truncation: true }));
  }
  return told;
}

async function child() {
  const library = await import(pathToFileURL(bundle).href);
  const folder = join(repository, 'testdata', 'models');
  const published = readdirSync(folder)
    .map((name) => join(folder, name, 'tokenizer.json'))
    .filter(existsSync)
    .map((path) => JSON.parse(readFileSync(path, 'utf8')));
  process.on('message', (number) => {
    try {
      process.send({ number, ...runCase(number, published, library) });
    } catch (error) {
      process.send({ number, finding: error.message });
    }
  });
  process.send({});
}

/**
 * Runs one case after the other in a child until the time is over; another child after one that died. `one` runs that case alone. Resolves to
 * { findings, useful, outcomes, summary }: the numbers of the cases that cost too much, whether enough files were read, and what came of them.
 */
export async function search({ seconds = 20, seed = Date.now() % 2 ** 31, one } = {}) {
  mkdirSync(join(bundle, '..'), { recursive: true });
  const { rolldown } = await import('rolldown');
  const bundled = await rolldown({ input: join(here, 'tokenizer.mjs'), platform: 'node' });
  await bundled.write({ file: bundle, format: 'es' });

  const end = Date.now() + 1000 * seconds;
  let next = one ?? seed;
  const first = next;
  const findings = [];
  const outcomes = new Map();
  const worst = { parse: 0, steps: 0, perCharacter: 0, perStep: 0, kept: 0 };
  let cases = 0;
  const again = one === undefined ? [...found] : [];
  const over = () => (one === undefined ? Date.now() >= end : cases > 0);
  while (!over() && findings.length < 10)
    await new Promise((done) => {
      const process = fork(fileURLToPath(import.meta.url), ['--child'], {
        execArgv: [`--max-old-space-size=${most.megabytes}`, '--stack-trace-limit=4', '--expose-gc'],
        stdio: ['ignore', 'inherit', 'ignore', 'ipc'],
      });
      let [running, timer] = [undefined, undefined];
      const finding = (number, what) => {
        findings.push(number);
        console.log(`case ${number}: ${what}`);
      };
      process.on('message', ({ number, finding: found, ...told }) => {
        clearTimeout(timer);
        if (number !== undefined) {
          ++cases;
          if (found) finding(number, found);
          if (told.outcome) outcomes.set(told.outcome, (outcomes.get(told.outcome) ?? 0) + 1);
          for (const name of Object.keys(worst)) worst[name] = Math.max(worst[name], told[name] ?? 0);
        }
        running = undefined;
        if (over()) return void process.kill();
        running = again.shift() ?? next++;
        timer = setTimeout(() => process.kill('SIGKILL'), 120_000);
        process.send(running);
      });
      process.on('exit', (code, signal) => {
        clearTimeout(timer);
        if (running !== undefined) {
          ++cases;
          finding(
            running,
            signal === 'SIGKILL' ? 'not done in two minutes' : `ended the process (${code ?? signal}), which had ${most.megabytes} MB`,
          );
        }
        done();
      });
    });
  const read = outcomes.get('read') ?? 0;
  const summary =
    `${cases} cases from ${first}: ${read} read, at most ${worst.parse.toFixed(0)} ms to read a file, ${worst.steps.toFixed(0)} steps and ` +
    `${(worst.perCharacter / 1000).toFixed(1)} µs a character, ${worst.perStep.toFixed(0)} ns a step, ${worst.kept.toFixed(1)} × the file in memory; ` +
    `${outcomes.size - 1} kinds of refusals`;
  // A generator whose files are all refused at once would find nothing.
  const useful = one !== undefined || read > cases / 20;
  return { findings, useful, outcomes: [...outcomes.keys()], summary };
}

async function main() {
  const { values } = parseArgs({
    options: { seconds: { type: 'string' }, seed: { type: 'string' }, one: { type: 'string' }, child: { type: 'boolean' } },
  });
  if (values.child) return child();
  const [seconds, seed, one] = [values.seconds, values.seed, values.one].map((value) => (value === undefined ? undefined : Number(value)));
  const { findings, useful, outcomes, summary } = await search({ seconds, seed, one });
  if (one !== undefined) console.log(outcomes.join());
  console.log(summary);
  if (!useful) console.log('hardly a file was read');
  process.exitCode = findings.length > 0 || !useful ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
