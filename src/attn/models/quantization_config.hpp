#pragma once

#include "attn/models/model_config.hpp"

namespace attn::detail {

/// Reads config.json's quantization_config, where there is one, as the package compressed-tensors writes it: weights int8 by row, symmetric;
/// what meets them int8 by token, asymmetric and dynamic; maybe the word table, too. Throws UNSUPPORTED for all else that it can say.
void read_quantization(const ConfigReader& config, ModelConfig& model);

}  // namespace attn::detail
