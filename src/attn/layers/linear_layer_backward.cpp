#include "attn/ops/linear_backward.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/layers/gradients.hpp"
#include "attn/layers/linear_layer.hpp"
#include "attn/layers/rows_with_gradient.hpp"
#include "attn/ops/row_sums.hpp"

namespace attn::detail {

void Linear::backward(const float* grad, const float* x, std::int64_t rows, const LinearGradientBuffers& to, Scratch& scratch) const {
  const Scratch::Frame frame(scratch);
  const auto count = static_cast<std::size_t>(rows), in = static_cast<std::size_t>(in_), out = static_cast<std::size_t>(out_);
  if (to.grad_x != nullptr) multiply_by_weight(float32()->weight(), out, in, grad, count, to.grad_x, scratch);
  if (to.grad_weight != nullptr) {
    if (rows == 0)
      fill_zeros(to.grad_weight, in * out);
    else
      multiply_transposed({grad, {rows, out_}}, {rows_with_gradient(grad, out, x, in, count, scratch), {rows, in_}}, to.grad_weight, scratch);
  }
  if (to.grad_bias != nullptr) {
    const kernels::KernelTable& kernel = kernels::best();
    add_up_rows(
        count, out, static_cast<double>(count * out), [&](std::size_t row, float* sum) noexcept { kernel.add_row(sum, grad + row * out, sum, out); },
        to.grad_bias, scratch);
  }
}

void Linear::backward(const float* grad, const float* x, std::int64_t rows, float* grad_x, const std::string& prefix, Gradients& gradients,
                      Scratch& scratch) const {
  backward(grad, x, rows, {grad_x, gradients.fill(prefix + "weight"), bias_ ? gradients.fill(prefix + "bias") : nullptr}, scratch);
}

}  // namespace attn::detail
