/** Writes the flow diagram as an SVG with #rrggbb colours and no style sheet. */
import { colourOf, edgeShapes, nodeShapes, stateOf, type Flow, type FlowPart, type FlowShape, type FlowState } from '../draw/flow.ts';
import { escaped, font, ink, keyInk, paper, queryInk, valueInk } from './paper.ts';

const faint = '#8a92a0';
const quiet = '#545b69';

const inks = { query: queryInk, key: keyInk, value: valueInk } as const;

function look({ look: kind }: FlowShape, state: FlowState, part?: FlowPart): Readonly<Record<string, string | number>> {
  const meaning = part && colourOf[part];
  const colour = state === 'ahead' ? faint : meaning ? inks[meaning] : ink;
  switch (kind) {
    case 'hit':
      return state === 'now' ? { fill: '#ececee', stroke: ink, 'stroke-width': 1.5 } : { fill: 'none' };
    case 'cell':
      return { fill: colour, stroke: colour, 'stroke-width': state === 'now' ? 1.5 : 0.75 };
    case 'blocked':
      return { stroke: keyInk, 'stroke-width': 1.5 };
    case 'row':
      return { fill: 'none', stroke: colour, 'stroke-width': 2 };
    case 'line':
      return { fill: 'none', stroke: colour, 'stroke-width': state === 'now' ? 2.5 : 1.5, 'stroke-linejoin': 'round' };
    case 'name':
      return { fill: state === 'ahead' ? quiet : colour, 'font-size': 14, 'font-weight': 700 };
    default:
      return {
        fill: quiet,
        'font-size': kind === 'word' ? 12 : 11,
        ...(kind === 'label' && { stroke: paper, 'stroke-width': 4, 'paint-order': 'stroke' }),
      };
  }
}

const written = (shape: FlowShape, state: FlowState, part?: FlowPart): string => {
  const attributes = Object.entries({ ...shape.at, ...look(shape, state, part) })
    .map(([name, value]) => ` ${name}="${escaped(String(value))}"`)
    .join('');
  return shape.text === undefined ? `<${shape.kind}${attributes}/>` : `<${shape.kind}${attributes}>${escaped(shape.text)}</${shape.kind}>`;
};

export function flowSvg(
  { width, height, nodes, edges }: Flow,
  step: number,
  title: string,
  words: readonly string[],
  valuesOf: (part: FlowPart) => ArrayLike<number> | undefined,
): string {
  const stateAt = Object.fromEntries(nodes.map((node) => [node.id, stateOf(node, step)])) as Record<FlowPart, FlowState>;
  const top = 34;
  const parts = [
    ...edges.flatMap((edge) => edgeShapes(edge).map((shape) => written(shape, stateAt[edge.to]))),
    ...nodes.flatMap((node) =>
      nodeShapes(node, valuesOf(node.id), node.id === 'X' ? words : undefined).map((shape) => written(shape, stateAt[node.id], node.id)),
    ),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height + top}" viewBox="0 ${-top} ${width} ${height + top}" font-family="${font}">
<title>${escaped(title)}</title>
<rect x="0" y="${-top}" width="${width}" height="${height + top}" fill="${paper}"/>
<text x="12" y="-12" font-size="15" fill="${ink}">${escaped(title)}</text>
${parts.join('\n')}
</svg>
`;
}
