import type { FineTuneOptions } from '../attn.js';

export const fineTuneOptions = [
  'epochs',
  'batchSize',
  'learningRate',
  'weightDecay',
  'layers',
  'labels',
  'seed',
  'validation',
  'signal',
  'onProgress',
] as const satisfies readonly (keyof FineTuneOptions)[];
