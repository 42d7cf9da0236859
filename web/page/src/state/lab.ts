/** What is in the fields of the typed-array lab. Short numbers are in the address too (hash.ts). */
import { signal } from '@preact/signals';
import type { Mask, Tensor } from 'attn';

export type LabMode = 'attention' | 'multi-head';
export const matrixNames = ['Q', 'K', 'V', 'X', 'Wq', 'Wk', 'Wv', 'Wo', 'Mask', 'Key padding'] as const;
export type MatrixName = (typeof matrixNames)[number];

/** What a field holds: text, or an array from a file that is too long to print. */
export interface FieldValue {
  readonly text: string;
  readonly file?: { readonly label: string; readonly tensor: Tensor };
  /** Why a file was not taken. What the field holds is not what was meant: nothing is computed of it. */
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
  /** Weights are out × in, as torch keeps them, instead of in × out, as on paper. */
  readonly asTorch: boolean;
}

const rows = (...lines: readonly string[]): FieldValue => ({ text: `[${lines.join(',\n ')}]` });
const nothing: FieldValue = { text: '' };

export const initialLab: Lab = {
  mode: 'attention',
  fields: {
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
  heads: '2',
  scale: '',
  maskKind: 'attend',
  paddingKind: 'attend',
  causal: false,
  asTorch: false,
};

export const lab = signal<Lab>(initialLab);

export function updateLab(changes: Partial<Lab>): void {
  lab.value = { ...lab.value, ...changes };
}

/** More characters than this would crowd out the view, which matters more in a link. */
const longest = 2000;
const kinds: readonly string[] = ['attend', 'block', 'additive'];
const marks = '[],';
/** Without what JSON does not need: space beside a bracket or a comma. */
const compact = (text: string) => {
  const trimmed = text.trim();
  return trimmed.replaceAll(/\s+/g, (space, at: number) =>
    marks.includes(trimmed[at - 1]!) || marks.includes(trimmed[at + space.length]!) ? '' : space,
  );
};

/** What differs from the first numbers, as pairs of an address; nothing when it is too long or came from a file. */
export function labToParams({ mode, fields, heads, scale, maskKind, paddingKind, causal, asTorch }: Lab): readonly (readonly [string, string])[] {
  const all: readonly (readonly [string, string, string])[] = [
    ['mode', mode, initialLab.mode],
    ...matrixNames.map((name) => [name.replace(' ', '-'), compact(fields[name].text), compact(initialLab.fields[name].text)] as const),
    ['heads', heads, initialLab.heads],
    ['scale', scale.trim(), initialLab.scale],
    ['mask-kind', maskKind, initialLab.maskKind],
    ['padding-kind', paddingKind, initialLab.paddingKind],
    ['causal', String(Number(causal)), '0'],
    ['torch', String(Number(asTorch)), '0'],
  ];
  const changed = all.filter(([, now, first]) => now !== first).map(([name, now]) => [`lab.${name}`, now] as const);
  const length = changed.reduce((sum, [name, text]) => sum + name.length + text.length, 0);
  return length > longest || Object.values(fields).some(({ file }) => file) ? [] : changed;
}

/** What is not known or makes no sense is as in the first numbers. Rows get a line each again. */
export function labFromParams(params: URLSearchParams): Lab {
  const read = (name: string) => params.get(`lab.${name}`);
  const kind = (text: string | null, otherwise: Mask['kind']) => (text !== null && kinds.includes(text) ? (text as Mask['kind']) : otherwise);
  const field = (name: MatrixName): FieldValue => {
    const text = read(name.replace(' ', '-'));
    return text === null
      ? initialLab.fields[name]
      : {
          text: text
            .slice(0, longest)
            .replaceAll('],', '],\n ')
            .replaceAll(/,(?=\S)/g, ', '),
        };
  };
  return {
    mode: read('mode') === 'multi-head' ? 'multi-head' : 'attention',
    fields: Object.fromEntries(matrixNames.map((name) => [name, field(name)])) as Lab['fields'],
    heads: read('heads') ?? initialLab.heads,
    scale: read('scale') ?? initialLab.scale,
    maskKind: kind(read('mask-kind'), initialLab.maskKind),
    paddingKind: kind(read('padding-kind'), initialLab.paddingKind),
    causal: read('causal') === '1',
    asTorch: read('torch') === '1',
  };
}
