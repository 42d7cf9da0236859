import {
  gainFromOne,
  hasPositionBias,
  hasPostNorm,
  hasRmsNorm,
  isParallel,
  isPreNorm,
  isRotary,
  normEpsilon,
  scoreCap,
  scoreDivisor,
} from '../../model/kind.ts';
import { signal } from '@preact/signals';
import type { Tensor } from 'attn';
import type { ComponentChildren } from 'preact';
import { roundedTo8Bits } from '../../model/int8.ts';
import { onPaper, type LinearNames, type ParameterRows, type Part } from '../../model/parameter_names.ts';
import { model } from '../../state/model.ts';
import { cellInFocus } from '../../state/pointed.ts';
import { baselineTrace, originalOf } from '../../state/run.ts';
import { withEdit, type Edit } from '../../state/changes.ts';
import { changeInFocus, changeLayer, update, view } from '../../state/view.ts';
import type { Walk } from '../../state/walk.ts';
import type { MatrixKind, Place, StepAxis } from '../../ui/matrix_view.tsx';
import { StepTable, type StepTableProps } from '../../ui/step_table.tsx';
import { Dot, type DotProps } from '../../ui/working.tsx';

/** Selected columns of matrices of each width; kept from step to step. */
export const numbers = signal({ feature: 0, dimension: 0, hidden: 0 });

export interface Sizes {
  readonly tokens: readonly string[];
  readonly L: number;
  readonly E: number;
  readonly H: number;
  readonly D: number;
  readonly F: number;
  readonly preNorm: boolean;
  readonly rmsNorm: boolean;
  /** Added to the stored numbers of a norm. */
  readonly gainFrom: number;
  readonly postNorm: boolean;
  readonly parallel: boolean;
  /** Scores are divided by its root, and then stay within ± cap if it is not 0. */
  readonly divisor: number;
  readonly cap: number;
  readonly rotary: boolean;
  readonly gated: boolean;
  readonly positionBias: boolean;
  readonly activation: string;
  readonly eps: number;
}

export function sizesOf({ run, trace, names }: Walk): Sizes {
  const { config, heads } = run.model;
  const text = (...keys: readonly string[]) => keys.map((key) => config[key]).find((value) => typeof value === 'string');
  return {
    tokens: run.tokens,
    L: run.tokens.length,
    E: run.model.hiddenSize,
    H: heads,
    D: trace.q.dims[3]!,
    F: trace.ff_hidden.dims[2]!,
    preNorm: isPreNorm(config),
    rmsNorm: hasRmsNorm(config),
    gainFrom: gainFromOne(config),
    postNorm: hasPostNorm(config),
    parallel: isParallel(config),
    divisor: scoreDivisor(config, trace.q.dims[3]!),
    cap: scoreCap(config),
    rotary: isRotary(config),
    gated: names?.gate !== undefined,
    positionBias: hasPositionBias(config),
    activation: text('hidden_act', 'activation', 'hidden_activation', 'activation_function') ?? 'gelu',
    eps: normEpsilon(config),
  };
}

export interface StepProps {
  readonly walk: Walk;
  readonly sizes: Sizes;
}

/** For one text: the leading dimension is 1. */
export const at = ({ data, dims }: Tensor, row: number, column: number) => data[row * dims.at(-1)! + column]!;

export function before(walk: Walk, name: keyof Walk['trace'], index: number): number | undefined {
  const base = baselineTrace.value;
  return base?.layer === walk.layer && base.trace[name].data.length === walk.trace[name].data.length ? base.trace[name].data[index] : undefined;
}

export const tokenAxis = ({ tokens, L }: Sizes, kind: 'token' | 'query' | 'key'): StepAxis => ({ kind, count: L, label: (i) => tokens[i] ?? '' });
export const numberAxis = (count: number, kind = 'number'): StepAxis => ({ kind, count, label: (i) => String(i + 1) });

export const rowInFocus = ({ L }: Sizes) => Math.min(cellInFocus.value.row, L - 1);
export const columnInFocus = ({ L }: Sizes) => Math.min(cellInFocus.value.column, L - 1);
export const focusRow = (row: number) => update({ cell: { ...cellInFocus.value, row }, locked: true });
export const focusColumn = (column: number) => update({ cell: { ...cellInFocus.value, column }, locked: true });
export const focusCell = ({ row, column }: Place) => update({ cell: { row, column }, locked: true });

export const kindOfNumber = { model: 'feature', head: 'dimension', hidden: 'hidden' } as const;
export type NumberKind = keyof typeof kindOfNumber;
export const numberInFocus = (kind: NumberKind, count: number) => Math.min(numbers.value[kindOfNumber[kind]], count - 1);
export const focusNumber = (kind: NumberKind, value: number) => (numbers.value = { ...numbers.value, [kindOfNumber[kind]]: value });

/** Opens the numbers of the next steps too, but moves nothing in this one. */
export const shownNumbers = (): StepTableProps['numbers'] => ({
  areShown: view.value.showsNumbers,
  onShow: (are) => view.peek().showsNumbers !== are && update({ showsNumbers: are }),
});

export function TokenTable({
  sizes,
  name,
  tensor,
  kind,
  of = 'token',
  colour = 'signed',
  ...rest
}: {
  sizes: Sizes;
  name: string;
  tensor: Tensor;
  kind: NumberKind;
  of?: 'token' | 'query' | 'key';
  colour?: MatrixKind;
} & Pick<StepTableProps, 'edit' | 'total'>) {
  const width = tensor.dims.at(-1)!;
  const row = of === 'key' ? columnInFocus(sizes) : rowInFocus(sizes);
  return (
    <StepTable
      name={name}
      kind={colour}
      numbers={shownNumbers()}
      rows={tokenAxis(sizes, of)}
      columns={numberAxis(width)}
      value={(i, j) => at(tensor, i, j)}
      selected={{ row, column: numberInFocus(kind, width) }}
      onSelect={(place) => {
        if (of === 'key') focusColumn(place.row);
        else focusRow(place.row);
        focusNumber(kind, place.column);
      }}
      {...rest}
    />
  );
}

export function PairTable({ sizes, ...rest }: { sizes: Sizes } & Pick<StepTableProps, 'name' | 'kind' | 'value' | 'tint' | 'total' | 'toggle'>) {
  return (
    <StepTable
      numbers={shownNumbers()}
      rows={tokenAxis(sizes, 'query')}
      columns={tokenAxis(sizes, 'key')}
      selected={{ row: rowInFocus(sizes), column: columnInFocus(sizes) }}
      onSelect={focusCell}
      {...rest}
    />
  );
}

const isEdited = (edits: readonly Edit[], name: string, index: number) => edits.some((each) => each.name === name && each.index === index);

export function editX(width: number): NonNullable<StepTableProps['edit']> {
  const indexOf = ({ row, column }: Place) => row * width + column;
  return {
    apply: (place, value) => changeLayer({ edits: withEdit(changeInFocus.value.edits, { name: 'X', index: indexOf(place), value }) }),
    edited: (place) => isEdited(changeInFocus.value.edits, 'X', indexOf(place)),
  };
}

/** A weight of the layer as in × out. */
export const reader = (walk: Walk, rows: ParameterRows, part?: Part) => onPaper(walk.parameters.get(rows.name)!, rows, part);

export function ParameterTable({
  walk,
  name,
  rows,
  part,
  inKind,
  outKind,
}: {
  walk: Walk;
  name: string;
  rows: ParameterRows;
  part?: Part;
  inKind: NumberKind;
  outKind: NumberKind;
}) {
  const { ins, outs, indexOf, value } = reader(walk, rows, part);
  const isVector = walk.parameters.get(rows.name)!.dims.length === 1;
  const { weights } = view.value;
  return (
    <StepTable
      name={name}
      numbers={shownNumbers()}
      rows={isVector ? { kind: '', count: 1, label: () => name } : numberAxis(ins, 'in')}
      columns={numberAxis(outs, isVector ? 'number' : 'out')}
      value={value}
      selected={{ row: isVector ? 0 : numberInFocus(inKind, ins), column: numberInFocus(outKind, outs) }}
      onSelect={(place) => {
        if (!isVector) focusNumber(inKind, place.row);
        focusNumber(outKind, place.column);
      }}
      edit={{
        apply: (place, typed) => update({ weights: withEdit(view.value.weights, { name: rows.name, index: indexOf(place), value: typed }) }),
        edited: (place) => isEdited(weights, rows.name, indexOf(place)),
      }}
    />
  );
}

export function LinearTables({
  walk,
  name,
  biasName,
  linear,
  part,
  inKind,
  outKind,
}: {
  walk: Walk;
  name: string;
  biasName: string;
  linear: LinearNames;
  part?: Part;
  inKind: NumberKind;
  outKind: NumberKind;
}) {
  return (
    <>
      <ParameterTable walk={walk} name={name} rows={linear.weight} {...(part && { part })} inKind={inKind} outKind={outKind} />
      {linear.bias && (
        <ParameterTable
          walk={walk}
          name={biasName}
          rows={linear.bias}
          {...(part?.out && { part: { out: part.out } })}
          inKind={inKind}
          outKind={outKind}
        />
      )}
    </>
  );
}

export const isShown = (walk: Walk, linear: LinearNames | undefined): linear is LinearNames => !!linear && walk.parameters.has(linear.weight.name);

/** Spells out the output `column` of a linear map, whose inputs are a(0) ... a(count - 1). */
export function LinearDot({
  walk,
  linear,
  part,
  column,
  a,
  ...rest
}: { walk: Walk; linear: LinearNames; part?: Part; column: number } & Pick<DotProps, 'a' | 'count' | 'result'>) {
  const weight = reader(walk, linear.weight, part);
  const isInt8 = walk.run.model.dtype === 'int8';
  const rounded = isInt8 ? roundedTo8Bits(Array.from({ length: rest.count }, (_, i) => a(i))) : undefined;
  return (
    <>
      <Dot
        {...rest}
        a={rounded ? (i) => rounded[i]! : a}
        b={(i) => weight.value(i, column)}
        bias={linear.bias && reader(walk, linear.bias, part).value(0, column)}
      />
      {isInt8 && <span class="note"> (int8: the row is rounded to 8 bits first)</span>}
    </>
  );
}

export const WeightsBehind = ({ children }: { children: ComponentChildren }) => (
  <>
    <h4>The weights</h4>
    <EditHint />
    {model.value?.dtype === 'int8' && (
      <p class="note hint">They are int8, with one scale for each column of W. If you change a weight, the others in its column are rounded again.</p>
    )}
    {children}
  </>
);

export const publishedNumber = (walk: Walk, { name, index }: Edit): number | undefined =>
  name === 'X' ? baselineTrace.value?.run.hiddenStates[walk.layer]?.data[index] : originalOf(walk.run.model, name, index);

export function Choice<T extends string>({
  name,
  value,
  options,
  onChange,
}: {
  name: string;
  value: T;
  options: readonly (readonly [value: T, label: string])[];
  onChange: (value: T) => void;
}) {
  return (
    <div class="buttons choice" role="group" aria-label={name}>
      {options.map(([each, label]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => onChange(each)}>
          {label}
        </button>
      ))}
    </div>
  );
}

export const EditHint = () => (
  <p class="note hint">
    To change a number, show the numbers and click it, or move to it with the arrow keys and press Enter. Enter accepts the new number; Escape
    restores the old one.
  </p>
);
