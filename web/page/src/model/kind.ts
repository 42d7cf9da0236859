/** Architecture facts by family, read from config.json. */
type Config = Readonly<Record<string, unknown>>;

const gatedDecoder = /^(llama|mistral|qwen[23]|gemma[23](_text)?)$/;
const rotaryEncoder = /^(modernbert|nomic_bert|gte|new)$/;
const typeOf = (config: Config): string => String(config['model_type']);
const isAlibi = (config: Config): boolean => config['position_embedding_type'] === 'alibi';

export const isRotary = (config: Config): boolean =>
  rotaryEncoder.test(typeOf(config)) || gatedDecoder.test(typeOf(config)) || typeOf(config) === 'gpt_neox';
export const hasPositionBias = (config: Config): boolean => typeOf(config) === 'mpnet' || isAlibi(config);
export const isGated = (config: Config): boolean => rotaryEncoder.test(typeOf(config)) || gatedDecoder.test(typeOf(config)) || isAlibi(config);

export const isPreNorm = (config: Config): boolean => /^(modernbert|gpt2|gpt_neox)$/.test(typeOf(config)) || hasRmsNorm(config);
export const hasRmsNorm = (config: Config): boolean => gatedDecoder.test(typeOf(config));
const isGemma = (config: Config): boolean => typeOf(config).startsWith('gemma');
export const headWidthOf = (config: Config, otherwise: number): number =>
  Number(config['head_dim'] ?? (isGemma(config) ? 256 : typeOf(config) === 'qwen3' ? 128 : otherwise));
/** Numbers of norms are stored as their distance from 1. */
export const gainFromOne = (config: Config): number => (isGemma(config) ? 1 : 0);
export const hasPostNorm = isGemma;
/** Attention and feed-forward read the same row. */
export const isParallel = (config: Config): boolean => typeOf(config) === 'gpt_neox' && config['use_parallel_residual'] !== false;
/** D, unless the configuration has another number. */
export const scoreDivisor = (config: Config, width: number): number => (isGemma(config) ? Number(config['query_pre_attn_scalar'] ?? 256) : width);
/** Scores are bent to stay within ± this; 0: not. */
export const scoreCap = (config: Config): number =>
  typeOf(config) === 'gemma2' ? Number(config['attn_logit_softcapping'] === undefined ? 50 : config['attn_logit_softcapping']) : 0;
export const normEpsilon = (config: Config): number =>
  ['layer_norm_eps', 'norm_eps', 'layer_norm_epsilon', 'rms_norm_eps'].map((name) => config[name]).find((each) => typeof each === 'number') ?? 1e-12;
/** Vocabularies for many languages are large, and DeBERTa's English one has 128 100 entries. */
export const isMultilingual = (config: Config): boolean =>
  typeOf(config) === 'xlm-roberta' || Number(config['vocab_size']) > (typeOf(config) === 'deberta-v2' ? 200_000 : 100_000);
