#include "attn/ops/activation.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/memory/scratch.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/tensor/rows.hpp"

namespace attn::detail {

Shape check_activation(const TensorView& x) {
  check_memory("activation", [&] { counted(x.shape, "the result"); });
  return x.shape;
}

void activation(const TensorView& x, Activation name, float* y) {
  const kernels::KernelTable& kernel = kernels::best();
  const Rows rows(x);
  const std::size_t size = static_cast<std::size_t>(checked_size(x.shape, "activation", "x")), all = rows.count();
  if (size == 0) return;
  // A task fits into the L1 cache together with its result.
  constexpr std::size_t kBlock = 2048;
  const std::size_t together = rows.run(0, all).step == static_cast<std::ptrdiff_t>(rows.width()) ? rows.run(0, all).count : 1;
  const std::size_t length = together * rows.width(), blocks = (length + kBlock - 1) / kBlock, tasks = size / length * blocks;
  // An exponential costs about 16 multiply-adds.
  parallel::run(tasks, parallel::workers_for(tasks, 16.0 * static_cast<double>(size)), [&](std::size_t task, unsigned) noexcept {
    const std::size_t part = task / blocks, first = task % blocks * kBlock;
    kernel.activation_row(name, rows[part * together] + first, y + part * length + first, std::min(kBlock, length - first));
  });
}

}  // namespace attn::detail
