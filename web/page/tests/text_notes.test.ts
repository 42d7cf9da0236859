import { describe, expect, it } from 'vitest';
import { textNotes } from '../src/state/text_notes.ts';

const note = (text: string, mark = '[UNK]', truncated = false) => {
  const tokens = ['[CLS]', ...text.split(' ').filter((each) => each !== ''), '[SEP]'].map((each) => (each === '?' ? mark : each));
  const offsets = tokens.map((token) => (token === '[CLS]' || token === '[SEP]' ? null : ([0, 1] as const)));
  return textNotes({ tokens, encoding: { offsets: [offsets], truncated: [truncated] } as unknown as Parameters<typeof textNotes>[0]['encoding'] });
};

describe('what is said of a text', () => {
  it('is nothing where the model knows all of it', () => expect(note('a dull film')).toEqual([]));
  it('is that there is none', () => expect(note('')).toEqual(['There is no text. The model reads only its special tokens.']));
  it('is how much of it the model does not know', () => {
    expect(note('I loved it ?')).toEqual(['The model does not know 1 of these 4 tokens and reads [UNK] instead.']);
    expect(note('? ? it', '<unk>')).toEqual(['The model does not know 2 of these 3 tokens (<unk>), so its answer means little.']);
    expect(note('?')).toEqual(['All tokens of this text are unknown to the model ([UNK]), so its answer means little.']);
  });
  it('is that its end is not read', () => expect(note('a b', '', true)).toEqual(['The model reads only the first 4 tokens, its limit.']));
});
