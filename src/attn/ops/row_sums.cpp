#include "attn/ops/row_sums.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {

void add_up_rows(std::size_t rows, std::size_t width, double cost, const AddRow& add, float* sum, Scratch& scratch) {
  const FloatEnvironment environment;
  const Scratch::Frame frame(scratch);
  const std::size_t parts = partial_sums(rows);
  float* const partial = scratch.take(parts, width);
  parallel::run(parts, parallel::workers_for(parts, cost), [&](std::size_t part, unsigned) noexcept {
    float* const to = partial + part * width;
    std::fill_n(to, width, 0.0F);
    const std::size_t first = part * kRowsOfASum, end = std::min(rows, first + kRowsOfASum);
    for (std::size_t row = first; row < end; ++row) add(row, to);
  });
  if (counts()) return;
  const kernels::KernelTable& kernel = kernels::best();
  for (std::size_t step = 1; step < parts; step *= 2)
    for (std::size_t part = 0; part + step < parts; part += 2 * step)
      kernel.add_row(partial + part * width, partial + (part + step) * width, partial + part * width, width);
  if (parts > 0)
    std::copy_n(partial, width, sum);
  else
    std::fill_n(sum, width, 0.0F);
}

}  // namespace attn::detail
