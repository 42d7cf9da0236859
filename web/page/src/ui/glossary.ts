/** What the words of the field mean, in one or two plain sentences. */
export const glossary = {
  ablation: 'Switching a part off to see what the model loses without it.',
  activation:
    'A function with a bend, applied to each number by itself: it lets large numbers through and holds negative ones back. Without it, two matrices in a row could do no more than one.',
  analogy: 'The difference between two words, added to a third: king - man + woman should be close to queen.',
  'attention weight': 'How much of one token’s value goes into another token’s new row, from 0 to 1. The weights of a row add up to 1.',
  cosine: 'How similar the directions of two rows of numbers are: 1 is the same, 0 nothing in common, -1 opposite.',
  'dot product': 'Two rows of numbers multiplied number by number, and the products added up. It is large when the two point the same way.',
  dropout:
    'In training, random weights are set to 0 and the others grow to make up for it, so that the model does not come to rely on a few of them.',
  entropy: 'How widely a row of weights is spread out: 0 when all of it is on one token.',
  'feed-forward': 'Two matrices with an activation between them, applied to every token by itself.',
  'GFLOP/s': 'A thousand million additions and multiplications a second.',
  float32: 'Numbers of 32 bits each, good for about 7 digits. Most models are trained and published with them.',
  gated: 'The hidden numbers are multiplied by a second set of numbers, which decides how much of each gets through.',
  gradient: 'How the loss would change with each weight. Training takes a small step against it; its norm says how strong it is.',
  head: 'One of several attention maps that a layer computes side by side, each from its own queries, keys and values.',
  'hidden state': 'The rows of numbers between two layers: one row for each token.',
  int8: 'Weights of 8 bits each: whole numbers from -127 to 127, times one scale for each row. A quarter of the size of float32. What they are multiplied with is rounded to 8 bits too, row by row.',
  key: 'What a token can be found by: a row of numbers that queries are compared with.',
  layer: 'One round of attention and feed-forward. The output of one is the input of the next.',
  'layer norm': 'Each row is shifted to mean 0 and stretched to variance 1, then scaled and shifted by learned numbers.',
  logits: 'The classifier’s raw scores, one for each answer. Softmax turns them into probabilities.',
  mask: 'A table that says which keys a query may not look at.',
  padding: 'Filler tokens that make short texts as long as the longest. No token may look at them.',
  'position bias': 'A learned number for each distance between two tokens, added to their score.',
  'pre-norm': 'The norm comes before attention and feed-forward, not after the sums.',
  'principal components': 'The directions in which points differ most. A map along the first two shows as much of the differences as a flat map can.',
  query: 'What a token is looking for: a row of numbers that is compared with every key.',
  residual: 'The input of a part is added to its output, so that the part only has to learn what to change.',
  rotary: 'Queries and keys are turned by an angle that grows with the position; their product then depends on the distance of the two tokens.',
  safetensors: 'A file format for models: named arrays of numbers, and nothing else.',
  softmax: 'Turns any row of numbers into shares between 0 and 1 that add up to 1. The largest number gets the most.',
  'special token': 'A token that is not part of the text, such as [CLS] at the start and [SEP] at the end.',
  token:
    'A piece of text that the model knows: a word, part of a word, or a punctuation mark. Models like BERT write ## before parts that continue a word.',
  value: 'What a token passes on to the tokens that look at it: a row of numbers.',
  vector: 'A row of numbers, seen as a direction in a space with as many dimensions as it has numbers.',
  'word table': 'One learned row of numbers for each token of the vocabulary: what a token is before it has looked at any other.',
} as const;

export type Word = keyof typeof glossary;
