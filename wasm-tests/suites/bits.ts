/**
 * Bit identity with the native 4-lane build, for every number of threads, alone or in a batch, and in repeated runs.
 * Configuration and data of each random forward follow from integers (support/digest_forwards.ts); its results are
 * hashed. native-tests/digest makes the same calls in C++ and prints the same hashes, one per line; likewise for
 * gradients, training, fine-tuning, the checkpoints of testdata/models, and quantized layers and checkpoints.
 */
import type { Attn } from 'attn';
import { assert } from 'chai';
import { Hash, record } from '../support/digest_draw.ts';
import { backwards, drawBackwardCall } from '../support/digest_backward.ts';
import { fineTuningLines, fineTuningRuns } from '../support/digest_fine_tuning.ts';
import { drawCall, drawQuantizedCall, forwards, quantizedForwards } from '../support/digest_forwards.ts';
import { modelLines } from '../support/digest_models.ts';
import { trainClassifier } from '../support/digest_training.ts';
import { Generator } from '../support/generator.ts';
import { bytes, host, loadHere } from '../support/host.ts';

/** Forwards per test: few enough that a slow browser still reports progress. */
const part = 1000;

describe('bits', () => {
  let attn: Attn;
  /**
   * A run with another number of threads also counts as repetition. With simd, the single-threaded set-up compares
   * itself with the native hashes.
   */
  const others = new Map<string, Attn>();
  let native: string[] | undefined;
  let nativeBackwards: string[] | undefined;
  let nativeModels: string[] | undefined;
  let nativeFineTuning: string[] | undefined;
  let compared = 0;
  const different = new Map<string, Set<number>>();

  before(async () => {
    attn = await loadHere();
    if (host.threads === 1) others.set('a second run', attn);
    else for (const threads of host.variant === 'simd' ? [3] : [1, 3]) others.set(`a run with ${threads} threads`, await loadHere({ threads }));
    // Relaxed SIMD may fuse multiply and add: equal within tolerance only.
    if (host.variant === 'simd')
      native = new TextDecoder()
        .decode(await bytes('digest/digest.txt'))
        .trim()
        .split('\n');
    nativeBackwards = native?.splice(forwards);
    nativeModels = nativeBackwards?.splice(backwards);
    nativeFineTuning = nativeModels?.splice(-fineTuningRuns);
    if (native) assert.equal(native.length, forwards, 'hashes of the native build');
    for (const what of ['rows alone', ...others.keys(), ...(native ? ['the native 4-lane build'] : [])]) different.set(what, new Set());
  });
  after(() => {
    for (const [what, some] of different) host.note(`bits: ${some.size} of ${compared} forwards differ from ${what}`);
    for (const other of others.values()) other.dispose();
    attn.dispose();
  });

  function run(instance: Attn, i: number, seed = 0x5eed0000, draw = drawCall): string {
    const g = new Generator(seed + i);
    const hash = new Hash();
    const call = draw(g, instance, i);
    if (!record(g, hash, call)) different.get('rows alone')!.add(i);
    call.dispose?.();
    return hash.text();
  }

  for (let from = 0; from < forwards; from += part)
    it(`forwards ${from} to ${from + part - 1}`, () => {
      for (let i = from; i < from + part; i++) {
        const hash = run(attn, i);
        if (native && native[i] !== hash) different.get('the native 4-lane build')!.add(i);
        for (const [what, other] of others) if (run(other, i) !== hash) different.get(what)!.add(i);
        compared++;
      }
      for (const [what, all] of different) {
        const here = [...all].filter((i) => i >= from);
        assert.isEmpty(here, `${here.length} forwards differ from ${what}, the first: ${here.slice(0, 20)}`);
      }
    });

  it('gradients, losses and steps of optimisers', async () => {
    const counts = host.threads === 1 ? [1] : [host.threads, 3];
    const all: string[][] = [];
    for (const threads of counts) {
      const trains = await loadHere({ threads });
      all.push(Array.from({ length: backwards }, (_, i) => run(trains, i, 0x6ad00000, drawBackwardCall)));
      trains.dispose();
    }
    const expected = nativeBackwards ?? all[0];
    assert.lengthOf(expected, backwards);
    for (const [i, threads] of counts.entries()) {
      const wrong = expected.flatMap((line, at) => (line === all[i][at] ? [] : [at]));
      assert.isEmpty(wrong, `with ${threads} threads ${wrong.length} differ, the first: ${wrong.slice(0, 20)}`);
    }
    const rowsAlone = [...different.get('rows alone')!];
    assert.isEmpty(rowsAlone, 'a row alone');
    host.note(`bits: ${backwards} calls of gradients compared${nativeBackwards ? ' with the native 4-lane build' : ''}`);
  });

  it('200 steps of training', async () => {
    const counts = host.threads === 1 ? [1] : [1, 2, 3];
    const hashes: string[] = [];
    for (const threads of counts) {
      const trains = await loadHere({ threads });
      hashes.push(trainClassifier(trains));
      trains.dispose();
    }
    const expected = host.variant === 'simd' ? new TextDecoder().decode(await bytes('testdata/training_digest.txt')).trim() : hashes[0];
    for (const [i, hash] of hashes.entries()) assert.equal(hash, expected, `${counts[i]} threads`);
    host.note(`bits: 200 steps of training end in ${expected} with ${counts.join(', ')} threads`);
  });

  it('fine-tuning', async () => {
    const counts = host.threads === 1 ? [1] : [1, 2, 3];
    const all: string[][] = [];
    for (const threads of counts) {
      const trains = await loadHere({ threads });
      all.push(await fineTuningLines(trains));
      trains.dispose();
    }
    for (const [i, lines] of all.entries()) assert.deepEqual(lines, nativeFineTuning ?? all[0], `${counts[i]} threads`);
    host.note(`bits: ${all[0].length} runs of fine-tuning compared, with ${counts.join(', ')} threads`);
  });

  it('checkpoints', async () => {
    const lines = await modelLines(attn, 'float32');
    assert.isAbove(lines.length, 30);
    if (nativeModels) assert.deepEqual(lines, nativeModels, 'the native 4-lane build');
    for (const [what, other] of others) assert.deepEqual(await modelLines(other, 'float32'), lines, what);
    host.note(`bits: ${lines.length} forwards of checkpoints compared`);
  });

  // Quantized results equal testdata/int8_digest.txt on every machine, also with relaxed SIMD.
  it('quantized layers and checkpoints', async () => {
    const expected = new TextDecoder()
      .decode(await bytes('testdata/int8_digest.txt'))
      .trim()
      .split('\n');
    for (const instance of new Set([attn, ...others.values()])) {
      const lines: string[] = [];
      for (let i = 0; i < quantizedForwards; i++) lines.push(run(instance, i, 0x17800000, drawQuantizedCall));
      lines.push(...(await modelLines(instance, 'int8')));
      const wrong = lines.flatMap((line, i) => (line === expected[i] ? [] : [i]));
      assert.isEmpty(wrong, `with ${instance.info.threads} threads ${wrong.length} forwards differ, the first: ${wrong.slice(0, 20)}`);
      assert.lengthOf(lines, expected.length);
    }
    host.note(`bits: ${expected.length} quantized forwards have the hashes of all machines`);
  });
});
