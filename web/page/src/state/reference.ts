/** Compares the page's classifier and mask model with PyTorch's results (testdata/make/goldens/page.py). */
import type { Encoding, Tensor } from 'attn';
import type { Attn } from 'attn/worker';
import referenceUrl from '../../../../testdata/page_reference.safetensors?url';
import { largestDifference } from '../arithmetic/differences.ts';
import { backgroundValue, editedWeights, shownModel } from './background.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { beside, engine } from './model.ts';
import { withModel } from './run.ts';

/** Models with results of PyTorch. */
export const referenced: readonly string[] = ['sentiment', 'masks'];

interface Case {
  readonly name: string;
  readonly checkpoint: string;
  readonly texts: readonly [string | readonly [string, string]];
  readonly tokens: readonly [readonly string[]];
  /** By result: max |PyTorch's float32 - its float64|. */
  readonly expected: Readonly<Record<string, number>>;
}

interface Reference {
  readonly torch: string;
  readonly transformers: string;
  readonly cases: readonly Case[];
  readonly tensors: ReadonlyMap<string, Tensor>;
}

export interface Compared {
  readonly what: string;
  readonly count: number;
  /** max |here - PyTorch's float64|; if a tensor exceeds its tolerance, of that tensor. */
  readonly difference: number;
  readonly tolerance: number;
  readonly passes: boolean;
}

export function addCompared(rows: Map<string, Compared>, what: string, { data }: Tensor, expected: ArrayLike<number>, allowed: number): void {
  const row = rows.get(what) ?? { what, count: 0, difference: 0, tolerance: 0, passes: true };
  const difference = largestDifference(data, expected);
  const passes = difference <= allowed;
  const isWorse = row.count === 0 || (passes === row.passes ? difference > row.difference : row.passes);
  const worst = isWorse ? { difference, tolerance: allowed, passes } : row;
  rows.set(what, { ...row, ...worst, count: row.count + expected.length });
}

export interface Comparison {
  readonly model: LoadedModel;
  readonly torch: string;
  readonly transformers: string;
  readonly texts: number;
  readonly rows: readonly Compared[];
}

/** As in testdata/README.md. */
export const tolerance = (error: number, expected: ArrayLike<number>): number => {
  let largest = 1;
  for (let i = 0; i < expected.length; ++i) largest = Math.max(largest, Math.abs(expected[i]!));
  return (2 * error + 1e-6) * largest;
};

export async function readReference(attn: Attn, file: ArrayBuffer): Promise<Reference> {
  const length = new DataView(file).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, length))) as {
    __metadata__: Record<'torch' | 'transformers' | 'cases', string>;
  };
  const { torch, transformers, cases } = header.__metadata__;
  return { torch, transformers, cases: JSON.parse(cases) as Reference['cases'], tensors: await attn.parseSafetensors(file) };
}

async function fetchReference(attn: Attn): Promise<Reference> {
  const response = await fetch(referenceUrl);
  if (!response.ok) throw new Error(`${referenceUrl} answered ${response.status}. Reload the page.`);
  return readReference(attn, await response.arrayBuffer());
}

let reference: Promise<Reference> | undefined;

/** 'attentions.0' -> 'Attention weights of layer 1' */
function describe(result: string, layers: number): string {
  const [kind, index] = result.split('.');
  if (kind === 'attentions') return `Attention weights of layer ${Number(index) + 1}`;
  if (kind === 'logits') return 'Logits';
  if (kind === 'lastHiddenState') return `Hidden states after layer ${layers}`;
  return index === '0' ? 'Embeddings' : `Hidden states after layer ${index}`;
}

const order = ['Embeddings', 'Attention', 'Hidden', 'Logits'];

/** (1,L,V) -> (V), of the blank. */
function ofBlank({ data, dims }: Tensor, { tokens }: Encoding, maskToken: string): Tensor {
  const [width, at] = [dims[2]!, tokens[0]!.indexOf(maskToken)];
  return { data: data.subarray(at * width, (at + 1) * width), dims: [width] };
}

/** `of` has float32 weights. */
export async function compare(of: LoadedModel, { torch, transformers, cases, tensors }: Reference): Promise<Comparison> {
  const rows = new Map<string, Compared>();
  const own = cases.filter(({ checkpoint }) => checkpoint === of.id);
  for (const { name, texts, tokens, expected } of own) {
    const encoding = await of.text.tokenize(texts as readonly string[]);
    if (encoding.tokens[0]!.join(' ') !== tokens[0].join(' '))
      throw new Error(`The tokens of “${String(texts[0])}” differ from those of PyTorch's tokenizer.`);
    const result = await withModel(() => of.text.forward(encoding, { outputAttentions: true, outputHiddenStates: true }));
    for (const [key, error] of Object.entries(expected)) {
      const [kind, index] = key.split('.') as ['attentions' | 'hiddenStates' | 'lastHiddenState' | 'logits', string?];
      const whole = result[kind]!;
      const each = Array.isArray(whole) ? whole[Number(index)]! : whole;
      const actual = kind === 'logits' && of.maskToken ? ofBlank(each, encoding, of.maskToken) : each;
      const wanted = tensors.get(`${name}/expected.${key}`)!;
      addCompared(rows, describe(key, of.layers), actual, wanted.data, tolerance(error, wanted.data));
    }
  }
  const place = ({ what }: Compared) => order.findIndex((each) => what.startsWith(each));
  const sorted = [...rows.values()].sort((a, b) => place(a) - place(b) || a.what.localeCompare(b.what));
  return { model: of, torch, transformers, texts: own.length, rows: sorted };
}

/** The model with float32 weights, if it is loaded. */
export const exactOf = (of: LoadedModel): LoadedModel | undefined => (of.dtype === 'float32' ? of : beside.value);

/** References are for the models as published, with float32 weights. */
export const comparison = backgroundValue<Comparison>(() => {
  const [of, attn, edits] = [shownModel.value, engine.value, editedWeights.value];
  const exact = of && exactOf(of);
  if (!of || !attn || !exact || !referenced.includes(of.id) || edits.length > 0) return undefined;
  return async () => {
    reference ??= fetchReference(attn);
    reference.catch(() => (reference = undefined));
    return { ...(await compare(exact, await reference)), model: of };
  };
});
