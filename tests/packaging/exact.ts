// Compiled with tsc --exactOptionalPropertyTypes against the packed package: optional options also accept undefined,
// for code that passes on its own options.
import type * as Package from 'attn';
import type { Attn, LoadOptions, ModelOptions, Tensor, TextModel } from 'attn';
import type * as Worker from 'attn/worker';

type Exact<T> = { [K in keyof T]-?: object extends Pick<T, K> ? (undefined extends Required<T>[K] ? never : K) : never }[keyof T];
const none = <T extends never>(): T[] => [];

type Second<F> = F extends (first: never, second?: infer O) => unknown ? NonNullable<O> : never;
type Third<F> = F extends (first: never, second: never, third?: infer O) => unknown ? NonNullable<O> : never;
type Made<C> = C extends new (options: infer O) => unknown ? O : never;

none<Exact<LoadOptions>>();
none<Exact<ModelOptions>>();
none<Exact<Package.AttentionOptions>>();
none<Exact<Package.MultiHeadAttentionOptions>>();
none<Exact<Package.EncoderLayerOptions>>();
none<Exact<Package.EncoderOptions>>();
none<Exact<Package.ClassifierOptions>>();
none<Exact<Package.EncoderForwardOptions>>();
none<Exact<NonNullable<Package.EncoderForwardOptions['trace']>>>();
none<Exact<Package.TokenizeOptions>>();
none<Exact<Package.TextForwardOptions>>();
none<Exact<NonNullable<Package.TextForwardOptions['trace']>>>();
none<Exact<Package.LayerPatch>>();
none<Exact<Made<Attn['Embedding']>>>();
none<Exact<Second<Attn['applyRotary']>>>();
none<Exact<Parameters<Attn['additiveAttention']>[3]>>();
none<Exact<Package.ParameterGroup>>();
none<Exact<NonNullable<ConstructorParameters<Attn['SGD']>[1]>>>();
none<Exact<NonNullable<ConstructorParameters<Attn['Adam']>[1]>>>();
none<Exact<Third<Attn['crossEntropy']>>>();
none<Exact<Third<Attn['mseLoss']>>>();
none<Exact<Third<Attn['binaryCrossEntropyWithLogits']>>>();
none<Exact<Second<Attn['cosineSchedule']>>>();
none<Exact<Second<Package.MultiHeadAttention['backward']>>>();
none<Exact<NonNullable<Parameters<Package.Module['initialize']>[0]>>>();
none<Exact<NonNullable<Parameters<Package.Module['train']>[0]>>>();
none<Exact<Second<Package.Module['loadStateDict']>>>();
none<Exact<Second<TextModel['embed']>>>();
none<Exact<Second<TextModel['classify']>>>();
none<Exact<Package.GenerateOptions>>();
none<Exact<Second<TextModel['nextToken']>>>();
none<Exact<NonNullable<Parameters<TextModel['createCache']>[0]>>>();
none<Exact<Second<TextModel['loadStateDict']>>>();
none<Exact<Third<Worker.Attn['scaledDotProductAttention']>>>();

export async function wrapped(
  attn: Attn,
  x: Tensor,
  mine: { signal?: AbortSignal | undefined; isCausal?: boolean | undefined; pooling?: 'mean' | undefined; cache?: 'reload' | undefined },
): Promise<number> {
  const { signal, isCausal, pooling, cache } = mine;
  const model = await attn.loadModel('model', { signal, cache, sha256: undefined, onProgress: undefined, fetch: undefined });
  const { dims } = await model.embed('a', { signal, pooling, onProgress: undefined, batchSize: undefined });
  return attn.scaledDotProductAttention(x, x, x, { isCausal, mask: undefined, trace: undefined }).output.dims.length + dims.length;
}
