/** Code that only some GGUF files need. Imported with the first of them. */
export { families, joinParts, llama3, readDivisors, yarn } from './families.js';
export { mergesOfScores, partsOf } from './sentencepiece.js';
