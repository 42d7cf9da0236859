/** Reads arguments by the module's signatures (src/bindings): each property once, before anything is allocated. */
import {
  type Checked,
  elements,
  isPlainObject,
  readFile,
  readIds,
  readMask,
  readNumbers,
  readStateDict,
  readTensor,
  readVector,
  type State,
  underPrefix,
} from './arrays.js';
import { readCache } from './caches.js';
import { describe, errorWithHelp, fail, hint, isAttnError, reading } from './error.js';

export interface Argument {
  readonly name: string;
  readonly kind:
    | 'tensor'
    | 'mask'
    | 'flag'
    | 'int'
    | 'seed'
    | 'number'
    | 'window'
    | 'choice'
    | 'trace'
    | 'names'
    | 'indices'
    | 'ids'
    | 'dims'
    | 'vector_or_id'
    | 'bytes'
    | 'cache'
    | 'state'
    | 'modules'
    | 'groups'
    | 'labels'
    | 'pair'
    | 'limit'
    | 'group'
    | 'list';
  readonly required?: boolean;
  /** For bytes a description of the format. */
  readonly choices?: readonly string[];
  readonly members?: readonly Argument[];
  count?: number;
  /** Set by training.ts. */
  read?: (op: string, argument: string, value: unknown) => Leaf[];
}

export interface Signature {
  readonly name: string;
  readonly owner?: string;
  readonly result:
    | 'tensor'
    | 'tensors'
    | 'int8_tensors'
    | 'shapes'
    | 'number'
    | 'property'
    | 'attention'
    | 'encoder'
    | 'gradients'
    | 'loss'
    | 'neighbours'
    | 'about'
    | 'quantized'
    | 'raw'
    | 'text_model'
    | 'trace'
    | 'none';
  readonly arguments: readonly Argument[];
}

/** Class behind loadModel(); not exposed. */
export const internalClass = 'TextModel';

/** Returns a module's handle, or its number in attn/worker. */
export type LookUp = (op: string) => { delete(): void } | number;

export interface ModulesLeaf {
  readonly op: string;
  readonly modules: readonly LookUp[];
}

/** NaN marks an omitted value. */
export interface GroupsLeaf {
  readonly op: string;
  readonly groups: readonly { readonly names: RegExp; readonly learningRate: number; readonly weightDecay: number }[];
}

/** Argument value: a number, NaN if omitted, or data for the heap. */
export type Leaf = number | Checked | State | ModulesLeaf | GroupsLeaf;

/** Referenced by the result of a call, so that they are not garbage-collected first. */
export const usedBy = (leaves: readonly Leaf[]): LookUp[] =>
  leaves.flatMap((leaf) => (typeof leaf === 'object' && 'modules' in leaf ? leaf.modules : []));

/** A layer's forward is called by its class name. */
export const opOf = (owner: string, method: string): string => (method === 'forward' ? owner : method);

export function named<T extends object>(name: string, value: T): T {
  return Object.defineProperty(value, 'name', { value: name, configurable: true });
}

export function defineMethods<Self>(
  made: { readonly prototype: Self },
  name: string,
  signatures: readonly Signature[],
  call: (self: Self, op: string, signature: Signature, args: readonly unknown[]) => unknown,
): void {
  for (const signature of signatures) {
    if (signature.owner !== name || signature.name === 'constructor') continue;
    const op = opOf(name, signature.name);
    const method = named(signature.name, function (this: Self, ...args: unknown[]): unknown {
      return call(this, op, signature, args);
    });
    const place = signature.result === 'property' ? { get: method } : { value: method, writable: true };
    Object.defineProperty(made.prototype, signature.name, { ...place, configurable: true });
  }
}

/** Reads each member once, in the order of `known`. */
export function readMembers(op: string, argument: string, value: unknown, known: readonly string[], path = ''): unknown[] {
  if (!isPlainObject(value)) fail('ARGUMENT', op, argument, describe(value), 'an object');
  for (const name of Object.keys(value as object))
    if (!known.includes(name)) {
      const message = `${op}: option ${JSON.stringify(path + name)} is unknown, expected one of ${known.join(', ')}`;
      throw errorWithHelp('ARGUMENT', message, hint(name, known), { op, argument: path + name, expected: known.join(', '), got: name });
    }
  return known.map((name) => (value as Readonly<Record<string, unknown>>)[name]);
}

export function choice(op: string, argument: string, value: unknown, choices: readonly string[]): number {
  if (typeof value !== 'string') fail('ARGUMENT', op, argument, describe(value), `one of ${choices.join(', ')}`);
  const index = choices.indexOf(value);
  if (index < 0) fail('CONFIG', op, argument, describe(value), `one of ${choices.join(', ')}`);
  return index;
}

/** A wrong type is ARGUMENT, a wrong range CONFIG. */
export function whole(op: string, argument: string, value: unknown, least: number, most: number): number {
  const expected = `a whole number from ${least} to ${most}`;
  if (typeof value !== 'number' || !Number.isInteger(value)) fail('ARGUMENT', op, argument, describe(value), expected);
  if (value < least || value > most) fail('CONFIG', op, argument, describe(value), expected);
  return value;
}

/** C++ checks the range. */
function integer(op: string, argument: string, value: unknown, isOption: boolean): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) fail('ARGUMENT', op, argument, describe(value), 'a whole number');
  if (!Number.isSafeInteger(value)) fail(isOption ? 'CONFIG' : 'OUT_OF_RANGE', op, argument, describe(value), 'a number below 2^53');
  return value;
}

function pair(op: string, argument: string, value: unknown): number[] {
  const expected = 'an Array [left, right] of two whole numbers';
  if (!Array.isArray(value)) fail('ARGUMENT', op, argument, describe(value), expected);
  const both = elements(value as unknown[], (side, i) => integer(op, `${argument}[${i}]`, side, true));
  if (both.length !== 2) fail('ARGUMENT', op, argument, `has ${both.length} elements`, expected);
  return both;
}

function finite(op: string, argument: string, value: unknown): number {
  if (typeof value !== 'number') fail('ARGUMENT', op, argument, describe(value), 'a finite number');
  if (!Number.isFinite(value)) fail('CONFIG', op, argument, describe(value), 'a finite number');
  return value;
}

/** Packs names into a bit mask: bit i is `known[i]`. */
function names(op: string, argument: string, value: unknown, known: readonly string[], expected: string): number {
  if (!Array.isArray(value)) fail('ARGUMENT', op, argument, describe(value), expected);
  const each = elements(value as unknown[], (name, i) => {
    if (typeof name !== 'string') fail('ARGUMENT', op, `${argument}[${i}]`, describe(name), 'a name');
    const index = known.indexOf(name);
    if (index < 0) fail('ARGUMENT', op, `${argument}[${i}]`, describe(name), `one of ${known.join(', ')}`, hint(name, known));
    return 1 << index;
  });
  return each.reduce((bits, bit) => bits | bit, 0);
}

function countLeaves({ kind, members = [] }: Argument): number {
  if (kind === 'dims') return 0;
  if (kind === 'list') return 1; // its length
  return members.reduce((count, member) => count + countLeaves(member), kind === 'vector_or_id' || kind === 'window' || kind === 'pair' ? 2 : 1);
}

/** Counts them once: short calls without options are frequent. */
function leaveOut(argument: Argument, leaves: Leaf[]): void {
  for (let count = (argument.count ??= countLeaves(argument)); count > 0; --count) leaves.push(NaN);
}

function readGroup(op: string, full: string, inner: string, members: readonly Argument[], value: unknown, depth: number, leaves: Leaf[]): void {
  const values = readMembers(
    op,
    full,
    value,
    members.map((member) => member.name),
    inner,
  );
  members.forEach((member, i) => readLeaves(op, member, inner, values[i], depth + 1, undefined, leaves));
}

/** `depth`: number of enclosing option objects; `next`: following argument. */
export function readLeaves(op: string, argument: Argument, path: string, value: unknown, depth: number, next: unknown, leaves: Leaf[]): void {
  const { name, kind, choices = [], members = [] } = argument;
  const full = path + name;
  if (value === undefined && !argument.required) return leaveOut(argument, leaves);
  switch (kind) {
    case 'tensor':
      leaves.push(readTensor(op, full, value));
      break;
    case 'mask':
      leaves.push(readMask(op, full, value, choices));
      break;
    case 'flag':
      if (typeof value === 'string' && choices.includes(value)) leaves.push(2 + choices.indexOf(value));
      else if (typeof value === 'boolean') leaves.push(value ? 1 : 0);
      else fail('ARGUMENT', op, full, describe(value), ['true', 'false', ...choices].join(', ').replace(/, (\w+)$/, ' or $1'));
      break;
    case 'int':
      leaves.push(integer(op, full, value, depth > 0));
      break;
    case 'seed':
      leaves.push(whole(op, full, value, 0, Number.MAX_SAFE_INTEGER));
      break;
    case 'number':
      leaves.push(finite(op, full, value));
      break;
    case 'window':
      leaves.push(...pair(op, full, value));
      break;
    case 'choice':
      leaves.push(choice(op, full, value, choices));
      break;
    case 'trace':
      // -1: all names.
      leaves.push(typeof value === 'boolean' ? (value ? -1 : NaN) : names(op, full, value, choices, 'true, false or an Array of names'));
      break;
    case 'names':
      leaves.push(names(op, full, value, choices, 'an Array of names'));
      break;
    case 'indices':
      leaves.push(readNumbers(op, full, value));
      break;
    case 'ids':
      leaves.push(readIds(op, full, value, next));
      break;
    case 'dims': // read with the ids before
      break;
    case 'vector_or_id':
      if (typeof value === 'number') leaves.push(integer(op, full, value, false), NaN);
      else leaves.push(NaN, readVector(op, full, value));
      break;
    case 'cache':
      leaves.push(readCache(op, full, value));
      break;
    case 'bytes':
      leaves.push(readFile(op, full, value, choices[0]!));
      break;
    case 'state':
      leaves.push(readStateDict(op, full, value));
      break;
    case 'group': {
      if (value === undefined) {
        const needed = members.filter((member) => member.required).map((member) => member.name);
        fail('ARGUMENT', op, full, 'is missing', `an object with ${needed.join(', ')}`);
      }
      leaves.push(1);
      readGroup(op, full, depth > 0 ? `${full}.` : '', members, value, depth, leaves);
      break;
    }
    case 'list': {
      const place = leaves.push(1) - 1; // the number of elements
      const read = (each: unknown, i: number) => readGroup(op, `${full}[${i}]`, `${full}[${i}].`, members, each, depth, leaves);
      if (Array.isArray(value)) leaves[place] = elements(value as unknown[], read).length;
      else readGroup(op, full, `${full}.`, members, value, depth, leaves);
      break;
    }
    default:
      leaves.push(...argument.read!(op, full, value));
  }
}

/** Adds a remedy if a tensor argument holds options, which come later in the list. */
function withPlaceOfOptions(op: string, list: readonly Argument[], at: number, value: unknown, error: unknown): unknown {
  if (!isAttnError(error) || list[at]!.kind !== 'tensor' || !isPlainObject(value)) return error;
  const keys = Object.keys(value);
  const has = ({ kind, members = [] }: Argument) => kind === 'group' && keys.every((key) => members.some(({ name }) => name === key));
  const place = keys.length > 0 ? list.findIndex(has) : -1;
  if (place < 0) return error;
  const { name } = list[place]!;
  const [argument, expected, got] = [list[at]!.name, 'a tensor', `an object of ${name}`];
  const help = `The ${name} are argument ${place + 1}: ${list.map((each) => each.name).join(', ')}`;
  return errorWithHelp('ARGUMENT', `${op}: ${argument} is ${got}, expected ${expected}`, help, { op, argument, expected, got });
}

/** Selects weights by `prefix` before the module sees them. */
function withPrefix(op: string, [state, options]: readonly unknown[]): readonly unknown[] {
  const [strict, prefix] = reading(op, 'options', () => readMembers(op, 'options', options, ['strict', 'prefix']));
  if (prefix === undefined) return [state, { strict }];
  if (typeof prefix !== 'string') fail('ARGUMENT', op, 'prefix', describe(prefix), 'a string');
  return [reading(op, 'state', () => underPrefix(op, 'state', state, prefix)), { strict }];
}

export function readArguments(op: string, { name, arguments: list }: Signature, given: readonly unknown[]): Leaf[] {
  const leaves: Leaf[] = [];
  const args = name === 'loadStateDict' && list.length > 1 && given[1] !== undefined ? withPrefix(op, given) : given;
  list.forEach((argument, i) => {
    try {
      reading(op, argument.name, () => readLeaves(op, argument, '', args[i], 0, args[i + 1], leaves));
    } catch (error) {
      throw reading(op, argument.name, () => withPlaceOfOptions(op, list, i, args[i], error));
    }
  });
  return leaves;
}
