/**
 * Reads arguments by the module's signatures (src/bindings): each property of an object once, before
 * anything is allocated.
 */
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
} from './arrays.js';
import { describe, errorWithHelp, fail, hint, reading } from './error.js';

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
    | 'state'
    | 'modules'
    | 'groups'
    | 'labels'
    | 'pair'
    | 'limit'
    | 'group';
  readonly required?: boolean;
  /** Permitted words; for bytes a description of the format. */
  readonly choices?: readonly string[];
  readonly members?: readonly Argument[];
  /** Number of leaves, once computed. */
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
  /** Only in the training build. */
  readonly missing?: boolean;
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

/** The result of a call references them, so that they are not garbage-collected first. */
export const usedBy = (leaves: readonly Leaf[]): LookUp[] =>
  leaves.flatMap((leaf) => (typeof leaf === 'object' && 'modules' in leaf ? leaf.modules : []));

export function noTraining(op: string): never {
  throw errorWithHelp('ENVIRONMENT', `${op}: this build computes no gradients`, 'Load one that does with load({ training: true })', { op });
}

/** Members besides gradients of functions and layers. */
const training = 'crossEntropy mseLoss binaryCrossEntropyWithLogits clipGradNorm linearSchedule cosineSchedule SGD Adam AdamW';

/** Lists signatures that only the training build has. */
export function trainingStubs(signatures: readonly Signature[]): Signature[] {
  const added: Signature[] = [];
  const add = (name: string, owner?: string) => added.push({ name, ...(owner && { owner }), result: 'none', arguments: [], missing: true });
  for (const { name, owner, arguments: list } of signatures) {
    // Functions of a tensor have a gradient.
    if (!owner && list[0]?.kind === 'tensor') add(`${name}Backward`);
    if (owner && name === 'constructor' && owner !== internalClass) for (const method of ['backward', 'gradients', 'zeroGrad']) add(method, owner);
  }
  for (const name of training.split(' ')) {
    if (/^[A-Z]/.test(name)) add('constructor', name);
    else add(name);
  }
  return added;
}

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
      if (name === 'forBackward' && known.includes('mask')) noTraining(op);
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
  return members.reduce((count, member) => count + countLeaves(member), kind === 'vector_or_id' || kind === 'window' || kind === 'pair' ? 2 : 1);
}

/** Counts them once: short calls without options are frequent. */
function leaveOut(argument: Argument, leaves: Leaf[]): void {
  for (let count = (argument.count ??= countLeaves(argument)); count > 0; --count) leaves.push(NaN);
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
      if (typeof value !== 'boolean') fail('ARGUMENT', op, full, describe(value), 'true or false');
      leaves.push(value ? 1 : 0);
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
    case 'bytes':
      leaves.push(readFile(op, full, value, choices[0]!));
      break;
    case 'state':
      leaves.push(readStateDict(op, full, value));
      break;
    case 'group': {
      const known = members.map((member) => member.name);
      if (value === undefined) {
        const needed = members.filter((member) => member.required).map((member) => member.name);
        fail('ARGUMENT', op, full, 'is missing', `an object with ${needed.join(', ')}`);
      }
      const inner = depth > 0 ? `${full}.` : '';
      const values = readMembers(op, full, value, known, inner);
      leaves.push(1);
      members.forEach((member, i) => readLeaves(op, member, inner, values[i], depth + 1, undefined, leaves));
      break;
    }
    default:
      leaves.push(...argument.read!(op, full, value));
  }
}

export function readArguments(op: string, { arguments: list, missing }: Signature, args: readonly unknown[]): Leaf[] {
  if (missing) noTraining(op);
  const leaves: Leaf[] = [];
  list.forEach((argument, i) => reading(op, argument.name, () => readLeaves(op, argument, '', args[i], 0, args[i + 1], leaves)));
  return leaves;
}
