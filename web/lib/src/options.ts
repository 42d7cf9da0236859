/** Options at the door: each is read once, each is checked, and a name that is not known is an error, never ignored. */
import type { AttentionOptions, LoadOptions, MultiHeadAttentionOptions, TraceName } from './attn.js';
import { arrayTag, type CheckedMask, isArrayBuffer, isPlainObject, readMask } from './arrays.js';
import { AttnError, describe, fail, hint } from './error.js';

type Values<T> = { [K in keyof T]-?: unknown };

/** Reads the known names of an options object once each. */
function read<T>(op: string, argument: string, value: unknown, known: readonly (keyof T & string)[]): Values<T> {
  const values = {} as Values<T>;
  if (value === undefined) return values;
  if (!isPlainObject(value)) fail('ARGUMENT', op, argument, describe(value), 'an object');
  for (const name of Object.keys(value as object))
    if (!(known as readonly string[]).includes(name))
      throw new AttnError('ARGUMENT', `${op}: unknown option ${JSON.stringify(name)}; ${hint(name, known)}`, {
        op,
        argument: name,
        expected: known.join(', '),
        got: name,
      });
  for (const name of known) values[name] = (value as T)[name];
  return values;
}

function boolean(op: string, name: string, value: unknown, fallback: boolean): boolean {
  if (value === undefined) return fallback;
  if (typeof value !== 'boolean') fail('ARGUMENT', op, name, describe(value), 'true or false');
  return value;
}

function choice<T extends string>(op: string, name: string, value: unknown, choices: readonly T[], fallback: T): T {
  if (value === undefined) return fallback;
  if (typeof value !== 'string') fail('ARGUMENT', op, name, describe(value), `one of ${choices.join(', ')}`);
  if (!choices.includes(value as T)) fail('CONFIG', op, name, describe(value), `one of ${choices.join(', ')}`);
  return value as T;
}

function finite(op: string, name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'number') fail('ARGUMENT', op, name, describe(value), 'a finite number');
  if (!Number.isFinite(value)) fail('CONFIG', op, name, describe(value), 'a finite number');
  return value;
}

/** A whole number; of the wrong kind it is ARGUMENT, out of its range CONFIG. */
function whole(op: string, name: string, value: unknown, least: number, most: number): number {
  const expected = `a whole number from ${least} to ${most}`;
  if (typeof value !== 'number' || !Number.isInteger(value)) fail('ARGUMENT', op, name, describe(value), expected);
  if (value < least || value > most) fail('CONFIG', op, name, describe(value), expected);
  return value;
}

export const fullyMaskedKinds = ['zero', 'nan', 'uniform'] as const satisfies readonly AttentionOptions['fullyMasked'][];

export interface CheckedAttentionOptions {
  readonly mask: CheckedMask | undefined;
  readonly keyPaddingMask: CheckedMask | undefined;
  readonly isCausal: boolean;
  readonly scale: number | undefined;
  readonly needWeights: boolean;
  readonly averageWeights: boolean;
  readonly enableGqa: boolean;
  readonly fullyMasked: (typeof fullyMaskedKinds)[number];
  /** Unchecked against the instance's names. */
  readonly trace: boolean | readonly TraceName[];
}

const attentionNames = [
  'mask',
  'keyPaddingMask',
  'isCausal',
  'scale',
  'needWeights',
  'averageWeights',
  'enableGqa',
  'fullyMasked',
  'trace',
] as const satisfies readonly (keyof AttentionOptions)[];

/** Names of intermediates, in the order of their bits; load() holds this list against the WebAssembly's own. */
export const traceNames = [
  'q_proj',
  'k_proj',
  'v_proj',
  'q',
  'k',
  'v',
  'scores',
  'masked_scores',
  'probabilities',
  'weights',
  'weighted_values',
  'context',
  'merged',
  'output',
] as const satisfies readonly TraceName[];

function trace(op: string, value: unknown): boolean | TraceName[] {
  if (value === undefined) return false;
  if (typeof value === 'boolean') return value;
  if (!Array.isArray(value)) fail('ARGUMENT', op, 'trace', describe(value), 'true, false or an Array of names');
  return Array.from(value as unknown[], (name, i) => {
    if (typeof name !== 'string') fail('ARGUMENT', op, `trace[${i}]`, describe(name), 'a name');
    if (!(traceNames as readonly string[]).includes(name))
      fail('ARGUMENT', op, `trace[${i}]`, describe(name), `the name of an intermediate (${hint(name, traceNames)})`);
    return name as TraceName;
  });
}

const noOptions: CheckedAttentionOptions = Object.freeze({
  mask: undefined,
  keyPaddingMask: undefined,
  isCausal: false,
  scale: undefined,
  needWeights: false,
  averageWeights: false,
  enableGqa: false,
  fullyMasked: 'zero',
  trace: false,
});

export function readAttentionOptions(op: string, value: unknown): CheckedAttentionOptions {
  if (value === undefined) return noOptions;
  const o = read<AttentionOptions>(op, 'options', value, attentionNames);
  return {
    mask: o.mask === undefined ? undefined : readMask(op, 'mask', o.mask),
    keyPaddingMask: o.keyPaddingMask === undefined ? undefined : readMask(op, 'keyPaddingMask', o.keyPaddingMask),
    isCausal: boolean(op, 'isCausal', o.isCausal, false),
    scale: finite(op, 'scale', o.scale),
    needWeights: boolean(op, 'needWeights', o.needWeights, false),
    averageWeights: boolean(op, 'averageWeights', o.averageWeights, false),
    enableGqa: boolean(op, 'enableGqa', o.enableGqa, false),
    fullyMasked: choice(op, 'fullyMasked', o.fullyMasked, fullyMaskedKinds, 'zero'),
    trace: trace(op, o.trace),
  };
}

export interface CheckedMultiHeadAttentionOptions {
  readonly embedDim: number;
  readonly numHeads: number;
  readonly kdim: number;
  readonly vdim: number;
  readonly bias: boolean;
  readonly scale: number | undefined;
  readonly outProj: boolean;
}

export function readMultiHeadAttentionOptions(value: unknown): CheckedMultiHeadAttentionOptions {
  const op = 'MultiHeadAttention';
  if (value === undefined) fail('ARGUMENT', op, 'options', 'is missing', '{ embedDim, numHeads }');
  const names = ['embedDim', 'numHeads', 'kdim', 'vdim', 'bias', 'scale', 'outProj'] as const;
  const o = read<Pick<MultiHeadAttentionOptions, (typeof names)[number]>>(op, 'options', value, names);
  const size = (name: 'embedDim' | 'numHeads' | 'kdim' | 'vdim', fallback?: number) =>
    o[name] === undefined && fallback !== undefined ? fallback : whole(op, name, o[name], 1, 0x7fffffff);
  const embedDim = size('embedDim');
  return {
    embedDim,
    numHeads: size('numHeads'),
    kdim: size('kdim', embedDim),
    vdim: size('vdim', embedDim),
    bias: boolean(op, 'bias', o.bias, true),
    scale: finite(op, 'scale', o.scale),
    outProj: boolean(op, 'outProj', o.outProj, true),
  };
}

export const schemes = ['torch', 'xavier_uniform', 'xavier_normal', 'kaiming_uniform', 'kaiming_normal', 'normal'] as const;

export interface CheckedInitializeOptions {
  readonly scheme: (typeof schemes)[number];
  readonly seed: number;
  readonly std: number;
}

export function readInitializeOptions(value: unknown): CheckedInitializeOptions {
  const op = 'initialize';
  const o = read<CheckedInitializeOptions>(op, 'options', value, ['scheme', 'seed', 'std']);
  const std = finite(op, 'std', o.std) ?? 0.02;
  if (std < 0 || std > 1e37) fail('CONFIG', op, 'std', describe(std), 'a number from 0 to 1e37');
  return {
    scheme: choice(op, 'scheme', o.scheme, schemes, 'torch'),
    seed: o.seed === undefined ? 0 : whole(op, 'seed', o.seed, 0, Number.MAX_SAFE_INTEGER),
    std,
  };
}

export function readStrict(value: unknown): boolean {
  const op = 'loadStateDict';
  return boolean(op, 'strict', read<{ strict: boolean }>(op, 'options', value, ['strict']).strict, true);
}

export function readDim(value: unknown): number {
  if (value === undefined) return -1;
  if (typeof value !== 'number' || !Number.isInteger(value)) fail('ARGUMENT', 'softmax', 'dim', describe(value), 'a whole number');
  // Embind would wrap what an int32 does not hold.
  if (Math.abs(value) > 0x7fffffff) fail('OUT_OF_RANGE', 'softmax', 'dim', describe(value), 'a dimension of x');
  return value;
}

/** What `wasm` is, told by tags, so that objects of other realms are fine. */
export function wasmKind(wasm: unknown): 'location' | 'response' | 'module' | 'bytes' {
  const expected = 'a URL, an ArrayBuffer, a Uint8Array, a Response or a WebAssembly.Module';
  if (wasm === '') fail('ARGUMENT', 'load', 'wasm', 'is ""', expected);
  const tag = Object.prototype.toString.call(wasm).slice(8, -1);
  if (typeof wasm === 'string' || tag === 'URL') return 'location';
  if (tag === 'Response') return 'response';
  if (tag === 'WebAssembly.Module') return 'module';
  if (isArrayBuffer(wasm) || arrayTag(wasm) === 'Uint8Array') return 'bytes';
  fail('ARGUMENT', 'load', 'wasm', describe(wasm), expected);
}

export interface CheckedLoadOptions {
  readonly wasm: LoadOptions['wasm'];
  readonly variant: 'auto' | 'simd' | 'relaxed';
  readonly threads: number | 'auto';
  readonly maximumMemory: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: LoadOptions['onProgress'];
}

/** `leastMemory`: bytes that the module starts with. */
export function readLoadOptions(value: unknown, leastMemory: number): CheckedLoadOptions {
  const op = 'load';
  const o = read<LoadOptions>(op, 'options', value, ['wasm', 'variant', 'threads', 'maximumMemory', 'signal', 'onProgress']);
  const { signal, onProgress, threads } = o;
  if (o.wasm !== undefined) wasmKind(o.wasm);
  const looksRight = typeof signal === 'object' && signal !== null && 'aborted' in signal && 'addEventListener' in signal;
  if (signal !== undefined && !looksRight) fail('ARGUMENT', op, 'signal', describe(signal), 'an AbortSignal');
  if (onProgress !== undefined && typeof onProgress !== 'function') fail('ARGUMENT', op, 'onProgress', describe(onProgress), 'a function');
  if (typeof threads === 'string' && threads !== 'auto') fail('ARGUMENT', op, 'threads', describe(threads), "a whole number from 1 to 64, or 'auto'");
  return {
    wasm: o.wasm as LoadOptions['wasm'],
    variant: choice(op, 'variant', o.variant, ['auto', 'simd', 'relaxed'], 'auto'),
    threads: threads === undefined ? 1 : threads === 'auto' ? 'auto' : whole(op, 'threads', threads, 1, 64),
    maximumMemory: o.maximumMemory === undefined ? undefined : whole(op, 'maximumMemory', o.maximumMemory, leastMemory, 2 ** 32),
    signal: signal as AbortSignal | undefined,
    onProgress: onProgress as LoadOptions['onProgress'],
  };
}
