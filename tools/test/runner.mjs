/** Runs steps, up to three at a time, prints the output of each step in one piece, and a summary. */
import { stripVTControlCharacters } from 'node:util';
import { current, processorSeconds } from './processes.mjs';

/** Steps with pending output, in the order of their starts: the first prints directly, the others once it has ended. */
const shown = [];

function show() {
  while (shown.length > 0) {
    for (const [stream, text] of shown[0].said.splice(0)) stream.write(text);
    if (!shown[0].ended) return;
    shown.shift();
  }
}

class Step {
  said = [];
  last = '';
  tests = [];
  ended = false;
  result = { passed: 0, failed: 1 };
  constructor(entry) {
    Object.assign(this, entry);
  }
  say(text, stream = process.stderr) {
    this.said.push([stream, text]);
    this.last = (this.last + text).slice(-2000);
    show();
  }
}

/** Runs a step unless a needed one has failed or was skipped; counts any exception as failure. */
async function runStep(step, names) {
  const broken = step.needed.find(({ result }) => result.failed > 0);
  const lacking = step.needed.find(({ result }) => result.skipped);
  const started = Date.now();
  shown.push(step);
  await current.run(step, async () => {
    step.say(`\n== ${step.name}\n`, process.stdout);
    if (broken) return step.say(`not run: ${broken.name} failed\n`);
    if (lacking) return void (step.result = { passed: 0, failed: 0, skipped: `it needs ${lacking.name}` });
    try {
      step.result = await step.run({ names });
    } catch (error) {
      step.say(`${error.stack ?? error}\n`);
    }
  });
  step.ended = true;
  step.seconds = (Date.now() - started) / 1000;
  const { passed, failed } = step.result;
  step.say(`-- ${step.name}: ${passed} passed, ${failed} failed, ${step.seconds.toFixed(0)} s\n`, process.stdout);
  show();
}

/** Runs steps one after another: those of the lane first, then any others unless `only`. */
async function work(lane, steps, names, { only = false } = {}) {
  const mine = only ? steps.filter((each) => each.lane === lane) : steps;
  for (;;) {
    const ready = mine.filter(({ running, needed }) => !running && needed.every(({ ended }) => ended));
    const step = ready.find((each) => each.lane === lane) ?? ready[0];
    if (step) await (step.running = runStep(step, names));
    else if (mine.every(({ running }) => running)) return;
    else await nextEnd(steps);
  }
}

async function nextEnd(steps) {
  const running = steps.filter(({ running, ended }) => running && !ended);
  if (running.length === 0) throw new Error('steps need each other in a circle');
  await Promise.race(running.map((step) => step.running));
}

/**
 * Runs steps and prints a summary; resolves to { passed, failed }. Steps of the lane `setUp` run first, one at a time;
 * then two at a time, and a third one of the lane `waiting`. `names`: runs only tests whose names contain this text.
 */
export async function runSteps(entries, { names } = {}) {
  const began = Date.now();
  const steps = entries.map((entry) => new Step(entry));
  for (const step of steps) step.needed = step.needs.map((name) => steps.find((each) => each.name === name)).filter(Boolean);
  const setUps = steps.filter(({ lane }) => lane === 'setUp');
  await work('setUp', setUps, names);
  const lanes = [work('compiled', steps, names), work('packaged', steps, names), work('waiting', steps, names, { only: true })];
  await Promise.all(lanes);
  return summary(steps, (Date.now() - began) / 1000);
}

const row = (seconds, text) => console.log(`${seconds.toFixed(0).padStart(5)} s  ${text}`);
const processor = (seconds) => (seconds >= 0 ? `${seconds.toFixed(0).padStart(5)} s CPU  ` : '');

function slowest(title, list) {
  console.log(`\n== the slowest ${title}`);
  for (const [name, seconds] of list.sort((a, b) => b[1] - a[1]).slice(0, 10)) row(seconds, name);
}

function failures({ name, tests, last, result }) {
  if (result.failed === 0) return;
  const indent = (text) => `        ${stripVTControlCharacters(text).trim().replaceAll('\n', '\n        ')}`;
  const known = tests.filter(({ failed }) => failed !== undefined);
  for (const test of known) console.log(`FAILED  ${name}: ${test.name}\n${indent(test.failed.split('\n').slice(0, 6).join('\n'))}`);
  if (known.length === 0) console.log(`FAILED  ${name}\n${indent(last.trimEnd().split('\n').slice(-12).join('\n'))}`);
}

function summary(steps, seconds) {
  console.log('\n== summary');
  for (const { name, seconds, processorSeconds: used, result } of steps)
    row(
      seconds,
      `${processor(used)}${name.padEnd(32)} ${result.skipped ? `skipped: ${result.skipped}` : `${result.passed} passed, ${result.failed} failed`}`,
    );
  const count = (kind) => steps.reduce((sum, { result }) => sum + result[kind], 0);
  const passed = count('passed');
  const failed = count('failed') + Number(passed + count('failed') === 0);
  slowest(
    'steps',
    steps.map(({ name, seconds }) => [name, seconds]),
  );
  slowest(
    'tests',
    steps.flatMap(({ name, tests }) => tests.map((test) => [`${name}: ${test.name}`, test.seconds])),
  );
  if (failed > 0) console.log('\n== what failed');
  for (const step of steps) failures(step);
  console.log();
  row(seconds, `in all, ${processorSeconds(process.pid).toFixed(0)} s of processor time`);
  return { passed, failed };
}
