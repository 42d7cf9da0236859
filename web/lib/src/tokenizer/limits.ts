/**
 * What a tokenizer.json may ask for; more is UNSUPPORTED, by name. With these, reading a file takes time linear in its bytes, and tokenizing a text time
 * linear in its characters. In brackets the most that published files are known to have. The native tokenizer has the same where it has the part
 * (src/attn/io/tokenizer_limits.hpp).
 */
export const limits = {
  /** Parts of a kind, all Sequences and what is in them (10, 5, 3). */
  normalizers: 64,
  preTokenizers: 32,
  postProcessors: 16,
  /** (65 536) */
  addedTokens: 2 ** 18,
  /** Characters of a token, in the vocabulary, added, or to pad with (256). */
  token: 1024,
  /** Characters of the prefix of what continues a word, and of the suffix of what ends it (4). */
  affix: 16,
  /** Characters to look for, to put in their place, and to put first (5). */
  pattern: 256,
  content: 256,
  /** Characters of a Precompiled map in base64 (400 000). */
  charsmap: 2 ** 22,
  /** Characters of all tokens together (some millions). */
  characters: 2 ** 24,
  /** Tokens that a template puts around a text (4). */
  specialTokens: 1024,
  /**
   * Characters that a text may become: so many for each of its own and a few more (18 for each: NFKC's longest), of a long text so many for each and a
   * million more (3 for each: bytes of Chinese).
   */
  growth: 64,
  longGrowth: 4,
  moreGrowth: 2 ** 20,
  /** Steps for each character of a text, by the stages' own count, and some more (30). */
  steps: 256,
  moreSteps: 2 ** 16,
  /** Bytes that the values of a JSON file may take, for each of its own, and some more (7); and names that it may have (a million). */
  bytes: 10,
  moreBytes: 2 ** 20,
  names: 2 ** 21,
} as const;
