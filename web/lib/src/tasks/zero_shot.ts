/** Follows transformers' ZeroShotClassificationPipeline: a head for natural language inference. */
import type { TextModel as Contract } from '../attn.js';
import { fail } from '../args/error.js';
import { readCandidates, readEncoded, readTextOptions, readTexts, zeroShotOptions } from '../args/model_options.js';
import { assertTask, encodeOptionsOf, inBatches, type Row, tokenized } from '../model/batches.js';
import type { ModelState } from '../model/model_state.js';

function encodingOf(rows: readonly Row[], padId: number) {
  const length = Math.max(...rows.map(({ ids }) => ids.length));
  const size = rows.length * length;
  const encoding = {
    inputIds: new Int32Array(size).fill(padId),
    tokenTypeIds: new Int32Array(size),
    attentionMask: new Uint8Array(size),
    dims: [rows.length, length],
  };
  rows.forEach(({ ids, types }, i) => {
    encoding.inputIds.set(ids, i * length);
    encoding.tokenTypeIds.set(types, i * length);
    encoding.attentionMask.fill(1, i * length, i * length + ids.length);
  });
  return encoding;
}

function softmax(logits: readonly number[]): number[] {
  const most = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

export async function classifyZeroShot(
  find: () => ModelState,
  texts: Parameters<Contract['classifyZeroShot']>[0],
  labels: Parameters<Contract['classifyZeroShot']>[1],
  options?: Parameters<Contract['classifyZeroShot']>[2],
): ReturnType<Contract['classifyZeroShot']> {
  const op = 'classifyZeroShot';
  const list = readTexts(op, texts, false) as string[];
  const candidates = readCandidates(labels);
  const read = readTextOptions(op, options, zeroShotOptions);
  const { hypothesisTemplate = 'This example is {}.', multiLabel = false, topK } = read.plain;
  const [before, after, ...more] = hypothesisTemplate.split('{}');
  if (after === undefined || more.length > 0)
    fail('CONFIG', op, 'hypothesisTemplate', `is ${JSON.stringify(hypothesisTemplate)}`, 'a text with one {}');
  const { about, tokenizer } = find();
  assertTask(op, about, 'text-classification');
  const names = about.labels!;
  const entailment = names.findIndex((name) => /^entail/i.test(name));
  if (entailment < 0 || names.length < 2)
    fail(
      'UNSUPPORTED',
      op,
      'the head',
      `has the labels ${names.join(', ')}`,
      'several labels, one of them entailment',
      'Use classify() for its own labels',
    );
  const contradiction = entailment === 0 ? names.length - 1 : 0;
  const limit = encodeOptionsOf(op, about, read.plain);
  const logits = list.map((): number[][] => []);
  await inBatches(op, find, read, {
    count: list.length * candidates.length,
    rowsOf: (index) => {
      const [text, label] = [Math.floor(index / candidates.length), index % candidates.length];
      const row = tokenized(op, tokenizer, [list[text]!, before + candidates[label]! + after], text, limit);
      return [{ ...row, index }];
    },
    method: 'forward',
    leavesOf: (rows, signature) => readEncoded(op, signature, encodingOf(rows, tokenizer.padId), {}),
    use: (rows, result) => {
      const { data } = (result as unknown as { logits: { data: Float32Array } }).logits;
      rows.forEach(({ index }, i) => {
        const row = data.subarray(i * names.length, (i + 1) * names.length);
        logits[Math.floor(index / candidates.length)]![index % candidates.length] = [row[contradiction]!, row[entailment]!];
      });
    },
  });
  return logits.map((pairs) => {
    const isMulti = multiLabel || candidates.length === 1;
    const scores = isMulti ? pairs.map((pair) => softmax(pair)[1]!) : softmax(pairs.map((pair) => pair[1]!));
    const scored = candidates.map((label, i) => ({ label, score: scores[i]! }));
    return scored.sort((a, b) => b.score - a.score).slice(0, topK);
  });
}
