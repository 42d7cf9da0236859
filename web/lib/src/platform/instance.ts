/** Key for other entries of the package, each of which has its own copy of the classes. */
export const instanceKey: unique symbol = Symbol.for('attn.instance') as never;
/** The id of the unknown token, of a tokenizer of attn/tokenizer. */
export const unknownIdKey: unique symbol = Symbol.for('attn.unknownId') as never;
