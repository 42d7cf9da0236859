import type { ErrorCode, RuntimeInfo } from '../attn.js';
import { type Checked, ownList } from '../args/arrays.js';
import { allocate, AttnError, errorWithHelp, type Detail, reason } from '../args/error.js';
import { Heap } from './heap.js';
import { callNative, type Native, nativeClass, type NativeLayer, type NativeObject, nativePart, type Pointer } from './native.js';
import { toPublic } from './results.js';
import { encoderTraceNames } from './trace_names.js';
import { hold, prepare } from './training.js';
import type { Leaf, LookUp, Signature } from '../args/signature.js';
import { encodeUtf8 } from '../platform/utf8.js';

const utf8 = (op: string, name: string) =>
  ownList(
    op,
    'name',
    allocate(op, 3 * name.length, () => encodeUtf8(name), 'a name'),
    'Uint8Array',
  );

const isObject = (leaf: Leaf): leaf is Exclude<Leaf, number | Checked> => typeof leaf === 'object' && !('data' in leaf);

export interface NativeError {
  code: ErrorCode;
  message: string;
  detail?: Detail;
}

export function isNativeError(error: unknown): error is NativeError {
  return error instanceof Error && typeof (error as Partial<NativeError>).code === 'string' && 'detail' in error;
}

const isTraceName = (word: string) => (encoderTraceNames as readonly string[]).includes(word);

/** Keeps the names of traces, which both languages share. */
function camelCase(text: string): string {
  return text.replace(/\w+/g, (word) => (isTraceName(word) ? word : word.replace(/(?!^)_(.)/g, (_, next: string) => next.toUpperCase())));
}

/** Errors about state dictionaries and files, whose keys are not converted. */
const speaksOfFiles: readonly ErrorCode[] = ['MISMATCH', 'FORMAT'];

/** `op` names the call if C++ knows none (out of memory). */
export function fromNative({ code, message, detail: facts = {} }: NativeError, op = 'load'): AttnError {
  const detail = Object.fromEntries(Object.entries(facts).map(([name, value]) => [camelCase(name), value])) as Detail;
  if (typeof detail['op'] !== 'string') return new AttnError(code, `${op}: ${message}`, { op, got: message, ...detail });
  // `detail.op` is a file name here.
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
  readonly stop: () => void;
}

export class Engine {
  readonly signatures: readonly Signature[];
  readonly lookUps = new WeakMap<object, LookUp>();
  readonly #runtime: Runtime;
  readonly #native: Native;
  readonly #heap: Heap;
  readonly #version: string;
  readonly #int8: string;
  disposed = false;
  #running = false;
  #layers = 0;
  #broken: AttnError | undefined;

  constructor(runtime: Runtime) {
    const { native } = runtime;
    if (typeof native.signatures !== 'function')
      throw new AttnError('FORMAT', 'load: the .wasm is from another version of attn than this package', { op: 'load', argument: 'wasm' });
    this.#runtime = runtime;
    this.#native = native;
    this.signatures = JSON.parse(native.signatures()) as Signature[];
    prepare(this.signatures, this.lookUps);
    this.#heap = new Heap(native);
    this.#version = native.version();
    this.#int8 = native.int8();
  }

  assertUsable(op: string): void {
    if (this.disposed) throw new AttnError('DISPOSED', `${op}: this instance was disposed of`, { op });
    const broken = this.#broken;
    if (broken)
      throw errorWithHelp('INTERNAL', `${op}: this instance has stopped (${broken.message})`, 'Call load() for a new one', { op }, { cause: broken });
    if (this.#running) throw new AttnError('BUSY', `${op}: another call on this instance is still running`, { op });
  }

  /** `body` must not run the caller's code. */
  #enter<T>(op: string, body: () => T): T {
    this.assertUsable(op);
    this.#running = true;
    const stack = this.#native.stackSave();
    try {
      return body();
    } catch (error) {
      // An exception unwinds the engine's stack, but not the stack in the heap.
      this.#native.stackRestore(stack);
      if (error instanceof AttnError) throw error;
      if (isNativeError(error)) throw this.#withAdvice(fromNative(error, op));
      // After a trap or a stack overflow the state of the heap is unknown.
      this.#broken = new AttnError('INTERNAL', `${op}: ${reason(error)}`, { op }, { cause: error });
      throw this.#broken;
    } finally {
      this.#running = false;
    }
  }

  /** Unused layers are garbage-collected between events only, never within a loop. */
  #withAdvice(error: AttnError): AttnError {
    if (error.code !== 'MEMORY' || this.#layers < 2) return error;
    const help = `Call dispose() on layers and models that you do not need: this instance has ${this.#layers} layers`;
    return errorWithHelp('MEMORY', error.message, help, { ...error.detail, layers: this.#layers }, { cause: error.cause });
  }

  /** State dictionaries are passed tensor by tensor, in frames that stay until the call ends. */
  #withLeaves<T>(op: string, leaves: readonly Leaf[], body: (frame: Pointer) => T): T {
    if (!leaves.some(isObject)) return this.#heap.withArguments(op, leaves as readonly (number | Checked)[], body);
    const held: NativeObject[] = [];
    const frames: Pointer[] = [];
    try {
      const plain = leaves.map((leaf) => {
        if (!isObject(leaf)) return leaf;
        const object = 'entries' in leaf ? new this.#native.NamedTensors() : hold(leaf, leaves, this.#native, this.#heap);
        held.push(object);
        if ('entries' in leaf)
          for (const [name, tensor] of leaf.entries) {
            frames.push(this.#heap.frameOf(op, [utf8(op, name), tensor]));
            object.add!(frames.at(-1)!);
          }
        return object.address() >>> 0;
      });
      return this.#heap.withArguments(op, plain, body);
    } finally {
      for (const object of held) object.delete();
      for (const frame of frames) this.#heap.release(frame);
    }
  }

  call(op: string, { name, result }: Signature, leaves: readonly Leaf[], layer?: NativeLayer): unknown {
    return this.#enter(op, () =>
      this.#withLeaves(op, leaves, (frame) => {
        const pointer = callNative(layer ?? this.#native, name, frame);
        return toPublic(result, this.#heap.takeResult(op, pointer));
      }),
    );
  }

  create(name: string, leaves: readonly Leaf[], op = name): NativeLayer {
    const layer = this.#enter(op, () => this.#withLeaves(op, leaves, (frame) => new (nativeClass(this.#native, name))(frame)));
    ++this.#layers;
    return layer;
  }

  part(op: string, layer: NativeLayer, name: string): NativeLayer {
    return this.#enter(op, () => nativePart(layer, name));
  }

  free(layer: NativeLayer): void {
    if (this.disposed || this.#broken) return;
    this.#enter('dispose', () => layer.delete());
    --this.#layers;
  }

  get info(): RuntimeInfo {
    const { variant, threads, notes } = this.#runtime;
    return this.#enter('info', () => ({
      version: this.#version,
      variant,
      threads,
      training: true,
      notes: [...notes, `int8: ${this.#int8}`],
      heap: { used: this.#native.heapUsed(), peak: this.#native.heapPeak() },
    }));
  }

  dispose(): void {
    if (this.disposed) return;
    if (this.#running) throw new AttnError('BUSY', 'dispose: a call on this instance is still running', { op: 'dispose' });
    this.disposed = true;
    // Garbage collection frees the heap; threads have to be stopped.
    this.#runtime.stop();
  }
}
