import { precompiled } from './precompiled.js';
import { type Pattern, regex, runOf } from './patterns.js';
import { limits } from './limits.js';
import { choose, Parts, type Section } from './schema.js';
import { codesOf, emptyText, push, pushBytes, slice, type Text } from './text.js';
import { ACCENT, CHINESE, CONTROL, MARK, SPACE, is, isAscii, lowerCase, normalize, type Form } from './unicode.js';

export type Normalizer = (text: Text) => Text;

function filter(text: Text, keep: (code: number) => boolean): Text {
  if (text.codes.every(keep)) return text;
  const out = emptyText(text.budget);
  text.codes.forEach((code, i) => {
    if (keep(code)) push(out, code, text.starts[i], text.ends[i]);
  });
  return out;
}

function map(text: Text, to: (code: number) => number): Text {
  return { ...text, codes: text.codes.map(to) };
}

function bert(section: Section): Normalizer {
  const clean = section.boolean('clean_text');
  const chinese = section.boolean('handle_chinese_chars');
  const lower = section.boolean('lowercase');
  const strip = section.boolean('strip_accents', lower);
  return (text) => {
    if (clean)
      text = map(
        filter(text, (code) => !is(code, CONTROL)),
        (code) => (is(code, SPACE) ? 32 : code),
      );
    if (isAscii(text)) return lower ? lowerCase(text) : text;
    if (chinese && text.codes.some((code) => is(code, CHINESE))) {
      const out = emptyText(text.budget);
      text.codes.forEach((code, i) => {
        for (const c of is(code, CHINESE) ? [32, code, 32] : [code]) push(out, c, text.starts[i], text.ends[i]);
      });
      text = out;
    }
    if (strip) text = filter(normalize(text, 'NFD'), (code) => !is(code, MARK));
    return lower ? lowerCase(text) : text;
  };
}

function strip(section: Section): Normalizer {
  const [left, right] = [section.boolean('strip_left'), section.boolean('strip_right')];
  return (text) => {
    let [from, to] = [0, text.codes.length];
    if (left) from = runOf(SPACE)(text.codes, from, to);
    if (right) while (to > from && is(text.codes[to - 1], SPACE)) --to;
    return slice(text, from, to);
  };
}

const contentOf = (section: Section, name: string): number[] => codesOf(section.text(name, limits.content));

/** New characters have the range of the last replaced one. */
function replaced({ match, cost }: Pattern, content: readonly number[]): Normalizer {
  return (text) => {
    const { codes, starts, ends, budget } = text;
    budget.spend(cost * codes.length);
    const out = emptyText(budget);
    for (let at = 0; at < codes.length;) {
      const end = match(codes, at, codes.length);
      const place = end > at ? end - 1 : at;
      for (const code of end > at ? content : [codes[at]]) push(out, code, starts[place], ends[place]);
      at = place + 1;
    }
    return out;
  };
}

function prepend(section: Section): Normalizer {
  const content = contentOf(section, 'prepend');
  return (text) => {
    if (text.codes.length === 0) return text;
    const { codes, starts, ends, budget } = text;
    budget.hold(content.length + codes.length);
    const first = <T>(value: T) => content.map(() => value);
    return { codes: [...content, ...codes], starts: first(starts[0]).concat(starts), ends: first(ends[0]).concat(ends), budget };
  };
}

const nmtSpaces = new Set([0x9, 0xa, 0xc, 0xd, 0x1680, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd]);

function nmt(text: Text): Text {
  const kept = filter(text, (c) => nmtSpaces.has(c) || c === 0 || (c >= 0x20 && c !== 0x7f && c !== 0x8f && c !== 0x9f));
  return map(kept, (code) => (nmtSpaces.has(code) ? 32 : code));
}

const form = (name: Form) => () => (text: Text) => normalize(text, name);

const normalizers: Readonly<Record<string, (section: Section, parts: Parts) => Normalizer>> = {
  BertNormalizer: bert,
  Lowercase: () => lowerCase,
  NFC: form('NFC'),
  NFD: form('NFD'),
  NFKC: form('NFKC'),
  NFKD: form('NFKD'),
  StripAccents: () => (text) => filter(text, (code) => !is(code, ACCENT)),
  Strip: strip,
  Replace: (section) => replaced(regex(section), contentOf(section, 'content')),
  Prepend: prepend,
  Precompiled: precompiled,
  Nmt: () => nmt,
  ByteLevel: () => (text) => {
    const out = emptyText(text.budget);
    pushBytes(out, text, 0, text.codes.length);
    return out;
  },
  Sequence: (section, parts) => {
    const all = section.sections('normalizers').map((part) => readNormalizer(part, parts));
    return (text) => all.reduce((before, normalizer) => normalizer(before), text);
  },
};

/** Steps per character, if not 1. */
const costs: Readonly<Record<string, number>> = { Sequence: 0, BertNormalizer: 8, Lowercase: 4, NFC: 8, NFD: 8, NFKC: 8, NFKD: 8, Precompiled: 8 };

export function readNormalizer(section: Section, parts = new Parts(limits.normalizers)): Normalizer {
  parts.add(section);
  const normalizer = choose(normalizers, section)(section, parts);
  const cost = costs[section.string('type')] ?? 1;
  return (text) => {
    text.budget.spend(cost * text.codes.length);
    return normalizer(text);
  };
}
