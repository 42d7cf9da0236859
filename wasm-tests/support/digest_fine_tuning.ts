/** Runs of fine-tuning, like native-tests/digest/fine_tuning.cpp. Change both together. */
import type { Attn, FineTuneExample, FineTuneOptions, LanguageExample } from 'attn';
import { Hash } from './digest_draw.ts';
import { loadCheckpoint } from './model_cases.ts';

const examples: readonly FineTuneExample[] = [
  { text: 'a warm , funny and clever film', label: 'good' },
  { text: 'dull and far too long', label: 'bad' },
  { text: 'beautifully acted from start to end', label: 'good' },
  { text: 'a boring mess without any ideas', label: 'bad' },
  { text: 'one of the best of the year', label: 'good' },
  { text: 'the jokes are stale and the plot is stupid', label: 'bad' },
  { text: 'moving , honest and alive', label: 'good' },
  { text: 'tedious', label: 'bad' },
  { text: ['it is what it is', 'no more'], label: 'neither' },
];

const texts: readonly (LanguageExample | string)[] = [
  'the cat sat on the mat',
  { prompt: 'two and two is', text: ' four' },
  { text: 'once upon a time there was a cat that sat on a mat' },
  { prompt: 'Was it good?', text: ' no. <|endoftext|>' },
];

const labels = ['bad', 'good', 'neither'];

const runs: readonly (readonly [string, FineTuneOptions])[] = [
  ['tiny-bert-cls', { epochs: 4, batchSize: 3, learningRate: 3e-3, labels, seed: 1 }],
  ['tiny-distilbert', { epochs: 3, batchSize: 2, learningRate: 1e-2, labels, seed: 2, validation: 0.25 }],
  ['tiny-mpnet', { epochs: 4, batchSize: 3, learningRate: 3e-3, layers: 1, labels, seed: 2 ** 40 + 3 }],
  ['tiny-mpnet-mean', { epochs: 4, batchSize: 3, layers: 'head', seed: 4 }],
  ['tiny-gpt2', { epochs: 4, batchSize: 2, learningRate: 3e-3, seed: 5 }],
  ['tiny-gemma-2', { epochs: 3, batchSize: 3, learningRate: 3e-3, layers: 1, seed: 6, validation: 0.25 }],
];

export const fineTuningRuns = runs.length;

export async function fineTuningLines(attn: Attn): Promise<string[]> {
  const lines: string[] = [];
  for (const [name, options] of runs) {
    const model = await loadCheckpoint(attn, name);
    const hash = new Hash();
    const onProgress = ({ loss }: { loss: number }) => hash.add({ data: Float32Array.of(loss), dims: [1] });
    const result = await model.fineTune(model.task === 'text-generation' ? texts : examples, { ...options, onProgress });
    hash.add({ data: Float32Array.of(result.loss, result.validationAccuracy ?? -1), dims: [2] });
    const state = model.stateDict();
    for (const key of [...state.keys()].sort()) hash.add(state.get(key)!);
    lines.push(`${hash.text()} ${name}`);
    model.dispose();
  }
  return lines;
}
