/**
 * Measures attn natively against onnxruntime-node and PyTorch, and writes records to build/bench/native.json in the
 * same form as the WebAssembly hosts. Contenders are processes that take turns sample by sample, so that disturbances
 * of the machine affect all of them. CASES, QUICK and FULL as in settings.mjs.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chosen, flops, folderOf, weightBytes } from '../cases.mjs';
import { settings } from '../settings.mjs';
import { furthest, summary, summaryOfParts } from '../wasm/measure.mjs';

const root = new URL('../../', import.meta.url);
const path = (name) => fileURLToPath(new URL(name, root));
const { table, options } = await settings();
const samples = options.isQuick ? 4 : 12;
const least = options.isQuick ? 10 : 20;
/** Calls longer than `call` milliseconds have only `samples` samples; the record shows the number. */
const long = { call: 1500, samples: 3 };
/** After this many rounds the slower form of a peer is dropped if the other one is clearly faster. */
const trial = { rounds: 3, margin: 1.1 };
/** Milliseconds of spinning of idle threads after work, measured by processor time. */
const pause = { onnxruntime: 80, others: 20 };
/** Kernels narrower than the best are compared on calls of up to this many GFLOP, on one thread. */
const narrow = 30;
/** Longest calls in GFLOP by kind, without FULL=1. */
const most = options.isFull ? {} : { encoder: 100 };
/** Rounds over all texts, or with QUICK over one batch of five. */
const textRounds = options.isQuick ? 2 : 4;
const batchesFile = path('build/bench/batches.json');

/** Starts a process that answers each line with a line; resolves once it has introduced itself. */
async function start(command, args, environment = {}) {
  const child = spawn(command, args, { env: { ...process.env, ...environment }, stdio: ['pipe', 'pipe', 'inherit'] });
  const failed = new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => reject(new Error(`${command} ${args.join(' ')} ended with ${signal ?? code}`)));
  });
  failed.catch(() => {});
  // The process has exited, which read() reports.
  child.stdin.on('error', () => {});
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async () => {
    const { value, done } = await lines.next();
    return done ? failed : JSON.parse(value);
  };
  return {
    ...(await read()),
    ask(request) {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      return read();
    },
    end: () => child.stdin.end(),
  };
}

/**
 * Starts attn with the best kernels of this machine and with each narrower set that it has; narrower avx512f and
 * avx_vnni are for int8 only.
 */
async function startAttn() {
  const program = path('build/bench-native/benchmarks/attn_benchmarks');
  const processes = [];
  for (const limit of [undefined, 'avx512f', 'avx_vnni', 'avx2_fma', 'sse4_2']) {
    const one = await start(program, ['--serve', `--benchmark_min_time=${least / 1000}`], { ATTN_MAX_ARCH: limit });
    if (processes.some(({ variant }) => variant === one.variant)) one.end();
    else processes.push({ ...one, isOfInt8: ['avx512f', 'avx_vnni'].includes(one.variant) && processes.length > 0 });
  }
  return processes;
}

/** Contenders of a case: { process, contender, variant, threads }. */
function contendersOf(one) {
  const { attn, onnxruntime, pytorch } = processes;
  const all = [];
  for (const threads of ['load', 'training'].includes(one.kind) ? [1] : [1, 2]) {
    for (const [index, process] of attn.entries())
      if (index === 0 || (threads === 1 && flops(one) <= narrow * 1e9 && !one.checkpoint && (one.int8 || !process.isOfInt8)))
        all.push({ process, contender: 'attn', variant: process.variant, threads });
    for (const variant of ['plain', 'fused']) all.push({ process: onnxruntime, contender: 'onnxruntime-node', variant, threads });
    const hasPaths = one.kind === 'encoder' || one.kind === 'mha';
    for (const variant of hasPaths ? ['fast path', ''] : ['']) all.push({ process: pytorch, contender: 'pytorch', variant, threads });
  }
  return all;
}

const fastest = ({ answers }) => Math.min(...answers.map(({ ms }) => ms));

/** Checks that both are forms of the same peer, and that `other` is the faster one. */
function isSlowerForm(one, other) {
  const isSame = one.process === other.process && one.contender !== 'attn' && one.threads === other.threads && one !== other;
  return isSame && trial.margin * fastest(other) < fastest(one);
}

/** Waits until the idle threads of the previous contender stop spinning. */
const rest = ({ process, threads }) => threads > 1 && setTimeout(process === processes.onnxruntime ? pause.onnxruntime : pause.others);

/**
 * Measures a case of texts. Contenders take turns batch by batch; a peer's time includes attn's tokenizer, which
 * provides its ids.
 */
async function measureTexts(one) {
  const { batches } = await processes.attn[0].ask({ batches: one });
  await writeFile(batchesFile, JSON.stringify(batches));
  const every = options.isQuick ? 5 : 1;
  const chosen = batches.map((_, batch) => batch).filter((batch) => batch % every === 0);
  let running = contendersOf(one).map((each) => ({ ...each, parts: chosen.map(() => []) }));
  const tokenizing = chosen.map(() => Infinity);
  for (let round = 0; round < textRounds; round++) {
    for (const [part, batch] of chosen.entries()) {
      const asked = [];
      for (const each of running) {
        const { process, variant, threads, parts } = each;
        const answer = await process.ask({ case: one, variant, threads, least: 0, memory: false, batch, file: batchesFile });
        if (answer.error) throw new Error(`${one.name}, ${each.contender}: ${answer.error}`);
        each.isAbsent = answer.absent;
        if (answer.absent) continue;
        parts[part].push(answer.ms);
        if (answer.tokenize_ms) tokenizing[part] = Math.min(tokenizing[part], answer.tokenize_ms);
        asked.push({ ...each, answers: [answer] });
        await rest(each);
      }
      compare(one, asked);
      running = running.filter(({ isAbsent }) => !isAbsent);
    }
    if (round > 0) continue;
    const withTime = running.map((each) => ({ ...each, answers: [{ ms: summaryOfParts(each.parts).min_ms }] }));
    running = running.filter((_, i) => !withTime.some((other) => isSlowerForm(withTime[i], other)));
  }
  const texts = chosen.reduce((sum, batch) => sum + batches[batch].dims[0], 0);
  return running.map(({ process: { engine }, contender, variant, threads, parts }) => {
    const whole = contender === 'attn' ? parts : parts.map((times, part) => times.map((ms) => ms + tokenizing[part]));
    const date = new Date().toISOString();
    return { host: 'native', engine, contender, variant, threads, case: one.name, calls: 1, ...summaryOfParts(whole), texts, date };
  });
}

async function measure(one) {
  const { shape, ...plain } = one;
  let running = contendersOf(one).map((each) => ({ ...each, answers: [] }));
  for (let round = 0; round < samples; round++) {
    for (const each of running) {
      if (each.answers.length >= long.samples && fastest(each) > long.call) continue;
      const { process, variant, threads } = each;
      const answer = await process.ask({ case: plain, shape, variant, threads, least, memory: round === 0, stream: weightBytes(one) });
      if (answer.error) throw new Error(`${one.name}, ${each.contender}: ${answer.error}`);
      if (answer.absent) each.isAbsent = true;
      else each.answers.push(answer);
      await rest(each);
    }
    running = running.filter(({ isAbsent }) => !isAbsent);
    if (round === 0) compare(one, running);
    if (round === trial.rounds - 1) running = running.filter((each) => !running.some((other) => isSlowerForm(each, other)));
  }
  return running.map(({ process, contender, variant, threads, answers }) => {
    const isAttn = contender === 'attn';
    const best = (name) => (isAttn ? Math.max(...answers.map((answer) => answer[name])) : null);
    return {
      host: 'native',
      engine: process.engine,
      contender,
      variant,
      threads,
      case: one.name,
      calls: Math.min(...answers.map(({ calls }) => calls)),
      ...summary(answers.map(({ ms }) => ms)),
      peak_gflops_before: best('peak_before'),
      peak_gflops_after: best('peak_after'),
      ...(isAttn && { bytes: answers[0].bytes, allocations: answers[0].allocations, products: process.products }),
      ...(isAttn && weightBytes(one) && { stream_ms: Math.min(...answers.map((answer) => answer.stream_ms)) }),
      date: new Date().toISOString(),
    };
  });
}

/** Stops the run if a contender's result differs from the first one's. */
function compare(one, running) {
  const [first] = running;
  for (const each of running)
    for (const [i, value] of each.answers[0].probe.entries())
      if (!(Math.abs(value - first.answers[0].probe[i]) <= furthest(one)))
        throw new Error(
          `${one.name}: ${each.contender} ${each.variant} gives ${value}, ${first.contender} ${first.variant} ${first.answers[0].probe[i]}`,
        );
}

/** Formats a record. */
function line({ contender, variant, threads, min_ms, median_ms, texts, peak_gflops_before, peak_gflops_after }, operations) {
  const gflops = (operations * 1e-6) / min_ms;
  const share = (100 * gflops) / (threads * Math.max(peak_gflops_before, peak_gflops_after));
  const words = [`${contender} ${variant}`.padEnd(24), `${threads} thread${threads > 1 ? 's' : ' '}`, `${min_ms.toFixed(3).padStart(9)} ms`];
  words.push(`median ${median_ms.toFixed(3).padStart(9)}`);
  if (texts) words.push(`${((texts * 1e3) / min_ms).toFixed(0).padStart(6)} texts/s`);
  if (operations) words.push(`${gflops.toFixed(1).padStart(6)} GFLOP/s`);
  if (operations && contender === 'attn') words.push(`${share.toFixed(0).padStart(3)} % of the peak`);
  return words.join('  ');
}

const processes = {
  attn: await startAttn(),
  onnxruntime: await start(process.execPath, [path('benchmarks/peers/onnxruntime.mjs')]),
  pytorch: await start(process.env.PYTHON ?? path('.setup/bench-venv/bin/python'), [path('benchmarks/peers/pytorch.py')]),
};
const records = [];
await mkdir(path('build/bench'), { recursive: true });
for (const group of chosen(table, { ...options, most, except: ['family'] }).values())
  for (const one of group) {
    if (one.checkpoint && !existsSync(path(`models/${folderOf(one)}/model.safetensors`))) {
      console.log(`${one.name}: left out, models/${folderOf(one)} is not there`);
      continue;
    }
    const made = await (one.kind === 'sentences' ? measureTexts : measure)(one);
    records.push(...made);
    console.log(one.name);
    for (const record of made) console.log(`  ${line(record, flops(one))}`);
  }
for (const each of [...processes.attn, processes.onnxruntime, processes.pytorch]) each.end();
await writeFile(path('build/bench/native.json.part'), `${JSON.stringify(records, null, 1)}\n`);
await rename(path('build/bench/native.json.part'), path('build/bench/native.json'));
