/** Code that only some GGUF files need. Imported with the first of them. */
export { families, joinParts, llama3, readDivisors, yarn } from './families.js';
export * as sentencePiece from './sentencepiece.js';
