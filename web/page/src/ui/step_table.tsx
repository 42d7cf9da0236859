import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { fixed, shortestFloat32 } from '../formats/numbers.ts';
import { useWidth } from './size.ts';
import { MatrixView, type MatrixKind, type Place, type StepAxis } from './matrix_view.tsx';
import { Subscripted } from './subscripted.tsx';
import { Alert } from './alert.tsx';

export interface StepTableProps {
  readonly name: string;
  /** The colours of its picture; default: those of signed numbers. */
  readonly kind?: MatrixKind;
  /** Whether the table is open at first, and what is called when that changes. */
  readonly numbers: { readonly areShown: boolean; readonly onShow: (are: boolean) => void };
  readonly rows: StepAxis;
  readonly columns: StepAxis;
  readonly value: (row: number, column: number) => number;
  readonly selected: Place;
  readonly onSelect: (place: Place) => void;
  /** Makes numbers editable: applies a new number, and marks edited ones. */
  readonly edit?: { readonly apply: (place: Place, value: number) => void; readonly edited: (place: Place) => boolean };
  /** Makes cells switches. */
  readonly toggle?: { readonly flip: (place: Place) => void; readonly on: (place: Place) => boolean };
  /** 0 … 1 */
  readonly tint?: (row: number, column: number) => number;
  readonly total?: { readonly name: string; readonly value: (row: number) => number };
}

const pageRows = 16;
/** Columns per page by minimum width in pixels; wide screens show the 16 numbers of a small head at once. */
const columnsFrom = [
  [1120, 16],
  [800, 12],
  [560, 8],
  [420, 5],
] as const;
const leastColumns = 3;

const pageOf = (index: number, page: number) => Math.floor(index / page) * page;

/**
 * A picture and, on request, one page of its numbers. The table is one tab stop: arrow keys, Home, End, Page Up and
 * Page Down move between cells.
 */
export function StepTable({ name, kind = 'signed', numbers, rows, columns, value, selected, onSelect, edit, toggle, tint, total }: StepTableProps) {
  const [isOpenAtFirst] = useState(numbers.areShown);
  const table = useRef<HTMLTableElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const pageColumns = columnsFrom.find(([least]) => width >= least)?.[1] ?? leastColumns;
  const [start, setStart] = useState<Place>({ row: 0, column: 0 });
  const [editing, setEditing] = useState<Place & { readonly text: string; readonly typed: boolean }>();
  /** A closed input still fires a blur event, which must not apply its value again. */
  const open = useRef(false);
  const [error, setError] = useState('');
  /** Focus the selected cell after the next render. */
  const takeFocus = useRef(false);

  const place = { row: Math.min(selected.row, rows.count - 1), column: Math.min(selected.column, columns.count - 1) };
  const from = { row: Math.min(start.row, rows.count - 1), column: Math.min(start.column, columns.count - 1) };
  useLayoutEffect(() => {
    setStart({ row: pageOf(place.row, pageRows), column: pageOf(place.column, pageColumns) });
  }, [place.row, place.column, pageColumns]);
  useLayoutEffect(() => {
    if (!takeFocus.current) return;
    const cell = table.current!.querySelector<HTMLElement>('td [tabindex="0"]');
    if (!cell) return;
    takeFocus.current = false;
    cell.focus();
    if (cell instanceof HTMLInputElement) cell.setSelectionRange(editing?.typed ? cell.value.length : 0, cell.value.length);
  });

  const shownRows = Math.min(pageRows, rows.count - from.row);
  const shownColumns = Math.min(pageColumns, columns.count - from.column);
  const isShown =
    place.row >= from.row && place.row < from.row + shownRows && place.column >= from.column && place.column < from.column + shownColumns;
  const stop = isShown ? place : from;
  const indices = (count: number, first: number) => Array.from({ length: count }, (_, i) => first + i);

  const begin = (at: Place, text?: string) => {
    takeFocus.current = true;
    setError('');
    open.current = true;
    setEditing({ ...at, text: text ?? shortestFloat32(value(at.row, at.column)), typed: text !== undefined });
    onSelect(at);
  };
  const end = (back: boolean) => {
    open.current = false;
    takeFocus.current = back;
    setError('');
    setEditing(undefined);
  };
  const apply = (text: string, back: boolean) => {
    if (!editing || !open.current) return;
    const number = Number(text.trim().replace('−', '-'));
    if (text.trim() === '' || !Number.isFinite(Math.fround(number))) {
      if (back) setError(`“${text}” is not a number. Enter a number such as 0.5 or -2, or press Escape to keep the old one.`);
      else end(false);
      return;
    }
    if (text.trim() !== shortestFloat32(value(editing.row, editing.column))) edit!.apply({ row: editing.row, column: editing.column }, number);
    end(back);
  };
  const press = (at: Place) => {
    if (edit) begin(at);
    else {
      toggle?.flip(at);
      onSelect(at);
    }
  };

  const keydown = (event: KeyboardEvent) => {
    if (editing) return;
    const move = (row: number, column: number) => {
      takeFocus.current = true;
      onSelect({ row: Math.max(0, Math.min(rows.count - 1, row)), column: Math.max(0, Math.min(columns.count - 1, column)) });
      event.preventDefault();
    };
    const moves: Readonly<Record<string, () => void>> = {
      ArrowUp: () => move(stop.row - 1, stop.column),
      ArrowDown: () => move(stop.row + 1, stop.column),
      ArrowLeft: () => move(stop.row, stop.column - 1),
      ArrowRight: () => move(stop.row, stop.column + 1),
      Home: () => move(event.ctrlKey ? 0 : stop.row, 0),
      End: () => move(event.ctrlKey ? rows.count - 1 : stop.row, columns.count - 1),
      PageUp: () => move(stop.row - pageRows, stop.column),
      PageDown: () => move(stop.row + pageRows, stop.column),
      ...(edit && { F2: () => begin(stop) }),
    };
    if (Object.hasOwn(moves, event.key)) moves[event.key]!();
    else if (edit && /^[-\d.]$/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      begin(stop, event.key);
      event.preventDefault();
    }
  };

  const pager = (axis: StepAxis, plural: string, first: number, shown: number, page: number, go: (to: number) => void) =>
    axis.count > page && (
      <span class="pager">
        <button
          type="button"
          class="quiet"
          disabled={first === 0}
          aria-label={`Earlier ${plural} of ${name}`}
          onClick={() => go(Math.max(0, first - page))}
        >
          ‹
        </button>
        <span>
          {plural} {first + 1} to {first + shown} of {axis.count}
        </span>
        <button
          type="button"
          class="quiet"
          disabled={first + shown >= axis.count}
          aria-label={`Later ${plural} of ${name}`}
          onClick={() => go(first + page)}
        >
          ›
        </button>
      </span>
    );

  return (
    <div class="step-table">
      <MatrixView name={name} kind={kind} rows={rows} columns={columns} value={value} selected={place} onSelect={onSelect} />
      <details class="numbers" open={isOpenAtFirst} onToggle={(event) => numbers.onShow(event.currentTarget.open)}>
        <summary>Show the numbers</summary>
        <div class="table-frame" ref={frame}>
          <table ref={table} onKeyDown={keydown}>
            <caption>
              <Subscripted>{name}</Subscripted>
            </caption>
            <thead>
              <tr>
                <th scope="col" class="corner">
                  {rows.kind && `${rows.kind} \\ `}
                  {columns.kind}
                </th>
                {indices(shownColumns, from.column).map((j) => (
                  <th scope="col" key={j} class={j === place.column ? 'current' : ''}>
                    {columns.label(j)}
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
              {indices(shownRows, from.row).map((i) => (
                <tr key={i}>
                  <th scope="row" class={i === place.row ? 'current' : ''}>
                    {rows.kind ? rows.label(i) : <Subscripted>{rows.label(i)}</Subscripted>}
                  </th>
                  {indices(shownColumns, from.column).map((j) => {
                    const at = { row: i, column: j };
                    const isStop = i === stop.row && j === stop.column;
                    const isEdited = edit?.edited(at);
                    return (
                      <td
                        key={j}
                        class={`${isStop && isShown ? 'selected' : ''} ${isEdited ? 'edited' : ''} ${tint ? 'tinted' : ''}`}
                        {...(tint && { style: { '--share': `${Math.round(100 * (tint(i, j) || 0))}%` } })}
                      >
                        {editing?.row === i && editing.column === j ? (
                          <input
                            type="text"
                            inputMode="decimal"
                            autocomplete="off"
                            tabIndex={0}
                            aria-label={`${name}, ${rows.label(i)}, ${columns.label(j)}`}
                            aria-invalid={error ? 'true' : undefined}
                            defaultValue={editing.text}
                            onKeyDown={(event) => {
                              if (event.key === 'Enter') apply(event.currentTarget.value, true);
                              else if (event.key === 'Escape') end(true);
                              else return;
                              event.preventDefault();
                              event.stopPropagation();
                            }}
                            onBlur={(event) => apply(event.currentTarget.value, false)}
                          />
                        ) : (
                          <button
                            type="button"
                            tabIndex={isStop ? 0 : -1}
                            {...(toggle && { 'aria-pressed': toggle.on(at) })}
                            onClick={() => press(at)}
                          >
                            {fixed(value(i, j), 4)}
                            {isEdited && <span class="visually-hidden"> edited</span>}
                          </button>
                        )}
                      </td>
                    );
                  })}
                  {total && <td class="total">{fixed(total.value(i), 4)}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <Alert why={error} />
        <p class="note pagers">
          {pager(rows, 'rows', from.row, shownRows, pageRows, (row) => setStart({ ...from, row }))}
          {pager(columns, 'columns', from.column, shownColumns, pageColumns, (column) => setStart({ ...from, column }))}
        </p>
      </details>
    </div>
  );
}
