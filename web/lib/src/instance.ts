/** One running instance: the public functions on top of Embind's. */
import type { Attn, AttentionResult, Dims, ErrorCode, MultiHeadAttention, RuntimeInfo, StateDict, Tensor, TraceName } from './attn.js';
import { type Checked, maskKinds, readBytes, readStateDict, readTensor } from './arrays.js';
import { refuseText } from './binary.js';
import { disposeSymbol } from './dispose.js';
import { AttnError, type Detail } from './error.js';
import { Heap } from './heap.js';
import {
  attentionOptionFields,
  multiHeadAttentionOptionFields,
  type NamedTensors,
  type Native,
  type NativeAttentionOptions,
  type NativeMultiHeadAttention,
  type Pointer,
} from './native.js';
import {
  type CheckedAttentionOptions,
  fullyMaskedKinds,
  readAttentionOptions,
  readDim,
  readInitializeOptions,
  readMultiHeadAttentionOptions,
  readStrict,
  schemes,
  traceNames,
} from './options.js';

const resultOutput = 0;
const resultWeights = 1;
const resultTraces = 2;

const everyTrace = traceNames.reduce((bits, name, i) => (name === 'weighted_values' ? bits : bits | (1 << i)), 0);

function traceBits(trace: boolean | readonly TraceName[]): number {
  if (typeof trace === 'boolean') return trace ? everyTrace : 0;
  return trace.reduce((bits, name) => bits | (1 << traceNames.indexOf(name)), 0);
}

const encoder = new TextEncoder();

/** A name as bytes for the heap. */
function utf8(op: string, name: string): Checked<Uint8Array> {
  const data = encoder.encode(name);
  return { op, argument: 'state', data, dims: [data.length], size: data.length, width: 1, source: data, copied: true };
}

/** Lists that C++ and TypeScript both have must be the same, or options would land in the wrong place. */
function checkDrift(native: Native): void {
  const lists: [string, readonly string[]][] = [
    [native.traceNames(), traceNames],
    [native.initSchemes(), schemes],
    [native.attentionOptionFields(), attentionOptionFields],
    [native.multiHeadAttentionOptionFields(), multiHeadAttentionOptionFields],
  ];
  for (const [theirs, ours] of lists)
    if (theirs !== ours.join(','))
      throw new AttnError('FORMAT', `load: the .wasm is of another version: it lists ${theirs}, expected ${ours.join(',')}`, { op: 'load' });
}

export interface NativeError {
  code: ErrorCode;
  message: string;
  detail?: Detail;
}

/** What src/bindings throws: an Error with code and detail. */
export function isNativeError(error: unknown): error is NativeError {
  return error instanceof Error && typeof (error as Partial<NativeError>).code === 'string' && 'detail' in error;
}

export function fromNative(error: NativeError): AttnError {
  return new AttnError(error.code, error.message, error.detail);
}

export interface Runtime {
  readonly native: Native;
  readonly variant: 'simd' | 'relaxed';
  readonly threads: number;
  readonly notes: readonly string[];
  /** Ends the threads. */
  readonly stop: () => void;
}

export function createInstance({ native, variant, threads, notes, stop }: Runtime): Attn {
  checkDrift(native);
  const heap = new Heap(native);
  const version = native.version();
  let disposed = false;
  let running = false;
  let broken: AttnError | undefined;

  function assertUsable(op: string): void {
    if (disposed) throw new AttnError('DISPOSED', `${op}: this instance was disposed of`, { op });
    if (broken) throw new AttnError('INTERNAL', `${op}: this instance has stopped (${broken.message}); load() a new one`, { op }, { cause: broken });
    if (running) throw new AttnError('BUSY', `${op}: another call on this instance is still running`, { op });
  }

  /** Runs body, which calls into WebAssembly. No code of the caller's runs inside. */
  function enter<T>(op: string, body: () => T): T {
    assertUsable(op);
    running = true;
    try {
      return body();
    } catch (error) {
      if (error instanceof AttnError) throw error;
      if (isNativeError(error)) throw fromNative(error);
      // A trap, or a stack that overflowed in the middle: what the heap holds is not known any more.
      broken = new AttnError('INTERNAL', `${op}: ${error instanceof Error ? error.message : String(error)}`, { op }, { cause: error });
      throw broken;
    } finally {
      running = false;
    }
  }

  function nativeOptions(o: CheckedAttentionOptions, mask: Pointer, keyPaddingMask: Pointer): NativeAttentionOptions {
    return {
      mask,
      maskKind: o.mask ? maskKinds.indexOf(o.mask.kind) : 0,
      maskIsFloat: o.mask?.width === 4,
      keyPaddingMask,
      keyPaddingMaskKind: o.keyPaddingMask ? maskKinds.indexOf(o.keyPaddingMask.kind) : 0,
      keyPaddingMaskIsFloat: o.keyPaddingMask?.width === 4,
      isCausal: o.isCausal,
      hasScale: o.scale !== undefined,
      scale: o.scale ?? 0,
      needWeights: o.needWeights,
      averageWeights: o.averageWeights,
      enableGqa: o.enableGqa,
      fullyMasked: fullyMaskedKinds.indexOf(o.fullyMasked),
      trace: traceBits(o.trace),
    };
  }

  /** One attention call: inputs in, body(pointers of the tensors, options), results out. */
  function attend(
    op: string,
    tensors: readonly (Checked | undefined)[],
    o: CheckedAttentionOptions,
    body: (pointers: readonly Pointer[], options: Pointer) => Pointer,
  ): AttentionResult {
    const result = heap.withInputs(
      op,
      [...tensors, o.mask, o.keyPaddingMask],
      (pointers, words) => {
        const options = nativeOptions(o, pointers[tensors.length]!, pointers[tensors.length + 1]!);
        return heap.takeResult(body(pointers, heap.writeOptions(words, attentionOptionFields, options)));
      },
      attentionOptionFields.length,
    );
    const all: AttentionResult = { output: result.get(resultOutput)! };
    const weights = result.get(resultWeights);
    if (weights) all.weights = weights;
    if (o.trace !== false) {
      const trace: { [name in TraceName]?: Tensor } = {};
      for (const [slot, tensor] of result) if (slot >= resultTraces) trace[traceNames[slot - resultTraces]!] = tensor;
      all.trace = trace;
    }
    return all;
  }

  /** One call with a single tensor as its result. */
  function compute(op: string, tensors: readonly (Checked | undefined)[], body: (pointers: readonly Pointer[]) => Pointer): Tensor {
    return enter(op, () => heap.withInputs(op, tensors, (pointers) => heap.takeResult(body(pointers)).get(resultOutput)!));
  }

  // Only a safety net: a module that is forgotten is freed when it is collected.
  const forgotten =
    typeof FinalizationRegistry === 'undefined'
      ? undefined
      : new FinalizationRegistry<NativeMultiHeadAttention>((handle) => {
          if (!disposed && !broken) handle.delete();
        });

  class MultiHeadAttentionModule implements MultiHeadAttention {
    // Each instance of attn has a class of its own, so this field tells another instance's modules apart.
    #handle: NativeMultiHeadAttention | undefined;

    constructor(options: Parameters<typeof readMultiHeadAttentionOptions>[0]) {
      assertUsable('MultiHeadAttention');
      const o = readMultiHeadAttentionOptions(options);
      const filled = { ...o, hasScale: o.scale !== undefined, scale: o.scale ?? 0 };
      const fields = multiHeadAttentionOptionFields;
      const create = (_: Pointer[], words: Pointer) => new native.MultiHeadAttention(heap.writeOptions(words, fields, filled));
      this.#handle = enter('MultiHeadAttention', () => heap.withInputs('MultiHeadAttention', [], create, fields.length));
      forgotten?.register(this, this.#handle, this);
    }

    static #of(op: string, self: MultiHeadAttentionModule): NativeMultiHeadAttention {
      // Also for `const { forward } = mha`: there is no module to work on.
      if (typeof self !== 'object' || self === null || !(#handle in self))
        throw new AttnError('WRONG_INSTANCE', `${op}: called on what is not a MultiHeadAttention of this instance`, { op });
      if (disposed || !self.#handle) throw new AttnError('DISPOSED', `${op}: this ${disposed ? 'instance' : 'module'} was disposed of`, { op });
      return self.#handle;
    }

    forward(query: Tensor, key?: Tensor, value?: Tensor, options?: Parameters<Attn['scaledDotProductAttention']>[3]): AttentionResult {
      const op = 'MultiHeadAttention';
      MultiHeadAttentionModule.#of(op, this);
      assertUsable(op);
      const tensors = [
        readTensor(op, 'query', query),
        key === undefined ? undefined : readTensor(op, 'key', key),
        value === undefined ? undefined : readTensor(op, 'value', value),
      ];
      const o = readAttentionOptions(op, options);
      const handle = MultiHeadAttentionModule.#of(op, this); // once more: a getter may have disposed of it
      return enter(op, () => attend(op, tensors, o, ([q, k, v], options) => handle.forward(q!, k!, v!, options)));
    }

    loadStateDict(state: StateDict, options?: { strict?: boolean }): void {
      const op = 'loadStateDict';
      MultiHeadAttentionModule.#of(op, this);
      assertUsable(op);
      const tensors = readStateDict(op, state);
      const strict = readStrict(options);
      const handle = MultiHeadAttentionModule.#of(op, this);
      enter(op, () => {
        const named = new native.NamedTensors();
        try {
          for (const [name, tensor] of tensors)
            heap.withInputs(op, [utf8(op, name), tensor], ([namePointer, pointer]) => named.add(namePointer!, pointer!));
          handle.loadStateDict(named, strict);
        } finally {
          named.delete();
        }
      });
    }

    stateDict(): Map<string, Tensor> {
      const handle = MultiHeadAttentionModule.#of('stateDict', this);
      return enter('stateDict', () => heap.takeTensors(handle.stateDict()));
    }

    initialize(options?: Parameters<MultiHeadAttention['initialize']>[0]): void {
      const op = 'initialize';
      MultiHeadAttentionModule.#of(op, this);
      const { scheme, seed, std } = readInitializeOptions(options);
      const handle = MultiHeadAttentionModule.#of(op, this);
      enter(op, () => handle.initialize(schemes.indexOf(scheme), seed, std));
    }

    get parameterCount(): number {
      const handle = MultiHeadAttentionModule.#of('parameterCount', this);
      return enter('parameterCount', () => handle.parameterCount());
    }

    parameterShapes(): Map<string, Dims> {
      const handle = MultiHeadAttentionModule.#of('parameterShapes', this);
      return enter('parameterShapes', () => heap.takeShapes(handle.parameterShapes()));
    }

    dispose(): void {
      const handle = this.#handle;
      if (!handle) return;
      this.#handle = undefined;
      forgotten?.unregister(this);
      if (!disposed && !broken) enter('dispose', () => handle.delete());
    }

    [disposeSymbol](): void {
      this.dispose();
    }
  }
  Object.defineProperty(MultiHeadAttentionModule, 'name', { value: 'MultiHeadAttention' });

  function dispose(): void {
    if (disposed) return;
    if (running) throw new AttnError('BUSY', 'dispose: a call on this instance is still running', { op: 'dispose' });
    disposed = true;
    // The heap goes with the memory as soon as nobody holds it; only threads have to be told.
    stop();
  }

  return Object.freeze<Attn>({
    get info(): RuntimeInfo {
      return enter('info', () => ({ version, variant, threads, notes: [...notes], heap: { used: native.heapUsed(), peak: native.heapPeak() } }));
    },

    scaledDotProductAttention(query, key, value, options) {
      const op = 'scaledDotProductAttention';
      assertUsable(op);
      const tensors = [readTensor(op, 'query', query), readTensor(op, 'key', key), readTensor(op, 'value', value)];
      const o = readAttentionOptions(op, options);
      return enter(op, () => attend(op, tensors, o, ([q, k, v], options) => native.scaledDotProductAttention(q!, k!, v!, options)));
    },

    linear(x, weight, bias) {
      const op = 'linear';
      assertUsable(op);
      const tensors = [readTensor(op, 'x', x), readTensor(op, 'weight', weight), bias === undefined ? undefined : readTensor(op, 'bias', bias)];
      return compute(op, tensors, ([px, pw, pb]) => native.linear(px!, pw!, pb!));
    },

    softmax(x, dim) {
      const op = 'softmax';
      assertUsable(op);
      const tensor = readTensor(op, 'x', x);
      const axis = readDim(dim);
      return compute(op, [tensor], ([px]) => native.softmax(px!, axis));
    },

    MultiHeadAttention: MultiHeadAttentionModule,

    parseSafetensors(bytes) {
      const op = 'parseSafetensors';
      assertUsable(op);
      const file = readBytes(op, 'bytes', bytes);
      refuseText(op, 'bytes', file, 'a safetensors file');
      return enter(op, () => {
        const named: NamedTensors = heap.withBytes(op, file, (pointer) => native.parseSafetensors(pointer, file.length));
        return heap.takeTensors(named);
      });
    },

    dispose,
    [disposeSymbol]: dispose,
  });
}
