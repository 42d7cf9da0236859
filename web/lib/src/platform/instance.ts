/** Key for other entries of the package, each of which has its own copy of the classes. */
export const instanceKey: unique symbol = Symbol.for('attn.instance') as never;
