import type * as Contract from '../attn.js';

export const traceNames: typeof Contract.traceNames = Object.freeze([
  'q_proj',
  'k_proj',
  'v_proj',
  'q',
  'k',
  'v',
  'scores',
  'masked_scores',
  'probabilities',
  'weights',
  'weighted_values',
  'context',
  'merged',
  'output',
] as const);

export const encoderTraceNames: typeof Contract.encoderTraceNames = Object.freeze([
  ...traceNames,
  'attn_residual',
  'norm1',
  'ff_hidden',
  'ff_output',
  'ff_residual',
  'norm2',
  'c2c',
  'c2p',
  'p2c',
] as const);
