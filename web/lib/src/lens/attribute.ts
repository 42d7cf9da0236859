import { describe, fail } from '../args/error.js';
import { choice } from '../args/signature.js';
import type { AttributeOptions, LensModel, LensText, TokenScores } from '../lens.js';
import { breaks, readModel, readOptions } from './model.js';

const methods = ['gradient_x_input', 'integrated_gradients', 'attention_rollout', 'attention_gradient', 'leave_one_out'] as const;
type Method = (typeof methods)[number];

async function explain(op: string, given: LensModel, text: LensText, options: AttributeOptions | undefined, fixed?: Method): Promise<TokenScores> {
  const model = readModel(op, given);
  const known = fixed === 'attention_rollout' ? ['position'] : ['target', 'contrast', 'position', ...(fixed ? [] : ['method'])];
  const { values, signal } = readOptions(op, options, known);
  const method = fixed ?? (values['method'] === undefined ? methods[0] : methods[choice(op, 'method', values['method'], methods)]!);
  await breaks(op, signal)();
  if (typeof text !== 'string' && (await model.task) !== 'text-generation') fail('ARGUMENT', op, 'text', describe(text), 'a string');
  const { tokens, scores } = await model.attribute(text, { ...values, method, signal });
  return { tokens, scores };
}

export const attribute = (model: LensModel, text: LensText, options?: AttributeOptions): Promise<TokenScores> =>
  explain('attribute', model, text, options);
export const rollout = (model: LensModel, text: LensText, options?: AttributeOptions): Promise<TokenScores> =>
  explain('rollout', model, text, options, 'attention_rollout');
export const attentionGradient = (model: LensModel, text: LensText, options?: AttributeOptions): Promise<TokenScores> =>
  explain('attentionGradient', model, text, options, 'attention_gradient');
