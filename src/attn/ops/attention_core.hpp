#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "attn/ops/attention.hpp"

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

struct AttentionInputs {
  Heads<const float> query, key, value;
  Heads<float> context;
};

/// Throws MASK where a mask of the options does not fit (B,H,L,S) or has values that it must not have.
/// `unbatched`: inputs came without B, so a key padding mask may too.
void check_masks(std::string_view op, const AttentionPlan& plan, const AttentionOptions& options, bool unbatched);

/// The scale of the options (CONFIG unless finite), else 1/√D.
float attention_scale(std::string_view op, const std::optional<float>& scale, std::int64_t D);

/// Shapes of the weights and traces that the plan has, without B or H where the inputs have none. Checks the memory of the
/// results and of attention_core's scratch, besides what the caller has added already.
void plan_results(AttentionPlan& plan, bool has_batch, bool has_heads, MemoryEstimate& memory);

/// context = softmax(q kᵀ · scale + masks) v for every head; fills weights, scores, masked_scores, probabilities,
/// weighted_values and the trace's weights of the buffers.
void attention_core(const AttentionPlan& plan, const AttentionOptions& options, const AttentionInputs& inputs, const AttentionBuffers& buffers);

/// to (B,H,rows,width) without gaps.
void copy_heads(const Heads<const float>& from, std::int64_t B, std::int64_t H, std::int64_t rows, std::int64_t width, float* to);

}  // namespace attn::detail
