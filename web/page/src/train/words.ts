/** The stated expectations were measured with the default seed. */
import type { ChoiceSetting, NumberSetting } from './settings.ts';
import type { TaskId } from './task.ts';

export const taskWords: Readonly<
  Record<TaskId, { readonly name: string; readonly asks: string; readonly expect: string; readonly example: string | undefined }>
> = {
  reverse: {
    name: 'Reverse',
    asks: 'Reverse eight digits.',
    expect: 'The first position must attend to the last, the second to the one before it, and so on: a line from corner to corner.',
    example: '2 7 1 8 2 8 1 8',
  },
  previous: {
    name: 'Copy the previous token',
    asks: 'Name the previous letter at each position.',
    expect: 'Every position attends to its left neighbour: a line just below the diagonal.',
    example: 'd a e b f h a h b a',
  },
  sort: {
    name: 'Sort digits',
    asks: 'Sort eight digits, the smallest first.',
    expect:
      'The first position attends to the smallest digits, the last to the largest. The positions between must count, so their attention spreads.',
    example: '2 7 1 8 2 8 1 8',
  },
  brackets: {
    name: 'Matching brackets',
    asks: 'For each ?, name the bracket that closes here.',
    expect: 'Each ? attends to the bracket that it closes. To find it the model must count first, so the pattern appears in the second layer.',
    example: '( [ ? { [ ( ? ? { ? ? ?',
  },
  frequent: {
    name: 'Most frequent token',
    asks: 'Which letter is the most frequent?',
    expect: 'The answer is read at [CLS]. It attends to all letters about equally, because their mean counts them.',
    example: 'e a a c d a e a a e d',
  },
  reviews: {
    name: 'Film reviews',
    asks: 'Does a short review like the film? The page comes with 4255 reviews.',
    expect:
      'The row of [CLS] attends to words that judge. Expect about two of three answers to be right, because 3400 training snippets are few. If you train further, the model memorises them and the curves separate.',
    example: undefined,
  },
};

export const choiceWords: Readonly<
  Record<ChoiceSetting, { readonly name: string; readonly hint: string; readonly values: Readonly<Record<string, string>> }>
> = {
  positions: {
    name: 'Positions',
    hint: 'Without positions, the model cannot learn “Reverse”: try it. Sinusoidal positions take longer than learned ones.',
    values: { none: 'none', sinusoidal: 'sinusoidal', learned: 'learned' },
  },
  initialisation: {
    name: 'Initialisation',
    hint: 'PyTorch, Xavier and He start with nearly even maps. A Gaussian with std 1 starts with a few bright cells and keeps them.',
    values: { torch: 'PyTorch', xavier_uniform: 'Xavier', kaiming_uniform: 'He', normal: 'Gaussian' },
  },
  optimiser: {
    name: 'Optimiser',
    hint: 'AdamW and Adam adapt the step size to each weight. SGD does not and needs a learning rate near 0.1.',
    values: { adamw: 'AdamW', adam: 'Adam', sgd: 'SGD, momentum 0.9' },
  },
};

export const numberWords: Readonly<Record<NumberSetting, { readonly name: string; readonly hint: string; readonly step: number }>> = {
  layers: { name: 'Layers of the model', hint: 'One is enough for all tasks except brackets.', step: 1 },
  heads: { name: 'Heads of the model', hint: 'Each head learns its own pattern. “Reverse” needs one.', step: 1 },
  width: { name: 'Width of the model', hint: 'Numbers per token, split among the heads. Narrow models learn more slowly.', step: 8 },
  std: {
    name: 'Std of the Gaussian',
    hint: 'BERT uses 0.02. With 0.3 the result depends on the scale; with 1 the model learns nothing.',
    step: 0.01,
  },
  dropout: { name: 'Dropout', hint: 'Sets random numbers to 0 in training, against memorising.', step: 0.05 },
  learningRate: { name: 'Learning rate', hint: 'With 0.0001 or 0.3, “Reverse” has learned nothing when the run ends.', step: 0.0005 },
  batch: { name: 'Batch', hint: 'Examples per step. More examples make steps steadier and slower.', step: 8 },
  steps: { name: 'Length of the run', hint: 'Number of steps, over which the learning rate falls along a cosine.', step: 100 },
  seed: { name: 'Seed', hint: 'The same seed and settings give the same weights, to the last bit, on any machine.', step: 1 },
};

export const switchWords = {
  scale: {
    name: 'Scale by 1/√D',
    hint: 'Keeps scores small. This hardly matters for small weights, but with a Gaussian of std 0.3 “Reverse” fails without it.',
  },
  causal: { name: 'Causal', hint: 'No token attends to later ones. “Reverse” then gets only its second half right.' },
} as const;
