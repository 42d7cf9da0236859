import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { scrollable, useOverflow } from './overflow.ts';

/** Maximum number of cells, in whole rows; more slow down every browser. */
const defaultCells = 4096;
const maximumColumns = 256;
/** Tables of this size are laid out only when they come into view. */
const largeCells = 1500;

export interface Axis {
  readonly kind: string;
  readonly count: number;
  /** Default: the kind and a 1-based number. */
  readonly label?: (index: number) => string;
}

export interface NumberTableProps {
  readonly name: string;
  readonly rows: Axis;
  readonly columns: Axis;
  readonly cell: (row: number, column: number) => ComponentChildren;
  readonly maximumCells?: number;
  /** 0 … 1; of a signed number -1 … 1, in the two colours of signs. */
  readonly tint?: (row: number, column: number) => number;
  readonly isSigned?: boolean;
  readonly total?: { readonly name: string; readonly cell: (row: number) => string } | undefined;
}

const tinted = (share: number, isSigned: boolean) => ({
  class: `tinted${isSigned ? (share < 0 ? ' minus' : ' plus') : ''}`,
  style: { '--share': `${Math.round(100 * Math.abs(share || 0))}%` },
});

/** Overflowing tables can be scrolled with the keyboard. */
export function NumberTable({ name, rows, columns, cell, tint, isSigned = false, total, maximumCells = defaultCells }: NumberTableProps) {
  const frame = useRef<HTMLDivElement>(null);
  const overflows = useOverflow(frame);
  const width = Math.min(columns.count, maximumColumns);
  const shown = { columns: width, rows: Math.min(rows.count, Math.max(1, Math.floor(maximumCells / width))) };
  const label = (axis: Axis, index: number) => axis.label?.(index) ?? `${axis.kind} ${index + 1}`;
  // "number 1" would be wide on a phone.
  const columnLabel = (index: number) => (columns.kind === 'number' ? String(index + 1) : label(columns, index));
  const indices = (count: number) => Array.from({ length: count }, (_, i) => i);
  return (
    <div class={shown.rows * shown.columns > largeCells ? 'table-block large' : 'table-block'}>
      <div ref={frame} class="table-frame" {...scrollable(overflows, name)}>
        <table>
          <caption>{name}</caption>
          <thead>
            <tr>
              <th scope="col" class="corner">
                {rows.kind} \ {columns.kind}
              </th>
              {indices(shown.columns).map((j) => (
                <th scope="col" key={j}>
                  {columnLabel(j)}
                </th>
              ))}
              {total && (
                <th scope="col" class="total">
                  {total.name}
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {indices(shown.rows).map((i) => (
              <tr key={i}>
                <th scope="row">{label(rows, i)}</th>
                {indices(shown.columns).map((j) => (
                  <td key={j} {...(tint && tinted(tint(i, j), isSigned))}>
                    {cell(i, j)}
                  </td>
                ))}
                {total && <td class="total">{total.cell(i)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {(shown.rows < rows.count || shown.columns < columns.count) && (
        <p class="note">
          Shown: the first {shown.rows} of {rows.count} rows and {shown.columns} of {columns.count} columns.
        </p>
      )}
    </div>
  );
}
