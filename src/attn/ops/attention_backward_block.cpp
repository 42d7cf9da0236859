#include <algorithm>

#include "attn/ops/attention_backward_pass.hpp"
#include "attn/ops/relative_scores.hpp"

namespace attn::detail {

void AttentionBackwardPass::block(Block& block, const Work& work, float* score_weight) const {
  visible_keys(block, work);
  score_block(block, work);
  softmax_block(block, work);
  d_values(block, work);
  d_scores(block, work);
  if (additive()) {
    d_additive(block, work, score_weight);
  } else {
    if (relative_ != nullptr) sum_by_position(block, work);
    d_queries(block, work);
    d_keys(block, work);
  }
  for (std::size_t r = 0; r < block.rows; ++r)
    if (block.nan[r]) std::fill_n(to_.query.at(block.b, block.h, block.first + static_cast<std::int64_t>(r)), D_, kNaN);
}

void AttentionBackwardPass::visible_keys(Block& block, const Work& work) const {
  std::size_t filled = 0;
  for (std::size_t r = 0; r < block.rows; ++r) {
    VisibleKeys& keys = block.keys[r];
    keys = r > 0 && masks_.same_for_all_queries()
               ? block.keys[0]
               : masks_.row(block.b, block.h, block.first + static_cast<std::int64_t>(r), work.bias != nullptr ? work.bias + r * S_ : nullptr);
    filled = std::max(filled, visible_count(keys));
    block.nan[r] = keys.end == 0 && gives_nan(spec_, in_.grad.at(block.b, block.h, block.first + static_cast<std::int64_t>(r)));
    block.start = std::min(block.start, uniform(keys) ? 0 : keys.first);
  }
  // Kernels sum in lanes: a start at a multiple of them changes no bit. Dropout counts keys from 0.
  block.start = in_.dropout.active() ? 0 : std::min(block.start, filled) / kMostLanes * kMostLanes;
  block.count = filled - block.start;
}

/// probabilities (rows,count) = scores before masks
void AttentionBackwardPass::score_block(const Block& block, const Work& work) const {
  if (additive()) {
    for (std::size_t r = 0; r < block.rows; ++r)
      kernel_.additive_scores_row(in_.query.at(block.b, block.h, block.first + static_cast<std::int64_t>(r)),
                                  in_.key.at(block.b, block.kv_head, static_cast<std::int64_t>(block.start)), in_.key.row, in_.score_weight,
                                  work.probabilities + r * ld_, block.count, D_, spec_.scale);
  } else {
    const std::size_t panel_size = kernels::panel_size(kernel_.nr, D_);
    kernel_.gemm({.a = in_.query.at(block.b, block.h, block.first),
                  .lda = in_.query.row,
                  .panels = work.keys + block.start / kernel_.nr * panel_size,
                  .panel_stride = panel_size,
                  .c = work.probabilities,
                  .ldc = static_cast<std::ptrdiff_t>(ld_),
                  .m = block.rows,
                  .n = block.count,
                  .k = D_,
                  .alpha = spec_.scale});
    if (relative_ != nullptr)
      add_relative_scores(kernel_, *relative_,
                          {.query = in_.query.at(block.b, block.h, block.first),
                           .query_row = in_.query.row,
                           .key_panels = work.keys + block.start / kernel_.nr * panel_size,
                           .h = block.h,
                           .first = block.first,
                           .rows = block.rows,
                           .key = block.start,
                           .count = block.count,
                           .D = D_,
                           .scale = spec_.scale,
                           .scores = work.probabilities,
                           .ld = ld_,
                           .scratch = work.relative});
  }
  for (std::size_t r = 0; r < block.rows; ++r) {
    float* const scores = work.probabilities + r * ld_;
    if (spec_.softcap > 0) {
      kernel_.scale_row(scores, 1 / spec_.softcap, scores, block.count);
      kernel_.activation_row(kernels::Activation::tanh, scores, scores, block.count);
      kernel_.scale_row(scores, spec_.softcap, scores, block.count);
      std::copy_n(scores, block.count, work.capped + r * ld_);
    }
    if (in_.position_bias.data != nullptr) {
      const std::int64_t distance = static_cast<std::int64_t>(block.start) - block.first - static_cast<std::int64_t>(r);
      kernel_.add_row(scores, in_.position_bias.data + block.h * in_.position_bias.row + distance, scores, block.count);
    }
  }
}

/// probabilities (rows,count) -> softmax(probabilities + masks), 0 for blocked keys
void AttentionBackwardPass::softmax_block(const Block& block, const Work& work) const {
  for (std::size_t r = 0; r < block.rows; ++r) {
    float* const row = work.probabilities + r * ld_;
    const VisibleKeys& keys = block.keys[r];
    const std::size_t n = visible_count(block, r);
    if (uniform(keys)) {
      std::fill_n(row, n, 1 / static_cast<float>(S_));
    } else if (n > 0) {
      if (keys.bias != nullptr) kernel_.mask_row(row, keys.bias + block.start, row, n);
      kernel_.softmax_row(row, row, n);
      zero_blocked(block, r, row);  // for rows of NaN
    }
    std::fill_n(row + n, block.count - n, 0.0F);
  }
}

/// dV (S,Dv) += dropout(P)ᵀ dO; packs dO
void AttentionBackwardPass::d_values(const Block& block, const Work& work) const {
  kernels::pack(in_.grad.at(block.b, block.h, block.first), 1, in_.grad.row, Dv_, block.rows, kernel_.nr, work.grads);
  for (std::size_t r = 0; r < block.rows && work.weights != nullptr; ++r) {
    float* const weights = work.weights + r * ld_;
    std::copy_n(work.probabilities + r * ld_, block.count, weights);
    in_.dropout.apply(weights, visible_count(block, r), block.b, block.h, block.first + static_cast<std::int64_t>(r));
  }
  add_over_queries(block, work.weights != nullptr ? work.weights : work.probabilities, work.grads, Dv_, to_.value);
}

/// gradient (rows,count) of the scores before softcap
void AttentionBackwardPass::d_scores(const Block& block, const Work& work) const {
  const std::size_t panel_size = kernels::panel_size(kernel_.nr, Dv_);
  kernel_.gemm({.a = in_.grad.at(block.b, block.h, block.first),
                .lda = in_.grad.row,
                .panels = work.values + block.start / kernel_.nr * panel_size,
                .panel_stride = panel_size,
                .c = work.gradient,
                .ldc = static_cast<std::ptrdiff_t>(ld_),
                .m = block.rows,
                .n = block.count,
                .k = Dv_});
  const auto each_row = [&](const auto& change) {
    for (std::size_t r = 0; r < block.rows; ++r) change(r, work.gradient + r * ld_, visible_count(block, r));
  };
  each_row([&](std::size_t r, float* row, std::size_t n) {
    zero_blocked(block, r, row);  // even if the value is NaN
    std::fill_n(row + n, block.count - n, 0.0F);
  });
  store_weighted_values(block);
  store(block, TraceName::weights, work.gradient);
  if (in_.dropout.active())
    each_row(
        [&](std::size_t r, float* row, std::size_t n) { in_.dropout.apply(row, n, block.b, block.h, block.first + static_cast<std::int64_t>(r)); });
  store(block, TraceName::probabilities, work.gradient);
  each_row([&](std::size_t r, float* row, std::size_t n) {
    if (uniform(block.keys[r]))
      std::fill_n(row, n, 0.0F);  // its weights do not depend on scores
    else
      backward_.softmax_backward_row(row, work.probabilities + r * ld_, row, n);
    zero_blocked(block, r, row);
  });
  store(block, TraceName::masked_scores, work.gradient);
  store(block, TraceName::scores, work.gradient);
  if (biases_ != nullptr)
    each_row([&](std::size_t r, float* row, std::size_t n) {
      const std::int64_t distance = static_cast<std::int64_t>(block.start) - block.first - static_cast<std::int64_t>(r);
      float* const sums = biases_ + (block.b * spec_.num_heads + block.h) * in_.position_bias.row + in_.position_bias.row / 2 + distance;
      kernel_.add_row(sums, row, sums, n);
    });
  if (spec_.softcap > 0)
    each_row([&](std::size_t r, float* row, std::size_t n) {
      backward_.softcap_backward_row(work.capped + r * ld_, spec_.softcap, row, n);
      zero_blocked(block, r, row);
    });
}

/// by_query (rows,table) and by_key (S,table): sums of dS per table row
void AttentionBackwardPass::sum_by_position(const Block& block, const Work& work) const {
  std::fill_n(work.by_query, block.rows * table_, 0.0F);
  for (std::size_t r = 0; r < block.rows; ++r) {
    const std::int32_t* const rows = relative_->rows + (block.first + static_cast<std::int64_t>(r) - static_cast<std::int64_t>(block.start));
    const float* const gradient = work.gradient + r * ld_;
    for (std::size_t j = 0; j < visible_count(block, r); ++j) {
      const std::size_t row = static_cast<std::size_t>(*(rows - j)) - lowest_;
      work.by_query[r * table_ + row] += gradient[j];
      work.by_key[(block.start + j) * table_ + row] += gradient[j];
    }
  }
}

/// dQ (rows,D) = scale · (dS K + by_query · position keys)
void AttentionBackwardPass::d_queries(const Block& block, const Work& work) const {
  const bool more = relative_ != nullptr && relative_->keys != nullptr;
  kernels::Gemm<float> gemm{.a = work.gradient,
                            .lda = static_cast<std::ptrdiff_t>(ld_),
                            .panels = work.keys_by_width + block.start * kernel_.nr,
                            .panel_stride = kernels::panel_size(kernel_.nr, S_),
                            .c = to_.query.at(block.b, block.h, block.first),
                            .ldc = to_.query.row,
                            .m = block.rows,
                            .n = D_,
                            .k = block.count,
                            .alpha = more ? 1 : spec_.scale};
  // Adding 0 · key changes no bit, unless the key is infinite or NaN.
  if (work.finite_keys) kernel_.gemm(gemm);
  gemm.m = 1;
  for (std::size_t r = 0; r < block.rows && !work.finite_keys; ++r) {
    const VisibleKeys& keys = block.keys[r];
    gemm.a = work.gradient + r * ld_;
    gemm.c = to_.query.at(block.b, block.h, block.first + static_cast<std::int64_t>(r));
    gemm.k = uniform(keys) ? 0 : visible_count(block, r);
    gemm.blocked_terms = keys.bias != nullptr ? keys.bias + block.start : nullptr;
    kernel_.gemm(gemm);
  }
  if (more)
    kernel_.gemm({.a = work.by_query,
                  .lda = static_cast<std::ptrdiff_t>(table_),
                  .panels = work.position_keys,
                  .panel_stride = kernels::panel_size(kernel_.nr, table_),
                  .c = to_.query.at(block.b, block.h, block.first),
                  .ldc = to_.query.row,
                  .m = block.rows,
                  .n = D_,
                  .k = table_,
                  .alpha = spec_.scale,
                  .accumulate = true});
}

/// dK (S,D) += dSᵀ Q, table gradient (table,D) += by_queryᵀ Q
void AttentionBackwardPass::d_keys(const Block& block, const Work& work) const {
  kernels::pack(in_.query.at(block.b, block.h, block.first), 1, in_.query.row, D_, block.rows, kernel_.nr, work.queries);
  add_over_queries(block, work.gradient, work.queries, D_, to_.key);
  if (relative_ == nullptr || relative_->keys == nullptr) return;
  backward_.gemm_transposed({.a = work.by_query,
                             .lda = static_cast<std::ptrdiff_t>(table_),
                             .panels = work.queries,
                             .panel_stride = kernels::panel_size(kernel_.nr, block.rows),
                             .c = of_table(block.b, block.h, false),
                             .ldc = static_cast<std::ptrdiff_t>(D_),
                             .m = table_,
                             .n = D_,
                             .k = block.rows});
}

void AttentionBackwardPass::d_additive(const Block& block, const Work& work, float* score_weight) const {
  for (std::size_t r = 0; r < block.rows; ++r) {
    const std::int64_t i = block.first + static_cast<std::int64_t>(r), j = static_cast<std::int64_t>(block.start);
    float* const row = work.gradient + r * ld_;
    float* const query = to_.query.at(block.b, block.h, i);
    kernel_.scale_row(row, spec_.scale, row, block.count);
    std::fill_n(query, D_, 0.0F);
    std::fill_n(work.of_row, D_, 0.0F);
    backward_.additive_scores_backward_row(row, in_.query.at(block.b, block.h, i), in_.key.at(block.b, block.kv_head, j), in_.key.row,
                                           in_.score_weight, query, to_.key.at(block.b, block.kv_head, j), work.of_row, block.count, D_);
    if (block.nan[r]) std::fill_n(work.of_row, D_, kNaN);
    kernel_.add_row(score_weight, work.of_row, score_weight, D_);
  }
}

/// sums (S,width) += scoresᵀ · rows
void AttentionBackwardPass::add_over_queries(const Block& block, const float* scores, const float* panels_of_rows, std::size_t width,
                                             const Heads<float>& sums) const {
  kernels::GemmTransposed gemm{.a = scores,
                               .lda = static_cast<std::ptrdiff_t>(ld_),
                               .panels = panels_of_rows,
                               .panel_stride = kernels::panel_size(kernel_.nr, block.rows),
                               .c = sums.at(block.b, block.kv_head, static_cast<std::int64_t>(block.start)),
                               .ldc = sums.row,
                               .m = block.count,
                               .n = width,
                               .k = block.rows};
  if (!masks_.any() || kernel_.all_finite(panels_of_rows, 1, panels(width, block.rows))) return backward_.gemm_transposed(gemm);
  // An infinite or NaN row must reach only the keys that it sees.
  gemm.k = 1;
  for (std::size_t r = 0; r < block.rows; ++r) {
    const std::size_t n = visible_count(block, r);
    const float* const bias = uniform(block.keys[r]) || block.keys[r].bias == nullptr ? nullptr : block.keys[r].bias + block.start;
    gemm.panels = panels_of_rows + r * kernel_.nr;
    for (std::size_t j = 0, end = 0; j < n; j = end + 1) {
      for (end = j; end < n && (bias == nullptr || bias[end] != kBlocked);) ++end;
      gemm.a = scores + r * ld_ + j;
      gemm.c = sums.at(block.b, block.kv_head, static_cast<std::int64_t>(block.start + j));
      gemm.m = end - j;
      backward_.gemm_transposed(gemm);
    }
  }
}

/// 0 for keys that a query does not see, NaN for rows with NaN gradients.
void AttentionBackwardPass::store(const Block& block, TraceName name, const float* values) const {
  float* to = to_.trace[static_cast<std::size_t>(name)];
  if (to == nullptr) return;
  to += static_cast<std::size_t>((block.b * spec_.num_heads + block.h) * sizes_.L + block.first) * S_;
  for (std::size_t r = 0; r < block.rows; ++r, to += S_) {
    std::fill_n(to, S_, block.nan[r] ? kNaN : 0.0F);
    if (!block.nan[r]) std::copy_n(values + r * ld_, block.count, to + block.start);
  }
}

void AttentionBackwardPass::store_weighted_values(const Block& block) const {
  float* to = to_.trace[static_cast<std::size_t>(TraceName::weighted_values)];
  if (to == nullptr) return;
  to += static_cast<std::size_t>((block.b * spec_.num_heads + block.h) * sizes_.L + block.first) * S_ * Dv_;
  for (std::size_t r = 0; r < block.rows; ++r) {
    const VisibleKeys& keys = block.keys[r];
    const float* const grad = in_.grad.at(block.b, block.h, block.first + static_cast<std::int64_t>(r));
    for (std::size_t j = 0; j < S_; ++j, to += Dv_)
      if (uniform(keys) || (j < keys.end && (keys.bias == nullptr || keys.bias[j] != kBlocked)))
        std::copy_n(grad, Dv_, to);
      else
        std::fill_n(to, Dv_, block.nan[r] ? kNaN : 0.0F);
  }
}

}  // namespace attn::detail
