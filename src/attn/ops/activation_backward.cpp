#include "attn/ops/activation_backward.hpp"

#include <algorithm>

#include "attn/kernels/backward.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {

void check_activation_backward(const TensorView& grad, const TensorView& x) {
  if (grad.shape != x.shape) fail(ErrorCode::shape, "activation_backward", "grad", {x.shape}, {grad.shape});
  check_memory("activation_backward", [&] { counted(x.shape, "the result"); });
}

void activation_backward(const TensorView& grad, const TensorView& x, Activation name, float* grad_x) {
  const kernels::BackwardTable& kernel = kernels::best_backward();
  const Rows grads(grad), rows(x);
  const std::size_t width = rows.width(), count = rows.count();
  if (width == 0 || count == 0) return;
  // A task fits into the L1 cache: short rows, or a part of a long one.
  constexpr std::size_t kBlock = 2048;
  const std::size_t together = std::max<std::size_t>(1, kBlock / width), parts = (width + kBlock - 1) / kBlock;
  const std::size_t tasks = (count + together - 1) / together * parts;
  // At most two exponentials of about 16 multiply-adds.
  const double cost = 32.0 * static_cast<double>(count) * static_cast<double>(width);
  parallel::run(tasks, parallel::workers_for(tasks, cost), [&](std::size_t task, unsigned) noexcept {
    const std::size_t first = task / parts * together, end = std::min(count, first + together), column = task % parts * kBlock;
    for (std::size_t row = first; row < end; ++row)
      kernel.activation_backward_row(name, grads[row] + column, rows[row] + column, grad_x + row * width + column, std::min(kBlock, width - column));
  });
}

}  // namespace attn::detail
