/** Stages: text → added tokens and text between them → normalized → words → model tokens → special tokens → padding. */
import type { Encoding } from '../attn.js';
import { allocate, errorWithHelp } from '../args/error.js';
import type { Text } from '../args/model_options.js';
import { AddedTokens } from './added_tokens.js';
import { cleanUp, type Decoder, readDecoder, spaced } from './decoders.js';
import { readModel, type Model } from './models.js';
import { type Normalizer, readNormalizer } from './normalizers.js';
import type * as EarlyEnd from './early_end.js';
import { readPostProcessor, type Part, type PostProcessor, type Source } from './post_processors.js';
import { readPreTokenizer, type PreTokenizer } from './pre_tokenizers.js';
import { lazyParts } from './lazy_slot.js';
import { limits } from './limits.js';
import { readObject, Section, unsupported } from './schema.js';
import { Budget, readText, stringOf, type Text as Places } from './text.js';

export interface TokenizerFiles {
  readonly tokenizer: Uint8Array;
  readonly tokenizerConfig?: Uint8Array | undefined;
  readonly specialTokensMap?: Uint8Array | undefined;
  readonly addedTokens?: Uint8Array | undefined;
  /** model_type of config.json, which can imply a tokenizer class. */
  readonly modelType?: unknown;
}

export interface EncodeOptions {
  readonly maxLength: number;
  readonly truncation: boolean;
  /** False: all 0. Default: as in tokenizer.json. */
  readonly tokenTypes?: boolean;
  readonly addSpecialTokens?: boolean | undefined;
  /** Default: tokenizer_config.json, else 'right'. */
  readonly truncationSide?: Side | undefined;
  readonly paddingSide?: Side | undefined;
}

type Side = EarlyEnd.Side;

let early: typeof EarlyEnd | undefined;
export const useEarlyEnd = (module: typeof early): void => void (early = module);

function tokenText(section: Section, name: string): string {
  return typeof section.get(name) === 'string' ? section.text(name, limits.token) : section.section(name).text('content', limits.token);
}

/** Members of a section that tokenizer_config.json overrides, and its names for them. */
const settings: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  BertNormalizer: { lowercase: 'do_lower_case', strip_accents: 'strip_accents', handle_chinese_chars: 'tokenize_chinese_chars' },
  ByteLevel: { add_prefix_space: 'add_prefix_space' },
  RobertaProcessing: { add_prefix_space: 'add_prefix_space' },
};

/** Override tokenizer.json if tokenizer_config.json has no value. */
const defaults: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  BertNormalizer: { lowercase: true, strip_accents: null, handle_chinese_chars: true },
};
/** Model types that imply such a class. */
const ownClass = /^(bert|distilbert|electra|ernie|mpnet|nomic_bert)$/;

/** Only transformers' model-specific classes override. */
function withSettings(part: Section, config: Section | undefined, modelType: unknown): Section {
  const made = config?.string('tokenizer_class', '') ?? '';
  if (/^(PreTrainedTokenizerFast|TokenizersBackend)$/.test(made)) return part;
  const type = String(part.get('type'));
  const names = Object.entries(settings[type] ?? {}).filter(([, name]) => config?.has(name));
  const left = made !== '' || ownClass.test(String(modelType)) ? defaults[type] : undefined;
  return part.with({ ...left, ...Object.fromEntries(names.map(([own, name]) => [own, config!.get(name)])) });
}

/** Other files may add tokens or change their flags. */
function haveOtherTokens(tokens: readonly Section[], [config, map, ids]: readonly (Section | undefined)[]): boolean {
  const known = new Map(tokens.map((token) => [token.get('content'), token]));
  // Deeper values are refused when they are read.
  const isOther = (value: unknown, depth = 0): boolean =>
    typeof value === 'object'
      ? Object.entries(value ?? {}).some(([name, each]) => {
          const { content } = value as { content?: unknown };
          return content === undefined ? depth > 1 || isOther(each, depth + 1) : name !== '__type' && known.get(content)?.get(name) !== each;
        })
      : typeof value === 'string' && !known.has(value);
  return !!(
    config?.names().some((name) => /_tokens?(_decoder)?$/.test(name) && isOther(config.get(name))) ||
    map?.names().some((name) => config?.get(name) !== map.get(name)) ||
    ids?.names().some((name) => isOther(name))
  );
}

interface Padding {
  readonly id: number;
  readonly type: number;
  readonly token: string;
}

export interface Row {
  readonly parts: readonly Part[];
  readonly length: number;
  readonly truncated: boolean;
}

export function encodingOf(op: string, size: number): readonly [inputIds: Int32Array, attentionMask: Uint8Array, tokenTypeIds: Int32Array] {
  return allocate(op, 9 * size, () => {
    // The ids alone would fill the module's memory.
    if (size > 2 ** 30) throw new RangeError(`${size} tokens with their padding, expected at most ${2 ** 30}`);
    return [new Int32Array(size), new Uint8Array(size), new Int32Array(size)];
  });
}

export class Tokenizer {
  readonly #normalizer: Normalizer;
  readonly #model: Model;
  readonly #added: AddedTokens;
  readonly #preTokenizer: PreTokenizer;
  readonly #postProcessor: PostProcessor;
  readonly #padding: Padding;
  readonly #decoderSection: Section | undefined;
  #decoder: Decoder | undefined;
  readonly #cleansUp: boolean;
  readonly #rules: EarlyEnd.Rules;
  readonly truncationSide: Side;
  readonly paddingSide: Side;
  /** Whether marks such as ## begin tokens inside a word. */
  readonly marksWords: boolean;
  readonly clsId: number | undefined;
  readonly maskId: number | undefined;
  readonly unkId: number | undefined;

  constructor(files: TokenizerFiles) {
    const parse = (bytes: Uint8Array, name: string) => new Section(readObject(bytes, name), name);
    const file = parse(files.tokenizer, 'tokenizer.json');
    const version = file.string('version', '1.0');
    if (version !== '1.0') unsupported(file.at('version'), version, '1.0');
    const maybe = (bytes: Uint8Array | undefined, name: string) => bytes && parse(bytes, name);
    let config = maybe(files.tokenizerConfig, 'tokenizer_config.json');
    // Small sections first: an unsupported part fails before a vocabulary is read.
    const part = (name: string) => (file.has(name) ? withSettings(file.section(name), config, files.modelType) : undefined);
    const [normalizer, preTokenizer, postProcessor] = [part('normalizer'), part('pre_tokenizer'), part('post_processor')];
    this.#normalizer = normalizer ? readNormalizer(normalizer) : (text) => text;
    this.#preTokenizer = preTokenizer ? readPreTokenizer(preTokenizer) : (pieces) => [...pieces];
    this.#postProcessor = postProcessor ? readPostProcessor(postProcessor) : { added: [0, 0], process: (parts) => parts };
    this.#model = readModel(file.section('model'));
    let tokens = file.has('added_tokens') ? file.sections('added_tokens') : [];
    const others = [config, maybe(files.specialTokensMap, 'special_tokens_map.json'), maybe(files.addedTokens, 'added_tokens.json')] as const;
    if (haveOtherTokens(tokens, others)) lazyParts(({ readOtherTokens }) => ([config, tokens] = readOtherTokens(tokens, ...others)));
    this.#added = new AddedTokens(tokens, this.#model, this.#normalizer, config?.boolean('split_special_tokens', false));
    this.#rules = {
      sections: [normalizer, preTokenizer],
      normalize: this.#normalizer,
      added: this.#added,
      takesOpenWords: this.#model.takesOpenWords,
    };
    this.#padding = this.#readPadding(file, config);
    const model = file.section('model');
    this.#decoderSection = file.has('decoder') ? file.section('decoder') : undefined;
    this.#cleansUp = config?.get('clean_up_tokenization_spaces') === true && !model.has('merges');
    this.marksWords = model.has('continuing_subword_prefix') && model.get('continuing_subword_prefix') !== '';
    const special = (name: string, ...usual: string[]) =>
      [...(config?.has(name) ? [tokenText(config, name)] : []), ...usual].map((token) => this.tokenToId(token)).find((id) => id !== undefined);
    this.clsId = special('cls_token', '[CLS]', '<s>');
    this.maskId = special('mask_token', '[MASK]', '<mask>');
    const unknown = model.get('unk_token');
    this.unkId = special('unk_token', ...(typeof unknown === 'string' ? [unknown] : [])) ?? (model.has('unk_id') ? model.id('unk_id') : undefined);
    const side = (name: string): Side => {
      const given = config?.has(name) ? config.string(name) : 'right';
      return given === 'left' || given === 'right' ? given : unsupported(config!.at(name), given, 'left or right');
    };
    this.truncationSide = side('truncation_side');
    this.paddingSide = side('padding_side');
  }

  #readPadding(file: Section, config: Section | undefined): Padding {
    const padding = file.has('padding') ? file.section('padding') : undefined;
    const token = config?.has('pad_token') ? tokenText(config, 'pad_token') : padding?.text('pad_token', limits.token, '[PAD]');
    const found = [token, '[PAD]', '<pad>'].find((candidate) => candidate !== undefined && this.tokenToId(candidate) !== undefined);
    return { id: (found !== undefined && this.tokenToId(found)) || 0, type: padding?.id('pad_type_id', 0) ?? 0, token: found ?? token ?? '[PAD]' };
  }

  get lowerCases(): boolean {
    return this.#normalizer(readText('ABCDEFGHIJKLMNOPQRSTUVWXYZ')).codes.every((code) => code < 65 || code > 90);
  }

  /** Includes added tokens. */
  get size(): number {
    return this.#model.size + this.#added.own;
  }

  get padId(): number {
    return this.#padding.id;
  }

  /** A text may contain the padding token. */
  isPadding(id: number): boolean {
    return id === this.padId && this.idToToken(id) === this.#padding.token;
  }

  tokenToId(token: string): number | undefined {
    return this.#added.ids.get(token) ?? this.#model.idOf(token);
  }

  idToToken(id: number): string | undefined {
    return this.#added.tokenOf(id) ?? this.#model.tokenOf(id);
  }

  /**
   * Returns, with `most`, more than `most` tokens from the side that is not truncated; words are then numbered from the first one read.
   */
  split(source: Source, most = Infinity, cut: Side = 'right', budget?: Budget): Part {
    const run = (from: number, to: number, isOpen?: boolean) => this.#split(source, from, to, cut === 'right' ? most : Infinity, budget, isOpen);
    return (typeof source === 'string' && early?.tokensOf(this.#rules, source, most, cut, run)) || run(0, source.length);
  }

  /** Stops after the word that exceeds `most` tokens. `isOpen`: the last word continues after `to`. */
  #split(source: Source, from: number, to: number, most: number, budget = new Budget(String(source).length), isOpen = false): Part {
    const texts = typeof source === 'string' ? [source.slice(from, to)] : source;
    const part: Part = { source, ids: [], tokens: [], starts: [], ends: [], words: [], type: 0, special: false, budget };
    let places!: Places;
    let word = -1;
    const emit = (id: number, token: string, first: number, end: number) => {
      budget.hold(part.ids.push(id));
      part.tokens.push(token);
      part.starts.push(places.starts[first] + from);
      part.ends.push(places.ends[end - 1] + from);
      part.words.push(word);
    };
    for (const [number, text] of texts.entries()) {
      const pieces = this.#preTokenizer(this.#added.extract(text, budget));
      for (const [i, { text: piece, from: first, to: end, added }] of pieces.entries()) {
        places = piece;
        word = texts === source ? number : word + 1;
        if (added === undefined) this.#model.tokenize(piece.codes, first, end, emit, budget, isOpen && i === pieces.length - 1);
        else emit(added, stringOf(piece.codes, first, end), first, end);
        if (part.ids.length > most) return part;
      }
    }
    return part;
  }

  row(texts: readonly Source[], index: number, options: EncodeOptions): Row {
    const { maxLength, truncation, addSpecialTokens = true, truncationSide = this.truncationSide } = options;
    const room = maxLength - (addSpecialTokens ? this.#postProcessor.added[texts.length - 1] : 0);
    const most = truncation && room >= 0 ? room : Infinity;
    const read = (most: number) => texts.map((text, i) => ({ ...this.split(text, most, truncationSide), type: i }));
    let parts = read(most);
    // The longer text of a pair gets the odd token.
    if (parts.length > 1 && room % 2 === 1 && parts.every(({ ids }) => ids.length > room)) parts = read(Infinity);
    const lengths = parts.map(({ ids }) => ids.length);
    const length = lengths.reduce((a, b) => a + b, 0);
    const truncated = length > room;
    if (truncated) {
      const added = maxLength - room;
      if (!truncation || room < 0)
        throw errorWithHelp(
          'OUT_OF_RANGE',
          truncation
            ? `tokenize: maxLength is ${maxLength}, expected a number of at least ${added}`
            : `tokenize: text ${index} has ${length + added} tokens, expected at most ${maxLength} tokens`,
          truncation ? 'There is no room for the special tokens' : undefined,
          { op: 'tokenize', index, tokens: length + added, maxLength },
        );
      cut(lengths, room).forEach((kept, i) => {
        for (const list of [parts[i].ids, parts[i].tokens, parts[i].starts, parts[i].ends, parts[i].words]) {
          if (truncationSide === 'left') list.splice(0, list.length - kept);
          else list.length = kept;
        }
      });
    }
    const processed = this.#postProcessor.process(parts).filter(({ special }) => addSpecialTokens || !special);
    return { parts: processed, length: processed.reduce((sum, { ids }) => sum + ids.length, 0), truncated };
  }

  /** Parses the decoder on the first call. */
  decode(ids: ArrayLike<number>, skipSpecialTokens = false): string {
    const tokens: string[] = [];
    for (const id of Array.from(ids)) {
      const token = this.idToToken(id);
      if (token !== undefined && !(skipSpecialTokens && this.#added.isSpecial(id))) tokens.push(token);
    }
    this.#decoder ??= this.#decoderSection ? readDecoder(this.#decoderSection) : spaced;
    const text = this.#decoder(tokens).join('');
    return this.#cleansUp ? cleanUp(text) : text;
  }

  added(texts: number): number {
    return this.#postProcessor.added[texts - 1]!;
  }

  process(parts: Part[]): Part[] {
    return this.#postProcessor.process(parts);
  }

  /** Pads to the longest. Ignores the file's "truncation", and its "padding" except the token. */
  encode(texts: readonly Text[], options: EncodeOptions): Encoding {
    const rows = texts.map((text, i) => this.row(typeof text === 'string' ? [text] : text, i, options));
    return this.pad(rows, options);
  }

  /** Omits tokens and offsets. */
  ids(text: Text, options: EncodeOptions): { ids: Int32Array; types: Int32Array; truncated: boolean } {
    const { parts, length, truncated } = this.row(typeof text === 'string' ? [text] : text, 0, options);
    const [ids, types] = allocate('tokenize', 8 * length, () => [new Int32Array(length), new Int32Array(length)] as const);
    let at = 0;
    for (const part of parts) {
      ids.set(part.ids, at);
      if (options.tokenTypes !== false) types.fill(part.type, at, at + part.ids.length);
      at += part.ids.length;
    }
    return { ids, types, truncated };
  }

  pad(rows: readonly Row[], { tokenTypes, paddingSide = this.paddingSide }: EncodeOptions): Encoding {
    const length = rows.reduce((most, row) => Math.max(most, row.length), 0);
    const size = rows.length * length;
    const [inputIds, attentionMask, tokenTypeIds] = encodingOf('tokenize', size);
    inputIds.fill(this.#padding.id);
    tokenTypeIds.fill(this.#padding.type);
    const tokens: string[][] = [];
    const offsets: ([number, number] | null)[][] = [];
    rows.forEach(({ parts, length: used }, row) => {
      const rowTokens = new Array<string>(length).fill(this.#padding.token);
      const rowOffsets = new Array<[number, number] | null>(length).fill(null);
      const start = row * length;
      let to = paddingSide === 'left' ? length - used : 0;
      attentionMask.fill(1, start + to, start + to + used);
      for (const { ids, tokens: texts, starts, ends, type, special } of parts) {
        inputIds.set(ids, start + to);
        tokenTypeIds.fill(tokenTypes === false ? 0 : type, start + to, start + to + ids.length);
        texts.forEach((token, i) => {
          if (!special) rowOffsets[to] = [starts[i], ends[i]];
          rowTokens[to++] = token;
        });
      }
      tokens.push(rowTokens);
      offsets.push(rowOffsets);
    });
    return { inputIds, attentionMask, tokenTypeIds, dims: [rows.length, length], truncated: rows.map((row) => row.truncated), tokens, offsets };
  }
}

/** Truncates the longer text of a pair first. */
function cut(lengths: readonly number[], room: number): number[] {
  const [first, second] = lengths;
  if (second === undefined) return [room];
  const shorter = Math.min(first!, second);
  let longer = shorter > room ? shorter : Math.max(shorter, room - shorter);
  let short = shorter;
  if (short + longer > room) {
    short = Math.floor(room / 2);
    longer = room - short;
  }
  return first! > second ? [longer, short] : [short, longer];
}
