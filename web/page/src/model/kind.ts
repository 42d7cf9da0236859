/** Architecture facts by family, read from config.json. */
type Config = Readonly<Record<string, unknown>>;

const rotary = /^(modernbert|nomic_bert|gte|new)$/;
const isAlibi = (config: Config): boolean => config['position_embedding_type'] === 'alibi';

/** Queries and keys are rotated by their positions. */
export const isRotary = (config: Config): boolean => rotary.test(String(config['model_type']));
/** A bias by distance is added to the scores. */
export const hasPositionBias = (config: Config): boolean => config['model_type'] === 'mpnet' || isAlibi(config);
/** The feed-forward network has a second input matrix. */
export const isGated = (config: Config): boolean => isRotary(config) || isAlibi(config);

/** The norms come before the parts of a layer, not after them. */
export const isPreNorm = (config: Config): boolean => config['model_type'] === 'modernbert';
