/**
 * The end of a long text that is cut need not be read. Before a space between letters, what went before becomes the same tokens whatever follows, if
 * all parts of the tokenizer are known to be so: none of them looks across that place, and one of them cuts there.
 */
import type { AddedTokens } from './added_tokens.js';
import type { Normalizer } from './normalizers.js';
import type { Part } from './post_processors.js';
import type { Section } from './schema.js';
import { readText, stringOf } from './text.js';

export type Side = 'left' | 'right';

/** What of a tokenizer says so. */
export interface Rules {
  readonly sections: readonly (Section | undefined)[];
  readonly normalize: Normalizer;
  readonly added: AddedTokens;
  /** Known once it has been asked for. */
  sides?: readonly Side[];
}

/** Letters and digits that have no decomposition and that no mark, case or script makes more than one. */
const letter = '[0-9A-Za-zα-ωА-ИК-ик-яא-ת]';
const boundary = new RegExp(`${letter}{2}(?= ${letter})`, 'g');
const between = /[\p{L}\p{N}][ ▁][\p{L}\p{N}]+$/u;
const isOf = (part: Section, types: string) => types.split(' ').includes(part.string('type'));

/** Sequences taken apart. */
function flat(section: Section | undefined): Section[] {
  if (!section) return [];
  const list = ['normalizers', 'pretokenizers'].find((name) => section.has(name));
  return list === undefined ? [section] : section.sections(list).flatMap(flat);
}

/** The sides that may be left unread. */
function sidesOf({ sections: [normalizer, preTokenizer], normalize, added }: Rules): readonly Side[] {
  let sides: readonly Side[] = ['right', 'left'];
  // Whether there may be ▁ in the place of the space.
  let mark = false;
  for (const part of flat(normalizer)) {
    if (isOf(part, 'Replace')) {
      const pattern = part.section('pattern');
      const text = pattern.has('String') ? pattern.string('String') : undefined;
      const content = part.string('content')[0];
      // What it finds has to begin behind the letter.
      if (text === undefined ? pattern.string('Regex').includes('p{') : /[\p{L}\p{N}]/u.test(text)) return [];
      if (text !== undefined && !/^[ ▁]/.test(text)) continue;
      if (content !== ' ' && content !== '▁') return [];
      mark ||= content === '▁';
      sides = ['right'];
    } else if (isOf(part, 'Strip Prepend')) sides = ['right'];
    else if (!isOf(part, 'BertNormalizer Lowercase NFC NFD NFKC NFKD StripAccents Nmt Precompiled')) return [];
  }
  for (let code = 48; code < 0x600; ++code) {
    const one = String.fromCharCode(code);
    // What a Precompiled map makes of it is not known otherwise.
    if (RegExp(letter).test(one) && !between.test(stringOf(normalize(readText(`${one} ${one}`)).codes))) return [];
  }
  for (const { content, singleWord, stripsRight } of added.all) {
    if (/[\p{L}\p{N}][\s▁]/u.test(content) || (stripsRight && /[\p{L}\p{N}]$/u.test(content))) return [];
    if (singleWord && /^[\s▁]/.test(content)) sides = ['right'];
  }
  for (const part of flat(preTokenizer)) {
    const isWhite = isOf(part, 'BertPreTokenizer WhitespaceSplit');
    if (isOf(part, 'Digits Punctuation') || (isWhite && mark)) continue;
    const pattern = part.has('pattern') ? part.section('pattern') : undefined;
    const cuts =
      isWhite ||
      isOf(part, 'Whitespace') ||
      (isOf(part, 'ByteLevel') && part.boolean('use_regex', true)) ||
      (isOf(part, 'Metaspace') && part.string('replacement') === '▁' && part.boolean('split', true)) ||
      (pattern?.has('Regex') && pattern.string('Regex').includes('p{') && part.string('behavior') === 'Isolated' && !part.boolean('invert'));
    return cuts ? sides : [];
  }
  return [];
}

/** More than `most` tokens from the other side on, or nothing where that would be most of the text. */
export function tokensOf(rules: Rules, text: string, most: number, side: Side, tokenize: (from: number, to: number) => Part): Part | undefined {
  for (let size = 16 * most + 256; 2 * size < text.length; size *= 4) {
    if (!(rules.sides ??= sidesOf(rules)).includes(side)) return undefined;
    boundary.lastIndex = side === 'right' ? size : text.length - size;
    if (!boundary.test(text)) continue;
    const at = boundary.lastIndex;
    if (side === 'right' && 2 * at > text.length) return undefined;
    const part = side === 'right' ? tokenize(0, at) : tokenize(at, text.length);
    if (part.ids.length > most) return part;
  }
  return undefined;
}
