/** Warnings about texts whose answers are unreliable. */
import { counted } from '../formats/numbers.ts';
import { isDecoder } from '../model/loaded.ts';
import { hasWords, mostTokens, type Run } from './run.ts';

const unknown = ['[UNK]', '<unk>'];
export const isUnknown = (token: string): boolean => unknown.includes(token);
const much = 1 / 3;

export function textNotes({ tokens, encoding, model }: Pick<Run, 'tokens' | 'encoding'> & Partial<Pick<Run, 'model'>>): readonly string[] {
  const offsets = encoding.offsets[0]!;
  const own = tokens.filter((_, i) => offsets[i] !== null);
  if (!hasWords({ encoding })) return ['There is no text. The model reads only its special tokens.'];
  const [mark] = own.filter(isUnknown);
  const count = own.filter((token) => token === mark).length;
  const notes: string[] = [];
  if (count === own.length && mark !== undefined)
    notes.push(`All tokens of this text are unknown to the model (${mark}), so its answer means little.`);
  else if (mark !== undefined)
    notes.push(
      count >= much * own.length
        ? `The model does not know ${count} of these ${counted(own.length, 'token')} (${mark}), so its answer means little.`
        : `The model does not know ${count} of these ${counted(own.length, 'token')} and reads ${mark} instead.`,
    );
  if (encoding.truncated[0]) {
    const isOurs = model !== undefined && isDecoder(model) && tokens.length === mostTokens;
    notes.push(`The model reads only the first ${counted(tokens.length, 'token')}, ${isOurs ? 'the limit of this page' : 'its limit'}.`);
  }
  return notes;
}
