#include "attn/ops/linear_backward.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/memory/packed_linear.hpp"
#include "attn/ops/row_sums.hpp"

namespace attn::detail {

void check_linear_backward(const TensorView& grad, const TensorView& x, const TensorView& weight) {
  constexpr std::string_view kOp = "linear_backward";
  if (weight.shape.rank() != 2) fail(ErrorCode::shape, kOp, "weight", {"(out,in)"}, {weight.shape});
  const std::int64_t in = weight.shape[1], out = weight.shape[0];
  if (x.shape.rank() == 0 || x.shape.back(0) != in) fail(ErrorCode::shape, kOp, "x", {"(..,", in, ")"}, {x.shape});
  Shape y = x.shape;
  y[y.rank() - 1] = out;
  if (grad.shape != y) fail(ErrorCode::shape, kOp, "grad", {y}, {grad.shape});
  check_memory(kOp, [&] {
    const LinearGradientBuffers to{counted(x.shape, "grad_x"), counted(weight.shape, "grad_weight"), counted({out}, "grad_bias")};
    linear_backward(grad, x, weight, to);
  });
}

void linear_backward(const TensorView& grad, const TensorView& x, const TensorView& weight, const LinearGradientBuffers& to) {
  Scratch scratch;
  const Rows grads(grad);
  const std::int64_t in = weight.shape[1], out = weight.shape[0];
  const std::size_t rows = grads.count();
  if (to.grad_x != nullptr) {
    const TensorView transposed(weight.data, {in, out}, {weight.strides[1], weight.strides[0]});
    if (in > 0) multiply(transposed, nullptr, grads, to.grad_x, scratch);
  }
  if (to.grad_weight != nullptr) {
    const Scratch::Frame frame(scratch);
    const auto matrix = [&](const TensorView& tensor, std::int64_t width) {
      return TensorView(without_gaps(tensor, scratch), {static_cast<std::int64_t>(rows), width});
    };
    if (rows == 0 || in == 0 || out == 0)
      fill_zeros(to.grad_weight, static_cast<std::size_t>(in * out));
    else
      multiply_transposed(matrix(grad, out), matrix(x, in), to.grad_weight, scratch);
  }
  if (to.grad_bias != nullptr) {
    const kernels::KernelTable& kernel = kernels::best();
    const auto width = static_cast<std::size_t>(out);
    add_up_rows(
        rows, width, static_cast<double>(rows) * static_cast<double>(out),
        [&](std::size_t row, float* sum) noexcept { kernel.add_row(sum, grads[row], sum, width); }, to.grad_bias, scratch);
  }
}

}  // namespace attn::detail
