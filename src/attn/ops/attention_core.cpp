#include "attn/ops/attention_core.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attn/kernels/kernels.hpp"
#include "attn/ops/mask_rows.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/aligned.hpp"

namespace attn::detail {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kBlocked = -std::numeric_limits<float>::infinity();

/// Query rows of one task: some tiles high, so that a panel of keys or values read once serves all of them, and few
/// enough for their scores to stay in the second-level cache.
std::size_t rows_per_task() { return 24 - 24 % kernels::best().mr; }

class Core {
 public:
  Core(const AttentionPlan& plan, const AttentionOptions& options, const AttentionInputs& inputs, const AttentionBuffers& buffers)
      : plan_(plan),
        options_(options),
        in_(inputs),
        out_(buffers),
        masks_(plan, options),
        S_(static_cast<std::size_t>(plan.S)),
        Dv_(static_cast<std::size_t>(plan.Dv)),
        key_panels_(inputs.score_weight != nullptr ? 0 : kernels::packed_size(kernel_.nr, S_, static_cast<std::size_t>(plan.D))),
        value_panels_(kernels::packed_size(kernel_.nr, Dv_, S_)) {}

  void run();

 private:
  void pack(std::size_t index);
  void attend(std::int64_t b, std::int64_t h, std::int64_t first, std::size_t rows, float* scratch);
  void score(std::int64_t b, std::int64_t h, std::int64_t first, std::size_t rows, std::size_t count, float* scores) const;
  void finish_row(std::int64_t b, std::int64_t h, std::int64_t i, const KeyRow& keys, std::size_t filled, float* scores);
  void multiply_values(std::size_t kv, const KeyRow* keys, std::size_t rows, std::size_t filled, const float* weights, float* context);
  void store_weighted_values(std::int64_t b, std::int64_t kv_head, std::int64_t row, const KeyRow& keys, const float* weights);

  float* trace_row(TraceName name, std::int64_t row, std::size_t width) const {
    float* start = out_.trace[static_cast<std::size_t>(name)];
    return start != nullptr ? start + static_cast<std::size_t>(row) * width : nullptr;
  }
  bool uniform(const KeyRow& keys) const { return keys.limit == 0 && options_.fully_masked == FullyMasked::uniform; }

  const AttentionPlan& plan_;
  const AttentionOptions& options_;
  const AttentionInputs& in_;
  const AttentionBuffers& out_;
  const kernels::KernelTable& kernel_ = kernels::best();
  const MaskRows masks_;
  const std::size_t S_, Dv_;
  const std::size_t key_panels_, value_panels_;  // floats of one (batch, key head)
  AlignedFloats packed_keys_, packed_values_;
  std::vector<std::uint8_t> finite_values_;  // by (batch, key head)
};

void Core::run() {
  const auto kv_heads = static_cast<std::size_t>(plan_.B * plan_.Hkv);
  packed_keys_ = AlignedFloats(kv_heads * key_panels_);
  packed_values_ = AlignedFloats(kv_heads * value_panels_);
  finite_values_.assign(kv_heads, 1);

  const std::size_t row_block = rows_per_task();
  const auto blocks = static_cast<std::size_t>(plan_.L + static_cast<std::int64_t>(row_block) - 1) / row_block;
  const std::size_t tasks = static_cast<std::size_t>(plan_.B * plan_.H) * blocks;
  const std::size_t bias_rows = !masks_.need_buffer() ? 0 : masks_.same_for_all_queries() ? 1 : row_block;
  const std::size_t scratch_size = (row_block + bias_rows) * S_;
  // Softmax costs about as much as 16 multiply-adds per key, and so does each tanh.
  const double cost = static_cast<double>(plan_.B * plan_.H) * static_cast<double>(plan_.L) * static_cast<double>(plan_.S) *
                      static_cast<double>(plan_.D * (in_.score_weight != nullptr ? 16 : 1) + plan_.Dv + 16);
  const unsigned workers = parallel::workers_for(tasks, cost);
  AlignedFloats scratch(workers * scratch_size);

  parallel::run(kv_heads, std::min<unsigned>(workers, static_cast<unsigned>(std::min<std::size_t>(kv_heads, 1U << 16))),
                [&](std::size_t index, unsigned) { pack(index); });
  parallel::run(tasks, workers, [&](std::size_t task, unsigned worker) {
    const auto head = static_cast<std::int64_t>(task / blocks);
    const auto first = static_cast<std::int64_t>(task % blocks * row_block);
    attend(head / plan_.H, head % plan_.H, first,
           static_cast<std::size_t>(std::min<std::int64_t>(plan_.L - first, static_cast<std::int64_t>(row_block))),
           scratch.data() + worker * scratch_size);
  });
}

/// Keys as W of scores = q Wᵀ, values as W of context = weights Wᵀ.
void Core::pack(std::size_t index) {
  const auto kv = static_cast<std::int64_t>(index);
  const std::int64_t b = kv / plan_.Hkv, h = kv % plan_.Hkv;
  const float* keys = in_.key.at(b, h, 0);
  const float* values = in_.value.at(b, h, 0);
  if (key_panels_ > 0)
    kernels::pack(keys, in_.key.row, 1, nullptr, S_, static_cast<std::size_t>(plan_.D), kernel_.nr, packed_keys_.data() + index * key_panels_);
  kernels::pack(values, 1, in_.value.row, nullptr, Dv_, S_, kernel_.nr, packed_values_.data() + index * value_panels_);
  if (!masks_.any()) return;
  for (std::size_t j = 0; j < S_ && finite_values_[index] != 0; ++j)
    finite_values_[index] = kernel_.all_finite(values + static_cast<std::ptrdiff_t>(j) * in_.value.row, Dv_) ? 1 : 0;
}

void Core::attend(std::int64_t b, std::int64_t h, std::int64_t first, std::size_t rows, float* scratch) {
  const std::int64_t kv_head = h / (plan_.H / plan_.Hkv);
  const auto kv = static_cast<std::size_t>(b * plan_.Hkv + kv_head);
  float* scores = scratch;
  float* bias = scratch + rows_per_task() * S_;

  KeyRow keys[24];
  std::size_t filled = 0;  // keys that any of the rows needs
  for (std::size_t r = 0; r < rows; ++r) {
    keys[r] = r > 0 && masks_.same_for_all_queries() ? keys[0] : masks_.row(b, h, first + static_cast<std::int64_t>(r), bias + r * S_);
    filled = std::max(filled, uniform(keys[r]) ? S_ : keys[r].limit);
  }

  const bool all_scores = out_.trace[static_cast<std::size_t>(TraceName::scores)] != nullptr;
  score(b, h, first, rows, all_scores ? S_ : filled, scores);

  const std::int64_t row0 = (b * plan_.H + h) * plan_.L + first;
  for (std::size_t r = 0; r < rows; ++r) finish_row(b, h, first + static_cast<std::int64_t>(r), keys[r], filled, scores + r * S_);

  multiply_values(kv, keys, rows, filled, scores, in_.context.at(b, h, first));

  for (std::size_t r = 0; r < rows; ++r) {
    store_weighted_values(b, kv_head, row0 + static_cast<std::int64_t>(r), keys[r], scores + r * S_);
    if (keys[r].limit == 0 && options_.fully_masked == FullyMasked::nan)
      std::fill_n(in_.context.at(b, h, first + static_cast<std::int64_t>(r)), Dv_, kNaN);
  }
}

/// Scores of `rows` queries with the first `count` keys.
void Core::score(std::int64_t b, std::int64_t h, std::int64_t first, std::size_t rows, std::size_t count, float* scores) const {
  const std::int64_t kv_head = h / (plan_.H / plan_.Hkv);
  const auto D = static_cast<std::size_t>(plan_.D);
  if (in_.score_weight != nullptr) {
    for (std::size_t r = 0; r < rows; ++r)
      kernel_.additive_scores_row(in_.query.at(b, h, first + static_cast<std::int64_t>(r)), in_.key.at(b, kv_head, 0), in_.key.row, in_.score_weight,
                                  scores + r * S_, count, D, plan_.scale);
    return;
  }
  kernel_.gemm({.a = in_.query.at(b, h, first),
                .lda = in_.query.row,
                .panels = packed_keys_.data() + static_cast<std::size_t>(b * plan_.Hkv + kv_head) * key_panels_,
                .panel_stride = kernels::panel_size(kernel_.nr, D),
                .c = scores,
                .ldc = static_cast<std::ptrdiff_t>(S_),
                .m = rows,
                .n = count,
                .k = D,
                .alpha = plan_.scale});
}

/// scores -> weights in place, `filled` of them; what was asked for on the way is copied out.
void Core::finish_row(std::int64_t b, std::int64_t h, std::int64_t i, const KeyRow& keys, std::size_t filled, float* scores) {
  const std::int64_t row = (b * plan_.H + h) * plan_.L + i;
  if (float* to = trace_row(TraceName::scores, row, S_)) std::copy_n(scores, S_, to);
  if (keys.bias != nullptr) kernel_.mask_row(scores, keys.bias, scores, keys.limit);
  if (float* to = trace_row(TraceName::masked_scores, row, S_)) std::fill_n(std::copy_n(scores, keys.limit, to), S_ - keys.limit, kBlocked);

  std::size_t counted = keys.limit;
  float rest = 0;  // weight of the keys past those
  if (keys.limit > 0) {
    kernel_.softmax_row(scores, scores, keys.limit);
  } else if (uniform(keys)) {
    std::fill_n(scores, S_, 1.0F / static_cast<float>(S_));
    counted = S_;
  } else if (options_.fully_masked == FullyMasked::nan) {
    rest = kNaN;
  }
  if (counted < filled) std::fill_n(scores + counted, filled - counted, 0.0F);

  const auto store = [&](float* to) {
    if (to != nullptr) std::fill_n(std::copy_n(scores, counted, to), S_ - counted, rest);
  };
  store(trace_row(TraceName::probabilities, row, S_));
  if (in_.dropout.active()) in_.dropout.apply(scores, counted, b, h, i);
  store(out_.weights != nullptr ? out_.weights + static_cast<std::size_t>(row) * S_ : nullptr);
  store(trace_row(TraceName::weights, row, S_));
}

void Core::multiply_values(std::size_t kv, const KeyRow* keys, std::size_t rows, std::size_t filled, const float* weights, float* context) {
  kernels::Gemm gemm{.a = weights,
                     .lda = static_cast<std::ptrdiff_t>(S_),
                     .panels = packed_values_.data() + kv * value_panels_,
                     .panel_stride = kernels::panel_size(kernel_.nr, S_),
                     .c = context,
                     .ldc = in_.context.row,
                     .m = rows,
                     .n = Dv_,
                     .k = filled};
  // A blocked key's weight is 0, and adding 0 · v changes no bit of a sum that begins with +0, unless v is infinite or
  // NaN: then its term has to be left out.
  if (finite_values_[kv] != 0) return kernel_.gemm(gemm);
  gemm.m = 1;
  for (std::size_t r = 0; r < rows; ++r) {
    gemm.a = weights + r * S_;
    gemm.c = context + static_cast<std::ptrdiff_t>(r) * in_.context.row;
    gemm.k = uniform(keys[r]) ? S_ : keys[r].limit;
    if (keys[r].bias != nullptr)
      kernel_.gemm_row_skipping(gemm, keys[r].bias);
    else
      kernel_.gemm(gemm);
  }
}

void Core::store_weighted_values(std::int64_t b, std::int64_t kv_head, std::int64_t row, const KeyRow& keys, const float* weights) {
  float* to = trace_row(TraceName::weighted_values, row, S_ * Dv_);
  if (to == nullptr) return;
  const bool all = uniform(keys), nan = keys.limit == 0 && options_.fully_masked == FullyMasked::nan;
  for (std::size_t j = 0; j < S_; ++j, to += Dv_) {
    const bool counts = all || (j < keys.limit && (keys.bias == nullptr || keys.bias[j] != kBlocked));
    if (counts)
      kernel_.scale_row(in_.value.at(b, kv_head, static_cast<std::int64_t>(j)), weights[j], to, Dv_);
    else
      std::fill_n(to, Dv_, nan ? kNaN : 0.0F);
  }
}

/// No key at all: every query is fully masked, and there is nothing to spread evenly over.
void fill_without_keys(const AttentionPlan& plan, const AttentionOptions& options, const AttentionInputs& inputs) {
  const float value = options.fully_masked == FullyMasked::nan ? kNaN : 0.0F;
  for (std::int64_t b = 0; b < plan.B; ++b)
    for (std::int64_t h = 0; h < plan.H; ++h)
      for (std::int64_t i = 0; i < plan.L; ++i) std::fill_n(inputs.context.at(b, h, i), static_cast<std::size_t>(plan.Dv), value);
}

/// (B,H,L,S) -> (B,1,L,S), heads added in their order.
void average_heads(const AttentionPlan& plan, const float* weights, float* average) {
  const auto size = static_cast<std::size_t>(plan.L * plan.S), heads = static_cast<std::size_t>(plan.H);
  for (std::size_t b = 0; b < static_cast<std::size_t>(plan.B); ++b, average += size)
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

float attention_scale(std::string_view op, const std::optional<float>& scale, std::int64_t D) {
  if (!scale) return static_cast<float>(1.0 / std::sqrt(static_cast<double>(D)));
  if (!std::isfinite(*scale)) fail(ErrorCode::config, op, "scale", {"a finite number"}, {std::isnan(*scale) ? "NaN" : "infinite"});
  return *scale;
}

void plan_results(AttentionPlan& plan, bool has_batch, bool has_heads, MemoryEstimate& memory) {
  const auto kept = [&](const Shape& shape) {
    Shape rest;
    for (std::size_t axis = 0; axis < shape.rank(); ++axis)
      if ((axis != 0 || has_batch) && (axis != 1 || has_heads)) rest.push_back(shape[axis]);
    return rest;
  };
  const std::int64_t B = plan.B, H = plan.H, L = plan.L, S = plan.S;
  const Shape rows{B, H, L, S};
  if (plan.has_weights) {
    if (plan.average_weights) memory.add("weights of every head", rows);
    plan.weights = kept(plan.average_weights ? Shape{B, 1, L, S} : rows);
    memory.add("weights", plan.weights);
  }
  const std::int64_t given = S - plan.extra_keys;
  const std::array<Shape, kAttentionTraceCount> shapes{Shape{B, L, H * plan.D},
                                                       Shape{B, given, plan.Hkv * plan.D},
                                                       Shape{B, given, plan.Hkv * plan.Dv},
                                                       Shape{B, H, L, plan.query_width},
                                                       Shape{B, plan.Hkv, S, plan.key_width},
                                                       Shape{B, plan.Hkv, S, plan.Dv},
                                                       rows,
                                                       rows,
                                                       rows,
                                                       rows,
                                                       Shape{B, H, L, S, plan.Dv},
                                                       Shape{B, H, L, plan.Dv},
                                                       Shape{B, L, H * plan.Dv},
                                                       {}};
  const auto output = static_cast<std::size_t>(TraceName::output);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (!plan.trace.has(static_cast<TraceName>(i))) continue;
    plan.trace_shapes[i] = i == output ? plan.output : kept(shapes[i]);
    memory.add(kTraceNames[i], plan.trace_shapes[i]);
  }
  memory.add("output", plan.output);

  if (B == 0 || H == 0 || L == 0 || S == 0) return;  // attention_core has nothing to do
  const auto nr = static_cast<std::int64_t>(kernels::best().nr);
  memory.add("packed keys", {B, plan.Hkv, S + nr, plan.D + 1});
  memory.add("packed values", {B, plan.Hkv, plan.Dv + nr, S + 1});
  memory.add("scores of some rows", {static_cast<std::int64_t>(num_threads()), 2 * static_cast<std::int64_t>(rows_per_task()), S});
}

void attention_core(const AttentionPlan& plan, const AttentionOptions& options, const AttentionInputs& inputs, const AttentionBuffers& buffers) {
  const bool average = plan.has_weights && plan.average_weights;
  if (plan.H == 0 && average) average_heads(plan, nullptr, buffers.weights);  // the mean of nothing, NaN
  if (plan.B == 0 || plan.H == 0 || plan.L == 0) return;
  if (plan.S == 0) return fill_without_keys(plan, options, inputs);
  if (!average) return Core(plan, options, inputs, buffers).run();
  AlignedFloats weights(static_cast<std::size_t>(plan.B * plan.H * plan.L * plan.S));
  AttentionBuffers per_head = buffers;
  per_head.weights = weights.data();
  Core(plan, options, inputs, per_head).run();
  average_heads(plan, weights.data(), buffers.weights);
}

}  // namespace attn::detail
