#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "attn/ops/attention.hpp"
#include "attn/ops/dropout.hpp"
#include "attn/ops/scratch.hpp"

// Attention over heads that lie anywhere in memory. Internal: ops and layers share it.
namespace attn::detail {

/// Element (b,h,i,d) is at data[b·batch + h·head + i·row + d].
template <class T>
struct Heads {
  T* data = nullptr;
  std::ptrdiff_t batch = 0, head = 0, row = 0;

  T* at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return data + static_cast<std::ptrdiff_t>(b) * batch + static_cast<std::ptrdiff_t>(h) * head + static_cast<std::ptrdiff_t>(i) * row;
  }
};

inline std::size_t size_of(std::int64_t rows, std::int64_t width) { return static_cast<std::size_t>(rows * width); }

struct AttentionInputs {
  Heads<const float> query, key, value;
  Heads<float> context;
  const float* score_weight = nullptr;  ///< (D): a score is scale · Σ score_weight tanh(q + k); null: it is scale · q kᵀ
  Dropout dropout = {};
};

/// (B,H,rows,width) of an input of rank 2, 3 or 4; missing ones are 1.
struct HeadDims {
  std::int64_t B = 1, H = 1, rows = 0, width = 0;
};

/// Throws SHAPE for another rank.
HeadDims head_dims(std::string_view op, std::string_view name, const TensorView& x);

/// Of a tensor without gaps.
template <class T>
Heads<T> heads_of(T* data, std::int64_t H, std::int64_t rows, std::int64_t width) {
  // Unsigned, for of an empty tensor the other dimensions may be anything.
  const auto row = static_cast<std::uint64_t>(width), head = static_cast<std::uint64_t>(rows) * row, batch = static_cast<std::uint64_t>(H) * head;
  return {data, static_cast<std::ptrdiff_t>(batch), static_cast<std::ptrdiff_t>(head), static_cast<std::ptrdiff_t>(row)};
}

/// Everything of a call on q (..,L,Dq), k (..,S,Dk), v (..,S,Dv) but the width in which queries meet keys (D) and the scale.
/// Dq = Dk unless `own_widths`. The caller adds its own work to `memory` and checks it.
AttentionPlan plan_attention(std::string_view op, const TensorView& query, const TensorView& key, const TensorView& value,
                             const AttentionOptions& options, bool own_widths);

/// plan_results of a call that plan_attention planned.
void plan_attention_results(AttentionPlan& plan, const TensorView& query, MemoryEstimate& memory);

/// Copies the traces that are inputs or outputs of attention_core.
void copy_attention_traces(const AttentionPlan& plan, const TensorView& query, const TensorView& key, const TensorView& value,
                           const AttentionBuffers& buffers);

/// Of the traces asked for those that the op has. Asking for all of attention's asks for what there is; else a name that the op
/// does not have is ARGUMENT, with `names` as what it has.
Trace available_traces(std::string_view op, Trace asked, Trace available, std::string_view names);

AttentionMasks masks_of(const std::optional<Mask>& mask, const std::optional<Mask>& key_padding_mask, bool is_causal, FullyMasked fully_masked);

/// Throws MASK where a mask of the plan does not fit (B,H,L,S) or has values that it must not have.
/// `unbatched`: inputs came without B, so a key padding mask may too.
void check_masks(std::string_view op, const AttentionPlan& plan, bool unbatched);

/// The scale of the options (CONFIG unless finite), else 1/√D.
float attention_scale(std::string_view op, const std::optional<float>& scale, std::int64_t D);

/// Shapes of the weights and traces that the plan has, without B or H where the inputs have none. Adds the results and
/// attention_core's scratch to the memory.
void plan_results(AttentionPlan& plan, bool has_batch, bool has_heads, MemoryEstimate& memory);

/// context = dropout(softmax(q kᵀ · scale + masks)) v for every head; fills weights, scores, masked_scores, probabilities,
/// weighted_values and the trace's weights of the buffers.
void attention_core(const AttentionPlan& plan, const AttentionInputs& inputs, const AttentionBuffers& buffers, Scratch& scratch);

/// to (B,H,rows,width) without gaps.
void copy_heads(const Heads<const float>& from, std::int64_t B, std::int64_t H, std::int64_t rows, std::int64_t width, float* to);

}  // namespace attn::detail
