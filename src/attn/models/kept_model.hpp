#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attn/layers/kept.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/tensor/aligned.hpp"

namespace attn::detail {

/// Values that a model's forward saves for its backward.
struct KeptModel {
  std::vector<std::int64_t> ids, types;  ///< empty types: all 0
  std::vector<SequenceGroup> runs;
  Embeddings::Kept embeddings = {};
  Stack::Kept stack = {};
  std::int64_t results = 0;  ///< number of sequences, or of tokens
  bool of_head = false;
  std::vector<std::int64_t> tokens;  ///< rows of the hidden states for which a token head has results; empty for other heads
  float* pooled = nullptr;           ///< (results,E), input of the head after dropout
  float* dense = nullptr;            ///< (results,width()), output of the head's dense layer before the activation
  float* result = nullptr;           ///< (results,result_size(of_head))
  AlignedFloats numbers = {};

  /// Returns the forward's inputs in the form that pooling takes.
  ModelInputs inputs() const {
    const AttentionSpec& spec = stack.layers->call.spec;
    return {.shape = {stack.layers->B, stack.layers->L},
            .input_ids = ids,
            .token_type_ids = types,
            .attention_mask = spec.key_padding_mask ? &*spec.key_padding_mask : nullptr,
            .runs = runs};
  }
};

/// Values that a head's forward saves for its backward.
struct KeptHead {
  const float* given = nullptr;  ///< (sequences,E), pooled vectors in the caller's memory
  std::int64_t sequences = 0;
  ForwardRandom random = {};
  float* pooled = nullptr;  ///< (sequences,E), after dropout
  float* dense = nullptr;   ///< (sequences,width()), before the activation
  float* logits = nullptr;  ///< (sequences,C)
  AlignedFloats numbers = {};
};

}  // namespace attn::detail
