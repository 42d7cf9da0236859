/** The visitor's changes to a model. The table `kinds` defines everything that the page does with each kind. */
import type { Encoding, TextForwardOptions } from 'attn';
import { counted } from '../formats/numbers.ts';
import { headNameAt } from '../formats/names.ts';
import { headMaskOf, isDecoder, type LoadedModel } from '../model/loaded.ts';
import { flag, fraction, oneOf, places, property, readWhole, type Codec, type Property } from './address.ts';

export type ScoreFunction = 'scaled_dot' | 'dot' | 'general' | 'additive';

export interface Edit {
  /** 'X' for the layer's input, otherwise a checkpoint name. */
  readonly name: string;
  /** Row-major. */
  readonly index: number;
  readonly value: number;
}

/** Changes inside one layer; later layers receive its changed output. */
export interface LayerChanges {
  readonly layer: number;
  /** Multiplies the layer's scale, 1/√D. */
  readonly factor: number;
  readonly score: ScoreFunction;
  readonly dropout: number;
  readonly seed: number;
  readonly edits: readonly Edit[];
}

export interface ModelChanges {
  readonly causal: boolean;
  readonly padding: readonly number[];
  /** Blocked cells of the drawn mask, row · L + column. */
  readonly drawn: readonly number[];
  /** layer · H + head. */
  readonly off: readonly number[];
  readonly weights: readonly Edit[];
  readonly change: LayerChanges | undefined;
}

export interface Forward {
  readonly inputs: Encoding;
  readonly options: TextForwardOptions;
}

export interface Names {
  readonly layer: number;
  readonly heads: number;
  readonly token: (index: number) => string;
  readonly edit: (edit: Edit) => string;
}

type Rule<T> = (value: T, length: number) => (row: number, column: number) => boolean;

interface Kind<T> extends Property<T, { readonly layer: number }> {
  readonly summary: (value: T, heads: number) => readonly string[];
  /** Each single change, and the value without it. */
  readonly parts: (value: T, names: Names) => readonly (readonly [what: string, without: T])[];
  /** The part that stays valid for another text; by default all. */
  readonly withNewText?: (value: T) => T;
  /** The reason, and whether the query (row) may not attend to the key (column). */
  readonly hides?: readonly [reason: string, rule: Rule<T>];
  /** Edited weights are written into the model; run.ts computes a changed layer. */
  readonly forward?: (value: T, forward: Forward, of: LoadedModel) => Partial<Forward>;
}

const scores: Readonly<Record<ScoreFunction, string>> = {
  scaled_dot: '',
  dot: 'plain products',
  general: 'Luong’s scores',
  additive: 'Bahdanau’s scores',
};
const nothing: Omit<LayerChanges, 'layer'> = { factor: 1, score: 'scaled_dot', dropout: 0, seed: 0, edits: [] };

/** Only one layer is changed at a time: changes of another are dropped. */
export const ofLayer = (change: LayerChanges | undefined, layer: number): LayerChanges => (change?.layer === layer ? change : { ...nothing, layer });

export const unlessNothing = (of: LayerChanges): LayerChanges | undefined =>
  of.factor === 1 && of.score === 'scaled_dot' && of.dropout === 0 && of.edits.length === 0 ? undefined : of;

const without = <T>(list: readonly T[], one: T): readonly T[] => list.filter((each) => each !== one);

const among =
  (placeOf: (row: number, column: number, length: number) => number): Rule<readonly number[]> =>
  (list, length) => {
    const all = new Set(list);
    return (row, column) => all.has(placeOf(row, column, length));
  };

export const toggled = (list: readonly number[], number: number): readonly number[] =>
  list.includes(number) ? without(list, number) : [...list, number].sort((a, b) => a - b);

export const withEdit = (edits: readonly Edit[], edit: Edit): readonly Edit[] => [
  ...edits.filter(({ name, index }) => name !== edit.name || index !== edit.index),
  edit,
];

const edits: Codec<readonly Edit[]> = {
  encode: (list) => list.map(({ name, index, value }) => `${name}@${index}=${value}`).join(';'),
  decode: (list) =>
    list.split(';').flatMap((each) => {
      // From the end: a name may contain "=" and "@", a number does not.
      const equals = each.lastIndexOf('=');
      const at = each.lastIndexOf('@', equals);
      if (at < 1 || equals < at || equals === each.length - 1) return [];
      const index = readWhole(each.slice(at + 1, equals), -1);
      const value = Number(each.slice(equals + 1));
      return index >= 0 && Number.isFinite(Math.fround(value)) ? [{ name: each.slice(0, at), index, value }] : [];
    }),
};

function partsOfLayer(of: LayerChanges, { edit }: Pick<Names, 'edit'>): readonly (readonly [what: string, without: LayerChanges | undefined])[] {
  const { factor, score, dropout, seed } = of;
  const undone = (changes: Partial<LayerChanges>) => unlessNothing({ ...of, ...changes });
  return [
    ...(factor === 1 ? [] : [[`score scale × ${factor}`, undone({ factor: 1 })] as const]),
    ...(score === 'scaled_dot' ? [] : [[`score function ${score}`, undone({ score: 'scaled_dot' })] as const]),
    ...(dropout > 0 ? [[`dropout ${dropout}, seed ${seed}`, undone({ dropout: 0 })] as const] : []),
    ...of.edits.map((each) => [edit(each), undone({ edits: without(of.edits, each) })] as const),
  ];
}

export const kinds: { readonly [K in keyof ModelChanges]: Kind<ModelChanges[K]> } = {
  causal: {
    ...property('causal', false, flag),
    summary: () => ['causal mask'],
    parts: () => [['later tokens hidden', false]],
    hides: ['the key comes later, and the causal mask hides later keys', () => (row, column) => column > row],
    forward: (_, { options }) => ({ options: { ...options, isCausal: true } }),
  },
  padding: {
    ...property('padding', [], places),
    summary: (padding) => [`${counted(padding.length, 'token')} hidden`],
    parts: (padding, { token }) => padding.map((j) => [`${token(j)} hidden as padding`, without(padding, j)]),
    withNewText: () => [],
    hides: ['the key is hidden as padding', among((_, column) => column)],
    forward: (padding, { inputs }) => {
      const attentionMask = inputs.attentionMask.slice();
      for (const j of padding) if (j < attentionMask.length) attentionMask[j] = 0;
      return { inputs: { ...inputs, attentionMask } };
    },
  },
  drawn: {
    ...property('mask', [], places),
    summary: (drawn) => [`${counted(drawn.length, 'cell')} masked`],
    parts: (drawn) => [[`${counted(drawn.length, 'cell')} blocked by the drawn mask`, []]],
    withNewText: () => [],
    hides: ['you blocked it in the drawn mask', among((row, column, length) => row * length + column)],
    forward: (drawn, { inputs, options }) => {
      const length = inputs.tokens[0]!.length;
      const data = new Uint8Array(length * length);
      for (const cell of drawn) if (cell < data.length) data[cell] = 1;
      return { options: { ...options, mask: { kind: 'block', data, dims: [length, length] } } };
    },
  },
  off: {
    ...property('off', [], places),
    summary: (off, heads) => {
      const name = (head: number) => `${Math.floor(head / heads) + 1}.${(head % heads) + 1}`;
      return [`${off.length === 1 ? 'head' : 'heads'} ${off.length > 6 ? `(${off.length})` : off.map(name).join(', ')} off`];
    },
    parts: (off, { heads }) => off.map((head) => [`${headNameAt(head, heads)} switched off`, without(off, head)]),
    forward: (off, { options }, of) => ({ options: { ...options, headMask: headMaskOf(of, off) } }),
  },
  weights: {
    ...property('weights', [], edits),
    summary: (weights) => [`${counted(weights.length, 'weight')} edited`],
    parts: (weights, { edit }) => weights.map((each) => [edit(each), without(weights, each)]),
  },
  change: {
    first: undefined,
    address: {
      change: {
        encode: (of) => (of ? [of.layer + 1, of.factor, of.score, of.dropout, of.seed].join(',') : ''),
        decode(list) {
          const [layer = '', factor = '', score = '', dropout = '', seed = ''] = list.split(',');
          return {
            layer: readWhole(layer, 1) - 1,
            factor: fraction(1000).decode(factor, nothing.factor, undefined),
            score: oneOf(...(Object.keys(scores) as ScoreFunction[])).decode(score, nothing.score, undefined),
            dropout: fraction(0.99).decode(dropout, nothing.dropout, undefined),
            seed: readWhole(seed),
            edits: [],
          };
        },
      },
      x: {
        encode: (of) => edits.encode(of?.edits ?? []),
        decode: (list, before, { layer }) => ({ ...(before ?? { ...nothing, layer }), edits: edits.decode(list, [], undefined) }),
      },
    },
    summary: (of) => {
      if (!of) return [];
      const all = [
        of.factor !== 1 && `scale × ${of.factor}`,
        of.score !== 'scaled_dot' && scores[of.score],
        of.dropout > 0 && `dropout ${of.dropout}`,
        of.edits.length > 0 && `${counted(of.edits.length, 'number')} of its input edited`,
      ];
      return all.filter((each) => typeof each === 'string').map((each) => `layer ${of.layer + 1}: ${each}`);
    },
    parts: (of, names) => {
      if (!of) return [];
      return of.layer === names.layer ? partsOfLayer(of, names) : [[`changes in layer ${of.layer + 1}; one here replaces them`, undefined]];
    },
    withNewText: (of) => of && { ...of, edits: of.edits.filter(({ name }) => name !== 'X') },
  },
};

const names = Object.keys(kinds) as readonly (keyof ModelChanges)[];
type Value = ModelChanges[keyof ModelChanges];

function changed(of: ModelChanges): readonly (readonly [name: keyof ModelChanges, value: Value, kind: Kind<Value>])[] {
  const isChange = (value: Value) => (Array.isArray(value) ? value.length > 0 : Boolean(value));
  return names.filter((name) => isChange(of[name])).map((name) => [name, of[name], kinds[name] as unknown as Kind<Value>] as const);
}

export const changesOf = (of: ModelChanges): ModelChanges => Object.fromEntries(names.map((name) => [name, of[name]])) as unknown as ModelChanges;

export const noChanges = Object.fromEntries(names.map((name) => [name, kinds[name].first])) as unknown as ModelChanges;

export const hasChanges = (of: ModelChanges): boolean => changed(of).length > 0;

export const summaryOf = (of: ModelChanges, heads: number): readonly string[] => changed(of).flatMap(([, value, kind]) => kind.summary(value, heads));

export const partsOf = (of: ModelChanges, called: Names): readonly { readonly what: string; readonly without: Partial<ModelChanges> }[] =>
  changed(of).flatMap(([name, value, kind]) => kind.parts(value, called).map(([what, rest]) => ({ what, without: { [name]: rest } })));

/** New text invalidates per-token changes. */
export const withNewText = (of: ModelChanges): Partial<ModelChanges> =>
  Object.fromEntries(changed(of).flatMap(([name, value, kind]) => (kind.withNewText ? [[name, kind.withNewText(value)]] : [])));

/** A decoder has a causal mask of its own. */
export const withOwnMask = <T extends ModelChanges>(of: T, model: Pick<LoadedModel, 'task'>): T => (isDecoder(model) ? { ...of, causal: true } : of);

export const hidingIn = (of: ModelChanges, length: number) =>
  changed(of).flatMap(([, value, { hides }]) => (hides ? [{ reason: hides[0], isHidden: hides[1](value, length) }] : []));

export const forwardWith = (changes: ModelChanges, forward: Forward, of: LoadedModel): Forward =>
  changed(changes).reduce((given, [, value, kind]) => ({ ...given, ...kind.forward?.(value, given, of) }), forward);
