// Compiled with tsc --strict against the packed package: its types are the contract's, and code as users write it type-checks.
import type * as Package from 'attn';
import { AttnError, load } from 'attn';
import { AttnError as WorkerError, load as loadWorker } from 'attn/worker';
import type * as Contract from './contract.js';

type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2
    ? true
    : [A] extends [B]
      ? [B] extends [A]
        ? true
        : 'the package is narrower'
      : 'the package differs';
type Keys<A, B> =
  Exclude<keyof A, keyof B> extends never ? (Exclude<keyof B, keyof A> extends never ? true : Exclude<keyof B, keyof A>) : Exclude<keyof A, keyof B>;
const check = <T extends true>(): T => true as T;

check<Same<Package.Dims, Contract.Dims>>();
check<Same<Package.Tensor, Contract.Tensor>>();
check<Same<Package.Mask, Contract.Mask>>();
check<Same<Package.LoadOptions, Contract.LoadOptions>>();
check<Same<Package.RuntimeInfo, Contract.RuntimeInfo>>();
check<Same<Package.TraceName, Contract.TraceName>>();
check<Same<Package.AttentionOptions, Contract.AttentionOptions>>();
check<Same<Package.AttentionResult, Contract.AttentionResult>>();
check<Same<Package.StateDict, Contract.StateDict>>();
check<Same<Package.Module, Contract.Module>>();
check<Same<Package.MultiHeadAttentionOptions, Contract.MultiHeadAttentionOptions>>();
check<Same<Package.MultiHeadAttention, Contract.MultiHeadAttention>>();
check<Same<Package.Attn, Contract.Attn>>();
check<Same<Package.ErrorCode, Contract.ErrorCode>>();
check<Same<typeof Package.load, typeof Contract.load>>();
// Optional members compare as equal when one side lacks them: their names are compared apart.
check<Keys<Package.LoadOptions, Contract.LoadOptions>>();
check<Keys<Package.AttentionOptions, Contract.AttentionOptions>>();
check<Keys<Package.AttentionResult, Contract.AttentionResult>>();
check<Keys<Package.MultiHeadAttentionOptions, Contract.MultiHeadAttentionOptions>>();
check<Keys<Package.Attn, Contract.Attn>>();
check<Keys<Package.MultiHeadAttention, Contract.MultiHeadAttention>>();

export async function direct(): Promise<number> {
  using attn = await load({
    variant: 'simd',
    threads: 'auto',
    onProgress: ({ phase, loaded, total }) => console.log(phase.toUpperCase(), loaded.toFixed(), total?.toFixed()),
  });
  const x: Package.Tensor = { data: new Float32Array(8), dims: [1, 2, 4] };
  using mha = new attn.MultiHeadAttention({ embedDim: 4, numHeads: 2, kdim: 4, bias: false });
  mha.initialize({ scheme: 'kaiming_normal', seed: 1 });
  mha.loadStateDict(mha.stateDict(), { strict: false });
  const mask = { kind: 'attend', data: new Uint8Array([1, 1]), dims: [2] } as const;
  const { output, weights, trace } = mha.forward(x, undefined, undefined, {
    mask,
    isCausal: true,
    needWeights: true,
    fullyMasked: 'nan',
    trace: ['q', 'weighted_values'],
  });
  const state: Map<string, Package.Tensor> = attn.parseSafetensors(new Uint8Array());
  try {
    attn.softmax(output, -1);
  } catch (error) {
    if (error instanceof AttnError && error.code === 'SHAPE') console.log(error.detail['expected']);
  }
  // @ts-expect-error a bare array is no mask
  attn.scaledDotProductAttention(x, x, x, { mask: new Uint8Array(2) });
  // @ts-expect-error a mask says what it means
  attn.scaledDotProductAttention(x, x, x, { mask: { data: new Uint8Array(2), dims: [2] } });
  // @ts-expect-error no such trace
  mha.forward(x, x, x, { trace: ['score'] });
  // @ts-expect-error numHeads is needed
  new attn.MultiHeadAttention({ embedDim: 4 });
  // @ts-expect-error results are not known to have weights
  weights.dims;
  // @ts-expect-error not there yet, so not in the types
  attn.layerNorm(x);
  return (weights?.dims.length ?? 0) + (trace?.weighted_values?.data.length ?? 0) + state.size + attn.info.heap.used;
}

export async function inWorker(): Promise<number> {
  const attn = await loadWorker({ threads: 2 });
  const x: Package.Tensor = { data: new Float32Array(8), dims: [1, 2, 4] };
  const mha = await new attn.MultiHeadAttention({ embedDim: 4, numHeads: 2 });
  await mha.loadStateDict(await mha.stateDict());
  const { output } = await mha.forward(x);
  const count: number = await mha.parameterCount;
  // @ts-expect-error everything is a promise
  mha.parameterCount.toFixed();
  const { heap } = await attn.info;
  try {
    await attn.linear(x, x);
  } catch (error) {
    if (error instanceof WorkerError) console.log(error.code);
  }
  await attn.dispose();
  return output.data.length + count + heap.peak;
}
