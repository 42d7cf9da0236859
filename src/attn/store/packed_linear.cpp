#include "attn/store/packed_linear.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"

namespace attn {

template <class Weight>
BasicPackedLinear<Weight>::BasicPackedLinear(const float* weight, const float* bias, std::int64_t out_features, std::int64_t in_features)
    : BasicPackedLinear(TensorView(weight, {out_features, in_features}), bias) {}

template <class Weight>
BasicPackedLinear<Weight>::BasicPackedLinear(const TensorView& weight, const float* bias)
    : in_features_(weight.shape[1]), out_features_(weight.shape[0]) {
  const auto n = static_cast<std::size_t>(out_features_), k = static_cast<std::size_t>(in_features_);
  const std::size_t nr = kernels::best().nr;
  panels_ = AlignedFloats(kernels::packed_size(nr, n, k));
  kernels::pack(weight.data, weight.strides[0], weight.strides[1], n, k, nr, panels_.data());
  if (bias != nullptr) bias_.assign(bias, bias + n);
}

template <class Weight>
std::size_t BasicPackedLinear<Weight>::panels() const {
  const std::size_t nr = kernels::best().nr;
  return (static_cast<std::size_t>(out_features_) + nr - 1) / nr;
}

template <class Weight>
void BasicPackedLinear<Weight>::multiply(const detail::Rows& x, std::size_t i, std::size_t rows, std::size_t first, std::size_t last,
                                         float* y) const {
  const kernels::KernelTable& kernel = kernels::best();
  const auto n = static_cast<std::size_t>(out_features_), k = static_cast<std::size_t>(in_features_);
  const std::size_t j = first * kernel.nr;
  for (const std::size_t end = i + rows; i < end;) {
    const detail::Rows::Run run = x.run(i, end - i);
    kernel.gemm({.a = run.data,
                 .lda = run.step,
                 .panels = panels_.data() + first * kernels::panel_size(kernel.nr, k),
                 .panel_stride = kernels::panel_size(kernel.nr, k),
                 .bias = bias_.empty() ? nullptr : bias_.data() + j,
                 .c = y + i * n + j,
                 .ldc = static_cast<std::ptrdiff_t>(n),
                 .m = run.count,
                 .n = std::min(last * kernel.nr, n) - j,
                 .k = k});
    i += run.count;
  }
}

template <class Weight>
void BasicPackedLinear<Weight>::forward(const detail::Rows& x, float* y, detail::Scratch& scratch, const parallel::TaskRef* finish_row) const {
  const Output output{this, y};
  forward({&output, 1}, x, scratch, finish_row);
}

template <class Weight>
void BasicPackedLinear<Weight>::forward(std::span<const Output> outputs, const detail::Rows& x, [[maybe_unused]] detail::Scratch& scratch,
                                        const parallel::TaskRef* finish_row) {
  const std::size_t m = x.count();
  std::size_t panels = 0;
  for (const Output& output : outputs) panels += output.linear->panels();
  if (m == 0 || panels == 0) return;
  // One task is a block of rows by a block of columns. While a panel of W is in the first-level cache it serves all rows
  // of a block; 96 of them make it worth its way from memory. Threads get columns where there are few such blocks.
  constexpr std::size_t kRowBlock = 96;
  const std::size_t row_blocks = (m + kRowBlock - 1) / kRowBlock;
  const unsigned threads = num_threads();
  const std::size_t column_blocks = threads == 1 ? 1 : std::min(panels, (4 * threads + row_blocks - 1) / row_blocks);
  const bool whole_rows = column_blocks == 1;
  const auto task = [&](std::size_t index, unsigned worker) noexcept {
    const std::size_t block = index / column_blocks, part = index % column_blocks;
    const std::size_t i = m * block / row_blocks, end = m * (block + 1) / row_blocks;
    const std::size_t first = panels * part / column_blocks, last = panels * (part + 1) / column_blocks;
    std::size_t before = 0;  // panels of the maps before
    for (const auto& [linear, y] : outputs) {
      const std::size_t from = std::max(first, before), to = std::min(last, before + linear->panels());
      if (from < to) linear->multiply(x, i, end - i, from - before, to - before, y);
      before += linear->panels();
    }
    if (whole_rows && finish_row != nullptr)
      for (std::size_t row = i; row < end; ++row) (*finish_row)(row, worker);
  };
  const std::size_t tasks = row_blocks * column_blocks;
  const auto k = static_cast<double>(outputs.front().linear->in_features_);
  const double cost = static_cast<double>(m) * k * static_cast<double>(panels * kernels::best().nr);
  parallel::run(tasks, parallel::workers_for(tasks, cost), task);
  if (whole_rows || finish_row == nullptr) return;
  // Norms and activations cost about as much as 16 multiply-adds a number.
  parallel::run(m, parallel::workers_for(m, 16 * cost / std::max(k, 1.0)), *finish_row);
}

template <class Weight>
BasicPackedLinear<Weight> BasicPackedLinear<Weight>::transposed() const {
  BasicPackedLinear other;
  other.in_features_ = out_features_;
  other.out_features_ = in_features_;
  const auto n = static_cast<std::size_t>(out_features_), k = static_cast<std::size_t>(in_features_);
  const std::size_t nr = kernels::best().nr;
  other.panels_ = AlignedFloats(kernels::packed_size(nr, k, n));
  kernels::pack_transposed(panels_.data(), n, k, nr, other.panels_.data());
  return other;
}

template <class Weight>
void BasicPackedLinear<Weight>::unpack_weight(float* weight) const {
  kernels::unpack(panels_.data(), static_cast<std::size_t>(out_features_), static_cast<std::size_t>(in_features_), kernels::best().nr, weight);
}

template <class Weight>
void BasicPackedLinear<Weight>::allocate_weight(std::int64_t out_features, std::int64_t in_features) {
  panels_ = AlignedFloats(kernels::packed_size(kernels::best().nr, static_cast<std::size_t>(out_features), static_cast<std::size_t>(in_features)));
  std::fill_n(panels_.data(), panels_.size(), 0.0F);
  in_features_ = in_features;
  out_features_ = out_features;
}

template <class Weight>
void BasicPackedLinear<Weight>::set_weight_rows(std::size_t first, std::span<const float> rows) {
  const auto k = static_cast<std::size_t>(in_features_);
  for (std::size_t at = 0; at < rows.size(); at += k) kernels::pack_row(rows.data() + at, first++, k, kernels::best().nr, panels_.data());
}

template class BasicPackedLinear<float>;

namespace detail {

void multiply_transposed(const TensorView& y, const TensorView& x, float* product, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const auto rows = static_cast<std::size_t>(y.shape[0]), n = static_cast<std::size_t>(y.shape[1]);
  float* const transposed = scratch.take(n * rows);
  kernels::transpose(y.data, y.strides[0], rows, n, transposed);
  const PackedLinear columns(TensorView(x.data, {x.shape[1], x.shape[0]}, {x.strides[1], x.strides[0]}), nullptr);
  columns.forward(Rows(transposed, n, rows), product, scratch);
}

}  // namespace detail
}  // namespace attn
