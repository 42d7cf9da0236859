export interface OwnMap {
  readonly tokens: readonly string[];
  readonly keys: readonly string[] | undefined;
  readonly values: readonly (readonly number[])[];
  readonly caption: string;
}

const isTexts = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every((each) => typeof each === 'string');
const isRow = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every((each) => typeof each === 'number');

/** Throws if the map in the address is invalid. */
export function ownMapIn(hash: string): OwnMap | undefined {
  const params = new URLSearchParams(hash.replace(/^#/, ''));
  const read = (name: string): unknown => {
    const text = params.get(name);
    try {
      return text === null ? undefined : JSON.parse(text);
    } catch {
      throw new Error(`“${name}” in the address is not valid JSON`);
    }
  };
  const values = read('values');
  if (values === undefined) return undefined;
  const [tokens, keys] = [read('tokens'), read('keys')];
  if (!isTexts(tokens)) throw new Error('“tokens” in the address must be a list of texts');
  if (keys !== undefined && !isTexts(keys)) throw new Error('“keys” in the address must be a list of texts');
  if (!Array.isArray(values) || !values.every(isRow)) throw new Error('“values” in the address must be a list of rows of numbers');
  return { tokens, keys, values, caption: params.get('caption') ?? '' };
}
