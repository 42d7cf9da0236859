/** Rather too large, because on servers there is no font to measure. */

const widthOfLetter = (letter: string) => (/[\u1100-\uffdc]|[^\0-\uffff]/u.test(letter) ? 1.05 : 0.64);
export const widthOf = (text: string, size: number): number => size * [...text].reduce((sum, letter) => sum + widthOfLetter(letter), 0);

/** Truncates a label. */
export function shortened(text: string, most: number): string {
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join('')}…`;
}

/** Breaks between words, or within an overlong word; returns at most `most` lines. */
export function wrapped(text: string, size: number, width: number, most: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const longer = line ? `${line} ${word}` : word;
    if (widthOf(longer, size) <= width) {
      line = longer;
      continue;
    }
    if (line) lines.push(line);
    line = '';
    for (const letter of word) {
      if (widthOf(line + letter, size) > width && line) {
        lines.push(line);
        line = '';
      }
      line += letter;
    }
  }
  if (line) lines.push(line);
  return lines.length <= most ? lines : [...lines.slice(0, most - 1), `${lines[most - 1]!.slice(0, -1)}…`];
}
