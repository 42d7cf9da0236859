/** attn/worker: the same numbers and errors from a module in a worker of its own. */
import { load as loadDirect, type Tensor } from 'attn';
import { AttnError, load, transfer, type Attn } from 'attn/worker';
import { assert } from 'chai';
import { assertIsError, assertRejects } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { bytes, host, setup, url } from '../support/host.ts';
import { assertDims, assertSameBits, mask, random, tensor } from '../support/tensors.ts';

const loadHere = () => load(setup);
const copy = (t: Tensor): Tensor => ({ data: t.data.slice(), dims: t.dims });

describe('attn/worker', () => {
  const g = new Generator(41);
  const [q, k, v] = [random(g, [2, 2, 5, 8]), random(g, [2, 2, 7, 8]), random(g, [2, 2, 7, 6])];
  const x = random(g, [2, 5, 16]);
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  it('info, and every function: the same bits as in the caller itself', async () => {
    const direct = await loadDirect({ variant: host.variant });
    const info = await attn.info;
    assert.equal(info.version, direct.info.version);
    assert.equal(info.variant, host.variant);
    assert.isArray(info.notes);
    assert.isAtLeast(info.heap.peak, info.heap.used);

    const options = { mask: mask('attend', [7], [1, 1, 0, 1, 1, 1, 1]), isCausal: true, needWeights: true, trace: ['scores', 'context'] } as const;
    const [remote, local] = [await attn.scaledDotProductAttention(q, k, v, options), direct.scaledDotProductAttention(q, k, v, options)];
    assertSameBits(remote.output, local.output, 'output');
    assertSameBits(remote.weights, local.weights, 'weights');
    assert.sameMembers(Object.keys(remote.trace!), ['scores', 'context']);
    assertSameBits(remote.trace!.scores, local.trace!.scores, 'scores');
    const w = random(g, [3, 16]);
    assertSameBits(await attn.linear(x, w), direct.linear(x, w), 'linear');
    assertSameBits(await attn.softmax(x, 1), direct.softmax(x, 1), 'softmax');
    const file = await bytes('testdata/safetensors_python.safetensors');
    const [there, here] = [await attn.parseSafetensors(file), direct.parseSafetensors(file)];
    assert.sameMembers([...there.keys()], [...here.keys()]);
    for (const [name, t] of here) assertSameBits(there.get(name), t, name);
    direct.dispose();
  });

  it('a module: state, initialisation, counts and forward', async () => {
    const direct = await loadDirect({ variant: host.variant });
    const [a, b] = [await new attn.MultiHeadAttention({ embedDim: 16, numHeads: 4 }), new direct.MultiHeadAttention({ embedDim: 16, numHeads: 4 })];
    await a.initialize({ scheme: 'kaiming_normal', seed: 12 });
    b.initialize({ scheme: 'kaiming_normal', seed: 12 });
    assert.equal(await a.parameterCount, b.parameterCount);
    assert.deepEqual([...(await a.parameterShapes())].sort(), [...b.parameterShapes()].sort());
    for (const [name, t] of await a.stateDict()) assertSameBits(t, b.stateDict().get(name), name);
    assertSameBits(
      (await a.forward(x, undefined, undefined, { needWeights: true })).weights,
      b.forward(x, undefined, undefined, { needWeights: true }).weights,
    );
    b.initialize({ seed: 4 });
    await a.loadStateDict(b.stateDict());
    assertSameBits((await a.forward(x)).output, b.forward(x).output);
    await a.dispose();
    await a.dispose();
    await assertRejects(a.forward(x), 'DISPOSED', [], AttnError);
    direct.dispose();
  });

  it('arguments are copied, or moved where the caller says so', async () => {
    const kept = copy(q);
    await attn.scaledDotProductAttention(kept, k, v);
    assertSameBits(kept, q, 'copied');
    const moved = copy(q);
    const r = await attn.scaledDotProductAttention(transfer(moved), k, v);
    assert.equal(moved.data.length, 0, 'moved');
    assertSameBits(r.output, (await attn.scaledDotProductAttention(q, k, v)).output);
  });

  it('errors keep class, code, message and detail, from either side', async () => {
    const fromHere = await assertRejects(attn.softmax({ data: [1] as never, dims: [1] }), 'DTYPE', ['x'], AttnError);
    assert.match(String(fromHere.detail.argument), /^x\b/);
    const fromThere = await assertRejects(attn.linear(x, random(g, [3, 15])), 'SHAPE', ['linear', '15', '16'], AttnError);
    assert.equal(fromThere.detail.op, 'linear');
    assert.property(fromThere.detail, 'expected');
    const module = await new attn.MultiHeadAttention({ embedDim: 16, numHeads: 4 });
    const listed = await assertRejects(module.loadStateDict({ surplus: x }), 'MISMATCH', ['surplus', 'in_proj_weight'], AttnError);
    assert.isAbove(Object.keys(listed.detail).length, 0);
    await module.dispose();
    let constructed: unknown;
    try {
      await new attn.MultiHeadAttention({ embedDim: 10, numHeads: 4 });
    } catch (error) {
      constructed = error;
    }
    assertIsError(constructed, 'CONFIG', ['embedDim'], AttnError);
    assert.isTrue((await attn.softmax(x)).data.every(Number.isFinite), 'the worker goes on');
  });

  it('calls run in the order in which they are made', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, (_, i) => attn.softmax(tensor([2], [0, i]))));
    results.forEach((t, i) => assert.closeTo(t.data[1], 1 / (1 + Math.exp(-i)), 1e-6));
  });

  it('the heap comes back after many calls', async () => {
    // Work for every thread first: each takes a few bytes for itself at its first task.
    const wide = random(g, [8, 128, 32]);
    for (let i = 0; i < 40; i++) await attn.scaledDotProductAttention(wide, wide, wide);
    await attn.scaledDotProductAttention(q, k, v, { needWeights: true });
    const { used } = (await attn.info).heap;
    for (let i = 0; i < 200; i++) await attn.scaledDotProductAttention(q, k, v, { needWeights: i % 2 === 0 });
    assert.equal((await attn.info).heap.used, used);
  });

  it('progress comes through', async () => {
    const seen: { phase: string; loaded: number }[] = [];
    const other = await load({ wasm: url('wasm/attn-simd.wasm'), onProgress: (p) => seen.push(p) });
    assert.include(
      seen.map((p) => p.loaded),
      (await bytes('wasm/attn-simd.wasm')).length,
    );
    await other.dispose();
  });

  it('wasm as bytes, Module and Response', async () => {
    const wasm = await bytes('wasm/attn-simd.wasm');
    for (const source of [wasm, wasm.slice().buffer, await WebAssembly.compile(wasm), await fetch(url('wasm/attn-simd.wasm'))]) {
      const other = await load({ wasm: source });
      assert.equal((await other.info).variant, 'simd');
      assertDims(await other.softmax(x), x.dims);
      await other.dispose();
    }
    assert.isAbove(wasm.length, 0, 'the caller keeps the bytes');
  });

  it('loading fails with the same codes', async () => {
    await assertRejects(load({ wasm: url('bad/page.wasm') }), 'FORMAT', ['HTML'], AttnError);
    await assertRejects(load({ wasm: url('bad/none.wasm') }), 'NETWORK', ['404'], AttnError);
    await assertRejects(load({ variant: 'mmx' as never }), 'CONFIG', ['variant'], AttnError);
    await assertRejects(load({ signal: AbortSignal.abort() }), 'ABORTED', [], AttnError);
    if (!host.takesRelaxed) await assertRejects(load({ variant: 'relaxed' }), 'ENVIRONMENT', ['relaxed'], AttnError);
  });

  it('abort in the middle of a load', async () => {
    const controller = new AbortController();
    const promise = load({ wasm: url('good/slow.wasm'), signal: controller.signal });
    setTimeout(() => controller.abort(), 80);
    await assertRejects(promise, 'ABORTED', [], AttnError);
  });

  it('terminate ends it in the middle of a call: what is pending rejects with ABORTED, later calls too', async () => {
    const doomed = await loadHere();
    const module = await new doomed.MultiHeadAttention({ embedDim: 16, numHeads: 2 });
    const long = tensor([1, 8, 3000, 64], (i) => (i % 11) / 11);
    const pending = [doomed.scaledDotProductAttention(long, long, long), doomed.softmax(x), module.forward(x)];
    // All of them are waited for before the first is looked at: none may stay unhandled.
    const settled = Promise.allSettled(pending);
    doomed.terminate();
    for (const result of await settled) {
      if (result.status === 'fulfilled') assert.fail('a call came through');
      assertIsError(result.reason, 'ABORTED', [], AttnError);
    }
    await assertRejects(doomed.softmax(x), ['ABORTED', 'DISPOSED'], [], AttnError);
    doomed.terminate();
    const next = await loadHere();
    assertDims(await next.softmax(x), x.dims);
    await next.dispose();
  });

  it('dispose lets earlier calls finish; everything afterwards is DISPOSED', async () => {
    const other = await loadHere();
    const module = await new other.MultiHeadAttention({ embedDim: 16, numHeads: 2 });
    const earlier = other.softmax(x);
    await other.dispose();
    assertDims(await earlier, x.dims);
    await other.dispose();
    await assertRejects(other.softmax(x), 'DISPOSED', [], AttnError);
    await assertRejects(module.forward(x), 'DISPOSED', [], AttnError);
  });

  it("workers come and go, and a module of another instance's worker is its own", async () => {
    for (let i = 0; i < 4; i++) {
      const other = await load({ variant: host.variant });
      const a = await new other.MultiHeadAttention({ embedDim: 16, numHeads: 2 });
      assertDims((await a.forward(x)).output, x.dims);
      await other.dispose();
    }
    assertDims(await attn.softmax(x), x.dims);
  });
});
