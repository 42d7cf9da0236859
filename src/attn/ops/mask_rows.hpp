#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "attn/ops/attention_plan.hpp"

// Mask, key padding mask and causality as one additive row per query. Internal.
namespace attn::detail {

inline constexpr float kBlocked = -std::numeric_limits<float>::infinity();

/// [first, end) except keys with bias -infinity. A fully masked query has end 0.
struct VisibleKeys {
  const float* bias = nullptr;  ///< null: nothing to add or block before end
  std::size_t end = 0;
  std::size_t first = 0;  ///< keys before it are outside the window, and blocked by the bias
};

class MaskRows {
 public:
  MaskRows(const AttentionSpec& spec, const AttentionSizes& sizes);

  /// Whether row() needs a buffer of S floats.
  bool need_buffer() const { return mask_.mask != nullptr || padding_.mask != nullptr || window_.left >= 0 || (extra_ > 0 && ends()); }
  bool same_for_all_queries() const { return !ends() && window_.left < 0 && mask_.query == 0 && !queries_are_padded_; }
  bool any() const { return ends() || need_buffer(); }

  /// The bias may be stored in `buffer`.
  VisibleKeys row(std::int64_t b, std::int64_t h, std::int64_t i, float* buffer) const;

 private:
  /// Strides are 0 along dimensions that the mask broadcasts or lacks.
  struct Source {
    const MaskView* mask = nullptr;
    std::ptrdiff_t batch = 0, head = 0, query = 0;
  };
  static Source source(const std::optional<MaskView>& mask, bool padding);
  static void add(const Source& source, std::ptrdiff_t offset, std::size_t count, float* bias);

  bool ends() const { return causal_ || window_.right >= 0; }

  Source mask_, padding_;
  bool causal_, queries_are_padded_;
  Window window_;
  std::int64_t offset_;
  std::size_t S_, extra_;  ///< keys of masks, and keys after them that every query sees
};

}  // namespace attn::detail
