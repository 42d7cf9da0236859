import entitiesConfig from '../../../../testdata/models/entities/config.json?url';
import entitiesWeights from '../../../../testdata/models/entities/model.safetensors?url';
import entitiesTokenizer from '../../../../testdata/models/entities/tokenizer.json?url';
import entitiesTokenizerConfig from '../../../../testdata/models/entities/tokenizer_config.json?url';
import masksConfig from '../../../../testdata/models/masks/config.json?url';
import masksWeights from '../../../../testdata/models/masks/model.safetensors?url';
import masksTokenizer from '../../../../testdata/models/masks/tokenizer.json?url';
import masksTokenizerConfig from '../../../../testdata/models/masks/tokenizer_config.json?url';
import reactionsConfig from '../../../../testdata/models/reactions/config.json?url';
import reactionsWeights from '../../../../testdata/models/reactions/model.safetensors?url';
import reactionsTokenizer from '../../../../testdata/models/reactions/tokenizer.json?url';
import reactionsTokenizerConfig from '../../../../testdata/models/reactions/tokenizer_config.json?url';
import sentimentConfig from '../../../../testdata/models/sentiment/config.json?url';
import sentimentWeights from '../../../../testdata/models/sentiment/model.safetensors?url';
import sentimentTokenizer from '../../../../testdata/models/sentiment/tokenizer.json?url';
import sentimentTokenizerConfig from '../../../../testdata/models/sentiment/tokenizer_config.json?url';

export const ownModels = {
  masks: {
    'config.json': masksConfig,
    'model.safetensors': masksWeights,
    'tokenizer.json': masksTokenizer,
    'tokenizer_config.json': masksTokenizerConfig,
  },
  sentiment: {
    'config.json': sentimentConfig,
    'model.safetensors': sentimentWeights,
    'tokenizer.json': sentimentTokenizer,
    'tokenizer_config.json': sentimentTokenizerConfig,
  },
  entities: {
    'config.json': entitiesConfig,
    'model.safetensors': entitiesWeights,
    'tokenizer.json': entitiesTokenizer,
    'tokenizer_config.json': entitiesTokenizerConfig,
  },
  reactions: {
    'config.json': reactionsConfig,
    'model.safetensors': reactionsWeights,
    'tokenizer.json': reactionsTokenizer,
    'tokenizer_config.json': reactionsTokenizerConfig,
  },
} as const;
