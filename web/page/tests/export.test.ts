import { describe, expect, it } from 'vitest';
import { toCsv } from '../src/export/csv.ts';
import { toJson } from '../src/export/json.ts';
import { toNpy } from '../src/export/npy.ts';
import { layoutOf } from '../src/export/picture.ts';
import { toSvg } from '../src/export/svg.ts';
import { parseNpy } from '../src/npy.ts';
import type { Place, Shown } from '../src/state/shown.ts';

const placesFor = (labels: readonly string[]): Place[] => labels.map((label, i) => ({ label, tokens: [i], source: 0, range: [i, i + 1] }));
const shownOf = (labels: readonly string[], weights: readonly number[]): Shown => ({
  places: placesFor(labels),
  weights: Float32Array.from(weights),
  blocked: undefined,
  placeOf: new Int32Array(labels.length),
  largest: Math.max(...weights),
});
const shown = shownOf(['say "hi"', 'a,b'], [0.1, 0.9, 1e-9, 1 / 3]);

describe('CSV', () => {
  it('quotes labels and writes numbers that read back as the same float32', () => {
    const lines = toCsv(shown).split('\r\n');
    expect(lines[0]).toBe('"query \\ key","say ""hi""","a,b"');
    expect(lines).toHaveLength(4);
    const numbers = lines.slice(1, 3).flatMap((row) => row.split(',').slice(-2).map(Number));
    expect(Float32Array.from(numbers)).toEqual(shown.weights);
  });
  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', ' =1', '\uff1d1'])(
    'makes text of the label %j, which a spreadsheet would compute',
    (label) => {
      expect(toCsv(shownOf([label], [1]))).toBe(`"query \\ key","'${label}"\r\n"'${label}",1\r\n`);
    },
  );
  it('leaves numbers numbers, negative ones too, and other labels as they are', () => {
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

describe('JSON', () => {
  it('holds the facts, the labels and the matrix as rows', () => {
    const read = JSON.parse(toJson({ shown, facts: { model: 'm', layer: 2, text: 'a "b"' } }));
    expect(read).toMatchObject({ model: 'm', layer: 2, text: 'a "b"', labels: ['say "hi"', 'a,b'] });
    expect(Float32Array.from(read.weights.flat())).toEqual(shown.weights);
    expect(read.weights).toHaveLength(2);
  });
});

describe('.npy', () => {
  it.each([[[2, 2]], [[4]], [[1, 2, 2]]])('of shape %j is read back as it was, with the data at a multiple of 64 bytes', (dims) => {
    const bytes = toNpy(shown.weights, dims);
    expect(parseNpy(bytes)).toEqual({ data: shown.weights, dims });
    expect((bytes.length - 16) % 64).toBe(0);
  });
});

describe('SVG', () => {
  const svg = (of: Shown, threshold = 0) => toSvg({ title: 'A & B', shown: of, look: { threshold, scaleBy: 'head' } });
  it('escapes what is text', () => {
    const text = svg(shownOf(['<script>', '\u0000&'], [1, 0, 0, 1]));
    expect(text).toContain('<title>A &amp; B</title>');
    expect(text).toContain('&lt;script&gt;');
    expect(text).toContain('\ufffd&amp;');
    expect(text).not.toContain('<script>');
  });
  it('has one rectangle for each cell that is drawn, besides its background, with its number', () => {
    const count = (text: string) => text.match(/<rect/g)!.length;
    expect(count(svg(shown))).toBe(5);
    expect(count(svg(shown, 0.2))).toBe(3);
    expect(svg(shown)).toContain('a,b to a,b, 0.3333');
  });
  it('takes a picture instead of the cells', () => {
    const text = toSvg({ title: '', shown, look: { threshold: 0, scaleBy: 'row' } }, 'data:image/png;base64,');
    expect(text.match(/<rect/g)).toHaveLength(1);
    expect(text).toContain('href="data:image/png;base64,"');
  });
});

it('a picture of 512 tokens stays of a size that every browser can draw', () => {
  const { width, height, every } = layoutOf({ places: placesFor(Array.from({ length: 512 }, () => 'token')) }, 'title');
  expect(Math.max(width, height)).toBeLessThan(2048);
  expect(every).toBeGreaterThan(3);
});
