import { levelsOf, notAllowed } from '../draw/heatmap.ts';
import { colour } from '../palette.ts';
import { fixed } from '../numbers.ts';
import { font, ink, keyInk, layoutOf, paper, queryInk } from './picture.ts';
import type { Selection } from './selection.ts';

/** Control characters are not allowed in XML at all. */
export const escaped = (text: string) =>
  text
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]!);

/** Cells of more than this many tokens are one picture, or the file would be too large for every program. */
export const mostRectangles = 128;

/** `image`: the address of a picture of the cells, for more than mostRectangles tokens. */
export function toSvg({ title, shown, look }: Pick<Selection, 'title' | 'shown' | 'look'>, image?: string): string {
  const { size, cell, left, top, width, height, fontSize, titleBase, titleSize, every } = layoutOf(shown, title);
  const levels = levelsOf(shown, look);
  const parts: string[] = [];
  const side = cell > 6 ? cell - 1 : cell;
  if (image) parts.push(`<image x="${left}" y="${top}" width="${size * cell}" height="${size * cell}" href="${image}" image-rendering="pixelated"/>`);
  else
    levels.forEach((level, at) => {
      const [row, column] = [Math.floor(at / size), at % size];
      const [x, y] = [left + column * cell, top + row * cell];
      if (level === notAllowed)
        parts.push(`<path d="M${x + cell * 0.35} ${y + cell * 0.65}L${x + cell * 0.65} ${y + cell * 0.35}" stroke="${ink}" stroke-opacity=".35"/>`);
      if (level < 0) return;
      const words = `${shown.places[row]!.label} to ${shown.places[column]!.label}, ${fixed(shown.weights[at]!, 4)}`;
      parts.push(`<rect x="${x}" y="${y}" width="${side}" height="${side}" fill="${colour(level)}"><title>${escaped(words)}</title></rect>`);
    });
  const labels: string[] = [];
  for (let i = 0; i < size; i += every) {
    const text = escaped(shown.places[i]!.label);
    const middle = (i + 0.5) * cell;
    labels.push(`<text x="${left - 6}" y="${top + middle}" dy=".35em" text-anchor="end" fill="${queryInk}">${text}</text>`);
    labels.push(`<text transform="translate(${left + middle} ${top - 6}) rotate(-90)" dy=".35em" fill="${keyInk}">${text}</text>`);
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${font}" font-size="${fontSize}">
<title>${escaped(title)}</title>
<rect width="100%" height="100%" fill="${paper}"/>
<text x="${left}" y="${titleBase}" font-size="${titleSize}" fill="${ink}">${escaped(title)}</text>
${parts.join('\n')}
${labels.join('\n')}
</svg>
`;
}
