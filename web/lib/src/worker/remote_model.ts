import type {
  ChatMessage,
  ChatTemplateOptions,
  Encoding,
  FineTuneResult,
  GeneratedText,
  ModelSource,
  NextToken,
  ScoredText,
  Tensor,
  TextModel as Direct,
} from '../attn.js';
import type * as Contract from '../worker.js';
import type { AnyProgress } from './worker_protocol.js';
import { type RemoteContext, watched } from './worker_client.js';
import * as Comlink from './comlink.js';
import { abortableTask, ask, call, nextTask, RemoteModel, stateOf, usable } from './remote_base.js';
import { RemoteImageModel } from './remote_images.js';
import { forOneCall, isMarked, TransferList } from './transfer_list.js';
import { asyncDisposeSymbol, disposeSymbol, endWith } from '../platform/dispose.js';
import { cacheNumbers, nextCacheNumber } from '../args/caches.js';
import { AttnError, fail } from '../args/error.js';
import { scriptsFailed } from '../platform/asset_urls.js';
import {
  answerOptions,
  classifyOptions,
  classifyTokensOptions,
  embedOptions,
  encodeOptions,
  fillMaskOptions,
  attributeOptions,
  fineTuneOptions,
  frozen,
  generateOptions,
  nextTokenOptions,
  rankOptions,
  readDecodeOptions,
  readEncoded,
  readExportOptions,
  readId,
  readIds,
  readModelOptions,
  readParameterName,
  readSource,
  readText,
  readTextOptions,
  readCandidates,
  readDocuments,
  readTexts,
  readToken,
  type Source,
  withAdvice,
  zeroShotOptions,
} from '../args/model_options.js';
import { readQuestions } from '../args/questions.js';
import { readCallback, readSignal } from '../args/options.js';
import { readArguments, readMembers } from '../args/signature.js';

class RemoteTextModel extends RemoteModel {
  get prompts(): Promise<Readonly<Record<string, string>>> {
    return (async () => Object.freeze(usable('prompts', this).parts.prompts))();
  }

  get maskToken(): Promise<string | undefined> {
    return (async () => usable('maskToken', this).parts.maskToken)();
  }

  get wordEmbeddings(): Promise<object> {
    return (async () => {
      const state = usable('wordEmbeddings', this);
      if (!state.words?.layer) state.words = state.adopt('Embedding', state.parts.words!, this);
      return state.words.layer!;
    })();
  }

  async tokenize(texts: unknown, options?: unknown): Promise<Encoding> {
    return ask(this, 'tokenize', () => {
      const list = readTexts('tokenize', texts, true);
      return { args: [list, readTextOptions('tokenize', options, encodeOptions).plain] };
    });
  }

  async forward(inputs: unknown, options?: unknown): Promise<unknown> {
    return call(this, 'forward', [inputs, options], (op, signature) => readEncoded(op, signature, inputs, { options }));
  }

  async traceLayer(inputs: unknown, layer: unknown, names?: unknown): Promise<unknown> {
    return call(this, 'traceLayer', [inputs, layer, names], (op, signature) => readEncoded(op, signature, inputs, { layer, names }));
  }

  async unembed(hiddenStates: unknown): Promise<unknown> {
    return call(this, 'unembed', [hiddenStates], (op, signature) => readArguments(op, signature, [hiddenStates]));
  }

  async getParameter(name: unknown): Promise<unknown> {
    return ask(this, 'getParameter', () => ({ args: [readParameterName(name)] }));
  }

  async loadStateDict(state: unknown, options?: unknown): Promise<unknown> {
    return call(this, 'loadStateDict', [state, options], (op, signature) => readArguments(op, signature, [state, options]));
  }

  async export(options?: unknown): Promise<Record<string, Uint8Array>> {
    return ask(this, 'export', () => {
      const weights = readExportOptions(options);
      return { args: [weights === undefined ? undefined : { weights }] };
    });
  }

  async tokenToId(token: unknown): Promise<number | undefined> {
    return ask(this, 'tokenToId', () => ({ args: [readToken('tokenToId', token)] }));
  }

  async idToToken(id: unknown): Promise<string | undefined> {
    return ask(this, 'idToToken', () => ({ args: [readId('idToToken', id)] }));
  }

  async embed(texts: unknown, options?: unknown): Promise<Tensor> {
    return ask(this, 'embed', () => {
      const list = readTexts('embed', texts, false);
      const read = readTextOptions('embed', options, embedOptions);
      return { args: [list, read.plain], options: read };
    });
  }

  async classify(texts: unknown, options?: unknown): Promise<Awaited<ReturnType<Direct['classify']>>> {
    return ask(this, 'classify', () => {
      const list = readTexts('classify', texts, true);
      const read = readTextOptions('classify', options, classifyOptions);
      return { args: [list, read.plain], options: read };
    });
  }

  async classifyTokens(texts: unknown, options?: unknown): Promise<Awaited<ReturnType<Direct['classifyTokens']>>> {
    return ask(this, 'classifyTokens', () => {
      const list = readTexts('classifyTokens', texts, false);
      const read = readTextOptions('classifyTokens', options, classifyTokensOptions);
      return { args: [list, read.plain], options: read };
    });
  }

  async classifyZeroShot(texts: unknown, labels: unknown, options?: unknown): Promise<Awaited<ReturnType<Direct['classifyZeroShot']>>> {
    return ask(this, 'classifyZeroShot', () => {
      const list = readTexts('classifyZeroShot', texts, false);
      const candidates = readCandidates(labels);
      const read = readTextOptions('classifyZeroShot', options, zeroShotOptions);
      return { args: [list, candidates, read.plain], options: read };
    });
  }

  async fillMask(texts: unknown, options?: unknown): Promise<never> {
    return ask(this, 'fillMask', () => {
      const list = readTexts('fillMask', texts, false);
      const read = readTextOptions('fillMask', options, fillMaskOptions);
      return { args: [typeof texts === 'string' ? texts : list, read.plain], options: read };
    });
  }

  async answer(question: unknown, context: unknown, options?: unknown): Promise<never> {
    return ask(this, 'answer', () => {
      const { isOne, pairs } = readQuestions(question, context);
      const read = readTextOptions('answer', options, answerOptions);
      const [questions, contexts] = [pairs.map(([each]) => each), pairs.map(([, each]) => each)];
      return { args: isOne ? [...pairs[0]!, read.plain] : [questions, contexts, read.plain], options: read };
    });
  }

  async rank(query: unknown, documents: unknown, options?: unknown): Promise<Awaited<ReturnType<Direct['rank']>>> {
    return ask(this, 'rank', () => {
      const given = readText('rank', 'query', query);
      const list = readDocuments(documents);
      const read = readTextOptions('rank', options, rankOptions);
      return { args: [given, list, read.plain], options: read };
    });
  }

  async generate(prompt: unknown, options?: unknown): Promise<GeneratedText> {
    const op = 'generate';
    const state = usable(op, this);
    const given = readText(op, 'prompt', prompt);
    const { plain, signal, onToken } = readTextOptions(op, options, generateOptions);
    usable(op, this);
    const report: AnyProgress | undefined = watched(op, onToken, 'onToken');
    const task = nextTask();
    const isAborted = signal?.aborted;
    const made = state.session.call(
      op,
      (host) => host.askModel(state.parts.id, op, [given, plain], task, report && Comlink.proxy(report), isAborted) as Promise<GeneratedText>,
    );
    // The worker then answers with the tokens so far.
    const onAbort = () => void state.session.ask((host) => host.abort(task)).catch(() => {});
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      return await made;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async nextToken(text: unknown, options?: unknown): Promise<NextToken[]> {
    return ask(this, 'nextToken', () => ({
      args: [readText('nextToken', 'text', text), readTextOptions('nextToken', options, nextTokenOptions).plain],
    }));
  }

  async scoreTokens(text: unknown): Promise<ScoredText> {
    return ask(this, 'scoreTokens', () => ({ args: [readText('scoreTokens', 'text', text)] }));
  }

  async applyChatTemplate(messages: readonly ChatMessage[], options?: ChatTemplateOptions): Promise<string> {
    const { session, parts } = usable('applyChatTemplate', this);
    const files = await session.call('applyChatTemplate', (host) => host.chatFilesOf(parts.id));
    const { formatChat } = await import('../model/chat.js').catch(scriptsFailed);
    return formatChat(files, messages, options);
  }

  async createCache(options?: unknown): Promise<RemoteKeyValueCache> {
    const number = nextCacheNumber();
    const maxLength: number = await call(this, 'createCache', [options], (op, signature) => readArguments(op, signature, [number, options]));
    return new RemoteKeyValueCache(this, number, maxLength);
  }

  async decode(ids: unknown, options?: unknown): Promise<string> {
    return ask(this, 'decode', () => {
      const list = readIds(ids);
      return { args: [list, { skipSpecialTokens: readDecodeOptions(options) }] };
    });
  }

  async gradients(inputs: unknown, options: unknown): Promise<unknown> {
    return ask(this, 'gradients', () => ({ args: [inputs, options] }));
  }

  async attribute(text: unknown, options?: unknown): Promise<unknown> {
    return ask(this, 'attribute', () => {
      const values = options === undefined ? [] : readMembers('attribute', 'options', options, attributeOptions);
      const { signal, ...plain } = Object.fromEntries(attributeOptions.map((name, i) => [name, values[i]]));
      return { args: [text, plain], options: { signal: readSignal('attribute', signal), onProgress: undefined } };
    });
  }

  async fineTune(examples: unknown, options?: unknown): Promise<FineTuneResult> {
    try {
      return await ask(this, 'fineTune', () => {
        const values = options === undefined ? [] : readMembers('fineTune', 'options', options, fineTuneOptions);
        const { signal, onProgress, ...plain } = Object.fromEntries(fineTuneOptions.map((name, i) => [name, values[i]]));
        return {
          args: [examples, plain],
          options: {
            signal: readSignal('fineTune', signal),
            onProgress: readCallback('fineTune', 'onProgress', onProgress) as AnyProgress | undefined,
          },
        };
      });
    } finally {
      const state = stateOf('fineTune', this);
      const facts = state.disposed ? undefined : await state.session.ask((host) => host.factsOf(state.parts.id)).catch(() => undefined);
      if (facts) state.parts = { ...state.parts, config: frozen(facts.config), task: facts.task, labels: facts.labels && frozen(facts.labels) };
    }
  }
}

/** A cache in the worker, which knows it by its number. */
class RemoteKeyValueCache {
  readonly #model: RemoteTextModel;
  readonly #maxLength: number;
  #number: number | undefined;

  constructor(model: RemoteTextModel, number: number, maxLength: number) {
    this.#model = model;
    this.#number = number;
    this.#maxLength = maxLength;
    const { session, parts } = stateOf('createCache', model);
    endWith(this, () => {
      if (!session.disposed) session.ask((host) => host.callModule(parts.id, 'freeCache', [number]) as Promise<unknown>).catch(() => {});
    });
    cacheNumbers.set(this, (op) => this.#find(op));
  }

  #find(op: string): number {
    if (this.#number === undefined) throw new AttnError('DISPOSED', `${op}: this cache was disposed of`, { op });
    return this.#number;
  }

  async #call(op: string, name: string, ...args: readonly unknown[]): Promise<never> {
    const number = this.#find(op);
    return call(this.#model, name, args, (_, signature) => readArguments(op, signature, [number, ...args]));
  }

  get length(): Promise<number> {
    return this.#call('length', 'cacheLength');
  }

  get maxLength(): Promise<number> {
    return Promise.resolve(this.#maxLength);
  }

  async truncate(length: unknown): Promise<void> {
    await this.#call('truncate', 'cacheLength', length ?? NaN);
  }

  async dispose(): Promise<void> {
    const number = this.#number;
    this.#number = undefined;
    const { session, parts, disposed } = stateOf('dispose', this.#model);
    if (number === undefined || disposed || session.disposed) return;
    await session.ask((host) => host.callModule(parts.id, 'freeCache', [number]) as Promise<unknown>).catch(() => {});
  }

  [disposeSymbol](): Promise<void> {
    return this.dispose();
  }

  [asyncDisposeSymbol](): Promise<void> {
    return this.dispose();
  }
}

function sent({ platform }: RemoteContext, source: Source): ModelSource {
  if (!('files' in source)) return platform.locate(source.location);
  const transfers = new TransferList();
  return transfers.seal(
    Object.fromEntries(
      source.files.map(([name, content, original]) => [
        name,
        typeof content === 'object' && 'buffer' in content ? transfers.array(content, 'Uint8Array', isMarked(original as object)) : content,
      ]),
    ),
  );
}

export async function loadModel(context: RemoteContext, given: unknown, options: unknown): Promise<Contract.TextModel> {
  const op = 'loadModel';
  const { session } = context;
  const { source, files, checked } = forOneCall(given, () => {
    const checked = readModelOptions(options);
    if (checked.fetch)
      fail(
        'ARGUMENT',
        op,
        'fetch',
        'is a function, which cannot be sent to a worker',
        'no fetch',
        'Use request to add headers to the requests of the worker',
      );
    const source = readSource(given);
    session.assertUsable(op);
    return { source, files: sent(context, source), checked };
  });
  const { cache, cacheDir, weights, sha256, request, signal, onProgress } = checked;
  const report = watched(op, onProgress);
  const made = await abortableTask(context, op, signal, async (task) => {
    const plain = { cache, cacheDir, weights, sha256: Object.fromEntries(sha256), request };
    context.loads.add(task);
    const parts = await session
      .ask((host) => host.loadModel(task, files, plain, report && Comlink.proxy(report)))
      .catch((error: unknown) => {
        session.assertUsable(op);
        throw withAdvice(error, source);
      })
      .finally(() => context.loads.delete(task));
    // The abort may have reached the worker too late.
    if (signal?.aborted) session.ask((host) => host.release(parts.id)).catch(() => {});
    return parts;
  });
  return (made.words === undefined ? new RemoteImageModel(context, made) : new RemoteTextModel(context, made)) as unknown as Contract.TextModel;
}
