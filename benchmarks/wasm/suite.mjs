/**
 * Runs all cases in one engine, independent of the host, which provides:
 * - load(options): attn's load
 * - onnxruntime(n): onnxruntime-web, a separate copy per number of threads
 * - gemm(variant): glue and bytes of the GEMM
 * - tfjs(): tfjs-core with the WebAssembly backend
 * - tfjsWithGradients(): the same with gradients; if missing, tfjs does not train
 * - jax(): jax-js with its WebAssembly backend
 * - file(name): bytes of a model file
 * - checkpoint(name) and family(name): sources for loadModel
 * - texts(): the product reviews
 * - name, engine, isolated, threads (supported counts)
 * `tell` receives { record }, { note } and, as a sign of life, {}.
 */
import { chosen, flops, pairName, weightBytes } from '../cases.mjs';
import { attnContender, bytesOf } from './attn.mjs';
import { gemmContender, streamOf } from './gemm.mjs';
import { furthest, interleave, peak } from './measure.mjs';
import { onnxruntimeContenders } from './onnxruntime.mjs';
import { runTextCase } from './texts.mjs';
import { tfjsContender } from './tfjs.mjs';
import { attnTraining, jaxTraining, tfjsTraining } from './training.mjs';

/** Multiply-adds per sample of the peak: a fraction of a millisecond. */
const peakCount = 4.8e6;

/** A contender that fails to start leaves a note and does not affect the others. */
async function attempt(what, make, tell) {
  try {
    return (await make()) ?? [];
  } catch (error) {
    await tell({ note: `${what}: ${error?.message ?? error}` });
    return [];
  }
}

async function trainingContenders(host, variants, group, tell) {
  const all = [];
  for (const variant of variants) all.push(await attempt(`attn ${variant}, training`, () => attnTraining(host.load, { variant }, group), tell));
  if (host.tfjsWithGradients)
    all.push(await attempt('tfjs-backend-wasm, training', async () => tfjsTraining(await host.tfjsWithGradients(), group), tell));
  all.push(await attempt('jax-js, training', async () => jaxTraining(await host.jax(), group), tell));
  return all.flat();
}

async function contendersOf(host, variants, group, tell) {
  const [{ kind, model, int8 }] = group;
  if (kind === 'training') return trainingContenders(host, variants, group, tell);
  const weights = kind === 'encoder' ? await host.file(`${model}.safetensors`) : undefined;
  let state;
  const all = [];
  const counts = ['gemm', 'example'].includes(kind) ? [1] : host.threads;
  for (const threads of counts)
    for (const variant of variants) {
      const name = `attn ${variant}, ${threads} threads`;
      const made = async () => {
        if (weights && !state) {
          const reader = await host.load({ variant: 'simd' });
          state = reader.parseSafetensors(weights);
          reader.dispose();
        }
        if (kind === 'gemm') return gemmContender(await host.load({ variant }), await host.gemm(variant), variant);
        return attnContender(host.load, { variant, threads }, group, kind === 'family' ? host.family(model) : state);
      };
      all.push(await attempt(name, made, tell));
      await tell({});
    }
  for (const threads of counts) {
    const made = async () => onnxruntimeContenders(await host.onnxruntime(threads), threads, group, host.file);
    all.push(await attempt(`onnxruntime-web, ${threads} threads`, made, tell));
    await tell({});
  }
  if (!int8 && kind !== 'family') all.push(await attempt('tfjs-backend-wasm', async () => tfjsContender(await host.tfjs(), group), tell));
  return all.flat();
}

/** Runs whose output agrees with the first one. */
async function agreed(runs, tell) {
  const outputs = [];
  const most = furthest(runs[0].one);
  for (const { one, contender, prepared } of runs) {
    const name = `${one.name}: ${contender.contender} ${contender.variant}, ${contender.threads} threads`;
    try {
      outputs.push({ name, data: new Float32Array(await prepared.output()) });
    } catch (error) {
      if (contender.contender === 'attn') throw error;
      await tell({ note: `${name}: ${error?.message ?? error}` });
      outputs.push(undefined);
    }
    await tell({});
  }
  const [first, ...others] = outputs.filter(Boolean);
  for (const { name, data } of others) {
    let worst = -1;
    let at = 0;
    for (let i = 0; i < first.data.length; i++) {
      const difference = Math.abs(data[i] - first.data[i]);
      if (!(difference <= worst)) [worst, at] = [difference, i];
      if (Number.isNaN(difference)) break;
    }
    if (data.length !== first.data.length || !(worst <= most))
      throw new Error(
        `${name} differs from ${first.name}: ${data.length} and ${first.data.length} numbers, at ${at} ${data[at]} and ${first.data[at]}`,
      );
  }
  return runs.filter((_, i) => outputs[i]);
}

/** Describes how an instance multiplies int8. */
const productsOf = ({ info }) => info.notes.find((note) => note.startsWith('int8: '))?.slice('int8: '.length);

/** Variants that this engine supports. */
async function variantsOf(host, tell) {
  const taken = [];
  for (const variant of ['simd', 'relaxed'])
    await attempt(`attn ${variant}`, async () => ((await host.load({ variant })).dispose(), taken.push(variant)), tell);
  return taken;
}

export async function runSuite(host, table, { texts, isQuick, isFull, most, tell }) {
  const variants = await variantsOf(host, tell);
  for (const group of chosen(table, { texts, most }).values()) {
    if (group[0].checkpoint) {
      for (const one of group) {
        await tell({ current: one.name });
        await runTextCase(host, one, variants, { isQuick, tell });
      }
      continue;
    }
    await tell({ current: `${group[0].model ?? group[0].kind}: set-up` });
    const contenders = await contendersOf(host, variants, group, tell);
    const single = contenders.filter(({ attn, threads }) => attn && threads === 1);
    const weights = group[0].int8 ? 'int8' : 'float32';
    const peaks = () => Object.fromEntries(single.map(({ attn, variant }) => [variant, peak(attn, weights, { isQuick })]));
    const stream = weightBytes(group[0]) ? await streamOf(await host.gemm('simd'), weightBytes(group[0])) : undefined;
    for (const name of new Set(group.map(pairName))) {
      await tell({ current: name });
      const cases = group.filter((one) => pairName(one) === name);
      const prepared = cases.flatMap((one) =>
        contenders
          // Requesting weights is measured on one thread only, to save half of the time.
          .filter(({ threads }) => threads === 1 || !one.weights)
          .map((contender) => ({ one, contender, prepared: contender.prepare(one) }))
          .filter((run) => run.prepared),
      );
      const runs = await agreed(prepared, tell);
      const before = peaks();
      const entries = runs.map((run) => ({
        ...run,
        call: run.prepared.call,
        rivals: run.contender.rivals && `${run.contender.rivals} ${run.one.name}`,
      }));
      // The peak is measured in turns too, so that throttling affects it equally.
      const levels = single.map(({ attn, variant }) => ({ level: variant, call: () => attn.peak(peakCount, { weights }) }));
      // Likewise a pass over as many bytes as the model's packed weights.
      const streams = stream ? [{ isStream: true, call: stream }] : [];
      const results = await interleave([...entries, ...levels, ...streams], { isQuick, isFull, beat: () => tell({}) });
      const after = peaks();
      const best = Object.fromEntries(
        results
          .filter(([{ level }]) => level)
          .map(([{ level }, { min_ms }]) => [level, Math.max((2e-6 * peakCount) / min_ms, before[level], after[level])]),
      );
      const [[, streamed] = []] = results.filter(([{ isStream }]) => isStream);
      for (const [{ one, contender }, times] of results.filter(([{ contender }]) => contender)) {
        const own = contender.contender === 'attn';
        const extra = own && contender.threads === 1 && one.kind === 'sdpa' ? { bytes: await bytesOf(host.load, one, contender.variant) } : {};
        await tell({
          record: {
            host: host.name,
            engine: host.engine,
            isolated: host.isolated,
            contender: contender.contender,
            variant: contender.variant,
            threads: contender.threads,
            case: one.name,
            date: new Date().toISOString(),
            ...times,
            ...(flops(one) && { gflops: (flops(one) * 1e-6) / times.min_ms }),
            ...(own && {
              peak_gflops: best[contender.variant],
              peak_gflops_before: before[contender.variant],
              peak_gflops_after: after[contender.variant],
              ...(streamed && { stream_ms: streamed.min_ms }),
              products: productsOf(contender.attn),
            }),
            ...extra,
          },
        });
      }
      for (const { prepared } of runs) prepared.dispose?.();
    }
    for (const contender of contenders) await contender.dispose();
  }
}
