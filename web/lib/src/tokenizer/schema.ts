import { isPlainObject } from '../args/arrays.js';
import { AttnError, describe, fail, reason } from '../args/error.js';
import { decodeStrictUtf8 } from '../platform/utf8.js';
import { limits } from './limits.js';

export const op = 'loadModel';

/** Refuses a file before parsing: 2 bytes can be an object of 64 in V8. */
function checkValues(bytes: Uint8Array, name: string): void {
  const most = limits.bytes * bytes.length + limits.moreBytes;
  let memory = 0;
  let names = 0;
  for (let at = 0; at < bytes.length; ++at)
    switch (bytes[at]) {
      case 0x22: // a string, to its end
        for (++at; at < bytes.length && bytes[at] !== 0x22; ++at) if (bytes[at] === 0x5c) ++at;
        break;
      case 0x5b: // [
      case 0x7b: // {
        memory += 64;
        break;
      case 0x3a: // :
        memory += 96;
        ++names;
        break;
      case 0x2c: // ,
        memory += 24;
    }
  if (memory > most) fail('UNSUPPORTED', op, name, `has values of ${memory} bytes in a file of ${bytes.length}`, `at most ${most} bytes`);
  atMost(name, names, 'names', limits.names);
}

/** Strings, and the NaN and Infinity of Python's json. */
const notNumbers = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:NaN|Infinity)\b/g;

/** Returns NaN and Infinity as strings; tokenizer.json, which Python does not write, has none. */
export function readJson(bytes: Uint8Array, name: string): unknown {
  checkValues(bytes, name);
  try {
    const text = decodeStrictUtf8(bytes);
    return JSON.parse(name === 'tokenizer.json' ? text : text.replace(notNumbers, (found) => (found[0] === '"' ? found : `"${found}"`)));
  } catch (cause) {
    throw new AttnError('FORMAT', `${op}: ${name} is not JSON (${reason(cause)})`, { op, file: name }, { cause });
  }
}

export function readObject(bytes: Uint8Array, name: string): object {
  const value = readJson(bytes, name);
  return isPlainObject(value) ? (value as object) : wrong(name, value, 'an object');
}

/** Ignores names of the prototype. */
export class Section {
  readonly #values: object;
  readonly path: string;

  constructor(value: unknown, path: string) {
    if (!isPlainObject(value)) wrong(path, value, 'an object');
    this.#values = value as object;
    this.path = path;
  }

  get(name: string): unknown {
    return Object.hasOwn(this.#values, name) ? (this.#values as Record<string, unknown>)[name] : undefined;
  }

  /** Null counts as absent. */
  has(name: string): boolean {
    return (this.get(name) ?? undefined) !== undefined;
  }

  with(values: Readonly<Record<string, unknown>>): Section {
    return new Section({ ...this.#values, ...values }, this.path);
  }

  names(): string[] {
    return Object.keys(this.#values);
  }

  at(name: string): string {
    return `${this.path}.${name.length > 40 ? `${name.slice(0, 40)}…` : name}`;
  }

  string(name: string, fallback?: string): string {
    const value = this.get(name) ?? fallback;
    return typeof value === 'string' ? value : wrong(this.at(name), value, 'a string');
  }

  text(name: string, most: number, fallback?: string): string {
    const value = this.string(name, fallback);
    atMost(this.at(name), value.length, 'characters', most);
    return value;
  }

  boolean(name: string, fallback?: boolean): boolean {
    const value = this.get(name) ?? fallback;
    return typeof value === 'boolean' ? value : wrong(this.at(name), value, 'true or false');
  }

  id(name: string, fallback?: number): number {
    return idOf(this.get(name) ?? fallback, this.at(name));
  }

  section(name: string): Section {
    return new Section(this.get(name), this.at(name));
  }

  /** Removes a large part, so that it is not in memory twice. */
  take(name: string): unknown {
    const value = this.get(name);
    if (value !== undefined) (this.#values as Record<string, unknown>)[name] = undefined;
    return value;
  }

  list(name: string): unknown[] {
    return listOf(this.get(name), this.at(name));
  }

  sections(name: string): Section[] {
    return this.list(name).map((value, i) => new Section(value, `${this.at(name)}[${i}]`));
  }
}

export function wrong(path: string, value: unknown, expected: string): never {
  fail('FORMAT', op, path, describe(value), expected);
}

export function unsupported(path: string, value: unknown, supported: string, help?: string): never {
  fail('UNSUPPORTED', op, path, describe(value), supported, help);
}

export function listOf(value: unknown, path: string): unknown[] {
  return Array.isArray(value) ? value : wrong(path, value, 'an array');
}

export function idOf(value: unknown, path: string): number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31
    ? (value as number)
    : wrong(path, value, 'an integer from 0 to 2147483647');
}

export function atMost(path: string, count: number, what: string, most: number): void {
  if (count > most) fail('UNSUPPORTED', op, path, `has ${count} ${what}`, `at most ${most} ${what}`);
}

export class Parts {
  readonly #most: number;
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(section: Section): void {
    if (++this.#count > this.#most) fail('UNSUPPORTED', op, section.path, `is part ${this.#count} of its kind`, `at most ${this.#most} parts`);
  }
}

export function choose<T>(table: Readonly<Record<string, T>>, section: Section): T {
  const type = section.get('type');
  if (typeof type === 'string' && Object.hasOwn(table, type)) return table[type];
  return unsupported(section.at('type'), type, `one of ${Object.keys(table).join(', ')}`);
}
