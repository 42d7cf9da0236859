import type { AttnError as AttnErrorType, ErrorCode } from '../attn.js';

export type Detail = Readonly<Record<string, unknown>>;

/** Names in files can be long. error.cpp has the same limits. */
const most = { message: 2048, fact: 1000, items: 1000, item: 200 };

function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const start = text.slice(0, Math.floor((length * 2) / 3)).replace(/[\ud800-\udbff]$/, '');
  return `${start} … ${text.slice(-Math.floor(length / 4)).replace(/^[\udc00-\udfff]/, '')}`;
}

function cutFact(value: unknown): unknown {
  if (typeof value === 'string') return cut(value, most.fact);
  if (!Array.isArray(value)) return value;
  return value.slice(0, most.items).map((item: unknown) => (typeof item === 'string' ? cut(item, most.item) : item));
}

/** Each entry of the package has its own copy of this class. */
const brand = Symbol.for('attn.AttnError');

export class AttnError extends Error implements AttnErrorType {
  readonly code: ErrorCode;
  readonly detail: Detail;

  constructor(code: ErrorCode, message: string, detail: Detail = {}, options?: { cause?: unknown }) {
    super(cut(message, most.message), options);
    this.code = code;
    this.detail = Object.freeze(Object.fromEntries(Object.entries(detail).map(([name, value]) => [name, cutFact(value)])));
  }

  get [brand](): boolean {
    return true;
  }

  get help(): string | undefined {
    return this.detail['help'] as string | undefined;
  }

  // A user's subclass only matches its own instances.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return Object.hasOwn(this.prototype, brand) ? (value as { [brand]?: unknown } | undefined)?.[brand] === true : super[Symbol.hasInstance](value);
  }

  static {
    // On the prototype, as for built-in errors, so that logs do not print it.
    Object.defineProperty(this.prototype, 'name', { value: 'AttnError', configurable: true, writable: true });
  }
}

/** Has the name of fetch's abort errors, which callers may test. */
export function abortError(message: string, detail?: Detail, options?: { cause?: unknown }): AttnError {
  const error = new AttnError('ABORTED', message, detail, options);
  Object.defineProperty(error, 'name', { value: abortName, configurable: true, writable: true });
  return error;
}
export const abortName = 'AbortError';

export const networkErrors =
  (op: string, more: Detail = {}) =>
  (message: string, detail: Detail, cause?: unknown): AttnError =>
    new AttnError('NETWORK', `${op}: ${message}`, { op, ...more, ...detail }, cause === undefined ? undefined : { cause });

/** `help`: a sentence without its final period. */
export function errorWithHelp(code: ErrorCode, message: string, help: string | undefined, detail: Detail, options?: { cause?: unknown }): AttnError {
  if (help === undefined) return new AttnError(code, message, detail, options);
  return new AttnError(code, `${message}. ${help}${help.endsWith('?') ? '' : '.'}`, { ...detail, help }, options);
}

/** Throws "op: argument got, expected expected. Help."; `got` includes its verb. */
export function fail(code: ErrorCode, op: string, argument: string, got: string, expected: string, help?: string): never {
  const detail = { op, argument, expected, got: got.replace(/^(is|has) /, '') };
  throw errorWithHelp(code, `${op}: ${argument} ${got}, expected ${expected}`, help, detail);
}

/** Never throws. */
export function reason(thrown: unknown): string {
  try {
    return cut(String(thrown instanceof Error ? thrown.message : thrown), most.fact);
  } catch {
    return 'an exception that cannot be read';
  }
}

/** Never throws, unlike instanceof for a revoked Proxy. */
export function isAttnError(thrown: unknown): thrown is AttnError {
  try {
    return thrown instanceof AttnError;
  } catch {
    return false;
  }
}

/** Names the caller's operation in errors of an inner one. */
export function asOperation<T>(op: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof AttnError)) throw error;
    throw new AttnError(error.code, error.message.replace(/^\w+:/, `${op}:`), { ...error.detail, op }, { cause: error.cause });
  }
}

/** Wraps an exception of a getter, Proxy or conversion. */
export function unreadable(op: string, argument: string, cause: unknown): AttnError {
  if (isAttnError(cause)) return cause;
  const got = `a value that throws when it is read (${reason(cause)})`;
  const expected = 'a value that can be read';
  return new AttnError('ARGUMENT', `${op}: ${argument} is ${got}, expected ${expected}`, { op, argument, expected, got }, { cause });
}

export function reading<T>(op: string, argument: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw unreadable(op, argument, cause);
  }
}

export function allocate<T>(op: string, bytes: number, make: () => T, what = 'the result'): T {
  try {
    return make();
  } catch (cause) {
    throw new AttnError('MEMORY', `${op}: the engine has no ${bytes} bytes for ${what}`, { op, got: bytes }, { cause });
  }
}

export const withArticle = (noun: string) => `${/^([AEIO]|SGD)/.test(noun) ? 'an' : 'a'} ${noun}`;

/** Never throws. */
export function describe(value: unknown): string {
  if (value === undefined) return 'is missing';
  try {
    switch (typeof value) {
      case 'string':
        return `is ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`;
      case 'number':
      case 'boolean':
        return `is ${value}`;
      case 'bigint':
        return `is the BigInt ${value}`;
      case 'symbol':
        return 'is a symbol';
      case 'function':
        return 'is a function';
    }
    if (value === null) return 'is null';
    const tag = Object.prototype.toString.call(value).slice(8, -1);
    return tag === 'Object' ? 'is an object' : `is ${withArticle(tag)}`;
  } catch {
    return 'is an object that cannot be read';
  }
}

export function shapeText(dims: readonly number[]): string {
  return `(${dims.join(',')})`;
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; ++i) {
    const next = [i];
    for (let j = 1; j <= b.length; ++j) next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
    row = next;
  }
  return row[b.length]!;
}

/** Ignores case, _ and -. Without a similar name, one that is part of `name` matches. */
function nearest(name: string, known: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[_-]/g, '');
  const wanted = plain(name).slice(0, 64);
  let best: string | undefined;
  let least = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of known) {
    const edits = distance(wanted, plain(candidate));
    if (edits < least) [best, least] = [candidate, edits];
  }
  return best ?? known.find((candidate) => wanted.includes(plain(candidate)));
}

export function hint(name: string, known: readonly string[]): string | undefined {
  const near = nearest(name, known);
  return near === undefined ? undefined : `Did you mean ${near}?`;
}
