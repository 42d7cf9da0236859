/** How properties of a state are written in the page's address: a table of them has what each is at first, and how it is encoded and decoded. */

/** What makes no sense is as it was before. */
export interface Codec<T, S = unknown> {
  encode(value: T): string;
  decode(text: string, before: T, state: S): T;
}

export interface Property<T, S = unknown> {
  readonly first: T;
  /** By names in the address. Nearly all have one. */
  readonly address: Readonly<Record<string, Codec<T, S>>>;
}

/** In the order in which they are written and read: later ones may build on earlier ones. */
export type Properties<S> = { readonly [K in keyof S]: Property<S[K], S> };

export type Params = readonly (readonly [name: string, text: string])[];

export const property = <T, S = unknown>(name: string, first: T, codec: Codec<T, S>): Property<T, S> => ({ first, address: { [name]: codec } });

const entriesOf = <S>(properties: Properties<S>) => Object.entries(properties) as unknown as readonly (readonly [keyof S, Property<S[keyof S], S>])[];

export const firstOf = <S>(properties: Properties<S>): S => Object.fromEntries(entriesOf(properties).map(([key, { first }]) => [key, first])) as S;

/** What differs from what is there at first; texts of more characters than `longest` would crowd out the rest. */
export const toParams = <S>(properties: Properties<S>, state: S, prefix = '', longest = Infinity): Params =>
  entriesOf(properties).flatMap(([key, { first, address }]) =>
    Object.entries(address).flatMap(([name, codec]) => {
      const text = codec.encode(state[key]);
      return text === codec.encode(first) || text.length > longest ? [] : [[prefix + name, text] as const];
    }),
  );

/** The properties that are in the address. */
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

/** Up to 15 digits: what is written with more is not a place of anything. */
const isWhole = (digits: string): boolean => /^\d{1,15}$/.test(digits);
export const readWhole = (digits: string, least = 0): number => (isWhole(digits) ? Math.max(least, Number(digits)) : least);
export const readWholes = (list: string): readonly number[] => list.split('.').filter(isWhole).map(Number);

export const text: Codec<string> = { encode: (value) => value, decode: (value) => value };
export const flag: Codec<boolean> = { encode: (value) => String(Number(value)), decode: (value) => value === '1' };
/** From 0, and from 1 in the address. */
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
