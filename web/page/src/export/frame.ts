/** HTML that shows the head in focus in another page: embed.html computes it there. */
import { linkHash } from '../state/hash.ts';
import { mapOf } from './figures.ts';
import { escaped } from './paper.ts';
import type { Selection } from './selection.ts';

export function frameOf(of: Selection): string {
  const { width, height } = mapOf(of);
  const address = new URL(`embed.html#${linkHash()}`, location.href.replace(/[?#].*/, '')).href;
  // Below the map there is a line that reads a cell, and a link.
  return `<iframe src="${escaped(address)}" title="${escaped(of.title)}" width="${width + 20}" height="${height + 80}" loading="lazy"></iframe>\n`;
}
