/** Prefixes: "w = torch.tensor(", "Parameter containing:\ntensor(", "np.array(". */
const front = /^\s*(?:[A-Za-z_][\w.]*\s*=\s*)?(?:Parameter containing:\s*)?(?:[A-Za-z_]\w*\.)?(?:tensor|array|asarray)\s*\(\s*(?=\[)/;
/** Suffixes: ", device='cuda:0', dtype=torch.float16)". */
const back = /^\s*(?:,\s*\w+\s*=\s*[^,[\]]*)*,?\s*\)\s*;?\s*$/;
const longestBack = 200;

/** Removes the call and inserts commas where NumPy prints spaces. */
export function withoutPrint(text: string): string {
  const start = front.exec(text)?.[0].length;
  const end = text.lastIndexOf(']') + 1;
  const isCall = start !== undefined && text.length - end < longestBack && back.test(text.slice(end));
  const lists = isCall ? text.slice(start, end) : text;
  if (lists.includes(',')) return lists;
  return lists.replaceAll(/\](\s*)(?=\[)/g, '],$1').replaceAll(/([\w.])(\s+)(?=[-+.\w])/g, '$1,$2');
}
