import type { Tensor } from 'attn';
import { bracketed, brief, teaching } from '../../formats/numbers.ts';
import { example, exampleWords, setNumber, type ExampleMatrix } from '../../state/example.ts';
import { NumberTable } from '../../ui/number_table.tsx';

export const at = (tensor: Tensor, i: number, j: number) => tensor.data[i * tensor.dims.at(-1)! + j]!;

const word = (i: number) => exampleWords[i]!;
/** The labels along a side: words as queries or keys, or numbers. */
const axis = (kind: string, count: number) => ({
  kind,
  count,
  ...(['word', 'query', 'key'].includes(kind) && count === exampleWords.length && { label: word }),
});

/** The products that add up to an entry. */
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
}: {
  name: string;
  tensor: Tensor;
  rows: string;
  columns: string;
  total?: boolean;
  detail?: ((i: number, j: number) => string) | undefined;
}) {
  const [length, width] = tensor.dims.slice(-2) as [number, number];
  const write = teaching(tensor.data);
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
  return (
    <NumberTable
      name={name}
      rows={axis(rows, values.length)}
      columns={axis(columns, values[0]!.length)}
      cell={(i, j) => (
        <input
          type="number"
          step="any"
          aria-label={`${name}, ${rowName(i)}, ${columns} ${j + 1}`}
          // Uncontrolled, so that the field keeps an unfinished "0.".
          defaultValue={values[i]![j]}
          onInput={(event) => {
            const value = event.currentTarget.valueAsNumber;
            if (Number.isFinite(Math.fround(value))) setNumber(name, i, j, value);
          }}
        />
      )}
    />
  );
}
