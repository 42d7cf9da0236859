/** A picture for each step: its matrices, with the parts marked that give the number in focus. */
import type { Block, Mark, Piece } from '../../draw/blocks.ts';
import { isDecoder } from '../../model/loaded.ts';
import type { Walk } from '../../state/walk.ts';
import { columnInFocus, numberInFocus, rowInFocus, type Sizes } from './parts.tsx';

const sign = (text: string): Piece => ({ sign: text });
const [times, plus, equals] = [sign('·'), sign('+'), sign('=')];

const queryRow = (row: number): Mark => ({ of: 'query', row });
const keyRow = (row: number): Mark => ({ of: 'key', row });
const keyColumn = (column: number): Mark => ({ of: 'key', column });
const cell = (row: number, column: number): Mark => ({ of: 'query', row, column });

export function picturesOf({ run, head, layer }: Walk, sizes: Sizes): readonly (() => readonly Piece[])[] {
  const { L, E, D, H, F, preNorm, gated } = sizes;
  const [row, key] = [rowInFocus(sizes), columnInFocus(sizes)];
  const [feature, dimension, hidden] = [numberInFocus('model', E), numberInFocus('head', D), numberInFocus('hidden', F)];
  const block = (id: string, rows: number, columns: number, marks: readonly Mark[] = [], name = id): Block => ({ id, name, rows, columns, marks });

  const pairs = (id: string, name = id) => block(id, L, L, [cell(row, key)], name);
  const wide = (id: string, marks: readonly Mark[], name = id) => block(id, L, E, marks, name);
  const weights = (letter: string) => block(`W_${letter}`, E, D, [keyColumn(dimension)]);
  const own = `O_${head + 1}`;
  // The input of the feed-forward network.
  const normed = 'norm Z';
  const sum = preNorm ? 'Z' : normed;

  return [
    () => [wide('X', [cell(row, feature)])],
    () => [
      wide('X', [queryRow(row), keyRow(key)]),
      times,
      weights('Q'),
      weights('K'),
      weights('V'),
      equals,
      block('Q', L, D, [cell(row, dimension)]),
      block('K', L, D, [{ ...cell(key, dimension), of: 'key' }]),
      block('V', L, D, [{ ...cell(key, dimension), of: 'key' }]),
    ],
    () => [block('Q', L, D, [queryRow(row)]), times, block('K', D, L, [keyColumn(key)], 'Kᵀ'), equals, pairs('QKᵀ')],
    () => [pairs('QKᵀ'), sign('· scale ='), pairs('S')],
    () => [pairs('S'), sign('mask →'), pairs('masked S')],
    () => [block('masked S', L, L, [queryRow(row)]), sign('softmax →'), block('A', L, L, [queryRow(row)])],
    () => [
      block('A', L, L, [queryRow(row)]),
      times,
      block('V', L, D, [{ of: 'key', column: dimension }]),
      equals,
      block(own, L, D, [cell(row, dimension)]),
    ],
    () => [
      ...(head > 0 ? [sign('…')] : []),
      block(own, L, D, [queryRow(row)]),
      ...(head + 1 < H ? [sign('…')] : []),
      sign('→'),
      block('O', L, H * D, [{ of: 'query', row, column: head * D, columns: D }]),
    ],
    () => [block('O', L, H * D, [queryRow(row)]), times, block('W_O', H * D, E, [keyColumn(feature)]), equals, wide('Y', [cell(row, feature)])],
    () => [
      wide('X', [cell(row, feature)]),
      plus,
      wide('Y', [cell(row, feature)]),
      equals,
      wide('Z', [queryRow(row)]),
      sign('norm →'),
      wide(normed, [cell(row, feature)]),
    ],
    () => [
      wide(normed, [queryRow(row)]),
      times,
      block('W_1', E, F, [keyColumn(hidden)]),
      sign(gated ? 'gate →' : `${sizes.activation} →`),
      block('H', L, F, [queryRow(row)]),
      times,
      block('W_2', F, E, [keyColumn(feature)]),
      equals,
      wide('F', [cell(row, feature)]),
    ],
    () => [
      wide(sum, [cell(row, feature)]),
      plus,
      wide('F', [cell(row, feature)]),
      equals,
      wide('R', [preNorm ? cell(row, feature) : queryRow(row)]),
      ...(preNorm ? [] : [sign('norm →'), wide('norm R', [cell(row, feature)])]),
    ],
    () => {
      const { layers, labels } = run.model;
      const words = run.model.task === 'fill-mask' || isDecoder(run.model) ? Number(run.model.config['vocab_size']) : undefined;
      const left = layers - layer - 1;
      return [
        wide(preNorm ? 'R' : 'norm R', []),
        sign(left > 0 ? `${left} more layer${left > 1 ? 's' : ''} →` : '→'),
        labels ? block('answer', 1, labels.length) : words !== undefined ? block('logits', 1, words) : block('vector', 1, E),
      ];
    },
  ];
}
