/** File addresses of the small models, in their own chunk. */
import entitiesConfig from '../../../../testdata/models/entities/config.json?url';
import entitiesWeights from '../../../../testdata/models/entities/model.safetensors?url';
import entitiesTokenizer from '../../../../testdata/models/entities/tokenizer.json?url';
import entitiesTokenizerConfig from '../../../../testdata/models/entities/tokenizer_config.json?url';
import masksConfig from '../../../../testdata/models/masks/config.json?url';
import masksWeights from '../../../../testdata/models/masks/model.safetensors?url';
import masksTokenizer from '../../../../testdata/models/masks/tokenizer.json?url';
import masksTokenizerConfig from '../../../../testdata/models/masks/tokenizer_config.json?url';

export const smallModels = {
  entities: {
    'config.json': entitiesConfig,
    'model.safetensors': entitiesWeights,
    'tokenizer.json': entitiesTokenizer,
    'tokenizer_config.json': entitiesTokenizerConfig,
  },
  masks: {
    'config.json': masksConfig,
    'model.safetensors': masksWeights,
    'tokenizer.json': masksTokenizer,
    'tokenizer_config.json': masksTokenizerConfig,
  },
} as const;
