/** Reads the lab's fields; throws a FieldError for invalid ones. */
import type { Mask, Tensor } from 'attn';
import { transposed } from '../arithmetic/arrays.ts';
import { truncate, longestName } from '../formats/truncate.ts';
import { FieldError, type LabInputs } from './run.ts';
import { parseMatrixText } from '../formats/matrix_text.ts';
import type { Lab, MatrixName } from '../state/lab.ts';

export const minRankOf = (name: MatrixName) => (name === 'Mask' || name === 'Key padding' ? 1 : 2);

export function readLab({ mode, fields, heads, scale, maskKind, paddingKind, causal, asTorch }: Lab): LabInputs {
  const isEmpty = (name: MatrixName) => !fields[name].file && !fields[name].refused && fields[name].text.trim() === '';

  const tensorOf = (name: MatrixName): Tensor => {
    const { text, file, refused } = fields[name];
    if (refused) throw new FieldError(name, refused);
    if (file) return file.tensor;
    try {
      return parseMatrixText(text, minRankOf(name));
    } catch (error) {
      throw new FieldError(name, (error as Error).message);
    }
  };

  const maskOf = (name: 'Mask' | 'Key padding', kind: Mask['kind']): Mask | undefined => {
    if (isEmpty(name)) return undefined;
    const { data, dims } = tensorOf(name);
    if (kind === 'additive') {
      const bad = data.find((value) => Number.isNaN(value) || value === Infinity);
      if (bad !== undefined) throw new FieldError(name, `${bad} cannot be added to a score. Use finite numbers, or -Infinity to hide a key.`);
      return { kind, data, dims };
    }
    // An additive mask would have the opposite meaning here: its 0 shows a key.
    const bad = data.find((value) => value !== 0 && value !== 1);
    if (bad !== undefined)
      throw new FieldError(
        name,
        `The mask contains ${bad}, but this kind of mask may contain only 1 and 0. Choose “added to the scores” if the mask is additive.`,
      );
    return { kind, data: Uint8Array.from(data), dims };
  };

  const scaleOf = (): number | undefined => {
    const written = scale.trim();
    if (written === '') return undefined;
    const number = Number(written);
    if (Number.isNaN(number))
      throw new FieldError(
        'Scale',
        `“${truncate(written, longestName)}” is not a number. Enter a number such as 0.5, or leave the field empty for 1/√D.`,
      );
    if (!Number.isFinite(Math.fround(number)))
      throw new FieldError('Scale', `${truncate(written, longestName)} is too large. Enter a number such as 0.5, or leave the field empty for 1/√D.`);
    return number;
  };

  /** in × out; other ranks are rejected later. */
  const weightOf = (name: MatrixName): Tensor => {
    const tensor = tensorOf(name);
    return asTorch && tensor.dims.length === 2 ? transposed(tensor) : tensor;
  };

  const common = () => ({ scale: scaleOf(), mask: maskOf('Mask', maskKind), keyPadding: maskOf('Key padding', paddingKind), causal });
  if (mode === 'attention') return { mode, Q: tensorOf('Q'), K: tensorOf('K'), V: tensorOf('V'), ...common() };
  return {
    mode,
    X: tensorOf('X'),
    Wq: weightOf('Wq'),
    Wk: weightOf('Wk'),
    Wv: weightOf('Wv'),
    Wo: isEmpty('Wo') ? undefined : weightOf('Wo'),
    heads: heads.trim() === '' ? NaN : Number(heads),
    ...(asTorch && { asTorch }),
    ...common(),
  };
}
