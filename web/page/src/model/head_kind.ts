/** What a head mostly looks at, from its weights alone. */

export type HeadKind = 'previous' | 'next' | 'self' | 'separator' | 'diffuse' | 'mixed';

/** In the order in which heads are sorted. */
export const headKinds: Readonly<Record<HeadKind, string>> = {
  previous: 'the previous token',
  next: 'the next token',
  self: 'the token itself',
  separator: 'special tokens',
  diffuse: 'many tokens alike',
  mixed: 'certain tokens',
};

export interface HeadSummary {
  readonly kind: HeadKind;
  /**
   * Means over the rows of tokens that are in a text: the weight of the token before, of the one after, of the token itself, and of all special
   * tokens together. The first two only count rows that have such a neighbour in the text.
   */
  readonly shares: Readonly<Record<'previous' | 'next' | 'self' | 'separator', number>>;
  /** Mean of -Σ w ln w over the rows, in nats. */
  readonly entropy: number;
}

/** A head is of the kind with the largest share, if that is at least so large. */
export const leastShare = 0.35;
/** Else it is diffuse, if its rows look at so large a part of all tokens: e^entropy / L. */
export const leastSpread = 0.75;

/** weights (L,L); whether each of the L tokens is special. */
export function headSummary(weights: Float32Array, special: readonly boolean[]): HeadSummary {
  const length = special.length;
  let entropy = 0;
  const rows = { previous: 0, next: 0, self: 0, separator: 0 };
  const sums = { previous: 0, next: 0, self: 0, separator: 0 };
  const add = (name: keyof typeof sums, weight: number) => {
    sums[name] += weight;
    rows[name] += 1;
  };
  const inText = (i: number) => special[i] === false;
  for (let i = 0; i < length; ++i) {
    let onSpecial = 0;
    for (let j = 0; j < length; ++j) {
      const weight = weights[i * length + j]!;
      if (weight > 0) entropy -= weight * Math.log(weight);
      if (special[j]) onSpecial += weight;
    }
    if (special[i]) continue;
    add('separator', onSpecial);
    add('self', weights[i * length + i]!);
    if (inText(i - 1)) add('previous', weights[i * length + i - 1]!);
    if (inText(i + 1)) add('next', weights[i * length + i + 1]!);
  }
  entropy /= length || 1;
  const share = (name: keyof typeof sums) => (rows[name] ? sums[name] / rows[name] : 0);
  const shares = { previous: share('previous'), next: share('next'), self: share('self'), separator: share('separator') };
  const [best, largest] = (Object.entries(shares) as [keyof typeof shares, number][]).reduce((a, b) => (b[1] > a[1] ? b : a));
  const kind = largest >= leastShare ? best : Math.exp(entropy) >= leastSpread * length ? 'diffuse' : 'mixed';
  return { kind, shares, entropy };
}

const isSpread = (kind: HeadKind): kind is 'diffuse' | 'mixed' => kind === 'diffuse' || kind === 'mixed';
const spreadText = ({ kind, entropy }: HeadSummary) => `${headKinds[kind]}, about ${Math.exp(entropy).toFixed(1)} at a time`;
const oftenness = (share: number) => (share > 0.5 ? 'mostly' : 'often');
const percent = (share: number) => `${Math.round(100 * share)} %`;

/** "mostly the previous token, 78 %" */
export function kindText(of: HeadSummary): string {
  if (isSpread(of.kind)) return spreadText(of);
  const share = of.shares[of.kind];
  return `${oftenness(share)} ${headKinds[of.kind]}, ${percent(share)}`;
}

/** "looks mostly at the previous token: 78 % of the weight" */
export function lookText(of: HeadSummary): string {
  if (isSpread(of.kind)) return `looks at ${spreadText(of)}`;
  const share = of.shares[of.kind];
  return `looks ${oftenness(share)} at ${headKinds[of.kind]}: ${percent(share)} of the weight`;
}
