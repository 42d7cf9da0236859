/** Loaded with the first call of one of these functions, or a long text. */
export { attribute } from './attribute.js';
export { exportFiles } from './export_model.js';
export { fineTune } from './fine_tuning.js';
export { missing } from './missing.js';
export { generate, nextToken, scoreTokens } from '../tasks/generate.js';
export { answer, classifyTokens, fillMask, rank } from '../tasks/tasks.js';
export { classifyZeroShot } from '../tasks/zero_shot.js';
export { verified } from './sha256.js';
export * as earlyEnd from '../tokenizer/early_end.js';
export * as rare from '../tokenizer/lazy_parts.js';
