#include "attn/ops/softmax.hpp"

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/aligned.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {

std::size_t check_softmax(const TensorView& x, std::int64_t dim) {
  const auto rank = static_cast<std::int64_t>(x.shape.rank());
  if (rank == 0) fail(ErrorCode::shape, "softmax", "x", {"a rank of at least 1"}, {x.shape});
  if (dim < -rank || dim >= rank) fail(ErrorCode::out_of_range, "softmax", "dim", {"a number from ", -rank, " to ", rank - 1}, {dim});
  MemoryEstimate memory("softmax");
  memory.add("the result", x.shape);
  memory.check();
  return static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
}

void softmax(const TensorView& x, std::size_t dim, float* y) {
  const kernels::KernelTable& kernel = kernels::best();
  const auto length = static_cast<std::size_t>(x.shape[dim]);
  std::size_t outer = 1, inner = 1;  // x is (outer, length, inner)
  for (std::size_t axis = 0; axis < dim; ++axis) outer *= static_cast<std::size_t>(x.shape[axis]);
  for (std::size_t axis = dim + 1; axis < x.shape.rank(); ++axis) inner *= static_cast<std::size_t>(x.shape[axis]);
  const std::size_t slices = outer * inner;
  if (slices == 0 || length == 0) return;

  // An exponential costs as much as some 16 multiply-adds.
  const unsigned workers = parallel::workers_for(slices, 16.0 * static_cast<double>(slices) * static_cast<double>(length));
  const Rows rows(x);
  if (dim + 1 == x.shape.rank()) {
    parallel::run(slices, workers, [&](std::size_t slice, unsigned) noexcept { kernel.softmax_row(rows[slice], y + slice * length, length); });
    return;
  }
  AlignedFloats scratch(workers * length);
  parallel::run(slices, workers, [&](std::size_t slice, unsigned worker) noexcept {
    const std::size_t start = slice / inner * length * inner + slice % inner;
    float* row = scratch.data() + worker * length;
    const std::size_t first = start / rows.width(), column = start % rows.width();  // inner is a multiple of the width
    for (std::size_t i = 0; i < length; ++i) row[i] = rows[first + i * (inner / rows.width())][column];
    kernel.softmax_row(row, row, length);
    for (std::size_t i = 0; i < length; ++i) y[start + i * inner] = row[i];
  });
}

}  // namespace attn::detail
