/**
 * Training as contenders: a Transformer encoder with a classifier of every token, cross entropy and AdamW, with the
 * same numbers in attn, tfjs and jax-js. A case's part is `forward`, `forward kept` (values saved for backward),
 * `forward and backward`, or `step`; peers are measured on steps. The output is the losses of the first steps.
 */
import { numbers } from '../cases.mjs';

const compared = 6;
const rates = { learningRate: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 1e-2 };
const normEps = 1e-5;

/** Initial weights by torch's names, shared by all contenders (native/attn_benchmarks.cpp, peers/pytorch.py). */
export function trainingState({ shape: { layers, E, F }, classes }) {
  const dims = [];
  for (let i = 0; i < layers; i++) {
    const add = (name, ...size) => dims.push([`encoder.layers.${i}.${name}`, size]);
    add('self_attn.in_proj_weight', 3 * E, E);
    add('self_attn.in_proj_bias', 3 * E);
    add('self_attn.out_proj.weight', E, E);
    add('self_attn.out_proj.bias', E);
    add('linear1.weight', F, E);
    add('linear1.bias', F);
    add('linear2.weight', E, F);
    add('linear2.bias', E);
    for (const norm of ['norm1', 'norm2']) {
      add(`${norm}.weight`, E);
      add(`${norm}.bias`, E);
    }
  }
  dims.push(['classifier.weight', [classes, E]], ['classifier.bias', [classes]]);
  return Object.fromEntries(
    dims.map(([name, size], i) => {
      const count = size.reduce((a, b) => a * b, 1);
      const data = /norm\d\.weight/.test(name)
        ? new Float32Array(count).fill(1)
        : /norm\d\.bias/.test(name)
          ? new Float32Array(count)
          : numbers(count, 10 + i).map((value) => value / Math.sqrt(E));
      return [name, { data, dims: size }];
    }),
  );
}

export function trainingInputs({ B, S, shape: { E }, classes }) {
  const labels = Int32Array.from(numbers(B * S, 2), (value) => Math.floor(((value + 1) / 2) * classes));
  return { x: { data: numbers(B * S * E, 1), dims: [B, S, E] }, labels };
}

export async function attnTraining(load, { variant }, [{ shape, classes, activation }]) {
  const attn = await load({ variant, threads: 1 });
  return {
    contender: 'attn',
    variant,
    threads: 1,
    attn,
    prepare(one) {
      const { x, labels } = trainingInputs(one);
      const size = { dModel: shape.E, nhead: shape.H, dimFeedforward: shape.F, numLayers: shape.layers, numClasses: classes };
      const made = () => {
        const model = new attn.TransformerClassifier({ ...size, activation, dropout: 0 });
        model.loadStateDict(trainingState(one));
        return { model, optimizer: new attn.AdamW([model], rates) };
      };
      const forward = (model, forBackward) => model.forward(x, { forBackward }).logits;
      const stepOf = ({ model, optimizer }) => {
        const { loss, gradient } = attn.crossEntropy(forward(model, true), labels);
        optimizer.zeroGrad();
        model.backward(gradient);
        optimizer.step();
        return loss;
      };
      const own = made();
      const { gradient } = attn.crossEntropy(forward(own.model, true), labels);
      const call = {
        forward: () => forward(own.model, false),
        'forward kept': () => forward(own.model, true),
        'forward and backward': () => {
          forward(own.model, true);
          own.model.zeroGrad();
          own.model.backward(gradient);
        },
        step: () => stepOf(own),
      }[one.part];
      const output = () => {
        const fresh = made();
        const losses = Array.from({ length: compared }, () => stepOf(fresh));
        fresh.optimizer.dispose();
        fresh.model.dispose();
        return losses;
      };
      const dispose = () => (own.optimizer.dispose(), own.model.dispose());
      return { call, output, dispose };
    },
    dispose: () => attn.dispose(),
  };
}

const layerOf = (state, i) => (name) => state[`encoder.layers.${i}.${name}`];

/**
 * tfjs's matMul uses XNNPACK only for plain matrices, and its gradient would transpose inside the product by slow
 * loops, so both are transposed first.
 */
export function tfjsTraining(tf, [{ activation }]) {
  if (activation !== 'relu') return undefined;
  const linear = (x, weight, bias) => {
    const product = tf.customGrad((x, weight, save) => {
      save([x, weight]);
      return {
        value: tf.matMul(x, tf.transpose(weight)),
        gradFunc: (dy, [x, weight]) => [tf.matMul(dy, weight), tf.matMul(tf.transpose(dy), x)],
      };
    });
    return tf.add(product(x, weight), bias);
  };
  const product = tf.customGrad((a, b, save) => {
    save([a, b]);
    const turned = (x) => tf.transpose(x, [0, 2, 1]);
    return { value: tf.matMul(a, b), gradFunc: (dy, [a, b]) => [tf.matMul(dy, turned(b)), tf.matMul(turned(a), dy)] };
  });
  const norm = (x, weight, bias) => {
    const centred = tf.sub(x, tf.mean(x, -1, true));
    const variance = tf.mean(tf.square(centred), -1, true);
    return tf.add(tf.mul(tf.mul(centred, tf.rsqrt(tf.add(variance, normEps))), weight), bias);
  };
  return {
    contender: 'tfjs-backend-wasm',
    variant: 'simd',
    threads: 1,
    prepare(one) {
      if (one.part !== 'step') return undefined;
      const { B, S, classes, shape } = one;
      const { E, H, layers } = shape;
      const given = trainingInputs(one);
      const x = tf.tensor(given.x.data, [B * S, E]);
      const labels = tf.tidy(() => tf.cast(tf.oneHot(tf.tensor1d(given.labels, 'int32'), classes), 'float32'));
      const made = () => ({
        variables: Object.fromEntries(Object.entries(trainingState(one)).map(([name, { data, dims }]) => [name, tf.variable(tf.tensor(data, dims))])),
        optimizer: tf.train.adam(rates.learningRate, ...rates.betas, rates.eps),
      });
      const heads = (y) => tf.reshape(tf.transpose(tf.reshape(y, [B, S, H, E / H]), [0, 2, 1, 3]), [B * H, S, E / H]);
      const lossOf = (variables) => {
        let y = x;
        for (let i = 0; i < layers; i++) {
          const at = layerOf(variables, i);
          const [q, k, v] = tf.split(linear(y, at('self_attn.in_proj_weight'), at('self_attn.in_proj_bias')), 3, 1).map(heads);
          const weights = tf.softmax(tf.mul(product(q, tf.transpose(k, [0, 2, 1])), 1 / Math.sqrt(E / H)));
          const merged = tf.reshape(tf.transpose(tf.reshape(product(weights, v), [B, H, S, E / H]), [0, 2, 1, 3]), [B * S, E]);
          const attended = linear(merged, at('self_attn.out_proj.weight'), at('self_attn.out_proj.bias'));
          y = norm(tf.add(y, attended), at('norm1.weight'), at('norm1.bias'));
          const hidden = tf.relu(linear(y, at('linear1.weight'), at('linear1.bias')));
          y = norm(tf.add(y, linear(hidden, at('linear2.weight'), at('linear2.bias'))), at('norm2.weight'), at('norm2.bias'));
        }
        const logits = linear(y, variables['classifier.weight'], variables['classifier.bias']);
        return tf.mean(tf.losses.softmaxCrossEntropy(labels, logits, undefined, undefined, tf.Reduction.NONE));
      };
      const stepOf = ({ variables, optimizer }) =>
        tf.tidy(() => {
          const { value, grads } = tf.variableGrads(() => lossOf(variables), Object.values(variables));
          // tfjs has Adam; decaying the weights first makes its step AdamW's.
          for (const each of Object.values(variables)) each.assign(tf.mul(each, 1 - rates.learningRate * rates.weightDecay));
          optimizer.applyGradients(grads);
          return value.dataSync()[0];
        });
      const free = ({ variables, optimizer }) => (tf.dispose(variables), optimizer.dispose());
      const own = made();
      return {
        call: () => stepOf(own),
        output: () => {
          const fresh = made();
          const losses = Array.from({ length: compared }, () => stepOf(fresh));
          free(fresh);
          return losses;
        },
        dispose: () => (free(own), tf.dispose([x, labels])),
      };
    },
    dispose() {},
  };
}

/** jax-js compiles the whole step with its WebAssembly backend. Using an array consumes it; `.ref` adds a reference. */
export function jaxTraining(jax, [{ activation }]) {
  if (activation !== 'relu') return undefined;
  const { numpy: np, nn } = jax;
  const linear = (x, weight, bias) => np.matmul(x, weight.transpose()).add(bias);
  const norm = (x, weight, bias) => nn.standardize(x, -1, { epsilon: normEps }).mul(weight).add(bias);
  return {
    contender: 'jax-js',
    variant: 'wasm, jit',
    threads: 1,
    prepare(one) {
      if (one.part !== 'step') return undefined;
      const { B, S, classes, shape } = one;
      const { E, H, layers } = shape;
      const given = trainingInputs(one);
      const x = np.array(given.x.data).reshape([B * S, E]);
      const labels = nn.oneHot(np.array(given.labels), classes);
      const heads = (y) => np.transpose(y.reshape([B, S, H, E / H]), [0, 2, 1, 3]);
      const lossOf = (state, x, labels) => {
        const use = (name) => state[name].ref;
        let y = x;
        for (let i = 0; i < layers; i++) {
          const at = (name) => use(`encoder.layers.${i}.${name}`);
          const qkv = linear(y.ref, at('self_attn.in_proj_weight'), at('self_attn.in_proj_bias'));
          const [q, k, v] = np.split(qkv, 3, 1).map(heads);
          const weights = nn.softmax(np.matmul(q, np.transpose(k, [0, 1, 3, 2])).mul(1 / Math.sqrt(E / H)), -1);
          const merged = np.transpose(np.matmul(weights, v), [0, 2, 1, 3]).reshape([B * S, E]);
          y = norm(y.add(linear(merged, at('self_attn.out_proj.weight'), at('self_attn.out_proj.bias'))), at('norm1.weight'), at('norm1.bias'));
          const hidden = nn.relu(linear(y.ref, at('linear1.weight'), at('linear1.bias')));
          y = norm(y.add(linear(hidden, at('linear2.weight'), at('linear2.bias'))), at('norm2.weight'), at('norm2.bias'));
        }
        const logits = linear(y, use('classifier.weight'), use('classifier.bias'));
        jax.tree.dispose(state);
        return nn
          .logSoftmax(logits, -1)
          .mul(labels)
          .sum()
          .mul(-1 / (B * S));
      };
      const stepOf = jax.jit((state, first, second, powers, x, labels) => {
        const [loss, gradients] = jax.valueAndGrad(lossOf)(jax.tree.ref(state), x, labels);
        const [beta1, beta2] = rates.betas;
        const next = [{}, {}, {}];
        const corrections = np.split(powers, 2).map((power) => np.subtract(1, power.reshape([])));
        for (const name of Object.keys(state)) {
          const g = gradients[name];
          const m = first[name].mul(beta1).add(g.ref.mul(1 - beta1));
          const v = second[name].mul(beta2).add(np.square(g).mul(1 - beta2));
          const root = np.sqrt(v.ref.div(corrections[1].ref)).add(rates.eps);
          const change = m.ref.div(corrections[0].ref).mul(rates.learningRate).div(root);
          next[0][name] = state[name].mul(1 - rates.learningRate * rates.weightDecay).sub(change);
          next[1][name] = m;
          next[2][name] = v;
        }
        corrections.forEach((each) => each.dispose());
        return [loss, ...next];
      });
      const made = () => {
        const of = (value) => Object.fromEntries(Object.entries(trainingState(one)).map(([name, { data, dims }]) => [name, value(data, dims)]));
        const zeros = () => of((_, dims) => np.zeros(dims));
        return { trees: [of((data, dims) => np.array(data).reshape(dims)), zeros(), zeros()], steps: 0 };
      };
      const run = (own) => {
        const powers = np.array(Float32Array.from(rates.betas, (beta) => beta ** (own.steps + 1)));
        const [loss, ...trees] = stepOf(...own.trees, powers, x.ref, labels.ref);
        own.trees = trees;
        own.steps++;
        const [value] = loss.dataSync();
        // Arrays are lazy: waits for the rest of this step.
        for (const tree of own.trees) for (const each of Object.values(tree)) each.ref.blockUntilReady?.();
        return value;
      };
      const free = ({ trees }) => trees.forEach((tree) => jax.tree.dispose(tree));
      const own = made();
      return {
        call: () => void run(own),
        output: () => {
          const fresh = made();
          const losses = Array.from({ length: compared }, () => run(fresh));
          free(fresh);
          return losses;
        },
        dispose: () => (free(own), x.dispose(), labels.dispose()),
      };
    },
    dispose() {},
  };
}
