/** Embind's side of the bridge, as src/bindings defines it. Nothing of this is public. */

/** Byte address in the WASM heap; may come as a negative int32 above 2 GiB. */
export type Pointer = number;

export const pageBytes = 65536;
/** The linker's -sINITIAL_MEMORY and -sMAXIMUM_MEMORY: a memory has to fit them to be imported. */
export const initialPages = 32;
export const maximumPages = 65536;

/** Ints of a tensor descriptor in the heap: data, rank, dims[8], kind of a mask, bytes of an element. */
export const descriptorInts = 12;
/** Ints of an entry in a result: field, layer, name, bytes of the name, a descriptor, two that are C++'s own. */
export const entryInts = 6 + descriptorInts;

/** Fields of an entry, by C++'s number. */
export const fields = ['output', 'weights', 'logits', 'attentions', 'hiddenStates', 'trace', 'presentKey', 'presentValue', 'named'] as const;

/** A function or method: takes the address of its arguments, gives that of a result. */
export type NativeFunction = (frame: Pointer) => Pointer;

/** What a call is given as an object of C++'s: where it is. */
export interface NativeObject {
  address(): Pointer;
  add?(frame: Pointer): void;
  delete(): void;
}

/** An object of a C++ class; all other methods are those of its signatures. */
export interface NativeLayer {
  delete(): void;
}

/** What the module has beside the functions and classes of signatures(). */
export interface Native {
  /** The one given in the overrides, or the glue's own where the build insists on it (wasm-asan). */
  wasmMemory: WebAssembly.Memory;
  version(): string;
  /** How products of int8 are made. */
  int8(): string;
  /** JSON: an array of Signature. */
  signatures(): string;
  errorCodes(): string;
  heapUsed(): number;
  heapPeak(): number;
  /** The stack that C++ keeps its variables on. */
  stackSave(): Pointer;
  stackRestore(top: Pointer): void;
  setMemoryLimit(bytes: number): void;
  setNumThreads(count: number): void;
  reserve(bytes: number): Pointer;
  release(pointer: Pointer): void;
  freeResult(result: Pointer): void;
  /** Its frames hold a name as UTF-8 bytes, and the tensor. */
  NamedTensors: new () => NativeObject;
}

/** Calls a function of the module or a method of the layer. */
export const callNative = (owner: Native | NativeLayer, name: string, frame: Pointer): Pointer =>
  (owner as unknown as Readonly<Record<string, NativeFunction>>)[name]!(frame);

export const nativeClass = (native: Native, name: string): new (frame: Pointer) => NativeLayer =>
  (native as unknown as Readonly<Record<string, new (frame: Pointer) => NativeLayer>>)[name]!;

export const nativePart = (owner: NativeLayer, name: string): NativeLayer =>
  (owner as unknown as Readonly<Record<string, () => NativeLayer>>)[name]!();

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
