import { inflateSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { Canvas } from '../card/canvas.ts';
import { cardTags, sourceAddress } from '../card/plugin.ts';
import { cardHeight, cardWidth, drawCard, firstMap, gridOf, type AttentionMap } from '../card/social_card.ts';
import { linesOf, widthOf } from '../card/stroke_font.ts';
import { paint } from '../src/draw/palette.ts';

let map: AttentionMap;
let card: Canvas;
beforeAll(async () => {
  map = await firstMap();
  card = drawCard(map);
});

const pixel = ({ pixels, width }: Canvas, x: number, y: number) => [...pixels.subarray(3 * (y * width + x), 3 * (y * width + x) + 3)];

describe('the social card', () => {
  it('shows the weights of the first view in their colours', () => {
    const { tokens, weights } = map;
    expect(weights).toHaveLength(tokens.length ** 2);
    for (let i = 0; i < tokens.length; ++i)
      expect(weights.subarray(i * tokens.length, (i + 1) * tokens.length).reduce((a, b) => a + b, 0)).toBeCloseTo(1, 5);
    const { cell, left, top } = gridOf(map);
    const largest = Math.max(...weights);
    weights.forEach((weight, at) => {
      const rgba = new Uint8ClampedArray(4);
      paint(rgba, 0, weight / largest);
      const [row, column] = [Math.floor(at / tokens.length), at % tokens.length];
      expect(pixel(card, left + column * cell + 2, top + row * cell + 2), `${row}, ${column}`).toEqual([...rgba.subarray(0, 3)]);
    });
  });

  it('fits all words and cells without overlaps', () => {
    const { cell, left, top } = gridOf(map);
    expect(cell).toBeGreaterThan(20);
    expect(left + cell * map.tokens.length).toBeLessThan(cardWidth);
    expect(top + cell * map.tokens.length).toBeLessThan(cardHeight);
    const labels = Math.max(...map.tokens.map((token) => widthOf(token, 17)));
    expect(top - labels).toBeGreaterThan(20);
    // The text on the left ends before the row labels.
    expect(48 + widthOf('attention, on your own sentence,', 18)).toBeLessThan(left - labels - 12);
  });

  it('is a PNG file that contains its pixels', () => {
    const png = Buffer.from(card.png());
    expect([...png.subarray(0, 8)]).toEqual([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]);
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([cardWidth, cardHeight]);
    const length = png.readUInt32BE(33);
    expect(png.toString('ascii', 37, 41)).toBe('IDAT');
    const rows = inflateSync(png.subarray(41, 41 + length));
    expect(rows).toHaveLength((3 * cardWidth + 1) * cardHeight);
    expect(rows.subarray(3 * cardWidth + 2, 2 * (3 * cardWidth + 1)).equals(card.pixels.subarray(3 * cardWidth, 6 * cardWidth))).toBe(true);
    expect(png.length).toBeLessThan(100_000);
  });
});

describe('letters drawn as strokes', () => {
  it('exist for every token of the map and are within their stated width', () => {
    const unknown = JSON.stringify(linesOf('\u2603', 72));
    for (const letter of new Set(map.tokens.join(''))) {
      expect(JSON.stringify(linesOf(letter, 72)), letter).not.toBe(unknown);
      const across = linesOf(letter, 72)
        .flat()
        .map(([x]) => x);
      expect(Math.max(...across), letter).toBeLessThanOrEqual(widthOf(letter, 72) + 4);
    }
    expect(widthOf('nn', 72)).toBe(2 * widthOf('n', 72) + 15);
  });

  it('cover only the pixels near them', () => {
    const canvas = new Canvas(60, 60, [0, 0, 0]);
    canvas.text('l', 30, 50, { size: 36, colour: [200, 100, 50], weight: 4 });
    expect(pixel(canvas, 30, 30)).toEqual([200, 100, 50]);
    expect(pixel(canvas, 36, 30)).toEqual([0, 0, 0]);
    canvas.text('l', 50, 10, { size: 36, colour: [0, 255, 0], weight: 4, upwards: true });
    expect(pixel(canvas, 20, 9)).toEqual([0, 255, 0]);
  });
});

describe('the metadata of the page', () => {
  const contents = (url?: string) =>
    Object.fromEntries(cardTags(url).map(({ attrs }) => [String(attrs!['property'] ?? attrs!['rel']), attrs!['content'] ?? attrs!['href']]));

  it('has absolute addresses if the address of the page is known, and relative ones otherwise', () => {
    expect(contents()).toMatchObject({ 'og:image': './social-card.png' });
    expect(contents()['og:url']).toBeUndefined();
    const whole = 'https://example.org/attn/';
    expect(contents(whole)).toMatchObject({ 'og:image': `${whole}social-card.png`, 'og:url': whole, canonical: whole });
    expect(contents(`${whole}index.html`)['og:image']).toBe(`${whole}social-card.png`);
  });

  it.each([
    [{}, ''],
    [{ repository: 'https://example.org/a/attn' }, 'https://example.org/a/attn'],
    [{ repository: { url: 'git+https://example.org/a/attn.git' } }, 'https://example.org/a/attn'],
    [{ repository: { url: 'git@example.org:a/attn.git' } }, ''],
    [{ repository: 'javascript:alert(1)' }, ''],
  ])('links to the repository from package.json only if it is a web page: %j', (manifest, expected) => {
    expect(sourceAddress(manifest)).toBe(expected);
  });
});
