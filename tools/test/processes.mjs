/** Child processes of the test run. Time limits stop hanging processes, not slow ones. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const current = new AsyncLocalStorage();

/** A process hangs if it neither prints nor computes for idleMinutes, or computes for more than cpuMinutes. */
export const limits = { idleMinutes: 10, progressSeconds: 1, cpuMinutes: 120, checkSeconds: 20 };

const ticksPerSecond = 100;

/** Processes as { pid, parent, seconds }, with the processor time of each and of its awaited children. */
function processes() {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        try {
          const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
            .replace(/^.*\) /s, '')
            .split(' ');
          const [, parent] = fields;
          const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
          return [{ pid: Number(pid), parent: Number(parent), seconds: ticks / ticksPerSecond }];
        } catch {
          return [];
        }
      });
  } catch {
    // Other systems than Linux.
    const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,time='], { encoding: 'utf8' });
    return table
      .trim()
      .split('\n')
      .map((line) => {
        const [pid, parent, time] = line.trim().split(/\s+/);
        const seconds = time.split(/[-:]/).reduce((sum, part) => sum * 60 + Number(part), 0);
        return { pid: Number(pid), parent: Number(parent), seconds };
      });
  }
}

/** Processor time of a process and of all below it, those that have ended included. */
export function processorSeconds(top) {
  const all = processes();
  const below = new Set([top]);
  for (let size = 0; size < below.size;) {
    size = below.size;
    for (const { pid, parent } of all) if (below.has(parent)) below.add(pid);
  }
  return all.filter(({ pid }) => below.has(pid)).reduce((sum, { seconds }) => sum + seconds, 0);
}

/** Processor time of all children that have ended, or NaN on other systems than Linux. */
function endedSeconds() {
  try {
    const [user, system] = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .slice(13, 15);
    return (Number(user) + Number(system)) / ticksPerSecond;
  } catch {
    return NaN;
  }
}
let counted = endedSeconds();

/**
 * Calls `stop(reason)` once if the process hangs; `printed()` is the length of its output. Returns a function that ends
 * the watch.
 */
function watch(pid, printed, stop) {
  let [seen, spent, since, peak] = [-1, 0, Date.now(), 0];
  const timer = setInterval(() => {
    const now = processorSeconds(pid);
    peak = Math.max(peak, now);
    // The total falls if a child ends before its parent waits for it: any change counts as progress.
    if (printed() !== seen || Math.abs(now - spent) >= limits.progressSeconds) [seen, spent, since] = [printed(), now, Date.now()];
    if (Date.now() - since > limits.idleMinutes * 60_000) stop(`no output and no processor time for ${limits.idleMinutes} minutes`);
    else if (peak > limits.cpuMinutes * 60) stop(`more than ${limits.cpuMinutes} minutes of processor time`);
  }, limits.checkSeconds * 1000);
  return () => clearInterval(timer);
}

/** Runs a program; passes its output to the step, adds to its processorSeconds, and resolves to { code, out, err }. */
export function run(program, args, { env = {} } = {}) {
  const step = current.getStore();
  return new Promise((done) => {
    const child = spawn(program, args, { cwd: root, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const said = { out: '', err: '' };
    for (const [name, from, to] of [
      ['out', child.stdout, process.stdout],
      ['err', child.stderr, process.stderr],
    ])
      from.setEncoding('utf8').on('data', (text) => {
        said[name] += text;
        step.say(text, to);
      });
    const called = `${program} ${args.join(' ')}`;
    const unwatch = watch(
      child.pid,
      () => said.out.length + said.err.length,
      (why) => {
        unwatch();
        step.say(`${called}: stopped, ${why}\n`);
        try {
          process.kill(-child.pid, 'SIGKILL');
        } catch {
          // It has just ended.
        }
      },
    );
    const end = (code) => {
      unwatch();
      done({ code, ...said });
    };
    child.on('exit', () => {
      // Children end one by one, so the growth since the last end is what this one took.
      const seconds = endedSeconds();
      step.processorSeconds = (step.processorSeconds ?? 0) + seconds - counted;
      counted = seconds;
    });
    child.on('error', (error) => {
      step.say(`${error.message}\n`);
      end(127);
    });
    child.on('close', (code, signal) => {
      if (signal) step.say(`${called}: ended by ${signal}\n`);
      end(code ?? 1);
    });
  });
}
