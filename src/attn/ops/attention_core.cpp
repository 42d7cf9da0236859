#include "attn/ops/attention_core.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn/kernels/kernels.hpp"
#include "attn/ops/elementary.hpp"
#include "attn/ops/mask_rows.hpp"
#include "attn/ops/relative_scores.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

/// Several tiles share each panel of keys or values, and their scores stay in the L2 cache.
constexpr std::size_t kMaxRows = 24;
std::size_t rows_per_task() { return kMaxRows - kMaxRows % kernels::best().mr; }

/// Keys per block, unless scores are traced: bounds score memory (Milakov & Gimelshein 2018). Up to here both ways give
/// the same bits.
constexpr std::size_t kKeyBlock = 1024;

/// Scales a head's values until the division by Σ p if one is 2⁹⁶ or more, so that Σ p · v cannot overflow. A power of
/// two changes no bits except of numbers that become denormal.
constexpr float kSmaller = 1 / kSumFactor;

/// log_of, because C libraries differ in the last bits. A sum is 0, NaN or at least 1.
float log_of_sum(float sum) { return sum == 0 ? kBlocked : sum < std::numeric_limits<float>::infinity() ? static_cast<float>(log_of(sum)) : sum; }

class Core {
 public:
  Core(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionInputs& inputs, const AttentionBuffers& buffers)
      : spec_(spec),
        sizes_(sizes),
        in_(inputs),
        out_(buffers),
        kernel_(kernels::best(spec.reproducible)),
        masks_(spec, sizes),
        S_(static_cast<std::size_t>(sizes.S)),
        D_(static_cast<std::size_t>(spec.head_dim)),
        Dv_(static_cast<std::size_t>(spec.value_head_dim)),
        rows_are_heads_(sizes.L == 1 && spec.num_key_value_heads < spec.num_heads && inputs.score_weight == nullptr &&
                        inputs.position_bias.relative == nullptr),
        key_block_(shows_keys() || inputs.dropout.active() ? S_ : std::min(S_, kKeyBlock)),
        keys_{nullptr, S_, inputs.score_weight != nullptr ? 0 : D_},
        values_{nullptr, S_, Dv_} {}

  void run(Scratch& scratch);

 private:
  struct Row {
    VisibleKeys keys;
    float most = kBlocked;
    float sum = 0;  // Σ exp(score - most)
  };

  /// Query rows [first, first + rows) of head h, or with rows_are_heads_ one query of heads [h, h + rows).
  struct Block {
    std::int64_t b, h, kv_head, first;
    std::size_t rows;
    std::size_t kv;
    std::int64_t index;  // of the first row in (B,H,L)
    std::size_t start = 0, end = 0;
    float* scores;           // (rows,key_block_), then exp(score - most)
    float *bias, *relative;  // masks (rows,S), or one row for all; scratch
    Row row[kMaxRows];
  };

  void pack(std::size_t index) const;
  void check_values(std::size_t index) const;
  PackedValues scaled_values(std::size_t heads, Scratch& scratch) const;
  void attend(Block& block) const;
  void visible_keys(Block& block) const;
  void score_block(const Block& block, std::size_t key, std::size_t count) const;
  void softmax_block(Block& block, std::size_t key, std::size_t count) const;
  void accumulate(const Block& block, std::size_t key, std::size_t count) const;
  void finish(const Block& block) const;

  void multiply_keys(const Block& block, std::size_t key, std::size_t count) const;
  void add_relative(const Block& block, std::size_t key, std::size_t count) const;
  void cap(float* scores, std::size_t count) const;
  void exponentiate(Row& row, std::size_t key, std::size_t count, bool goes_on, float* scores, float* context) const;
  void store(const Row& row, std::int64_t index, TraceName name, float* target, const float* terms) const;
  void store_weighted_values(const Block& block, std::size_t r) const;
  float* scores_of(const Block& block, std::size_t r) const { return block.scores + r * key_block_; }
  std::int64_t head_of(const Block& block, std::size_t r) const { return block.h + (rows_are_heads_ ? static_cast<std::int64_t>(r) : 0); }
  std::int64_t query_of(const Block& block, std::size_t r) const { return block.first + (rows_are_heads_ ? 0 : static_cast<std::int64_t>(r)); }
  template <class T>
  std::ptrdiff_t row_stride(const Heads<T>& heads) const {
    return rows_are_heads_ ? heads.head : heads.row;
  }
  float* context_of(const Block& block, std::size_t r) const { return in_.context.at(block.b, head_of(block, r), query_of(block, r)); }
  bool same_keys_for_all_rows() const { return masks_.same_for_all_queries() && !rows_are_heads_; }

  float* trace(TraceName name) const { return out_.of(name); }
  float* trace_row(TraceName name, std::int64_t index, std::size_t width) const {
    return trace(name) != nullptr ? trace(name) + static_cast<std::size_t>(index) * width : nullptr;
  }
  bool shows_keys() const {
    bool any = out_.weights != nullptr;
    for (const TraceName name : {TraceName::c2c, TraceName::c2p, TraceName::p2c, TraceName::scores, TraceName::masked_scores,
                                 TraceName::probabilities, TraceName::weights, TraceName::weighted_values})
      any = any || trace(name) != nullptr;
    return any;
  }
  bool shows_scores() const {
    return trace(TraceName::scores) != nullptr || trace(TraceName::c2c) != nullptr || trace(TraceName::c2p) != nullptr ||
           trace(TraceName::p2c) != nullptr;
  }
  bool uniform(const VisibleKeys& keys) const { return keys.end == 0 && spec_.fully_masked == FullyMasked::uniform; }
  /// Includes blocked keys before the end.
  std::size_t visible_count(const VisibleKeys& keys) const { return uniform(keys) ? S_ : keys.end; }

  const AttentionSpec& spec_;
  const AttentionSizes& sizes_;
  const AttentionInputs& in_;
  const AttentionBuffers& out_;
  const kernels::KernelTable& kernel_;
  const MaskRows masks_;
  const std::size_t S_, D_, Dv_;
  const bool rows_are_heads_;  // a block has query heads with the same keys, which are read once
  const std::size_t key_block_;
  PackedKeys keys_;
  PackedValues values_, summed_;    // summed_ = values_ · value_scales_
  float* finite_values_ = nullptr;  // per (batch, key head): 0 if keys are masked and a value is not finite, else 1
  float* value_scales_ = nullptr;
};

void Core::run(Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const auto kv_heads = static_cast<std::size_t>(sizes_.B * spec_.num_key_value_heads);
  if (in_.packed != nullptr) {
    keys_ = in_.packed->keys;
    values_ = in_.packed->values;
  } else {
    keys_.data = scratch.take(kv_heads, keys_.size());
    values_.data = scratch.take(kv_heads, values_.size());
  }
  finite_values_ = scratch.take(kv_heads);
  value_scales_ = scratch.take(kv_heads);

  // Softmax costs about as much as 16 multiply-adds per key, as does each tanh.
  const double cost = static_cast<double>(sizes_.B * spec_.num_heads) * static_cast<double>(sizes_.L) * static_cast<double>(sizes_.S) *
                      static_cast<double>(spec_.head_dim * (in_.score_weight != nullptr ? 16 : 1) + spec_.value_head_dim + 16);
  const auto all_heads = static_cast<std::size_t>(sizes_.B * spec_.num_heads), group = all_heads / kv_heads;
  const std::size_t rows = rows_are_heads_ ? group : static_cast<std::size_t>(sizes_.L);  // that blocks divide
  const std::size_t most_rows = rows_are_heads_ ? all_heads / parallel::workers_for(all_heads, cost) : rows_per_task();
  const std::size_t row_block = std::min(most_rows, rows_per_task()), blocks = (rows + row_block - 1) / row_block;
  const std::size_t tasks = (rows_are_heads_ ? kv_heads : all_heads) * blocks;
  const unsigned workers = parallel::workers_for(tasks, cost);
  const std::size_t bias_rows = !masks_.need_buffer() ? 0 : same_keys_for_all_rows() ? 1 : row_block;
  const std::size_t relative_size = in_.position_bias.relative != nullptr ? relative_scores_size(row_block, key_block_, kernel_.nr) : 0;
  const std::uint64_t task_size = std::uint64_t{row_block} * key_block_ + std::uint64_t{bias_rows} * S_ + relative_size;
  float* const task_scratch = scratch.take(workers, task_size);

  const auto packers = static_cast<unsigned>(std::min<std::size_t>(kv_heads, in_.packed != nullptr ? 1 : std::min(workers, 1U << 16)));
  parallel::run(kv_heads, packers, [&](std::size_t index, unsigned) noexcept {
    if (in_.packed == nullptr) pack(index);
    check_values(index);
  });
  summed_ = scaled_values(kv_heads, scratch);
  parallel::run(tasks, workers, [&](std::size_t task, unsigned worker) noexcept {
    const std::size_t first = task % blocks * row_block;
    const auto head = static_cast<std::int64_t>(rows_are_heads_ ? task / blocks * group + first : task / blocks);
    const auto query = static_cast<std::int64_t>(rows_are_heads_ ? 0 : first);
    const std::int64_t b = head / spec_.num_heads, h = head % spec_.num_heads, kv_head = h / static_cast<std::int64_t>(group);
    float* const scores = task_scratch + worker * task_size;
    float* const bias = scores + row_block * key_block_;
    Block block{.b = b,
                .h = h,
                .kv_head = kv_head,
                .first = query,
                .rows = std::min(rows - first, row_block),
                .kv = static_cast<std::size_t>(b * spec_.num_key_value_heads + kv_head),
                .index = head * sizes_.L + query,
                .scores = scores,
                .bias = bias,
                .relative = bias + bias_rows * S_,
                .row = {}};
    attend(block);
  });
}

void Core::pack(std::size_t index) const {
  const auto kv = static_cast<std::int64_t>(index);
  const std::int64_t b = kv / spec_.num_key_value_heads, h = kv % spec_.num_key_value_heads;
  keys_.set(index, 0, S_, in_.key.at(b, h, 0), in_.key.row);
  values_.set(index, 0, S_, in_.value.at(b, h, 0), in_.value.row);
}

void Core::check_values(std::size_t index) const {
  finite_values_[index] = value_scales_[index] = 1;
  if ((in_.packed != nullptr && in_.packed->summable[index] >= sizes_.S) || values_.all_finite(index, 0, S_, kSumFactor)) return;
  if (masks_.any() && !values_.all_finite(index, 0, S_, 1)) finite_values_[index] = 0;
  const auto is_large = [](float value) { return std::isfinite(value) && !std::isfinite(value * kSumFactor); };
  for (std::size_t panel = 0; panel < values_.panels(); ++panel) {
    const float* const numbers = values_.at(index, 0, panel);
    if (std::any_of(numbers, numbers + S_ * kernel_.nr, is_large)) value_scales_[index] = kSmaller;
  }
}

/// In place, unless the values are needed afterwards. Takes memory whether or not the values turn out to need it.
PackedValues Core::scaled_values(std::size_t heads, Scratch& scratch) const {
  PackedValues scaled{values_.data, S_, Dv_};
  if (in_.packed != nullptr || trace(TraceName::weighted_values) != nullptr) scaled.data = scratch.take(heads, scaled.size());
  if (counts() || std::all_of(value_scales_, value_scales_ + heads, [](float scale) { return scale == 1; })) return values_;
  for (std::size_t head = 0; head < heads; ++head)
    for (std::size_t panel = 0; panel < values_.panels(); ++panel)
      kernel_.scale_row(values_.at(head, 0, panel), value_scales_[head], scaled.at(head, 0, panel), S_ * kernel_.nr);
  return scaled;
}

/// context (rows,Dv) = softmax(scores) V, one block of keys at a time.
void Core::attend(Block& block) const {
  visible_keys(block);
  std::size_t key = block.start;
  do {
    const std::size_t count = std::min(block.end - key, key_block_ - key % key_block_);  // boundaries do not depend on the start
    score_block(block, key, count);
    softmax_block(block, key, count);
    accumulate(block, key, count);
    key += count;
  } while (key < block.end);
  finish(block);
}

/// Sets context (rows,Dv) to 0 if key 0 is outside [start, end).
void Core::visible_keys(Block& block) const {
  block.start = S_;
  for (std::size_t r = 0; r < block.rows; ++r) {
    VisibleKeys& keys = block.row[r].keys;
    keys = r > 0 && same_keys_for_all_rows() ? block.row[0].keys : masks_.row(block.b, head_of(block, r), query_of(block, r), block.bias + r * S_);
    block.end = std::max(block.end, visible_count(keys));
    block.start = std::min(block.start, uniform(keys) ? 0 : keys.first);
  }
  // Kernels sum in lanes: a start at a multiple of them changes no bit.
  block.start = shows_keys() || in_.dropout.active() ? 0 : block.start / kMostLanes * kMostLanes;
  for (std::size_t r = 0; r < block.rows && block.start > 0; ++r) std::fill_n(context_of(block, r), Dv_, 0.0F);
}

/// scores (rows,count) = softcap(scale · Q Kᵀ + relative scores) + position bias, then masks; all S keys if traced
void Core::score_block(const Block& block, std::size_t key, std::size_t count) const {
  const std::size_t scored = shows_scores() ? S_ : count;
  multiply_keys(block, key, scored);
  if (in_.position_bias.relative != nullptr) add_relative(block, key, scored);
  for (std::size_t r = 0; r < block.rows; ++r) {
    float* const scores = scores_of(block, r);
    const VisibleKeys& keys = block.row[r].keys;
    const std::int64_t i = block.index + static_cast<std::int64_t>(r);
    if (spec_.softcap > 0) cap(scores, scored);
    if (in_.position_bias.data != nullptr) {
      const std::int64_t distance = static_cast<std::int64_t>(key) - query_of(block, r);
      kernel_.add_row(scores, in_.position_bias.data + head_of(block, r) * in_.position_bias.row + distance, scores, scored);
    }
    if (float* to = trace_row(TraceName::scores, i, S_)) std::copy_n(scores, S_, to);
    if (keys.bias != nullptr && key < keys.end) kernel_.mask_row(scores, keys.bias + key, scores, std::min(count, keys.end - key));
    if (float* to = trace_row(TraceName::masked_scores, i, S_)) std::fill_n(std::copy_n(scores, keys.end, to), S_ - keys.end, kBlocked);
  }
}

/// scores (rows,count) -> dropout(exp(score - most))
void Core::softmax_block(Block& block, std::size_t key, std::size_t count) const {
  for (std::size_t r = 0; r < block.rows; ++r) {
    Row& row = block.row[r];
    float* const terms = scores_of(block, r);
    const std::int64_t i = block.index + static_cast<std::int64_t>(r);
    exponentiate(row, key, count, key > block.start, terms, context_of(block, r));
    store(row, i, TraceName::probabilities, nullptr, terms);
    if (in_.dropout.active()) in_.dropout.apply(terms, visible_count(row.keys), block.b, head_of(block, r), query_of(block, r));
    store(row, i, TraceName::weights, out_.weights, terms);
  }
}

/// context (rows,Dv) += terms (rows,count) · V (count,Dv); overwrites context if key is 0
void Core::accumulate(const Block& block, std::size_t key, std::size_t count) const {
  for (std::size_t r = 0; r < block.rows; ++r) store_weighted_values(block, r);
  kernels::Gemm<float> gemm{.a = block.scores,
                            .lda = static_cast<std::ptrdiff_t>(key_block_),
                            .panels = summed_.at(block.kv, key),
                            .panel_stride = summed_.panel_size(),
                            .c = context_of(block, 0),
                            .ldc = row_stride(in_.context),
                            .m = block.rows,
                            .n = Dv_,
                            .k = count,
                            .accumulate = key > 0};
  // A blocked key's weight is 0, and adding 0 · v changes no bit of a sum that begins with +0, unless v is infinite or
  // NaN.
  if (finite_values_[block.kv] != 0) return kernel_.gemm(gemm);
  gemm.m = 1;
  for (std::size_t r = 0; r < block.rows; ++r) {
    const VisibleKeys& keys = block.row[r].keys;
    const std::size_t total = visible_count(keys);
    gemm.a = scores_of(block, r);
    gemm.c = context_of(block, r);
    gemm.k = total > key ? std::min(count, total - key) : 0;
    gemm.blocked_terms = keys.bias != nullptr ? keys.bias + key : nullptr;
    kernel_.gemm(gemm);
  }
}

/// context (rows,Dv) /= Σ exp(score - most), or the fully masked result
void Core::finish(const Block& block) const {
  for (std::size_t r = 0; r < block.rows; ++r) {
    const Row& row = block.row[r];
    float* const context = context_of(block, r);
    if (out_.log_sum_exp != nullptr)
      out_.log_sum_exp[static_cast<std::size_t>(block.index) + r] = (uniform(row.keys) ? 0 : row.most) + log_of_sum(row.sum);
    if (visible_count(row.keys) > 0)
      kernel_.scale_row(context, 1 / row.sum / value_scales_[block.kv], context, Dv_);
    else
      std::fill_n(context, Dv_, spec_.fully_masked == FullyMasked::nan ? kNaN : 0.0F);
  }
}

void Core::multiply_keys(const Block& block, std::size_t key, std::size_t count) const {
  if (in_.score_weight != nullptr) {
    for (std::size_t r = 0; r < block.rows; ++r)
      kernel_.additive_scores_row(in_.query.at(block.b, block.h, block.first + static_cast<std::int64_t>(r)),
                                  in_.key.at(block.b, block.kv_head, static_cast<std::int64_t>(key)), in_.key.row, in_.score_weight,
                                  scores_of(block, r), count, D_, spec_.scale);
    return;
  }
  kernel_.gemm({.a = in_.query.at(block.b, block.h, block.first),
                .lda = row_stride(in_.query),
                .panels = keys_.at(block.kv, key),
                .panel_stride = keys_.panel_size(),
                .c = block.scores,
                .ldc = static_cast<std::ptrdiff_t>(key_block_),
                .m = block.rows,
                .n = count,
                .k = D_,
                .alpha = spec_.scale});
}

void Core::add_relative(const Block& block, std::size_t key, std::size_t count) const {
  add_relative_scores(kernel_, *in_.position_bias.relative,
                      {.query = in_.query.at(block.b, block.h, block.first),
                       .query_row = in_.query.row,
                       .key_panels = keys_.at(block.kv, key),
                       .h = block.h,
                       .first = block.first,
                       .rows = block.rows,
                       .key = key,
                       .count = count,
                       .D = D_,
                       .scale = spec_.scale,
                       .scores = block.scores,
                       .ld = key_block_,
                       .scratch = block.relative,
                       .c2c = trace_row(TraceName::c2c, block.index, S_),
                       .c2p = trace_row(TraceName::c2p, block.index, S_),
                       .p2c = trace_row(TraceName::p2c, block.index, S_),
                       .trace_row = S_});
}

void Core::cap(float* scores, std::size_t count) const {
  kernel_.scale_row(scores, 1 / spec_.softcap, scores, count);
  kernel_.activation_row(kernels::Activation::tanh, scores, scores, count);
  kernel_.scale_row(scores, spec_.softcap, scores, count);
}

/// scores -> exp(score - most), 0 past the row's last key. If `most` grows, rescales the sum and context so far.
void Core::exponentiate(Row& row, std::size_t key, std::size_t count, bool goes_on, float* scores, float* context) const {
  const std::size_t total = visible_count(row.keys), n = total > key ? std::min(count, total - key) : 0;
  if (n > 0 && uniform(row.keys)) {
    std::fill_n(scores, n, 1.0F);
    row.sum += static_cast<float>(n);
  } else if (n > 0) {
    const float most = kernel_.max_row(scores, n);
    if (most > row.most) {
      if (goes_on) {
        float factor = 0;
        kernel_.exp_row(&row.most, most, &factor, 1);
        kernel_.scale_row(context, factor, context, Dv_);
        row.sum *= factor;
      }
      row.most = most;
    }
    // No finite score yet: -infinity -> 0 and NaN -> NaN.
    const bool none = row.most == kBlocked && key + n < total;
    row.sum += kernel_.exp_row(scores, none ? 0.0F : row.most, scores, n);
  }
  if (n < count) std::fill_n(scores + n, count - n, 0.0F);
}

/// terms / sum; needs the terms of all keys
void Core::store(const Row& row, std::int64_t index, TraceName name, float* target, const float* terms) const {
  const std::size_t n = visible_count(row.keys);
  const float rest = n == 0 && spec_.fully_masked == FullyMasked::nan ? kNaN : 0.0F;
  for (float* const to : {trace_row(name, index, S_), target != nullptr ? target + static_cast<std::size_t>(index) * S_ : nullptr}) {
    if (to == nullptr) continue;
    if (n > 0) kernel_.scale_row(terms, 1 / row.sum, to, n);
    std::fill_n(to + n, S_ - n, rest);
  }
}

void Core::store_weighted_values(const Block& block, std::size_t r) const {
  float* to = trace_row(TraceName::weighted_values, block.index + static_cast<std::int64_t>(r), S_ * Dv_);
  if (to == nullptr) return;
  const Row& row = block.row[r];
  const VisibleKeys& keys = row.keys;
  const bool nan = keys.end == 0 && spec_.fully_masked == FullyMasked::nan;
  for (std::size_t j = 0; j < S_; ++j, to += Dv_) {
    const bool counts = uniform(keys) || (j < keys.end && (keys.bias == nullptr || keys.bias[j] != kBlocked));
    if (counts)
      values_.scale(block.kv, j, scores_of(block, r)[j] * (1 / row.sum), to);
    else
      std::fill_n(to, Dv_, nan ? kNaN : 0.0F);
  }
}

/// Every query is fully masked, and uniform has no keys to average.
void fill_without_keys(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionInputs& inputs) {
  if (counts()) return;
  const float value = spec.fully_masked == FullyMasked::nan ? kNaN : 0.0F;
  for (std::int64_t b = 0; b < sizes.B; ++b)
    for (std::int64_t h = 0; h < spec.num_heads; ++h)
      for (std::int64_t i = 0; i < sizes.L; ++i) std::fill_n(inputs.context.at(b, h, i), static_cast<std::size_t>(spec.value_head_dim), value);
}

void average_heads(const AttentionSpec& spec, const AttentionSizes& sizes, const float* weights, float* average) {
  const kernels::KernelTable& kernel = kernels::best();
  const auto L = static_cast<std::size_t>(sizes.L), S = static_cast<std::size_t>(sizes.S), heads = static_cast<std::size_t>(spec.num_heads);
  const std::size_t rows = static_cast<std::size_t>(sizes.B) * L;
  parallel::run(rows, parallel::workers_for(rows, static_cast<double>(rows * S * (heads + 1))), [&](std::size_t row, unsigned) noexcept {
    const std::size_t b = row / L, i = row % L;
    float* const sum = average + row * S;
    std::fill_n(sum, S, 0.0F);
    for (std::size_t h = 0; h < heads; ++h) kernel.add_row(sum, weights + ((b * heads + h) * L + i) * S, sum, S);
    kernel.divide_row(sum, static_cast<float>(heads), sum, S);
  });
}

}  // namespace

void copy_heads(const Heads<const float>& from, std::int64_t B, std::int64_t H, std::int64_t rows, std::int64_t width, float* to) {
  if (rows == 0 || width == 0 || counts()) return;
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t i = 0; i < rows; ++i) to = std::copy_n(from.at(b, h, i), width, to);
}

void attention_core(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionInputs& inputs, const AttentionBuffers& buffers,
                    Scratch& scratch) {
  const FloatEnvironment environment;
  const bool average = spec.need_weights && spec.average_weights;
  if (spec.num_heads == 0 && average) average_heads(spec, sizes, nullptr, buffers.weights);  // the mean of no heads, NaN
  if (sizes.B == 0 || spec.num_heads == 0 || sizes.L == 0) return;
  if (sizes.S == 0) return fill_without_keys(spec, sizes, inputs);
  if (!average) return Core(spec, sizes, inputs, buffers).run(scratch);
  const Scratch::Frame frame(scratch);
  AttentionBuffers per_head = buffers;
  per_head.weights = scratch.take(size_of(sizes.B, spec.num_heads), size_of(sizes.L, sizes.S));
  Core(spec, sizes, inputs, per_head).run(scratch);
  average_heads(spec, sizes, per_head.weights, buffers.weights);
}

}  // namespace attn::detail
