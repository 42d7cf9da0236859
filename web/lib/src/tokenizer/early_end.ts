/**
 * Finds positions in a long text after which nothing affects the tokens before them, so that a truncated end is not
 * read: no part of the tokenizer looks across them and one splits there. Between words: a space between letters. In
 * scripts without spaces (Chinese, Thai …): between two letters, if the normalizer inserts a space or the model
 * supports open words, or before punctuation, if the pre-tokenizer splits there.
 */
import type { AddedTokens } from './added_tokens.js';
import type { Normalizer } from './normalizers.js';
import type { Part } from './post_processors.js';
import type { Section } from './schema.js';
import { readText, stringOf } from './text.js';

export type Side = 'left' | 'right';

export interface Rules {
  readonly sections: readonly (Section | undefined)[];
  readonly normalize: Normalizer;
  readonly added: AddedTokens;
  readonly takesOpenWords: boolean;
  ends?: Ends;
}

interface Ends {
  /** Sides that may be skipped at a space. */
  readonly sides: readonly Side[];
  /**
   * Required pattern between the normalized characters around a position without a space; '' if the word continues.
   * Only the text after may be skipped.
   */
  readonly infix?: string;
}

/** No decomposition; no mark, case or script expands them. */
const letter = '[0-9A-Za-zα-ωА-ИК-ик-яא-ת]';
/** Scripts without spaces, and Korean syllables. None composes with the preceding character. */
const unspaced = '[ก-ฮぁ-ゖァ-ヺ一-龥가-힣]';
const boundary = new RegExp(`${letter}{2}(?= ${letter})|${unspaced}(?= ?${unspaced}|[、。！，：；？])`, 'g');
/** Positions to try before a larger part is taken. */
const mostPlaces = 64;
const between = /[\p{L}\p{N}][ ▁][\p{L}\p{N}]+$/u;
const isOf = (part: Section, types: string) => types.split(' ').includes(part.string('type'));

function flat(section: Section | undefined): Section[] {
  if (!section) return [];
  const list = ['normalizers', 'pretokenizers'].find((name) => section.has(name));
  return list === undefined ? [section] : section.sections(list).flatMap(flat);
}

const none: Ends = { sides: [] };

function endsOf({ sections: [normalizer, preTokenizer], normalize, added, takesOpenWords }: Rules): Ends {
  let sides: readonly Side[] = ['right', 'left'];
  let mark = false;
  for (const part of flat(normalizer)) {
    if (isOf(part, 'Replace')) {
      const pattern = part.section('pattern');
      const text = pattern.has('String') ? pattern.string('String') : undefined;
      const content = part.string('content')[0];
      // A match must begin after the letter.
      if (text === undefined ? pattern.string('Regex').includes('p{') : /[\p{L}\p{N}]/u.test(text)) return none;
      if (text !== undefined && !/^[ ▁]/.test(text)) continue;
      if (content !== ' ' && content !== '▁') return none;
      mark ||= content === '▁';
      sides = ['right'];
    } else if (isOf(part, 'Strip Prepend')) sides = ['right'];
    else if (!isOf(part, 'BertNormalizer Lowercase NFC NFD NFKC NFKD StripAccents Nmt Precompiled')) return none;
  }
  for (let code = 48; code < 0x600; ++code) {
    const one = String.fromCharCode(code);
    // A Precompiled map can only be tested by applying it.
    if (RegExp(letter).test(one) && !between.test(stringOf(normalize(readText(`${one} ${one}`)).codes))) return none;
  }
  let crosses = false;
  for (const { content, singleWord, stripsRight } of added.all) {
    if (/[\p{L}\p{N}][\s▁]/u.test(content) || (stripsRight && /[\p{L}\p{N}]$/u.test(content))) return none;
    if (singleWord && /^[\s▁]/.test(content)) sides = ['right'];
    crosses ||= RegExp(`${unspaced}(${unspaced}|[^\\p{L}\\p{N}\\s]${singleWord ? '|$' : ''})`, 'u').test(content);
  }
  const parts = flat(preTokenizer);
  const first = parts.find((part) => !isOf(part, 'Digits Punctuation') && !(mark && isWhite(part)));
  if (!first || !cuts(first)) sides = [];
  if (crosses) return { sides };
  if (takesOpenWords && parts.every((part) => isWhite(part) || isOf(part, 'Whitespace Digits Punctuation Metaspace'))) return { sides, infix: '' };
  if (!first || sides.length === 0 || isOf(first, 'Whitespace Metaspace')) return { sides };
  return { sides, infix: isWhite(first) ? ' +' : '(?=[^\\p{L}\\p{N}\\s])' };
}

const isWhite = (part: Section) => isOf(part, 'BertPreTokenizer WhitespaceSplit');

function cuts(part: Section): boolean {
  const pattern = part.has('pattern') ? part.section('pattern') : undefined;
  return (
    isWhite(part) ||
    isOf(part, 'Whitespace') ||
    (isOf(part, 'ByteLevel') && part.boolean('use_regex', true)) ||
    (isOf(part, 'Metaspace') && part.string('replacement') === '▁' && part.boolean('split', true)) ||
    (pattern?.has('Regex') === true && pattern.string('Regex').includes('p{') && part.string('behavior') === 'Isolated' && !part.boolean('invert'))
  );
}

/** Returns the first safe position after `from`. */
function placeFrom({ normalize }: Rules, { sides, infix }: Ends, text: string, from: number, side: Side) {
  boundary.lastIndex = from;
  for (let tried = 0; tried < mostPlaces && boundary.test(text); ++tried) {
    const at = boundary.lastIndex;
    const isSpaced = text[at] === ' ';
    const around = text.slice(at - 1, at + (isSpaced ? 2 : 1));
    const made = stringOf(normalize(readText(around)).codes);
    if (
      isSpaced
        ? sides.includes(side) && between.test(made)
        : side === 'right' && infix !== undefined && RegExp([...around].join(infix), 'u').test(made)
    )
      return { at, isOpen: !isSpaced && infix === '' };
  }
  return undefined;
}

/** Returns more than `most` tokens, from the kept side; undefined if that takes most of the text. */
export function tokensOf(
  rules: Rules,
  text: string,
  most: number,
  side: Side,
  tokenize: (from: number, to: number, isOpen: boolean) => Part,
): Part | undefined {
  for (let size = 16 * most + 256; 2 * size < text.length; size *= 4) {
    const ends = (rules.ends ??= endsOf(rules));
    if (!ends.sides.includes(side) && ends.infix === undefined) return undefined;
    const place = placeFrom(rules, ends, text, side === 'right' ? size : text.length - size, side);
    if (!place) continue;
    const { at, isOpen } = place;
    if (side === 'right' && 2 * at > text.length) return undefined;
    const part = side === 'right' ? tokenize(0, at, isOpen) : tokenize(at, text.length, false);
    if (part.ids.length > most) return part;
  }
  return undefined;
}
