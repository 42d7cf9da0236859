#include "attn/ops/softmax_backward.hpp"

#include "attn/kernels/backward.hpp"
#include "attn/ops/slices.hpp"

namespace attn::detail {

std::size_t check_softmax_backward(const TensorView& grad, const TensorView& y, std::int64_t dim) {
  const char* op = "softmax_backward";
  const auto rank = static_cast<std::int64_t>(y.shape.rank());
  if (rank == 0) fail(ErrorCode::shape, op, "y", {"a rank of at least 1"}, {y.shape});
  if (grad.shape != y.shape) fail(ErrorCode::shape, op, "grad", {y.shape}, {grad.shape});
  if (dim < -rank || dim >= rank) fail(ErrorCode::out_of_range, op, "dim", {"a number from ", -rank, " to ", rank - 1}, {dim});
  const auto axis = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
  check_memory(op, [&] { softmax_backward(grad, y, axis, counted(y.shape, "the result")); });
  return axis;
}

void softmax_backward(const TensorView& grad, const TensorView& y, std::size_t dim, float* grad_x) {
  const kernels::BackwardTable& kernel = kernels::best_backward();
  for_each_slice(std::array{grad, y}, dim, 4, grad_x,
                 [&](const std::array<const float*, 2>& from, float* to, std::size_t n) { kernel.softmax_backward_row(from[0], from[1], to, n); });
}

}  // namespace attn::detail
