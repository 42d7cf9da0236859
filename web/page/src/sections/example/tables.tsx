import type { Tensor } from 'attn';
import { useState } from 'preact/hooks';
import { bracketed, brief, teaching } from '../../formats/numbers.ts';
import { example, exampleWords, setNumber, type ExampleMatrix } from '../../state/example.ts';
import { Alert } from '../../ui/alert.tsx';
import { NumberTable } from '../../ui/number_table.tsx';

export const at = (tensor: Tensor, i: number, j: number) => tensor.data[i * tensor.dims.at(-1)! + j]!;

const word = (i: number) => exampleWords[i]!;
const axis = (kind: string, count: number) => ({
  kind,
  count,
  ...(['word', 'query', 'key'].includes(kind) && count === exampleWords.length && { label: word }),
});

export function dotText(left: Tensor, i: number, right: (k: number) => number): string {
  return Array.from({ length: left.dims[1]! }, (_, k) => `${brief(at(left, i, k))}·${bracketed(right(k))}`).join(' + ');
}

export function Matrix({
  name,
  tensor,
  rows,
  columns,
  total,
  detail,
  write = teaching(tensor.data),
}: {
  name: string;
  tensor: Tensor;
  rows: string;
  columns: string;
  total?: boolean;
  detail?: ((i: number, j: number) => string) | undefined;
  write?: (value: number) => string;
}) {
  const [length, width] = tensor.dims.slice(-2) as [number, number];
  return (
    <NumberTable
      name={name}
      rows={axis(rows, length)}
      columns={axis(columns, width)}
      cell={(i, j) => (
        <>
          {write(at(tensor, i, j))}
          {detail && <span class="working">{detail(i, j)}</span>}
        </>
      )}
      total={total ? { name: 'row sum', cell: (i) => write(tensor.data.subarray(i * width, (i + 1) * width).reduce((a, b) => a + b, 0)) } : undefined}
    />
  );
}

export function EditableMatrix({ name }: { name: ExampleMatrix }) {
  const values = example.value.matrices[name];
  const [rows, columns] = name === 'X' ? (['word', 'number'] as const) : (['in', 'out'] as const);
  const rowName = (i: number) => (name === 'X' ? word(i) : `in ${i + 1}`);
  const [fault, setFault] = useState<{ readonly place: string; readonly why: string }>();
  const nameOf = (i: number, j: number) => `${name}, ${rowName(i)}, ${columns} ${j + 1}`;
  const read = (i: number, j: number, field: HTMLInputElement, isFinished: boolean) => {
    const value = field.valueAsNumber;
    const fits = Number.isFinite(Math.fround(value));
    if (fits) setNumber(name, i, j, value);
    // A number that is being written is not a fault yet.
    const why = fits || (Number.isNaN(value) && !isFinished) ? '' : Number.isNaN(value) ? 'This is not a number.' : 'A float32 has at most 3.4e38.';
    setFault(why ? { place: nameOf(i, j), why: `${nameOf(i, j)}: ${why} The steps go on with ${example.value.matrices[name][i]![j]}.` } : undefined);
  };
  return (
    <div class="editable">
      <NumberTable
        name={name}
        rows={axis(rows, values.length)}
        columns={axis(columns, values[0]!.length)}
        cell={(i, j) => (
          <input
            type="number"
            step="any"
            aria-label={nameOf(i, j)}
            aria-invalid={fault?.place === nameOf(i, j) ? 'true' : undefined}
            // Uncontrolled, so that the field keeps an unfinished "0.".
            defaultValue={values[i]![j]}
            onInput={(event) => read(i, j, event.currentTarget, false)}
            onChange={(event) => read(i, j, event.currentTarget, true)}
          />
        )}
      />
      <Alert why={fault?.why} />
    </div>
  );
}
