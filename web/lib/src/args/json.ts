/** JSON.stringify would write a null for each of the billions of holes that an Array may have. */
function withoutHoles(this: unknown, index: string, value: unknown): unknown {
  if (value === undefined && Array.isArray(this)) throw new TypeError(`element ${index} of an Array is missing`);
  return value;
}

/** Throws for values that JSON cannot hold. */
export const toJson = (value: unknown): string => JSON.stringify(value, withoutHoles);
