/** Loaded with the story; one for each step of first_look.ts. */
export const stepCaptions = [
  [
    'The query meets the keys',
    'The blank asks: its query is compared with the key of every word. A strip is a row of numbers: the stronger a colour, the farther from 0.',
  ],
  ['Scores', 'Query times key, number by number: violet adds, gold subtracts. The sum is the score; only the differences between scores matter.'],
  ['Weights', 'Softmax turns the scores into weights that sum to 100 %.'],
  ['Values flow', 'Every word sends its value, as much of it as its weight says. The blank adds them up.'],
  ['The guess', 'With the other heads and layers, the sum becomes the guess.'],
] as const;
