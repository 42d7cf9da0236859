import { describe, expect, it } from 'vitest';
import { textNotes } from '../src/state/text_notes.ts';

const note = (text: string, mark = '[UNK]', truncated = false) => {
  const tokens = ['[CLS]', ...text.split(' ').filter((each) => each !== ''), '[SEP]'].map((each) => (each === '?' ? mark : each));
  const offsets = tokens.map((token) => (token === '[CLS]' || token === '[SEP]' ? null : ([0, 1] as const)));
  return textNotes({ tokens, encoding: { offsets: [offsets], truncated: [truncated] } as unknown as Parameters<typeof textNotes>[0]['encoding'] });
};

describe('the notes on a text', () => {
  it('are empty if the model knows every word', () => expect(note('a dull film')).toEqual([]));
  it('report an empty text', () => expect(note('')).toEqual(['There is no text. The model reads only its special tokens.']));
  it('report how many words the model does not know', () => {
    expect(note('I loved it ?')).toEqual(['The model does not know 1 of these 4 tokens and reads [UNK] instead.']);
    expect(note('? ? it', '<unk>')).toEqual(['The model does not know 2 of these 3 tokens (<unk>), so its answer means little.']);
    expect(note('?')).toEqual(['All tokens of this text are unknown to the model ([UNK]), so its answer means little.']);
  });
  it('report that the end of the text is not read', () =>
    expect(note('a b', '', true)).toEqual(['The model reads only the first 4 tokens, its limit.']));
});
