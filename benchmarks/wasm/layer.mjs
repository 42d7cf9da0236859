// node benchmarks/wasm/layer.mjs: all-MiniLM-L6-v2's attention layer (384 wide, 12 heads) on one sentence of S tokens, in
// every variant that this Node takes. Times are per forward, with the copies in and out; the GFLOP/s are of the minimum.
import { load } from 'attn';

const width = 384;
const heads = 12;

function numbers(count) {
  const values = new Float32Array(count);
  let state = 1;
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    values[i] = (state >>> 8) * 2 ** -23 - 1;
  }
  return values;
}

/** Milliseconds of one call: 12 samples of at least 20 ms each after a warm-up. */
function time(call) {
  const sample = (calls) => {
    const start = performance.now();
    for (let i = 0; i < calls; i++) call();
    return performance.now() - start;
  };
  let calls = 1;
  while (sample(calls) < 20) calls *= 2;
  const samples = Array.from({ length: 12 }, () => sample(calls) / calls).sort((a, b) => a - b);
  return { least: samples[0], median: (samples[5] + samples[6]) / 2 };
}

console.log(`Node ${process.versions.node}, V8 ${process.versions.v8}`);
console.log('variant   threads     S   least ms  median ms  GFLOP/s');
for (const variant of ['simd', 'relaxed']) {
  for (const threads of [1, 2]) {
    let attn;
    try {
      attn = await load({ variant, threads });
    } catch (error) {
      console.log(`${variant.padEnd(9)} ${String(threads).padStart(7)}   not here: ${error.message}`);
      continue;
    }
    const layer = new attn.MultiHeadAttention({ embedDim: width, numHeads: heads });
    for (const S of [16, 128, 512]) {
      const x = { data: numbers(S * width), dims: [1, S, width] };
      const { least, median } = time(() => layer.forward(x));
      const gflops = ((8 * S * width * width + 4 * S * S * width) * 1e-6) / least;
      console.log(
        [
          attn.info.variant.padEnd(9),
          String(attn.info.threads).padStart(7),
          String(S).padStart(5),
          least.toFixed(3).padStart(10),
          median.toFixed(3).padStart(10),
          gflops.toFixed(1).padStart(8),
        ].join(' '),
      );
    }
    attn.dispose();
  }
}
