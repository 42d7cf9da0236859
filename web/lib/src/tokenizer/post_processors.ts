import { fail } from '../args/error.js';
import { limits } from './limits.js';
import { atMost, type Section, choose, idOf, listOf, op, Parts, unsupported, wrong } from './schema.js';
import type { Budget } from './text.js';
import { SPACE, is } from './unicode.js';

/** A text, or its words if it is already split. */
export type Source = string | readonly string[];

/** Special tokens have no range. */
export interface Part {
  readonly source: Source;
  readonly ids: number[];
  readonly tokens: string[];
  readonly starts: number[];
  readonly ends: number[];
  /** Word numbers. */
  readonly words: number[];
  readonly type: number;
  readonly special: boolean;
  readonly budget?: Budget;
}

export interface PostProcessor {
  /** For one text, and for a pair. */
  readonly added: readonly [number, number];
  process(parts: Part[]): Part[];
}

/** Ġ is the space of byte-level tokens. */
const isSpace = (token: string, at: number) => token[at] === 'Ġ' || is(token.charCodeAt(at), SPACE);

/** Returns undefined beyond the text's ends. */
function move(text: string, at: number, characters: number): number | undefined {
  for (; characters > 0; --characters) {
    if (at >= text.length) return undefined;
    at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  }
  for (; characters < 0; ++characters) {
    if (at <= 0) return undefined;
    at -= at > 1 && text.codePointAt(at - 2)! > 0xffff ? 2 : 1;
  }
  return at;
}

/** Keeps the space inserted before the first word. */
function trimOffsets({ source, tokens, starts, ends, words, budget }: Part, prefixed: boolean): void {
  tokens.forEach((token, i) => {
    const text = typeof source === 'string' ? source : source[words[i]];
    let [leading, trailing] = [0, 0];
    while (isSpace(token, leading)) ++leading;
    while (isSpace(token, token.length - 1 - trailing)) ++trailing;
    budget?.spend(1 + leading + trailing);
    if (leading === 1 && prefixed && (i === 0 || starts[i] === 0)) leading = 0;
    starts[i] = Math.min(move(text, starts[i], leading) ?? Infinity, ends[i]);
    ends[i] = Math.max(move(text, ends[i], -trailing) ?? ends[i], starts[i]);
  });
}

function byteLevel(section: Section): PostProcessor {
  const trims = section.boolean('trim_offsets');
  const prefixed = section.boolean('add_prefix_space');
  return {
    added: [0, 0],
    process(parts) {
      if (trims) for (const part of parts) trimOffsets(part, prefixed);
      return parts;
    },
  };
}

type Template = readonly { readonly text?: number; readonly ids: number[]; readonly tokens: string[]; readonly type: number }[];

function fromTemplates(templates: readonly [Template, Template]): PostProcessor {
  const added = (template: Template) => template.reduce((sum, { ids }) => sum + ids.length, 0);
  return {
    added: [added(templates[0]), added(templates[1])],
    process: (parts) =>
      templates[parts.length - 1].map(({ text, ids, tokens, type }) =>
        text === undefined ? { source: '', ids, tokens, starts: [], ends: [], words: [], type, special: true } : { ...parts[text], type },
      ),
  };
}

function templateProcessing(section: Section): PostProcessor {
  const special = section.section('special_tokens');
  const known = new Map<string, { ids: number[]; tokens: string[] }>();
  const readToken = (name: string) => {
    const added = special.section(name);
    const list = added.list('ids');
    atMost(added.at('ids'), list.length, 'ids', limits.specialTokens);
    const ids = list.map((id, i) => idOf(id, `${added.at('ids')}[${i}]`));
    const tokens = added.list('tokens').filter((text) => typeof text === 'string');
    for (const token of tokens) atMost(added.at('tokens'), token.length, 'characters', limits.token);
    if (tokens.length !== ids.length) wrong(added.at('tokens'), added.get('tokens'), `${ids.length} strings, one for each id`);
    known.set(name, { ids, tokens });
    return { ids, tokens };
  };
  const read = (name: string): Template => {
    let sum = 0;
    const texts = [0, 0];
    const template = section.sections(name).map((piece) => {
      if (piece.has('Sequence')) {
        const sequence = piece.section('Sequence');
        const text = ['A', 'B'].indexOf(sequence.string('id'));
        if (text < 0 || (text > 0 && name === 'single')) wrong(sequence.at('id'), sequence.get('id'), name === 'single' ? 'A' : 'A or B');
        ++texts[text];
        return { text, ids: [], tokens: [], type: sequence.id('type_id') };
      }
      const token = piece.section('SpecialToken');
      const id = token.string('id');
      const added = known.get(id) ?? readToken(id);
      sum += Math.max(added.ids.length, 1);
      // A file can repeat a token of many ids.
      atMost(section.at(name), sum, 'special tokens', limits.specialTokens);
      return { ...added, type: token.id('type_id') };
    });
    if (texts[0] !== 1 || texts[1] !== (name === 'pair' ? 1 : 0))
      unsupported(section.at(name), section.get(name), name === 'pair' ? 'A and B once each' : 'A once');
    return template;
  };
  return fromTemplates([read('single'), read('pair')]);
}

function clsAndSep(section: Section, separators: number, secondType: number): PostProcessor {
  const read = (name: string) => {
    const [token, id] = listOf(section.get(name), section.at(name));
    if (typeof token !== 'string') wrong(section.at(name), section.get(name), 'a token and its id');
    atMost(section.at(name), token.length, 'characters', limits.token);
    return { ids: [idOf(id, section.at(name))], tokens: [token] };
  };
  const [cls, sep] = [read('cls'), read('sep')];
  const text = (index: number, type: number) => ({ text: index, ids: [], tokens: [], type });
  const single: Template = [{ ...cls, type: 0 }, text(0, 0), { ...sep, type: 0 }];
  const between = separators > 1 ? [{ ...sep, type: secondType }] : [];
  return fromTemplates([single, [...single, ...between, text(1, secondType), { ...sep, type: secondType }]]);
}

function roberta(section: Section): PostProcessor {
  const trims = byteLevel(section);
  const wraps = clsAndSep(section, 2, 0);
  return { added: wraps.added, process: (parts) => wraps.process(trims.process(parts)) };
}

const processors: Readonly<Record<string, (section: Section, count: Parts) => PostProcessor>> = {
  TemplateProcessing: templateProcessing,
  BertProcessing: (section) => clsAndSep(section, 1, 1),
  RobertaProcessing: roberta,
  ByteLevel: byteLevel,
  Sequence: (section, count) => {
    const parts = section.sections('processors');
    const all = parts.map((part) => readPostProcessor(part, count));
    if (parts.filter((part) => part.get('type') !== 'ByteLevel').length > 1)
      fail('UNSUPPORTED', op, section.path, 'has a second part that adds special tokens', 'one such part');
    const sum = (pair: 0 | 1) => all.reduce((total, { added }) => total + added[pair], 0);
    return {
      added: [sum(0), sum(1)],
      process: (parts) => all.reduce((before, processor) => processor.process(before), parts),
    };
  },
};

export function readPostProcessor(section: Section, count = new Parts(limits.postProcessors)): PostProcessor {
  count.add(section);
  return choose(processors, section)(section, count);
}
