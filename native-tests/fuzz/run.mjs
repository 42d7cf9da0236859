// node native-tests/fuzz/run.mjs [--seconds N | --runs N] [--seed N] [--build FOLDER] [TARGET...]: libFuzzer, first on
// the seeds, none of which may be refused. New inputs are kept in FOLDER/corpus (build/native-asan) for the next run,
// failed ones in FOLDER/findings.
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = fileURLToPath(new URL('.', import.meta.url));
export const targets = readdirSync(join(here, 'corpus')).sort();

/** Longer inputs are slower and find no further bugs. */
const longest = { safetensors: 1024, gguf: 8192, config: 1536, tokenizer_json: 3072, tokenizer_cost: 3072, vocabulary_text: 256, model_files: 5120 };

const environment = {
  ...process.env,
  // Allocations that the library should have refused are crashes (-malloc_limit_mb). Without the second line, page
  // faults take a third of the time.
  ASAN_OPTIONS: [
    'detect_leaks=1:allocator_may_return_null=0',
    'detect_stack_use_after_return=0:malloc_context_size=2:quarantine_size_mb=16:allocator_release_to_os_interval_ms=-1',
  ].join(':'),
  UBSAN_OPTIONS: 'print_stacktrace=1',
};

function run(program, args, env = {}) {
  return new Promise((done) => {
    const child = spawn(program, args, { env: { ...environment, ...env } });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (said = (said + bytes).slice(-1 << 20)));
    child.on('error', (error) => done({ code: 127, said: error.message }));
    child.on('close', (code, signal) => done({ code: code ?? signal, said }));
  });
}

/** The report is one line, preceded by the program's output if it found a bug. */
export async function fuzz(target, { seconds = 30, runs, seed = 0, build = join(here, '../../build/native-asan') } = {}) {
  const program = join(build, 'native-tests/fuzz', `fuzz_${target}`);
  const seeds = join(here, 'corpus', target);
  const corpus = join(build, 'corpus', target);
  const findings = join(build, 'findings/');
  for (const folder of [corpus, findings]) mkdirSync(folder, { recursive: true });

  const files = readdirSync(seeds).map((name) => join(seeds, name));
  const first = await run(program, files, { ATTN_FUZZ_VERBOSE: '1' });
  if (first.code !== 0 || /^refused: /m.test(first.said))
    return { passed: false, report: `${first.said}\n${target}: a seed was refused, or ended the program (${first.code})` };
  const { code, said } = await run(program, [
    runs === undefined ? `-max_total_time=${seconds}` : `-runs=${runs}`,
    `-seed=${seed}`,
    `-max_len=${longest[target]}`,
    `-dict=${join(here, `${target}.dict`)}`,
    `-artifact_prefix=${findings}${target}-`,
    '-timeout=10',
    '-rss_limit_mb=1024',
    '-malloc_limit_mb=256',
    '-mutate_depth=2',
    '-reload=0',
    '-print_final_stats=1',
    corpus,
    seeds,
  ]);
  const [, executions] = /stat::number_of_executed_units: (\d+)/.exec(said) ?? [];
  const [, speed] = /stat::average_exec_per_sec: +(\d+)/.exec(said) ?? [];
  const [, edges] = [...said.matchAll(/ cov: (\d+) /g)].at(-1) ?? [];
  const passed = code === 0 && Number(executions) > files.length;
  const found = passed ? 'nothing found' : `ended by ${code}; the input is in ${findings}`;
  const report = `${target}: ${files.length} seeds, ${executions ?? 'unknown'} executions, ${speed ?? '?'} a second, ${edges ?? '?'} edges, ` + found;
  return { passed, report: passed ? report : `${said.split('\n').slice(-60).join('\n')}\n${report}` };
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { seconds: { type: 'string' }, runs: { type: 'string' }, seed: { type: 'string' }, build: { type: 'string' } },
  });
  for (const target of positionals) if (!targets.includes(target)) throw new Error(`target is ${target}, expected one of ${targets.join(', ')}`);
  const waiting = positionals.length > 0 ? [...positionals] : [...targets];
  await Promise.all(
    Array.from({ length: Math.min(availableParallelism(), waiting.length) }, async () => {
      for (let target = waiting.shift(); target !== undefined; target = waiting.shift()) {
        const { passed, report } = await fuzz(target, values);
        console.log(report);
        if (!passed) process.exitCode = 1;
      }
    }),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
