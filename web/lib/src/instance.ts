/** The public functions and classes of one running module, made from what it says of itself. */
import type { Attn } from './attn.js';
import { disposeSymbol } from './dispose.js';
import { Engine, type Runtime } from './engine.js';
import { AttnError } from './error.js';
import type { NativeLayer } from './native.js';
import { defineMethods, named, readArguments, type Signature } from './signature.js';
import { writeSafetensors } from './safetensors.js';

function createClass(engine: Engine, constructor: Signature): object {
  const name = constructor.owner!;
  // Only a safety net: a module that is forgotten is freed when it is collected.
  const forgotten = typeof FinalizationRegistry === 'undefined' ? undefined : new FinalizationRegistry<NativeLayer>((handle) => engine.free(handle));

  let of: (op: string, self: Layer) => NativeLayer;
  class Layer {
    // Each instance of attn has classes of its own, so this field tells another instance's modules apart.
    #handle: NativeLayer | undefined;

    constructor(...args: unknown[]) {
      engine.assertUsable(name);
      this.#handle = engine.create(name, readArguments(name, constructor, args));
      forgotten?.register(this, this.#handle, this);
    }

    static {
      of = (op, self) => {
        // Also for `const { forward } = mha`: there is no module to work on.
        if (typeof self !== 'object' || self === null || !(#handle in self))
          throw new AttnError('WRONG_INSTANCE', `${op}: called on what is not a ${name} of this instance`, { op });
        if (engine.disposed || !self.#handle)
          throw new AttnError('DISPOSED', `${op}: this ${engine.disposed ? 'instance' : 'module'} was disposed of`, { op });
        return self.#handle;
      };
    }

    dispose(): void {
      const handle = this.#handle;
      if (!handle) return;
      this.#handle = undefined;
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
    return engine.call(op, signature, leaves, of(op, self)); // once more: a getter may have disposed of it
  });
  return named(name, Layer);
}

const engines = new WeakMap<Attn, Engine>();

/** What is inside an instance. */
export const engineOf = (attn: Attn): Engine => engines.get(attn)!;

export function createInstance(runtime: Runtime): Attn {
  const engine = new Engine(runtime);
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
  for (const signature of engine.signatures) {
    const { name, owner } = signature;
    if (owner === undefined)
      all[name] = named(name, (...args: unknown[]) => {
        engine.assertUsable(name);
        return engine.call(name, signature, readArguments(name, signature, args));
      });
    else if (name === 'constructor') all[owner] = createClass(engine, signature);
  }
  const attn = Object.freeze(all) as unknown as Attn;
  engines.set(attn, engine);
  return attn;
}
