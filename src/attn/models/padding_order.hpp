#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attn/layers/encoder_forward.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/models/model_inputs.hpp"

namespace attn::detail {

/// Moves the padding of a causal model's inputs to the end of each sequence, so that tokens have the positions, and results the bits, that they have
/// without padding.
class PaddingOrder {
 public:
  /// Whether padding precedes a token.
  static bool is_needed(const ModelInputs& inputs);
  /// Whether padding moves a token out of a window of `window` earlier positions. transformers counts the padding.
  static bool cuts_window(const ModelInputs& inputs, std::int64_t window);
  explicit PaddingOrder(const ModelInputs& given);
  PaddingOrder(const PaddingOrder&) = delete;  // inputs() refers to the copies
  PaddingOrder& operator=(const PaddingOrder&) = delete;

  const ModelInputs& inputs() const { return inputs_; }
  /// Returns an unchanged mask if its shape does not fit. Call it once.
  MaskView mask(const MaskView& given);
  /// The copy of (B,L,width) lives as long as this object.
  const float* rows(const float* given, std::int64_t width);
  /// The copy of (B,H,L,L) lives as long as this object.
  const float* weights(const float* given, std::int64_t heads);
  /// Moves results back in place; logits may be null.
  void restore(const EncoderPlan& plan, const EncoderBuffers& buffers, float* logits, const Shape& of_logits, Scratch& scratch) const;
  /// In a dry run: counts the copies that mask() and rows() have made.
  void count() const;

 private:
  std::int64_t at(std::int64_t b, std::int64_t i) const { return order_[static_cast<std::size_t>(b * inputs_.shape[1] + i)]; }
  /// x (B,outer,L,inner); with `keys`, if inner is L · n, also moves groups of n numbers within each row.
  void restore(float* x, std::int64_t outer, std::int64_t inner, bool keys, Scratch& scratch) const;

  std::vector<std::int64_t> order_;  // (B,L), position in the given sequence
  std::vector<std::int64_t> ids_, types_;
  std::vector<std::uint8_t> flags_;
  std::vector<float> mask_;
  std::vector<std::vector<float>> rows_;
  MaskView padding_;
  ModelInputs inputs_;
};

}  // namespace attn::detail
