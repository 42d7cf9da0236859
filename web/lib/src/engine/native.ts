/** The module's interface, as src/bindings defines it with Embind. */

/** Byte address. Above 2 GiB it may arrive as a negative int32. */
export type Pointer = number;

export const pageBytes = 65536;
/** The linker's -sINITIAL_MEMORY and -sMAXIMUM_MEMORY: an imported memory has to match. */
export const initialPages = 32;
export const maximumPages = 65536;

/** Ints of a tensor descriptor: data, rank, dims[8], kind of mask, bytes per element. */
export const descriptorInts = 12;
/** Ints of an entry in a result: field, layer, name, length of the name, a descriptor, two internal to C++. */
export const entryInts = 6 + descriptorInts;

/** In the order of C++'s enum. */
export const fields = ['output', 'weights', 'logits', 'attentions', 'hiddenStates', 'trace', 'presentKey', 'presentValue', 'named'] as const;

export type NativeFunction = (frame: Pointer) => Pointer;

export interface NativeObject {
  address(): Pointer;
  add?(frame: Pointer): void;
  delete(): void;
}

export interface NativeLayer {
  delete(): void;
}

export interface Native {
  /** wasm-asan ignores the memory passed in the overrides. */
  wasmMemory: WebAssembly.Memory;
  version(): string;
  int8(): string;
  signatures(): string;
  errorCodes(): string;
  heapUsed(): number;
  heapPeak(): number;
  stackSave(): Pointer;
  stackRestore(top: Pointer): void;
  setMemoryLimit(bytes: number): void;
  setNumThreads(count: number): void;
  reserve(bytes: number): Pointer;
  release(pointer: Pointer): void;
  freeResult(result: Pointer): void;
  /** Frames hold a name as UTF-8 bytes, and a tensor. */
  NamedTensors: new () => NativeObject;
}

export const callNative = (owner: Native | NativeLayer, name: string, frame: Pointer): Pointer =>
  (owner as unknown as Readonly<Record<string, NativeFunction>>)[name]!(frame);

export const nativeClass = (native: Native, name: string): new (frame: Pointer) => NativeLayer =>
  (native as unknown as Readonly<Record<string, new (frame: Pointer) => NativeLayer>>)[name]!;

export const nativePart = (owner: NativeLayer, name: string): NativeLayer =>
  (owner as unknown as Readonly<Record<string, () => NativeLayer>>)[name]!();

export interface ThreadWorker {
  terminate(): unknown;
}

export interface Overrides {
  wasmMemory: WebAssembly.Memory;
  instantiateWasm(imports: WebAssembly.Imports, done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void): object;
  threads: number;
  createWorker(): ThreadWorker;
}

export type Factory = (overrides: Overrides) => Promise<Native>;
