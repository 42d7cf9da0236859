import type { Attn, load as Load, TextModel } from '../attn.js';
import { type AskedMethod, type Host, keepErrors } from './worker_protocol.js';
import * as Comlink from './comlink.js';
import type { Engine } from '../engine/engine.js';
import { AttnError } from '../args/error.js';
import { engineOf } from '../load/instance.js';
import type { Models } from '../load/platform.js';
import type { NativeLayer } from '../engine/native.js';
import { internalClass, type Leaf, opOf, type Signature } from '../args/signature.js';

/** Buffers of an answer are not used here again, so they are transferred. */
function buffersOf(answer: unknown, into: ArrayBuffer[] = []): ArrayBuffer[] {
  if (ArrayBuffer.isView(answer)) into.push(answer.buffer as ArrayBuffer);
  else if (answer instanceof Map) for (const value of answer.values()) buffersOf(value, into);
  else if (typeof answer === 'object' && answer !== null) for (const value of Object.values(answer)) buffersOf(value, into);
  return into;
}

function move(answer: unknown): unknown {
  return typeof answer === 'object' && answer !== null ? Comlink.transfer(answer, buffersOf(answer)) : answer;
}

/**
 * Runs calls in order of arrival. Others may run between the batches of a long call, but a call that changes the module waits for
 * the running ones, and later calls wait for it.
 */
class ReadWriteQueue {
  #change: Promise<unknown> = Promise.resolve();
  readonly #running = new Set<Promise<unknown>>();

  take<T>(changes: boolean, work: () => T | Promise<T>): Promise<T> {
    const turn = (changes ? Promise.all(this.#running) : this.#change).then(work);
    const done = turn.then(
      () => void this.#running.delete(done),
      () => void this.#running.delete(done),
    );
    this.#running.add(done);
    if (changes) this.#change = done;
    return turn;
  }
}

const changing: readonly string[] = ['loadStateDict', 'initialize', 'train', 'eval', 'backward', 'zeroGrad', 'step'];

/** Their last argument is the options. */
const abortable: readonly AskedMethod[] = [
  'preprocess',
  'embed',
  'classify',
  'classifyTokens',
  'classifyZeroShot',
  'fillMask',
  'answer',
  'rank',
  'generate',
  'attribute',
  'fineTune',
];

export function serve(load: typeof Load, models: Models, endpoint: Comlink.Endpoint): void {
  let attn: Attn | undefined;
  let loaded: Engine | undefined;
  /** A model's word embeddings are an entry as well. */
  const modules = new Map<number, { owner: string; layer: NativeLayer; queue: ReadWriteQueue; model?: TextModel; words?: number }>();
  const all = new ReadWriteQueue();
  const tasks = new Map<number, AbortController>();
  let lastId = 0;

  function engine(): Engine {
    if (!loaded) throw new AttnError('INTERNAL', 'attn/worker: nothing is loaded yet');
    return loaded;
  }
  const signature = (name: string, owner?: string) => engine().signatures.find((each) => each.name === name && each.owner === owner)!;

  const inTurn = <T>(queue: ReadWriteQueue, changes: boolean, work: () => T | Promise<T>) => all.take(false, () => queue.take(changes, work));

  const moduleOf = (id: number, name: string) => {
    const module = modules.get(id);
    if (!module) throw new AttnError('DISPOSED', `${name}: this module was disposed of`, { op: name });
    return module;
  };

  const withModules = (leaves: readonly Leaf[]) =>
    leaves.map((leaf) =>
      typeof leaf === 'object' && 'modules' in leaf
        ? { ...leaf, modules: leaf.modules.map((id) => (op: string) => moduleOf(id as unknown as number, op).layer) }
        : leaf,
    );

  /** After the caller has answered the last report. If the callback throws, the work is aborted. */
  async function withProgress<P, T>(
    onProgress: ((p: P) => unknown) | undefined,
    work: (signal: AbortSignal, onProgress: { onProgress?: (p: P) => void }) => Promise<T>,
    task?: number,
    isAborted = false,
  ): Promise<T> {
    const controller = new AbortController();
    if (isAborted) controller.abort();
    if (task !== undefined) tasks.set(task, controller);
    const reports = new Set<Promise<unknown>>();
    const report = (p: P) => {
      const answer = Promise.resolve(onProgress!(p));
      reports.add(answer);
      answer.then(
        () => reports.delete(answer),
        () => controller.abort(), // rethrown below
      );
    };
    const [done] = await Promise.allSettled([work(controller.signal, onProgress ? { onProgress: report } : {})]);
    if (task !== undefined) tasks.delete(task);
    const seen = await Promise.allSettled(reports);
    (onProgress as Comlink.ProxyMethods | undefined)?.[Comlink.releaseProxy]();
    for (const each of [...seen, done]) if (each.status === 'rejected') throw each.reason;
    return (done as PromiseFulfilledResult<T>).value;
  }

  /** Releases the lock of the last hello(). */
  let release = (): void => {};
  const host: Host = {
    hello(lock) {
      release();
      return new Promise((held) => {
        if (lock === undefined) return held(false);
        const released = new Promise<void>((resolve) => (release = resolve));
        // The request fails in an opaque origin.
        const hold = () => {
          held(true);
          return released;
        };
        navigator.locks.request(lock, hold).catch(() => held(false));
      });
    },
    async load(options, onProgress) {
      attn = await withProgress(onProgress, (_, reporting) => load({ ...options, ...reporting }));
      loaded = engineOf(attn);
      // Functions cannot be sent.
      return JSON.parse(JSON.stringify(loaded.signatures)) as readonly Signature[];
    },
    info: () => engine().info,
    call: (name, leaves) => move(engine().call(name, signature(name), withModules(leaves))),
    create(owner, leaves) {
      modules.set(++lastId, { owner, layer: engine().create(owner, withModules(leaves)), queue: new ReadWriteQueue() });
      return lastId;
    },
    callModule(id, name, leaves) {
      const { owner, layer, queue } = moduleOf(id, name);
      return inTurn(queue, changing.includes(name), () => move(engine().call(opOf(owner, name), signature(name, owner), leaves, layer)));
    },
    async release(id) {
      const module = modules.get(id);
      modules.delete(id);
      if (!module) return;
      const { model, words, layer, queue } = module;
      if (words !== undefined) modules.delete(words);
      await inTurn(queue, true, () => (model ? model.dispose() : engine().free(layer)));
    },
    abort(task) {
      tasks.get(task)?.abort();
    },
    loadModel: (task, source, options, onProgress) =>
      all.take(false, async () => {
        let made: TextModel | undefined;
        try {
          const model = await withProgress(
            onProgress,
            async (signal, reporting) => (made = await attn!.loadModel(source, { ...options, signal, ...reporting })),
            task,
          );
          const { handlesOf } = await models();
          const handles = handlesOf(model);
          const [id, words, queue] = [++lastId, ++lastId, new ReadWriteQueue()];
          const isText = handles.words !== undefined;
          modules.set(id, { owner: internalClass, layer: handles.model, queue, model, ...(isText && { words }) });
          if (isText) modules.set(words, { owner: 'Embedding', layer: handles.words!, queue });
          const { config, labels, notes, weights, prompts, maskToken } = model;
          return { id, words: isText ? words : undefined, config, task: model.task, labels, notes, weights, prompts, maskToken };
        } catch (error) {
          made?.dispose();
          throw error;
        }
      }),
    async askModel(id, name, args, task, onProgress, isAborted) {
      const { model, queue } = moduleOf(id, name);
      const method = (model as unknown as Readonly<Record<string, (...args: readonly unknown[]) => unknown>>)[name]!;
      if (!abortable.includes(name)) return inTurn(queue, false, async () => move(await method.apply(model, [...args])));
      const [given, options] = [args.slice(0, -1), args.at(-1)];
      return move(
        await withProgress(
          onProgress,
          (signal, { onProgress }) => {
            const reporting = onProgress && { [name === 'generate' ? 'onToken' : 'onProgress']: onProgress };
            return inTurn(queue, false, () => method.call(model, ...given, { ...(options as object), signal, ...reporting }));
          },
          task,
          isAborted,
        ),
      );
    },
    chatFilesOf: async (id) => (await models()).chatFilesOf(moduleOf(id, 'applyChatTemplate').model!),
    factsOf(id) {
      const { config, task, labels } = moduleOf(id, 'fineTune').model!;
      return { config, task, labels };
    },
    dispose: () => all.take(true, () => attn?.dispose()),
  };
  keepErrors();
  Comlink.expose(host, endpoint);
}
