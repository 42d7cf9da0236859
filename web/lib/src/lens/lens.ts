/** attn/lens: analyses of language models, as functions over a model. */
import type * as Contract from '../lens.js';
import { AttnError } from '../args/error.js';
import { attentionGradient, attribute, rollout } from './attribute.js';
import { headScores } from './head_scores.js';
import { trace } from './hooks.js';
import { logitAttribution } from './logit_attribution.js';
import { logitLens } from './logit_lens.js';
import { attributionPatching, patchActivations } from './patching.js';

export { AttnError, attentionGradient, attribute, attributionPatching, headScores, logitAttribution, logitLens, patchActivations, rollout, trace };

({
  attentionGradient,
  attribute,
  attributionPatching,
  headScores,
  logitAttribution,
  logitLens,
  patchActivations,
  rollout,
  trace,
}) satisfies Omit<typeof Contract, 'AttnError'>;
