/** Decoders return strings to concatenate. */
import { decodeStrictUtf8, decodeUtf8, encodeUtf8 } from '../platform/utf8.js';
import { limits } from './limits.js';
import { regex } from './patterns.js';
import { byteCodes, codesOf } from './text.js';
import { choose, Parts, type Section, wrong } from './schema.js';

export type Decoder = (tokens: readonly string[]) => string[];

/** As the library's WordPiece decoder. */
const closings: readonly (readonly [string, string])[] = [
  [' .', '.'],
  [' ?', '?'],
  [' !', '!'],
  [' ,', ','],
  [" ' ", "'"],
  [" n't", "n't"],
  [" 'm", "'m"],
  [' do not', " don't"],
  [" 's", "'s"],
  [" 've", "'ve"],
  [" 're", "'re"],
];
const close = (text: string, which = closings) => which.reduce((all, [from, to]) => all.replaceAll(from, to), text);

/** transformers' clean_up_tokenization. */
const closingsOfText = closings.filter(([from]) => from !== ' do not');
export const cleanUp = (text: string) => close(text, closingsOfText);

function wordPiece(section: Section): Decoder {
  const prefix = section.text('prefix', limits.affix, '##');
  const cleanup = section.boolean('cleanup', true);
  return (tokens) =>
    tokens.map((token, i) => {
      const text = i === 0 ? token : token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`;
      return cleanup ? close(text) : text;
    });
}

/** A token with another character is plain text. */
function byteLevel(): Decoder {
  const bytes = new Map(byteCodes.map((code, byte) => [code, byte]));
  return (tokens) => {
    const all = tokens.flatMap((token) => {
      const found = Array.from(token, (character) => bytes.get(character.codePointAt(0)!));
      return found.includes(undefined) ? [...encodeUtf8(token)] : (found as number[]);
    });
    return [decodeUtf8(Uint8Array.from(all))];
  };
}

function character(section: Section, name: string, fallback?: string): string {
  const text = section.text(name, limits.affix, fallback);
  return [...text].length === 1 ? text : wrong(section.at(name), text, 'one character');
}

function metaspace(section: Section): Decoder {
  const mark = character(section, 'replacement', '▁');
  // Older files have add_prefix_space.
  const prepends = section.has('prepend_scheme') ? section.string('prepend_scheme') !== 'never' : section.boolean('add_prefix_space', true);
  return (tokens) => tokens.map((token, i) => token.replaceAll(mark, i === 0 && prepends ? '' : ' '));
}

function bpe(section: Section): Decoder {
  const suffix = section.text('suffix', limits.affix, '</w>');
  return (tokens) => tokens.map((token, i) => (suffix === '' ? token : token.replaceAll(suffix, i === tokens.length - 1 ? '' : ' ')));
}

/** Every byte of invalid UTF-8 becomes U+FFFD. */
const byteFallback: Decoder = (tokens) => {
  const out: string[] = [];
  let bytes: number[] = [];
  const flush = () => {
    if (bytes.length === 0) return;
    try {
      out.push(decodeStrictUtf8(Uint8Array.from(bytes)));
    } catch {
      out.push(...bytes.map(() => '\ufffd'));
    }
    bytes = [];
  };
  for (const token of tokens) {
    // Rust parses a plus sign.
    const byte = /^<0x([0-9a-f]{2}|\+[0-9a-f])>$/i.exec(token)?.[1];
    if (byte !== undefined) bytes.push(parseInt(byte, 16));
    else {
      flush();
      out.push(token);
    }
  }
  flush();
  return out;
};

function strip(section: Section): Decoder {
  const content = character(section, 'content');
  const [start, stop] = [section.id('start'), section.id('stop')];
  return (tokens) =>
    tokens.map((token) => {
      const characters = [...token];
      let [from, to] = [0, characters.length];
      while (from < Math.min(start, characters.length) && characters[from] === content) ++from;
      for (let cut = 0; cut < stop && to > from && characters[to - 1] === content; ++cut) --to;
      return characters.slice(from, to).join('');
    });
}

function replace(section: Section): Decoder {
  const { match } = regex(section, false);
  const content = section.text('content', limits.content);
  return (tokens) =>
    tokens.map((token) => {
      const codes = codesOf(token);
      let text = '';
      for (let at = 0; at < codes.length;) {
        const end = match(codes, at, codes.length);
        text += end > at ? content : String.fromCodePoint(codes[at]!);
        at = Math.max(end, at + 1);
      }
      return text;
    });
}

const decoders: Readonly<Record<string, (section: Section, count: Parts) => Decoder>> = {
  WordPiece: wordPiece,
  ByteLevel: byteLevel,
  Metaspace: metaspace,
  BPEDecoder: bpe,
  ByteFallback: () => byteFallback,
  Fuse: () => (tokens) => [tokens.join('')],
  Strip: strip,
  Replace: replace,
  Sequence: (section, count) => {
    const all = section.sections('decoders').map((part) => readDecoder(part, count));
    return (tokens) => all.reduce<readonly string[]>((before, decoder) => decoder(before), tokens) as string[];
  },
};

export function readDecoder(section: Section, count = new Parts(limits.postProcessors)): Decoder {
  count.add(section);
  return choose(decoders, section)(section, count);
}

export const spaced: Decoder = (tokens) => [tokens.join(' ')];
