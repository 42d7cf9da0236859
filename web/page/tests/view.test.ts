import { beforeEach, describe, expect, it, vi } from 'vitest';
import { addStates, enterPart, fromHash, keepInHash, linkHash, longestHash, partInAddress, toHash, unread } from '../src/state/hash.ts';
import { initialLab, lab, updateLab } from '../src/state/lab.ts';
import { chosenLine, initialLines, linesText } from '../src/state/compare_texts.ts';
import { explain, newestOnly, oneAtATime } from '../src/state/status.ts';
import { withEdit } from '../src/state/changes.ts';
import {
  anywhere,
  changeInFocus,
  changeLayer,
  firstVisit,
  initialView,
  isChanged,
  setText,
  undoChanges,
  update,
  view,
  type View,
} from '../src/state/view.ts';
import { storyStates } from '../src/state/story_states.ts';
import { initialWords, updateWords, wordsView } from '../src/state/words.ts';
import { aMoment, failing } from './state.ts';

const x = { name: 'X', index: 4, value: 2 };
const weight = { name: 'a.weight', index: 1, value: 3 };
beforeEach(() => {
  view.value = initialView;
});

describe('updating the view', () => {
  it('discards settings of single tokens when the text changes', () => {
    update({ locked: true, padding: [1], drawn: [2], off: [3], weights: [weight] });
    changeLayer({ factor: 2, edits: [x, weight] });
    setText('new', 'pair');
    expect(view.value).toEqual({
      ...initialView,
      text: 'new',
      pair: 'pair',
      cell: anywhere,
      off: [3],
      weights: [weight],
      change: { layer: 1, factor: 2, score: 'scaled_dot', dropout: 0, seed: 0, edits: [weight] },
    });
    setText('other', undefined);
    expect(view.value.pair).toBeUndefined();
    undoChanges();
    setText('third', undefined);
    expect(view.value.change).toBeUndefined();
  });

  it('changes one layer at a time and drops a change without effect', () => {
    const plain = { layer: 1, factor: 1, score: 'scaled_dot', dropout: 0, seed: 0, edits: [] };
    expect(changeInFocus.value).toEqual(plain);
    changeLayer({ factor: 2 });
    changeLayer({ score: 'dot' });
    expect(view.value.change).toEqual({ ...plain, factor: 2, score: 'dot' });
    expect(changeInFocus.value).toBe(view.value.change);
    update({ layer: 0 });
    expect(changeInFocus.value).toEqual({ ...plain, layer: 0 });
    changeLayer({ dropout: 0.5 });
    expect(view.value.change, 'the change of the other layer is discarded').toEqual({ ...plain, layer: 0, dropout: 0.5 });
    changeLayer({ dropout: 0 });
    expect(view.value.change).toBeUndefined();
    for (const one of [{ factor: 0.5 }, { score: 'additive' }, { dropout: 0.1 }, { edits: [x] }] as const) {
      changeLayer(one);
      expect(view.value.change).toEqual({ ...plain, layer: 0, ...one });
      undoChanges();
    }
    changeLayer({ seed: 3 });
    expect(view.value.change, 'a seed alone has no effect').toBeUndefined();
  });

  it.each<Partial<View>>([{ causal: true }, { padding: [0] }, { drawn: [0] }, { off: [0] }, { weights: [weight] }])(
    'counts %j as a change that can be undone',
    (changes) => {
      expect(isChanged.value).toBe(false);
      update({ ...changes, head: 0 });
      expect(isChanged.value).toBe(true);
      undoChanges();
      expect(view.value).toEqual({ ...initialView, head: 0 });
      changeLayer({ factor: 2 });
      expect(isChanged.value).toBe(true);
    },
  );

  it('replaces an earlier edit of the same number', () => {
    const other = { ...weight, index: 2 };
    const edits = withEdit(withEdit(withEdit([], weight), other), x);
    expect(edits).toEqual([weight, other, x]);
    expect(withEdit(edits, { ...weight, value: 9 })).toEqual([other, x, { ...weight, value: 9 }]);
  });
});

describe('the view in the address', () => {
  const read = (hash: string): View => ({ ...initialView, ...fromHash(hash) });

  it.each<Partial<View>>([
    { model: 'all-MiniLM-L6-v2', text: 'a & b = c #d', pair: 'é\n“x”' },
    { dtype: 'float32', model: 'files' },
    { layer: 0, head: 11, cell: { row: 0, column: 7 }, locked: true, step: 3 },
    { order: 'entropy', special: 'hide', threshold: 0.05, scaleBy: 'row', mergeWords: true, asTable: true },
    { scaleBy: 'log', part: { row: 3, column: 0, count: 20 }, overlay: [0, 2] },
    { scaleBy: 'head' },
    { order: 'kind', special: 'renormalise', threshold: 1 },
    { causal: true, padding: [1, 12], drawn: [0, 99], off: [3] },
    { weights: [weight, { ...weight, index: 0, value: -1e-7 }] },
    { change: { layer: 3, factor: 1000, score: 'additive', dropout: 0.99, seed: 12, edits: [x] } },
    { change: { layer: 1, factor: 0, score: 'general', dropout: 0.5, seed: 0, edits: [] } },
    { pair: '' },
  ])('preserves %j', (changes) => {
    const of = { ...initialView, ...changes };
    expect(read(toHash(of))).toEqual(changes.pair === '' ? initialView : of);
  });

  it('omits default values', () => {
    expect(toHash(initialView)).toBe('');
    expect(toHash({ ...initialView, head: 0 })).toBe('head=1');
    expect(toHash({ ...initialView, layer: 4, causal: true, off: [1, 2] })).toBe('layer=5&causal=1&off=1.2');
    expect(toHash({ ...initialView, change: { layer: 1, factor: 2, score: 'dot', dropout: 0, seed: 0, edits: [] } })).toBe(
      'change=2%2C2%2Cdot%2C0%2C0',
    );
  });

  it('is the initial view if its values are invalid', () => {
    const odd =
      'dtype=float16&layer=0&head=-1&cell=x&locked=yes&order=up&special=&threshold=1.01&colours=red&words=2&table=true&step=a&causal=yes&padding=a.b&mask=&off=-1.x1.5x&weights=a';
    expect(read(odd)).toEqual({ ...initialView, layer: 0, head: 0, cell: { row: 0, column: 0 } });
    expect([read('part=1.2').part, read('part=a').part, read('part=1.2.0').part, read('overlay=x').overlay]).toEqual([
      undefined,
      undefined,
      undefined,
      [],
    ]);
    expect(read('threshold=-0.1').threshold).toBe(0);
    expect(read('threshold=').threshold).toBe(0);
    expect(read('threshold=0.5').threshold).toBe(0.5);
    expect(read('threshold=x').threshold).toBe(0);
    expect(read('cell=3').cell).toEqual({ row: 3, column: 0 });
    expect(read('cell=3.4.5').cell).toEqual({ row: 3, column: 4 });
    expect(read('unknown=1&=2')).toEqual(initialView);
  });

  it('contains a layer without changes if the change is invalid', () => {
    const plain = { layer: 0, factor: 1, score: 'scaled_dot', dropout: 0, seed: 0, edits: [] };
    expect(read('change=').change).toEqual(plain);
    expect(read('change=0,1001,cosine,0.991,-1').change).toEqual(plain);
    expect(read('change=2,-1,dot,-0.5,1.5').change).toEqual({ ...plain, layer: 1, score: 'dot' });
    expect(read('x=X@1=2').change, 'the edit applies to the layer of the view').toEqual({
      ...plain,
      layer: 1,
      edits: [{ name: 'X', index: 1, value: 2 }],
    });
    expect(read('layer=5&x=X@1=2').change!.layer).toBe(4);
    expect(read('change=3,2,dot,0,0&x=X@1=2').change).toEqual({
      ...plain,
      layer: 2,
      factor: 2,
      score: 'dot',
      edits: [{ name: 'X', index: 1, value: 2 }],
    });
  });
});

describe('the address of the page', () => {
  const replaced: string[] = [];
  const pushed: string[] = [];
  const listeners: (() => void)[] = [];
  const location = { hash: '', pathname: '/page/', search: '?a' };
  const goTo = (hash: string) => {
    location.hash = hash;
    for (const listener of listeners) listener();
  };
  const written = () => aMoment(420);
  vi.stubGlobal('window', globalThis);
  vi.stubGlobal('location', location);
  vi.stubGlobal('history', {
    state: null as unknown,
    replaceState(_: unknown, __: string, url: string) {
      replaced.push(url);
      location.hash = url.startsWith('#') ? url : '';
    },
    pushState(_: unknown, __: string, url: string) {
      pushed.push(url);
      location.hash = url;
    },
  });
  vi.stubGlobal('addEventListener', (type: string, listener: () => void) => {
    expect(type).toBe('hashchange');
    listeners.push(listener);
  });

  it('is read completely when the page opens', () => {
    location.hash = '#head=1&lab.heads=1&lines=a%0Ab&line=2&words.word=king';
    keepInHash(firstVisit);
    expect(view.value).toEqual({ ...initialView, head: 0 });
    // The parts below the first picture are loaded later; until then a link of the page has what its address has.
    expect([lab.value, wordsView.value]).toEqual([initialLab, initialWords]);
    expect(linkHash()).toBe('model=sentiment&head=1&lab.heads=1&lines=a%0Ab&line=2&words.word=king');
    addStates(storyStates);
    expect(lab.value).toEqual({ ...initialLab, heads: '1' });
    expect([linesText.value, chosenLine.value]).toEqual(['a\nb', 1]);
    expect(wordsView.value).toEqual({ ...initialWords, word: 'king' });
    expect(unread.value).toBeUndefined();
  });

  it('is written shortly after a change, once for several changes', async () => {
    await written();
    replaced.length = 0;
    update({ head: 1 });
    update({ head: 2 });
    await aMoment(100);
    expect(replaced).toEqual([]);
    update({ layer: 0 });
    await written();
    expect(replaced).toEqual(['#model=sentiment&layer=1&head=3&lab.heads=1&lines=a%0Ab&line=2&words.word=king']);
    updateLab({ heads: initialLab.heads });
    linesText.value = initialLines;
    chosenLine.value = 0;
    updateWords({ word: initialWords.word });
    view.value = firstVisit;
    expect(linkHash(), 'a link always names the model').toBe('model=masks&text=She+drank+a+cup+of+%5BMASK%5D.&cell=auto');
    await written();
    expect(replaced.at(-1), 'the view of a first visit').toBe('/page/?a');
  });

  it('replaces the whole view if the visitor edits it', async () => {
    update({ text: 'other' });
    goTo('#causal=1&lab.causal=1');
    expect(view.value).toEqual({ ...initialView, causal: true });
    expect(lab.value.causal).toBe(true);
    await written();
    expect(location.hash).toBe('#model=sentiment&causal=1&lab.causal=1');
    goTo('');
    expect([view.value, lab.value]).toEqual([firstVisit, initialLab]);
  });

  it('does not change the view if it only names a part of the page, and keeps the part', async () => {
    update({ head: 1 });
    goTo('#steps');
    expect([view.value.head, partInAddress.value]).toEqual([1, 'steps']);
    await written();
    expect(replaced.at(-1)).toBe('#steps&model=sentiment&head=2');
    goTo('#unknown');
    expect([view.value, partInAddress.value]).toEqual([firstVisit, undefined]);
    goTo('#train&head=1');
    expect([view.value, partInAddress.value]).toEqual([{ ...initialView, head: 0 }, 'train']);
  });

  it('gets a new entry of the history when the visitor goes to a part', async () => {
    goTo('#head=1');
    enterPart('lab');
    expect(pushed).toEqual(['#lab&model=sentiment&head=1']);
    update({ head: 1 });
    await written();
    expect(replaced.at(-1)).toBe('#lab&model=sentiment&head=2');
    goTo('');
  });

  it('is not overwritten right after the visitor edited it', async () => {
    update({ head: 2 });
    location.hash = '#head=1';
    replaced.length = 0;
    await written();
    expect(replaced).toEqual([]);
    goTo('#head=1');
    expect(view.value.head).toBe(0);
  });

  it('is neither read nor written if it is too long, and the page reports this', async () => {
    const long = 'a'.repeat(longestHash + 1);
    goTo(`#text=${long}`);
    expect(view.value).toEqual(firstVisit);
    expect(unread.value).toContain(`${long.length + 5} characters`);
    await written();
    replaced.length = 0;
    update({ text: long });
    await written();
    expect(replaced).toEqual([]);
    view.value = initialView;
    goTo('#head=1');
    expect([view.value.head, unread.value]).toEqual([0, undefined]);
    const most = 'a'.repeat(longestHash - 'model=sentiment&text='.length);
    update({ head: initialView.head, text: most });
    await written();
    expect(replaced.at(-1)).toBe(`#model=sentiment&text=${most}`);
  });
});

describe('queued jobs', () => {
  const jobs = () => {
    const log: string[] = [];
    const ends: (() => void)[] = [];
    const job = (name: string) => async () => {
      log.push(name);
      await new Promise<void>((resolve) => ends.push(resolve));
      log.push(`${name} ends`);
    };
    return { log, ends, job };
  };

  it('are skipped by newestOnly if a newer one is waiting', async () => {
    const { log, ends, job } = jobs();
    const inTurn = newestOnly();
    const first = inTurn(job('a'));
    void inTurn(job('b'));
    void inTurn(job('c'));
    expect(log).toEqual(['a']);
    ends[0]!();
    await aMoment(5);
    expect(log).toEqual(['a', 'a ends', 'c']);
    ends[1]!();
    await first;
    expect(log).toEqual(['a', 'a ends', 'c', 'c ends']);
    await expect(inTurn(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    void inTurn(job('d'));
    expect(log.at(-1)).toBe('d');
  });

  it('run after a failed one, whose caller gets the error', async () => {
    const { log, ends, job } = jobs();
    const inTurn = newestOnly();
    const first = inTurn(async () => {
      await job('a')();
      throw new Error('planted');
    });
    void inTurn(job('b'));
    ends[0]!();
    await aMoment(5);
    expect(log).toEqual(['a', 'a ends', 'b']);
    ends[1]!();
    await expect(first).rejects.toThrow('planted');
  });

  it('run one after the other with oneAtATime', async () => {
    const { log, ends, job } = jobs();
    const inTurn = oneAtATime();
    void inTurn(job('a'));
    const failed = inTurn(() => Promise.reject(new Error('no')));
    const value = inTurn(async () => 7);
    await aMoment(5);
    expect(log).toEqual(['a']);
    ends[0]!();
    await expect(failed).rejects.toThrow('no');
    expect(await value).toBe(7);
  });

  it('have an explanation if they fail', () => {
    expect(explain(failing('MEMORY', 'too much'))).toBe('too much (MEMORY)');
    expect(explain(new Error('no code'))).toBe('no code');
    expect(explain('text')).toBe('text');
    expect(explain(undefined)).toBe('undefined');
    expect(explain('a'.repeat(1000)).length).toBe(600);
  });
});
