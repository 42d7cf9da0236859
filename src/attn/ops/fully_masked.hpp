#pragma once

#include <cstdint>

namespace attn {

/// What a query gets that has no key left.
enum class FullyMasked : std::uint8_t {
  zero,     ///< zero weights and output (torch's scaled_dot_product_attention since 2.5, ONNX Attention)
  nan,      ///< NaN (older torch)
  uniform,  ///< 1/S on every key, masked ones included (what a fill with -1e9 gives)
};

}  // namespace attn
