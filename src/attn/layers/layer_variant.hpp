#pragma once

#include <optional>

namespace attn::detail {

struct LayerVariant {
  bool parallel = false;                      ///< with norm_first: x + attention(norm1 x) + ff(norm2 x)
  bool post_norms = false;                    ///< with norm_first: also norms before the sums
  float norm_offset = 0;                      ///< norms multiply by weight + norm_offset
  bool layer_scale = false;                   ///< with norm_first: a factor for each column before the sums, in place of post_norms
  bool head_norms = false;                    ///< RMSNorm of queries and keys before RoPE
  std::optional<float> scale = std::nullopt;  ///< of the scores; default 1/√D
};

}  // namespace attn::detail
