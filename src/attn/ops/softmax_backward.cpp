#include "attn/ops/softmax_backward.hpp"

#include "attn/kernels/backward.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/aligned.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {

std::size_t check_softmax_backward(const TensorView& grad, const TensorView& y, std::int64_t dim) {
  const char* op = "softmax_backward";
  const auto rank = static_cast<std::int64_t>(y.shape.rank());
  if (rank == 0) fail(ErrorCode::shape, op, "y", {"a rank of at least 1"}, {y.shape});
  if (grad.shape != y.shape) fail(ErrorCode::shape, op, "grad", {y.shape}, {grad.shape});
  if (dim < -rank || dim >= rank) fail(ErrorCode::out_of_range, op, "dim", {"a number from ", -rank, " to ", rank - 1}, {dim});
  const auto axis = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
  MemoryEstimate memory(op);
  memory.add("the result", y.shape);
  memory.add("some slices", {2 * static_cast<std::int64_t>(num_threads()), y.shape[axis]});
  memory.check();
  return axis;
}

void softmax_backward(const TensorView& grad, const TensorView& y, std::size_t dim, float* grad_x) {
  const kernels::BackwardTable& kernel = kernels::best_backward();
  const auto length = static_cast<std::size_t>(y.shape[dim]);
  std::size_t outer = 1, inner = 1;  // y is (outer, length, inner)
  for (std::size_t axis = 0; axis < dim; ++axis) outer *= static_cast<std::size_t>(y.shape[axis]);
  for (std::size_t axis = dim + 1; axis < y.shape.rank(); ++axis) inner *= static_cast<std::size_t>(y.shape[axis]);
  const std::size_t slices = outer * inner;
  if (slices == 0 || length == 0) return;

  const unsigned workers = parallel::workers_for(slices, 4.0 * static_cast<double>(slices) * static_cast<double>(length));
  const Rows grads(grad), rows(y);
  if (dim + 1 == y.shape.rank()) {
    parallel::run(slices, workers, [&](std::size_t slice, unsigned) noexcept {
      kernel.softmax_backward_row(grads[slice], rows[slice], grad_x + slice * length, length);
    });
    return;
  }
  AlignedFloats scratch(2 * workers * length);
  parallel::run(slices, workers, [&](std::size_t slice, unsigned worker) noexcept {
    const std::size_t start = slice / inner * length * inner + slice % inner;
    float* const dy = scratch.data() + 2 * worker * length;
    float* const values = dy + length;
    const std::size_t first = start / rows.width(), column = start % rows.width();  // inner is a multiple of the width
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t row = first + i * (inner / rows.width());
      dy[i] = grads[row][column];
      values[i] = rows[row][column];
    }
    kernel.softmax_backward_row(dy, values, dy, length);
    for (std::size_t i = 0; i < length; ++i) grad_x[start + i * inner] = dy[i];
  });
}

}  // namespace attn::detail
