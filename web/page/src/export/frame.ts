/** HTML that embeds the head in focus into another page (embed.html). */
import { linkHash } from '../state/hash.ts';
import { mapOf } from './figures.ts';
import { escaped } from './paper.ts';
import type { Selection } from './selection.ts';

export function frameOf(of: Selection): string {
  const { width, height } = mapOf(of);
  const address = new URL(`embed.html#${linkHash()}`, location.href.replace(/[?#].*/, '')).href;
  // Space for the reading line and the link below the map.
  return `<iframe src="${escaped(address)}" title="${escaped(of.title)}" width="${width + 20}" height="${height + 80}" loading="lazy"></iframe>\n`;
}
