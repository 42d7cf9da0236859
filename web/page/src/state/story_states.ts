/** The states of the parts below the first picture, which a link contains besides the view. */
import { alignFromParams, alignToParams } from './align.ts';
import { tabFromParams, tabToParams } from './answers.ts';
import { linesFromParams, linesToParams } from './compare_texts.ts';
import { exampleFromParams, exampleToParams } from './example.ts';
import type { OtherState } from './hash.ts';
import { lab, labFromParams, labToParams } from './lab.ts';
import { taskTextsFromParams, taskTextsToParams } from './task_texts.ts';
import { trainFromParams, trainToParams } from '../train/state.ts';
import { whyFromParams, whyToParams } from './why.ts';
import { wordsFromParams, wordsToParams } from './words.ts';

export const storyStates: readonly OtherState[] = [
  { write: exampleToParams, read: exampleFromParams },
  { write: trainToParams, read: trainFromParams },
  { write: () => labToParams(lab.value), read: (params) => (lab.value = labFromParams(params)) },
  { write: linesToParams, read: linesFromParams },
  { write: alignToParams, read: alignFromParams },
  { write: tabToParams, read: tabFromParams },
  { write: taskTextsToParams, read: taskTextsFromParams },
  { write: whyToParams, read: whyFromParams },
  { write: wordsToParams, read: wordsFromParams },
];
