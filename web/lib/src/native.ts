/** Embind's side of the bridge, as src/bindings defines it. Nothing of this is public. */

/** Byte address in the WASM heap; may come as a negative int32 above 2 GiB. */
export type Pointer = number;

export const pageBytes = 65536;
/** The linker's -sINITIAL_MEMORY and -sMAXIMUM_MEMORY: a memory has to fit them to be imported. */
export const initialPages = 32;
export const maximumPages = 65536;

/** Ints of a tensor descriptor in the heap: data, rank, dims[8]. */
export const descriptorInts = 10;
export const maxRank = 8;
/** Ints of an entry in a result: slot, then a descriptor. */
export const entryInts = 1 + descriptorInts;

/**
 * Options cross as one four-byte word a field, in the heap. These are the fields of src/bindings in their order;
 * `float` names those that are no integers. checkDrift() finds out when the two lists have drifted apart.
 */
export const attentionOptionFields = [
  'mask',
  'maskKind',
  'maskIsFloat',
  'keyPaddingMask',
  'keyPaddingMaskKind',
  'keyPaddingMaskIsFloat',
  'isCausal',
  'hasScale',
  'scale',
  'needWeights',
  'averageWeights',
  'enableGqa',
  'fullyMasked',
  'trace',
] as const;
export type NativeAttentionOptions = Readonly<Record<(typeof attentionOptionFields)[number], number | boolean>>;

export const multiHeadAttentionOptionFields = ['embedDim', 'numHeads', 'kdim', 'vdim', 'bias', 'hasScale', 'scale', 'outProj'] as const;
export type NativeMultiHeadAttentionOptions = Readonly<Record<(typeof multiHeadAttentionOptionFields)[number], number | boolean>>;

export interface NamedTensors {
  /** `name` describes UTF-8 bytes. */
  add(name: Pointer, tensor: Pointer): void;
  size(): number;
  nameAddress(i: number): Pointer;
  nameSize(i: number): number;
  tensor(i: number): Pointer;
  delete(): void;
}

export interface NativeMultiHeadAttention {
  forward(query: Pointer, key: Pointer, value: Pointer, options: Pointer): Pointer;
  loadStateDict(state: NamedTensors, strict: boolean): void;
  stateDict(): NamedTensors;
  initialize(scheme: number, seed: number, std: number): void;
  parameterCount(): number;
  parameterShapes(): NamedTensors;
  delete(): void;
}

export interface Native {
  /** The one given in the overrides, or the glue's own where the build insists on it (wasm-asan). */
  wasmMemory: WebAssembly.Memory;
  version(): string;
  traceNames(): string;
  errorCodes(): string;
  initSchemes(): string;
  attentionOptionFields(): string;
  multiHeadAttentionOptionFields(): string;
  heapUsed(): number;
  heapPeak(): number;
  setMemoryLimit(bytes: number): void;
  setNumThreads(count: number): void;
  reserve(bytes: number): Pointer;
  release(pointer: Pointer): void;
  scaledDotProductAttention(query: Pointer, key: Pointer, value: Pointer, options: Pointer): Pointer;
  linear(x: Pointer, weight: Pointer, bias: Pointer): Pointer;
  softmax(x: Pointer, dim: number): Pointer;
  freeResult(result: Pointer): void;
  parseSafetensors(bytes: Pointer, size: number): NamedTensors;
  NamedTensors: new () => NamedTensors;
  MultiHeadAttention: new (options: Pointer) => NativeMultiHeadAttention;
}

/** A worker that runs as a thread: the global kind, or Node's. */
export interface ThreadWorker {
  terminate(): unknown;
}

/** What a glue file's default export takes. */
export interface Overrides {
  wasmMemory: WebAssembly.Memory;
  instantiateWasm(imports: WebAssembly.Imports, done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void): object;
  threads: number;
  /** Threads glue: called once for each thread but the first. */
  createWorker(): ThreadWorker;
}

export type Factory = (overrides: Overrides) => Promise<Native>;
