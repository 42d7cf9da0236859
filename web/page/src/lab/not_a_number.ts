/** NaN would otherwise spread from one number to whole rows without a word. */
import type { Tensor } from 'attn';
import { counted } from '../formats/numbers.ts';
import type { LabInputs, LabResult } from './run.ts';

const has = ({ data }: Tensor, isBad: (value: number) => boolean): boolean => data.some(isBad);

const fieldsOf = (inputs: LabInputs): readonly (readonly [name: string, tensor: Tensor | undefined])[] =>
  inputs.mode === 'attention'
    ? [
        ['Q', inputs.Q],
        ['K', inputs.K],
        ['V', inputs.V],
      ]
    : [
        ['X', inputs.X],
        ['Wq', inputs.Wq],
        ['Wk', inputs.Wk],
        ['Wv', inputs.Wv],
        ['Wo', inputs.Wo],
      ];

function causeOf(inputs: LabInputs): string {
  const fields = fieldsOf(inputs);
  const find = (isBad: (value: number) => boolean) => fields.find(([, tensor]) => tensor && has(tensor, isBad))?.[0];
  const unknown = find(Number.isNaN);
  if (unknown !== undefined) return `${unknown} contains NaN, and every sum with it is NaN.`;
  const infinite = find((value) => Math.abs(value) === Infinity);
  if (infinite !== undefined) return `${infinite} contains Infinity; Infinity − Infinity and 0 · Infinity are not numbers.`;
  return 'Some results exceed the largest 32-bit number, 3.4 · 10³⁸, and become Infinity; Infinity − Infinity is not a number. Enter smaller numbers.';
}

export function notANumber(inputs: LabInputs, { weights, output }: LabResult): string | undefined {
  const parts = [weights, output].flatMap(({ name, tensor: { data } }) => {
    const count = data.reduce((sum, value) => sum + Number(Number.isNaN(value)), 0);
    return count > 0 ? [`${count} of the ${counted(data.length, 'number')} of the ${name}`] : [];
  });
  if (parts.length === 0) return undefined;
  return `NaN (not a number) is in the place of ${parts.join(' and ')}. ${causeOf(inputs)}`;
}
