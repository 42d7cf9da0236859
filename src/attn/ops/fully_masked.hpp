#pragma once

#include <cstdint>

namespace attn {

/// Result for a query whose keys are all masked.
enum class FullyMasked : std::uint8_t {
  zero,     ///< zero weights and output (torch's scaled_dot_product_attention since 2.5, ONNX Attention)
  nan,      ///< NaN (older torch)
  uniform,  ///< weight 1/S for every key, masked ones included (as filling with -1e9 does)
};

}  // namespace attn
