import { isPlainObject } from '../arrays.js';
import { reason } from '../download.js';
import { AttnError, describe, fail } from '../error.js';

/** Whose errors those of a file are. */
export const op = 'loadModel';

/** The object that a JSON file holds. */
export function readObject(bytes: Uint8Array, name: string): object {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new AttnError('FORMAT', `${op}: ${name} is not JSON (${reason(cause)})`, { op, file: name }, { cause });
  }
  return isPlainObject(value) ? (value as object) : wrong(name, value, 'an object');
}

/** An object of a JSON file, read by what it must have. Names that only its prototype has are not there. */
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

  /** Whether there is something other than null. */
  has(name: string): boolean {
    return (this.get(name) ?? undefined) !== undefined;
  }

  /** The same with other values. */
  with(values: Readonly<Record<string, unknown>>): Section {
    return new Section({ ...this.#values, ...values }, this.path);
  }

  names(): string[] {
    return Object.keys(this.#values);
  }

  at(name: string): string {
    return `${this.path}.${name}`;
  }

  string(name: string, fallback?: string): string {
    const value = this.get(name) ?? fallback;
    return typeof value === 'string' ? value : wrong(this.at(name), value, 'a string');
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

export function unsupported(path: string, value: unknown, supported: string): never {
  fail('UNSUPPORTED', op, path, describe(value), supported);
}

export function listOf(value: unknown, path: string): unknown[] {
  return Array.isArray(value) ? value : wrong(path, value, 'an array');
}

export function idOf(value: unknown, path: string): number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31
    ? (value as number)
    : wrong(path, value, 'an integer from 0 to 2147483647');
}

/** What stands for a "type" in a table of them; no other names than the table's own. `depth` is how many Sequences are around it. */
export function choose<T>(table: Readonly<Record<string, T>>, section: Section, depth = 0): T {
  if (depth > 16) fail('FORMAT', op, section.path, 'is nested deeper', 'at most 16 Sequences in one another');
  const type = section.get('type');
  if (typeof type === 'string' && Object.hasOwn(table, type)) return table[type];
  return unsupported(section.at('type'), type, Object.keys(table).join(', '));
}
