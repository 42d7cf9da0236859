#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attn::detail::gguf {

/// Number format: rows are stored in blocks of `values` numbers that share scales.
struct BlockType {
  std::string_view name;
  std::uint32_t id;  ///< ggml_type
  std::uint32_t values, bytes;
  /// Blocks need not be aligned. Writes count * values numbers.
  void (*expand)(const std::uint8_t* blocks, std::size_t count, float* values);
};

const BlockType* block_type(std::uint32_t id);
inline constexpr std::string_view kBlockTypeNames = "F32, F16, BF16, Q4_0, Q4_1, Q8_0, Q4_K, Q6_K";

}  // namespace attn::detail::gguf
