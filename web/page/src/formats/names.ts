/** Names in sentences. */

/** "layer 2, head 4", of indices that begin at 0. */
export const headName = (layer: number, head: number): string => `layer ${layer + 1}, head ${head + 1}`;
/** Of a head by its index in the model, layer · heads + head. */
export const headNameAt = (index: number, heads: number): string => headName(Math.floor(index / heads), index % heads);

export const capitalized = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}`;
