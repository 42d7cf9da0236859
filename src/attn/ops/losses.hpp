#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "attn/tensor/results.hpp"

namespace attn {

/// How the terms of a loss are reduced.
enum class Reduction : std::uint8_t { mean, sum };

inline constexpr std::array<std::string_view, 2> kReductionNames{"mean", "sum"};

/// A loss and its gradient with respect to the first argument, to be passed to backward() of the preceding layer.
template <std::size_t N>
struct Loss {
  float loss = 0;
  TensorOf<N> gradient;
};

/// Options for cross_entropy().
struct CrossEntropyOptions {
  double label_smoothing = 0;                       ///< ε in [0,1], the probability spread evenly over all classes
  std::int64_t ignore_index = -100;                 ///< rows with this label are ignored, whatever their logits are
  std::optional<TensorCopy> weight = std::nullopt;  ///< w (C), weight of each class; default 1
  Reduction reduction = Reduction::mean;            ///< mean: divides by Σ w of the labels, without weights their number
};

/// Options for mse_loss().
struct MseLossOptions {
  Reduction reduction = Reduction::mean;
};

/// Options for binary_cross_entropy_with_logits().
struct BinaryCrossEntropyOptions {
  std::optional<TensorCopy> weight = std::nullopt;      ///< weight of each term; broadcasts to the shape of the logits, default 1
  std::optional<TensorCopy> pos_weight = std::nullopt;  ///< p, weight of positive answers; broadcasts likewise, default 1
  Reduction reduction = Reduction::mean;                ///< mean: divides by the number of terms, regardless of weights
};

namespace detail {

// Each check function validates the arguments; the function after it returns the loss and fills the gradient, which has the shape of the first
// argument.
void check_cross_entropy(const TensorView& logits, std::span<const std::int64_t> labels, const CrossEntropyOptions& options);
float cross_entropy(const TensorView& logits, std::span<const std::int64_t> labels, const CrossEntropyOptions& options, float* gradient);
void check_mse_loss(const TensorView& prediction, const TensorView& target);
float mse_loss(const TensorView& prediction, const TensorView& target, const MseLossOptions& options, float* gradient);
void check_binary_cross_entropy(const TensorView& logits, const TensorView& target, const BinaryCrossEntropyOptions& options);
float binary_cross_entropy(const TensorView& logits, const TensorView& target, const BinaryCrossEntropyOptions& options, float* gradient);

}  // namespace detail

/// Computes the cross entropy of softmax and its gradient. With pᵢ = softmax(logitsᵢ) the loss is Σᵢ (1 - ε) w[yᵢ]
/// (-log pᵢ[yᵢ]) + ε/C Σ_c w[c] (-log pᵢ[c]), divided by Σᵢ w[yᵢ] for the mean. If every label is ignored, or there
/// is none, the mean is NaN (0 / 0, as in torch), the sum 0, and the gradient 0. The gradient of an ignored row is 0
/// even if its logits are NaN; otherwise NaN and infinity propagate. Sums over rows do not depend on the number of
/// threads.
///
/// @param logits   (..,C); classes are in the last dimension at any rank
/// @param labels   one whole number per row, 0 to C-1 or ignore_index
/// @param options  label smoothing ε, class weights w, ignore_index, reduction
/// @return {loss, gradient}; the gradient with respect to the logits, (..,C)
/// @throws OUT_OF_RANGE if a label is not a class; the message contains its position
/// @throws SHAPE if the number of labels or weights does not fit
/// @throws CONFIG if label_smoothing is outside 0 to 1
/// @throws MEMORY if the gradient exceeds the memory limit
/// @see torch.nn.functional.cross_entropy; Szegedy et al. 2016 for ε
///
/// @code
/// xt::xtensor<float, 2> logits{{0, 0}};
/// std::vector<std::int64_t> labels{1};
/// auto [loss, gradient] = attn::cross_entropy(logits, labels);
/// std::cout << loss << ' ' << gradient;  // 0.693147 {{ 0.5, -0.5}}
/// @endcode
template <TensorLike X, class Labels>
  requires std::is_integral_v<typename Labels::value_type>
auto cross_entropy(const X& logits, const Labels& labels, const CrossEntropyOptions& options = {}) {
  const detail::Input view(logits, "cross_entropy", "logits");
  const std::vector<std::int64_t> classes(labels.begin(), labels.end());
  detail::check_cross_entropy(view, classes, options);
  Loss<kRankOf<X>> result{0, detail::empty<kRankOf<X>>(view.shape)};
  result.loss = detail::cross_entropy(view, classes, options, result.gradient.data());
  return result;
}

/// Computes the squared error Σ (prediction - target)² and its gradient; the mean divides by the number of terms. The
/// mean of no terms is NaN.
///
/// @param prediction  any shape
/// @param target      the same shape; unlike torch nothing is broadcast
/// @param options     reduction
/// @return {loss, gradient}; the gradient with respect to the prediction
/// @throws SHAPE if the shapes differ
/// @throws MEMORY if the gradient exceeds the memory limit
/// @see torch.nn.functional.mse_loss
///
/// @code
/// xt::xtensor<float, 1> prediction{1, 4}, target{1, 2};
/// std::cout << attn::mse_loss(prediction, target).loss;  // 2
/// @endcode
template <TensorLike P, TensorLike T>
auto mse_loss(const P& prediction, const T& target, const MseLossOptions& options = {}) {
  const detail::Input view(prediction, "mse_loss", "prediction");
  const detail::Input wanted(target, "mse_loss", "target");
  detail::check_mse_loss(view, wanted);
  Loss<kRankOf<P>> result{0, detail::empty<kRankOf<P>>(view.shape)};
  result.loss = detail::mse_loss(view, wanted, options, result.gradient.data());
  return result;
}

/// Computes the binary cross entropy of sigmoid(x) and its gradient: Σ weight · (-p t log σ(x) - (1 - t) log(1 -
/// σ(x))), divided by the number of terms for the mean. It is exact if σ is 0 or 1. The mean of no terms is NaN.
///
/// @param logits   x, any shape
/// @param target   t, the same shape, usually 0 or 1
/// @param options  weight of each term, p of positive answers (pos_weight), reduction
/// @return {loss, gradient}; the gradient with respect to the logits
/// @throws SHAPE if the shapes differ or a weight does not broadcast
/// @throws MEMORY if the gradient exceeds the memory limit
/// @see torch.nn.functional.binary_cross_entropy_with_logits
///
/// @code
/// xt::xtensor<float, 1> logits{0}, target{1};
/// std::cout << attn::binary_cross_entropy_with_logits(logits, target).loss;  // 0.693147
/// @endcode
template <TensorLike X, TensorLike T>
auto binary_cross_entropy_with_logits(const X& logits, const T& target, const BinaryCrossEntropyOptions& options = {}) {
  const detail::Input view(logits, "binary_cross_entropy_with_logits", "logits");
  const detail::Input wanted(target, "binary_cross_entropy_with_logits", "target");
  detail::check_binary_cross_entropy(view, wanted, options);
  Loss<kRankOf<X>> result{0, detail::empty<kRankOf<X>>(view.shape)};
  result.loss = detail::binary_cross_entropy(view, wanted, options, result.gradient.data());
  return result;
}

}  // namespace attn
