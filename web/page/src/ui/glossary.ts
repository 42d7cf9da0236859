/** What the words of the field mean, in one or two plain sentences. */
export const glossary = {
  ablation: 'Switching a part off to see what the model loses without it.',
  activation:
    'A function with a bend, applied to each number by itself: it lets large numbers through and holds negative ones back. Without it two maps would be no more than one.',
  analogy: 'What must be added to one word to get another is added to a third: king - man + woman should be near queen.',
  'attention weight': 'How much of one token’s value goes into another token’s new row: from 0 to 1. The weights of one row add up to 1.',
  cosine: 'How alike the directions of two rows of numbers are: 1 the same, 0 nothing in common, -1 opposite.',
  'dot product': 'Two rows of numbers multiplied number by number, and the products added up. It is large when the two point the same way.',
  dropout:
    'In training a random part of the weights is set to 0, and the others grow to make up for it, so that the model does not rely on few of them.',
  entropy: 'How widely a row of weights is spread: 0 when all of it is on one token.',
  'feed-forward': 'Two matrices with an activation between them, applied to every token by itself.',
  'GFLOP/s': 'Thousand million additions or multiplications of numbers in a second.',
  float32: 'Numbers of 32 bits each, about 7 digits: as models are made.',
  gated: 'The hidden numbers are multiplied by a second set of numbers, which lets each of them through or not.',
  head: 'One of several attentions that a layer computes side by side, each with its own small queries, keys and values.',
  'hidden state': 'The rows of numbers between two layers: one row for each token.',
  int8: 'Weights of 8 bits each, whole numbers from -127 to 127 times a scale of their row: a quarter of float32. What they are multiplied with is rounded to 8 bits too, row by row.',
  key: 'What a token offers to be found by: a row of numbers that queries are compared with.',
  layer: 'One round of attention and feed-forward. The output of one is the input of the next.',
  'layer norm': 'Each row is moved to mean 0 and stretched to variance 1, then multiplied and shifted by learned numbers.',
  logits: 'The classifier’s raw scores, one for each answer. Softmax makes probabilities of them.',
  mask: 'A table that says which keys a query may not look at.',
  padding: 'Filler tokens that make short texts as long as the longest. Nobody may look at them.',
  'position bias': 'A learned number for each distance between two tokens, added to their score.',
  'pre-norm': 'The norm comes before attention and feed-forward, not after the sums.',
  'principal components':
    'The directions in which points differ most. A map along the first two shows as much of the differences as any flat map can.',
  query: 'What a token looks for: a row of numbers that is compared with every key.',
  residual: 'The input of a part is added to its output, so that the part only has to learn what to change.',
  rotary: 'Queries and keys are turned by an angle that grows with the position; their product then depends on the distance of the two tokens.',
  safetensors: 'The file format in which models are published: named arrays of numbers and nothing else.',
  softmax: 'Turns any row of numbers into shares between 0 and 1 that add up to 1. The largest number gets the most.',
  'special token': 'A token that stands for no piece of the text, such as [CLS] at the start and [SEP] at the end.',
  token:
    'A piece of text that the model knows: a word, a part of a word, or a punctuation mark. Models of BERT’s kind write ## before parts that go on with a word.',
  value: 'What a token hands over to those that look at it: a row of numbers.',
  vector: 'A row of numbers, seen as a direction in a space with as many dimensions as it has numbers.',
  'word table': 'One learned row of numbers for each token of the vocabulary: what a token is before it has looked at any other.',
} as const;

export type Word = keyof typeof glossary;
