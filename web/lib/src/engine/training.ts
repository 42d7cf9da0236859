import { elements, isPlainObject, ownList, readIds } from '../args/arrays.js';
import { allocate, describe, fail } from '../args/error.js';
import type { Heap } from './heap.js';
import { callNative, type Native, type NativeLayer, nativeClass, type NativeObject } from './native.js';
import { type Argument, type GroupsLeaf, type Leaf, type LookUp, type ModulesLeaf, readMembers, type Signature } from '../args/signature.js';
import { encodeUtf8 } from '../platform/utf8.js';

function readModules(op: string, argument: string, value: unknown, lookUps: WeakMap<object, LookUp>): ModulesLeaf {
  if (!Array.isArray(value)) fail('ARGUMENT', op, argument, describe(value), 'an Array of modules');
  const modules = elements(value as unknown[], (module, i) => {
    const name = `${argument}[${i}]`;
    if (typeof module !== 'object' || module === null) fail('ARGUMENT', op, name, describe(module), 'a module');
    const find = lookUps.get(module);
    if (!find) fail('WRONG_INSTANCE', op, name, 'is a module of another instance', 'a module of this instance');
    find(op);
    return find;
  });
  return { op, modules };
}

function number(op: string, argument: string, value: unknown): number {
  if (typeof value !== 'number') fail('ARGUMENT', op, argument, describe(value), 'a number');
  return value;
}

/** Drops the flags g and y, which would make results depend on lastIndex. */
function readExpression(op: string, argument: string, value: unknown): RegExp {
  if (Object.prototype.toString.call(value) !== '[object RegExp]') fail('ARGUMENT', op, argument, describe(value), 'a RegExp');
  const { source, flags } = value as RegExp;
  return new RegExp(source, flags.replace(/[gy]/g, ''));
}

function readGroups(op: string, argument: string, value: unknown): GroupsLeaf {
  if (!Array.isArray(value)) fail('ARGUMENT', op, argument, describe(value), 'an Array of groups');
  const groups = elements(value as unknown[], (group, i) => {
    const path = `${argument}[${i}].`;
    if (!isPlainObject(group)) fail('ARGUMENT', op, `${argument}[${i}]`, describe(group), 'an object { names, … }');
    const [names, learningRate, weightDecay] = readMembers(op, argument, group, ['names', 'learningRate', 'weightDecay'], path);
    const option = (name: string, given: unknown) => (given === undefined ? NaN : finite(op, path + name, given));
    return {
      names: readExpression(op, `${path}names`, names),
      learningRate: option('learningRate', learningRate),
      weightDecay: option('weightDecay', weightDecay),
    };
  });
  return { op, groups };
}

function finite(op: string, argument: string, value: unknown): number {
  if (!Number.isFinite(number(op, argument, value))) fail('CONFIG', op, argument, describe(value), 'a finite number');
  return value as number;
}

function readPair(op: string, argument: string, value: unknown): number[] {
  const expected = 'an Array of two numbers';
  if (!Array.isArray(value)) fail('ARGUMENT', op, argument, describe(value), expected);
  const both = elements(value as unknown[], (each, i) => finite(op, `${argument}[${i}]`, each));
  if (both.length !== 2) fail('ARGUMENT', op, argument, `has ${both.length} elements`, expected);
  return both;
}

export function prepare(signatures: readonly Signature[], lookUps: WeakMap<object, LookUp>): void {
  const readers: { readonly [kind in Argument['kind']]?: NonNullable<Argument['read']> } = {
    modules: (op, name, value) => [readModules(op, name, value, lookUps)],
    groups: (op, name, value) => [readGroups(op, name, value)],
    labels: (op, name, value) => [readIds(op, name, value, undefined)],
    pair: readPair,
    // Infinity is allowed.
    limit: (op, name, value) => [number(op, name, value)],
  };
  const walk = (list: readonly Argument[]) => {
    for (const argument of list) {
      const read = readers[argument.kind];
      if (read) argument.read = read;
      walk(argument.members ?? []);
    }
  };
  for (const { arguments: list } of signatures) walk(list);
}

/** Adds an assignable learning rate, which signatures do not describe. */
export function complete(all: Readonly<Record<PropertyKey, unknown>>): void {
  for (const name of ['SGD', 'Adam', 'AdamW']) {
    const { prototype } = all[name] as { prototype: { setLearningRate(value: unknown): void } };
    const now = Object.getOwnPropertyDescriptor(prototype, 'learningRate')!;
    const set = function (this: typeof prototype, value: unknown) {
      prototype.setLearningRate.call(this, value);
    };
    Object.defineProperty(prototype, 'learningRate', { ...now, set });
  }
}

/** Makes a C++ object for one call. */
export function hold({ op, ...leaf }: ModulesLeaf | GroupsLeaf, leaves: readonly Leaf[], native: Native, heap: Heap): NativeObject {
  const held = new (nativeClass(native, 'modules' in leaf ? 'ModuleList' : 'ParameterGroups') as unknown as new () => NativeObject)();
  try {
    if ('modules' in leaf) for (const find of leaf.modules) callNative(find(op) as NativeLayer, 'addTo', held.address());
    else {
      const known = new Set<string>();
      const nameless = (layer: NativeLayer) =>
        heap.withArguments(op, [], (frame) => heap.takeResult(op, callNative(layer, 'parameterShapes', frame)));
      for (const each of leaves)
        if (typeof each === 'object' && 'modules' in each)
          for (const find of each.modules) for (const { name } of nameless(find(op) as NativeLayer).entries) known.add(name as string);
      for (const { names, learningRate, weightDecay } of leaf.groups) {
        const text = [...known].filter((name) => names.test(name)).join('\n');
        const bytes = allocate(op, 3 * text.length, () => encodeUtf8(text), 'names');
        heap.withArguments(op, [learningRate, weightDecay, ownList(op, 'names', bytes, 'Uint8Array')], (frame) => held.add!(frame));
      }
    }
    return held;
  } catch (error) {
    held.delete();
    throw error;
  }
}
