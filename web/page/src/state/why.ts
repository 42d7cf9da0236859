/** Attributes an answer to tokens by several methods. */
import { effect, signal } from '@preact/signals';
import type { TextModel as DirectModel } from 'attn';
import type { TextModel } from 'attn/worker';
import type { Params } from './address.ts';
import { editedWeights, shownModel } from './background.ts';
import { linesText, readLines } from './compare_texts.ts';
import { answerFunction, type LoadedModel } from '../model/loaded.ts';
import { engine } from './model.ts';
import { reportIfStopped, withModel } from './run.ts';
import { explain } from './status.ts';
import type { Edit } from './changes.ts';

export type Method = NonNullable<NonNullable<Parameters<DirectModel['attribute']>[1]>['method']>;

/** In display order. The first measures the effect of each token directly; the others are compared with it. */
export const methods = [
  'leave_one_out',
  'integrated_gradients',
  'gradient_x_input',
  'attention_gradient',
  'attention_rollout',
] as const satisfies readonly Method[];

export interface Why {
  readonly model: LoadedModel;
  readonly weights: readonly Edit[];
  readonly text: string;
  /** The likeliest answer, and its probability or value. */
  readonly label: string;
  readonly score: number;
  readonly tokens: readonly string[];
  readonly offsets: readonly ([number, number] | null)[];
  /** By token. */
  readonly scores: Readonly<Record<Method, Float32Array>>;
  /** Completeness error of integrated gradients. */
  readonly delta: number;
}

export const why = signal<Why | undefined>(undefined);
/** The current step. */
export const explaining = signal<string | undefined>(undefined);
export const whyFailure = signal<string | undefined>(undefined);

/** 0-based. */
export const lineToExplain = signal(0);
export const methodInFocus = signal<Method>('integrated_gradients');
/** The explanation in the address is not computed yet. */
const isAwaited = signal(false);

/** A link to an explanation computes it again. */
export function whyToParams(): Params {
  const text = readLines(linesText.value)[lineToExplain.value];
  const isShown = why.value !== undefined && isCurrent(why.value) && why.value.text === text;
  return isShown || isAwaited.value ? [['why', `${lineToExplain.value + 1}.${methodInFocus.value}`]] : [];
}

export function whyFromParams(params: URLSearchParams): void {
  const [, line, name] = /^([1-9]\d{0,3})\.(\w+)$/.exec(params.get('why') ?? '') ?? [];
  const method = methods.find((each) => each === name);
  const isAsked = method !== undefined && method !== 'leave_one_out';
  lineToExplain.value = isAsked ? Number(line) - 1 : 0;
  methodInFocus.value = isAsked ? method : 'integrated_gradients';
  // Last, because followWhy reads the other two as soon as this changes.
  isAwaited.value = isAsked;
}

/** Computes the explanation that the address contains. Returns a function that ends this. */
export function followWhy(): () => void {
  return effect(() => {
    if (!isAwaited.value || explaining.value !== undefined || !shownModel.value) return;
    isAwaited.value = false;
    const text = readLines(linesText.peek())[lineToExplain.peek()];
    // If another model of the same link was shown meanwhile, that one is explained next.
    if (text !== undefined) void explainLine(text).then((isCurrent) => (isAwaited.value ||= !isCurrent));
  });
}

type Ask = <T>(call: () => Promise<T>) => Promise<T>;

/** Runs `use` on the model, or on a float32 copy of one with int8 weights, which have no gradients. */
async function withGradients(of: LoadedModel, ask: Ask, signal: AbortSignal, use: (text: TextModel) => Promise<void>): Promise<void> {
  if (of.dtype === 'float32') return use(of.text);
  explaining.value = 'Making a float32 copy for gradients';
  const files = await ask(() => of.text.export());
  const copy = await engine.value!.loadModel(files, { weights: 'float32', signal });
  try {
    await use(copy);
  } finally {
    await copy.dispose();
  }
}

/** False if the model or its weights changed meanwhile, which ends the explanation. */
export async function explainLine(text: string): Promise<boolean> {
  const [of, weights] = [shownModel.value, editedWeights.value];
  if (!of?.labels || explaining.value !== undefined) return true;
  const ending = new AbortController();
  const { signal } = ending;
  const unfollow = effect(() => {
    if (shownModel.value !== of || editedWeights.value !== weights) ending.abort();
  });
  // One call at a time, so that typing need not wait for all methods.
  const ask: Ask = (call) =>
    withModel(() => {
      signal.throwIfAborted();
      return call();
    });
  explaining.value = 'Running the model';
  whyFailure.value = undefined;
  try {
    await withGradients(of, ask, signal, async (model) => {
      const [answers] = await ask(() => model.classify([text], { signal }));
      const { label, score } = answers![0]!;
      const scores = {} as Record<Method, Float32Array>;
      let made: Awaited<ReturnType<TextModel['attribute']>> | undefined;
      let delta = 0;
      for (const method of methods) {
        explaining.value = methodNames[method];
        made = await ask(() => model.attribute(text, { method, target: label, signal }));
        scores[method] = made.scores;
        if (made.delta !== undefined) delta = made.delta;
      }
      const { tokens, offsets } = made!;
      why.value = { model: of, weights, text, label, score, tokens, offsets, scores, delta };
    });
  } catch (error) {
    if (signal.aborted) return false;
    whyFailure.value = explain(error);
    reportIfStopped(error);
  } finally {
    unfollow();
    explaining.value = undefined;
  }
  return true;
}

export const methodNames: Readonly<Record<Method, string>> = {
  leave_one_out: 'leave one out',
  integrated_gradients: 'integrated gradients',
  gradient_x_input: 'gradient × input',
  attention_gradient: 'attention × gradient',
  attention_rollout: 'attention rollout',
};

export const isCurrent = (of: Why): boolean => of.model === shownModel.value && of.weights === editedWeights.value;

export const scoreText = ({ model, score }: Why): string =>
  answerFunction(model) === 'identity' ? score.toFixed(4) : `${(100 * score).toFixed(1)} %`;

/** Pearson's correlation, over the tokens that count. */
export function agreement(a: ArrayLike<number>, b: ArrayLike<number>, counts: (i: number) => boolean): number {
  const places = Array.from({ length: a.length }, (_, i) => i).filter(counts);
  const mean = (of: ArrayLike<number>) => places.reduce((sum, i) => sum + of[i]!, 0) / places.length;
  const [ma, mb] = [mean(a), mean(b)];
  let [ab, aa, bb] = [0, 0, 0];
  for (const i of places) {
    const [x, y] = [a[i]! - ma, b[i]! - mb];
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return ab / Math.sqrt(aa * bb);
}
