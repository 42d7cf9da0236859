import type { Attn as Direct } from 'attn';
import type { Attn } from 'attn/worker';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { LoadedModel } from '../src/model/loaded.ts';
import { engine, model } from '../src/state/model.ts';
import { addStates, linkHash } from '../src/state/hash.ts';
import { storyStates } from '../src/state/story_states.ts';
import { follow, run } from '../src/state/run.ts';
import { taskTexts, taskTextsFromParams, taskTextsToParams } from '../src/state/task_texts.ts';
import {
  aggregation,
  aggregations,
  entities,
  faultOfContext,
  faultOfDocuments,
  faultOfMasked,
  faultOfNames,
  faultOfQuery,
  faultOfQuestion,
  filled,
  found,
  mostDocuments,
  ranks,
} from '../src/state/tasks.ts';
import { initialView, view } from '../src/state/view.ts';
import { aMoment, failing, fetchFile, open, openNamed, until } from './state.ts';

vi.stubGlobal('window', globalThis);
vi.stubGlobal('fetch', fetchFile);

let attn: Attn;
let direct: Direct;
const none = new URLSearchParams();
const ends: (() => void)[] = [];
beforeAll(async () => {
  ({ attn, direct } = await open('sentiment'));
  follow();
  for (const each of [entities, filled, found, ranks]) ends.push(each.follow());
});
afterAll(() => {
  for (const end of ends) end();
  direct.dispose();
});
afterEach(() => taskTextsFromParams(none));

async function show(of: LoadedModel): Promise<LoadedModel> {
  engine.value = attn;
  view.value = { ...initialView, text: 'A film.' };
  model.value = of;
  await until('the run of the model', () => run.value?.model === of);
  return of;
}

describe('token classification', () => {
  it('matches classifyTokens() for every aggregation', async () => {
    const of = await show(await openNamed(direct, 'entities'));
    for (const text of [taskTexts.names.value, 'Tom Becker moved to Lima in May 2019. '.repeat(12)])
      for (const how of aggregations) {
        taskTexts.names.value = text;
        aggregation.value = how;
        await until(how, () => entities.value.value?.of === of && entities.value.value.texts.join('\n') === `${text}\n${how}`);
        const [expected] = await of.text.classifyTokens([text], { aggregation: how, ...(how !== 'none' && { stride: 16 }) });
        expect(entities.value.value!.found).toEqual(expected);
        expect(expected!.length).toBeGreaterThan(2);
      }
    aggregation.value = 'first';
    const shown = entities.value.value;
    taskTexts.names.value = ' ';
    await aMoment(700);
    expect(entities.value.value!.texts[0], 'an empty text is not classified').toBe(shown!.texts[0]);
    expect([filled.value.value, found.value.value, ranks.value.value], 'the other tasks stay empty').toEqual([undefined, undefined, undefined]);
  });

  it('reports why it failed', async () => {
    const of = await show(await openNamed(direct, 'entities', { classifyTokens: () => Promise.reject(failing('MEMORY', 'too much')) }));
    await until('the failure', () => entities.failure.value);
    expect(entities.failure.value).toBe('too much (MEMORY)');
    expect(entities.value.value?.of).not.toBe(of);
  });

  it('rejects an empty or overlong text', () => {
    expect([faultOfNames('a'), faultOfNames(' \n'), faultOfNames('x'.repeat(20_001))]).toEqual([
      undefined,
      expect.stringMatching(/no text/),
      expect.stringMatching(/20001/),
    ]);
  });
});

describe('mask filling', () => {
  it('matches fillMask() for each mask', async () => {
    const of = await show(await openNamed(direct, 'masks'));
    for (const text of [taskTexts.masked.value, 'The [MASK] is on the [MASK].']) {
      taskTexts.masked.value = text;
      await until(text, () => filled.value.value?.of === of && filled.value.value.texts[0] === text);
      expect(filled.value.value!.found).toEqual(await of.text.fillMask(text, { topK: 8 }));
    }
    taskTexts.masked.value = 'There is none.';
    await aMoment(700);
    expect([filled.value.value!.texts[0], filled.failure.value], 'a text without a mask is not computed').toEqual([
      'The [MASK] is on the [MASK].',
      undefined,
    ]);
  });

  it('requires the mask token of the model', () => {
    expect([faultOfMasked('a <mask>', '<mask>'), faultOfMasked('a [MASK]', '<mask>')]).toEqual([undefined, expect.stringMatching(/no <mask>/)]);
  });
});

describe('question answering', () => {
  it('matches answer() of the package', async () => {
    const of = await show(await openNamed(direct, 'tiny-bert-qa'));
    const [question, context] = ['Who smiles?', 'A happy person smiles at the child.'];
    taskTexts.question.value = question;
    taskTexts.context.value = context;
    await until('the answers', () => found.value.value?.of === of && found.value.value.texts.join() === [question, context].join());
    expect(found.value.value!.found).toEqual(await of.text.answer(question, context, { topK: 3 }));
    expect([faultOfQuestion(''), faultOfContext(' '), faultOfQuestion(question), faultOfContext(context)]).toEqual([
      expect.stringMatching(/no question/),
      expect.stringMatching(/no text/),
      undefined,
      undefined,
    ]);
  });
});

describe('ranking lines', () => {
  it('matches rank() for a model with a single label', async () => {
    const one = await openNamed(direct, 'tiny-bert');
    const rank = (query: string, documents: readonly string[]) => documents.map((text, index) => ({ index, score: text.length + query.length }));
    const of = await show({
      ...(await openNamed(direct, 'tiny-bert', { rank: (_, query, documents) => Promise.resolve(rank(query as string, documents as string[])) })),
      labels: ['relevant'],
    });
    taskTexts.query.value = 'q';
    taskTexts.documents.value = ' a \n\nbb\nccc';
    await until('the order', () => ranks.value.value?.of === of && ranks.value.value.texts.join() === 'q,a,bb,ccc');
    expect(ranks.value.value!.found).toEqual(rank('q', ['a', 'bb', 'ccc']));
    await show(one);
    await aMoment(700);
    expect(ranks.value.value!.of, 'a model with three labels cannot rank').toBe(of);
    expect([faultOfQuery(' '), faultOfQuery('q')]).toEqual([expect.stringMatching(/no query/), undefined]);
    expect([['a'], ['a', 'b'], Array<string>(mostDocuments + 1).fill('a')].map(faultOfDocuments)).toEqual([
      expect.stringMatching(/at least 2/),
      undefined,
      expect.stringMatching(/31 lines/),
    ]);
  });
});

describe('the texts in a link', () => {
  addStates(storyStates);
  it('are included only if they differ from the initial ones, and are restored', () => {
    expect(taskTextsToParams()).toEqual([]);
    taskTexts.names.value = 'Anna & Tom = 2 #';
    taskTexts.masked.value = '[MASK]\n[MASK]';
    expect(taskTextsToParams()).toEqual([
      ['use.names', 'Anna & Tom = 2 #'],
      ['use.masked', '[MASK]\n[MASK]'],
    ]);
    const hash = linkHash();
    taskTextsFromParams(none);
    expect(taskTextsToParams()).toEqual([]);
    taskTextsFromParams(new URLSearchParams(hash));
    expect([taskTexts.names.value, taskTexts.masked.value]).toEqual(['Anna & Tom = 2 #', '[MASK]\n[MASK]']);
    taskTexts.context.value = 'x'.repeat(1501);
    expect(
      taskTextsToParams().map(([name]) => name),
      'a long text is left out',
    ).toEqual(['use.names', 'use.masked']);
  });
});
