/** Layout in one row or, on narrow screens, in five. Units are pixels. */

export interface FlowNode {
  readonly id: FlowPart;
  /** "QKᵀ" */
  readonly name: string;
  /** 0-based steps of the example; a click opens the first. */
  readonly steps: readonly number[];
  readonly rows: number;
  readonly columns: number;
  /** Centre of the cells. */
  readonly x: number;
  readonly y: number;
}

export interface FlowEdge {
  readonly from: FlowPart;
  readonly to: FlowPart;
  /** "Wq" */
  readonly label?: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface Flow {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly FlowNode[];
  readonly edges: readonly FlowEdge[];
}

export type FlowPart = 'X' | 'Q' | 'K' | 'V' | 'products' | 'scores' | 'masked' | 'weights' | 'context' | 'second' | 'merged' | 'Y';

const parts: Readonly<Record<FlowPart, Omit<FlowNode, 'id' | 'x' | 'y'>>> = {
  X: { name: 'X', steps: [0], rows: 3, columns: 4 },
  Q: { name: 'Q', steps: [1], rows: 3, columns: 3 },
  K: { name: 'K', steps: [1], rows: 3, columns: 3 },
  V: { name: 'V', steps: [1], rows: 3, columns: 3 },
  products: { name: 'QKᵀ', steps: [2], rows: 3, columns: 3 },
  scores: { name: 'scale', steps: [3], rows: 3, columns: 3 },
  masked: { name: 'mask', steps: [4], rows: 3, columns: 3 },
  weights: { name: 'softmax', steps: [5], rows: 3, columns: 3 },
  context: { name: '· V', steps: [6, 7], rows: 3, columns: 3 },
  second: { name: 'head 2', steps: [8], rows: 3, columns: 3 },
  merged: { name: 'concat', steps: [8], rows: 3, columns: 6 },
  Y: { name: '· Wo', steps: [9], rows: 3, columns: 4 },
};

/** Queries, keys and values, and what is made of values alone, have their colours. */
export const colourOf: Readonly<Partial<Record<FlowPart, 'query' | 'key' | 'value'>>> = {
  Q: 'query',
  K: 'key',
  V: 'value',
  context: 'value',
  second: 'value',
  merged: 'value',
};

const cellSide = 15;
const nameGap = 9;
const shapeGap = 16;
const gap = 5;

type Places = Readonly<Record<FlowPart, readonly [x: number, y: number]>>;

const wide: Places = {
  X: [78, 150],
  Q: [205, 52],
  K: [205, 150],
  V: [205, 248],
  products: [320, 100],
  scores: [425, 100],
  masked: [530, 100],
  weights: [635, 100],
  context: [745, 100],
  second: [880, 222],
  merged: [880, 100],
  Y: [1025, 100],
};

const narrow: Places = {
  X: [160, 50],
  Q: [50, 160],
  K: [160, 160],
  V: [270, 160],
  products: [50, 268],
  scores: [160, 268],
  masked: [50, 376],
  weights: [160, 376],
  context: [270, 376],
  second: [50, 484],
  merged: [162, 484],
  Y: [277, 484],
};

const links: readonly (readonly [from: FlowPart, to: FlowPart, label?: string])[] = [
  ['X', 'Q', 'Wq'],
  ['X', 'K', 'Wk'],
  ['X', 'V', 'Wv'],
  ['Q', 'products'],
  ['K', 'products'],
  ['products', 'scores'],
  ['scores', 'masked'],
  ['masked', 'weights'],
  ['weights', 'context'],
  ['V', 'context'],
  ['context', 'merged'],
  ['second', 'merged'],
  ['merged', 'Y'],
];

function route(from: FlowNode, to: FlowNode): FlowEdge['points'] {
  const across = (node: FlowNode) => (node.columns * cellSide) / 2 + gap;
  const up = (cellSide * from.rows) / 2;
  const [above, below] = [(node: FlowNode) => node.y - up - nameGap - 14, (node: FlowNode) => node.y + up + shapeGap + gap];
  const sides: FlowEdge['points'] = [
    [from.x + across(from), from.y],
    [to.x - across(to), to.y],
  ];
  if (from.y === to.y || (to.x - from.x > across(from) + across(to) && Math.abs(from.y - to.y) < 100)) return sides;
  // From below, after what leads along the row.
  if (from.y > to.y)
    return from.x === to.x
      ? [
          [from.x, above(from)],
          [to.x, below(to)],
        ]
      : [sides[0]!, [to.x, from.y], [to.x, below(to)]];
  const [start, end]: FlowEdge['points'] = [
    [from.x, below(from)],
    [to.x, above(to)],
  ];
  if (from.id === 'X' || from.x === to.x) return [start!, end!];
  const between = (start![1] + end![1]) / 2;
  return [start!, [from.x, between], [to.x, between], end!];
}

/** Minimum width in pixels of the layout in one row. */
export const wideFrom = 800;

export function flowOf(pixels: number): Flow {
  const isWide = pixels >= wideFrom;
  const places = isWide ? wide : narrow;
  const node = (id: FlowPart): FlowNode => ({ id, ...parts[id], x: places[id][0], y: places[id][1] });
  const nodes = Object.fromEntries((Object.keys(parts) as FlowPart[]).map((id) => [id, node(id)])) as Record<FlowPart, FlowNode>;
  const edges = links.map(([from, to, label]) => ({ from, to, ...(label && { label }), points: route(nodes[from], nodes[to]) }));
  return { width: isWide ? 1075 : 320, height: isWide ? 300 : 535, nodes: Object.values(nodes), edges };
}

export type FlowState = 'ahead' | 'now' | 'done';

export const stateOf = ({ steps }: Pick<FlowNode, 'steps'>, step: number): FlowState =>
  steps.includes(step) ? 'now' : steps[0]! < step ? 'done' : 'ahead';

/** The page or the exported file defines the colours. */
export interface FlowShape {
  readonly kind: 'rect' | 'path' | 'text';
  readonly look: 'hit' | 'cell' | 'blocked' | 'row' | 'name' | 'size' | 'word' | 'line' | 'label';
  readonly at: Readonly<Record<string, string | number>>;
  readonly text?: string;
}

/** One word asks, in the first row. It needs all rows of these. */
const ofAllWords: readonly FlowPart[] = ['K', 'V'];

/** Fill strength of each cell: |value| relative to the largest. */
function strengths(values: ArrayLike<number> | undefined, count: number): readonly number[] {
  const all = Array.from({ length: count }, (_, i) => Math.abs(values?.[i] ?? 0));
  const largest = all.reduce((most, value) => (Number.isFinite(value) ? Math.max(most, value) : most), 0);
  return all.map((value) => (Number.isFinite(value) && largest > 0 ? value / largest : 0));
}

export function nodeShapes({ id, name, rows, columns, x, y }: FlowNode, values?: ArrayLike<number>, words?: readonly string[]): readonly FlowShape[] {
  const [left, top] = [x - (columns * cellSide) / 2, y - (rows * cellSide) / 2];
  const bottom = top + rows * cellSide;
  const filled = strengths(values, rows * columns);
  const cells = filled.flatMap((strength, at): FlowShape[] => {
    const [cellX, cellY] = [left + (at % columns) * cellSide, top + Math.floor(at / columns) * cellSide];
    const cell: FlowShape = {
      kind: 'rect',
      look: 'cell',
      at: { x: cellX, y: cellY, width: cellSide, height: cellSide, 'fill-opacity': Number((0.04 + 0.8 * strength).toFixed(3)) },
    };
    if (values?.[at] !== -Infinity) return [cell];
    return [cell, { kind: 'path', look: 'blocked', at: { d: `M${cellX + 4} ${cellY + cellSide - 4}L${cellX + cellSide - 4} ${cellY + 4}` } }];
  });
  const wide = Math.max(columns * cellSide + 8, 9 * name.length + 4, 40);
  return [
    {
      kind: 'rect',
      look: 'hit',
      at: { x: x - wide / 2, y: top - nameGap - 14, width: wide, height: bottom - top + nameGap + 14 + shapeGap + 4, rx: 6 },
    },
    { kind: 'text', look: 'name', at: { x, y: top - nameGap, 'text-anchor': 'middle' }, text: name },
    ...cells,
    ...(ofAllWords.includes(id)
      ? []
      : [{ kind: 'rect', look: 'row', at: { x: left, y: top, width: columns * cellSide, height: cellSide } } as const]),
    { kind: 'text', look: 'size', at: { x, y: bottom + shapeGap - 2, 'text-anchor': 'middle' }, text: `${rows} × ${columns}` },
    ...(words ?? []).map((word, i): FlowShape => ({
      kind: 'text',
      look: 'word',
      at: { x: left - 5, y: top + (i + 0.5) * cellSide + 4, 'text-anchor': 'end' },
      text: word,
    })),
  ];
}

export function edgeShapes({ points, label }: FlowEdge): readonly FlowShape[] {
  const [end, before] = [points.at(-1)!, points.at(-2)!];
  const angle = Math.atan2(end[1] - before[1], end[0] - before[0]);
  const wing = (turn: number) => [end[0] - 7 * Math.cos(angle + turn), end[1] - 7 * Math.sin(angle + turn)].map((value) => Number(value.toFixed(1)));
  const line = points.map((point, i) => `${i === 0 ? 'M' : 'L'}${point.join(' ')}`).join('');
  const head = `M${wing(0.45).join(' ')}L${end.join(' ')}L${wing(-0.45).join(' ')}`;
  const middle = [(points[0]![0] + points[1]![0]) / 2, (points[0]![1] + points[1]![1]) / 2] as const;
  return [
    { kind: 'path', look: 'line', at: { d: line + head } },
    ...(label ? [{ kind: 'text', look: 'label', at: { x: middle[0], y: middle[1] + 4, 'text-anchor': 'middle' }, text: label } as const] : []),
  ];
}
