/** Times calls in turns, sample by sample, so that disturbances of the machine affect all contenders. */

/**
 * Milliseconds: each sample takes at least `least`; all samples of a contender together at most `most`, but at least 3
 * samples.
 */
const quick = { samples: 4, least: 10, most: 2000, warmUp: 50 };
const usual = { samples: 12, least: 20, most: 5000, warmUp: 150 };
const patient = { ...usual, most: 18000 };

/**
 * Outputs further apart belong to different functions. int8 contenders round differently, peers to 7 bits, measured on
 * layer norms and unit vectors; for training the outputs are losses.
 */
export const furthest = ({ int8, kind }) => (kind === 'training' ? 1e-4 : !int8 ? 1e-3 : kind === 'encoder' ? 0.5 : 0.1);

async function sample(call, calls) {
  const start = performance.now();
  for (let i = 0; i < calls; i++) {
    const result = call();
    // Awaiting a non-promise would cost the others a microtask per call.
    if (result instanceof Promise) await result;
  }
  return performance.now() - start;
}

/** Milliseconds of one call after a warm-up, in which engines finish compiling the loops. */
async function warmUp(call, milliseconds) {
  let spent = await sample(call, 1);
  let least = spent;
  while (spent < milliseconds) {
    const calls = Math.max(1, Math.min(1000, Math.floor(5 / Math.max(least, 1e-3))));
    const time = await sample(call, calls);
    spent += time;
    least = Math.min(least, time / calls);
  }
  return least;
}

/**
 * Times contenders { call } against each other; those with the same `rivals` are forms of one contender, of which the
 * faster counts. Resolves to [contender, { calls, samples, min_ms, median_ms }]. Calls beat() regularly.
 */
export async function interleave(contenders, { isQuick, isFull, beat }) {
  const { samples, least, most, warmUp: warm } = isQuick ? quick : isFull ? patient : usual;
  const times = new Map();
  for (const contender of contenders) {
    times.set(contender, await warmUp(contender.call, warm));
    await beat();
  }
  const running = contenders.filter(
    (one) => !one.rivals || !contenders.some((other) => other !== one && other.rivals === one.rivals && times.get(other) < times.get(one)),
  );
  const runs = running.map((contender) => {
    const time = times.get(contender);
    return {
      contender,
      calls: Math.max(1, Math.ceil((1.25 * least) / time)),
      rounds: Math.max(3, Math.min(samples, Math.floor(most / time))),
      samples: [],
    };
  });
  for (let round = 0; round < samples; round++)
    for (const run of runs)
      if (round < run.rounds) {
        run.samples.push((await sample(run.contender.call, run.calls)) / run.calls);
        await beat();
      }
  return runs.map(({ contender, calls, samples }) => [contender, { calls, ...summary(samples) }]);
}

export function summary(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return { samples, min_ms: sorted[0], median_ms: sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2 };
}

/**
 * Summarises a measurement in parts, each in every round: a sample is the sum of a round. The minimum is the sum of the
 * parts' minima, because a round of seconds rarely runs undisturbed.
 */
export function summaryOfParts(parts) {
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const samples = parts[0].map((_, round) => sum(parts.map((times) => times[round])));
  return { ...summary(samples), min_ms: sum(parts.map((times) => Math.min(...times))) };
}

/** GFLOP/s of multiply-adds in registers, float32 or int8: the best of a few samples. */
export function peak(attn, weights, { isQuick }) {
  const count = 5e7;
  let best = 0;
  for (let i = 0; i < (isQuick ? 2 : 4); i++) {
    const start = performance.now();
    let done = 0;
    do done += attn.peak(count, { weights });
    while (performance.now() - start < 20);
    best = Math.max(best, (2e-6 * done) / (performance.now() - start));
  }
  return best;
}
