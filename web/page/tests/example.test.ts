import { beforeAll, describe, expect, it } from 'vitest';
import type { Attn } from 'attn/worker';
import { edgeShapes, flowOf, nodeShapes, stateOf, wideFrom } from '../src/draw/flow.ts';
import { flowSvg } from '../src/export/flow_svg.ts';
import {
  computeExample,
  example,
  exampleFromParams,
  exampleSteps,
  exampleToParams,
  exampleVersion,
  exampleWords,
  initialExample,
  resetExample,
  setNumber,
  updateExample,
} from '../src/state/example.ts';
import { titles } from '../src/sections/example/steps.tsx';
import { loadDirect } from './models.ts';

let attn: Attn;
beforeAll(async () => ({ attn } = await loadDirect()));

/** Matrix product in float64. */
const times = (a: readonly (readonly number[])[], b: readonly (readonly number[])[]) =>
  a.map((row) => b[0]!.map((_, j) => row.reduce((sum, value, k) => sum + value * b[k]![j]!, 0)));
const turned = (a: readonly (readonly number[])[]) => a[0]!.map((_, j) => a.map((row) => row[j]!));
const softmax = (a: readonly (readonly number[])[]) =>
  a.map((row) => {
    const exp = row.map((value) => Math.exp(value - Math.max(...row)));
    return exp.map((value) => value / exp.reduce((x, y) => x + y, 0));
  });
const near = ({ data }: { readonly data: ArrayLike<number> }, expected: readonly (readonly number[])[]) =>
  expected.flat().forEach((value, i) => expect(data[i]).toBeCloseTo(value, 4));

describe('the worked example', () => {
  it('computes two heads, concatenates them and applies the output matrix', async () => {
    const { X, Wq, Wk, Wv, Wo } = initialExample.matrices;
    const [Q, K, V] = [times(X, Wq), times(X, Wk), times(X, Wv)];
    const first = times(softmax(times(Q, turned(K))), V);
    const second = times(softmax(times(K, turned(V))), Q);
    const made = await computeExample(attn, initialExample);
    near(made.head.output, first);
    near(made.second.output, second);
    const merged = first.map((row, i) => [...row, ...second[i]!]);
    expect(made.merged.dims).toEqual([3, 6]);
    near(made.merged, merged);
    expect(made.Y.dims).toEqual([3, 4]);
    near(made.Y, times(merged, Wo));
    near(made.shortened, [
      [2, 7, 1.5],
      [2, 8, 0],
      [2, 7.8, 0.3],
    ]);
  });

  it('applies the usual scale and the causal mask', async () => {
    const { head, scale } = await computeExample(attn, { ...initialExample, usualScale: true, causal: true });
    expect(scale).toBeCloseTo(1 / Math.sqrt(3));
    near(
      head.scores,
      times(
        [[2, 4, 4]],
        [
          [scale, 0, 0],
          [0, scale, 0],
          [0, 0, scale],
        ],
      ),
    );
    expect([head.masked.data[1], head.weights.data[1], head.weights.data[0]]).toEqual([-Infinity, 0, 1]);
  });

  it('is saved in the address and restored from it', () => {
    expect(exampleToParams()).toEqual([]);
    setNumber('Wo', 5, 3, -0.5);
    updateExample({ step: 9, usualScale: true, causal: true });
    const changed = example.value;
    const params = exampleToParams();
    expect(params.map(([name]) => name)).toEqual(['hand.step', 'hand.Wo', 'hand.scale', 'hand.causal']);
    const version = exampleVersion.value;
    exampleFromParams(new URLSearchParams());
    expect(example.value).toEqual(initialExample);
    // The page compares identities to recognize the article's numbers.
    expect(example.value.matrices).toBe(initialExample.matrices);
    exampleFromParams(new URLSearchParams(params.map(([name, value]) => [name, value])));
    expect(example.value).toEqual(changed);
    expect(exampleVersion.value).toBe(version + 2);
    resetExample();
    expect(example.value).toEqual({ ...initialExample, step: 9 });
  });

  it.each([
    'hand.step=0',
    'hand.step=x',
    'hand.X=1,2;3',
    'hand.X=1,2,3,4;5,6,7,8;9,,1,2',
    'hand.Wk=a,b,c',
    'hand.scale=2',
    'hand.X=1e99,0,1,0;0,2,0,2;1,1,1,1',
  ])('falls back to the initial numbers if %s is invalid', (params) => {
    exampleFromParams(new URLSearchParams(params));
    expect(example.value).toEqual(initialExample);
    expect(example.value.matrices).toBe(initialExample.matrices);
  });

  it('opens at its last step if the address names a later one', () => {
    exampleFromParams(new URLSearchParams('hand.step=99'));
    expect(example.value.step).toBe(exampleSteps - 1);
    expect(titles).toHaveLength(exampleSteps);
  });
});

describe('the flow diagram', () => {
  it.each([320, wideFrom])('keeps all parts inside its frame without overlaps at %i pixels', (pixels) => {
    const { nodes, edges, width, height } = flowOf(pixels);
    const boxes = nodes.map((node) => nodeShapes(node)[0]!.at as Record<'x' | 'y' | 'width' | 'height', number>);
    boxes.forEach((box, i) => {
      expect(box.x, nodes[i]!.id).toBeGreaterThanOrEqual(0);
      expect(box.x + box.width, nodes[i]!.id).toBeLessThanOrEqual(width);
      expect(box.y + box.height, nodes[i]!.id).toBeLessThanOrEqual(height);
      for (const other of boxes.slice(i + 1))
        expect(
          box.x + box.width <= other.x || other.x + other.width <= box.x || box.y + box.height <= other.y || other.y + other.height <= box.y,
          nodes[i]!.id,
        ).toBe(true);
    });
    for (const { from, to, points } of edges)
      for (const [x, y] of points) {
        expect(x >= 0 && x <= width && y >= 0 && y <= height, `${from} to ${to}`).toBe(true);
        const inside = nodes.filter((node) => Math.abs(node.x - x) < (node.columns * 15) / 2 && Math.abs(node.y - y) < (node.rows * 15) / 2);
        expect(
          inside.map(({ id }) => id),
          `${from} to ${to}`,
        ).toEqual([]);
      }
  });

  it('highlights at least one part in every step', () => {
    const { nodes } = flowOf(1000);
    for (let step = 0; step < exampleSteps; ++step)
      expect(nodes.filter((node) => stateOf(node, step) === 'now').length, `step ${step + 1}`).toBeGreaterThan(0);
    const at = (step: number) => Object.fromEntries(nodes.map((node) => [node.id, stateOf(node, step)]));
    expect(at(5)).toMatchObject({ X: 'done', V: 'done', masked: 'done', weights: 'now', context: 'ahead', Y: 'ahead' });
    expect([at(6)['context'], at(7)['context'], at(8)['context']]).toEqual(['now', 'now', 'done']);
  });

  it('shades cells by value and strikes out hidden cells', () => {
    const node = flowOf(1000).nodes.find(({ id }) => id === 'masked')!;
    const shapes = nodeShapes(node, [2, -Infinity, 0, 4, 1, 1, 1, 1, -4]);
    const cells = shapes.filter(({ look }) => look === 'cell').map(({ at }) => at['fill-opacity']);
    expect(cells.slice(0, 4)).toEqual([0.44, 0.04, 0.04, 0.84]);
    expect(cells.at(-1)).toBe(0.84);
    expect(shapes.filter(({ look }) => look === 'blocked')).toHaveLength(1);
    const isFramed = flowOf(1000).nodes.filter((each) => nodeShapes(each).some(({ look }) => look === 'row'));
    expect(isFramed.map(({ id }) => id)).toEqual(['X', 'Q', 'products', 'scores', 'masked', 'weights', 'context', 'second', 'merged', 'Y']);
  });

  it('is exported as SVG without style sheets and with hexadecimal colours only', () => {
    const svg = flowSvg(flowOf(320), 2, 'Step 3: Q & K', exampleWords, () => undefined);
    expect(svg).toContain('<title>Step 3: Q &amp; K</title>');
    for (const [, colour] of svg.matchAll(/(?:fill|stroke)="([^"]*)"/g)) expect(colour).toMatch(/^(none|#[0-9a-f]{6})$/);
    expect(svg).not.toMatch(/class=|style=|var\(|NaN|undefined/);
    const cellsOf = (colour: string) => svg.match(new RegExp(`<rect [^>]*fill="${colour}"`, 'g'))?.length ?? 0;
    expect(['#1f4fc4', '#a03f09', '#0d7a55'].map(cellsOf), 'Q, K and V, which are done').toEqual([9, 9, 9]);
    for (const word of [...exampleWords, 'QKᵀ', 'softmax', 'Wq', '3 × 6']) expect(svg).toContain(`>${word}</text>`);
    expect(svg.match(/<rect /g)).toHaveLength(1 + 12 + 10 + flowOf(320).nodes.reduce((sum, { rows, columns }) => sum + rows * columns, 0));
  });

  it('draws an arrowhead at the end of each line', () => {
    for (const edge of flowOf(320).edges) {
      const path = String(edgeShapes(edge)[0]!.at['d']);
      const end = edge.points.at(-1)!.join(' ');
      expect(path.split(`L${end}`).length - 1, path).toBe(2);
    }
  });
});
