/** What a config.json says of how a model is built, by family. */
type Config = Readonly<Record<string, unknown>>;

const rotary = /^(modernbert|nomic_bert|gte|new)$/;
const isAlibi = (config: Config): boolean => config['position_embedding_type'] === 'alibi';

/** Whether queries and keys are turned by their positions. */
export const isRotary = (config: Config): boolean => rotary.test(String(config['model_type']));
/** Whether a number by distance is added to the scores. */
export const hasPositionBias = (config: Config): boolean => config['model_type'] === 'mpnet' || isAlibi(config);
/** Whether the feed-forward has a second matrix beside the first. */
export const isGated = (config: Config): boolean => isRotary(config) || isAlibi(config);
