/** The tokenizer of a GGUF file as files of a Hugging Face folder, as src/attn/io/gguf/tokenizer_files.cpp writes them. */
import { encodeUtf8 } from '../../platform/utf8.js';
import { jsonString, type Metadata, refuse } from './header.js';

// Pre-tokenizers of the published tokenizer.json files, by the names of llama.cpp's converter.
interface Kind {
  readonly normalizer?: object;
  readonly preTokenizer: object;
  /** Unless tokenizer.ggml.add_bos_token says otherwise. */
  readonly addsBos?: boolean;
  readonly ignoresMerges?: boolean;
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

const kinds = new Map<string, () => Kind>([
  ['gpt-2', () => ({ preTokenizer: byteLevel({}) })],
  ['smollm', () => ({ preTokenizer: sequence({ type: 'Digits', individual_digits: true }, byteLevel({})) })],
  ['llama-bpe', () => ({ preTokenizer: gpt4Words(String.raw`\p{N}{1,3}`), addsBos: true, ignoresMerges: true })],
  ['qwen2', () => ({ normalizer: { type: 'NFC' }, preTokenizer: gpt4Words(String.raw`\p{N}`) })],
]);

function kindOf(metadata: Metadata): Kind {
  const model = metadata.string('tokenizer.ggml.model') ?? 'missing';
  if (model !== 'gpt2') refuse('tokenizer.ggml.model', 'gpt2, which is byte-level BPE', model, 'UNSUPPORTED');
  const pre = metadata.string('tokenizer.ggml.pre') ?? 'missing';
  const kind = kinds.get(pre) ?? refuse('tokenizer.ggml.pre', 'gpt-2, smollm, llama-bpe or qwen2', pre, 'UNSUPPORTED');
  return kind();
}

const required = <T>(list: T | undefined, key: string): T => list ?? refuse(key, 'a list', 'missing');

/** Numbers of llama.cpp. */
const types = { unknown: 2, control: 3, userDefined: 4, unused: 5 };
/** tokenizer_limits.hpp */
const mostCharacters = 1024;

interface Tokens {
  readonly texts: readonly string[];
  readonly types: readonly number[];
}

function readTokens(metadata: Metadata): Tokens {
  const texts = required(metadata.strings('tokenizer.ggml.tokens'), 'tokenizer.ggml.tokens');
  const typeOf = required(metadata.numbers('tokenizer.ggml.token_type'), 'tokenizer.ggml.token_type');
  if (texts.length !== typeOf.length) refuse('the length of tokenizer.ggml.token_type', `${texts.length}, one for each token`, String(typeOf.length));
  const seen = new Set<string>();
  let twice: string | undefined;
  for (const token of texts) {
    const bytes = token.length > mostCharacters ? encodeUtf8(token).length : 0;
    if (bytes > 4 * mostCharacters)
      refuse('tokenizer.ggml.tokens', `tokens of at most ${mostCharacters} characters`, `${bytes} bytes`, 'UNSUPPORTED');
    if (seen.has(token)) twice ??= token;
    seen.add(token);
  }
  if (twice !== undefined) refuse('tokenizer.ggml.tokens', 'different tokens', `"${twice}" twice`);
  return { texts, types: typeOf };
}

const tokenName = (text: string) => jsonString('tokenizer.ggml.tokens', text);

function addedTokens(tokens: Tokens): string {
  const list: string[] = [];
  for (const [id, text] of tokens.texts.entries()) {
    const type = tokens.types[id];
    const special = type === types.control || type === types.unknown;
    if (!special && type !== types.userDefined) continue;
    const flags = JSON.stringify({ single_word: false, lstrip: false, rstrip: false, normalized: false, special });
    list.push(`{"id":${id},"content":${jsonString('content', text)},${flags.slice(1)}`);
  }
  return `[${list.join()}]`;
}

function modelOf({ texts, types: typeOf }: Tokens, merges: readonly string[], { ignoresMerges = false }: Kind): string {
  const vocab = texts.flatMap((text, id) => (typeOf[id] === types.unused ? [] : [`${tokenName(text)}:${id}`]));
  const list = merges.map((merge) => jsonString('tokenizer.ggml.merges', merge));
  const settings = JSON.stringify({ type: 'BPE', fuse_unk: false, byte_fallback: false, ignore_merges: ignoresMerges });
  return `${settings.slice(0, -1)},"vocab":{${vocab.join()}},"merges":[${list.join()}]}`;
}

/** A template that puts these tokens around a text, or around each of two texts. */
function templateOf({ texts }: Tokens, bos: number | undefined, eos: number | undefined): string {
  const nameOf = (id: number) => tokenName(texts[id]!);
  const special = (id: number | undefined, type: number) => (id === undefined ? [] : [`{"SpecialToken":{"id":${nameOf(id)},"type_id":${type}}}`]);
  const part = (name: string, type: number) => [...special(bos, type), `{"Sequence":{"id":"${name}","type_id":${type}}}`, ...special(eos, type)];
  const used = [...new Set([bos, eos])].flatMap((id) =>
    id === undefined ? [] : [`${nameOf(id)}:{"id":${nameOf(id)},"ids":[${id}],"tokens":[${nameOf(id)}]}`],
  );
  return `{"type":"TemplateProcessing","single":[${part('A', 0).join()}],"pair":[${[...part('A', 0), ...part('B', 1)].join()}],"special_tokens":{${used.join()}}}`;
}

export interface TokenizerFiles {
  readonly tokenizer: string;
  readonly tokenizerConfig: string;
}

/**
 * Translates byte-level BPE (tokenizer.ggml.model "gpt2"). Throws UNSUPPORTED for other tokenizers; FORMAT if metadata
 * are missing or lists disagree.
 */
export function readTokenizerFiles(metadata: Metadata): TokenizerFiles {
  const kind = kindOf(metadata);
  const tokens = readTokens(metadata);
  const idOf = (name: string) => {
    const key = `tokenizer.ggml.${name}_token_id`;
    const id = metadata.whole(key);
    if (id !== undefined && (id < 0 || id >= tokens.texts.length)) refuse(key, `an id below ${tokens.texts.length}`, String(id));
    return id;
  };
  const bos = idOf('bos');
  const eos = idOf('eos');
  if (metadata.flag('tokenizer.ggml.add_space_prefix')) refuse('tokenizer.ggml.add_space_prefix', 'false', 'true', 'UNSUPPORTED');
  const added = (name: string, id: number | undefined, otherwise: boolean) => {
    const key = `tokenizer.ggml.add_${name}_token`;
    if (!(metadata.flag(key) ?? (otherwise && id !== undefined))) return undefined;
    return id ?? refuse(key, 'false, because there is no id for it', 'true');
  };
  const first = added('bos', bos, kind.addsBos ?? false);
  const last = added('eos', eos, false);
  const merges = required(metadata.strings('tokenizer.ggml.merges'), 'tokenizer.ggml.merges');
  const postProcessor =
    first !== undefined || last !== undefined
      ? templateOf(tokens, first, last)
      : JSON.stringify(byteLevel({ add_prefix_space: true, trim_offsets: false }));
  const tokenizer =
    `{"version":"1.0","added_tokens":${addedTokens(tokens)},"normalizer":${JSON.stringify(kind.normalizer ?? null)},` +
    `"pre_tokenizer":${JSON.stringify(kind.preTokenizer)},"post_processor":${postProcessor},` +
    `"decoder":${JSON.stringify(byteLevel({ add_prefix_space: true }))},"model":${modelOf(tokens, merges, kind)}}`;
  const config = ['"tokenizer_class":"PreTrainedTokenizerFast"', '"clean_up_tokenization_spaces":false'];
  const add = (name: string, text: string | undefined) => {
    if (text !== undefined) config.push(`"${name}":${jsonString(name, text)}`);
  };
  for (const [name, id] of [
    ['bos', bos],
    ['eos', eos],
    ['unk', idOf('unknown')],
    ['pad', idOf('padding')],
  ] as const)
    add(`${name}_token`, id === undefined ? undefined : tokens.texts[id]);
  add('chat_template', metadata.string('tokenizer.chat_template'));
  return { tokenizer, tokenizerConfig: `{${config.join()}}` };
}

/** generation_config.json: the ids that end a text. */
export function readGenerationConfig(metadata: Metadata): object {
  const idOf = (name: string) => metadata.whole(`tokenizer.ggml.${name}_token_id`);
  const bos = idOf('bos');
  const ends = [idOf('eos'), idOf('eot')].filter((id) => id !== undefined);
  return { ...(bos !== undefined && { bos_token_id: bos }), ...(ends.length > 0 && { eos_token_id: ends }) };
}
