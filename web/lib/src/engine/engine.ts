/** One running module: calls into it with arguments that were read already, and keeps what state it is in. */
import type { ErrorCode, RuntimeInfo } from '../attn.js';
import { type Checked, ownList } from '../args/arrays.js';
import { allocate, AttnError, type Detail, reason } from '../args/error.js';
import { Heap } from './heap.js';
import { callNative, type Native, nativeClass, type NativeLayer, type NativeObject, nativePart, type Pointer } from './native.js';
import { toPublic } from './results.js';
import { encoderTraceNames } from './trace_names.js';
import type { hold, prepare } from './training.js';
import { type Leaf, type LookUp, trainingStubs, type Signature } from '../args/signature.js';
import { encodeUtf8 } from '../platform/utf8.js';

/** A name as bytes for the heap. */
const utf8 = (op: string, name: string) =>
  ownList(
    op,
    'name',
    allocate(op, 3 * name.length, () => encodeUtf8(name), 'a name'),
    'Uint8Array',
  );

/** What goes in as an object of C++'s. */
const isObject = (leaf: Leaf): leaf is Exclude<Leaf, number | Checked> => typeof leaf === 'object' && !('data' in leaf);

export interface NativeError {
  code: ErrorCode;
  message: string;
  detail?: Detail;
}

/** What src/bindings throws: an Error with code and detail. */
export function isNativeError(error: unknown): error is NativeError {
  return error instanceof Error && typeof (error as Partial<NativeError>).code === 'string' && 'detail' in error;
}

const isTraceName = (word: string) => (encoderTraceNames as readonly string[]).includes(word);

/** "key_padding_mask" -> "keyPaddingMask" in every word of a text but the names of traces, which are the same in both languages. */
function camelCase(text: string): string {
  return text.replace(/\w+/g, (word) => (isTraceName(word) ? word : word.replace(/(?!^)_(.)/g, (_, next: string) => next.toUpperCase())));
}

/** Errors that speak of a file or a state: names in them stay as they are there. (So do all of a model's files.) */
const speaksOfFiles: readonly ErrorCode[] = ['MISMATCH', 'FORMAT'];

/** A C++ error in JavaScript's spelling. `op` is for those that know of no op: running out of memory. */
export function fromNative({ code, message, detail: facts = {} }: NativeError, op = 'load'): AttnError {
  const detail = Object.fromEntries(Object.entries(facts).map(([name, value]) => [camelCase(name), value])) as Detail;
  if (typeof detail['op'] !== 'string') return new AttnError(code, `${op}: ${message}`, { op, got: message, ...detail });
  // Of a model's files: which one, and names in them as they are there.
  if (op === 'loadModel') return new AttnError(code, `${op}: ${message}`, { ...detail, op, file: detail['op'] });
  const ours = camelCase(detail['op']);
  const spelled = (text: string) => (speaksOfFiles.includes(code) || ours === 'safetensors' ? text : camelCase(text));
  const entries = Object.entries(detail).map(([name, value]) => [name, typeof value === 'string' ? spelled(value) : value]);
  return new AttnError(code, ours + spelled(message.slice(detail['op'].length)), { ...(Object.fromEntries(entries) as Detail), op: ours });
}

export interface Runtime {
  readonly native: Native;
  readonly variant: 'simd' | 'relaxed';
  readonly threads: number;
  readonly notes: readonly string[];
  /** Ends the threads. */
  readonly stop: () => void;
  /** What the training build takes more; undefined for the others. */
  readonly training: { readonly prepare: typeof prepare; readonly hold: typeof hold } | undefined;
}

export class Engine {
  readonly signatures: readonly Signature[];
  /** Of modules that somebody has. */
  readonly lookUps = new WeakMap<object, LookUp>();
  readonly #runtime: Runtime;
  readonly #native: Native;
  readonly #heap: Heap;
  readonly #version: string;
  readonly #int8: string;
  disposed = false;
  #running = false;
  /** Layers and models that were made and not freed. */
  #layers = 0;
  #broken: AttnError | undefined;

  constructor(runtime: Runtime) {
    const { native } = runtime;
    if (typeof native.signatures !== 'function')
      throw new AttnError('FORMAT', 'load: the .wasm is of another version of attn than this package', { op: 'load', argument: 'wasm' });
    this.#runtime = runtime;
    this.#native = native;
    const signatures = JSON.parse(native.signatures()) as Signature[];
    if (runtime.training) runtime.training.prepare(signatures, this.lookUps);
    else signatures.push(...trainingStubs(signatures));
    this.signatures = signatures;
    this.#heap = new Heap(native);
    this.#version = native.version();
    this.#int8 = native.int8();
  }

  /** Throws unless a call may begin. */
  assertUsable(op: string): void {
    if (this.disposed) throw new AttnError('DISPOSED', `${op}: this instance was disposed of`, { op });
    const broken = this.#broken;
    if (broken) throw new AttnError('INTERNAL', `${op}: this instance has stopped (${broken.message}); load() a new one`, { op }, { cause: broken });
    if (this.#running) throw new AttnError('BUSY', `${op}: another call on this instance is still running`, { op });
  }

  /** Runs body, which calls into WebAssembly. No code of the caller's runs inside. */
  #enter<T>(op: string, body: () => T): T {
    this.assertUsable(op);
    this.#running = true;
    const stack = this.#native.stackSave();
    try {
      return body();
    } catch (error) {
      // An error that leaves WebAssembly takes its frames off the engine's stack, but not off the one in the heap.
      this.#native.stackRestore(stack);
      if (error instanceof AttnError) throw error;
      if (isNativeError(error)) throw this.#withAdvice(fromNative(error, op));
      // A trap, or a stack that overflowed in the middle: what the heap holds is not known any more.
      this.#broken = new AttnError('INTERNAL', `${op}: ${reason(error)}`, { op }, { cause: error });
      throw this.#broken;
    } finally {
      this.#running = false;
    }
  }

  /** Of memory that ran out: layers that were forgotten may have it. They are collected between events only, never in the middle of a loop. */
  #withAdvice(error: AttnError): AttnError {
    if (error.code !== 'MEMORY' || this.#layers < 2) return error;
    const advice = `this instance has ${this.#layers} layers and models, and only dispose() frees them before the next event`;
    return new AttnError('MEMORY', `${error.message}; ${advice}`, { ...error.detail, layers: this.#layers }, { cause: error.cause });
  }

  /** Calls body with the address of the arguments. States go in one tensor after another, so that no two copies of a whole one are held. */
  #withLeaves<T>(op: string, leaves: readonly Leaf[], body: (frame: Pointer) => T): T {
    if (!leaves.some(isObject)) return this.#heap.withArguments(op, leaves as readonly (number | Checked)[], body);
    const held: NativeObject[] = [];
    try {
      const plain = leaves.map((leaf) => {
        if (!isObject(leaf)) return leaf;
        const object = 'entries' in leaf ? new this.#native.NamedTensors() : this.#runtime.training!.hold(leaf, leaves, this.#native, this.#heap);
        held.push(object);
        if ('entries' in leaf)
          for (const [name, tensor] of leaf.entries) this.#heap.withArguments(op, [utf8(op, name), tensor], (frame) => object.add!(frame));
        return object.address() >>> 0;
      });
      return this.#heap.withArguments(op, plain, body);
    } finally {
      for (const object of held) object.delete();
    }
  }

  /** Calls a function, or a method of the layer. */
  call(op: string, { name, result }: Signature, leaves: readonly Leaf[], layer?: NativeLayer): unknown {
    return this.#enter(op, () =>
      this.#withLeaves(op, leaves, (frame) => {
        const pointer = callNative(layer ?? this.#native, name, frame);
        return toPublic(result, this.#heap.takeResult(pointer));
      }),
    );
  }

  create(name: string, leaves: readonly Leaf[], op = name): NativeLayer {
    const layer = this.#enter(op, () => this.#withLeaves(op, leaves, (frame) => new (nativeClass(this.#native, name))(frame)));
    ++this.#layers;
    return layer;
  }

  /** What a method of the layer gives that takes no arguments: another layer, which is part of the first. */
  part(op: string, layer: NativeLayer, name: string): NativeLayer {
    return this.#enter(op, () => nativePart(layer, name));
  }

  free(layer: NativeLayer): void {
    if (this.disposed || this.#broken) return;
    this.#enter('dispose', () => layer.delete());
    --this.#layers;
  }

  get info(): RuntimeInfo {
    const { variant, threads, notes, training } = this.#runtime;
    return this.#enter('info', () => ({
      version: this.#version,
      variant,
      threads,
      training: training !== undefined,
      notes: [...notes, `int8: ${this.#int8}`],
      heap: { used: this.#native.heapUsed(), peak: this.#native.heapPeak() },
    }));
  }

  dispose(): void {
    if (this.disposed) return;
    if (this.#running) throw new AttnError('BUSY', 'dispose: a call on this instance is still running', { op: 'dispose' });
    this.disposed = true;
    // The heap goes with the memory as soon as nobody holds it; only threads have to be told.
    this.#runtime.stop();
  }
}
