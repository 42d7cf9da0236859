#include "attn/ops/losses.hpp"

#include <algorithm>
#include <cmath>

#include "attn/kernels/kernels.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/ops/elementary.hpp"
#include "attn/ops/tree_sum.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/float_environment.hpp"
#include "attn/tensor/rows.hpp"

// Terms and their sum are float64; only the result is rounded to float32.
namespace attn::detail {
namespace {

constexpr std::string_view kCrossEntropy = "cross_entropy", kMse = "mse_loss", kBinary = "binary_cross_entropy_with_logits";

double log_or_nan(double x) { return x == x ? log_of(x) : x; }

void check_same_shape(std::string_view op, const TensorView& x, const TensorView& target) {
  if (target.shape != x.shape) fail(ErrorCode::shape, op, "target", {x.shape}, {target.shape});
}

void check_broadcast(std::string_view op, std::string_view name, const std::optional<TensorCopy>& x, const Shape& to) {
  if (!x) return;
  bool fits = x->shape.rank() <= to.rank();
  for (std::size_t axis = 0; fits && axis < x->shape.rank(); ++axis) fits = x->shape.back(axis) == 1 || x->shape.back(axis) == to.back(axis);
  if (!fits) fail(ErrorCode::shape, op, name, {"a shape that broadcasts to ", to}, {x->shape});
}

/// Null without x.
const float* broadcast(const std::optional<TensorCopy>& x, const Shape& to, std::size_t size, Scratch& scratch) {
  if (!x) return nullptr;
  float* const all = scratch.take(size);
  std::array<std::int64_t, Shape::kMaxRank> index{};
  std::ptrdiff_t at = 0;
  for (std::size_t i = 0; i < size && !counts(); ++i) {
    all[i] = x->data[at];
    for (std::size_t axis = 0; axis < to.rank(); ++axis) {  // last dimension first
      const bool counts = axis < x->shape.rank() && x->shape.back(axis) != 1;
      const std::ptrdiff_t step = counts ? x->strides[x->shape.rank() - 1 - axis] : 0;
      at += step;
      if (++index[axis] < to.back(axis)) break;
      at -= static_cast<std::ptrdiff_t>(index[axis]) * step;
      index[axis] = 0;
    }
  }
  return all;
}

template <class Term>
double sum_rows(std::size_t rows, double cost, Scratch& scratch, Term term) {
  double* const terms = scratch.take_as<double>(rows);
  parallel::run(rows, parallel::workers_for(rows, cost), [&](std::size_t row, unsigned) noexcept { terms[row] = term(row); });
  return counts() ? 0 : tree_sum({terms, rows});
}

double product_of(const Rows& rows) { return static_cast<double>(rows.count()) * static_cast<double>(rows.width()); }

}  // namespace

void check_cross_entropy(const TensorView& logits, std::span<const std::int64_t> labels, const CrossEntropyOptions& options) {
  if (logits.shape.rank() == 0 || logits.shape.back(0) == 0)
    fail(ErrorCode::shape, kCrossEntropy, "logits", {"(..,C) with at least one class"}, {logits.shape});
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    fail(ErrorCode::config, kCrossEntropy, "label_smoothing", {"a number from 0 to 1"}, {options.label_smoothing});
  const std::int64_t C = logits.shape.back(0), rows = checked_size(logits.shape, kCrossEntropy, "logits") / C;
  if (options.weight && options.weight->shape != Shape{C}) fail(ErrorCode::shape, kCrossEntropy, "weight", {Shape{C}}, {options.weight->shape});
  if (static_cast<std::int64_t>(labels.size()) != rows)
    fail(ErrorCode::shape, kCrossEntropy, "labels", {rows, ", one for each row of the logits"}, {labels.size(), " numbers"});
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != options.ignore_index && (labels[i] < 0 || labels[i] >= C))
      fail(ErrorCode::out_of_range, kCrossEntropy, text({"labels[", i, "]"}),
           {"a class from 0 to ", C - 1, ", or ignore_index ", options.ignore_index}, {labels[i]}, {{"index", static_cast<double>(i)}});
  check_memory(kCrossEntropy, [&] { cross_entropy(logits, labels, options, counted(logits.shape, "the gradient")); });
}

float cross_entropy(const TensorView& logits, std::span<const std::int64_t> labels, const CrossEntropyOptions& options, float* gradient) {
  const FloatEnvironment environment;
  const kernels::KernelTable& kernel = kernels::best();
  const Rows rows(logits);
  const std::size_t C = rows.width();
  Scratch scratch;
  double* const weight = options.weight ? scratch.take_as<double>(C) : nullptr;
  for (std::size_t c = 0; c < C && weight != nullptr && !counts(); ++c)
    weight[c] = options.weight->data[static_cast<std::ptrdiff_t>(c) * options.weight->strides[0]];
  const auto weight_of = [&](std::size_t c) { return weight == nullptr ? 1.0 : weight[c]; };
  const double all_weights = weight == nullptr ? static_cast<double>(C) : counts() ? 0 : tree_sum({weight, C});
  const double of_label = 1 - options.label_smoothing, of_each = options.label_smoothing / static_cast<double>(C);
  const auto is_ignored = [&](std::size_t row) { return labels[row] == options.ignore_index; };
  const auto weight_of_row = [&](std::size_t row) { return is_ignored(row) ? 0.0 : weight_of(static_cast<std::size_t>(labels[row])); };
  const double divisor =
      options.reduction == Reduction::sum ? 1.0 : sum_rows(rows.count(), static_cast<double>(rows.count()), scratch, weight_of_row);
  // An exponential costs about 16 multiply-adds.
  const double sum = sum_rows(rows.count(), 16 * product_of(rows), scratch, [&](std::size_t row) {
    float* const g = gradient + row * C;
    if (is_ignored(row)) {
      std::fill_n(g, C, 0.0F);
      return 0.0;
    }
    const float* const x = rows[row];
    const auto label = static_cast<std::size_t>(labels[row]);
    const double most = kernel.max_row(x, C);
    const double exps = kernel.exp_row(x, static_cast<float>(most), g, C), log_exps = log_or_nan(exps);
    const auto minus_log_p = [&](std::size_t c) { return log_exps - (x[c] - most); };
    double loss = of_label * weight_of(label) * minus_log_p(label);
    if (of_each != 0)
      for (std::size_t c = 0; c < C; ++c) loss += of_each * weight_of(c) * minus_log_p(c);

    const double target = of_label * weight_of(label), p_label = static_cast<double>(g[label]) / exps;
    const double of_p = (target + of_each * all_weights) / divisor, of_exp = of_p / exps;
    for (std::size_t c = 0; c < C; ++c) g[c] = static_cast<float>(of_exp * g[c] - of_each * weight_of(c) / divisor);
    g[label] = static_cast<float>(of_p * p_label - (target + of_each * weight_of(label)) / divisor);
    return loss;
  });
  return static_cast<float>(sum / divisor);
}

void check_mse_loss(const TensorView& prediction, const TensorView& target) {
  check_same_shape(kMse, prediction, target);
  check_memory(kMse, [&] { mse_loss(prediction, target, {}, counted(prediction.shape, "the gradient")); });
}

float mse_loss(const TensorView& prediction, const TensorView& target, const MseLossOptions& options, float* gradient) {
  const FloatEnvironment environment;
  Scratch scratch;
  const Rows x(prediction), t(target);
  const double divisor = options.reduction == Reduction::mean ? product_of(x) : 1;
  const double sum = sum_rows(x.count(), 4 * product_of(x), scratch, [&](std::size_t row) {
    double loss = 0;
    for (std::size_t i = 0; i < x.width(); ++i) {
      const double difference = static_cast<double>(x[row][i]) - static_cast<double>(t[row][i]);
      loss += difference * difference;
      gradient[row * x.width() + i] = static_cast<float>(2 * difference / divisor);
    }
    return loss;
  });
  return static_cast<float>(sum / divisor);
}

void check_binary_cross_entropy(const TensorView& logits, const TensorView& target, const BinaryCrossEntropyOptions& options) {
  check_same_shape(kBinary, logits, target);
  check_broadcast(kBinary, "weight", options.weight, logits.shape);
  check_broadcast(kBinary, "pos_weight", options.pos_weight, logits.shape);
  check_memory(kBinary, [&] { binary_cross_entropy(logits, target, options, counted(logits.shape, "the gradient")); });
}

float binary_cross_entropy(const TensorView& logits, const TensorView& target, const BinaryCrossEntropyOptions& options, float* gradient) {
  const FloatEnvironment environment;
  Scratch scratch;
  const Rows x(logits), t(target);
  const std::size_t size = x.count() * x.width();
  const float *const weight = broadcast(options.weight, logits.shape, size, scratch), *const positive =
                                                                                          broadcast(options.pos_weight, logits.shape, size, scratch);
  const double divisor = options.reduction == Reduction::mean ? product_of(x) : 1;
  // -log σ(z) = log(1 + e^-|z|) + max(-z, 0) cannot overflow. Logarithm and exponential cost about 60 multiply-adds.
  const double sum = sum_rows(x.count(), 60 * product_of(x), scratch, [&](std::size_t row) {
    double loss = 0;
    for (std::size_t i = 0; i < x.width(); ++i) {
      const std::size_t at = row * x.width() + i;
      const double z = x[row][i], y = t[row][i], w = weight == nullptr ? 1.0 : static_cast<double>(weight[at]);
      const double of_log = positive == nullptr ? 1.0 : 1 + (static_cast<double>(positive[at]) - 1) * y;
      const double e = exp_of(-std::abs(z));
      loss += w * ((1 - y) * z + of_log * (log_or_nan(1 + e) + std::max(-z, 0.0)));
      gradient[at] = static_cast<float>(w * ((1 - y) - of_log * (z >= 0 ? e : 1.0) / (1 + e)) / divisor);
    }
    return loss;
  });
  return static_cast<float>(sum / divisor);
}

}  // namespace attn::detail
