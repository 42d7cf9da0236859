import { figureToSvg } from 'attn/element';
import { describe, expect, it } from 'vitest';
import { toCsv } from '../src/export/csv.ts';
import { toJson } from '../src/export/json.ts';
import { toNpy } from '../src/export/npy.ts';
import { linesOf, mapOf } from '../src/export/figures.ts';
import { parseNpy } from '../src/formats/npy.ts';
import type { Place, Shown } from '../src/state/map_view.ts';

const placesFor = (labels: readonly string[]): Place[] => labels.map((label, i) => ({ label, tokens: [i], source: 0, range: [i, i + 1] }));
const shownOf = (labels: readonly string[], weights: readonly number[]): Shown => ({
  places: placesFor(labels),
  weights: Float32Array.from(weights),
  blocked: undefined,
  placeOf: new Int32Array(labels.length),
  largest: weights.reduce((a, b) => Math.max(a, b), 0),
});
const shown = shownOf(['say "hi"', 'a,b'], [0.1, 0.9, 1e-9, 1 / 3]);

describe('CSV export', () => {
  it('quotes labels and preserves float32 values', () => {
    const lines = toCsv(shown).split('\r\n');
    expect(lines[0]).toBe('"query \\ key","say ""hi""","a,b"');
    expect(lines).toHaveLength(4);
    const numbers = lines.slice(1, 3).flatMap((row) => row.split(',').slice(-2).map(Number));
    expect(Float32Array.from(numbers)).toEqual(shown.weights);
  });
  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', ' =1', '\uff1d1'])(
    'escapes the label %j so that a spreadsheet does not evaluate it',
    (label) => {
      expect(toCsv(shownOf([label], [1]))).toBe(`"query \\ key","'${label}"\r\n"'${label}",1\r\n`);
    },
  );
  it('leaves negative numbers and harmless labels unchanged', () => {
    expect(
      toCsv(
        shownOf(
          ["'s", 'a-b', '##=', '1'],
          Array.from({ length: 16 }, (_, i) => -i),
        ),
      ),
    ).toContain('"\'s",0,-1,-2,-3\r\n"a-b",-4,-5,-6,-7\r\n"##=",-8');
  });
});

describe('JSON export', () => {
  it('contains the facts, the labels and the matrix as rows', () => {
    const read = JSON.parse(toJson({ shown, facts: { model: 'm', layer: 2, text: 'a "b"' } }));
    expect(read).toMatchObject({ model: 'm', layer: 2, text: 'a "b"', labels: ['say "hi"', 'a,b'] });
    expect(Float32Array.from(read.weights.flat())).toEqual(shown.weights);
    expect(read.weights).toHaveLength(2);
  });
});

describe('.npy export', () => {
  it.each([[[2, 2]], [[4]], [[1, 2, 2]]])('preserves an array of shape %j and aligns its data to 64 bytes', (dims) => {
    const bytes = toNpy(shown.weights, dims);
    expect(parseNpy(bytes)).toEqual({ data: shown.weights, dims });
    expect((bytes.length - 16) % 64).toBe(0);
  });
});

describe('SVG export', () => {
  const about = { title: 'A & B', sentence: 'say hi, a,b', notes: ['Special tokens are hidden.'] };
  const svg = (of: Shown, threshold = 0, scaleBy: 'row' | 'head' = 'head') =>
    figureToSvg(mapOf({ ...about, shown: of, look: { threshold, scaleBy } }));
  const texts = (text: string) => [...text.matchAll(/<text[^>]*>([^<]*)</g)].map(([, each]) => each);
  it('escapes text', () => {
    const text = svg(shownOf(['<script>', '\u0000&'], [1, 0, 0, 1]));
    expect(text).toContain('<title>A &amp; B</title>');
    expect(text).toContain('&lt;script&gt;');
    expect(text).toContain('\ufffd&amp;');
    expect(text).not.toContain('<script>');
  });
  it('escapes every string of a figure, so that foreign text adds no elements or attributes', () => {
    const odd = '"/><script>&';
    const rect = { kind: 'rect', x: 0, y: 0, width: 1, height: 1, fill: odd, title: odd } as const;
    const path = { kind: 'path', d: odd, fill: odd, stroke: odd, dash: odd, cap: odd as 'butt' } as const;
    const words = { kind: 'text', x: 0, y: 0, text: odd, size: 1, fill: odd, anchor: odd as 'middle', weight: odd, family: odd } as const;
    const text = figureToSvg({ width: 1, height: 1, title: odd, background: odd, parts: [rect, path, words] });
    expect(text).not.toContain('<script>');
    expect(text.match(/&quot;\/&gt;&lt;script&gt;&amp;/g)).toHaveLength(14);
    expect([...text.matchAll(/<(\w+)/g)].map(([, name]) => name)).toEqual(['svg', 'title', 'rect', 'rect', 'title', 'path', 'text']);
  });
  it('draws one rectangle with its weight for each visible cell', () => {
    const count = (text: string) => text.match(/<rect/g)!.length;
    expect(count(svg(shown))).toBe(5);
    expect(count(svg(shown, 0.2))).toBe(3);
    expect(svg(shown)).toContain('a,b to a,b, 0.3333');
  });
  it('contains the title, sentence, axis titles, labels, numbers, colour scale and notes', () => {
    expect(texts(svg(shown))).toEqual(
      expect.arrayContaining([
        'A &amp; B',
        'say hi, a,b',
        'looks (query)',
        'is looked at (key)',
        'a,b',
        '.10',
        '.90',
        '.33',
        '0',
        '0.90',
        about.notes[0],
      ]),
    );
    expect(texts(svg(shown, 0, 'row'))).toContain('the largest weight of each row');
  });
  it('writes every colour as #rrggbb', () => {
    const text = svg(shown) + figureToSvg(linesOf({ ...about, shown, look: { threshold: 0, scaleBy: 'head' } }));
    const colours = [...text.matchAll(/(?:fill|stroke)="([^"]*)"/g)].map(([, each]) => each);
    expect(colours.length).toBeGreaterThan(20);
    expect(colours.filter((each) => each !== 'none' && !/^#[0-9a-f]{6}$/.test(each!))).toEqual([]);
    expect(text).not.toMatch(/style=|class=|rgb\(/);
  });
  it('draws one line for each visible weight, thicker for larger weights', () => {
    const lines = (threshold: number) =>
      linesOf({ ...about, shown, look: { threshold, scaleBy: 'head' } }).parts.flatMap((part) => (part.kind === 'path' && part.stroke ? [part] : []));
    expect(lines(0)).toHaveLength(4);
    const [thin, thick] = lines(0.2);
    expect(lines(0.2)).toHaveLength(2);
    expect(thick!.strokeWidth).toBeGreaterThan(thin!.strokeWidth!);
  });
  it('limits the size for 512 tokens by drawing all cells as one picture', () => {
    const labels = Array.from({ length: 512 }, () => 'token');
    const large = mapOf({
      ...about,
      shown: shownOf(
        labels,
        Array.from({ length: 512 * 512 }, () => 0.001),
      ),
      look: { threshold: 0, scaleBy: 'head' },
    });
    expect(Math.max(large.width, large.height)).toBeLessThan(2048);
    expect(large.parts.length).toBeLessThan(1000);
    expect(large.parts.filter(({ kind }) => kind === 'cells')).toHaveLength(1);
  });
});
