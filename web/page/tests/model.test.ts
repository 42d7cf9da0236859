import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { AttnError, type ErrorCode, type ModelOptions } from 'attn';
import type { Attn } from 'attn/worker';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { wordsOf } from '../src/model/errors.ts';
import { expectedBytes, knownModels, nameInSentence, nameOf, sentenceName, unnamedFiles } from '../src/model/known.ts';
import { answerFunction, answerName, headMaskOf, type LoadedModel } from '../src/model/loaded.ts';
import {
  chooseDType,
  chooseFiles,
  chooseModel,
  chooseOnHub,
  closeBeside,
  keepLoaded,
  openBeside,
  restart,
  startPage,
} from '../src/state/load_model.ts';
import { beside, besideFailure, engine, failure, loading, loadingBeside, model, startEngine } from '../src/state/model.ts';
import { withModel } from '../src/state/run.ts';
import { status } from '../src/state/status.ts';
import { anywhere, initialView, view } from '../src/state/view.ts';
import { inTestdata } from './models.ts';
import { aMoment, failing, fetchFile, until } from './state.ts';

const fetched: string[] = [];
const missing = new Set<string>();
vi.stubGlobal('fetch', (url: string) => {
  fetched.push(url);
  const isGone = [...missing].some((name) => url.includes(`/models/${name}/`));
  return isGone ? Promise.resolve(new Response('', { status: 404 })) : fetchFile(url);
});
afterAll(() => engine.value?.dispose());

const files = Object.fromEntries(
  ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'].map((name) => [
    name,
    new Blob([Uint8Array.from(readFileSync(inTestdata(`models/sentiment/${name}`)))]),
  ]),
);
const inFolder = (folder: string) => Object.entries(files).map(([name, file]) => [`${folder}/${name}`, file] as const);
const changes = { off: [1], padding: [2], drawn: [3], weights: [{ name: 'a', index: 0, value: 1 }], layer: 0, head: 1, locked: true } as const;

const parameters = () => [...model.value!.shapes.values()].reduce((sum, dims) => sum + dims.reduce((a, b) => a * b, 1), 0);

type Load = Attn['loadModel'];
const withLoad = (own: Attn, loadModel: Load): Attn => ({
  ...own,
  loadModel,
  get info() {
    return own.info;
  },
});
function watched(own: Attn): { readonly attn: Attn; readonly asked: unknown[] } {
  const asked: unknown[] = [];
  const loadModel: Load = (source, options) => {
    asked.push(options!.weights);
    return own.loadModel(source, options);
  };
  return { attn: withLoad(own, loadModel), asked };
}
const absent = (status: number) => new AttnError('NETWORK', 'no such folder', { status });

/** Makes the module fail to start. */
let refusal: Error | undefined;
let starts = 0;
vi.mock('attn/worker', async (original) => {
  const own = await original<typeof import('attn/worker')>();
  const load = () => {
    ++starts;
    return refusal === undefined ? own.load() : Promise.reject(refusal);
  };
  return { ...own, load };
});

describe('the page', () => {
  it('starts with the small model regardless of the address and keeps the view', async () => {
    view.value = { ...initialView, ...changes, model: 'all-MiniLM-L6-v2' };
    await startPage();
    expect(fetched.map((url) => url.replace(/^.*\//, '')).sort()).toEqual(Object.keys(files).sort());
    expect(model.value).toMatchObject({
      id: 'sentiment',
      name: 'sentiment classifier',
      layers: 2,
      heads: 4,
      hiddenSize: 64,
      labels: ['negative', 'positive'],
      dtype: 'float32',
      isStoredAsInt8: false,
      bytes: Object.values(files).reduce((sum, { size }) => sum + size, 0),
    });
    expect(model.value!.memory, 'the memory holds all weights as float32, but not twice').toBeGreaterThan(4 * parameters());
    expect(model.value!.memory).toBeLessThan(8 * parameters());
    expect(model.value!.shapes.get('classifier.weight')).toEqual([2, 64]);
    expect(model.value!.config['model_type']).toBe('bert');
    expect(model.value!.loadTime).toBeGreaterThan(0);
    expect(view.value).toEqual({ ...initialView, ...changes, model: 'all-MiniLM-L6-v2' });
    expect([loading.value, failure.value]).toEqual([undefined, undefined]);
    expect((await engine.value!.info).threads).toBe(1);
  });

  it('resets the view to the loaded model if the requested model is declined', () => {
    keepLoaded();
    expect(view.value).toEqual({ ...initialView, cell: anywhere, text: view.value.text, model: 'sentiment' });
  });
});

describe('choosing a model', () => {
  beforeEach(() => {
    view.value = { ...initialView, ...changes };
  });

  it('opens the given files and discards the previous model and its changes', async () => {
    const before = model.value!;
    const id = view.value.model;
    await chooseFiles(inFolder(`a ${'long '.repeat(40)}name`));
    expect(model.value).not.toBe(before);
    expect([id, model.value!.id, view.value.model]).toEqual(['sentiment', 'files', 'files']);
    expect(model.value!.name.length).toBe(80);
    expect(view.value).toEqual({ ...initialView, cell: anywhere, model: 'files' });
    await expect(before.text.tokenize('a')).rejects.toThrow(/disposed/);
    view.value = { ...view.value, ...changes };
    await chooseFiles(inFolder('again'));
    expect(view.value.off, 'other files are another model').toEqual([]);
  });

  it('keeps a view that was waiting for these files', async () => {
    await chooseModel('sentiment');
    view.value = { ...initialView, ...changes, model: 'files' };
    await chooseFiles(inFolder('waited for'));
    expect(view.value).toEqual({ ...initialView, ...changes, model: 'files' });
  });

  it('requests a known name or a folder address at the right location', async () => {
    const own = engine.value!;
    const asked: unknown[] = [];
    engine.value = withLoad(own, async (source, options) => {
      asked.push(source);
      if (typeof source === 'string') throw failing('NETWORK');
      return own.loadModel(source, options);
    });
    for (const id of ['all-MiniLM-L6-v2', './mine/', '/models/x', 'https://host/x/', '../up', 'owner/name', 'owner/name@v1']) await chooseModel(id);
    expect(asked).toEqual([
      'models/all-MiniLM-L6-v2-int8/',
      'http://localhost/mine/',
      'http://localhost/models/x/',
      'https://host/x/',
      'http://localhost/up/',
      'https://huggingface.co/owner/name/resolve/main/',
      'https://huggingface.co/owner/name/resolve/v1/',
    ]);
    asked.length = 0;
    await chooseModel('file:x');
    expect([asked, wordsOf(failure.value!).cause, status.value.failed]).toEqual([[], expect.stringMatching(/path on your disk/), true]);
    await chooseModel('sentiment');
    expect(Object.keys(asked.at(-1) as object)).toEqual(Object.keys(files));
    engine.value = own;
  });

  it('reports progress and can be cancelled', async () => {
    const own = engine.value!;
    const before = model.value;
    let report: NonNullable<NonNullable<Parameters<Load>[1]>['onProgress']> = () => undefined;
    engine.value = withLoad(
      own,
      (_, options) =>
        new Promise((_, reject) => {
          report = options!.onProgress!;
          options!.signal!.addEventListener('abort', () => reject(failing('ABORTED')));
        }),
    );
    let now = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    const choosing = chooseModel('./folder/');
    await aMoment();
    expect(status.value.text).toBe('Loading folder …');
    expect(loading.value).toMatchObject({ name: 'folder', phase: 'requesting the files', loaded: 0, total: undefined, bytesPerSecond: 0 });
    const speedAt = (time: number, loaded: number) => {
      now = time;
      report({ phase: 'download', file: 'model.safetensors', loaded, total: 4000, progress: loaded / 4000 });
      expect(loading.value).toMatchObject({ phase: 'download', file: 'model.safetensors', loaded, total: 4000 });
      return loading.value!.bytesPerSecond;
    };
    expect([speedAt(1100, 100), speedAt(1500, 500), speedAt(2000, 1000), speedAt(2400, 2000)], 'speed over about the last second').toEqual([
      0, 0, 1000, 1000,
    ]);
    expect(speedAt(3000, 3000)).toBe(2000);
    vi.restoreAllMocks();
    loading.value!.cancel();
    report({ phase: 'download', file: 'model.safetensors', loaded: 3500, total: 4000, progress: 0.875 });
    expect(loading.value!.loaded, 'progress after cancelling is ignored').toBe(3000);
    await choosing;
    expect(status.value).toEqual({ text: 'The model folder was not loaded: cancelled.' });
    expect([loading.value, failure.value, model.value]).toEqual([undefined, undefined, before]);
    engine.value = own;
  });

  it('loads the newest choice if another model is still loading', async () => {
    const own = engine.value!;
    const disposed: string[] = [];
    const later: ((text: unknown) => void)[] = [];
    const reports: (() => void)[] = [];
    const signals: AbortSignal[] = [];
    engine.value = withLoad(own, (source, options) => {
      signals.push(options!.signal!);
      reports.push(() => options!.onProgress!({ phase: 'download', file: String(source), loaded: 5, progress: 0 }));
      return new Promise((resolve) => later.push(resolve as (text: unknown) => void));
    });
    const real = model.value!.text;
    const textOf = (name: string) =>
      new Proxy(real, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (key === 'dispose') return async () => void disposed.push(name);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    const first = chooseModel('./first/');
    await aMoment();
    const second = chooseModel('./second/');
    await aMoment();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    reports[0]!();
    expect(loading.value!.name).toBe('second');
    reports[1]!();
    expect(loading.value!.file).toBe('http://localhost/second/');
    later[0]!(textOf('first'));
    await first;
    expect(disposed).toEqual(['first']);
    expect(loading.value!.name, 'the second model is still loading').toBe('second');
    later[1]!(textOf('second'));
    await second;
    expect([model.value!.name, disposed.length]).toEqual(['second', 1]);
    expect(loading.value).toBeUndefined();
    expect(view.value.model).toBe('./second/');
    engine.value = own;
    await chooseModel('sentiment');
    expect(disposed).toEqual(['first', 'second']);
  });

  it('ignores the failure of an earlier choice', async () => {
    const own = engine.value!;
    const reject: ((error: unknown) => void)[] = [];
    engine.value = withLoad(own, () => new Promise((_, fail) => reject.push(fail)));
    const first = chooseModel('./first/');
    await aMoment();
    const second = chooseModel('./second/');
    await aMoment();
    reject[0]!(failing('NETWORK'));
    await first;
    expect([failure.value, status.value.failed, loading.value!.name]).toEqual([undefined, undefined, 'second']);
    reject[1]!(failing('NETWORK'));
    await second;
    expect(failure.value!.code).toBe('NETWORK');
    engine.value = own;
  });

  it.each([
    ['NETWORK', /address and your connection/],
    ['MEMORY', /smaller model or a shorter text/],
    ['UNSUPPORTED', /families BERT/],
    ['ARGUMENT', /the same model/],
    ['FORMAT', /the same model/],
    ['MISMATCH', /the same model/],
    ['CONFIG', /the same model/],
    ['ENVIRONMENT', /WebAssembly with SIMD/],
    ['ABORTED', /Start it again/],
    ['INTERNAL', /Reload the page/],
  ] as const)('explains the failure %s and how to fix it', async (code: ErrorCode, fix) => {
    const own = engine.value!;
    const before = model.value;
    // The model before may be loaded again.
    engine.value = withLoad(own, (source, options) =>
      typeof source === 'string' ? Promise.reject(failing(code, 'no such thing')) : own.loadModel(source, options),
    );
    await chooseModel('./folder/');
    expect(failure.value).toMatchObject({ what: 'The model folder could not be loaded.', code });
    expect(wordsOf(failure.value!).detail).toBe(`no such thing (${code})`);
    expect(wordsOf(failure.value!).cause, 'the cause is written in plain words').toMatch(/^[A-Za-z][^()]+\.$/);
    expect(wordsOf(failure.value!).fix).toMatch(fix);
    expect(status.value, 'the status does not repeat the cause').toEqual({ text: 'The model folder could not be loaded.', failed: true });
    expect([model.value, loading.value]).toEqual([before, undefined]);
    await expect(model.value!.text.tokenize('a')).resolves.toBeDefined();
    engine.value = withLoad(own, () => new Promise(() => undefined));
    void chooseModel('./other/');
    await aMoment(5);
    expect(failure.value, 'the next attempt clears the failure').toBeUndefined();
    loading.value!.cancel();
    loading.value = undefined;
    engine.value = own;
  });
});

describe('the memory of the model before', () => {
  const isDisposed = (of: LoadedModel) =>
    of.text.tokenize('a').then(
      () => false,
      () => true,
    );

  it('is free once the files of the next one are there', async () => {
    const [own, before] = [engine.value!, model.value!];
    const seen: unknown[] = [];
    const usedBefore = (await own.info).heap.used;
    engine.value = withLoad(own, async (source, options) => {
      seen.push(await isDisposed(before), (await own.info).heap.used <= usedBefore - before.memory / 2);
      return own.loadModel(source, options);
    });
    await chooseModel('masks');
    expect([seen, model.value!.id]).toEqual([[true, true], 'masks']);
    engine.value = own;
  });

  it('is free if there is not enough for both', async () => {
    const [own, before] = [engine.value!, model.value!];
    const asked: unknown[] = [];
    engine.value = withLoad(own, async (source, options) => {
      asked.push([source, await isDisposed(before)]);
      return asked.length === 1 ? Promise.reject(failing('MEMORY')) : own.loadModel(files, options);
    });
    await chooseModel('./mine/');
    expect(asked).toEqual([
      ['http://localhost/mine/', false],
      ['http://localhost/mine/', true],
    ]);
    expect([model.value!.name, failure.value]).toEqual(['mine', undefined]);
    engine.value = own;
    await chooseModel('masks');
  });

  it.each(['FORMAT', 'ABORTED'] as const)('is used for it again if the next one fails (%s), and calls to it wait', async (code) => {
    const [own, before] = [engine.value!, model.value!];
    const { text } = before;
    view.value = { ...view.value, head: 2 };
    let fail: (() => void) | undefined;
    engine.value = withLoad(own, (source, options) =>
      fail ? own.loadModel(source, options) : new Promise((_, reject) => (fail = () => reject(failing(code)))),
    );
    const choosing = chooseModel('sentiment');
    await until('the load', () => fail !== undefined);
    let called: LoadedModel | undefined;
    const call = withModel(async () => void (called = model.value));
    if (code === 'ABORTED') loading.value!.cancel();
    await aMoment();
    expect([model.value === before, called], 'the page shows the model before').toEqual([true, undefined]);
    await expect(text.tokenize('a')).rejects.toThrow(/disposed/);
    fail!();
    await Promise.all([choosing, call]);
    engine.value = own;
    expect([model.value!.id, view.value.head, failure.value?.code]).toEqual(['masks', 2, code === 'FORMAT' ? code : undefined]);
    expect([called === before, model.value === before, await isDisposed(before)]).toEqual([true, true, false]);
  });
});

describe('the weights of a model', () => {
  beforeEach(() => {
    view.value = initialView;
  });

  it('are int8 by default and float32 on request, but always float32 for the sentiment classifier', async () => {
    const own = engine.value!;
    const { attn, asked } = watched(own);
    engine.value = attn;
    await chooseFiles(inFolder('mine'));
    expect(model.value).toMatchObject({ dtype: 'int8', isStoredAsInt8: false });
    const { memory } = model.value!;
    expect(memory).toBeGreaterThan(parameters());
    expect(memory, 'a quarter of float32, plus the parameters that stay float32').toBeLessThan(2 * parameters());
    view.value = { ...view.value, dtype: 'float32' };
    await chooseFiles(inFolder('mine'));
    expect(model.value!.dtype).toBe('float32');
    expect(model.value!.memory).toBeGreaterThan(4 * parameters());
    for (const dtype of ['int8', 'float32'] as const) {
      view.value = { ...view.value, dtype };
      await chooseModel('sentiment');
      expect(model.value!.dtype).toBe('float32');
    }
    expect(asked).toEqual(['int8', 'float32', 'float32', 'float32']);
    engine.value = own;
  });

  it('can change their type for the same files without changing the view', async () => {
    await chooseFiles(inFolder('mine'));
    const text = model.value!.text;
    view.value = { ...view.value, ...changes, dtype: 'float32' };
    await chooseDType();
    expect(model.value).toMatchObject({ id: 'files', name: 'mine', dtype: 'float32' });
    expect(view.value).toEqual({ ...initialView, ...changes, cell: anywhere, model: 'files', dtype: 'float32' });
    await expect(text.tokenize('a')).rejects.toThrow(/disposed/);
    await restart();
    expect(model.value!.dtype).toBe('float32');
  });

  it('are loaded from the int8 folder of a model if it exists, or else from the float32 folder', async () => {
    const own = engine.value!;
    const asked: unknown[] = [];
    const folders = (answer: (source: string, report: NonNullable<ModelOptions['onProgress']>) => Promise<typeof files>) =>
      withLoad(own, async (source, options) => {
        asked.push([source, options!.weights]);
        return own.loadModel(await answer(source as string, options!.onProgress!), options);
      });
    engine.value = folders(async () => ({
      ...files,
      'config.json': new Blob([JSON.stringify({ ...JSON.parse(await files['config.json']!.text()), quantization_config: null })]),
    }));
    await chooseModel('all-MiniLM-L6-v2');
    expect(asked).toEqual([['models/all-MiniLM-L6-v2-int8/', 'int8']]);
    expect(model.value).toMatchObject({ id: 'all-MiniLM-L6-v2', dtype: 'int8', isStoredAsInt8: true });
    for (const status of [403, 404, 410]) {
      asked.length = 0;
      engine.value = folders((source, report) => {
        if (!source.includes('int8')) return Promise.resolve(files);
        report({ phase: 'download', file: 'other.json', loaded: 777, progress: 0 });
        return Promise.reject(absent(status));
      });
      await chooseModel('all-MiniLM-L6-v2');
      expect(model.value!.bytes, 'only the files of the loaded model are counted').toBe(
        Object.values(files).reduce((sum, { size }) => sum + size, 0),
      );
      expect(asked).toEqual([
        ['models/all-MiniLM-L6-v2-int8/', 'int8'],
        ['models/all-MiniLM-L6-v2/', 'int8'],
      ]);
      expect(model.value).toMatchObject({ dtype: 'int8', isStoredAsInt8: false });
    }
    asked.length = 0;
    view.value = { ...view.value, dtype: 'float32' };
    await chooseModel('all-MiniLM-L6-v2');
    expect(asked).toEqual([['models/all-MiniLM-L6-v2/', 'float32']]);
    view.value = { ...view.value, dtype: 'int8' };
    for (const failure of [absent(503), failing('NETWORK'), failing('FORMAT')]) {
      asked.length = 0;
      engine.value = folders(() => Promise.reject(failure));
      await chooseModel('all-MiniLM-L6-v2');
      expect(asked.length, 'an int8 folder that exists but fails is not skipped').toBe(1);
    }
    asked.length = 0;
    engine.value = folders(() => Promise.reject(absent(404)));
    await chooseModel('all-MiniLM-L6-v2');
    expect(asked.length, 'neither folder exists').toBe(2);
    const repository = 'sentence-transformers/all-MiniLM-L6-v2';
    expect(failure.value).toMatchObject({ what: 'The model all-MiniLM-L6-v2 could not be loaded.', code: 'NETWORK', onHub: repository });
    asked.length = 0;
    view.value = { ...view.value, dtype: 'float32' };
    await chooseOnHub('all-MiniLM-L6-v2');
    expect(asked, 'the Hub is requested after the visitor agrees').toEqual([[`https://huggingface.co/${repository}/resolve/main/`, 'float32']]);
    expect(failure.value!.onHub, 'the Hub is not offered again').toBeUndefined();
    engine.value = own;
  });

  it('have the download size of the folder that will be requested', () => {
    const bundled = ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'];
    const total = bundled.reduce((sum, name) => sum + statSync(inTestdata(`models/sentiment/${name}`)).size, 0);
    expect(expectedBytes('sentiment', 'float32')! / total).toBeCloseTo(1, 2);
    for (const name of ['entities', 'masks'] as const) {
      const sum = bundled.reduce((bytes, file) => bytes + statSync(inTestdata(`models/${name}/${file}`)).size, 0);
      for (const dtype of ['int8', 'float32'] as const) expect(expectedBytes(name, dtype)! / sum, name).toBeCloseTo(1, 2);
    }
    expect(expectedBytes('all-MiniLM-L6-v2', 'float32')).toBe(91_000_000);
    const folder = new URL('../../../models/all-MiniLM-L6-v2-int8/', import.meta.url);
    const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
    const sizes = names.map((name) => statSync(new URL(name, folder))).map((found) => (found.isFile() ? found.size : 0));
    expect(expectedBytes('all-MiniLM-L6-v2', 'int8')).toBe(sizes.reduce((sum, size) => sum + size, 0) || 91_000_000);
    expect(expectedBytes('https://host/x/', 'int8')).toBeUndefined();
  });
});

describe('the small models bundled with the page', () => {
  it('are loaded by name from the page with their task', async () => {
    for (const [id, task, name, [layers, heads], count] of [
      ['entities', 'token-classification', 'entity model', [3, 4], 11],
      ['masks', 'fill-mask', 'mask model', [3, 4], undefined],
      ['reactions', 'fill-mask', 'reaction model', [12, 8], undefined],
    ] as const) {
      view.value = { ...initialView, model: id };
      fetched.length = 0;
      await chooseModel(id);
      expect(failure.value).toBeUndefined();
      expect(fetched.map((url) => url.replace(/^.*models\//, '')).sort()).toEqual(
        Object.keys(files)
          .sort()
          .map((file) => `${id}/${file}`),
      );
      expect(model.value).toMatchObject({ id, name, task, dtype: 'int8', isStoredAsInt8: true, labels: undefined, layers, heads });
      expect(model.value!.tokenLabels?.length).toBe(count);
      expect(view.value.model).toBe(id);
    }
    await chooseModel('sentiment');
    expect([model.value!.id, model.value!.task, model.value!.tokenLabels]).toEqual(['sentiment', 'text-classification', undefined]);
  });

  it('are reported as missing if their files are gone', async () => {
    missing.add('masks');
    await chooseModel('masks');
    missing.clear();
    expect(failure.value).toMatchObject({ what: 'The mask model could not be loaded.' });
    expect(wordsOf(failure.value!).detail).toMatch(/returned status 404/);
    expect(model.value!.id, 'the previous model stays').toBe('sentiment');
    failure.value = undefined;
  });
});

describe('the second copy of a model with the other weight type', () => {
  const both = () => [model.value?.dtype, beside.value?.dtype];

  it('is loaded once, only on request, and released with the model', async () => {
    view.value = initialView;
    await chooseModel('sentiment');
    const own = engine.value!;
    const { attn, asked } = watched(own);
    engine.value = attn;
    expect(both()).toEqual(['float32', undefined]);
    const before = view.value;
    await Promise.all([openBeside(), openBeside()]);
    await openBeside();
    expect([both(), asked]).toEqual([['float32', 'int8'], ['int8']]);
    expect([view.value, loadingBeside.value, besideFailure.value]).toEqual([before, undefined, undefined]);
    const { text } = beside.value!;
    await chooseFiles(inFolder('mine'));
    expect(both()).toEqual(['int8', undefined]);
    await expect(text.tokenize('a')).rejects.toThrow(/disposed/);
    await openBeside();
    expect([both(), asked]).toEqual([
      ['int8', 'float32'],
      ['int8', 'int8', 'float32'],
    ]);
    engine.value = own;
  });

  it('is swapped with the first copy without loading again', async () => {
    const own = engine.value!;
    const { attn, asked } = watched(own);
    engine.value = attn;
    const [above, other] = [model.value, beside.value];
    view.value = { ...view.value, ...changes, dtype: 'float32' };
    await chooseDType();
    expect([model.value, beside.value, asked]).toEqual([other, above, []]);
    expect(view.value.off, 'the view stays').toEqual([1]);
    view.value = { ...view.value, dtype: 'int8' };
    await chooseDType();
    expect([model.value, beside.value, asked]).toEqual([above, other, []]);
    await expect(model.value!.text.tokenize('a')).resolves.toBeDefined();
    // Other files are another model, even with the same names.
    view.value = { ...view.value, dtype: 'float32' };
    await chooseFiles(inFolder('mine'));
    expect([both(), asked]).toEqual([['float32', undefined], ['float32']]);
    engine.value = own;
  });

  it('can be closed, and cancelled while loading', async () => {
    await openBeside();
    const { text } = beside.value!;
    closeBeside();
    expect(beside.value).toBeUndefined();
    await expect(text.tokenize('a')).rejects.toThrow(/disposed/);
    const own = engine.value!;
    const signals: AbortSignal[] = [];
    engine.value = withLoad(
      own,
      (_, { signal } = {}) =>
        new Promise((_, reject) => {
          signals.push(signal!);
          signal!.addEventListener('abort', () => reject(failing('ABORTED')));
        }),
    );
    const said = status.value;
    let opening = openBeside();
    await until('the load', () => signals.length === 1);
    expect(loadingBeside.value).toMatchObject({ name: 'mine', phase: 'requesting the files' });
    loadingBeside.value!.cancel();
    await opening;
    expect([beside.value, loadingBeside.value, besideFailure.value, status.value]).toEqual([undefined, undefined, undefined, said]);
    opening = openBeside();
    await until('the load', () => signals.length === 2);
    closeBeside();
    await opening;
    expect([signals[1]!.aborted, loadingBeside.value, besideFailure.value]).toEqual([true, undefined, undefined]);
    engine.value = own;
  });

  it('is discarded if another model was loaded in the meantime', async () => {
    const own = engine.value!;
    let let_ = () => {};
    engine.value = withLoad(own, async (source, options) => {
      await new Promise<void>((resolve) => (let_ = resolve));
      // Simulates a worker that finishes before the cancellation arrives.
      return own.loadModel(source, { ...options, signal: undefined });
    });
    const opening = openBeside();
    await aMoment();
    const late = let_;
    engine.value = own;
    await chooseModel('sentiment');
    late();
    await opening;
    expect([both(), loadingBeside.value]).toEqual([['float32', undefined], undefined]);
  });

  it('reports its own loading failure, leaves the model usable and can be loaded again', async () => {
    const own = engine.value!;
    const said = status.value;
    engine.value = withLoad(own, () => Promise.reject(failing('MEMORY', 'full')));
    await openBeside();
    expect(besideFailure.value).toMatchObject({ what: 'The sentiment classifier could not be loaded as int8.', code: 'MEMORY' });
    expect(wordsOf(besideFailure.value!)).toEqual({
      cause: 'There is not enough memory for it.',
      detail: 'full (MEMORY)',
      fix: 'Close other pages, or use a smaller model or a shorter text.',
    });
    expect([failure.value, status.value, beside.value, loadingBeside.value]).toEqual([undefined, said, undefined, undefined]);
    engine.value = own;
    await openBeside();
    expect([both(), besideFailure.value]).toEqual([['float32', 'int8'], undefined]);
    const before = engine.value;
    await restart();
    expect(both(), 'the copy was released with the module').toEqual(['float32', undefined]);
    await before.dispose();
  });
});

describe('the WebAssembly module', () => {
  it('restarts with the same model and view', async () => {
    await chooseModel('sentiment');
    await chooseFiles(inFolder('mine'));
    view.value = { ...initialView, ...changes, model: 'files' };
    const [before, text] = [engine.value, model.value!.text];
    await restart();
    // Not by toBe, which reads the properties of both.
    expect(engine.value !== before).toBe(true);
    expect([model.value!.id, model.value!.name]).toEqual(['files', 'mine']);
    expect(model.value!.text).not.toBe(text);
    expect(view.value.off).toEqual([1]);
    await expect(before!.info, 'the old worker has ended').rejects.toThrow(/terminated/);
    expect(failure.value).toBeUndefined();
  });

  it('reports a failed start and requests no model', async () => {
    const own = engine.value;
    refusal = failing('ENVIRONMENT');
    engine.value = undefined;
    fetched.length = 0;
    await chooseModel('sentiment');
    expect(failure.value).toMatchObject({ what: 'The module could not be started.', code: 'ENVIRONMENT' });
    expect([loading.value, fetched.length]).toEqual([undefined, 0]);
    await restart();
    expect(fetched.length).toBe(0);
    refusal = undefined;
    const started = await startEngine();
    expect(started).toBe(engine.value);
    expect(failure.value).toBeUndefined();
    await own?.dispose();
  });

  it('is started if it is missing', async () => {
    await engine.value?.dispose();
    engine.value = undefined;
    await chooseModel('sentiment');
    expect(model.value!.id).toBe('sentiment');
    expect(engine.value).toBeDefined();
  });

  it('is started once for two models that are opened at the same time', async () => {
    await engine.value?.dispose();
    engine.value = undefined;
    const before = starts;
    await Promise.all([chooseModel('masks'), chooseModel('sentiment')]);
    expect([starts - before, model.value!.id]).toEqual([1, 'sentiment']);
  });

  it('reports the address and the status of a missing model file', async () => {
    vi.stubGlobal('fetch', async () => new Response('', { status: 404 }));
    await chooseModel('sentiment');
    expect(wordsOf(failure.value!).detail).toMatch(/(config\.json|safetensors|tokenizer.*) returned status 404/);
    await until('the end of loading', () => loading.value === undefined);
  });
});

describe('information about a model', () => {
  const of = (config: object, labels?: readonly string[]) => ({ config, labels, layers: 2, heads: 3 }) as unknown as LoadedModel;

  it('includes the function of its answers: softmax, sigmoid or identity', () => {
    expect(answerFunction(of({}, ['a', 'b']))).toBe('softmax');
    expect(answerFunction(of({}))).toBe('softmax');
    expect(answerFunction(of({}, ['a']))).toBe('sigmoid');
    expect(answerFunction(of({ problem_type: 'multi_label_classification' }, ['a', 'b']))).toBe('sigmoid');
    expect(answerFunction(of({ problem_type: 'regression' }, ['a']))).toBe('identity');
    const named = 'torch.nn.modules.activation.Sigmoid';
    expect(answerFunction(of({ sbert_ce_default_activation_function: named }, ['a', 'b']))).toBe('sigmoid');
    expect(answerFunction(of({ sentence_transformers: { activation_fn: 'torch.nn.modules.linear.Identity' } }, ['a']))).toBe('identity');
    expect(answerFunction(of({ sentence_transformers: null, sbert_ce_default_activation_function: 'Softmax' }, ['a']))).toBe('sigmoid');
    expect(answerFunction(of({ sentence_transformers: { activation_fn: 'x.Softmax' }, sbert_ce_default_activation_function: named }, ['a']))).toBe(
      'softmax',
    );
    expect(answerFunction(of({ sbert_ce_default_activation_function: 7 }, ['a', 'b']))).toBe('softmax');
    expect(answerName(of({ problem_type: 'regression' }, ['a']))).toBe('value');
    expect(answerName(of({}, ['a']))).toBe('probability');
  });

  it('includes a mask of the heads that are switched on', () => {
    expect(headMaskOf(of({}), [0, 5, 6])).toEqual({ data: Float32Array.of(0, 1, 1, 1, 1, 0), dims: [2, 3] });
    expect(headMaskOf(of({}), [6, 7]).data.length).toBe(6);
  });

  it('includes its name in a sentence, capitalized and with an article if the model is known', () => {
    const both = (name: string) => [sentenceName({ name }), nameInSentence({ name })];
    expect(both(nameOf('entities'))).toEqual(['The entity model', 'the entity model']);
    expect(both('all-MiniLM-L6-v2')).toEqual(['The model all-MiniLM-L6-v2', 'all-MiniLM-L6-v2']);
    expect(both('BAAI/bge')).toEqual(['BAAI/bge', 'BAAI/bge']);
    expect(both(unnamedFiles)).toEqual(['The model from your files', 'the model from your files']);
    expect(both('my bert')).toEqual(['The model my bert', 'my bert']);
  });

  it('includes its known name, or the name of its folder', () => {
    for (const { id, name } of knownModels) expect(nameOf(id)).toBe(name);
    expect(nameOf('https://host/folder/')).toBe('folder');
    expect(nameOf('a/b')).toBe('a/b');
    expect(nameOf('https://huggingface.co/a/b/resolve/main/x/')).toBe('a/b/x');
    expect(nameOf('no address')).toBe('no address');
  });
});
