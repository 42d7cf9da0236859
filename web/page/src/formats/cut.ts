/** Text that a file, a link or a visitor brought: as much of it as a reader can use. A name of 15 MB would stop the page that shows it. */

/** A message: its beginning says what is wrong, its end often what to do. */
export const longestMessage = 600;
/** A name: of a file, a model, a label. */
export const longestName = 80;
/** A token or a word. */
export const longestToken = 60;

/** At most so many characters; what is left out of the middle is an ellipsis. No half of a surrogate pair stays. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = Math.floor((most - 1) / 3);
  const first = text.slice(0, most - 1 - end).replace(/[\ud800-\udbff]$/, '');
  const last = text.slice(text.length - end).replace(/^[\udc00-\udfff]/, '');
  return `${first}…${last}`;
}
