import { gpt2, literal, one, regex, runOf } from './patterns.js';
import { limits } from './limits.js';
import { choose, Parts, type Section, unsupported, wrong } from './schema.js';
import { codesOf, push, pushBytes, rewrite, split, type Behavior, type Matcher, type Piece, type Text } from './text.js';
import { lazyParts } from './lazy_slot.js';
import { NUMERIC, PUNCTUATION, SPACE, WORD, is, script } from './unicode.js';

export type PreTokenizer = (pieces: readonly Piece[]) => Piece[];

const behaviors: readonly string[] = ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'] satisfies Behavior[];

function behaviorOf(section: Section, fallback?: Behavior): Behavior {
  const behavior = section.string('behavior', fallback);
  return behaviors.includes(behavior) ? (behavior as Behavior) : unsupported(section.at('behavior'), behavior, `one of ${behaviors.join(', ')}`);
}

function copy(out: Text, { text, from, to }: Piece): void {
  for (let i = from; i < to; ++i) push(out, text.codes[i], text.starts[i], text.ends[i]);
}

/** Inserts a character with the range of the piece's first. */
function copyAfter(first: number, out: Text, piece: Piece): void {
  push(out, first, piece.text.starts[piece.from], piece.text.ends[piece.from]);
  copy(out, piece);
}

function byteLevel(section: Section): PreTokenizer {
  const prefix = section.boolean('add_prefix_space');
  const words = section.boolean('use_regex', true);
  section.boolean('trim_offsets');
  return (pieces) => {
    let parts: readonly Piece[] = pieces;
    if (prefix) parts = rewrite(parts, (piece, out) => (piece.text.codes[piece.from] === 32 ? copy(out, piece) : copyAfter(32, out, piece)));
    if (words) parts = split(parts, gpt2, 'Isolated');
    return rewrite(parts, ({ text, from, to }, out) => pushBytes(out, text, from, to));
  };
}

function character(section: Section, name: string): string {
  const text = section.string(name);
  return codesOf(text).length === 1 ? text : wrong(section.at(name), text, 'one character');
}

function metaspace(section: Section): PreTokenizer {
  const mark = character(section, 'replacement');
  const replacement = mark.codePointAt(0)!;
  const scheme = section.string('prepend_scheme', section.boolean('add_prefix_space', true) ? 'always' : 'never');
  if (!['always', 'first', 'never'].includes(scheme)) unsupported(section.at('prepend_scheme'), scheme, 'one of always, first, never');
  const cuts = section.boolean('split', true);
  const isReplacement = literal(mark);
  return (pieces) => {
    const marked = rewrite(pieces, (piece, out) => {
      const { text, from } = piece;
      const at = out.codes.length;
      const first = text.codes[from];
      const begins = scheme === 'always' || (scheme === 'first' && text.starts[from] === 0);
      if (begins && first !== 32 && first !== replacement) copyAfter(replacement, out, piece);
      else copy(out, piece);
      for (let i = at; i < out.codes.length; ++i) if (out.codes[i] === 32) out.codes[i] = replacement;
    });
    return cuts ? split(marked, isReplacement, 'MergedWithNext') : marked;
  };
}

function spend(pieces: readonly Piece[], cost: number): void {
  pieces[0]?.text.budget.spend(cost * pieces.reduce((sum, { from, to }) => sum + to - from, 0));
}

const whiteSpace = runOf(SPACE);
const word = runOf(WORD);
/** \w+|[^\w\s]+ */
const wordOrOther: Matcher = (codes, at, to) => {
  if (is(codes[at], WORD)) return word(codes, at, to);
  while (at < to && !is(codes[at], WORD | SPACE)) ++at;
  return at;
};
/** Includes characters of any script after the first. */
const scriptRun: Matcher = (codes, at, to) => {
  const first = script(codes[at]);
  if (first > 0) while (at < to && [first, 0].includes(script(codes[at]))) ++at;
  return at;
};
const withoutSpaces: PreTokenizer = (pieces) => split(pieces, whiteSpace, 'Removed');

const preTokenizers: Readonly<Record<string, (section: Section, parts: Parts) => PreTokenizer>> = {
  BertPreTokenizer: () => (pieces) => split(withoutSpaces(pieces), one(PUNCTUATION), 'Isolated'),
  Whitespace: () => (pieces) => split(pieces, wordOrOther, 'Removed', true),
  WhitespaceSplit: () => withoutSpaces,
  ByteLevel: byteLevel,
  Metaspace: metaspace,
  Punctuation: (section) => {
    const behavior = behaviorOf(section, 'Isolated');
    return (pieces) => split(pieces, one(PUNCTUATION), behavior);
  },
  Digits: (section) => {
    const behavior = section.boolean('individual_digits') ? 'Isolated' : 'Contiguous';
    return (pieces) => split(pieces, one(NUMERIC), behavior);
  },
  Split: (section) => {
    const { match, cost } = regex(section);
    const behavior = behaviorOf(section);
    const invert = section.boolean('invert');
    return (pieces) => {
      spend(pieces, cost);
      return split(pieces, match, behavior, invert);
    };
  },
  CharDelimiterSplit: (section) => {
    const delimiter = literal(character(section, 'delimiter'));
    return (pieces) => split(pieces, delimiter, 'Removed');
  },
  FixedLength: (section) => {
    const length = section.id('length');
    if (length === 0) wrong(section.at('length'), length, 'a number of at least 1');
    return (pieces) => split(pieces, (_, at, to) => Math.min(to, at + length), 'Isolated');
  },
  // As in the library, drops characters of any script at a piece's start.
  UnicodeScripts: () => {
    lazyParts(() => {});
    return (pieces) => split(pieces, scriptRun, 'Removed', true);
  },
  Sequence: (section, parts) => {
    const all = section.sections('pretokenizers').map((part) => readPreTokenizer(part, parts));
    return (pieces) => all.reduce((before, preTokenizer) => preTokenizer(before), [...pieces]);
  },
};

/** Steps per character, if not 4. */
const costs: Readonly<Record<string, number>> = { Sequence: 0, UnicodeScripts: 8 };

export function readPreTokenizer(section: Section, parts = new Parts(limits.preTokenizers)): PreTokenizer {
  parts.add(section);
  const preTokenizer = choose(preTokenizers, section)(section, parts);
  const cost = costs[section.string('type')] ?? 4;
  return (pieces) => {
    spend(pieces, cost);
    return preTokenizer(pieces);
  };
}
