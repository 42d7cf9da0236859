/**
 * Limits that keep reading linear in a file's bytes, and tokenizing in a text's characters. In parentheses: the largest published
 * value. src/attn/io/tokenizer_limits.hpp has the native ones.
 */
export const limits = {
  /** Parts per kind, through all Sequences (10, 5, 3). */
  normalizers: 64,
  preTokenizers: 32,
  postProcessors: 16,
  /** (65 536) */
  addedTokens: 2 ** 18,
  /** Characters (256). */
  token: 1024,
  /** Characters of a marker such as ## (4). */
  affix: 16,
  /** Characters of a pattern or replacement (5). */
  pattern: 256,
  content: 256,
  /** Characters in base64 (400 000). */
  charsmap: 2 ** 22,
  /** All tokens together (some millions). */
  characters: 2 ** 24,
  /** Per template (4). */
  specialTokens: 1024,
  /** Growth of a text (18: NFKC); of long texts, with a constant (3: bytes of Chinese). */
  growth: 64,
  longGrowth: 4,
  moreGrowth: 2 ** 20,
  /** Per character, plus a constant (30). */
  steps: 256,
  moreSteps: 2 ** 16,
  /** Memory per byte of JSON (7), plus a constant; names (a million). */
  bytes: 10,
  moreBytes: 2 ** 20,
  names: 2 ** 21,
} as const;
