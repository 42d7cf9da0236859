/** Fenced code blocks of Markdown, as the tests run them. */

/**
 * In the text's order: `language`; `words`, what else stands behind ```; `name`, that in brackets, of a file; `text`; `line`, where it is; and `output`,
 * the text of a ```txt block that follows with nothing between, which is what the block prints.
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

/** Whether a program printed this; … stands for any text, in a line of its own for any lines. */
export const prints = (printed, expected) =>
  new RegExp(
    `^${expected
      .trimEnd()
      .split('\n')
      .map((line) => (line === '…' ? '[^]*' : line.trimEnd().split('…').map(escaped).join('.*')))
      .join('\\s*\\n')}\\s*$`,
  ).test(printed);
