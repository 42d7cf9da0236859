/** Links in circulation: each was written by an earlier version of the page, and must open what its sender saw. */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { alignView } from '../src/state/align.ts';
import { chosenLine, linesText } from '../src/state/compare_texts.ts';
import { example } from '../src/state/example.ts';
import { addStates, keepInHash, linkHash, partInAddress } from '../src/state/hash.ts';
import { lab } from '../src/state/lab.ts';
import { storyStates } from '../src/state/story_states.ts';
import { taskTexts } from '../src/state/task_texts.ts';
import { firstVisit, initialView, view, type View } from '../src/state/view.ts';
import { whyToParams } from '../src/state/why.ts';
import { wordsView } from '../src/state/words.ts';
import { settingsFor } from '../src/train/settings.ts';
import * as training from '../src/train/state.ts';

const address = { hash: '', pathname: '/', search: '' };
let followed: () => void;
vi.stubGlobal('window', globalThis);
vi.stubGlobal('location', address);
vi.stubGlobal('history', { state: null, replaceState: () => undefined });
vi.stubGlobal('addEventListener', (_: string, listener: () => void) => (followed = listener));
beforeAll(() => {
  keepInHash(firstVisit);
  addStates(storyStates);
});

function open(hash: string): void {
  address.hash = `#${hash}`;
  followed();
}

/** Everything that an address contains, besides the view. */
const rest = () => ({
  example: example.value,
  settings: training.settings.value,
  beside: training.beside.value,
  trainingExample: training.example.value,
  pace: training.pace.value,
  lab: lab.value,
  align: alignView.value,
  lines: linesText.value,
  line: chosenLine.value,
  texts: Object.fromEntries(Object.entries(taskTexts).map(([name, { value }]) => [name, value])),
  why: whyToParams()[0]?.[1],
  words: wordsView.value,
});

type Rest = ReturnType<typeof rest>;
/** What a link sets; everything else is as on the page at that time. */
type Meaning = Partial<View> & { readonly rest?: (plain: Rest) => Partial<Rest> };

const change = { layer: 1, factor: 1, score: 'scaled_dot', dropout: 0, seed: 0, edits: [] } as const;
const bias = 'bert.encoder.layer.1.output.dense.bias';

const links: Readonly<Record<string, Meaning>> = {
  // Without a model: the sentiment classifier.
  'text=A+dull+film.': { text: 'A dull film.' },
  'text=A+dull+film%2C+but+well+played.&layer=1&head=2': { text: 'A dull film, but well played.', layer: 0, head: 1 },
  'layer=1': { layer: 0 },
  'head=1': { head: 0 },
  'cell=2.5': { cell: { row: 2, column: 5 } },
  'cell=0.0&locked=1': { cell: { row: 0, column: 0 }, locked: true },
  'text=I+like+it.&pair=She+does+not.': { text: 'I like it.', pair: 'She does not.' },
  'text=': { text: '' },
  'order=entropy': { order: 'entropy' },
  'order=kind&special=hide': { order: 'kind', special: 'hide' },
  'special=renormalise&words=1': { special: 'renormalise', mergeWords: true },
  'threshold=0.05': { threshold: 0.05 },
  'colours=row': { scaleBy: 'row' },
  'colours=log&part=3.4.6': { scaleBy: 'log', part: { row: 3, column: 4, count: 6 } },
  'overlay=1.4.6': { overlay: [1, 4, 6] },
  'table=1': { asTable: true },
  'step=7': { step: 6 },
  'causal=1': { causal: true },
  'padding=3.4': { padding: [3, 4] },
  'mask=1.14.27': { drawn: [1, 14, 27] },
  'off=7': { off: [7] },
  'layer=2&head=4&off=0.3.7': { off: [0, 3, 7] },
  [`weights=${encodeURIComponent(`${bias}@3=2.5`)}`]: { weights: [{ name: bias, index: 3, value: 2.5 }] },
  'change=2%2C2%2Cscaled_dot%2C0%2C0': { change: { ...change, factor: 2 } },
  'change=1%2C1%2Cadditive%2C0.25%2C7&layer=1': { layer: 0, change: { ...change, layer: 0, score: 'additive', dropout: 0.25, seed: 7 } },
  'change=2%2C1%2Cscaled_dot%2C0%2C0&x=X%405%3D3': { change: { ...change, edits: [{ name: 'X', index: 5, value: 3 }] } },
  'x=X%405%3D3%3BX%4070%3D-2': {
    change: {
      ...change,
      edits: [
        { name: 'X', index: 5, value: 3 },
        { name: 'X', index: 70, value: -2 },
      ],
    },
  },
  'text=%E8%BF%99%E9%83%A8%E7%94%B5%E5%BD%B1%E5%BE%88%E5%A5%BD%E3%80%82': { text: '这部电影很好。' },
  // Links to other models.
  'model=all-MiniLM-L6-v2&text=A+warm+film.&layer=6&head=12': { model: 'all-MiniLM-L6-v2', text: 'A warm film.', layer: 5, head: 11 },
  'model=all-MiniLM-L6-v2&dtype=float32': { model: 'all-MiniLM-L6-v2', dtype: 'float32' },
  'model=entities&text=Marie+Curie+lived+in+Paris.': { model: 'entities', text: 'Marie Curie lived in Paris.' },
  'model=masks&text=She+drank+a+cup+of+%5BMASK%5D.&layer=2': { model: 'masks', text: 'She drank a cup of [MASK].' },
  'model=BAAI%2Fbge-small-en-v1.5': { model: 'BAAI/bge-small-en-v1.5' },
  'model=https%3A%2F%2Fexample.org%2Fmodels%2Fmy-bert%2F&cell=1.2': {
    model: 'https://example.org/models/my-bert/',
    cell: { row: 1, column: 2 },
  },
  // Links to the other sections.
  'hand.step=6': { rest: ({ example: plain }) => ({ example: { ...plain, step: 5 } }) },
  'hand.scale=root&hand.causal=1': { rest: ({ example: plain }) => ({ example: { ...plain, usualScale: true, causal: true } }) },
  'hand.X=1%2C0%2C1%2C0%3B0%2C2%2C0%2C2%3B1%2C1%2C1%2C-3': {
    rest: ({ example: plain }) => ({
      example: {
        ...plain,
        matrices: {
          ...plain.matrices,
          X: [
            [1, 0, 1, 0],
            [0, 2, 0, 2],
            [1, 1, 1, -3],
          ],
        },
      },
    }),
  },
  'train.task=sort&train.seed=12': { rest: () => ({ settings: { ...settingsFor('sort'), seed: 12 } }) },
  'train.positions=none&train.learningRate=0.01&train.beside=scale': {
    rest: () => ({ settings: { ...settingsFor('reverse'), positions: 'none', learningRate: 0.01 }, beside: 'scale' }),
  },
  'train.heads=2&train.causal=1&train.example=1+2+3+4+5+6+7+8&train.pace=10': {
    rest: () => ({ settings: { ...settingsFor('reverse'), heads: 2, causal: true }, trainingExample: '1 2 3 4 5 6 7 8', pace: '10' }),
  },
  'lab.mode=multi-head&lab.heads=1': { rest: ({ lab: plain }) => ({ lab: { ...plain, mode: 'multi-head', heads: '1' } }) },
  'lab.Q=%5B%5B1%2C2%5D%2C%5B3%2C4%5D%5D&lab.scale=1': {
    rest: ({ lab: plain }) => ({ lab: { ...plain, scale: '1', fields: { ...plain.fields, Q: { text: '[[1, 2],\n [3, 4]]' } } } }),
  },
  'lab.Key-padding=%5B1%2C1%2C0%5D&lab.padding-kind=block&lab.causal=1': {
    rest: ({ lab: plain }) => ({
      lab: { ...plain, paddingKind: 'block', causal: true, fields: { ...plain.fields, 'Key padding': { text: '[1, 1, 0]' } } },
    }),
  },
  'lines=One.%0ATwo.%0AThree.&line=2': { rest: () => ({ lines: 'One.\nTwo.\nThree.', line: 1 }) },
  'use.names=Ada+Lovelace+wrote.': { rest: ({ texts }) => ({ texts: { ...texts, names: 'Ada Lovelace wrote.' } }) },
  'use.question=Who%3F&use.context=He+did.': { rest: ({ texts }) => ({ texts: { ...texts, question: 'Who?', context: 'He did.' } }) },
  'why=3.attention_rollout': { rest: () => ({ why: '3.attention_rollout' }) },
  'words.word=sad&words.analogy=he%3Ahis%3Ashe': {
    rest: ({ words }) => ({ words: { ...words, word: 'sad', analogy: ['he', 'his', 'she'] } }),
  },
  'words.first=love&words.second=hate&table=1': {
    asTable: true,
    rest: ({ words }) => ({ words: { ...words, first: 'love', second: 'hate' } }),
  },
  // What an address of today adds: the model, the cell of the strongest link, a part of the page.
  'train&model=sentiment&text=A+dull+film.&cell=auto&train.task=frequent': {
    text: 'A dull film.',
    cell: { row: -1, column: -1 },
    rest: () => ({ settings: settingsFor('frequent') }),
  },
};

describe('a link', () => {
  const opened = () => ({ view: view.value, rest: rest() });
  let plain: Rest;
  beforeAll(() => {
    open('');
    plain = rest();
  });

  it('is one of fifty', () => expect(Object.keys(links)).toHaveLength(50));

  it.each(Object.keys(links))('opens what its sender saw: #%s', (hash) => {
    const { rest: other, ...wanted } = links[hash]!;
    open(hash);
    const meant = { view: { ...initialView, ...wanted }, rest: { ...plain, ...other?.(plain) } };
    expect(opened()).toEqual(meant);
    // And so does the link that the page writes for it today.
    const today = linkHash();
    expect(today).toMatch(/^model=/);
    open('');
    expect(view.value).toEqual(firstVisit);
    open(today);
    expect(opened()).toEqual(meant);
  });

  it('may begin with a part of the page', () => {
    open('train&model=sentiment');
    expect(partInAddress.value).toBe('train');
    open('model=sentiment');
    expect(partInAddress.value).toBeUndefined();
  });
});
