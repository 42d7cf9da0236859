/** Calls of a model in the worker, and the members that all models have. */
import type { Task } from '../attn.js';
import type * as Contract from '../worker.js';
import { AttnError } from '../args/error.js';
import { frozen } from '../args/model_options.js';
import { internalClass, type Leaf, opOf, type Signature } from '../args/signature.js';
import { abortable, aborted } from '../platform/abort.js';
import { asyncDisposeSymbol, disposeSymbol } from '../platform/dispose.js';
import { instanceKey } from '../platform/instance.js';
import * as Comlink from './comlink.js';
import { forOneCall, TransferList } from './transfer_list.js';
import { type Adopted, type RemoteContext, watched } from './worker_client.js';
import type { AnyProgress, AskedMethod, RemoteParts } from './worker_protocol.js';

let lastTask = 0;
export const nextTask = (): number => ++lastTask;

/** If aborted, the task stops in the worker, and the promise rejects at once. */
export async function abortableTask<T>(
  { session }: RemoteContext,
  op: string,
  signal: AbortSignal | undefined,
  work: (task: number) => Promise<T>,
): Promise<T> {
  const task = nextTask();
  const onAbort = () => void session.ask((host) => host.abort(task)).catch(() => {});
  if (signal?.aborted) throw aborted(signal, op);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    return await abortable(signal, () => work(task), op);
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

export interface State extends RemoteContext {
  parts: RemoteParts;
  words: Adopted | undefined;
  disposed: boolean;
}

export let stateOf: (op: string, self: unknown) => State;

export function usable(op: string, self: unknown): State {
  const state = stateOf(op, self);
  state.session.assertUsable(op);
  if (state.disposed) throw new AttnError('DISPOSED', `${op}: this model was disposed of`, { op });
  return state;
}

/** The getters that `read` calls may dispose of the model. */
export async function ask(
  self: unknown,
  name: AskedMethod,
  read: () => { args: readonly unknown[]; options?: { readonly signal: AbortSignal | undefined; readonly onProgress: AnyProgress | undefined } },
): Promise<never> {
  usable(name, self);
  const { args, options } = read();
  forOneCall(args, () => {});
  const state = usable(name, self);
  const { signal, onProgress } = options ?? {};
  const report: AnyProgress | undefined = watched(name, onProgress);
  return abortableTask(state, name, signal, (task) =>
    state.session.call(name, (host) => host.askModel(state.parts.id, name, args, task, report && Comlink.proxy(report)) as Promise<unknown>),
  );
}

export async function call(self: unknown, name: string, args: unknown, read: (op: string, signature: Signature) => readonly Leaf[]): Promise<never> {
  const { signatures, session, parts } = usable(name, self);
  const signature = signatures.find((each) => each.owner === internalClass && each.name === name)!;
  const op = opOf(internalClass, name);
  const leaves = forOneCall(args, () => new TransferList().leaves(read(op, signature)));
  usable(name, self);
  return session.call(op, (host) => host.callModule(parts.id, name, leaves) as Promise<unknown>);
}

/** The members of both kinds of models. */
export class RemoteModel {
  readonly #state: State;

  constructor(context: RemoteContext, parts: RemoteParts) {
    const own = { ...parts, config: frozen(parts.config), labels: parts.labels && frozen(parts.labels), notes: frozen(parts.notes) };
    this.#state = { ...context, parts: own, words: undefined, disposed: false };
    context.forgotten?.register(this, parts.id, this);
  }

  static {
    stateOf = (op, self) => {
      if (typeof self !== 'object' || self === null || !(#state in self))
        throw new AttnError('WRONG_INSTANCE', `${op}: this is another object, expected a model`, { op });
      return self.#state;
    };
  }

  get config(): Promise<Readonly<Record<string, unknown>>> {
    return (async () => usable('config', this).parts.config)();
  }

  get notes(): Promise<readonly string[]> {
    return (async () => usable('notes', this).parts.notes)();
  }

  get labels(): Promise<readonly string[] | undefined> {
    return (async () => usable('labels', this).parts.labels)();
  }

  get task(): Promise<Task> {
    return (async () => usable('task', this).parts.task)();
  }

  get weights(): Promise<'float32' | 'int8'> {
    return (async () => usable('weights', this).parts.weights)();
  }

  async parameterShapes(): Promise<ReadonlyMap<string, unknown>> {
    return ask(this, 'parameterShapes', () => ({ args: [] }));
  }

  async stateDict(): Promise<unknown> {
    return ask(this, 'stateDict', () => ({ args: [] }));
  }

  get [instanceKey](): Contract.Attn {
    return usable('model', this).instance();
  }

  async dispose(): Promise<void> {
    const state = stateOf('dispose', this);
    if (state.disposed) return;
    state.disposed = true;
    state.forgotten?.unregister(this);
    if (!state.session.disposed) await state.session.ask((host) => host.release(state.parts.id)).catch(() => {});
  }

  [disposeSymbol](): Promise<void> {
    return this.dispose();
  }

  [asyncDisposeSymbol](): Promise<void> {
    return this.dispose();
  }
}
