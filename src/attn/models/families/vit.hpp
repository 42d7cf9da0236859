#pragma once

#include "attn/models/family.hpp"

// Names that ViT and DeiT share.
namespace attn::detail {

inline constexpr TensorNames kVitNames{.layers = "encoder.layer.",
                                       .query = "attention.attention.query",
                                       .key = "attention.attention.key",
                                       .value = "attention.attention.value",
                                       .attention_output = "attention.output.dense",
                                       .norm1 = "layernorm_before",
                                       .linear1 = "intermediate.dense",
                                       .linear2 = "output.dense",
                                       .norm2 = "layernorm_after",
                                       .final_norm = "layernorm"};

void configure_vit(const ConfigReader& config, ModelConfig& model);

}  // namespace attn::detail
