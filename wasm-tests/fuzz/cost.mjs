// node wasm-tests/fuzz/cost.mjs [--seconds N] [--seed N] [--one N]: runs expensive tokenizer.json files and texts in
// Node.
// A case fails if it exceeds limits of CPU time and steps per byte of the file and character of the text, or of memory:
// bytes retained per file, and the heap of a child process. Each case is drawn from its number (draw.mjs), so --one
// NUMBER repeats it. cost.test.mjs is a short run with a fixed seed; a long run is --seconds 3600.
import { fork } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { drawFile, drawTexts, drawVocabulary, Random } from './draw.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const repository = join(here, '..', '..');
const bundle = join(repository, 'build', 'wasm-tests', 'fuzz', 'tokenizer.mjs');

/** Limits: ten times the cost of the most expensive cases, on a slow machine. */
const most = {
  /** Heap of a process: allows values of ten times a file's bytes, and some hundred bytes per character of a text. */
  megabytes: 160,
  /** CPU nanoseconds per byte of the file, plus milliseconds per file. */
  perByte: 5000,
  perFile: 500,
  /** The same per character and text. */
  perCharacter: 40_000,
  perText: 500,
  /**
   * Steps per character, which the package counts and limits; and nanoseconds per step, which reveals uncounted work.
   */
  steps: 256,
  moreSteps: 2 ** 16,
  perStep: 1000,
  /** Bytes retained per byte of a parsed file, plus a constant for the engine's caches of executed code. */
  kept: 10,
  moreKept: 2 ** 20,
};

/** Cases that once cost too much. */
const found = [123324129, 123325280, 136287348];

function used() {
  globalThis.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const milliseconds = ({ user, system }) => (user + system) / 1000;

/** Runs a case; returns its errors, or its costs. */
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
    // Also truncation with padding and special tokens.
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
 * Runs cases in a child process until the time is over, restarting it if it dies; `one` runs only that case. Resolves
 * to { findings, useful, outcomes, summary }: numbers of too expensive cases, whether enough files were accepted, and
 * kinds of outcomes.
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
            signal === 'SIGKILL' ? 'not finished in two minutes' : `ended the process (${code ?? signal}), which had ${most.megabytes} MB`,
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
  // If all files were refused at once, the search would find nothing.
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
  if (!useful) console.log('too few files were accepted');
  process.exitCode = findings.length > 0 || !useful ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
