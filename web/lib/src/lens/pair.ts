/** The common part of patchActivations() and attributionPatching(). */
import { fail } from '../args/error.js';
import { choice } from '../args/signature.js';
import type { EncoderTrace, EncoderTraceName, Tensor } from '../attn.js';
import type { LensModel, LensText, PatchOptions, PatchResult, PatchSite } from '../lens.js';
import {
  type AnyModel,
  breaks,
  Decoder,
  eachRowOfLogits,
  readIndex,
  readIndices,
  readModel,
  readOptions,
  readToken,
  readTokens,
  type Tokens,
} from './model.js';

const sites: readonly PatchSite[] = ['residual', 'head', 'attention', 'mlp'];

/** Intermediates that a site replaces; `residual` is the layer's input, a hidden state. */
const tracesOf: Readonly<Record<PatchSite, readonly EncoderTraceName[]>> = {
  residual: [],
  head: ['merged'],
  attention: ['merged'],
  mlp: ['ff_output', 'attn_residual'],
};

export interface Run {
  readonly hiddenStates: readonly Tensor[];
  readonly trace: ReadonlyMap<number, EncoderTrace>;
  /** Logit of the answer, minus that of the contrast. */
  readonly value: number;
}

export interface Pair {
  readonly op: string;
  readonly model: AnyModel;
  readonly decoder: Decoder;
  readonly pause: () => Promise<void>;
  readonly site: PatchSite;
  readonly answer: number;
  readonly contrast: number | undefined;
  readonly position: number;
  readonly positions: readonly number[];
  readonly clean: Tokens;
  readonly corrupted: Tokens;
}

export async function readPair(op: string, given: LensModel, cleanText: LensText, corruptedText: LensText, options: PatchOptions): Promise<Pair> {
  const model = readModel(op, given);
  const { values, signal } = readOptions(op, options, ['answer', 'contrast', 'site', 'position', 'positions']);
  const site = values['site'] === undefined ? 'residual' : sites[choice(op, 'site', values['site'], sites)]!;
  const decoder = await Decoder.of(op, model);
  const clean = await readTokens(op, model, cleanText, 'clean');
  const corrupted = await readTokens(op, model, corruptedText, 'corrupted');
  const L = clean.ids.length;
  if (corrupted.ids.length !== L)
    fail('ARGUMENT', op, 'corrupted', `has ${corrupted.ids.length} tokens`, `${L} tokens, as clean has`, 'Patching compares positions');
  if (site === 'head' && values['positions'] !== undefined)
    fail('ARGUMENT', op, 'positions', 'is given', 'no positions with the site head', 'A head is replaced at all positions');
  const answer = await readToken(op, model, 'answer', values['answer']);
  const contrast = values['contrast'] === undefined ? undefined : await readToken(op, model, 'contrast', values['contrast']);
  const position = readIndex(op, 'position', values['position'], L, L - 1);
  const positions = readIndices(op, 'positions', values['positions'], L);
  return { op, model, decoder, pause: breaks(op, signal), site, answer, contrast, position, clean, corrupted, positions };
}

/** Logits of the answer (minus the contrast) for normed hidden states (count,E). */
export async function valuesOf({ op, model, decoder, answer, contrast }: Pair, normed: Float32Array): Promise<number[]> {
  const values: number[] = [];
  await eachRowOfLogits(op, model, normed, decoder.width, (logits) => {
    values.push(logits[answer]! - (contrast === undefined ? 0 : logits[contrast]!));
  });
  return values;
}

async function run(pair: Pair, { inputs }: Tokens, names: readonly EncoderTraceName[]): Promise<Run> {
  const output = await pair.model.forward(inputs, {
    outputHiddenStates: true,
    outputLogits: false,
    ...(names.length > 0 && { trace: { names } }),
  });
  const E = pair.decoder.width;
  const row = output.lastHiddenState.data.slice(pair.position * E, (pair.position + 1) * E);
  return { hiddenStates: output.hiddenStates!, trace: output.trace ?? new Map(), value: (await valuesOf(pair, row))[0]! };
}

/** Throws ARGUMENT if the answer does not tell both texts apart. */
export async function runBoth(pair: Pair, names = tracesOf[pair.site]): Promise<readonly [clean: Run, corrupted: Run]> {
  await pair.pause();
  const clean = await run(pair, pair.clean, names);
  await pair.pause();
  const corrupted = await run(pair, pair.corrupted, names);
  if (clean.value === corrupted.value)
    fail('ARGUMENT', pair.op, 'answer', `has the value ${clean.value} in both texts`, 'an answer whose logit differs between the texts');
  return [clean, corrupted];
}

export function resultOf(
  { clean, corrupted, site, positions }: Pair,
  runs: readonly [Run, Run],
  recovered: Float32Array,
  columns: number,
): PatchResult {
  return {
    tokens: { clean: clean.tokens, corrupted: corrupted.tokens },
    ...(site !== 'head' && { positions }),
    clean: runs[0].value,
    corrupted: runs[1].value,
    recovered: { data: recovered, dims: [runs[0].hiddenStates.length - 1, columns] },
  };
}
