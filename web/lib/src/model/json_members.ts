/** Splits without reparsing: transformers distinguishes 2.0 from 2. */
export function membersOf(json: string): string[] {
  const members: string[] = [];
  let [depth, start] = [0, 0];
  for (const { 0: found, index } of json.matchAll(/"(?:[^"\\]|\\.)*"|[[{,}\]]/g)) {
    if (found === '{' || found === '[') {
      if (depth++ === 0) start = index + 1;
    } else if (depth === 1 && (found === ',' || found === '}')) {
      members.push(json.slice(start, index).trim());
      start = index + 1;
    }
    if (found === '}' || found === ']') --depth;
  }
  return members.filter((member) => member !== '');
}
