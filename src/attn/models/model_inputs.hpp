#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attn/ops/attention_plan.hpp"
#include "attn/ops/mask_view.hpp"
#include "attn/ops/pooling.hpp"
#include "attn/tensor/shape.hpp"
#include "attn/tensor/view.hpp"

namespace attn::detail {

/// Refers to the caller's memory.
struct ModelInputs {
  Shape shape = {};  ///< (B,L)
  std::span<const std::int64_t> input_ids = {};
  std::span<const std::int64_t> token_type_ids = {};  ///< empty: all 0
  const MaskView* attention_mask = nullptr;           ///< (B,L); null: no padding
  /// Lengths of sequences one after the other without padding; the shape is then (1,rows). Empty: B sequences of length L.
  std::span<const SequenceGroup> runs = {};
  const float* embeds = nullptr;       ///< (B,L,word_width()), replace the rows of the word embeddings; null: none
  std::int64_t first_position = 0;     ///< of the first id of each sequence
  const TensorView* pixels = nullptr;  ///< (B,channels,height,width) of an image model, in place of ids
};

std::vector<SequenceGroup> runs_of(const ModelInputs& inputs);
std::int64_t longest_of(const ModelInputs& inputs);

/// hidden (..,E); rows of `pooled` are `stride` apart. Positions before `first` are not pooled.
void pool_sequences(const ModelInputs& inputs, std::int64_t E, const float* hidden, Pooling pooling, float* pooled, std::int64_t stride,
                    std::int64_t first = 0);
/// Rows of grad are `stride` apart.
void pool_sequences_backward(const ModelInputs& inputs, std::int64_t E, const float* grad, std::int64_t stride, const float* hidden, Pooling pooling,
                             float* of_hidden);

/// One after the other, without padding.
struct PackedSequences {
  std::vector<std::int64_t> ids, types;
  std::vector<SequenceGroup> runs;

  /// The caller appends the ids and types.
  void add_length(std::int64_t length);
  ModelInputs inputs() const { return {.shape = {1, std::ssize(ids)}, .input_ids = ids, .token_type_ids = types, .runs = runs}; }
};

}  // namespace attn::detail
