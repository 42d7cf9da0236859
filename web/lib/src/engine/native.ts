/** The module's interface, as src/bindings defines it with Embind. None of this is public. */

/** Byte address in the WebAssembly heap. Above 2 GiB it may arrive as a negative int32. */
export type Pointer = number;

export const pageBytes = 65536;
/** The linker's -sINITIAL_MEMORY and -sMAXIMUM_MEMORY, which an imported memory has to match. */
export const initialPages = 32;
export const maximumPages = 65536;

/** Ints of a tensor descriptor: data, rank, dims[8], kind of mask, bytes per element. */
export const descriptorInts = 12;
/** Ints of an entry in a result: field, layer, name, length of the name, a descriptor, two internal to C++. */
export const entryInts = 6 + descriptorInts;

/** Fields of an entry, indexed by C++'s enum. */
export const fields = ['output', 'weights', 'logits', 'attentions', 'hiddenStates', 'trace', 'presentKey', 'presentValue', 'named'] as const;

/** Takes the address of the arguments and returns the address of the result. */
export type NativeFunction = (frame: Pointer) => Pointer;

/** A C++ object that is passed by its address. */
export interface NativeObject {
  address(): Pointer;
  add?(frame: Pointer): void;
  delete(): void;
}

/** A C++ object; its other methods are listed in signatures(). */
export interface NativeLayer {
  delete(): void;
}

/** The module, apart from the functions and classes of signatures(). */
export interface Native {
  /** The memory passed in the overrides, or the glue's own in wasm-asan. */
  wasmMemory: WebAssembly.Memory;
  version(): string;
  /** Instructions used for int8 products. */
  int8(): string;
  /** A JSON array of Signature. */
  signatures(): string;
  errorCodes(): string;
  heapUsed(): number;
  heapPeak(): number;
  /** The stack pointer of C++. */
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

/** A worker that runs a thread, in browsers or Node. */
export interface ThreadWorker {
  terminate(): unknown;
}

/** Options of a glue file's default export. */
export interface Overrides {
  wasmMemory: WebAssembly.Memory;
  instantiateWasm(imports: WebAssembly.Imports, done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void): object;
  threads: number;
  /** Called once for each thread except the main one, in threads builds. */
  createWorker(): ThreadWorker;
}

export type Factory = (overrides: Overrides) => Promise<Native>;
