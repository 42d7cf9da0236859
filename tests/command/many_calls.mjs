/** A worker thread that runs `npx attn` with each list of arguments in workerData and posts what it printed. */
import { parentPort, workerData } from 'node:worker_threads';

const { program, calls } = workerData;
const results = [];
process.stdout.setMaxListeners(0);
for (const [i, args] of calls.entries()) {
  const result = { status: 0, stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'])
    process[name].write = (text) => {
      result[name] += text;
      return true;
    };
  process.argv = [process.argv[0], program, ...args];
  process.exitCode = 0;
  // The query makes Node run the program again instead of returning the module it has.
  await import(`${program}?${i}`);
  results.push({ ...result, status: process.exitCode });
}
process.exitCode = 0;
parentPort.postMessage(results);
