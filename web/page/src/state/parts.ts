/** The parts of the page and their addresses, in page order. */

export const story = [
  { id: 'words', name: 'Words', title: 'Words become numbers' },
  { id: 'one', name: 'By hand', title: 'Attention by hand' },
  { id: 'all', name: 'The map', title: 'The attention map' },
  { id: 'many', name: 'Heads', title: 'The heads of a layer' },
  { id: 'layers', name: 'Layers', title: 'From layer to layer' },
  { id: 'answer', name: 'Answers', title: 'From the last layer to an answer' },
  { id: 'train', name: 'Training', title: 'Watch a model learn' },
  { id: 'numbers', name: 'Every number', title: 'Every number' },
] as const;

export type StoryId = (typeof story)[number]['id'];

/** Places within the parts, some of which were parts of their own in older links. */
const places = ['sentence', 'example', 'more', 'use', 'steps', 'lab', 'proof'] as const;

export type PartId = 'first' | StoryId | (typeof places)[number];

export const partIds: readonly PartId[] = ['first', ...story.map(({ id }) => id), ...places];
