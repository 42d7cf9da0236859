#include "attn/ops/attention_backward_core.hpp"

#include <algorithm>
#include <vector>

#include "attn/ops/attention_backward_pass.hpp"
#include "attn/ops/relative_scores.hpp"
#include "attn/ops/row_sums.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {

std::size_t AttentionBackwardPass::rows_per_block(std::int64_t S) {
  // Enough rows to amortise loading the sums, few enough for scores and gradients to stay in the L2 cache.
  constexpr std::size_t kFewestRows = 24, kScores = std::size_t{1} << 15;
  const std::size_t rows = std::clamp(kScores / static_cast<std::size_t>(std::max<std::int64_t>(S, 1)), kFewestRows, kMostRows);
  return rows - rows % kernels::best().mr;
}

std::int64_t AttentionBackwardPass::row_of_scores(std::int64_t S) {
  constexpr std::int64_t kLine = 16;
  return ((S + kLine - 1) / kLine | 1) * kLine;
}

bool AttentionBackwardPass::gives_nan(const AttentionSpec& spec, const float* grad) {
  return spec.fully_masked == FullyMasked::nan && std::any_of(grad, grad + spec.value_head_dim, [](float value) { return value != 0; });
}

AttentionBackwardPass::Work AttentionBackwardPass::work_of(Scratch& scratch) const {
  const auto take_scores = [&] { return scratch.take(block_, ld_); };
  return {.keys = additive() ? nullptr : scratch.take(panels(S_, D_)),
          .keys_by_width = additive() ? nullptr : scratch.take(panels(D_, S_)),
          .values = scratch.take(panels(S_, Dv_)),
          .queries = additive() ? nullptr : scratch.take(panels(D_, block_)),
          .grads = scratch.take(panels(Dv_, block_)),
          .probabilities = take_scores(),
          .gradient = take_scores(),
          .weights = in_.dropout.active() ? take_scores() : nullptr,
          .capped = spec_.softcap > 0 ? take_scores() : nullptr,
          .bias = masks_.need_buffer() ? scratch.take(masks_.same_for_all_queries() ? 1 : block_, S_) : nullptr,
          .of_row = additive() ? scratch.take(D_) : nullptr,
          .by_query = relative_ != nullptr ? scratch.take(block_, table_) : nullptr,
          .by_key = relative_ != nullptr ? scratch.take(S_, table_) : nullptr,
          .position_keys = relative_ != nullptr ? scratch.take(panels(D_, table_)) : nullptr,
          .position_queries = relative_ != nullptr ? scratch.take(panels(D_, table_)) : nullptr,
          .relative = relative_ != nullptr ? scratch.take(relative_scores_size(block_, S_, kernel_.nr)) : nullptr,
          .finite_keys = true};
}

void AttentionBackwardPass::run(Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const auto tasks = static_cast<std::size_t>(sizes_.B * spec_.num_key_value_heads);
  // Five products (two if additive); the rest costs about 64 multiply-adds per key.
  const double products = additive() ? 2 * static_cast<double>(Dv_) + 32 * static_cast<double>(D_) : static_cast<double>(3 * D_ + 2 * Dv_);
  const double cost =
      static_cast<double>(sizes_.B * spec_.num_heads) * static_cast<double>(sizes_.L) * static_cast<double>(sizes_.S) * (products + 64);
  const unsigned workers = parallel::workers_for(tasks, cost);
  if (relative_ != nullptr) {
    lowest_ = static_cast<std::size_t>(relative_->rows[1 - sizes_.S]);
    table_ = static_cast<std::size_t>(relative_->rows[sizes_.L - 1]) + 1 - lowest_;
    const std::size_t tables = static_cast<std::size_t>(sizes_.B * spec_.num_heads * 2), size = table_ * D_;
    of_table_ = scratch.take(tables, size);
    fill_zeros(of_table_, tables * size);
  }
  std::vector<Work> works;
  for (unsigned worker = 0; worker < workers; ++worker) works.push_back(work_of(scratch));
  float* const score_weights = additive() ? scratch.take(tasks, D_) : nullptr;
  const std::size_t row_of_bias = static_cast<std::size_t>(in_.position_bias.row), of_bias = static_cast<std::size_t>(spec_.num_heads) * row_of_bias;
  if (to_.position_bias != nullptr) {
    biases_ = scratch.take(static_cast<std::size_t>(sizes_.B), of_bias);
    fill_zeros(biases_, static_cast<std::size_t>(sizes_.B) * of_bias);
  }
  parallel::run(tasks, workers, [&](std::size_t task, unsigned worker) noexcept {
    const auto index = static_cast<std::int64_t>(task);
    head(index / spec_.num_key_value_heads, index % spec_.num_key_value_heads, works[worker], additive() ? score_weights + task * D_ : nullptr);
  });
  if (additive())
    add_up_rows(
        tasks, D_, 0, [&](std::size_t task, float* sum) noexcept { kernel_.add_row(sum, score_weights + task * D_, sum, D_); }, to_.score_weight,
        scratch);
  if (counts()) return;
  if (relative_ != nullptr) add_up_tables();
  for (std::int64_t b = 0; b < sizes_.B && biases_ != nullptr; ++b)
    kernel_.add_row(to_.position_bias, biases_ + static_cast<std::size_t>(b) * of_bias, to_.position_bias, of_bias);
}

/// Adds to the caller's gradients (rows,H·D).
void AttentionBackwardPass::add_up_tables() const {
  for (std::int64_t b = 0; b < sizes_.B; ++b)
    for (std::int64_t h = 0; h < spec_.num_heads; ++h)
      for (const bool of_queries : {false, true}) {
        float* const to = of_queries ? to_.relative_queries : to_.relative_keys;
        for (std::size_t row = 0; row < table_ && to != nullptr; ++row) {
          float* const from = of_table(b, h, of_queries) + row * D_;
          float* const sum = to + (lowest_ + row) * static_cast<std::size_t>(relative_->width) + static_cast<std::size_t>(h) * D_;
          kernel_.scale_row(from, spec_.scale, from, D_);
          kernel_.add_row(sum, from, sum, D_);
        }
      }
}

void AttentionBackwardPass::head(std::int64_t b, std::int64_t kv_head, Work& work, float* score_weight) const {
  pack_head(b, kv_head, work);
  if (additive()) std::fill_n(score_weight, D_, 0.0F);
  for (std::int64_t j = 0; j < sizes_.S; ++j) {
    std::fill_n(to_.key.at(b, kv_head, j), D_, 0.0F);
    std::fill_n(to_.value.at(b, kv_head, j), Dv_, 0.0F);
  }
  const std::int64_t heads = spec_.num_heads / spec_.num_key_value_heads;
  for (std::int64_t h = kv_head * heads; h < (kv_head + 1) * heads; ++h)
    for (std::int64_t first = 0; first < sizes_.L; first += static_cast<std::int64_t>(block_)) {
      Block rows{.b = b,
                 .h = h,
                 .kv_head = kv_head,
                 .first = first,
                 .rows = static_cast<std::size_t>(std::min(sizes_.L - first, static_cast<std::int64_t>(block_))),
                 .start = S_,
                 .count = 0,
                 .keys = {},
                 .nan = {}};
      block(rows, work, score_weight);
    }
  if (!additive()) finish_keys(b, kv_head, work);  // additive scores are already scaled
}

void AttentionBackwardPass::pack_head(std::int64_t b, std::int64_t kv_head, Work& work) const {
  if (!additive()) {
    const float* const keys = in_.key.at(b, kv_head, 0);
    kernels::pack(keys, in_.key.row, 1, S_, D_, kernel_.nr, work.keys);
    kernels::pack(keys, 1, in_.key.row, D_, S_, kernel_.nr, work.keys_by_width);
    work.finite_keys = !masks_.any() || kernel_.all_finite(work.keys_by_width, 1, panels(D_, S_));
  }
  kernels::pack(in_.value.at(b, kv_head, 0), in_.value.row, 1, S_, Dv_, kernel_.nr, work.values);
  if (relative_ == nullptr) return;
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(relative_->width);
  const std::size_t first = lowest_ * static_cast<std::size_t>(relative_->width) + static_cast<std::size_t>(kv_head) * D_;
  if (relative_->keys != nullptr) kernels::pack(relative_->keys + first, 1, row, D_, table_, kernel_.nr, work.position_keys);
  if (relative_->queries != nullptr) kernels::pack(relative_->queries + first, 1, row, D_, table_, kernel_.nr, work.position_queries);
  std::fill_n(work.by_key, S_ * table_, 0.0F);
}

/// dK (S,D) = scale · (dK + by_key · position queries), table gradient (table,D) += by_keyᵀ K
void AttentionBackwardPass::finish_keys(std::int64_t b, std::int64_t kv_head, const Work& work) const {
  if (relative_ != nullptr && relative_->queries != nullptr) {
    kernel_.gemm({.a = work.by_key,
                  .lda = static_cast<std::ptrdiff_t>(table_),
                  .panels = work.position_queries,
                  .panel_stride = kernels::panel_size(kernel_.nr, table_),
                  .c = to_.key.at(b, kv_head, 0),
                  .ldc = to_.key.row,
                  .m = S_,
                  .n = D_,
                  .k = table_,
                  .accumulate = true});
    backward_.gemm_transposed({.a = work.by_key,
                               .lda = static_cast<std::ptrdiff_t>(table_),
                               .panels = work.keys_by_width,
                               .panel_stride = kernels::panel_size(kernel_.nr, S_),
                               .c = of_table(b, kv_head, true),
                               .ldc = static_cast<std::ptrdiff_t>(D_),
                               .m = table_,
                               .n = D_,
                               .k = S_});
  }
  for (std::int64_t j = 0; j < sizes_.S; ++j) {
    float* const row = to_.key.at(b, kv_head, j);
    kernel_.scale_row(row, spec_.scale, row, D_);
  }
}

void attention_backward_core(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionBackwardInputs& inputs,
                             const AttentionGradientHeads& to, Scratch& scratch) {
  const FloatEnvironment environment;
  if (sizes.B > 0 && spec.num_key_value_heads > 0 && sizes.S > 0) return AttentionBackwardPass(spec, sizes, inputs, to).run(scratch);
  if (counts()) return;
  // Every query is fully masked.
  const auto width = static_cast<std::size_t>(spec.head_dim);
  for (std::int64_t b = 0; b < sizes.B; ++b)
    for (std::int64_t h = 0; h < spec.num_heads; ++h)
      for (std::int64_t i = 0; i < sizes.L; ++i)
        std::fill_n(to.query.at(b, h, i), width, AttentionBackwardPass::gives_nan(spec, inputs.grad.at(b, h, i)) ? kNaN : 0.0F);
  if (to.score_weight != nullptr) std::fill_n(to.score_weight, width, 0.0F);
}

}  // namespace attn::detail
