/** The fields of the typed-array lab; short numbers are also in the address. */
import { signal } from '@preact/signals';
import type { Mask, Tensor } from 'attn';
import { firstOf, flag, fromParams, oneOf, property, text, toParams, type Codec, type Params, type Properties } from './address.ts';

export type LabMode = 'attention' | 'multi-head';
export const matrixNames = ['Q', 'K', 'V', 'X', 'Wq', 'Wk', 'Wv', 'Wo', 'Mask', 'Key padding'] as const;
export type MatrixName = (typeof matrixNames)[number];

/** Text, or a file's array if it is too long to print. */
export interface FieldValue {
  readonly text: string;
  readonly file?: { readonly label: string; readonly tensor: Tensor };
  /** Why a file was rejected; nothing is computed then. */
  readonly refused?: string;
}

export interface Lab {
  readonly mode: LabMode;
  readonly fields: Readonly<Record<MatrixName, FieldValue>>;
  readonly heads: string;
  readonly scale: string;
  readonly maskKind: Mask['kind'];
  readonly paddingKind: Mask['kind'];
  readonly causal: boolean;
  /** Weights are out × in (PyTorch), not in × out (papers). */
  readonly asTorch: boolean;
}

const rows = (...lines: readonly string[]): FieldValue => ({ text: `[${lines.join(',\n ')}]` });
const nothing: FieldValue = { text: '' };

/** Longer numbers would crowd the view out of a link. */
const longest = 2000;
const marks = '[],';
const compact = (text: string) => {
  const trimmed = text.trim();
  return trimmed.replaceAll(/\s+/g, (space, at: number) =>
    marks.includes(trimmed[at - 1]!) || marks.includes(trimmed[at + space.length]!) ? '' : space,
  );
};

const fieldOf = (name: MatrixName): Codec<Lab['fields']> => ({
  encode: (fields) => compact(fields[name].text),
  decode: (written, fields) => ({
    ...fields,
    [name]: {
      text: written
        .slice(0, longest)
        .replaceAll('],', '],\n ')
        .replaceAll(/,(?=\S)/g, ', '),
    },
  }),
});
const kind = oneOf<Mask['kind']>('attend', 'block', 'additive');

const properties: Properties<Lab> = {
  mode: property<LabMode>('mode', 'attention', oneOf('attention', 'multi-head')),
  fields: {
    first: {
      Q: rows('[1, 0, 2]', '[2, 2, 2]', '[2, 1, 3]'),
      K: rows('[0, 1, 1]', '[4, 4, 0]', '[2, 3, 1]'),
      V: rows('[1, 2, 3]', '[2, 8, 0]', '[2, 6, 3]'),
      X: rows('[1, 0, 1, 0]', '[0, 2, 0, 2]', '[1, 1, 1, 1]'),
      Wq: rows('[1, 0, 1, 0]', '[1, 0, 0, 1]', '[0, 0, 1, 1]', '[0, 1, 1, 0]'),
      Wk: rows('[0, 0, 1, 1]', '[1, 1, 0, 0]', '[0, 1, 0, 1]', '[1, 1, 0, 0]'),
      Wv: rows('[0, 2, 0, 1]', '[0, 3, 0, 0]', '[1, 0, 3, 0]', '[1, 1, 0, 1]'),
      Wo: nothing,
      Mask: nothing,
      'Key padding': nothing,
    },
    address: Object.fromEntries(matrixNames.map((name) => [name.replace(' ', '-'), fieldOf(name)])),
  },
  heads: property('heads', '2', text),
  scale: property('scale', '', { encode: (scale) => scale.trim(), decode: (scale) => scale }),
  maskKind: property('mask-kind', 'attend', kind),
  paddingKind: property('padding-kind', 'attend', kind),
  causal: property('causal', false, flag),
  asTorch: property('torch', false, flag),
};

export const initialLab = firstOf(properties);

export const lab = signal<Lab>(initialLab);

export function updateLab(changes: Partial<Lab>): void {
  lab.value = { ...lab.value, ...changes };
}

export function labToParams(of: Lab): Params {
  const changed = toParams(properties, of, 'lab.');
  const length = changed.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  return length > longest || Object.values(of.fields).some(({ file }) => file) ? [] : changed;
}

export const labFromParams = (params: URLSearchParams): Lab => ({ ...initialLab, ...fromParams(properties, params, 'lab.') });
