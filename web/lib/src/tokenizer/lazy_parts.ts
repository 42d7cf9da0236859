export { readOtherTokens } from './other_tokens.js';
export { patterns } from './language_model_patterns.js';
export { runScripts, scriptLengths } from './unicode_scripts.js';
