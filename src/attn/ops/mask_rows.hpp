#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "attn/ops/attention_plan.hpp"

// Mask, key padding mask and causality as one additive row per query. Internal to ops.
namespace attn::detail {

/// The bias of a blocked key.
inline constexpr float kBlocked = -std::numeric_limits<float>::infinity();

/// Keys visible to one query: [first, end) except those with bias -infinity. A fully masked query has end 0.
struct VisibleKeys {
  const float* bias = nullptr;  ///< null: nothing to add, and no key before end is blocked
  std::size_t end = 0;
  std::size_t first = 0;  ///< keys before it are outside the window; the bias blocks them as well
};

class MaskRows {
 public:
  MaskRows(const AttentionSpec& spec, const AttentionSizes& sizes);

  /// Whether a row can have a bias, so that row() needs a buffer of S floats.
  bool need_buffer() const { return mask_.mask != nullptr || padding_.mask != nullptr || window_.left >= 0 || (extra_ > 0 && ends()); }
  /// Whether every query of a (batch, head) has the same row.
  bool same_for_all_queries() const { return !ends() && window_.left < 0 && mask_.query == 0 && !queries_are_padded_; }
  bool any() const { return ends() || need_buffer(); }

  /// Returns the keys visible to query i of head h; the bias may be stored in `buffer`.
  VisibleKeys row(std::int64_t b, std::int64_t h, std::int64_t i, float* buffer) const;

 private:
  /// A mask and the strides between its rows, 0 along dimensions that it broadcasts or does not have.
  struct Source {
    const MaskView* mask = nullptr;
    std::ptrdiff_t batch = 0, head = 0, query = 0;
  };
  static Source source(const std::optional<MaskView>& mask, bool padding);
  static void add(const Source& source, std::ptrdiff_t offset, std::size_t count, float* bias);

  /// Whether the last visible key depends on the position of the query.
  bool ends() const { return causal_ || window_.right >= 0; }

  Source mask_, padding_;
  bool causal_, queries_are_padded_;
  Window window_;
  std::int64_t offset_;
  std::size_t S_, extra_;  ///< keys covered by masks, and extra keys after them that every query sees
};

}  // namespace attn::detail
