/** The module in its worker, and the model in it: loading, what it says of itself, its end. Nothing on the page computes on the main thread. */
import { batch, signal } from '@preact/signals';
import type { Dims, ModelSource, Tensor } from 'attn';
import { load, type Attn, type TextModel } from 'attn/worker';
import configUrl from '../../../../testdata/models/sentiment/config.json?url';
import weightsUrl from '../../../../testdata/models/sentiment/model.safetensors?url';
import tokenizerUrl from '../../../../testdata/models/sentiment/tokenizer.json?url';
import tokenizerConfigUrl from '../../../../testdata/models/sentiment/tokenizer_config.json?url';
import { cut, longestName } from '../cut.ts';
import { encoderSize } from '../flops.ts';
import { codeOf, explain, status } from './status.ts';
import { initialView, update, view } from './view.ts';

export interface LoadedModel {
  /** As View.model has it; of dropped files 'files'. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  readonly text: TextModel;
  readonly config: Readonly<Record<string, unknown>>;
  readonly labels: readonly string[] | undefined;
  readonly layers: number;
  readonly heads: number;
  readonly hiddenSize: number;
  readonly shapes: ReadonlyMap<string, Dims>;
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
  readonly code: unknown;
}

export const engine = signal<Attn | undefined>(undefined);
export const model = signal<LoadedModel | undefined>(undefined);
export const loading = signal<Loading | undefined>(undefined);
/** Of the last attempt to start the module or to load a model. */
export const failure = signal<Failure | undefined>(undefined);

/** Models that the page knows by name. The second is served by `make demo` where it is there; a link to it never begins a download. */
export const knownModels = [
  { id: 'sentiment', name: 'sentiment classifier', about: '2 layers × 4 heads, in this page already', bytes: 1_480_000 },
  { id: 'all-MiniLM-L6-v2', name: 'all-MiniLM-L6-v2', about: '6 layers × 12 heads, sentence embeddings', bytes: 91_000_000 },
] as const;

export const nameOf = (id: string): string =>
  cut(knownModels.find((each) => each.id === id)?.name ?? id.split('/').findLast((part) => part !== '') ?? '', longestName);

async function fetchBytes(url: string): Promise<ArrayBuffer> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.arrayBuffer();
}

/** Asked for at once when the page opens; they come while the module starts. */
async function fetchSentiment(): Promise<ModelSource> {
  const urls = {
    'config.json': configUrl,
    'model.safetensors': weightsUrl,
    'tokenizer.json': tokenizerUrl,
    'tokenizer_config.json': tokenizerConfigUrl,
  };
  return Object.fromEntries(await Promise.all(Object.entries(urls).map(async ([name, url]) => [name, await fetchBytes(url)] as const)));
}

/** What to do about a failure, by its code. */
function advice(code: unknown): string {
  switch (code) {
    case 'NETWORK':
      return 'Check the address and the connection. Files on disk can be dropped onto the page instead.';
    case 'MEMORY':
      return 'Close other pages, or take a smaller model or a shorter text.';
    case 'UNSUPPORTED':
      return 'Encoders of the families BERT, DistilBERT, RoBERTa, XLM-RoBERTa, MPNet and ModernBERT can be loaded, as model.safetensors.';
    case 'ARGUMENT':
    case 'FORMAT':
    case 'MISMATCH':
    case 'CONFIG':
      return 'Take config.json, tokenizer.json and model.safetensors of one and the same model, as they were published.';
    case 'ENVIRONMENT':
      return 'This page needs WebAssembly with SIMD: Chrome or Edge 91, Firefox 89, Safari 16.4, or later.';
    case 'ABORTED':
      return 'Start it again when you like.';
    default:
      return 'Reload the page; if it stays, the detail above says where to look.';
  }
}

function fail(what: string, error: unknown): void {
  const code = codeOf(error);
  failure.value = { what, cause: explain(error), fix: advice(code), code };
  status.value = { text: `${what} ${explain(error)}`, failed: true };
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

/** Counts attempts: what an older one brings is let go. */
let attempt = 0;

interface Choice {
  readonly id: string;
  readonly name: string;
  readonly source: () => ModelSource | Promise<ModelSource>;
}

const sentiment: Choice = { id: 'sentiment', name: nameOf('sentiment'), source: fetchSentiment };
/** What the loaded model was made of. */
let current = sentiment;

/** With `keepView` the view is about this model already. Changes, and what is in focus, are else of the model before. */
async function open(choice: Choice, keepView: boolean): Promise<void> {
  const { id, name, source } = choice;
  const attn = engine.value ?? (await startEngine());
  if (!attn) return;
  loading.value?.cancel();
  const mine = ++attempt;
  const controller = new AbortController();
  const speed = speedometer();
  const start = performance.now();
  const report = (phase: string, loaded: number, total?: number, file?: string) => {
    // The worker may not have heard yet that it was cancelled.
    if (mine !== attempt || controller.signal.aborted) return;
    loading.value = { name, phase, file, loaded, total, bytesPerSecond: speed(loaded), cancel: () => controller.abort() };
  };
  report('asking for the files', 0);
  failure.value = undefined;
  status.value = { text: `Loading ${name} …` };
  try {
    const text = await attn.loadModel(await source(), {
      signal: controller.signal,
      onProgress: ({ phase, file, loaded, total }) => report(phase, loaded, total, file),
    });
    const [config, labels, shapes] = await Promise.all([text.config, text.labels, text.parameterShapes()]);
    const { layers, heads, width } = encoderSize(config);
    if (mine !== attempt) return void (await text.dispose());
    const old = model.value;
    batch(() => {
      model.value = {
        id,
        name,
        text,
        config,
        labels: labels?.map((label) => cut(label, longestName)),
        layers,
        heads,
        hiddenSize: width,
        shapes,
        loadTime: performance.now() - start,
      };
      if (!keepView) speakOf(id);
    });
    current = choice;
    await old?.text.dispose();
  } catch (error) {
    if (mine !== attempt) return;
    if (controller.signal.aborted) status.value = { text: `${name} was not loaded: cancelled.` };
    else fail(`${name} could not be loaded.`, error);
  } finally {
    if (mine === attempt) loading.value = undefined;
  }
}

function speakOf(id: string): void {
  const { padding, drawn, off, weights, change, layer, head, cell, locked } = initialView;
  update({ model: id, padding, drawn, off, weights, change, layer, head, cell, locked });
}

/** A view from a link may be about another model than the one that is loaded; from here on it is about that. */
export const keepLoaded = (): void => speakOf(current.id);

/** Loads a model of the visitor's choice: one that the page knows, or the address of a folder. A view that waits for it is kept. */
export function chooseModel(id: string): Promise<void> {
  const folder = /^[\w-]+:|^\.{0,2}\//.test(id) ? id : `models/${id}/`;
  const choice = id === 'sentiment' ? sentiment : { id, name: nameOf(id), source: () => folder };
  return open(choice, view.value.model === id && model.value?.id !== id);
}

/** Files of a folder that was dropped or chosen, by their names. */
export function chooseFiles(files: Readonly<Record<string, Blob>>, folder: string): Promise<void> {
  return open({ id: 'files', name: cut(folder, longestName), source: () => files }, view.value.model === 'files' && model.value?.id !== 'files');
}

/** After the module has stopped: a new one with the same model; the text and the view stay. */
export async function restart(): Promise<void> {
  if (await startEngine()) await open(current, true);
}

/** The first model: the small one, whatever the address says; what it says is offered (bar.tsx). */
export async function startPage(): Promise<void> {
  const files = fetchSentiment();
  files.catch(() => undefined); // reported where it is awaited
  await startEngine();
  await open({ ...sentiment, source: () => files }, true);
  current = sentiment; // whose files are fetched anew, should they be needed again
}
