#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/kernels/backward.hpp"
#include "attn/kernels/kernels.hpp"
#include "attn/ops/attention_backward_core.hpp"
#include "attn/ops/mask_rows.hpp"

// Each block of query rows recomputes its probabilities (Dao 2023) for all keys, so that they equal the forward's bit
// for bit and Σ P ∘ dP is known:
//
// P = softmax(masked scores), dP = dropout(dO Vᵀ), dS = P ∘ (dP - Σ P ∘ dP)
// dQ = scale · dS K, dK += scale · dSᵀ Q, dV += dropout(P)ᵀ dO
//
// A task is one key head, so sums over queries and query heads have a fixed order.
namespace attn::detail {

class AttentionBackwardPass {
 public:
  AttentionBackwardPass(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionBackwardInputs& inputs,
                        const AttentionGradientHeads& to)
      : spec_(spec),
        sizes_(sizes),
        in_(inputs),
        to_(to),
        kernel_(kernels::best()),
        backward_(kernels::best_backward()),
        masks_(spec, sizes),
        S_(static_cast<std::size_t>(sizes.S)),
        D_(static_cast<std::size_t>(spec.head_dim)),
        Dv_(static_cast<std::size_t>(spec.value_head_dim)),
        block_(rows_per_block(sizes.S)),
        ld_(static_cast<std::size_t>(row_of_scores(sizes.S))) {}

  void run(Scratch& scratch);

  static std::size_t rows_per_block(std::int64_t S);
  /// An odd number of cache lines, so that accesses along columns do not alias in the L1 cache.
  static std::int64_t row_of_scores(std::int64_t S);
  /// Whether the query gradient is NaN if no key is visible: under the policy nan, unless the context's gradient is 0.
  static bool gives_nan(const AttentionSpec& spec, const float* grad);

 private:
  static constexpr std::size_t kMostRows = 96;
  struct Work {
    float *keys, *keys_by_width,
        *values;                      // panels: W of q Wᵀ, of dS Wᵀ and of dO Wᵀ
    float *queries, *grads;           // panels of a block's rows
    float *probabilities, *gradient;  // (block,ld), like the next two
    float* weights;                   // null without dropout
    float* capped;                    // null without softcap
    float* bias;                      // (block,S), masks
    float* of_row;                    // (D), gradient of score_weight
    // Null without relative positions; `table` is the number of table rows that occur. dS summed per query
    // (block,table) and per key (S,table), panels of the table rows, and scratch.
    float *by_query, *by_key, *position_keys, *position_queries, *relative;
    bool finite_keys;
  };
  struct Block {
    std::int64_t b, h, kv_head, first;
    std::size_t rows, start,
        count;  // first visible key, and the number of keys
    VisibleKeys keys[kMostRows];
    bool nan[kMostRows];  // see gives_nan()
  };

  std::size_t panels(std::size_t n, std::size_t k) const { return kernels::packed_size(kernel_.nr, n, k); }
  bool additive() const { return in_.score_weight != nullptr; }
  Work work_of(Scratch& scratch) const;
  void add_up_tables() const;
  void head(std::int64_t b, std::int64_t kv_head, Work& work, float* score_weight) const;
  void pack_head(std::int64_t b, std::int64_t kv_head, Work& work) const;
  void finish_keys(std::int64_t b, std::int64_t kv_head, const Work& work) const;
  void block(Block& block, const Work& work, float* score_weight) const;
  void visible_keys(Block& block, const Work& work) const;
  void score_block(const Block& block, const Work& work) const;
  void softmax_block(const Block& block, const Work& work) const;
  void d_values(const Block& block, const Work& work) const;
  void d_scores(const Block& block, const Work& work) const;
  void sum_by_position(const Block& block, const Work& work) const;
  void d_queries(const Block& block, const Work& work) const;
  void d_keys(const Block& block, const Work& work) const;
  float* of_table(std::int64_t b, std::int64_t h, bool of_queries) const {
    return of_table_ + static_cast<std::size_t>((b * spec_.num_heads + h) * 2 + (of_queries ? 1 : 0)) * table_ * D_;
  }
  void d_additive(const Block& block, const Work& work, float* score_weight) const;
  void add_over_queries(const Block& block, const float* scores, const float* panels_of_rows, std::size_t width, const Heads<float>& sums) const;

  bool uniform(const VisibleKeys& keys) const { return keys.end == 0 && spec_.fully_masked == FullyMasked::uniform; }
  std::size_t visible_count(const VisibleKeys& keys) const { return uniform(keys) ? S_ : keys.end; }
  /// Keys with a weight, from the block's start on.
  std::size_t visible_count(const Block& block, std::size_t r) const {
    const std::size_t total = visible_count(block.keys[r]);
    return total > block.start ? total - block.start : 0;
  }
  void zero_blocked(const Block& block, std::size_t r, float* values) const {
    if (const VisibleKeys& keys = block.keys[r]; keys.bias != nullptr)
      backward_.zero_blocked_row(keys.bias + block.start, values, visible_count(block, r));
  }
  void store(const Block& block, TraceName name, const float* values) const;
  void store_weighted_values(const Block& block) const;

  const AttentionSpec& spec_;
  const AttentionSizes& sizes_;
  const AttentionBackwardInputs& in_;
  const AttentionGradientHeads& to_;
  const kernels::KernelTable& kernel_;
  const kernels::BackwardTable& backward_;
  const MaskRows masks_;
  const std::size_t S_, D_, Dv_;
  const std::size_t block_,
      ld_;                   // rows per block, row stride of its scores
  float* biases_ = nullptr;  // (B,H,row), or null if not requested
  const RelativePositions* relative_ = in_.position_bias.relative;
  std::size_t lowest_ = 0, table_ = 0;  // the first row of the table that
                                        // occurs, and the number of rows
  float* of_table_ = nullptr;           // (B,H,2,table,D): gradients of position keys and queries
};

}  // namespace attn::detail
