const separators = ['\t', ';', ',', ' '] as const;

/** Quoted cells may contain the separator. */
function cellsOf(line: string, separator: string): readonly string[] {
  if (separator === ' ') return line.trim().split(/\s+/);
  if (!line.includes('"')) return line.split(separator).map((cell) => cell.trim());
  const cells: string[] = [];
  let [cell, isQuoted] = ['', false];
  for (const sign of line) {
    if (sign === '"') isQuoted = !isQuoted;
    else if (sign === separator && !isQuoted) {
      cells.push(cell.trim());
      cell = '';
    } else cell += sign;
  }
  return [...cells, cell.trim()];
}

const number = /^[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|inf|infinity|nan)$/i;
const isNumber = (cell: string) => number.test(cell);

/** Without column and row names; undefined if the text is not a table of numbers. */
export function tableRows(text: string): readonly (readonly string[])[] | undefined {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  const separator = separators.find((each) => lines.some((line) => line.trim().includes(each))) ?? (lines.length > 1 ? ',' : undefined);
  if (separator === undefined) return undefined;
  // With decimal commas, cells are separated by semicolons or tabs.
  const decimal = (cell: string) => (separator === ';' || separator === '\t' ? cell.replace(/^([-+]?\d+),(\d+)$/, '$1.$2') : cell);
  const rows = lines.map((line) => cellsOf(line, separator).map(decimal));
  const hasNames = rows.length > 1 && rows.slice(1).every((row) => row.length > 1 && !isNumber(row[0]!));
  const hasHead = rows.length > 1 && rows[0]!.some((cell) => !isNumber(cell)) && !rows[0]!.slice(1).every((cell) => cell !== '' && isNumber(cell));
  const numbers = (hasHead ? rows.slice(1) : rows).map((row) => (hasNames ? row.slice(1) : row));
  return numbers.length > 0 && numbers.every((row) => row.every(isNumber)) ? numbers : undefined;
}
