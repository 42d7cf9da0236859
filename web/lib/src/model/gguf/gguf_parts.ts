/** Imported with the first GGUF file that needs it. */
export { families, joinParts, llama3, readDivisors, yarn } from './families.js';
export { mergesOfScores, partsOf } from './sentencepiece.js';
