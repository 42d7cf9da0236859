/** A name of 15 MB in a file or link would freeze the page. */

/** A message's beginning states the fault, its end often the remedy. */
export const longestMessage = 600;
export const longestName = 80;
export const longestToken = 60;

/** Replaces the middle of a longer text by an ellipsis, without splitting surrogate pairs. */
export function truncate(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = Math.floor((most - 1) / 3);
  const first = text.slice(0, most - 1 - end).replace(/[\ud800-\udbff]$/, '');
  const last = text.slice(text.length - end).replace(/^[\udc00-\udfff]/, '');
  return `${first}…${last}`;
}
