#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attn/layers/kept.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/tensor/aligned.hpp"

namespace attn::detail {

struct KeptModel {
  std::vector<std::int64_t> ids, types;  ///< empty types: all 0
  std::vector<SequenceGroup> runs;
  Embeddings::Kept embeddings = {};
  Stack::Kept stack = {};
  std::int64_t results = 0;  ///< sequences, or tokens
  bool of_head = false;
  std::vector<std::int64_t> tokens;  ///< rows of the hidden states for which a token head has results
  float* pooled = nullptr;           ///< (results,E), after dropout
  float* dense = nullptr;            ///< (results,width()), before the activation
  float* result = nullptr;           ///< (results,result_size(of_head))
  AlignedFloats numbers = {};

  ModelInputs inputs() const {
    const AttentionSpec& spec = stack.layers->call.spec;
    return {.shape = {stack.layers->B, stack.layers->L},
            .input_ids = ids,
            .token_type_ids = types,
            .attention_mask = spec.key_padding_mask ? &*spec.key_padding_mask : nullptr,
            .runs = runs};
  }
};

struct KeptHead {
  const float* given = nullptr;  ///< (sequences,E), the caller's
  std::int64_t sequences = 0;
  ForwardRandom random = {};
  float* pooled = nullptr;  ///< (sequences,E), after dropout
  float* dense = nullptr;   ///< (sequences,width()), before the activation
  float* logits = nullptr;  ///< (sequences,C)
  AlignedFloats numbers = {};
};

}  // namespace attn::detail
