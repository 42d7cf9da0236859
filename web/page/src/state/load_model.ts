/** Loads models: what is on its way, what takes the place of what, and the end of a model. */
import { batch } from '@preact/signals';
import type { ModelOptions, ModelSource } from 'attn';
import type { Attn, TextModel } from 'attn/worker';
import { cut, longestName } from '../formats/cut.ts';
import { explainLoading } from '../model/errors.ts';
import { encoderSize } from '../model/flops.ts';
import { modelFiles, readyToLoad } from '../model/folder.ts';
import { nameOf } from '../model/known.ts';
import { otherOf, type DType, type LoadedModel } from '../model/loaded.ts';
import { choiceOf, fetchSentiment, knownChoice, sentiment, type Choice } from '../model/sources.ts';
import { noChanges } from './changes.ts';
import { beside, besideFailure, engine, fail, failure, loading, loadingBeside, model, startEngine } from './model.ts';
import { codeOf, explain, status } from './status.ts';
import { initialView, update, view, type View } from './view.ts';

/** How fast bytes come: over the last second or so. */
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

/** What the loaded model was made of. */
let current = sentiment;

const dtypeOf = (id: string): DType => (id === 'sentiment' ? 'float32' : view.value.dtype);

/** One thing that is on its way: where it says how far it is, and counts of attempts, since what an older one brings is let go. */
interface Way {
  readonly loading: typeof loading;
  attempt: number;
}
const main: Way = { loading, attempt: 0 };
const aside: Way = { loading: loadingBeside, attempt: 0 };

/** A host that does not have a folder; one that breaks down in the middle does. */
const isAbsent = (error: unknown): boolean =>
  codeOf(error) === 'NETWORK' && [403, 404, 410].includes((error as { detail?: { status?: number } }).detail?.status ?? 0);

/** What the page knows of a model that has come. */
async function described({ id, name, note }: Choice, text: TextModel, dtype: DType): Promise<Omit<LoadedModel, 'bytes' | 'memory' | 'loadTime'>> {
  const [config, task, names, shapes, about] = await Promise.all([text.config, text.task, text.labels, text.parameterShapes(), note]);
  // The page shows the answers of heads that look at the whole text.
  const labels = task === 'text-classification' ? names : undefined;
  const { layers, heads, width } = encoderSize(config);
  return {
    id,
    name,
    note: about,
    text,
    config,
    labels: labels?.map((label) => cut(label, longestName)),
    task,
    tokenLabels: task === 'token-classification' ? names : undefined,
    layers,
    heads,
    hiddenSize: width,
    shapes,
    dtype,
    isStoredAsInt8: 'quantization_config' in config,
  };
}

/** Loads what is chosen and hands it over, unless it is not wanted any more. Rejects with what went wrong, or when it was cancelled. */
async function read(
  attn: Attn,
  way: Way,
  choice: Choice,
  dtype: DType,
  controller: AbortController,
  take: (loaded: LoadedModel) => void,
): Promise<void> {
  const mine = ++way.attempt;
  const speed = speedometer();
  const start = performance.now();
  const report = (phase: string, loaded: number, total?: number, file?: string, progress = 0) => {
    // The worker may not have heard yet that it was cancelled.
    if (mine !== way.attempt || controller.signal.aborted) return;
    way.loading.value = { name: choice.name, phase, file, loaded, total, progress, bytesPerSecond: speed(loaded), cancel: () => controller.abort() };
  };
  report('asking for the files', 0);
  const bytes = new Map<string | undefined, number>();
  const { signal } = controller;
  const onProgress: ModelOptions['onProgress'] = ({ phase, file, loaded, total, progress }) => {
    bytes.set(file, loaded);
    report(phase, loaded, total, file, progress);
  };
  try {
    const used = async () => (await attn.info).heap.used;
    const [all, before] = await Promise.all([choice.sources(dtype), used()]);
    let text: TextModel | undefined;
    for (const source of all)
      try {
        text = await attn.loadModel(source, { weights: dtype, signal, onProgress });
        break;
      } catch (error) {
        if (source === all.at(-1) || !isAbsent(error)) throw error;
        bytes.clear();
      }
    const [about, after] = await Promise.all([described(choice, text!, dtype), used()]);
    if (mine !== way.attempt) return void (await text!.dispose());
    take({
      ...about,
      bytes: [...bytes.values()].reduce((sum, each) => sum + each, 0),
      memory: after - before,
      loadTime: performance.now() - start,
    });
  } catch (error) {
    if (mine === way.attempt) throw error;
  } finally {
    if (mine === way.attempt) way.loading.value = undefined;
  }
}

/** With `keepView` the view is about this model already. Changes, and what is in focus, are else of the model before. */
async function open(choice: Choice, dtype: DType, keepView: boolean, also?: Partial<View>): Promise<void> {
  const { id, name } = choice;
  const attn = engine.value ?? (await startEngine());
  if (!attn) return;
  loading.value?.cancel();
  const old = model.value;
  if (old && choice === current && beside.value?.dtype === dtype) {
    // It is here already.
    batch(() => {
      ++main.attempt;
      loading.value = undefined;
      failure.value = undefined;
      model.value = beside.value;
      beside.value = old;
    });
    return;
  }
  const controller = new AbortController();
  failure.value = undefined;
  status.value = { text: `Loading ${name} …` };
  try {
    let gone: Promise<void> | undefined;
    await read(attn, main, choice, dtype, controller, (loaded) => {
      const before = model.value;
      closeBeside();
      batch(() => {
        model.value = loaded;
        if (!keepView) speakOf(id);
        if (also) update(also);
      });
      current = choice;
      gone = before?.text.dispose();
    });
    await gone;
  } catch (error) {
    if (controller.signal.aborted) status.value = { text: `${name} was not loaded: cancelled.` };
    else fail(`${name} could not be loaded.`, error, choice.origin, isAbsent(error) ? choice.onHub : undefined);
  }
}

/** Loads the model once more with the other kind of weights, beside itself. */
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
    const words = explainLoading(error, current.origin ?? { host: undefined });
    besideFailure.value = { what: `${of.name} could not be loaded as ${dtype}.`, ...words, detail: explain(error), code: codeOf(error) };
  }
}

/** Lets go what is beside the model, or on its way there. */
export function closeBeside(): void {
  const old = beside.value;
  loadingBeside.value?.cancel();
  ++aside.attempt;
  batch(() => {
    beside.value = undefined;
    loadingBeside.value = undefined;
    besideFailure.value = undefined;
  });
  // Where the module has stopped there is nothing left to let go.
  old?.text.dispose().catch(() => undefined);
}

function speakOf(id: string): void {
  const { layer, head, cell, locked } = initialView;
  // A causal mask is about any model.
  update({ model: id, ...noChanges, causal: view.value.causal, layer, head, cell, locked });
}

/** A view from a link may be about another model than the one that is loaded; from here on it is about that. */
export const keepLoaded = (): void => speakOf(current.id);

/** Loads a model of the visitor's choice: one that the page knows, one on the Hub, or one in a folder. A view that waits for it is kept. */
export async function chooseModel(id: string): Promise<void> {
  const isCurrent = id === current.id && id !== 'files' && model.value?.id === id;
  let choice: Choice;
  try {
    choice = isCurrent ? current : choiceOf(id);
  } catch (error) {
    fail(`${nameOf(id)} could not be loaded.`, error);
    return;
  }
  await open(choice, dtypeOf(id), view.value.model === id && model.value?.id !== id);
}

/** A model that the page knows by name and that is not beside it. */
export const chooseOnHub = (id: string): Promise<void> => open(knownChoice(id, true), dtypeOf(id), view.value.model === id && model.value?.id !== id);

/** Loads what is here once more, with the kind of weights that the view speaks of; the view stays. */
export const chooseDType = (): Promise<void> => open(current, dtypeOf(current.id), true);

/** Files that were dropped or chosen, by their paths: a model is looked for among them. */
export async function chooseFiles(files: readonly (readonly [path: string, file: Blob])[]): Promise<void> {
  const { name, files: found, problem } = modelFiles(files);
  const what = `${name} could not be loaded.`;
  if (problem) {
    failure.value = { what, ...problem, code: 'ARGUMENT' };
    status.value = { text: what, failed: true };
    return;
  }
  const ready = readyToLoad(found);
  const note = ready.then((each) => each.note).catch(() => undefined); // why it is not ready is said by who loads it
  const choice = { id: 'files', name, note, sources: async () => [(await ready).files] };
  await open(choice, dtypeOf('files'), view.value.model === 'files' && model.value?.id !== 'files');
}

/** A folder that the page itself has made, and what the view becomes with it. */
export function openFolder(name: string, files: ModelSource, also: Partial<View>): Promise<void> {
  return open({ id: 'files', name, sources: async () => [files] }, dtypeOf('files'), false, also);
}

/** After the module has stopped: a new one with the same model; the text and the view stay. */
export async function restart(): Promise<void> {
  closeBeside();
  if (await startEngine()) await open(current, model.value?.dtype ?? dtypeOf(current.id), true);
}

/** The first model: the small one, whatever the address says; what it says is offered (sections/model.tsx). */
export async function startPage(): Promise<void> {
  const files = fetchSentiment();
  files.catch(() => undefined); // reported where it is awaited
  await startEngine();
  await open({ ...sentiment, sources: async () => [await files] }, dtypeOf('sentiment'), true);
  current = sentiment; // whose files are fetched anew, should they be needed again
}
