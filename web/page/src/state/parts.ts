/** The parts of the page and their addresses, in page order. */

export const story = [
  { id: 'words', name: 'Words', title: 'Words become numbers' },
  { id: 'one', name: 'By hand', title: 'One word asks' },
  { id: 'all', name: 'The map', title: 'All words at once' },
  { id: 'many', name: 'Heads', title: 'Many heads' },
  { id: 'layers', name: 'Layers', title: 'Add, normalise, think; then again' },
  { id: 'answer', name: 'Answers', title: 'From rows to an answer' },
  { id: 'train', name: 'Training', title: 'Nobody told it' },
  { id: 'numbers', name: 'Every number', title: 'Every number' },
] as const;

export type StoryId = (typeof story)[number]['id'];

/** Places within the parts, some of which were parts of their own in older links. */
const places = ['sentence', 'example', 'more', 'use', 'steps', 'lab', 'proof'] as const;

export type PartId = 'first' | StoryId | (typeof places)[number];

export const partIds: readonly PartId[] = ['first', ...story.map(({ id }) => id), ...places];
