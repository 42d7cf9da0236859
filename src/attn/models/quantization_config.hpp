#pragma once

#include "attn/models/model_config.hpp"

namespace attn::detail {

/// Reads compressed-tensors' settings, if present: weights int8 by row and symmetric; activations int8 by token, asymmetric and dynamic; word
/// embeddings optionally int8. Throws UNSUPPORTED for all others.
void read_quantization(const ConfigReader& config, ModelConfig& model);

}  // namespace attn::detail
