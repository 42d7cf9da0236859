/**
 * The public contract as far as the package has it, written down a second time: types.ts compares the package's own types with it, in both directions.
 * A name that is added to the package may be added here; one that changes its meaning must not.
 */
export type Dims = readonly number[];
export interface Tensor {
  readonly data: Float32Array;
  readonly dims: Dims;
}
export interface Mask {
  readonly kind: 'attend' | 'block' | 'additive';
  readonly data: Uint8Array | Float32Array;
  readonly dims: Dims;
}
export interface LoadOptions {
  wasm?: string | URL | ArrayBuffer | Uint8Array | Response | WebAssembly.Module;
  variant?: 'auto' | 'simd' | 'relaxed';
  threads?: number | 'auto';
  maximumMemory?: number;
  signal?: AbortSignal;
  onProgress?: (p: { phase: string; loaded: number; total?: number }) => void;
}
export interface RuntimeInfo {
  readonly version: string;
  readonly variant: 'simd' | 'relaxed';
  readonly threads: number;
  readonly notes: readonly string[];
  readonly heap: { readonly used: number; readonly peak: number };
}
export type TraceName =
  | 'q_proj'
  | 'k_proj'
  | 'v_proj'
  | 'q'
  | 'k'
  | 'v'
  | 'scores'
  | 'masked_scores'
  | 'probabilities'
  | 'weights'
  | 'weighted_values'
  | 'context'
  | 'merged'
  | 'output';
export interface AttentionOptions {
  mask?: Mask;
  keyPaddingMask?: Mask;
  isCausal?: boolean;
  scale?: number;
  needWeights?: boolean;
  averageWeights?: boolean;
  enableGqa?: boolean;
  fullyMasked?: 'zero' | 'nan' | 'uniform';
  trace?: boolean | readonly TraceName[];
}
export interface AttentionResult {
  output: Tensor;
  weights?: Tensor;
  trace?: { readonly [name in TraceName]?: Tensor };
}
export interface Attn {
  readonly info: RuntimeInfo;
  scaledDotProductAttention(query: Tensor, key: Tensor, value: Tensor, options?: AttentionOptions): AttentionResult;
  linear(x: Tensor, weight: Tensor, bias?: Tensor): Tensor;
  softmax(x: Tensor, dim?: number): Tensor;
  readonly MultiHeadAttention: new (options: MultiHeadAttentionOptions) => MultiHeadAttention;
  parseSafetensors(bytes: Uint8Array | ArrayBuffer): Map<string, Tensor>;
  dispose(): void;
  [Symbol.dispose](): void;
}
export type StateDict = Map<string, Tensor> | Readonly<Record<string, Tensor>>;
export interface Module {
  loadStateDict(state: StateDict, options?: { strict?: boolean }): void;
  stateDict(): Map<string, Tensor>;
  initialize(options?: {
    scheme?: 'torch' | 'xavier_uniform' | 'xavier_normal' | 'kaiming_uniform' | 'kaiming_normal' | 'normal';
    seed?: number;
    std?: number;
  }): void;
  readonly parameterCount: number;
  parameterShapes(): Map<string, Dims>;
  dispose(): void;
  [Symbol.dispose](): void;
}
export interface MultiHeadAttentionOptions {
  embedDim: number;
  numHeads: number;
  kdim?: number;
  vdim?: number;
  bias?: boolean;
  scale?: number;
  outProj?: boolean;
}
export interface MultiHeadAttention extends Module {
  forward(query: Tensor, key?: Tensor, value?: Tensor, options?: AttentionOptions): AttentionResult;
}
export type ErrorCode =
  | 'ARGUMENT'
  | 'DTYPE'
  | 'SHAPE'
  | 'MASK'
  | 'CONFIG'
  | 'OUT_OF_RANGE'
  | 'FORMAT'
  | 'MISMATCH'
  | 'UNSUPPORTED'
  | 'MEMORY'
  | 'DISPOSED'
  | 'WRONG_INSTANCE'
  | 'BUSY'
  | 'DETACHED'
  | 'NETWORK'
  | 'ABORTED'
  | 'ENVIRONMENT'
  | 'INTERNAL';
export declare class AttnError extends Error {
  readonly code: ErrorCode;
  readonly detail: Readonly<Record<string, unknown>>;
}
export declare function load(options?: LoadOptions): Promise<Attn>;
