#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "attn/kernels/kernels.hpp"
#include "attn/memory/packed_heads.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/ops/attention_plan.hpp"
#include "attn/ops/dropout.hpp"

namespace attn::detail {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A multiple of the number of lanes in which any kernel sums.
inline constexpr std::size_t kMostLanes = 64;

/// Element (b,h,i,d) is at data[b·batch + h·head + i·row + d].
template <class T>
struct Heads {
  T* data = nullptr;
  std::ptrdiff_t batch = 0, head = 0, row = 0;

  T* at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return data + static_cast<std::ptrdiff_t>(b) * batch + static_cast<std::ptrdiff_t>(h) * head + static_cast<std::ptrdiff_t>(i) * row;
  }
};

/// In WebAssembly a product above 32 bits, which only a dry run sees, becomes the largest size.
inline std::size_t size_of(std::int64_t rows, std::int64_t width) {
  const auto size = static_cast<std::uint64_t>(rows * width);
  return size > SIZE_MAX ? SIZE_MAX : static_cast<std::size_t>(size);
}

struct AttentionInputs {
  Heads<const float> query, key, value;
  Heads<float> context;
  const float* score_weight = nullptr;  ///< (D): scores are scale · Σ score_weight tanh(q + k); null: scale · q kᵀ
  PositionBias position_bias = {};
  Dropout dropout = {};
  const PackedHeads* packed = nullptr;  ///< head h of sequence b at b · Hkv + h; null: key and value
};

/// Contiguous (B,H,rows,width).
template <class T>
Heads<T> heads_of(T* data, std::int64_t H, std::int64_t rows, std::int64_t width) {
  // Unsigned, because products may overflow for an empty tensor.
  const auto row = static_cast<std::uint64_t>(width), head = static_cast<std::uint64_t>(rows) * row, batch = static_cast<std::uint64_t>(H) * head;
  return {data, static_cast<std::ptrdiff_t>(batch), static_cast<std::ptrdiff_t>(head), static_cast<std::ptrdiff_t>(row)};
}

/// (B,rows,heads·width) as (B,heads,rows,width).
template <class T>
Heads<T> heads_in_rows(T* data, std::int64_t rows, std::int64_t heads, std::int64_t width) {
  const auto row = static_cast<std::ptrdiff_t>(heads * width);
  return {data, static_cast<std::ptrdiff_t>(rows) * row, static_cast<std::ptrdiff_t>(width), row};
}

/// Rank 2, 3 (B) or 4 (B,H).
inline Heads<const float> heads_of(const TensorView& x) {
  const std::size_t rank = x.shape.rank();
  return {x.data, rank >= 3 ? x.strides[0] : 0, rank == 4 ? x.strides[1] : 0, x.strides[rank - 2]};
}

/// Computes context = dropout(softmax(softcap(q kᵀ · scale) + masks)) v and what the buffers ask for.
void attention_core(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionInputs& inputs, const AttentionBuffers& buffers,
                    Scratch& scratch);

void copy_heads(const Heads<const float>& from, std::int64_t B, std::int64_t H, std::int64_t rows, std::int64_t width, float* to);

}  // namespace attn::detail
