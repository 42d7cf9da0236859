/** What each token of a line has to do with the classifier's answer, by several methods. Gradients take another build of the module, which is loaded when first asked for. */
import { effect, signal } from '@preact/signals';
import type { TextModel as DirectModel } from 'attn';
import { load, type Attn, type TextModel } from 'attn/worker';
import type { Params } from './address.ts';
import { editedWeights, shownModel } from './derived.ts';
import { linesText, readLines } from './lines.ts';
import { answerFunction, type LoadedModel } from '../model/loaded.ts';
import { withModel } from './run.ts';
import { explain } from './status.ts';
import type { Edit } from './changes.ts';

export type Method = NonNullable<NonNullable<Parameters<DirectModel['attribute']>[1]>['method']>;

/** In the order in which they are shown; the first is the plain truth that the others are held against. */
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
  /** The answer, and what the model makes of its logit. */
  readonly label: string;
  readonly score: number;
  readonly tokens: readonly string[];
  readonly offsets: readonly ([number, number] | null)[];
  /** By token. */
  readonly scores: Readonly<Record<Method, Float32Array>>;
  /** Of integrated gradients. */
  readonly delta: number;
}

export const why = signal<Why | undefined>(undefined);
/** What is being done; undefined: nothing. */
export const explaining = signal<string | undefined>(undefined);
export const whyFailure = signal<string | undefined>(undefined);

/** Of "Use it"; from 0. */
export const lineToExplain = signal(0);
/** Beside the plain truth. */
export const methodInFocus = signal<Method>('integrated_gradients');
/** The address has an explanation, which is not made yet. */
const isAwaited = signal(false);

/** An explanation on the page is made again where its link is opened. */
export function whyToParams(): Params {
  const text = readLines(linesText.value)[lineToExplain.value];
  const isShown = why.value !== undefined && isCurrent(why.value) && why.value.text === text;
  return isShown || isAwaited.value ? [['why', `${lineToExplain.value + 1}.${methodInFocus.value}`]] : [];
}

export function whyFromParams(params: URLSearchParams): void {
  const [, line, name] = /^([1-9]\d{0,3})\.(\w+)$/.exec(params.get('why') ?? '') ?? [];
  const method = methods.find((each) => each === name);
  isAwaited.value = method !== undefined && method !== 'leave_one_out';
  lineToExplain.value = isAwaited.value ? Number(line) - 1 : 0;
  methodInFocus.value = isAwaited.value ? method! : 'integrated_gradients';
}

/** Makes what the address asked for, once there is a model. */
export function followWhy(): void {
  effect(() => {
    if (!isAwaited.value || explaining.value !== undefined || !shownModel.value) return;
    isAwaited.value = false;
    const text = readLines(linesText.peek())[lineToExplain.peek()];
    if (text !== undefined) void explainLine(text);
  });
}

let training: Attn | undefined;
/** The model as the build for gradients has it. */
let copy: { readonly of: LoadedModel; readonly weights: readonly Edit[]; readonly text: TextModel } | undefined;

async function copyOf(of: LoadedModel, weights: readonly Edit[]): Promise<TextModel> {
  if (copy?.of === of && copy.weights === weights) return copy.text;
  const old = copy;
  copy = undefined;
  await old?.text.dispose();
  explaining.value = 'Loading what computes gradients';
  training ??= await load({ training: true });
  const files = await withModel(() => of.text.export());
  // Gradients of int8 weights there are none: of such a model they are those of the float32 numbers that its weights stand for.
  const text = await training.loadModel(files, { weights: 'float32' });
  copy = { of, weights, text };
  return text;
}

export async function explainLine(text: string): Promise<void> {
  const [of, weights] = [shownModel.value, editedWeights.value];
  if (!of?.labels || explaining.value !== undefined) return;
  explaining.value = 'Asking the model';
  whyFailure.value = undefined;
  try {
    const model = await copyOf(of, weights);
    const [answers] = await model.classify([text]);
    const { label, score } = answers![0]!;
    const scores = {} as Record<Method, Float32Array>;
    let made: Awaited<ReturnType<TextModel['attribute']>> | undefined;
    let delta = 0;
    for (const method of methods) {
      explaining.value = methodNames[method];
      made = await model.attribute(text, { method, target: label });
      scores[method] = made.scores;
      if (made.delta !== undefined) delta = made.delta;
    }
    const { tokens, offsets } = made!;
    why.value = { model: of, weights, text, label, score, tokens, offsets, scores, delta };
  } catch (error) {
    whyFailure.value = explain(error);
    // A worker that has died is started anew the next time.
    training?.terminate();
    [training, copy] = [undefined, undefined];
  } finally {
    explaining.value = undefined;
  }
}

export const methodNames: Readonly<Record<Method, string>> = {
  leave_one_out: 'leave one out',
  integrated_gradients: 'integrated gradients',
  gradient_x_input: 'gradient × input',
  attention_gradient: 'attention × gradient',
  attention_rollout: 'attention rollout',
};

export const isCurrent = (of: Why): boolean => of.model === shownModel.value && of.weights === editedWeights.value;

/** What the answer's number is called, for people. */
export const scoreText = ({ model, score }: Why): string =>
  answerFunction(model) === 'identity' ? score.toFixed(4) : `${(100 * score).toFixed(1)} %`;

/** How alike two lists are, whatever their scale: 1 the same order and proportions, 0 nothing in common (Pearson). Tokens of the text only. */
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
