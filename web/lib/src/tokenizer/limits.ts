/**
 * Limits of a tokenizer.json; larger values are UNSUPPORTED. They make reading linear in the file's bytes and
 * tokenizing linear in a text's characters. In parentheses: the largest known value in published files.
 * src/attn/io/tokenizer_limits.hpp has the native ones.
 */
export const limits = {
  /** Parts of each kind, counted through all Sequences (10, 5, 3). */
  normalizers: 64,
  preTokenizers: 32,
  postProcessors: 16,
  /** Added tokens (65 536). */
  addedTokens: 2 ** 18,
  /** Characters of a token (256). */
  token: 1024,
  /** Characters of a word's prefix or suffix marker, such as ## (4). */
  affix: 16,
  /** Characters of a pattern, and of a replacement (5). */
  pattern: 256,
  content: 256,
  /** Characters of a Precompiled map in base64 (400 000). */
  charsmap: 2 ** 22,
  /** Characters of all tokens together (some millions). */
  characters: 2 ** 24,
  /** Special tokens of a template (4). */
  specialTokens: 1024,
  /**
   * Factor by which a text may grow, plus a few characters (18: NFKC); for long texts a smaller factor plus a million
   * (3: bytes of Chinese).
   */
  growth: 64,
  longGrowth: 4,
  moreGrowth: 2 ** 20,
  /** Steps per character as the stages count them, plus a constant (30). */
  steps: 256,
  moreSteps: 2 ** 16,
  /** Bytes of memory per byte of a JSON file, plus a constant (7); number of names (a million). */
  bytes: 10,
  moreBytes: 2 ** 20,
  names: 2 ** 21,
} as const;
