import { batch, effect, untracked } from '@preact/signals';
import type { ModelOptions, ModelSource } from 'attn';
import type { Attn, TextModel } from 'attn/worker';
import { truncate, longestName } from '../formats/truncate.ts';
import { encoderSize } from '../model/flops.ts';
import { nameInSentence, nameOf, openingModel, openingModels, sentenceName } from '../model/known.ts';
import { isDecoder, otherOf, type DType, type LoadedModel } from '../model/loaded.ts';
import { choiceOf, knownChoice, type Choice } from '../model/sources.ts';
import { noChanges } from './changes.ts';
import { beginningOf, sentences, withoutBlank } from './first_look.ts';
import { beside, besideFailure, engine, fail, failure, loading, loadingBeside, model, startEngine, stopEngine } from './model.ts';
import { withModel } from './run.ts';
import { codeOf, status } from './status.ts';
import { anywhere, firstVisit, initialView, update, view, type View } from './view.ts';

/** Over at least half a second. */
function speedometer(): (loaded: number) => number {
  let [since, from, speed] = [performance.now(), 0, 0];
  return (loaded) => {
    const now = performance.now();
    if (now - since > 500) {
      speed = ((loaded - from) / (now - since)) * 1000;
      [since, from] = [now, loaded];
    }
    return speed;
  };
}

let current = knownChoice('sentiment', false);

const dtypeOf = (id: string): DType => (id === 'sentiment' ? 'float32' : view.value.dtype);

interface Way {
  readonly loading: typeof loading;
  attempt: number;
}
const main: Way = { loading, attempt: 0 };
const aside: Way = { loading: loadingBeside, attempt: 0 };

/** The host has no such folder; server faults do not count. */
const isAbsent = (error: unknown): boolean =>
  codeOf(error) === 'NETWORK' && [403, 404, 410].includes((error as { detail?: { status?: number } }).detail?.status ?? 0);

async function described({ id, name, note }: Choice, text: TextModel, dtype: DType): Promise<Omit<LoadedModel, 'bytes' | 'memory' | 'loadTime'>> {
  const [config, task, names, maskToken, shapes, about] = await Promise.all([
    text.config,
    text.task,
    text.labels,
    text.maskToken,
    text.parameterShapes(),
    note,
  ]);
  // Answers are shown only of heads that classify the whole text.
  const labels = task === 'text-classification' ? names : undefined;
  const { layers, heads, width } = encoderSize(config);
  return {
    id,
    name,
    note: about,
    text,
    config,
    labels: labels?.map((label) => truncate(label, longestName)),
    task,
    tokenLabels: task === 'token-classification' ? names : undefined,
    maskToken: task === 'fill-mask' ? (maskToken ?? '[MASK]') : undefined,
    layers,
    heads,
    hiddenSize: width,
    shapes,
    dtype,
    isStoredAsInt8: 'quantization_config' in config,
  };
}

/** Unless a newer attempt began. Rejects on failure and cancellation. `alone`: see `withoutOld`. */
async function read(
  attn: Attn,
  way: Way,
  choice: Choice,
  dtype: DType,
  controller: AbortController,
  take: (loaded: LoadedModel) => void,
  alone?: (load: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const mine = ++way.attempt;
  const speed = speedometer();
  const start = performance.now();
  const report = (phase: string, loaded: number, total?: number, file?: string, progress = 0) => {
    // The worker may not have received the cancellation yet.
    if (mine !== way.attempt || controller.signal.aborted) return;
    way.loading.value = { name: choice.name, phase, file, loaded, total, progress, bytesPerSecond: speed(loaded), cancel: () => controller.abort() };
  };
  report('requesting the files', 0);
  const bytes = new Map<string | undefined, number>();
  const { signal } = controller;
  const onProgress: ModelOptions['onProgress'] = ({ phase, file, loaded, total, progress }) => {
    bytes.set(file, loaded);
    report(phase, loaded, total, file, progress);
  };
  const used = async () => (await attn.info).heap.used;
  const load = async (source: ModelSource) => {
    bytes.clear();
    const before = await used();
    const text = await attn.loadModel(source, { weights: dtype, signal, onProgress });
    const [about, after] = await Promise.all([described(choice, text, dtype), used()]);
    if (mine !== way.attempt) return void (await text.dispose());
    take({
      ...about,
      bytes: [...bytes.values()].reduce((sum, each) => sum + each, 0),
      memory: after - before,
      loadTime: performance.now() - start,
    });
  };
  const loadFirst = async (all: readonly ModelSource[]): Promise<void> => {
    for (const source of all)
      try {
        const isThere = typeof source !== 'string';
        return void (await (alone && isThere ? alone(() => load(source)) : load(source)));
      } catch (error) {
        if (alone && typeof source === 'string' && codeOf(error) === 'MEMORY' && mine === way.attempt) return void (await alone(() => load(source)));
        if (source === all.at(-1) || !isAbsent(error)) throw error;
      }
  };
  try {
    await loadFirst(await choice.sources(dtype));
  } catch (error) {
    if (mine === way.attempt) throw error;
  } finally {
    if (mine === way.attempt) way.loading.value = undefined;
  }
}

const released = new WeakSet<LoadedModel>();
async function release(of: LoadedModel | undefined): Promise<void> {
  if (!of || released.has(of)) return;
  released.add(of);
  await of.text.dispose();
}

/**
 * Once the files of the new model are there, or if there was not enough memory for both. Calls to the model wait, and
 * if the load fails, the old model is loaded again.
 */
const withoutOld = (attn: Attn) => (load: () => Promise<void>) =>
  withModel(async () => {
    const [old, choice] = [model.value, current];
    await release(old).catch(() => undefined); // fails if the module has stopped
    try {
      await load();
    } finally {
      // Neither this load nor a newer one has replaced it.
      if (old && model.value === old) await loadAgain(attn, choice, old);
    }
  });

/** The page keeps what it shows of the model. */
async function loadAgain(attn: Attn, choice: Choice, old: LoadedModel): Promise<void> {
  let text: TextModel | undefined;
  for (const source of await choice.sources(old.dtype)) text ??= await attn.loadModel(source, { weights: old.dtype }).catch(() => undefined);
  if (!text) return void (model.value = undefined);
  old.text = text;
  released.delete(old);
}

/** Changes and focus are reset unless `keepView`: they belong to the model before. */
async function open(choice: Choice, dtype: DType, keepView: boolean, also?: Partial<View>): Promise<void> {
  const attn = engine.value ?? (await startEngine());
  if (!attn) return;
  loading.value?.cancel();
  const old = model.value;
  if (old && choice === current && beside.value?.dtype === dtype) {
    batch(() => {
      ++main.attempt;
      loading.value = undefined;
      failure.value = undefined;
      model.value = beside.value;
      beside.value = old;
    });
    return;
  }
  // The model itself stays, because most loads that fail or are cancelled do so before the files are there.
  closeBeside();
  const controller = new AbortController();
  failure.value = undefined;
  status.value = { text: `Loading ${nameInSentence(choice)} …` };
  try {
    let gone: Promise<void> | undefined;
    const take = (loaded: LoadedModel) => {
      const before = model.value;
      closeBeside();
      batch(() => {
        model.value = loaded;
        if (!keepView) resetViewFor(loaded);
        if (also) update(also);
      });
      current = choice;
      gone = release(before);
    };
    await read(attn, main, choice, dtype, controller, take, old && withoutOld(attn));
    await gone;
  } catch (error) {
    if (controller.signal.aborted) status.value = { text: `${sentenceName(choice)} was not loaded: cancelled.` };
    else fail(`${sentenceName(choice)} could not be loaded.`, error, choice.origin, isAbsent(error) ? choice.onHub : undefined);
  }
}

/** Loads the model again with the other kind of weights, for comparison. */
export async function openBeside(): Promise<void> {
  const [attn, of] = [engine.value, model.value];
  if (!attn || !of || beside.value || loadingBeside.value) return;
  const dtype = otherOf(of.dtype);
  const controller = new AbortController();
  besideFailure.value = undefined;
  try {
    await read(attn, aside, current, dtype, controller, (loaded) => (beside.value = loaded));
  } catch (error) {
    if (controller.signal.aborted) return;
    besideFailure.value = { what: `${sentenceName(of)} could not be loaded as ${dtype}.`, error, origin: current.origin, code: codeOf(error) };
  }
}

export function closeBeside(): void {
  const old = beside.value;
  loadingBeside.value?.cancel();
  ++aside.attempt;
  batch(() => {
    beside.value = undefined;
    loadingBeside.value = undefined;
    besideFailure.value = undefined;
  });
  // Fails if the module has stopped.
  old?.text.dispose().catch(() => undefined);
}

/** For RXNMapper's model, whose authors found the head that maps atoms. */
const reaction = { text: 'BrCc1ccccc1.CN>>CNCc1ccccc1', pair: undefined, layer: 10, head: 5 } as const;

const ourSentence = (text: string): string | undefined =>
  sentences.find((each) => [each, each.replace('[MASK]', '<mask>'), withoutBlank(each), beginningOf(each)].includes(text));

/** A blank for a model that fills blanks, a beginning for a decoder, as long as the visitor has not written a text. */
function textFor({ id, task, maskToken }: LoadedModel): Partial<View> {
  if (id === 'reactions') return view.value.text.includes('>>') ? { ...reaction, text: view.value.text } : reaction;
  const { text, pair } = view.value;
  if (text === reaction.text)
    return { text: id === 'masks' ? firstVisit.text : isDecoder({ task }) ? beginningOf(firstVisit.text) : initialView.text };
  const ours = ourSentence(text);
  if (isDecoder({ task })) {
    const example = text === initialView.text ? firstVisit.text : ours;
    return { pair: undefined, ...(example !== undefined && { text: beginningOf(example) }) };
  }
  if (pair !== undefined) return {};
  if (id === 'sentiment' && text.includes('[MASK]')) return { text: initialView.text };
  if (id === 'masks' && text === initialView.text) return { text: firstVisit.text };
  if (ours === undefined) return {};
  return { text: maskToken === undefined ? withoutBlank(ours) : ours.replace('[MASK]', maskToken) };
}

function resetViewFor(of: LoadedModel): void {
  const { layer, head, locked } = initialView;
  // Any encoder can have a causal mask, and a decoder has one.
  const causal = view.value.causal && !isDecoder(of);
  update({ model: of.id, ...noChanges, causal, layer, head, cell: anywhere, locked, ...textFor(of) });
}

export const keepLoaded = (): void => resetViewFor(model.value!);

/** A view that already names this model is kept. */
export async function chooseModel(id: string): Promise<void> {
  const isCurrent = id === current.id && id !== 'files' && model.value?.id === id;
  let choice: Choice;
  try {
    choice = isCurrent ? current : choiceOf(id);
  } catch (error) {
    fail(`${sentenceName({ name: nameOf(id) })} could not be loaded.`, error);
    return;
  }
  await open(choice, dtypeOf(id), view.value.model === id && model.value?.id !== id);
}

/** The page's server does not have this model. */
export const chooseOnHub = (id: string): Promise<void> => open(knownChoice(id, true), dtypeOf(id), view.value.model === id && model.value?.id !== id);

export const chooseDType = (): Promise<void> => open(current, dtypeOf(current.id), true);

export async function chooseFiles(files: readonly (readonly [path: string, file: Blob])[]): Promise<void> {
  const folder = await import('../model/folder.ts').catch((error: unknown) => fail('The files could not be read.', error));
  if (!folder) return;
  const { modelFiles, readyToLoad } = folder;
  const { name, files: found, problem } = modelFiles(files);
  const what = `${sentenceName({ name })} could not be loaded.`;
  if (problem) {
    failure.value = { what, words: problem, code: 'ARGUMENT' };
    status.value = { text: what, failed: true };
    return;
  }
  const ready = readyToLoad(found);
  const note = ready.then((each) => each.note).catch(() => undefined); // `sources` reports the error
  const choice = { id: 'files', name, note, sources: async () => [(await ready).files] };
  await open(choice, dtypeOf('files'), view.value.model === 'files' && model.value?.id !== 'files');
}

export function openFolder(name: string, files: ModelSource, also: Partial<View>): Promise<void> {
  return open({ id: 'files', name, sources: async () => [files] }, dtypeOf('files'), false, also);
}

/** After the module has stopped. */
export async function restart(): Promise<void> {
  closeBeside();
  stopEngine();
  if (await startEngine()) await open(current, model.value?.dtype ?? dtypeOf(current.id), true);
}

/** Loads one of the opening models even if the address names another, which sections/model.tsx offers. */
export async function startPage(): Promise<void> {
  const id = openingModel(view.value.model);
  const first = knownChoice(id, false);
  const files = first.sources(dtypeOf(id));
  files.catch(() => undefined); // reported by the await below
  await startEngine();
  await open({ ...first, sources: () => files }, dtypeOf(id), true);
  current = first; // a later reload fetches the files again
}

/** A link that is opened in this tab may need the other opening model. */
export function followOpeningModel(): void {
  let before = view.value.model;
  effect(() => {
    const { model: id } = view.value;
    if (id === before) return;
    before = id;
    const loaded = model.peek();
    if (loaded && loaded.id !== id && loading.peek()?.name !== nameOf(id) && openingModels.some((each) => each === id))
      untracked(() => void chooseModel(id));
  });
}
