/** All of it, which comes at once. */
export { patterns } from './language_model_patterns.js';
export { runScripts, scriptLengths } from './unicode_scripts.js';
