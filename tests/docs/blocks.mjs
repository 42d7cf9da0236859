/** Parses fenced code blocks of Markdown. */

/**
 * Blocks in order: `language`; `words`, the rest of the line after ```; `name`, a file name in brackets there; `text`;
 * `line`; and `output`, the text of a directly following ```txt block, which is the expected output.
 */
export function blocksOf(markdown) {
  const found = [...markdown.matchAll(/^```(\w+)([^\n]*)\n([^]*?)^```$/gm)].map((match) => ({
    language: match[1],
    words: match[2].replace(/\[.*\]/, '').trim(),
    name: /\[(.*)\]/.exec(match[2])?.[1],
    text: match[3],
    line: markdown.slice(0, match.index).split('\n').length,
    start: match.index,
    end: match.index + match[0].length,
  }));
  return found.flatMap((block, i) => {
    if (block.language === 'txt') {
      const before = found[i - 1];
      const follows = before && before.language !== 'txt' && markdown.slice(before.end, block.start).trim() === '';
      if (!follows) throw new Error(`line ${block.line}: an output of nothing`);
      return [];
    }
    const next = found[i + 1];
    const output = next?.language === 'txt' && markdown.slice(block.end, next.start).trim() === '' ? next.text : undefined;
    return [{ ...block, output }];
  });
}

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** Compares output with expected text; … matches any text, and alone in a line any lines. */
export const prints = (printed, expected) =>
  new RegExp(
    `^${expected
      .trimEnd()
      .split('\n')
      .map((line) => (line === '…' ? '[^]*' : line.trimEnd().split('…').map(escaped).join('.*')))
      .join('\\s*\\n')}\\s*$`,
  ).test(printed);
