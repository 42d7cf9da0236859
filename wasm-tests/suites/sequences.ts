/**
 * Random sequences of operations over several instances: load, construct, load and draw weights, run, trace, train,
 * make mistakes, dispose. A model tracks which objects are alive and which numbers are expected; a separate instance
 * computes these numbers.
 */
import type { Attn, EncoderResult, ErrorCode, Module, Tensor } from 'attn';
import { assert } from 'chai';
import fc from 'fast-check';
import { assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { disposeSymbol, host, loadHere } from '../support/host.ts';
import { assertSameBits, mask, random } from '../support/tensors.ts';

const seed = 19580415;
// Checked builds are slow. An instance with threads reserves its whole memory in the address space until it is
// collected, and pages run out of it.
const numRuns = host.build !== 'release' ? 20 : host.threads === 1 ? 80 : host.engine === 'node' ? 30 : 10;
const slots = 3;

type Runs = Module & { forward(...args: unknown[]): unknown };
const kinds = {
  attention: (attn: Attn) => new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2, dropout: 0.25, addBiasKv: true }),
  layer: (attn: Attn) => new attn.TransformerEncoderLayer({ dModel: 8, nhead: 2, dimFeedforward: 12, gated: true }),
  encoder: (attn: Attn) => new attn.TransformerEncoder({ dModel: 8, nhead: 4, dimFeedforward: 12, numLayers: 2, normFirst: true, finalNorm: true }),
  classifier: (attn: Attn) =>
    new attn.TransformerClassifier({ dModel: 8, nhead: 1, dimFeedforward: 12, numLayers: 1, numClasses: 3, pooling: 'mean' }),
  embedding: (attn: Attn) => new attn.Embedding({ numEmbeddings: 9, embeddingDim: 4, paddingIdx: 2 }),
};
type Kind = keyof typeof kinds;
const make = (attn: Attn, kind: Kind): Runs => kinds[kind](attn);

type Weights = { readonly how: 'drawn' | 'loaded'; readonly seed: number };
function setWeights(module: Module, { how, seed: from }: Weights): void {
  if (how === 'drawn') return void module.initialize({ scheme: from % 2 ? 'xavier_normal' : 'torch', seed: from });
  const g = new Generator(from);
  module.loadStateDict(new Map([...module.parameterShapes()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, dims]) => [name, random(g, dims)])));
}

/** Runs a forward whose inputs and options follow from a number; returns all results in a fixed order. */
function forward(module: Runs, kind: Kind, number: number, traced: boolean): Tensor[] {
  const g = new Generator(number);
  const [B, L] = [1 + g.below(3), 1 + g.below(6)];
  if (kind === 'embedding')
    return [
      module.forward(
        Array.from({ length: B * L }, () => g.below(9)),
        [B, L],
      ) as Tensor,
    ];
  const x = random(g, [B, L, 8]);
  const keyPaddingMask = g.below(2) ? mask('attend', [B, L], Array.from({ length: B * L }, () => g.below(4))) : undefined; // prettier-ignore
  const common = { isCausal: g.below(2) === 0, keyPaddingMask };
  if (kind === 'attention') {
    const r = module.forward(x, undefined, undefined, { ...common, needWeights: traced, trace: traced }) as {
      output: Tensor;
      weights?: Tensor;
      trace?: object;
    };
    return [r.output, ...(r.weights ? [r.weights] : []), ...Object.values(r.trace ?? {})];
  }
  const more = traced && { outputAttentions: true, outputHiddenStates: true, trace: {} };
  const r = module.forward(x, { ...common, ...more }) as EncoderResult & { logits?: Tensor };
  const traces = [...(r.trace ?? [])].flatMap(([, trace]) => Object.values(trace) as Tensor[]);
  return [r.output, ...(r.logits ? [r.logits] : []), ...(r.attentions ?? []), ...(r.hiddenStates ?? []), ...traces];
}

interface ModuleModel {
  readonly kind: Kind;
  alive: boolean;
  weights: Weights;
  training: { readonly seed: number; step: number } | undefined;
}
interface InstanceModel {
  alive: boolean;
  readonly modules: ModuleModel[];
}
interface Instance {
  readonly attn: Attn;
  readonly modules: Runs[];
  readonly used: number;
}
type Model = (InstanceModel | undefined)[];
type Real = (Instance | undefined)[];

describe(`sequences (fast-check, seed ${seed})`, () => {
  let twin: Attn;
  let steps = 0;
  const counts: Record<string, number> = {};
  before(async () => void (twin = await loadHere()));
  after(() => {
    twin.dispose();
    host.note(`sequences: ${steps} steps (${Object.entries(counts).map(([name, n]) => `${name} ${n}`)})`); // prettier-ignore
  });

  /** Computes the expected numbers with a new module in an instance without history. */
  function expected({ kind, weights, training }: ModuleModel, number: number, traced: boolean): Tensor[] {
    const module = make(twin, kind);
    setWeights(module, weights);
    if (training) {
      module.train({ seed: training.seed });
      for (let i = 0; i < training.step; i++) forward(module, kind, 0, false);
    }
    const result = forward(module, kind, number, traced);
    module.dispose();
    return result;
  }

  const count = (name: string) => {
    steps++;
    counts[name] = (counts[name] ?? 0) + 1;
  };

  /** Defines a kind of step; `act` gets the model and the real object of an occupied slot. */
  function step<P extends object>(
    name: string,
    parameters: fc.Arbitrary<P>,
    act: (p: P, model: InstanceModel, real: Instance, models: Model, reals: Real) => void,
  ): fc.Arbitrary<fc.AsyncCommand<Model, Real>> {
    return fc.tuple(fc.nat(slots - 1), parameters).map(([slot, p]) => ({
      check: (model) => model[slot] !== undefined,
      run: async (model, real) => {
        count(name);
        act(p, model[slot]!, real[slot]!, model, real);
      },
      toString: () => `${name}(${slot}, ${JSON.stringify(p)})`,
    }));
  }

  /** Defines a step on a module: `work` runs if it is alive; otherwise the same call must be DISPOSED. */
  function onModule<P extends object>(
    name: string,
    parameters: fc.Arbitrary<P>,
    work: (p: P, model: ModuleModel, module: Runs) => void,
    dead: (p: P, module: Runs, kind: Kind) => unknown,
  ) {
    return step(name, fc.record({ which: fc.nat(9), p: parameters }), ({ which, p }, model, real) => {
      if (model.modules.length === 0) return;
      const i = which % model.modules.length;
      const [m, module] = [model.modules[i], real.modules[i]];
      if (model.alive && m.alive) work(p, m, module);
      else assertThrows(() => dead(p, module, m.kind), 'DISPOSED');
    });
  }

  const number = fc.nat(50);
  const kind = fc.constantFrom(...(Object.keys(kinds) as Kind[]));
  const none = fc.constant({});
  const weights = fc.record({ how: fc.constantFrom('drawn', 'loaded'), seed: number }) as fc.Arbitrary<Weights>;
  const wrongCalls: Readonly<Record<string, readonly [ErrorCode, (module: Runs, kind: Kind) => unknown]>> = {
    'another width': [
      'SHAPE',
      (module, of) => (of === 'embedding' ? module.forward([1, 2], [3]) : module.forward(random(new Generator(1), [2, 3, 7]))),
    ],
    'no input': ['ARGUMENT', (module) => module.forward()],
    'an empty state': ['MISMATCH', (module) => module.loadStateDict({})],
    'an unknown scheme': ['CONFIG', (module) => module.initialize({ scheme: 'none' as never })],
    'a negative seed': ['CONFIG', (module) => module.train({ seed: -1 })],
  };

  const commands = [
    fc.nat(slots - 1).map((slot): fc.AsyncCommand<Model, Real> => ({
      check: (model) => !model[slot]?.alive,
      run: async (model, real) => {
        count('load');
        const attn = await loadHere({ maximumMemory: 2 ** 26 });
        attn.softmax(random(new Generator(1), [2, 2]));
        model[slot] = { alive: true, modules: [] };
        real[slot] = { attn, modules: [], used: attn.info.heap.used };
      },
      toString: () => `load(${slot})`,
    })),
    ...[1, 2].map(() =>
      step('construct', fc.record({ kind }), ({ kind: of }, model, real) => {
        if (!model.alive) return void assertThrows(() => make(real.attn, of), 'DISPOSED');
        model.modules.push({ kind: of, alive: true, weights: { how: 'drawn', seed: 0 }, training: undefined });
        real.modules.push(make(real.attn, of));
      }),
    ),
    onModule(
      'weights',
      weights,
      (w, model, module) => void (setWeights(module, w), (model.weights = w)),
      (w, module) => (w.how === 'drawn' ? module.initialize({ seed: w.seed }) : module.loadStateDict({})),
    ),
    ...['run', 'trace', 'run'].map((name) =>
      onModule(
        name,
        fc.record({ number }),
        ({ number: n }, model, module) => {
          const right = expected(model, n, name === 'trace');
          const all = forward(module, model.kind, n, name === 'trace');
          assert.equal(all.length, right.length);
          all.forEach((t, i) => assertSameBits(t, right[i], `${model.kind}, result ${i}`));
          if (model.training && model.kind !== 'embedding') model.training.step++;
        },
        ({ number: n }, module, of) => forward(module, of, n, false),
      ),
    ),
    onModule(
      'state',
      none,
      (_, model, module) => {
        const copy = make(twin, model.kind);
        setWeights(copy, model.weights);
        const right = copy.stateDict();
        const state = module.stateDict();
        assert.sameMembers([...state.keys()], [...right.keys()]);
        for (const [name, t] of state) assertSameBits(t, right.get(name), name);
        copy.dispose();
      },
      (_, module) => module.stateDict(),
    ),
    onModule(
      'train',
      fc.record({ seed: number }),
      ({ seed: s }, model, module) => void (module.train({ seed: s }), (model.training = { seed: s, step: 0 })),
      (_, module) => module.train(),
    ),
    onModule(
      'eval',
      none,
      (_, model, module) => void (module.eval(), (model.training = undefined)),
      (_, module) => module.eval(),
    ),
    // A failed call must not change step or weights; later runs would show it.
    onModule(
      'mistake',
      fc.record({ what: fc.constantFrom(...Object.keys(wrongCalls)) }),
      ({ what }, model, module) => void assertThrows(() => wrongCalls[what][1](module, model.kind), wrongCalls[what][0]),
      ({ what }, module, of) => wrongCalls[what][1](module, of),
    ),
    step('function', fc.record({ number }), ({ number: n }, model, real) => {
      const g = new Generator(n);
      const [q, k, v] = [random(g, [2, 3, 4]), random(g, [2, 5, 4]), random(g, [2, 5, 2])];
      const call = (attn: Attn) => attn.scaledDotProductAttention(q, k, v, { dropout: 0.5, seed: n }).output;
      if (model.alive) assertSameBits(call(real.attn), call(twin));
      else assertThrows(() => call(real.attn), 'DISPOSED');
    }),
    step(
      'foreign',
      fc.record({ slot: fc.nat(slots - 1), which: fc.nat(9), method: fc.constantFrom('forward', 'stateDict', 'eval') }),
      (p, _model, real, _models, reals) => {
        const other = reals[p.slot];
        if (!other || other === real || real.modules.length === 0 || other.modules.length === 0) return;
        count('foreign, in fact');
        const method = (other.modules[p.which % other.modules.length] as unknown as Record<string, (...args: unknown[]) => unknown>)[p.method];
        assertThrows(() => method.call(real.modules[p.which % real.modules.length], [1]), 'WRONG_INSTANCE');
      },
    ),
    step('dispose a module', fc.record({ which: fc.nat(9), bySymbol: fc.boolean() }), ({ which, bySymbol }, model, real) => {
      if (model.modules.length === 0) return;
      const i = which % model.modules.length;
      if (bySymbol) real.modules[i][disposeSymbol]();
      else real.modules[i].dispose();
      model.modules[i].alive = false;
    }),
    step('dispose an instance', fc.record({ sure: fc.nat(3) }), ({ sure }, model, real) => {
      if (sure > 0) return; // rarely, so that instances live long enough
      real.attn.dispose();
      model.alive = false;
    }),
    step('heap', none, (_, model, real) => {
      if (!model.alive) return void assertThrows(() => real.attn.info, 'DISPOSED');
      const alive = real.modules.filter((_m, i) => model.modules[i].alive);
      const parameters = alive.reduce((sum, m) => sum + 4 * m.parameterCount, 0);
      assert.isAtLeast(real.attn.info.heap.used, real.used + parameters);
      if (alive.length === 0) assertReturned(real);
    }),
  ];

  /** Each thread allocates a few bytes at its first task. */
  function assertReturned({ attn, used }: Instance): void {
    assert.isAtMost(attn.info.heap.used - used, host.threads > 1 ? 4096 : 0, 'heap in use');
  }

  it('any order of operations gives the right numbers, the right errors and an unchanged heap', async () => {
    await fc.assert(
      fc.asyncProperty(fc.commands(commands, { maxCommands: 90, size: 'max' }), async (sequence) => {
        const real: Real = Array.from({ length: slots }, () => undefined);
        const model: Model = Array.from({ length: slots }, () => undefined);
        try {
          await fc.asyncModelRun(() => ({ model, real }), sequence);
          real.forEach((instance, i) => {
            if (!instance || !model[i]!.alive) return;
            for (const module of instance.modules) module.dispose();
            assertReturned(instance);
          });
        } finally {
          for (const instance of real) instance?.attn.dispose();
        }
      }),
      { seed, numRuns, interruptAfterTimeLimit: 30000 },
    );
    for (const name of ['load', 'construct', 'weights', 'run', 'trace', 'train', 'mistake', 'dispose a module', 'heap'])
      assert.isAtLeast(counts[name] ?? 0, numRuns / 4, `steps of the kind ${name}`);
    assert.isAtLeast(counts['foreign, in fact'] ?? 0, 1, 'steps with objects of another instance');
  });
});
