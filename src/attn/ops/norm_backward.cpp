#include "attn/ops/norm_backward.hpp"

#include <algorithm>
#include <cmath>

#include "attn/kernels/backward.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/ops/row_sums.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {
namespace {

void check_norm_backward(const char* op, const TensorView& grad, const TensorView& x, const TensorView* weight, float eps) {
  if (x.shape.rank() == 0) fail(ErrorCode::shape, op, "x", {"a rank of at least 1"}, {x.shape});
  const std::int64_t width = x.shape.back(0);
  if (weight != nullptr && weight->shape != Shape{width}) fail(ErrorCode::shape, op, "weight", {Shape{width}}, {weight->shape});
  if (grad.shape != x.shape) fail(ErrorCode::shape, op, "grad", {x.shape}, {grad.shape});
  if (!(eps > 0) || std::isinf(eps)) fail(ErrorCode::config, op, "eps", {"a finite number above 0"}, {eps});
}

NormGradientBuffers counted_gradients(const TensorView& x, const TensorView* weight, bool has_bias) {
  const auto of_parameter = [&](const char* name) { return counted(weight->shape, name); };
  return {counted(x.shape, "grad_x"), weight != nullptr ? of_parameter("grad_weight") : nullptr,
          weight != nullptr && has_bias ? of_parameter("grad_bias") : nullptr};
}

template <class Row>
void for_each_row(const TensorView& grad, const TensorView& x, const TensorView* weight, const NormGradientBuffers& to, Row row) {
  Scratch scratch;
  const auto n = static_cast<std::size_t>(x.shape.back(0));
  const Rows grads(grad), rows(x);
  float* const ones = scratch.take(n);  // multiplying by 1 is exact
  if (!counts()) std::fill_n(ones, n, 1.0F);
  const float* const w = weight != nullptr ? weight->data : ones;
  float* const sums = scratch.take(2 * n);  // of the weight, then of the bias
  // Each value is read seven times; a read costs about two multiply-adds.
  const double cost = 16.0 * static_cast<double>(rows.count()) * static_cast<double>(n);
  add_up_rows(
      n > 0 ? rows.count() : 0, 2 * n, cost,
      [&](std::size_t i, float* sum) noexcept { row(grads[i], rows[i], w, to.grad_x + i * n, sum, sum + n, n); }, sums, scratch);
  if (counts()) return;
  if (to.grad_weight != nullptr) std::copy_n(sums, n, to.grad_weight);
  if (to.grad_bias != nullptr) std::copy_n(sums + n, n, to.grad_bias);
}

}  // namespace

void check_layer_norm_backward(const TensorView& grad, const TensorView& x, const TensorView* weight, float eps) {
  constexpr const char* kOp = "layer_norm_backward";
  check_norm_backward(kOp, grad, x, weight, eps);
  check_memory(kOp, [&] { layer_norm_backward(grad, x, weight, eps, counted_gradients(x, weight, true)); });
}

void layer_norm_backward(const TensorView& grad, const TensorView& x, const TensorView* weight, float eps, const NormGradientBuffers& to) {
  const kernels::BackwardTable& kernel = kernels::best_backward();
  for_each_row(grad, x, weight, to,
               [&](const float* dy, const float* from, const float* w, float* dx, float* grad_weight, float* grad_bias, std::size_t n) {
                 kernel.layer_norm_backward_row(dy, from, w, eps, dx, grad_weight, grad_bias, n);
               });
}

void check_rms_norm_backward(const TensorView& grad, const TensorView& x, const TensorView* weight, float eps) {
  constexpr const char* kOp = "rms_norm_backward";
  check_norm_backward(kOp, grad, x, weight, eps);
  check_memory(kOp, [&] { rms_norm_backward(grad, x, weight, eps, counted_gradients(x, weight, false)); });
}

void rms_norm_backward(const TensorView& grad, const TensorView& x, const TensorView* weight, float eps, const NormGradientBuffers& to) {
  const kernels::BackwardTable& kernel = kernels::best_backward();
  for_each_row(grad, x, weight, to, [&](const float* dy, const float* from, const float* w, float* dx, float* grad_weight, float*, std::size_t n) {
    kernel.rms_norm_backward_row(dy, from, w, eps, dx, grad_weight, n);
  });
}

}  // namespace attn::detail
