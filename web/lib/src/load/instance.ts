/** Builds the public API from the module's signatures. */
import type { Attn } from '../attn.js';
import { disposeSymbol, endWith, registryOf } from '../platform/dispose.js';
import { Engine, type Runtime } from '../engine/engine.js';
import { AttnError, withArticle } from '../args/error.js';
import type { NativeLayer } from '../engine/native.js';
import { complete } from '../engine/training.js';
import { scriptsFailed } from '../platform/asset_urls.js';
import { defineMethods, internalClass, type LookUp, named, readArguments, type Signature, usedBy } from '../args/signature.js';
import { writeSafetensors } from '../model/safetensors.js';
import type { ModelContext } from '../model/model_context.js';
import type { Platform } from './platform.js';

class Adopted {
  layer: { dispose(): void } | undefined;
  readonly #brand = true;

  constructor(
    readonly handle: NativeLayer,
    readonly owner: object,
  ) {}

  /** A Proxy could intercept instanceof. */
  static is(value: unknown): value is Adopted {
    return typeof value === 'object' && value !== null && #brand in value;
  }
}

type LayerClass = new (...args: unknown[]) => object;

function createClass(engine: Engine, constructor: Signature, forgotten: ModelContext['forgotten']): LayerClass {
  const name = constructor.owner!;
  let of: (op: string, self: Layer) => NativeLayer;
  class Layer {
    // Each instance has its own classes, so this identifies layers of other instances.
    #handle: NativeLayer | undefined;
    /** Keeps the owner alive. */
    #adopted: Adopted | undefined;
    #uses: readonly LookUp[] = [];

    constructor(...args: unknown[]) {
      engine.assertUsable(name);
      const [adopted] = args;
      if (Adopted.is(adopted)) {
        this.#handle = adopted.handle;
        this.#adopted = adopted;
        adopted.layer = this;
      } else {
        const leaves = readArguments(name, constructor, args);
        this.#uses = usedBy(leaves);
        this.#handle = engine.create(name, leaves);
        forgotten?.register(this, this.#handle, this);
      }
      // Optimisers cannot be passed to optimisers.
      if (!this.#uses.length) engine.lookUps.set(this, (op) => of(op, this));
    }

    static {
      of = (op, self) => {
        // Also true for `const { forward } = mha`.
        if (typeof self !== 'object' || self === null || !(#handle in self))
          throw new AttnError('WRONG_INSTANCE', `${op}: this is another object, expected ${withArticle(name)} of this instance`, { op });
        if (engine.disposed || !self.#handle)
          throw new AttnError('DISPOSED', `${op}: this ${engine.disposed ? 'instance' : 'module'} was disposed of`, { op });
        for (const find of self.#uses) find(op);
        return self.#handle;
      };
    }

    dispose(): void {
      const handle = this.#handle;
      if (!handle) return;
      this.#handle = undefined;
      if (this.#adopted) return void (this.#adopted.layer = undefined);
      forgotten?.unregister(this);
      engine.free(handle);
    }

    [disposeSymbol](): void {
      this.dispose();
    }
  }

  defineMethods(Layer, name, engine.signatures, (self, op, signature, args) => {
    of(op, self);
    engine.assertUsable(op);
    const leaves = readArguments(op, signature, args);
    return engine.call(op, signature, leaves, of(op, self)); // a getter may have disposed of the module
  });
  return named(name, Layer);
}

const engines = new WeakMap<Attn, Engine>();

export const engineOf = (attn: Attn): Engine => engines.get(attn)!;

interface Parts extends Runtime, Pick<Platform, 'models' | 'lazyTasks' | 'shards' | 'gguf' | 'ggufParts' | 'images'> {
  readonly chat: Platform['chat'] | undefined;
  readonly disk: Platform['disk'] | undefined;
}

export function createInstance(runtime: Parts): Attn {
  const engine = new Engine(runtime);
  endWith(engine, runtime.stop); // threads would keep running
  const forgotten = registryOf<NativeLayer>((handle) => engine.free(handle));
  const all: Record<PropertyKey, unknown> = {
    get info() {
      return engine.info;
    },
    writeSafetensors(...args: readonly unknown[]) {
      engine.assertUsable('writeSafetensors');
      return writeSafetensors(...args);
    },
    dispose: () => engine.dispose(),
    [disposeSymbol]: () => engine.dispose(),
  };
  const context: ModelContext = {
    engine,
    instance: () => attn,
    disk: runtime.disk,
    lazyTasks: () => runtime.lazyTasks().catch(scriptsFailed),
    chat: () => runtime.chat!().catch(scriptsFailed),
    shards: () => runtime.shards().catch(scriptsFailed),
    gguf: () => runtime.gguf().catch(scriptsFailed),
    ggufParts: () => runtime.ggufParts().catch(scriptsFailed),
    images: runtime.images && (() => runtime.images!().catch(scriptsFailed)),
    forgotten,
    adopt(name, handle, owner) {
      const adopted = new Adopted(handle, owner);
      new (all[name] as LayerClass)(adopted);
      return adopted;
    },
  };
  all['loadModel'] = async (source: unknown, options?: unknown) => (await runtime.models().catch(scriptsFailed)).loadModel(context, source, options);
  for (const signature of engine.signatures) {
    const { name, owner } = signature;
    if (owner === internalClass) continue;
    if (owner === undefined)
      all[name] = named(name, (...args: unknown[]) => {
        engine.assertUsable(name);
        return engine.call(name, signature, readArguments(name, signature, args));
      });
    else if (name === 'constructor') all[owner] = createClass(engine, signature, forgotten);
  }
  complete(all);
  const attn = Object.freeze(all) as unknown as Attn;
  engines.set(attn, engine);
  return attn;
}
