import type * as Contract from '../attn.js';

export const traceNames: typeof Contract.traceNames = [
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
];

export const encoderTraceNames: typeof Contract.encoderTraceNames = [
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
];
