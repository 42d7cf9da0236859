/** The module in its worker, and the model in it: loading, what it says of itself, its end. Nothing on the page computes on the main thread. */
import { batch, signal } from '@preact/signals';
import type { Dims, ModelOptions, ModelSource, Task, Tensor } from 'attn';
import { load, type Attn, type TextModel } from 'attn/worker';
import configUrl from '../../../../testdata/models/sentiment/config.json?url';
import weightsUrl from '../../../../testdata/models/sentiment/model.safetensors?url';
import tokenizerUrl from '../../../../testdata/models/sentiment/tokenizer.json?url';
import tokenizerConfigUrl from '../../../../testdata/models/sentiment/tokenizer_config.json?url';
import { cut, longestName } from '../formats/cut.ts';
import { encoderSize } from '../model/flops.ts';
import { AddressError, hubHost, readAddress } from '../model/address.ts';
import { explainLoading, type Origin } from '../model/errors.ts';
import { modelFiles, readyToLoad } from '../model/folder.ts';
import { codeOf, explain, status } from './status.ts';
import { initialView, update, view, type DType, type View } from './view.ts';

export interface LoadedModel {
  /** As View.model has it; of dropped files 'files'. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  /** What was done without, in words. */
  readonly note?: string | undefined;
  readonly text: TextModel;
  readonly config: Readonly<Record<string, unknown>>;
  readonly labels: readonly string[] | undefined;
  /** What its head is for. */
  readonly task: Task;
  /** What a head for tokens tells apart. */
  readonly tokenLabels?: readonly string[] | undefined;
  readonly layers: number;
  readonly heads: number;
  readonly hiddenSize: number;
  readonly shapes: ReadonlyMap<string, Dims>;
  readonly dtype: DType;
  /** Whether its files hold int8 already; else its weights were made int8 while they came, where they are. */
  readonly isStoredAsInt8: boolean;
  /** Of the files that were read for it. */
  readonly bytes: number;
  /** By how many bytes what is in use of the WASM heap has grown. */
  readonly memory: number;
  /** Milliseconds from the first byte asked for to the model being ready. */
  readonly loadTime: number;
}

/** (layers,H): 0 for the heads that are off, layer · H + head, and 1 for the others. */
export function headMaskOf({ layers, heads }: LoadedModel, off: readonly number[]): Tensor {
  const data = new Float32Array(layers * heads).fill(1);
  for (const head of off) if (head < data.length) data[head] = 0;
  return { data, dims: [layers, heads] };
}

/**
 * What makes a classifier's answer of its logits: softmax where one label is right, sigmoid where each may be, and nothing where the labels are numbers to
 * be estimated (regression). A cross-encoder's config.json may name it by its class of torch.nn.
 */
export function answerFunction({ config, labels }: LoadedModel): 'softmax' | 'sigmoid' | 'identity' {
  const section = config['sentence_transformers'] as { readonly activation_fn?: unknown } | null | undefined;
  for (const named of [section?.activation_fn, config['sbert_ce_default_activation_function']])
    for (const kind of ['softmax', 'sigmoid', 'identity'] as const)
      if (typeof named === 'string' && named.toLowerCase().endsWith(`.${kind}`)) return kind;
  const problem = config['problem_type'];
  if (problem === 'regression') return 'identity';
  return problem === 'multi_label_classification' || labels?.length === 1 ? 'sigmoid' : 'softmax';
}

/** What one number of the answer is called. */
export const answerName = (of: LoadedModel): string => (answerFunction(of) === 'identity' ? 'value' : 'probability');

export interface Loading {
  readonly name: string;
  readonly phase: string;
  readonly file?: string | undefined;
  readonly loaded: number;
  readonly total?: number | undefined;
  readonly bytesPerSecond: number;
  cancel(): void;
}

export interface Failure {
  readonly what: string;
  readonly cause: string;
  readonly fix: string;
  /** What the package or the browser said. */
  readonly detail?: string;
  readonly code: unknown;
  /** A model that is not beside the page, and can be asked for on the Hub. */
  readonly onHub?: string;
}

export const engine = signal<Attn | undefined>(undefined);
export const model = signal<LoadedModel | undefined>(undefined);
export const loading = signal<Loading | undefined>(undefined);
/** Of the last attempt to start the module or to load a model. */
export const failure = signal<Failure | undefined>(undefined);
/** The same model with the other kind of weights, for those who compare the two; it goes with the model. */
export const beside = signal<LoadedModel | undefined>(undefined);
export const loadingBeside = signal<Loading | undefined>(undefined);
export const besideFailure = signal<Failure | undefined>(undefined);

export const otherOf = (dtype: DType): DType => (dtype === 'int8' ? 'float32' : 'int8');

/**
 * Models that the page knows by name. The int8 files of the second stand beside the page, unless it was built without them (vite.config.ts): then it is
 * asked for on the Hub. A link to it never begins a download.
 */
export const knownModels = [
  { id: 'sentiment', name: 'sentiment classifier', about: '2 layers × 4 heads, in this page already', bytes: 2_160_000 },
  {
    id: 'all-MiniLM-L6-v2',
    name: 'all-MiniLM-L6-v2',
    about: '6 layers × 12 heads, sentence embeddings',
    bytes: 91_000_000,
    int8Bytes: Number(import.meta.env['ATTN_INT8_BYTES'] ?? 0),
    repository: 'sentence-transformers/all-MiniLM-L6-v2',
  },
  { id: 'entities', name: 'entity model', about: '3 layers × 4 heads, names in a text', bytes: 1_600_000 },
  { id: 'masks', name: 'mask model', about: '3 layers × 4 heads, words for a mask', bytes: 1_560_000 },
] as const;

/** What loading a model is going to bring, as far as that is known: bytes. */
export function expectedBytes(id: string, dtype: DType): number | undefined {
  const known = knownModels.find((each) => each.id === id);
  return (dtype === 'int8' && known && 'int8Bytes' in known && known.int8Bytes) || known?.bytes;
}

/** Tests have no page. */
const page = (): string => (globalThis as { readonly location?: Location }).location?.href ?? 'http://localhost/';

export function nameOf(id: string): string {
  const known = knownModels.find((each) => each.id === id);
  if (known) return known.name;
  try {
    return readAddress(id, page()).name;
  } catch {
    return cut(id, longestName);
  }
}

/** Whether the files of a model that the page knows were there when it was built. */
const isCarried = (id: string): boolean => knownModels.some((each) => each.id === id && (!('int8Bytes' in each) || each.int8Bytes > 0));

/** The host that loading a model is going to ask, where that is another than the page's. */
export function otherHostOf(id: string): string | undefined {
  if (knownModels.some((each) => each.id === id)) return isCarried(id) ? undefined : hubHost;
  try {
    const { host } = readAddress(id, page());
    return host === new URL(page()).host ? undefined : host;
  } catch {
    return undefined;
  }
}

async function fetchBytes(url: string): Promise<ArrayBuffer> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.arrayBuffer();
}

async function fetchAll(urls: Readonly<Record<string, string>>): Promise<ModelSource> {
  return Object.fromEntries(await Promise.all(Object.entries(urls).map(async ([name, url]) => [name, await fetchBytes(url)] as const)));
}

/** Asked for at once when the page opens; they come while the module starts. */
const fetchSentiment = (): Promise<ModelSource> =>
  fetchAll({
    'config.json': configUrl,
    'model.safetensors': weightsUrl,
    'tokenizer.json': tokenizerUrl,
    'tokenizer_config.json': tokenizerConfigUrl,
  });

/** A small model that stands beside the page: asked for when it is wanted. */
const fetchBeside = async (id: 'entities' | 'masks'): Promise<ModelSource> => fetchAll((await import('./models_beside.ts')).modelsBeside[id]);

/** The status says that it went wrong; why and what to do is said once, beside what was asked for. */
function fail(what: string, error: unknown, origin: Origin = { host: undefined }, onHub?: string): void {
  const words = error instanceof AddressError ? { cause: error.message, fix: '' } : explainLoading(error, origin);
  failure.value = { what, ...words, detail: explain(error), code: codeOf(error), ...(onHub !== undefined && { onHub }) };
  status.value = { text: what, failed: true };
}

/** Starts the module, or starts it anew after its worker has died. */
export async function startEngine(): Promise<Attn | undefined> {
  try {
    failure.value = undefined;
    // One thread: models of this size are done before a second one would have woken up.
    return (engine.value = await load());
  } catch (error) {
    fail('The module could not be started.', error);
    return undefined;
  }
}

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

interface Choice {
  readonly id: string;
  readonly name: string;
  readonly note?: Promise<string | undefined>;
  /** Files of the visitor's, or of the page, have none. */
  readonly origin?: Origin;
  /** "owner/name", where its files may be on the Hub if they are not beside the page. */
  readonly onHub?: string;
  /** Where its files are; those that are asked for only where the ones before are not there. */
  readonly sources: (dtype: DType) => Promise<readonly ModelSource[]>;
}

const sentiment: Choice = { id: 'sentiment', name: nameOf('sentiment'), sources: async () => [await fetchSentiment()] };
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

/** Loads what is chosen and hands it over, unless it is not wanted any more. Rejects with what went wrong, or when it was cancelled. */
async function read(
  attn: Attn,
  way: Way,
  { id, name, note, sources }: Choice,
  dtype: DType,
  controller: AbortController,
  take: (loaded: LoadedModel) => void,
): Promise<void> {
  const mine = ++way.attempt;
  const speed = speedometer();
  const start = performance.now();
  const report = (phase: string, loaded: number, total?: number, file?: string) => {
    // The worker may not have heard yet that it was cancelled.
    if (mine !== way.attempt || controller.signal.aborted) return;
    way.loading.value = { name, phase, file, loaded, total, bytesPerSecond: speed(loaded), cancel: () => controller.abort() };
  };
  report('asking for the files', 0);
  const bytes = new Map<string | undefined, number>();
  const { signal } = controller;
  const onProgress: ModelOptions['onProgress'] = ({ phase, file, loaded, total }) => {
    bytes.set(file, loaded);
    report(phase, loaded, total, file);
  };
  try {
    const used = async () => (await attn.info).heap.used;
    const [all, before] = await Promise.all([sources(dtype), used()]);
    let text: TextModel | undefined;
    for (const source of all)
      try {
        text = await attn.loadModel(source, { weights: dtype, signal, onProgress });
        break;
      } catch (error) {
        if (source === all.at(-1) || !isAbsent(error)) throw error;
        bytes.clear();
      }
    const [config, task, names, shapes, after, about] = await Promise.all([
      text!.config,
      text!.task,
      text!.labels,
      text!.parameterShapes(),
      used(),
      note,
    ]);
    // The page shows the answers of heads that look at the whole text.
    const labels = task === 'text-classification' ? names : undefined;
    const { layers, heads, width } = encoderSize(config);
    if (mine !== way.attempt) return void (await text!.dispose());
    take({
      id,
      name,
      note: about,
      text: text!,
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
  const { padding, drawn, off, weights, change, layer, head, cell, locked } = initialView;
  update({ model: id, padding, drawn, off, weights, change, layer, head, cell, locked });
}

/** A view from a link may be about another model than the one that is loaded; from here on it is about that. */
export const keepLoaded = (): void => speakOf(current.id);

/** A model that the page knows by name: from beside the page, or from the Hub where it is not there. */
function knownChoice(id: string, onHub: boolean): Choice {
  const known = knownModels.find((each) => each.id === id)!;
  if (known.id === 'sentiment') return sentiment;
  if (known.id === 'entities' || known.id === 'masks') {
    const { id: beside, name } = known;
    return { id: beside, name, sources: async () => [await fetchBeside(beside)], origin: { host: new URL(page()).host } };
  }
  const hub = readAddress(known.repository, page());
  const here = (dtype: DType) => (dtype === 'int8' ? [`models/${id}-int8/`, `models/${id}/`] : [`models/${id}/`]);
  // What the page carries is taken from there in any case.
  const isHere = (dtype: DType) => isCarried(id) && (!onHub || dtype === 'int8');
  return {
    id,
    name: known.name,
    sources: async (dtype) => (isHere(dtype) ? here(dtype) : [hub.folder]),
    origin: onHub || !isCarried(id) ? { host: hub.host, repository: known.repository } : { host: new URL(page()).host },
    ...(!onHub && isCarried(id) && { onHub: known.repository }),
  };
}

/** Throws an AddressError where the id is not an address. */
function choiceOf(id: string): Choice {
  if (knownModels.some((each) => each.id === id)) return knownChoice(id, !isCarried(id));
  const { name, folder, host, hub } = readAddress(id, page());
  return { id, name, sources: async () => [folder], origin: { host, repository: hub?.repository } };
}

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
