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

/// Query rows of one task: some tiles high, so that a panel of keys or values read once serves all of them, and few
/// enough for their scores to stay in the second-level cache.
constexpr std::size_t kMaxRows = 24;
std::size_t rows_per_task() { return kMaxRows - kMaxRows % kernels::best().mr; }

/// Keys that a task works on at a time, unless their scores are to be seen: then it is all of them. So scores take no
/// more memory for longer rows (Milakov & Gimelshein 2018), and up to this many keys both ways give the same bits.
constexpr std::size_t kKeyBlock = 1024;

/// Terms are at most 1 and are divided by their sum behind the product with the values: so that up to 2³² of them cannot overflow, values
/// of a head whose largest are not below 2⁹⁶ are this much smaller until then. It is a power of two, which changes no bit but those of
/// numbers that become denormal by it.
constexpr float kSmaller = 0x1p-32F;

/// C libraries differ in the last bits of their logarithms. A sum is 0, NaN or no less than 1.
float log_of_sum(float sum) { return sum == 0 ? kBlocked : sum < std::numeric_limits<float>::infinity() ? static_cast<float>(log_of(sum)) : sum; }

class Core {
 public:
  Core(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionInputs& inputs, const AttentionBuffers& buffers)
      : spec_(spec),
        sizes_(sizes),
        in_(inputs),
        out_(buffers),
        kernel_(kernels::best(spec.everywhere)),
        masks_(spec, sizes),
        S_(static_cast<std::size_t>(sizes.S)),
        D_(static_cast<std::size_t>(spec.head_dim)),
        Dv_(static_cast<std::size_t>(spec.value_head_dim)),
        key_block_(shows_keys() || inputs.dropout.active() ? S_ : std::min(S_, kKeyBlock)),
        key_panels_(inputs.score_weight != nullptr ? 0 : kernels::packed_size(kernel_.nr, S_, static_cast<std::size_t>(spec.head_dim))),
        value_panels_(kernels::packed_size(kernel_.nr, Dv_, S_)) {}

  void run(Scratch& scratch);

 private:
  /// Softmax of one row, as far as it has come.
  struct Row {
    KeyRow keys;
    float most = kBlocked;  // the largest score
    float sum = 0;          // Σ exp(score - most)
  };

  void pack(std::size_t index);
  void attend(std::int64_t b, std::int64_t h, std::int64_t first, std::size_t rows, float* scratch);
  void score(std::int64_t b, std::int64_t h, std::int64_t first, std::size_t rows, std::size_t key, std::size_t count, float* scores) const;
  void cap(float* scores, std::size_t count) const;
  void exponentiate(Row& row, std::size_t key, std::size_t count, bool goes_on, float* scores, float* context) const;
  void store(const Row& row, std::int64_t index, TraceName name, float* target, const float* terms) const;
  void multiply_values(std::size_t kv, const Row* rows, std::size_t count_of_rows, std::size_t key, std::size_t count, const float* terms,
                       float* context) const;
  void store_weighted_values(std::int64_t b, std::int64_t kv_head, std::int64_t index, const Row& row, const float* terms) const;

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
  bool uniform(const KeyRow& keys) const { return keys.limit == 0 && spec_.fully_masked == FullyMasked::uniform; }
  /// Keys of a row that have a weight, blocked ones before its limit included.
  std::size_t counted(const KeyRow& keys) const { return uniform(keys) ? S_ : keys.limit; }

  const AttentionSpec& spec_;
  const AttentionSizes& sizes_;
  const AttentionInputs& in_;
  const AttentionBuffers& out_;
  const kernels::KernelTable& kernel_;
  const MaskRows masks_;
  const std::size_t S_, D_, Dv_;
  const std::size_t key_block_;
  const std::size_t key_panels_, value_panels_;  // floats of one (batch, key head)
  float *packed_keys_ = nullptr, *packed_values_ = nullptr;
  std::size_t relative_scores_ = 0;  // where they begin in a task's scratch
  float* finite_values_ = nullptr;   // by (batch, key head): 1 where all are, else 0
  float* value_scales_ = nullptr;    // by (batch, key head): what the packed values are multiplied with
};

void Core::run(Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const auto kv_heads = static_cast<std::size_t>(sizes_.B * spec_.num_key_value_heads);
  packed_keys_ = scratch.take(kv_heads * key_panels_);
  packed_values_ = scratch.take(kv_heads * value_panels_);
  finite_values_ = scratch.take(kv_heads);
  value_scales_ = scratch.take(kv_heads);

  const std::size_t row_block = rows_per_task();
  const auto blocks = static_cast<std::size_t>(sizes_.L + static_cast<std::int64_t>(row_block) - 1) / row_block;
  const std::size_t tasks = static_cast<std::size_t>(sizes_.B * spec_.num_heads) * blocks;
  const std::size_t bias_rows = !masks_.need_buffer() ? 0 : masks_.same_for_all_queries() ? 1 : row_block;
  const std::size_t relative_size = in_.position_bias.relative != nullptr ? relative_scores_size(row_block, key_block_, kernel_.nr) : 0;
  const std::size_t task_size = row_block * key_block_ + bias_rows * S_ + relative_size;
  // Softmax costs about as much as 16 multiply-adds per key, and so does each tanh.
  const double cost = static_cast<double>(sizes_.B * spec_.num_heads) * static_cast<double>(sizes_.L) * static_cast<double>(sizes_.S) *
                      static_cast<double>(spec_.head_dim * (in_.score_weight != nullptr ? 16 : 1) + spec_.value_head_dim + 16);
  const unsigned workers = parallel::workers_for(tasks, cost);
  float* const task_scratch = scratch.take(workers * task_size);
  relative_scores_ = row_block * key_block_ + bias_rows * S_;

  parallel::run(kv_heads, std::min<unsigned>(workers, static_cast<unsigned>(std::min<std::size_t>(kv_heads, 1U << 16))),
                [&](std::size_t index, unsigned) noexcept { pack(index); });
  parallel::run(tasks, workers, [&](std::size_t task, unsigned worker) noexcept {
    const auto head = static_cast<std::int64_t>(task / blocks);
    const auto first = static_cast<std::int64_t>(task % blocks * row_block);
    attend(head / spec_.num_heads, head % spec_.num_heads, first,
           static_cast<std::size_t>(std::min<std::int64_t>(sizes_.L - first, static_cast<std::int64_t>(row_block))),
           task_scratch + worker * task_size);
  });
}

/// Keys as W of scores = q Wᵀ, values as W of context = weights Wᵀ.
void Core::pack(std::size_t index) {
  const auto kv = static_cast<std::int64_t>(index);
  const std::int64_t b = kv / spec_.num_key_value_heads, h = kv % spec_.num_key_value_heads;
  const float* keys = in_.key.at(b, h, 0);
  const float* values = in_.value.at(b, h, 0);
  if (key_panels_ > 0)
    kernels::pack(keys, in_.key.row, 1, S_, static_cast<std::size_t>(spec_.head_dim), kernel_.nr, packed_keys_ + index * key_panels_);
  float* const packed = packed_values_ + index * value_panels_;
  kernels::pack(values, 1, in_.value.row, Dv_, S_, kernel_.nr, packed);
  const bool usual = kernel_.all_finite(packed, 1 / kSmaller, value_panels_);
  const bool large =
      !usual && std::any_of(packed, packed + value_panels_, [](float value) { return std::isfinite(value) && !std::isfinite(value / kSmaller); });
  finite_values_[index] = usual || !masks_.any() || kernel_.all_finite(packed, 1, value_panels_) ? 1 : 0;
  value_scales_[index] = large ? kSmaller : 1;
  if (large) kernel_.scale_row(packed, kSmaller, packed, value_panels_);
}

void Core::attend(std::int64_t b, std::int64_t h, std::int64_t first, std::size_t rows, float* scratch) {
  const std::int64_t kv_head = h / (spec_.num_heads / spec_.num_key_value_heads);
  const auto kv = static_cast<std::size_t>(b * spec_.num_key_value_heads + kv_head);
  float* const scores = scratch;
  float* const bias = scratch + rows_per_task() * key_block_;
  float* const context = in_.context.at(b, h, first);
  const auto context_row = [&](std::size_t r) { return context + static_cast<std::ptrdiff_t>(r) * in_.context.row; };

  Row row[kMaxRows];
  std::size_t filled = 0, start = S_;  // keys that any of the rows needs
  for (std::size_t r = 0; r < rows; ++r) {
    row[r].keys = r > 0 && masks_.same_for_all_queries() ? row[0].keys : masks_.row(b, h, first + static_cast<std::int64_t>(r), bias + r * S_);
    filled = std::max(filled, counted(row[r].keys));
    start = std::min(start, uniform(row[r].keys) ? 0 : row[r].keys.first);
  }
  // Sums run in lanes: from a multiple of their number on they are the same sums.
  start = shows_keys() || in_.dropout.active() ? 0 : start / kMostLanes * kMostLanes;
  for (std::size_t r = 0; r < rows && start > 0; ++r) std::fill_n(context_row(r), Dv_, 0.0F);

  const bool all_scores = shows_scores();
  const std::int64_t index = (b * spec_.num_heads + h) * sizes_.L + first;
  std::size_t key = start;
  do {
    const std::size_t count = std::min(filled - key, key_block_ - key % key_block_);  // the same blocks wherever they start
    const std::size_t scored = all_scores ? S_ : count;
    score(b, h, first, rows, key, scored, scores);
    if (in_.position_bias.relative != nullptr) {
      const auto show = [&](TraceName name) { return trace_row(name, index, S_); };
      add_relative_scores(kernel_, *in_.position_bias.relative,
                          {.query = in_.query.at(b, h, first),
                           .query_row = in_.query.row,
                           .key_panels = packed_keys_ + kv * key_panels_ + key / kernel_.nr * kernels::panel_size(kernel_.nr, D_),
                           .h = h,
                           .first = first,
                           .rows = rows,
                           .key = key,
                           .count = scored,
                           .D = D_,
                           .scale = spec_.scale,
                           .scores = scores,
                           .ld = key_block_,
                           .scratch = scratch + relative_scores_,
                           .c2c = show(TraceName::c2c),
                           .c2p = show(TraceName::c2p),
                           .p2c = show(TraceName::p2c),
                           .trace_row = S_});
    }
    for (std::size_t r = 0; r < rows; ++r) {
      float* const terms = scores + r * key_block_;
      const std::int64_t i = index + static_cast<std::int64_t>(r);
      if (spec_.softcap > 0) cap(terms, scored);
      if (in_.position_bias.data != nullptr)
        kernel_.add_row(terms,
                        in_.position_bias.data + h * in_.position_bias.row + static_cast<std::int64_t>(key) - first - static_cast<std::int64_t>(r),
                        terms, scored);
      if (float* to = trace_row(TraceName::scores, i, S_)) std::copy_n(terms, S_, to);
      if (row[r].keys.bias != nullptr && key < row[r].keys.limit)
        kernel_.mask_row(terms, row[r].keys.bias + key, terms, std::min(count, row[r].keys.limit - key));
      if (float* to = trace_row(TraceName::masked_scores, i, S_))
        std::fill_n(std::copy_n(terms, row[r].keys.limit, to), S_ - row[r].keys.limit, kBlocked);
      exponentiate(row[r], key, count, key > start, terms, context_row(r));
      store(row[r], i, TraceName::probabilities, nullptr, terms);
      if (in_.dropout.active()) in_.dropout.apply(terms, counted(row[r].keys), b, h, first + static_cast<std::int64_t>(r));
      store(row[r], i, TraceName::weights, out_.weights, terms);
      store_weighted_values(b, kv_head, i, row[r], terms);
    }
    multiply_values(kv, row, rows, key, count, scores, context);
    key += count;
  } while (key < filled);

  for (std::size_t r = 0; r < rows; ++r) {
    if (out_.log_sum_exp != nullptr)
      out_.log_sum_exp[static_cast<std::size_t>(index) + r] = (uniform(row[r].keys) ? 0 : row[r].most) + log_of_sum(row[r].sum);
    if (counted(row[r].keys) > 0)
      kernel_.scale_row(context_row(r), 1 / row[r].sum / value_scales_[kv], context_row(r), Dv_);
    else
      std::fill_n(context_row(r), Dv_, spec_.fully_masked == FullyMasked::nan ? kNaN : 0.0F);
  }
}

/// Scores of `rows` queries with `count` keys from `key` on.
void Core::score(std::int64_t b, std::int64_t h, std::int64_t first, std::size_t rows, std::size_t key, std::size_t count, float* scores) const {
  const std::int64_t kv_head = h / (spec_.num_heads / spec_.num_key_value_heads);
  const auto D = static_cast<std::size_t>(spec_.head_dim);
  if (in_.score_weight != nullptr) {
    for (std::size_t r = 0; r < rows; ++r)
      kernel_.additive_scores_row(in_.query.at(b, h, first + static_cast<std::int64_t>(r)), in_.key.at(b, kv_head, static_cast<std::int64_t>(key)),
                                  in_.key.row, in_.score_weight, scores + r * key_block_, count, D, spec_.scale);
    return;
  }
  const std::size_t panel_size = kernels::panel_size(kernel_.nr, D);
  kernel_.gemm(
      {.a = in_.query.at(b, h, first),
       .lda = in_.query.row,
       .panels = packed_keys_ + static_cast<std::size_t>(b * spec_.num_key_value_heads + kv_head) * key_panels_ + key / kernel_.nr * panel_size,
       .panel_stride = panel_size,
       .c = scores,
       .ldc = static_cast<std::ptrdiff_t>(key_block_),
       .m = rows,
       .n = count,
       .k = D,
       .alpha = spec_.scale});
}

void Core::cap(float* scores, std::size_t count) const {
  kernel_.scale_row(scores, 1 / spec_.softcap, scores, count);
  kernel_.activation_row(kernels::Activation::tanh, scores, scores, count);
  kernel_.scale_row(scores, spec_.softcap, scores, count);
}

/// scores -> exp(score - most) in place, 0 where the row has no key. Where `most` grows, what was summed before shrinks.
void Core::exponentiate(Row& row, std::size_t key, std::size_t count, bool goes_on, float* scores, float* context) const {
  const std::size_t total = counted(row.keys), n = total > key ? std::min(count, total - key) : 0;
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
    // Without a score above -infinity so far there is nothing to compare with: each is -infinity or NaN, and gives 0 or NaN.
    const bool none = row.most == kBlocked && key + n < total;
    row.sum += kernel_.exp_row(scores, none ? 0.0F : row.most, scores, n);
  }
  if (n < count) std::fill_n(scores + n, count - n, 0.0F);
}

/// Weights of a row, out of terms that are all there, to where they are asked for.
void Core::store(const Row& row, std::int64_t index, TraceName name, float* target, const float* terms) const {
  const std::size_t n = counted(row.keys);
  const float rest = n == 0 && spec_.fully_masked == FullyMasked::nan ? kNaN : 0.0F;
  for (float* const to : {trace_row(name, index, S_), target != nullptr ? target + static_cast<std::size_t>(index) * S_ : nullptr}) {
    if (to == nullptr) continue;
    if (n > 0) kernel_.scale_row(terms, 1 / row.sum, to, n);
    std::fill_n(to + n, S_ - n, rest);
  }
}

/// context += terms · values, for `count` keys from `key` on; with key 0 context begins.
void Core::multiply_values(std::size_t kv, const Row* rows, std::size_t count_of_rows, std::size_t key, std::size_t count, const float* terms,
                           float* context) const {
  kernels::Gemm<float> gemm{.a = terms,
                            .lda = static_cast<std::ptrdiff_t>(key_block_),
                            .panels = packed_values_ + kv * value_panels_ + key * kernel_.nr,
                            .panel_stride = kernels::panel_size(kernel_.nr, S_),
                            .c = context,
                            .ldc = in_.context.row,
                            .m = count_of_rows,
                            .n = Dv_,
                            .k = count,
                            .accumulate = key > 0};
  // A blocked key's weight is 0, and adding 0 · v changes no bit of a sum that begins with +0, unless v is infinite or
  // NaN: then its term has to be left out.
  if (finite_values_[kv] != 0) return kernel_.gemm(gemm);
  gemm.m = 1;
  for (std::size_t r = 0; r < count_of_rows; ++r) {
    const KeyRow& keys = rows[r].keys;
    const std::size_t total = counted(keys);
    gemm.a = terms + r * key_block_;
    gemm.c = context + static_cast<std::ptrdiff_t>(r) * in_.context.row;
    gemm.k = total > key ? std::min(count, total - key) : 0;
    gemm.skip = keys.bias != nullptr ? keys.bias + key : nullptr;
    kernel_.gemm(gemm);
  }
}

void Core::store_weighted_values(std::int64_t b, std::int64_t kv_head, std::int64_t index, const Row& row, const float* terms) const {
  float* to = trace_row(TraceName::weighted_values, index, S_ * Dv_);
  if (to == nullptr) return;
  const KeyRow& keys = row.keys;
  const bool nan = keys.limit == 0 && spec_.fully_masked == FullyMasked::nan;
  for (std::size_t j = 0; j < S_; ++j, to += Dv_) {
    const bool counts = uniform(keys) || (j < keys.limit && (keys.bias == nullptr || keys.bias[j] != kBlocked));
    if (counts)
      kernel_.scale_row(in_.value.at(b, kv_head, static_cast<std::int64_t>(j)), terms[j] * (1 / row.sum), to, Dv_);
    else
      std::fill_n(to, Dv_, nan ? kNaN : 0.0F);
  }
}

/// No key at all: every query is fully masked, and there is nothing to spread evenly over.
void fill_without_keys(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionInputs& inputs) {
  const float value = spec.fully_masked == FullyMasked::nan ? kNaN : 0.0F;
  for (std::int64_t b = 0; b < sizes.B; ++b)
    for (std::int64_t h = 0; h < spec.num_heads; ++h)
      for (std::int64_t i = 0; i < sizes.L; ++i) std::fill_n(inputs.context.at(b, h, i), static_cast<std::size_t>(spec.value_head_dim), value);
}

/// (B,H,L,S) -> (B,1,L,S), heads added in their order.
void average_heads(const AttentionSpec& spec, const AttentionSizes& sizes, const float* weights, float* average) {
  const auto size = static_cast<std::size_t>(sizes.L * sizes.S), heads = static_cast<std::size_t>(spec.num_heads);
  for (std::size_t b = 0; b < static_cast<std::size_t>(sizes.B); ++b, average += size)
    for (std::size_t i = 0; i < size; ++i) {
      float sum = 0;
      for (std::size_t h = 0; h < heads; ++h) sum += weights[(b * heads + h) * size + i];
      average[i] = sum / static_cast<float>(heads);
    }
}

}  // namespace

void copy_heads(const Heads<const float>& from, std::int64_t B, std::int64_t H, std::int64_t rows, std::int64_t width, float* to) {
  if (rows == 0 || width == 0) return;
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t i = 0; i < rows; ++i) to = std::copy_n(from.at(b, h, i), width, to);
}

void add_core_memory(const AttentionSpec& spec, const AttentionSizes& sizes, MemoryEstimate& memory) {
  const std::int64_t B = sizes.B, Hkv = spec.num_key_value_heads, S = sizes.S;
  if (B == 0 || spec.num_heads == 0 || sizes.L == 0 || S == 0) return;  // attention_core has nothing to do
  const auto nr = static_cast<std::int64_t>(kernels::best().nr);
  memory.add("packed keys", {B, Hkv, S + nr, spec.head_dim + 1});
  memory.add("packed values", {B, Hkv, spec.value_head_dim + nr, S + 1});
  memory.add("scores of some rows", {static_cast<std::int64_t>(num_threads()), 2 * static_cast<std::int64_t>(rows_per_task()), S});
  if (spec.relative_positions)
    memory.add("scores of positions",
               {static_cast<std::int64_t>(num_threads()),
                static_cast<std::int64_t>(relative_scores_size(rows_per_task(), static_cast<std::size_t>(S), static_cast<std::size_t>(nr)))});
}

void attention_core(const AttentionSpec& spec, const AttentionSizes& sizes, const AttentionInputs& inputs, const AttentionBuffers& buffers,
                    Scratch& scratch) {
  const FloatEnvironment environment;
  const bool average = spec.need_weights && spec.average_weights;
  if (spec.num_heads == 0 && average) average_heads(spec, sizes, nullptr, buffers.weights);  // the mean of nothing, NaN
  if (sizes.B == 0 || spec.num_heads == 0 || sizes.L == 0) return;
  if (sizes.S == 0) return fill_without_keys(spec, sizes, inputs);
  if (!average) return Core(spec, sizes, inputs, buffers).run(scratch);
  const Scratch::Frame frame(scratch);
  AttentionBuffers per_head = buffers;
  per_head.weights = scratch.take(static_cast<std::size_t>(sizes.B * spec.num_heads * sizes.L * sizes.S));
  Core(spec, sizes, inputs, per_head).run(scratch);
  average_heads(spec, sizes, per_head.weights, buffers.weights);
}

}  // namespace attn::detail
