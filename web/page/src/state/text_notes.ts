/** What a visitor should know of a text before believing what the model says of it. */
import { counted } from '../formats/numbers.ts';
import type { Run } from './run.ts';

/** What tokenizers write for what is not in their vocabulary. */
const unknown = ['[UNK]', '<unk>'];
export const isUnknown = (token: string): boolean => unknown.includes(token);
/** From this share on an answer rests on little else. */
const much = 1 / 3;

export function textNotes({ tokens, encoding }: Pick<Run, 'tokens' | 'encoding'>): readonly string[] {
  const offsets = encoding.offsets[0]!;
  const own = tokens.filter((_, i) => offsets[i] !== null);
  if (own.length === 0) return ['There is no text: the model reads nothing but its special tokens.'];
  const [mark] = own.filter(isUnknown);
  const count = own.filter((token) => token === mark).length;
  const notes: string[] = [];
  if (count === own.length && mark !== undefined)
    notes.push(`The model knows none of this text: it reads ${mark} and nothing else, and what it says means little.`);
  else if (mark !== undefined)
    notes.push(
      count >= much * own.length
        ? `The model does not know ${count} of these ${counted(own.length, 'token')} (${mark}): what it says of this text means little.`
        : `${mark} stands for what the model does not know: ${count} of these ${counted(own.length, 'token')}.`,
    );
  if (encoding.truncated[0]) notes.push(`Only the first ${counted(tokens.length, 'token')} are read: this model takes no more.`);
  return notes;
}
