import { describe, fail } from '../args/error.js';
import type { AttributeOptions, LensModel, LensText, TokenScores } from '../lens.js';
import { breaks, readModel, readOptions } from './model.js';

async function explain(op: string, given: LensModel, text: LensText, options: AttributeOptions | undefined, fixed?: string): Promise<TokenScores> {
  const model = readModel(op, given);
  const known = fixed === 'attention_rollout' ? ['position'] : ['target', 'contrast', 'position', ...(fixed ? [] : ['method'])];
  const { values, signal } = readOptions(op, options, known);
  const method = fixed ?? (values['method'] === undefined ? 'gradient_x_input' : values['method']);
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
