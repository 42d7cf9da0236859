/**
 * Batches, order, validation and progress; the module computes the steps. text_model_fine_tuning.cpp is the native
 * counterpart.
 */
import type { Encoding, FineTuneOptions, FineTuneResult } from '../attn.js';
import { aborted } from '../platform/abort.js';
import { elements, isPlainObject } from '../args/arrays.js';
import { yieldToEventLoop } from '../platform/event_loop.js';
import { AttnError, describe, fail, reading } from '../args/error.js';
import { membersOf } from './json_members.js';
import type { Result } from '../engine/heap.js';
import { encodeOptionsOf, type ModelAccess, tokenized, withTextIndex } from './batches.js';
import { signatureOf, textLabelsOf } from './model_state.js';
import { fineTuneOptions, readEncoded } from '../args/model_options.js';
import { readCallback, readSignal, tell } from '../args/options.js';
import { readArguments, readMembers, whole } from '../args/signature.js';
import { decodeUtf8, encodeUtf8 } from '../platform/utf8.js';
import { encodingOf, type EncodeOptions, type Tokenizer } from '../tokenizer/tokenizer.js';

const op = 'fineTune';

type Text = string | readonly [string, string];
interface Example {
  readonly text: Text;
  readonly label: number | string;
}
interface LanguageExample {
  readonly text: string;
  readonly prompt: string;
}
type Row = Omit<ReturnType<typeof tokenized>, 'truncated'>;

/** Target of a position that has no loss, as torch's ignore_index. */
const ignoreIndex = -100;

/** Members of config.json that describe a head. */
const headMembers = ['architectures', 'id2label', 'label2id', 'num_labels', 'problem_type'];

function readText(argument: string, value: unknown): Text {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) fail('ARGUMENT', op, argument, describe(value), 'a string or a pair of strings');
  const parts = elements(value as unknown[], (part, i) => {
    if (typeof part !== 'string') fail('ARGUMENT', op, `${argument}[${i}]`, describe(part), 'a string');
    return part as string;
  });
  if (parts.length !== 2) fail('ARGUMENT', op, argument, `has ${parts.length} elements`, 'a pair of strings');
  return parts as unknown as [string, string];
}

function readList<T>(value: unknown, expected: string, read: (example: unknown, path: string) => T): T[] {
  return reading(op, 'examples', () => {
    if (!Array.isArray(value)) fail('ARGUMENT', op, 'examples', describe(value), `an Array of ${expected}`);
    const examples = elements(value as unknown[], (example, i) => read(example, `examples[${i}]`));
    if (examples.length === 0) fail('ARGUMENT', op, 'examples', 'is empty', 'at least one');
    return examples;
  });
}

const readExamples = (value: unknown): Example[] =>
  readList(value, '{ text, label }', (example, path) => {
    if (!isPlainObject(example)) fail('ARGUMENT', op, path, describe(example), '{ text, label }');
    const [text, label] = readMembers(op, path, example, ['text', 'label'], `${path}.`);
    if (typeof label !== 'string' && typeof label !== 'number') fail('ARGUMENT', op, `${path}.label`, describe(label), 'a number or a string');
    return { text: readText(`${path}.text`, text), label: label as number | string };
  });

const readLanguageExamples = (value: unknown): LanguageExample[] =>
  readList(value, 'strings or { text, prompt }', (example, path) => {
    if (typeof example === 'string') return { text: example, prompt: '' };
    if (!isPlainObject(example)) fail('ARGUMENT', op, path, describe(example), 'a string or { text, prompt }');
    const [text, prompt = ''] = readMembers(op, path, example, ['text', 'prompt'], `${path}.`);
    if (typeof text !== 'string') fail('ARGUMENT', op, `${path}.text`, describe(text), 'a string');
    if (typeof prompt !== 'string') fail('ARGUMENT', op, `${path}.prompt`, describe(prompt), 'a string');
    return { text: text as string, prompt: prompt as string };
  });

export function readFineTuneOptions(value: unknown) {
  return reading(op, 'options', () => {
    const given = value === undefined ? [] : readMembers(op, 'options', value, fineTuneOptions);
    const [epochs, batchSize, learningRate, weightDecay, layers, labels, seed, validation, signal, onProgress] = given;
    const number = (name: string, each: unknown, otherwise: number) => {
      if (each === undefined) return otherwise;
      if (typeof each !== 'number') fail('ARGUMENT', op, name, describe(each), 'a number');
      return each as number;
    };
    const share = number('validation', validation, 0);
    if (!(share >= 0 && share < 1)) fail('CONFIG', op, 'validation', describe(validation), 'a number of at least 0 and below 1');
    if (typeof layers === 'string' && layers !== 'all' && layers !== 'head')
      fail('CONFIG', op, 'layers', `is ${JSON.stringify(layers)}`, "'head', 'all' or a number of layers");
    const names = labels === undefined ? undefined : readLabels(labels);
    const count = layers === undefined || layers === 'all' ? undefined : layers === 'head' ? 0 : whole(op, 'layers', layers, 0, 2 ** 31 - 1);
    return {
      epochs: epochs === undefined ? 3 : whole(op, 'epochs', epochs, 1, 2 ** 24),
      batchSize: batchSize === undefined ? 16 : whole(op, 'batchSize', batchSize, 1, 2 ** 20),
      learningRate: number('learningRate', learningRate, count === 0 ? 1e-3 : 5e-5),
      weightDecay: number('weightDecay', weightDecay, 0.01),
      layers: count,
      labels: names,
      seed: seed === undefined ? 0 : whole(op, 'seed', seed, 0, Number.MAX_SAFE_INTEGER),
      validation: share,
      signal: readSignal(op, signal),
      onProgress: readCallback(op, 'onProgress', onProgress) as FineTuneOptions['onProgress'],
    };
  });
}

function readLabels(value: unknown): readonly string[] {
  if (!Array.isArray(value)) fail('ARGUMENT', op, 'labels', describe(value), 'an Array of strings');
  const labels = elements(value as unknown[], (label, i) => {
    if (typeof label !== 'string') fail('ARGUMENT', op, `labels[${i}]`, describe(label), 'a string');
    return label as string;
  });
  const twice = labels.findIndex((label, i) => labels.indexOf(label) < i);
  if (twice >= 0) fail('ARGUMENT', op, `labels[${twice}]`, `is ${JSON.stringify(labels[twice])} again`, 'distinct labels');
  if (labels.length === 0) fail('ARGUMENT', op, 'labels', 'is empty', 'at least one');
  return labels;
}

function labelsOf(examples: readonly Example[], asked: readonly string[] | undefined, ofModel: readonly string[] | undefined): readonly string[] {
  if (asked || ofModel) return (asked ?? ofModel)!;
  const names = [...new Set(examples.map(({ label }) => label).filter((label) => typeof label === 'string'))];
  if (names.length > 0)
    return names
      .map((name) => [encodeUtf8(name), name] as const)
      .sort(byBytes)
      .map(([, name]) => name);
  const most = examples.reduce((max, { label }) => (Number.isInteger(label) ? Math.max(max, label as number) : max), 1);
  const count = examples.length;
  if (most > Math.max(1, count)) fail('OUT_OF_RANGE', op, 'labels', `has ${most + 1} entries`, `at most ${count + 1} for ${count} examples`);
  return Array.from({ length: most + 1 }, (_, i) => `LABEL_${i}`);
}

/** Orders UTF-8 bytes as std::string does in C++. */
function byBytes([a]: readonly [Uint8Array, string], [b]: readonly [Uint8Array, string]): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; ++i) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

function targetsOf(examples: readonly Example[], labels: readonly string[]): number[] {
  return examples.map(({ label }, i) => {
    if (typeof label === 'number') return label;
    const index = labels.indexOf(label);
    if (index < 0) fail('OUT_OF_RANGE', op, `examples[${i}].label`, `is ${JSON.stringify(label)}`, `one of ${labels.join(', ')}`);
    return index;
  });
}

/** Writes config.json for a model whose files contained no head. */
function configWith(members: readonly string[], architecture: string, labels: readonly string[]): string {
  const kept = members.filter((member) => !headMembers.includes(JSON.parse(/^"(?:[^"\\]|\\.)*"/.exec(member)![0]) as string));
  const names = labels.map((label, i) => `"${i}": ${JSON.stringify(label)}`).join(', ');
  const numbers = labels.map((label, i) => `${JSON.stringify(label)}: ${i}`).join(', ');
  const head = [`"architectures": ["${architecture}ForSequenceClassification"]`, `"id2label": {${names}}`, `"label2id": {${numbers}}`];
  return `{\n  ${[...head, ...kept].join(',\n  ')}\n}\n`;
}

/** The padding value is irrelevant: it is masked out. */
function padded(rows: readonly Row[]): Omit<Encoding, 'tokens' | 'offsets' | 'truncated'> {
  const length = Math.max(...rows.map(({ ids }) => ids.length));
  const size = rows.length * length;
  const [inputIds, attentionMask, tokenTypeIds] = encodingOf(op, size);
  rows.forEach(({ ids, types }, i) => {
    inputIds.set(ids, i * length);
    tokenTypeIds.set(types, i * length);
    attentionMask.fill(1, i * length, i * length + ids.length);
  });
  return { inputIds, attentionMask, tokenTypeIds, dims: [rows.length, length] };
}

/** `next`: the id of the next token at positions before tokens that contain more than the prompt. */
function languageRow(tokenizer: Tokenizer, { text, prompt }: LanguageExample, index: number, limit: EncodeOptions): Row & { next: number[] } {
  const { inputIds: ids, offsets, truncated } = withTextIndex(op, index, () => tokenizer.encode([prompt + text], limit));
  const first = offsets[0]!.findIndex((offset) => offset !== null && offset[1] > prompt.length);
  if (first < 0 || ids.length === 1) {
    const help = truncated[0] ? "The prompt alone is longer than the model's positions" : 'The first token has none before it';
    fail('ARGUMENT', op, `examples[${index}]`, 'is too short', 'a text with at least one token to predict', help);
  }
  const next = Array.from(ids, (_, i) => (i + 1 >= Math.max(first, 1) && i + 1 < ids.length ? ids[i + 1]! : ignoreIndex));
  return { index, ids, types: new Int32Array(ids.length), next };
}

const busy = new WeakSet<object>();

export async function fineTune({ find, replaceHead }: ModelAccess, model: object, given: unknown, options: unknown): Promise<FineTuneResult> {
  const { about, tokenizer, context, base } = find();
  const { engine } = context;
  engine.assertUsable(op);
  const ofTokens = about.task === 'text-generation';
  const examples = ofTokens ? readLanguageExamples(given) : readExamples(given);
  const { epochs, batchSize, learningRate, weightDecay, layers, seed, validation, signal, onProgress, ...asked } = readFineTuneOptions(options);
  if (signal?.aborted) throw aborted(signal, op);
  if (busy.has(model)) throw new AttnError('BUSY', `${op}: this model is being trained already`, { op });
  if (about.quantized)
    fail('UNSUPPORTED', op, 'the model', 'is int8, which has no gradients', 'float32 weights', "Load the model with weights: 'float32'");
  if (ofTokens && asked.labels) fail('ARGUMENT', op, 'labels', 'are given', 'no labels for a language model');
  const before = textLabelsOf(about);
  const labels = ofTokens ? [] : labelsOf(examples as Example[], asked.labels, before);
  const isNew = !ofTokens && (labels.length !== before?.length || labels.some((label, i) => label !== before[i]));
  const labelled = ofTokens ? [] : targetsOf(examples as Example[], labels);
  const headOnly = layers === 0 && !ofTokens;

  const call = (name: string, ...args: readonly unknown[]) => {
    const { handle } = find();
    engine.assertUsable(op);
    const signature = signatureOf(engine, name);
    return engine.call(op, signature, readArguments(op, signature, args), handle) as Result;
  };
  const tensor = (values: readonly number[]) => ({ data: Float32Array.from(values), dims: [values.length] });
  const turn = async () => {
    await yieldToEventLoop();
    if (signal?.aborted) throw aborted(signal, op);
  };
  busy.add(model);
  try {
    const rows: Row[] = [];
    const targets: (readonly number[])[] = labelled.map((target) => [target]); // of an example
    const limit = encodeOptionsOf(op, about, {});
    for (const [i, example] of examples.entries()) {
      if (i % 64 === 63) await turn();
      if (ofTokens) {
        const row = languageRow(tokenizer, example as LanguageExample, i, limit);
        rows.push(row);
        targets.push(row.next);
      } else {
        rows.push(tokenized(op, tokenizer, example.text, i, limit));
      }
    }
    const order = (count: number, epoch: number) => [...call('trainingOrder', count, epoch, seed).entries[0]!.tensor.data];
    const places = order(rows.length, 0);
    const heldOut = Math.min(rows.length - 1, Math.round(validation * rows.length));
    const [validating, training] = [places.slice(0, heldOut), places.slice(heldOut)];
    const perEpoch = Math.ceil(training.length / batchSize);
    const steps = epochs * perEpoch;
    const begun = call('beginFineTuning', tensor(labelled), isNew ? encodeUtf8(JSON.stringify(labels)) : undefined, {
      steps,
      learningRate,
      weightDecay,
      layers,
      seed,
    });
    if (isNew) {
      const name = `${base}config.json`;
      const config = configWith(membersOf(decodeUtf8(find().files.get(name)!)), begun.entries[0]!.name as string, labels);
      replaceHead(labels, new Map([...find().files, [name, encodeUtf8(config)]]), JSON.parse(config) as Record<string, unknown>);
    }

    const batchOf = (some: readonly number[]) => some.map((place) => rows[place]!).sort((a, b) => b.ids.length - a.ids.length);
    const targetsAt = (some: readonly Row[]) => {
      const longest = ofTokens ? some[0]!.ids.length : 1;
      return some.flatMap(({ index }) => [...targets[index]!, ...new Array<number>(longest - targets[index]!.length).fill(ignoreIndex)]);
    };
    const encoded = (name: string, some: readonly Row[], others: Readonly<Record<string, unknown>>) => {
      const { handle } = find();
      engine.assertUsable(op);
      const signature = signatureOf(engine, name);
      return engine.call(op, signature, readEncoded(op, signature, padded(some), others), handle) as Result;
    };
    const portions = (some: readonly number[]) =>
      Array.from({ length: Math.ceil(some.length / batchSize) }, (_, i) => batchOf(some.slice(i * batchSize, (i + 1) * batchSize)));
    const vectors: Float32Array[] = [];
    if (headOnly)
      for (const some of portions(places)) {
        await turn();
        const { data, dims } = encoded('poolForHead', some, {}).entries[0]!.tensor;
        const width = dims[1]!;
        some.forEach(({ index }, i) => (vectors[index] = data.slice(i * width, (i + 1) * width)));
      }
    const pooledAt = (some: readonly Row[]) => {
      const width = vectors[some[0]!.index]!.length;
      const data = new Float32Array(some.length * width);
      some.forEach(({ index }, i) => data.set(vectors[index]!, i * width));
      return { data, dims: [some.length, width] };
    };
    const run = (ofAll: string, ofHead: string, some: readonly Row[]) => {
      const wanted = tensor(targetsAt(some));
      return headOnly ? call(ofHead, pooledAt(some), wanted) : encoded(ofAll, some, { targets: wanted });
    };
    const resultsOf = (some: readonly Row[]) =>
      some.reduce((count, { index }) => count + (ofTokens ? targets[index]!.filter((id) => id !== ignoreIndex).length : 1), 0);

    let step = 0;
    let mean = 0;
    let accuracy: number | undefined;
    for (let epoch = 1; epoch <= epochs; ++epoch) {
      let sum = 0;
      const batches = portions(order(training.length, epoch).map((place) => training[place]!));
      for (const [i, some] of batches.entries()) {
        await turn();
        const { number: loss } = run('fineTuneStep', 'fineTuneHeadStep', some);
        sum += loss;
        mean = sum / (i + 1);
        const progress: Parameters<NonNullable<typeof onProgress>>[0] = { epoch, step: ++step, steps, loss };
        if (i + 1 === batches.length && validating.length > 0) {
          let all = 0;
          let count = 0;
          let right: number | undefined;
          for (const part of portions(validating)) {
            await turn();
            const { number, entries } = run('judge', 'judgeHead', part);
            all += number;
            count += resultsOf(part);
            if (entries.length > 0) right = (right ?? 0) + entries[0]!.tensor.data[0]!;
          }
          progress.validationLoss = all / count;
          if (right !== undefined) progress.validationAccuracy = accuracy = right / count;
        }
        tell(op, onProgress, progress);
      }
    }
    return { loss: mean, ...(accuracy !== undefined && { validationAccuracy: accuracy }) };
  } finally {
    busy.delete(model);
    try {
      call('endFineTuning');
    } catch {
      // The model was disposed of, or training never began.
    }
  }
}
