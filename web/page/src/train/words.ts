/** What the page says of tasks and settings. What it says to expect was measured, from the seed that stands there first. */
import type { ChoiceSetting, NumberSetting } from './settings.ts';
import type { TaskId } from './task.ts';

export const taskWords: Readonly<
  Record<TaskId, { readonly name: string; readonly asks: string; readonly expect: string; readonly example: string | undefined }>
> = {
  reverse: {
    name: 'Reverse',
    asks: 'Write eight digits from the end.',
    expect: 'The first place has to look at the last, the second at the one before it, and so on: a line from corner to corner.',
    example: '2 7 1 8 2 8 1 8',
  },
  previous: {
    name: 'Copy the previous token',
    asks: 'At each place, name the letter before it.',
    expect: 'Every place looks one to its left: a line just below the diagonal.',
    example: 'd a e b f h a h b a',
  },
  sort: {
    name: 'Sort digits',
    asks: 'Write eight digits in order, the smallest first.',
    expect: 'The first place looks at the smallest digits, the last at the largest. Those between have to count, and look around.',
    example: '2 7 1 8 2 8 1 8',
  },
  brackets: {
    name: 'Matching brackets',
    asks: 'For each ?, name the bracket that closes here.',
    expect: 'Each ? looks at the bracket that it closes. To find it takes counting first, so the pattern shows up in the second layer.',
    example: '( [ ? { [ ( ? ? { ? ? ?',
  },
  frequent: {
    name: 'Most frequent token',
    asks: 'Which letter is there most often?',
    expect: 'The answer is read at [CLS]. It looks at all letters about alike, since the mean of all letters is a count.',
    example: 'e a a c d a e a a e d',
  },
  reviews: {
    name: 'Film reviews',
    asks: 'Does a short film review like the film? 4255 of them come with the page.',
    expect:
      'The row of [CLS] settles on words that judge. Expect two of three right, not more: 3400 snippets are few. Train on, and it learns them by heart: the curves part.',
    example: undefined,
  },
};

export const choiceWords: Readonly<
  Record<ChoiceSetting, { readonly name: string; readonly hint: string; readonly values: Readonly<Record<string, string>> }>
> = {
  positions: {
    name: 'Positions',
    hint: 'Without positions “reverse” cannot be learned: try. Sinusoidal ones take longer than learned ones.',
    values: { none: 'none', sinusoidal: 'sinusoidal', learned: 'learned' },
  },
  initialisation: {
    name: 'Initialisation',
    hint: 'The first three start with even maps. A Gaussian of 1 starts with a few bright cells, and stays with them.',
    values: { torch: 'PyTorch', xavier_uniform: 'Xavier', kaiming_uniform: 'He', normal: 'Gaussian' },
  },
  optimiser: {
    name: 'Optimiser',
    hint: 'AdamW and Adam fit the step to each weight. SGD does not, and needs a rate near 0.1.',
    values: { adamw: 'AdamW', adam: 'Adam', sgd: 'SGD, momentum 0.9' },
  },
};

export const numberWords: Readonly<Record<NumberSetting, { readonly name: string; readonly hint: string; readonly step: number }>> = {
  layers: { name: 'Layers of the model', hint: 'One is enough for all tasks but brackets.', step: 1 },
  heads: { name: 'Heads of the model', hint: 'Each looks somewhere else. “Reverse” needs one.', step: 1 },
  width: { name: 'Width of the model', hint: 'Numbers for each token, shared out among the heads. Narrow models learn more slowly.', step: 8 },
  std: { name: 'Std of the Gaussian', hint: 'BERT’s is 0.02. With 0.3 the scale decides, with 1 nothing is learned.', step: 0.01 },
  dropout: { name: 'Dropout', hint: 'Zeroes numbers at random while it trains: against learning by heart.', step: 0.05 },
  learningRate: { name: 'Learning rate', hint: 'With 0.0001 “reverse” has learned nothing when the run ends, nor with 0.3.', step: 0.0005 },
  batch: { name: 'Batch', hint: 'Examples in one step. More are steadier, and take longer.', step: 8 },
  steps: { name: 'Length of the run', hint: 'In steps. The learning rate falls along a cosine until then.', step: 100 },
  seed: { name: 'Seed', hint: 'Same seed and settings, same weights, to the last bit, on any machine.', step: 1 },
};

export const switchWords = {
  scale: { name: 'Scale by 1/√D', hint: 'Keeps scores small. Hardly matters for small weights; with a Gaussian of 0.3, “reverse” fails without it.' },
  causal: { name: 'Causal', hint: 'No token sees later ones: “reverse” then gets only its second half right.' },
} as const;
