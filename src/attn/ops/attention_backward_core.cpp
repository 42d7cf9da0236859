#include "attn/ops/attention_backward_core.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "attn/kernels/backward.hpp"
#include "attn/kernels/kernels.hpp"
#include "attn/ops/mask_rows.hpp"
#include "attn/ops/relative_scores.hpp"
#include "attn/ops/row_sums.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/float_environment.hpp"

// Nothing of size (B,H,L,S) is kept from the forward: each block of query rows recomputes its probabilities (Dao 2023). A block covers all keys
// of its rows, so that the probabilities equal the forward's bit for bit and Σ P ∘ dP, which the gradient of softmax needs, is available:
//
//   P = softmax(masked scores), dP = dropout(dO Vᵀ), dS = P ∘ (dP - Σ P ∘ dP)
//   dQ = scale · dS K, dK += scale · dSᵀ Q, dV += dropout(P)ᵀ dO
//
// One task is one key head: sums over queries, and over the query heads that share it, are computed in a fixed order.
namespace attn::detail {
namespace {

/// Query rows per block: enough to amortise loading the sums that they are added to, few enough for scores and their gradients to stay in the L2
/// cache, except for very long rows.
constexpr std::size_t kMostRows = 96, kFewestRows = 24, kScores = std::size_t{1} << 15;
std::size_t rows_per_block(std::int64_t S) {
  const std::size_t rows = std::clamp(kScores / static_cast<std::size_t>(std::max<std::int64_t>(S, 1)), kFewestRows, kMostRows);
  return rows - rows % kernels::best().mr;
}

/// Returns the row stride of scores: an odd number of cache lines, so that accesses along columns do not alias in the L1 cache.
std::int64_t row_of_scores(std::int64_t S) {
  constexpr std::int64_t kLine = 16;
  return ((S + kLine - 1) / kLine | 1) * kLine;
}

/// Whether the gradient of a query that sees no key is NaN, given the gradient of its context: under the policy nan, unless that is 0.
bool gives_nan(const AttentionSpec& spec, const float* grad) {
  return spec.fully_masked == FullyMasked::nan && std::any_of(grad, grad + spec.value_head_dim, [](float value) { return value != 0; });
}

class Backward {
 public:
  Backward(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionBackwardInputs& inputs, const AttentionGradientHeads& to)
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

 private:
  /// Buffers of one worker.
  struct Work {
    float *keys, *keys_by_width, *values;  // panels: W of q Wᵀ, of dS Wᵀ and of dO Wᵀ
    float *queries, *grads;                // panels of a block's rows
    float *probabilities, *gradient;       // (block,ld), like the next two
    float* weights;                        // null without dropout
    float* capped;                         // null without softcap
    float* bias;                           // (block,S), masks
    float* of_row;                         // (D), gradient of score_weight from one row
    // For relative positions, null without; `table` counts the rows of their table that occur: dS summed per query (block,table) and per key
    // (S,table), panels of the table rows as W of those sums, and scratch of add_relative_scores.
    float *by_query, *by_key, *position_keys, *position_queries, *relative;
    bool finite_keys;
  };
  struct Block {
    std::int64_t b, h, kv_head, first;
    std::size_t rows, start, count;  // first key that any row sees, and the number of keys
    VisibleKeys keys[kMostRows];
    bool nan[kMostRows];  // rows with NaN gradients, see gives_nan()
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
  /// Number of keys of a row that have a weight, from the block's start on.
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
  const std::size_t block_, ld_;  // rows per block, and the row stride of its scores
  float* biases_ = nullptr;       // (B,H,row), gradients of position biases, if requested
  const RelativePositions* relative_ = in_.position_bias.relative;
  std::size_t lowest_ = 0, table_ = 0;  // the first row of the table that occurs, and the number of rows
  float* of_table_ = nullptr;           // (B,H,2,table,D): gradients of position keys and queries
};

Backward::Work Backward::work_of(Scratch& scratch) const {
  const std::size_t scores = block_ * ld_;
  return {.keys = additive() ? nullptr : scratch.take(panels(S_, D_)),
          .keys_by_width = additive() ? nullptr : scratch.take(panels(D_, S_)),
          .values = scratch.take(panels(S_, Dv_)),
          .queries = additive() ? nullptr : scratch.take(panels(D_, block_)),
          .grads = scratch.take(panels(Dv_, block_)),
          .probabilities = scratch.take(scores),
          .gradient = scratch.take(scores),
          .weights = in_.dropout.active() ? scratch.take(scores) : nullptr,
          .capped = spec_.softcap > 0 ? scratch.take(scores) : nullptr,
          .bias = masks_.need_buffer() ? scratch.take((masks_.same_for_all_queries() ? 1 : block_) * S_) : nullptr,
          .of_row = additive() ? scratch.take(D_) : nullptr,
          .by_query = relative_ != nullptr ? scratch.take(block_ * table_) : nullptr,
          .by_key = relative_ != nullptr ? scratch.take(S_ * table_) : nullptr,
          .position_keys = relative_ != nullptr ? scratch.take(panels(D_, table_)) : nullptr,
          .position_queries = relative_ != nullptr ? scratch.take(panels(D_, table_)) : nullptr,
          .relative = relative_ != nullptr ? scratch.take(relative_scores_size(block_, S_, kernel_.nr)) : nullptr,
          .finite_keys = true};
}

void Backward::run(Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const auto tasks = static_cast<std::size_t>(sizes_.B * spec_.num_key_value_heads);
  // Five products (two for additive attention); the work between them costs about as much as 64 multiply-adds per key.
  const double products = additive() ? 2 * static_cast<double>(Dv_) + 32 * static_cast<double>(D_) : static_cast<double>(3 * D_ + 2 * Dv_);
  const double cost =
      static_cast<double>(sizes_.B * spec_.num_heads) * static_cast<double>(sizes_.L) * static_cast<double>(sizes_.S) * (products + 64);
  const unsigned workers = parallel::workers_for(tasks, cost);
  if (relative_ != nullptr) {
    lowest_ = static_cast<std::size_t>(relative_->rows[1 - sizes_.S]);
    table_ = static_cast<std::size_t>(relative_->rows[sizes_.L - 1]) + 1 - lowest_;
    const std::size_t size = static_cast<std::size_t>(sizes_.B * spec_.num_heads * 2) * table_ * D_;
    of_table_ = scratch.take(size);
    std::fill_n(of_table_, size, 0.0F);
  }
  std::vector<Work> works;
  for (unsigned worker = 0; worker < workers; ++worker) works.push_back(work_of(scratch));
  float* const score_weights = additive() ? scratch.take(tasks * D_) : nullptr;
  const std::size_t row_of_bias = static_cast<std::size_t>(in_.position_bias.row), of_bias = static_cast<std::size_t>(spec_.num_heads) * row_of_bias;
  if (to_.position_bias != nullptr) {
    biases_ = scratch.take(static_cast<std::size_t>(sizes_.B) * of_bias);
    std::fill_n(biases_, static_cast<std::size_t>(sizes_.B) * of_bias, 0.0F);
  }
  parallel::run(tasks, workers, [&](std::size_t task, unsigned worker) noexcept {
    const auto index = static_cast<std::int64_t>(task);
    head(index / spec_.num_key_value_heads, index % spec_.num_key_value_heads, works[worker], additive() ? score_weights + task * D_ : nullptr);
  });
  if (additive())
    add_up_rows(
        tasks, D_, 0, [&](std::size_t task, float* sum) noexcept { kernel_.add_row(sum, score_weights + task * D_, sum, D_); }, to_.score_weight,
        scratch);
  if (relative_ != nullptr) add_up_tables();
  for (std::int64_t b = 0; b < sizes_.B && biases_ != nullptr; ++b)
    kernel_.add_row(to_.position_bias, biases_ + static_cast<std::size_t>(b) * of_bias, to_.position_bias, of_bias);
}

/// Adds the tables' gradients of each batch and head to the caller's (rows,H·D).
void Backward::add_up_tables() const {
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

/// Computes dK, dV and dQ of the query heads that share one key head.
void Backward::head(std::int64_t b, std::int64_t kv_head, Work& work, float* score_weight) const {
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

/// Packs the keys (S,D), their transpose, the values (S,Dv) and the table rows that occur.
void Backward::pack_head(std::int64_t b, std::int64_t kv_head, Work& work) const {
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

/// dK (S,D) = scale · (dK + by_key · position queries), and the table's gradient (table,D) += by_keyᵀ K.
void Backward::finish_keys(std::int64_t b, std::int64_t kv_head, const Work& work) const {
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

void Backward::block(Block& block, const Work& work, float* score_weight) const {
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

/// Finds the keys that each row sees and their range [start, start + count).
void Backward::visible_keys(Block& block, const Work& work) const {
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
  // Kernels sum in lanes: a start at a multiple of their number leaves the sums bit-identical. Dropout counts keys from 0.
  block.start = in_.dropout.active() ? 0 : std::min(block.start, filled) / kMostLanes * kMostLanes;
  block.count = filled - block.start;
}

/// probabilities (rows,count) = softcap(scale · Q Kᵀ + relative scores) + position bias, before masks.
void Backward::score_block(const Block& block, const Work& work) const {
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

/// probabilities (rows,count): scores -> softmax(scores + masks), 0 for blocked keys.
void Backward::softmax_block(const Block& block, const Work& work) const {
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

/// dV (S,Dv) += dropout(P)ᵀ dO; packs dO.
void Backward::d_values(const Block& block, const Work& work) const {
  kernels::pack(in_.grad.at(block.b, block.h, block.first), 1, in_.grad.row, Dv_, block.rows, kernel_.nr, work.grads);
  for (std::size_t r = 0; r < block.rows && work.weights != nullptr; ++r) {
    float* const weights = work.weights + r * ld_;
    std::copy_n(work.probabilities + r * ld_, block.count, weights);
    in_.dropout.apply(weights, visible_count(block, r), block.b, block.h, block.first + static_cast<std::int64_t>(r));
  }
  add_over_queries(block, work.weights != nullptr ? work.weights : work.probabilities, work.grads, Dv_, to_.value);
}

/// gradient (rows,count) = gradient of the scores before softcap: dropout(dO Vᵀ), then through softmax, masks, position bias and softcap.
void Backward::d_scores(const Block& block, const Work& work) const {
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

/// by_query (rows,table) and by_key (S,table): dS summed by row of the table of relative positions.
void Backward::sum_by_position(const Block& block, const Work& work) const {
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

/// dQ (rows,D) = scale · (dS K + by_query · position keys).
void Backward::d_queries(const Block& block, const Work& work) const {
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
  // As for values in the forward: adding 0 times a key changes no bit of a sum, unless the key is infinite or NaN.
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

/// dK (S,D) += dSᵀ Q, and the table's gradient (table,D) += by_queryᵀ Q.
void Backward::d_keys(const Block& block, const Work& work) const {
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

/// Computes dQ, dK and the gradient of score_weight (D) for additive scores.
void Backward::d_additive(const Block& block, const Work& work, float* score_weight) const {
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

/// sums (S,width) += scoresᵀ · rows, with rows packed as panels.
void Backward::add_over_queries(const Block& block, const float* scores, const float* panels_of_rows, std::size_t width,
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
  // An infinite or NaN row must reach only the keys that it sees. Adding one row at a time gives the same sums.
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

/// Writes the rows of a trace: 0 for keys that a query does not see, NaN for rows with NaN gradients.
void Backward::store(const Block& block, TraceName name, const float* values) const {
  float* to = to_.trace[static_cast<std::size_t>(name)];
  if (to == nullptr) return;
  to += static_cast<std::size_t>((block.b * spec_.num_heads + block.h) * sizes_.L + block.first) * S_;
  for (std::size_t r = 0; r < block.rows; ++r, to += S_) {
    std::fill_n(to, S_, block.nan[r] ? kNaN : 0.0F);
    if (!block.nan[r]) std::copy_n(values + r * ld_, block.count, to + block.start);
  }
}

void Backward::store_weighted_values(const Block& block) const {
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

}  // namespace

void add_backward_memory(const AttentionSpec& spec, const AttentionSizes& sizes, bool additive, MemoryEstimate& memory) {
  const std::int64_t S = sizes.S, D = spec.head_dim, Dv = spec.value_head_dim, threads = num_threads();
  if (sizes.B == 0 || spec.num_key_value_heads == 0 || S == 0) return;
  const auto nr = static_cast<std::int64_t>(kernels::best().nr), rows = static_cast<std::int64_t>(rows_per_block(S));
  memory.add("packed keys and values", {threads, S + nr, 2 * (D + nr) + Dv + 1});
  memory.add("packed queries and gradients", {threads, rows, D + Dv + 2 * nr});
  // Probabilities, gradients, weights, scores after softcap, and masks.
  memory.add("scores of some rows", {threads, 5 * rows, row_of_scores(S)});
  if (spec.relative_positions) {
    memory.add("sums by position", {threads, S + 2 * rows + 2 * (D + nr), 2 * S + rows + nr});
    memory.add("gradients of positions", {sizes.B, spec.num_heads, 4 * S, D});
  }
  if (additive) memory.add("gradients of score_weight", {sizes.B * spec.num_key_value_heads * 2 + threads + 1, D});
}

void attention_backward_core(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionBackwardInputs& inputs,
                             const AttentionGradientHeads& to, Scratch& scratch) {
  const FloatEnvironment environment;
  if (sizes.B > 0 && spec.num_key_value_heads > 0 && sizes.S > 0) return Backward(spec, sizes, inputs, to).run(scratch);
  // Without keys, every query is fully masked.
  const auto width = static_cast<std::size_t>(spec.head_dim);
  for (std::int64_t b = 0; b < sizes.B; ++b)
    for (std::int64_t h = 0; h < spec.num_heads; ++h)
      for (std::int64_t i = 0; i < sizes.L; ++i) std::fill_n(to.query.at(b, h, i), width, gives_nan(spec, inputs.grad.at(b, h, i)) ? kNaN : 0.0F);
  if (to.score_weight != nullptr) std::fill_n(to.score_weight, width, 0.0F);
}

}  // namespace attn::detail
