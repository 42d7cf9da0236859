#include "attn/ops/activation.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/thread_pool.hpp"

namespace attn::detail {

Shape check_activation(const TensorView& x) {
  MemoryEstimate memory("activation");
  memory.add("the result", x.shape);
  memory.check();
  return x.shape;
}

void activation(const TensorView& x, Activation name, float* y) {
  const kernels::KernelTable& kernel = kernels::best();
  const auto size = static_cast<std::size_t>(checked_size(x.shape, "activation", "x"));
  // A task is what fits into the first-level cache together with its result.
  constexpr std::size_t kBlock = 2048;
  const std::size_t tasks = (size + kBlock - 1) / kBlock;
  // As softmax counts: an exponential costs as much as some 16 multiply-adds.
  parallel::run(tasks, parallel::workers_for(tasks, 16.0 * static_cast<double>(size)), [&](std::size_t task, unsigned) {
    const std::size_t first = task * kBlock;
    kernel.activation_row(name, x.data + first, y + first, std::min(kBlock, size - first));
  });
}

void activation_row(Activation name, const float* x, float* y, std::size_t n) { kernels::best().activation_row(name, x, y, n); }

}  // namespace attn::detail
