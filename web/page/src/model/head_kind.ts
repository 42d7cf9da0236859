export type HeadKind = 'previous' | 'next' | 'self' | 'separator' | 'diffuse' | 'mixed';

/** In sorting order. */
export const headKinds: Readonly<Record<HeadKind, string>> = {
  previous: 'the previous token',
  next: 'the next token',
  self: 'the token itself',
  separator: 'special tokens',
  diffuse: 'many tokens evenly',
  mixed: 'different tokens for different queries',
};

export interface HeadSummary {
  readonly kind: HeadKind;
  /**
   * Mean weights, over the rows of text tokens, of the token before, the token after, the token itself, and all special
   * tokens. The first two count only rows whose neighbour is a text token.
   */
  readonly shares: Readonly<Record<'previous' | 'next' | 'self' | 'separator', number>>;
  /** Mean over the rows, in nats. */
  readonly entropy: number;
}

/** A head with a share of at least this size is named after its largest share. */
export const leastShare = 0.35;
/** Otherwise it is diffuse if e^entropy / L is at least this. */
export const leastSpread = 0.75;

/** weights (L,L) */
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
const spreadText = ({ kind, entropy }: HeadSummary) => `${headKinds[kind]}, on average about ${Math.exp(entropy).toFixed(1)} per query`;
const oftenness = (share: number) => (share > 0.5 ? 'mostly' : 'often');
const percent = (share: number) => `${Math.round(100 * share)} %`;

/** "mostly the previous token, 78 %" */
export function kindText(of: HeadSummary): string {
  if (isSpread(of.kind)) return spreadText(of);
  const share = of.shares[of.kind];
  return `${oftenness(share)} ${headKinds[of.kind]}, ${percent(share)}`;
}

/** "attends mostly to the previous token: 78 % of the weight" */
export function lookText(of: HeadSummary): string {
  const spread = Math.exp(of.entropy).toFixed(1);
  if (of.kind === 'diffuse') return `spreads the weight of each query over about ${spread} tokens`;
  if (of.kind === 'mixed') return `attends from each token to different ones; the weight of a row spreads over about ${spread} tokens`;
  const share = of.shares[of.kind];
  return `attends ${oftenness(share)} to ${headKinds[of.kind]}: ${percent(share)} of the weight`;
}

const headWords: Readonly<Record<HeadKind, string>> = {
  previous: 'looks at the word before',
  next: 'looks at the word after',
  self: 'looks at the word itself',
  separator: 'rests: it looks at the marks around the sentence',
  diffuse: 'looks at all words alike',
  mixed: 'depends on the words',
};

/** "often looks at the word before" */
export function headText({ kind, shares }: HeadSummary): string {
  const words = headWords[kind];
  return isSpread(kind) || kind === 'separator' || oftenness(shares[kind]) === 'mostly' ? words : `often ${words}`;
}
