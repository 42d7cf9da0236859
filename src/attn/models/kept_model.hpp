#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attn/layers/kept.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/tensor/aligned.hpp"

namespace attn::detail {

/// What a forward of a model leaves for its backward.
struct KeptModel {
  std::shared_ptr<const KeptEncoder> encoder;
  std::vector<std::int64_t> ids, types, positions;  ///< rows of the tables, by place; none of types: row 0
  std::vector<SequenceRun> runs;
  ScorePositions score_positions = {};
  std::int64_t results = 0;  ///< as many as there are sequences, or tokens
  bool of_head = false;
  std::vector<std::int64_t> tokens;  ///< rows of hidden states that a head of tokens has results of; or none
  float* embeddings = nullptr;       ///< (rows,E), sums of the tables' rows, before their norm
  float* pooled = nullptr;           ///< (results,E), what the head takes, after dropout
  float* dense = nullptr;            ///< (results,width()), of the head, before the activation
  float* result = nullptr;           ///< (results,result_size(of_head))
  AlignedFloats numbers = {};

  /// The forward's, as pooling takes them.
  ModelInputs inputs() const {
    const AttentionSpec& spec = encoder->call.spec;
    return {.shape = {encoder->B, encoder->L},
            .input_ids = ids,
            .token_type_ids = types,
            .attention_mask = spec.key_padding_mask ? &*spec.key_padding_mask : nullptr,
            .runs = runs};
  }
};

/// What the head's forward leaves for its backward.
struct KeptHead {
  const float* given = nullptr;  ///< (sequences,E), what is pooled: the caller's
  std::int64_t sequences = 0;
  ForwardRandom random = {};
  float* pooled = nullptr;  ///< (sequences,E), after dropout
  float* dense = nullptr;   ///< (sequences,width()), before the activation
  float* logits = nullptr;  ///< (sequences,C)
  AlignedFloats numbers = {};
};

}  // namespace attn::detail
