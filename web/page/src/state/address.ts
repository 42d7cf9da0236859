/** Tables of the properties of a state: default value, and how each is written in the page's address. */

/** `decode` returns `before` if the text is invalid. */
export interface Codec<T, S = unknown> {
  encode(value: T): string;
  decode(text: string, before: T, state: S): T;
}

export interface Property<T, S = unknown> {
  readonly first: T;
  /** Property names in the address; most properties have one. */
  readonly address: Readonly<Record<string, Codec<T, S>>>;
}

/** In reading order: a codec may use the properties before it. */
export type Properties<S> = { readonly [K in keyof S]: Property<S[K], S> };

export type Params = readonly (readonly [name: string, text: string])[];

export const property = <T, S = unknown>(name: string, first: T, codec: Codec<T, S>): Property<T, S> => ({ first, address: { [name]: codec } });

const entriesOf = <S>(properties: Properties<S>) => Object.entries(properties) as unknown as readonly (readonly [keyof S, Property<S[keyof S], S>])[];

export const firstOf = <S>(properties: Properties<S>): S => Object.fromEntries(entriesOf(properties).map(([key, { first }]) => [key, first])) as S;

/** Writes only differences from the defaults; leaves out texts longer than `longest`. */
export const toParams = <S>(properties: Properties<S>, state: S, prefix = '', longest = Infinity): Params =>
  entriesOf(properties).flatMap(([key, { first, address }]) =>
    Object.entries(address).flatMap(([name, codec]) => {
      const text = codec.encode(state[key]);
      return text === codec.encode(first) || text.length > longest ? [] : [[prefix + name, text] as const];
    }),
  );

export function fromParams<S>(properties: Properties<S>, params: URLSearchParams, prefix = ''): Partial<S> {
  const first = firstOf(properties);
  let read: Partial<S> = {};
  for (const [key, { address }] of entriesOf(properties))
    for (const [name, codec] of Object.entries(address)) {
      const text = params.get(prefix + name);
      const state = { ...first, ...read };
      if (text !== null) read = { ...read, [key]: codec.decode(text, state[key], state) };
    }
  return read;
}

/** At most 15 digits, so that the number is exact. */
const isWhole = (digits: string): boolean => /^\d{1,15}$/.test(digits);
export const readWhole = (digits: string, least = 0): number => (isWhole(digits) ? Math.max(least, Number(digits)) : least);
export const readWholes = (list: string): readonly number[] => list.split('.').filter(isWhole).map(Number);

export const text: Codec<string> = { encode: (value) => value, decode: (value) => value };
export const flag: Codec<boolean> = { encode: (value) => String(Number(value)), decode: (value) => value === '1' };
/** 0-based; 1-based in the address. */
export const place: Codec<number> = { encode: (value) => String(value + 1), decode: (value) => readWhole(value, 1) - 1 };
export const places: Codec<readonly number[]> = { encode: (value) => value.join('.'), decode: readWholes };
export const fraction = (most: number): Codec<number> => ({
  encode: String,
  decode: (value, before) => (value !== '' && Number(value) >= 0 && Number(value) <= most ? Number(value) : before),
});
export const oneOf = <T extends string>(...words: readonly T[]): Codec<T> => ({
  encode: (value) => value,
  decode: (value, before) => words.find((word) => word === value) ?? before,
});
