#include "attn/ops/linear.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/parallel/thread_pool.hpp"

namespace attn {

PackedLinear::PackedLinear(const float* weight, const float* bias, std::int64_t out_features, std::int64_t in_features)
    : in_features_(in_features), out_features_(out_features) {
  const auto n = static_cast<std::size_t>(out_features), k = static_cast<std::size_t>(in_features);
  const std::size_t nr = kernels::best().nr;
  panels_ = AlignedFloats(kernels::packed_size(nr, n, k));
  kernels::pack(weight, static_cast<std::ptrdiff_t>(k), 1, bias, n, k, nr, panels_.data());
}

void PackedLinear::forward(const float* x, std::int64_t rows, float* y) const {
  const kernels::KernelTable& kernel = kernels::best();
  const auto m = static_cast<std::size_t>(rows), n = static_cast<std::size_t>(out_features_), k = static_cast<std::size_t>(in_features_);
  if (m == 0 || n == 0) return;
  // One task is a block of rows by a block of columns. 48 rows of A stay in the second-level cache while a panel of W
  // in the first serves all of them; few rows are shared out by columns.
  const std::size_t row_block = std::min<std::size_t>(m, 48), row_blocks = (m + row_block - 1) / row_block;
  const std::size_t panels = (n + kernel.nr - 1) / kernel.nr;
  const std::size_t column_blocks = row_blocks >= 2 * num_threads() ? 1 : std::min<std::size_t>(panels, 2 * num_threads());
  const auto task = [&](std::size_t index, unsigned) {
    const std::size_t i = index / column_blocks * row_block, block = index % column_blocks;
    const std::size_t first = panels * block / column_blocks, last = panels * (block + 1) / column_blocks;
    const std::size_t j = first * kernel.nr;
    kernel.gemm({.a = x + i * k,
                 .lda = static_cast<std::ptrdiff_t>(k),
                 .panels = panels_.data() + first * kernels::panel_size(kernel.nr, k),
                 .panel_stride = kernels::panel_size(kernel.nr, k),
                 .c = y + i * n + j,
                 .ldc = static_cast<std::ptrdiff_t>(n),
                 .m = std::min(row_block, m - i),
                 .n = std::min(last * kernel.nr, n) - j,
                 .k = k});
  };
  const std::size_t tasks = row_blocks * column_blocks;
  const double cost = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  parallel::run(tasks, parallel::workers_for(tasks, cost), task);
}

void PackedLinear::unpack(float* weight, float* bias) const {
  kernels::unpack(panels_.data(), static_cast<std::size_t>(out_features_), static_cast<std::size_t>(in_features_), kernels::best().nr, weight, bias);
}

namespace detail {

Shape check_linear(const TensorView& x, const TensorView& weight, const TensorView* bias) {
  if (weight.shape.rank() != 2) fail(ErrorCode::shape, "linear", "weight", {"(out,in)"}, {weight.shape});
  const std::int64_t in = weight.shape[1], out = weight.shape[0];
  if (x.shape.rank() == 0 || x.shape.back(0) != in) fail(ErrorCode::shape, "linear", "x", {"(..,", in, ")"}, {x.shape});
  if (bias != nullptr && bias->shape != Shape{out}) fail(ErrorCode::shape, "linear", "bias", {Shape{out}}, {bias->shape});
  Shape y = x.shape;
  y[y.rank() - 1] = out;
  MemoryEstimate memory("linear");
  memory.add("the result", y);
  memory.add("the packed weight", {out + static_cast<std::int64_t>(kernels::best().nr), in + 1});
  memory.check();
  return y;
}

void linear(const TensorView& x, const TensorView& weight, const TensorView* bias, float* y) {
  std::uint64_t rows = 1;  // unsigned: with a 0 among them the others may overflow
  for (std::size_t axis = 0; axis + 1 < x.shape.rank(); ++axis) rows *= static_cast<std::uint64_t>(x.shape[axis]);
  PackedLinear(weight.data, bias != nullptr ? bias->data : nullptr, weight.shape[0], weight.shape[1])
      .forward(x.data, static_cast<std::int64_t>(rows), y);
}

}  // namespace detail
}  // namespace attn
