#pragma once

#include "attn/models/family.hpp"

namespace attn::detail {

inline constexpr TensorNames kLlamaNames{.word_embeddings = "embed_tokens",
                                         .layers = "layers.",
                                         .query = "self_attn.q_proj",
                                         .key = "self_attn.k_proj",
                                         .value = "self_attn.v_proj",
                                         .query_norm = "self_attn.q_norm",
                                         .key_norm = "self_attn.k_norm",
                                         .attention_output = "self_attn.o_proj",
                                         .norm1 = "input_layernorm",
                                         .linear1 = "mlp.up_proj",
                                         .gate = "mlp.gate_proj",
                                         .linear2 = "mlp.down_proj",
                                         .norm2 = "post_attention_layernorm",
                                         .final_norm = "norm"};

/// RMSNorm, a gate, heads that share keys and values, RoPE, no biases. `positions` and `theta` are the defaults; with theta 0 the family reads RoPE
/// itself.
void configure_llama(const ConfigReader& config, ModelConfig& model, std::int64_t positions, double theta = 10000);

}  // namespace attn::detail
