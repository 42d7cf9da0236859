import type * as Contract from '../worker.js';
import { arrayBuffer, arrayLength, type Checked, copyOf, type Data, failDetached, isWhole } from '../args/arrays.js';
import { describe, fail } from '../args/error.js';
import type { Leaf } from '../args/signature.js';
import * as Comlink from './comlink.js';

const marked = new WeakSet<object>();
let hasMarked = false;

export const transfer: typeof Contract.transfer = (value) => {
  if (typeof value !== 'object' || value === null) fail('ARGUMENT', 'transfer', 'value', describe(value), 'a tensor, a mask, an array or its buffer');
  marked.add(value);
  hasMarked = true;
  return value;
};

export const isMarked = (value: object): boolean => marked.has(value);

/** Another call with the same value copies it. */
function unmark(given: unknown): void {
  const found = new Set([given]);
  for (const value of found) {
    if (typeof value !== 'object' || value === null) continue;
    marked.delete(value);
    // Lists of texts may be long.
    if (ArrayBuffer.isView(value) || (Array.isArray(value) && typeof value[0] === 'string')) continue;
    if (value instanceof Map) for (const each of value.values()) found.add(each);
    // Getters are the caller's code.
    else for (const { value: each } of Object.values(Object.getOwnPropertyDescriptors(value))) found.add(each);
  }
}

/** Marks apply to one call only, whether it succeeds or fails. */
export function forOneCall<T>(args: unknown, read: () => T): T {
  try {
    return read();
  } finally {
    try {
      if (hasMarked) unmark(args);
    } catch {
      // A Proxy that cannot be read.
    }
  }
}

export class TransferList {
  readonly #buffers = new Set<ArrayBuffer>();

  array<A extends Data>(array: A, type: Checked['type'], moves: boolean): A {
    // A view would clone its whole buffer, and an array's own properties can be shadowed.
    const own = moves || isWhole(array, type) ? array : (copyOf(array, type) as A);
    if (moves || own !== array) this.#buffers.add(arrayBuffer(own) as ArrayBuffer);
    return own;
  }

  #checked<A extends Data>(checked: Checked<A>): Checked<A> {
    const { op, argument, data, size, type, source, copied } = checked;
    // A getter among later arguments may have detached the buffer.
    if (arrayLength(data) !== size) failDetached(op, argument, size);
    return { ...checked, data: this.array(data, type, copied || marked.has(source)), source: data };
  }

  leaves(leaves: readonly Leaf[]): Leaf[] {
    return this.seal(
      leaves.map((leaf) => {
        if (typeof leaf === 'number') return leaf;
        // Functions cannot be sent.
        if ('modules' in leaf) return { ...leaf, modules: leaf.modules.map((find) => find(leaf.op)) as never };
        if ('groups' in leaf) return leaf;
        if ('entries' in leaf) return { entries: leaf.entries.map(([name, tensor]) => [name, this.#checked(tensor)] as const) };
        return this.#checked(leaf);
      }),
    );
  }

  seal<T extends object>(args: T): T {
    return Comlink.transfer(args, [...this.#buffers]);
  }
}
