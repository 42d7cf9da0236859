#pragma once

#include <span>
#include <string_view>

#include "attn/models/family.hpp"

// Names that BERT and later encoders share.
namespace attn::detail {

inline constexpr TensorNames kBertNames{.word_embeddings = "embeddings.word_embeddings",
                                        .position_embeddings = "embeddings.position_embeddings",
                                        .token_type_embeddings = "embeddings.token_type_embeddings",
                                        .embedding_norm = "embeddings.LayerNorm",
                                        .layers = "encoder.layer.",
                                        .query = "attention.self.query",
                                        .key = "attention.self.key",
                                        .value = "attention.self.value",
                                        .attention_output = "attention.output.dense",
                                        .norm1 = "attention.output.LayerNorm",
                                        .linear1 = "intermediate.dense",
                                        .linear2 = "output.dense",
                                        .norm2 = "output.LayerNorm"};

inline constexpr HeadNames kTokenHead{.classifier = "classifier"}, kAnswerHead{.classifier = "qa_outputs"},
    kPooledHead{.pooler = "pooler.dense", .classifier = "classifier"};
inline constexpr HeadNames kBertMaskHead{.dense = "cls.predictions.transform.dense",
                                         .norm = "cls.predictions.transform.LayerNorm",
                                         .classifier = "cls.predictions.decoder",
                                         .classifier_bias = "cls.predictions.bias"},
    kRobertaMaskHead{.dense = "lm_head.dense", .norm = "lm_head.layer_norm", .classifier = "lm_head.decoder", .classifier_bias = "lm_head.bias"};

/// transformers' names for encoders with rotary positions and a gate.
inline constexpr TensorNames kRotaryNames{.word_embeddings = "embeddings.word_embeddings",
                                          .token_type_embeddings = "embeddings.token_type_embeddings",
                                          .embedding_norm = "embeddings.LayerNorm",
                                          .layers = "layers.",
                                          .query = "self_attn.q_proj",
                                          .key = "self_attn.k_proj",
                                          .value = "self_attn.v_proj",
                                          .attention_output = "self_attn.o_proj",
                                          .norm1 = "post_attention_layernorm",
                                          .linear1 = "mlp.up_proj",
                                          .gate = "mlp.gate_proj",
                                          .linear2 = "mlp.down_proj",
                                          .norm2 = "post_mlp_layernorm"};

constexpr Family bert_family(std::span<const std::string_view> types, std::string_view architecture, std::string_view prefix,
                             std::span<const std::string_view> ignored, void (*configure)(const ConfigReader& config, ModelConfig& model),
                             const TensorNames& names = kBertNames) {
  return {.model_types = types,
          .architecture = architecture,
          .prefix = prefix,
          .names = names,
          .text_classification = kPooledHead,
          .token_classification = kTokenHead,
          .question_answering = kAnswerHead,
          .multiple_choice = kPooledHead,
          .fill_mask = kBertMaskHead,
          .ignored = ignored,
          .configure = configure,
          .tokenizer_class = "BertTokenizer"};
}

}  // namespace attn::detail
