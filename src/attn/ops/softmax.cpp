#include "attn/ops/softmax.hpp"

#include "attn/kernels/kernels.hpp"
#include "attn/ops/slices.hpp"

namespace attn::detail {

std::size_t check_softmax(const TensorView& x, std::int64_t dim) {
  const auto rank = static_cast<std::int64_t>(x.shape.rank());
  if (rank == 0) fail(ErrorCode::shape, "softmax", "x", {"a rank of at least 1"}, {x.shape});
  if (dim < -rank || dim >= rank) fail(ErrorCode::out_of_range, "softmax", "dim", {"a number from ", -rank, " to ", rank - 1}, {dim});
  const auto axis = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
  check_memory("softmax", [&] { softmax(x, axis, counted(x.shape, "the result")); });
  return axis;
}

void softmax(const TensorView& x, std::size_t dim, float* y) {
  const kernels::KernelTable& kernel = kernels::best();
  constexpr double kExpCost = 16;  // multiply-adds
  for_each_slice(std::array{x}, dim, kExpCost, y,
                 [&](const std::array<const float*, 1>& from, float* to, std::size_t n) { kernel.softmax_row(from[0], to, n); });
}

}  // namespace attn::detail
