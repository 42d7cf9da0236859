/** Writes the files that src/attn/io/gguf/tokenizer_files.cpp writes. */
import { encodeUtf8 } from '../../platform/utf8.js';
import { checkUtf8, type Metadata, refuse } from './header.js';
import type * as sentencePiece from './sentencepiece.js';

export type SentencePiece = Pick<typeof sentencePiece, 'mergesOfScores' | 'partsOf'>;

/** Parts of the published tokenizer.json files. */
interface Kind {
  readonly normalizer?: object;
  readonly preTokenizer?: object;
  readonly decoder?: object;
  /** Unless tokenizer.ggml.add_bos_token says otherwise. */
  readonly addsBos?: boolean;
  readonly ignoresMerges?: boolean;
  readonly sentencePiece?: SentencePiece;
}

const byteLevel = (options: object) => ({ type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true, ...options });
const sequence = (first: object, second: object) => ({ type: 'Sequence', pretokenizers: [first, second] });

const gpt4Words = (digits: string) =>
  sequence(
    {
      type: 'Split',
      pattern: {
        Regex: String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|${digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
      },
      behavior: 'Isolated',
      invert: false,
    },
    byteLevel({ trim_offsets: false, use_regex: false }),
  );

/** By the names of llama.cpp's converter. */
const byteLevelKinds = new Map<string, () => Kind>([
  ['gpt-2', () => ({ preTokenizer: byteLevel({}) })],
  ['smollm', () => ({ preTokenizer: sequence({ type: 'Digits', individual_digits: true }, byteLevel({})) })],
  ['llama-bpe', () => ({ preTokenizer: gpt4Words(String.raw`\p{N}{1,3}`), addsBos: true, ignoresMerges: true })],
  ['qwen2', () => ({ normalizer: { type: 'NFC' }, preTokenizer: gpt4Words(String.raw`\p{N}`) })],
]);

const modelName = (metadata: Metadata) => metadata.string('tokenizer.ggml.model') ?? 'missing';
export const isSentencePiece = (metadata: Metadata) => modelName(metadata) === 'llama';

function kindOf(metadata: Metadata, sentencePiece: SentencePiece | undefined): Kind {
  const addsSpace = metadata.flag('tokenizer.ggml.add_space_prefix');
  if (sentencePiece) return { ...sentencePiece.partsOf(addsSpace ?? true), addsBos: true, sentencePiece };
  const model = modelName(metadata);
  if (model !== 'gpt2') refuse('tokenizer.ggml.model', 'gpt2 (byte-level BPE) or llama (SentencePiece)', model, 'UNSUPPORTED');
  if (addsSpace) refuse('tokenizer.ggml.add_space_prefix', 'false', 'true', 'UNSUPPORTED');
  const pre = metadata.string('tokenizer.ggml.pre') ?? 'missing';
  const kind = byteLevelKinds.get(pre) ?? refuse('tokenizer.ggml.pre', 'gpt-2, smollm, llama-bpe or qwen2', pre, 'UNSUPPORTED');
  return kind();
}

/** Numbers of llama.cpp. */
const types = { unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 };

interface Tokens {
  readonly texts: readonly string[];
  readonly types: readonly number[];
}

const required = <T>(list: T | undefined, key: string): T => list ?? refuse(key, 'a list', 'missing');

/** tokenizer_limits.hpp */
const mostCharacters = 1024;

function readTokens(metadata: Metadata): Tokens {
  const texts = required(metadata.strings('tokenizer.ggml.tokens'), 'tokenizer.ggml.tokens');
  const typeOf = required(metadata.numbers('tokenizer.ggml.token_type'), 'tokenizer.ggml.token_type');
  if (texts.length !== typeOf.length) refuse('the length of tokenizer.ggml.token_type', `${texts.length}, one for each token`, String(typeOf.length));
  checkUtf8('tokenizer.ggml.tokens', texts);
  const seen = new Set<string>();
  let twice: string | undefined;
  for (const token of texts) {
    const bytes = token.length > mostCharacters ? encodeUtf8(token).length : 0;
    if (bytes > 4 * mostCharacters)
      refuse('tokenizer.ggml.tokens', `tokens of at most ${mostCharacters} characters`, `${bytes} bytes`, 'UNSUPPORTED');
    if (seen.has(token)) twice ??= token;
    seen.add(token);
  }
  if (twice !== undefined) refuse('tokenizer.ggml.tokens', 'different tokens', `a list with "${twice}" twice`);
  return { texts, types: typeOf };
}

/** Tokens that can be a part of a text without spaces. */
function scoresOf({ texts, types: typeOf }: Tokens, metadata: Metadata): ReadonlyMap<string, number> {
  const key = 'tokenizer.ggml.scores';
  const scores = required(metadata.numbers(key), key);
  if (scores.length !== texts.length) refuse(`the length of ${key}`, `${texts.length}, one for each token`, String(scores.length));
  const bad = scores.find((score) => !Number.isFinite(score));
  if (bad !== undefined) refuse(key, 'finite numbers', String(bad));
  const others = [types.control, types.unknown, types.byte];
  return new Map(texts.flatMap((text, id) => (others.includes(typeOf[id]!) || text.includes(' ') ? [] : [[text, scores[id]!] as const])));
}

function addedTokens({ texts, types: typeOf }: Tokens): object[] {
  return texts.flatMap((content, id) => {
    const special = typeOf[id] === types.control || typeOf[id] === types.unknown;
    if (!special && typeOf[id] !== types.userDefined) return [];
    return [{ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special }];
  });
}

/** Defaults to the id of SentencePiece's models, as in llama.cpp. */
function specialId(metadata: Metadata, name: string): number | undefined {
  const id = ['unknown', 'bos', 'eos'].indexOf(name);
  const isThere = id >= 0 && id < (metadata.strings('tokenizer.ggml.tokens')?.length ?? 0);
  return metadata.whole(`tokenizer.ggml.${name}_token_id`) ?? (isThere && isSentencePiece(metadata) ? id : undefined);
}

function modelOf({ texts, types: typeOf }: Tokens, merges: readonly string[], kind: Kind, unknown: number | undefined): object {
  const { ignoresMerges = false } = kind;
  const isSpm = kind.sentencePiece !== undefined;
  const vocab = texts.flatMap((text, id) => (typeOf[id] === types.unused && !isSpm ? [] : [[text, id] as const]));
  const unk_token = isSpm && unknown !== undefined ? texts[unknown] : undefined;
  return {
    type: 'BPE',
    fuse_unk: isSpm,
    byte_fallback: isSpm,
    unk_token,
    ignore_merges: ignoresMerges,
    vocab: Object.fromEntries(vocab),
    merges,
  };
}

/** Puts these tokens around a text, or around each of two texts. */
function templateOf({ texts }: Tokens, bos: number | undefined, eos: number | undefined): object {
  const special = (id: number | undefined, type_id: number) => (id === undefined ? [] : [{ SpecialToken: { id: texts[id]!, type_id } }]);
  const part = (id: string, type_id: number) => [...special(bos, type_id), { Sequence: { id, type_id } }, ...special(eos, type_id)];
  const used = [bos, eos].flatMap((id) => (id === undefined ? [] : [[texts[id]!, { id: texts[id]!, ids: [id], tokens: [texts[id]!] }] as const]));
  const single = part('A', 0);
  return { type: 'TemplateProcessing', single, pair: [...single, ...part('B', 1)], special_tokens: Object.fromEntries(used) };
}

export interface TokenizerFiles {
  readonly tokenizer: string;
  readonly tokenizerConfig: string;
}

/**
 * Translates byte-level BPE (tokenizer.ggml.model "gpt2") and SentencePiece ("llama", if it is passed). Throws UNSUPPORTED for
 * other tokenizers; FORMAT if metadata are missing or lists disagree.
 */
export function readTokenizerFiles(metadata: Metadata, sentencePiece?: SentencePiece): TokenizerFiles {
  const kind = kindOf(metadata, sentencePiece);
  const tokens = readTokens(metadata);
  const idOf = (name: string) => {
    const id = specialId(metadata, name);
    if (id !== undefined && (id < 0 || id >= tokens.texts.length))
      refuse(`tokenizer.ggml.${name}_token_id`, `an id below ${tokens.texts.length}`, String(id));
    return id;
  };
  const [bos, eos, unknown] = [idOf('bos'), idOf('eos'), idOf('unknown')];
  const added = (name: string, id: number | undefined, otherwise: boolean) => {
    const key = `tokenizer.ggml.add_${name}_token`;
    if (!(metadata.flag(key) ?? (otherwise && id !== undefined))) return undefined;
    return id ?? refuse(key, 'false', 'true', undefined, 'The file has no id for this token');
  };
  const first = added('bos', bos, kind.addsBos ?? false);
  const last = added('eos', eos, false);
  const merges =
    sentencePiece?.mergesOfScores(scoresOf(tokens, metadata), refuse) ?? required(metadata.strings('tokenizer.ggml.merges'), 'tokenizer.ggml.merges');
  checkUtf8('tokenizer.ggml.merges', merges);
  const chat_template = metadata.string('tokenizer.chat_template');
  if (chat_template !== undefined) checkUtf8('tokenizer.chat_template', [chat_template]);
  const hasTemplate = first !== undefined || last !== undefined;
  const whole = sentencePiece ? null : byteLevel({ add_prefix_space: true, trim_offsets: false });
  const textOf = (id: number | undefined) => (id === undefined ? undefined : tokens.texts[id]);
  return {
    tokenizer: JSON.stringify({
      version: '1.0',
      added_tokens: addedTokens(tokens),
      normalizer: kind.normalizer ?? null,
      pre_tokenizer: kind.preTokenizer ?? null,
      post_processor: hasTemplate ? templateOf(tokens, first, last) : whole,
      decoder: kind.decoder ?? byteLevel({ add_prefix_space: true }),
      model: modelOf(tokens, merges, kind, unknown),
    }),
    tokenizerConfig: JSON.stringify({
      tokenizer_class: 'PreTrainedTokenizerFast',
      clean_up_tokenization_spaces: false,
      bos_token: textOf(bos),
      eos_token: textOf(eos),
      unk_token: textOf(unknown),
      pad_token: textOf(idOf('padding')),
      chat_template,
    }),
  };
}

/** generation_config.json: the ids that end a text. */
export function readGenerationConfig(metadata: Metadata): object {
  const bos = specialId(metadata, 'bos');
  const ends = [specialId(metadata, 'eos'), specialId(metadata, 'eot')].filter((id) => id !== undefined);
  return { ...(bos !== undefined && { bos_token_id: bos }), ...(ends.length > 0 && { eos_token_id: ends }) };
}
