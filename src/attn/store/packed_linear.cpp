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
  panels_.set(weight);
  if (bias != nullptr) bias_.assign(bias, bias + out_features_);
}

template <class Weight>
std::size_t BasicPackedLinear<Weight>::panels() const {
  const std::size_t nr = kernels::best().nr;
  return (static_cast<std::size_t>(out_features_) + nr - 1) / nr;
}

template <class Weight>
void BasicPackedLinear<Weight>::forward(const detail::Rows& x, float* y, detail::Scratch& scratch, const parallel::TaskRef* finish_row) const {
  const Output output{this, y};
  forward({&output, 1}, x, scratch, finish_row);
}

template <class Weight>
void BasicPackedLinear<Weight>::forward(std::span<const Output> outputs, const detail::Rows& x, detail::Scratch& scratch,
                                        const parallel::TaskRef* finish_row) {
  const std::size_t m = x.count();
  std::size_t panels = 0;
  for (const Output& output : outputs) panels += output.linear->panels();
  if (m == 0 || panels == 0) return;
  const detail::Scratch::Frame frame(scratch);
  const typename detail::Panels<Weight>::Input prepared = detail::Panels<Weight>::prepare(x, scratch);
  const std::size_t nr = kernels::best().nr;
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
      const auto n = static_cast<std::size_t>(linear->out_features_);
      if (from < to)
        linear->panels_.multiply(prepared, i, end - i, (from - before) * nr, std::min((to - before) * nr, n), n,
                                 static_cast<std::size_t>(linear->in_features_), linear->bias_.empty() ? nullptr : linear->bias_.data(), y + i * n);
      before += linear->panels();
    }
    if (whole_rows && finish_row != nullptr)
      for (std::size_t row = i; row < end; ++row) (*finish_row)(row, worker);
  };
  const std::size_t tasks = row_blocks * column_blocks;
  const auto k = static_cast<double>(outputs.front().linear->in_features_);
  const double cost = static_cast<double>(m) * k * static_cast<double>(panels * nr);
  parallel::run(tasks, parallel::workers_for(tasks, cost), task);
  if (whole_rows || finish_row == nullptr) return;
  // Norms and activations cost about as much as 16 multiply-adds a number.
  parallel::run(m, parallel::workers_for(m, 16 * cost / std::max(k, 1.0)), *finish_row);
}

template <class Weight>
BasicPackedLinear<Weight> BasicPackedLinear<Weight>::transposed() const
  requires std::same_as<Weight, float>
{
  BasicPackedLinear other;
  other.in_features_ = out_features_;
  other.out_features_ = in_features_;
  other.panels_ = panels_.transposed(static_cast<std::size_t>(out_features_), static_cast<std::size_t>(in_features_));
  return other;
}

template <class Weight>
void BasicPackedLinear<Weight>::unpack_weight(float* weight) const {
  panels_.unpack(weight, static_cast<std::size_t>(out_features_), static_cast<std::size_t>(in_features_));
}

template <class Weight>
void BasicPackedLinear<Weight>::allocate_weight(std::int64_t out_features, std::int64_t in_features) {
  panels_.allocate(static_cast<std::size_t>(out_features), static_cast<std::size_t>(in_features));
  in_features_ = in_features;
  out_features_ = out_features;
}

template <class Weight>
void BasicPackedLinear<Weight>::set_weight_rows(std::size_t first, std::span<const float> rows) {
  panels_.set_rows(first, rows, static_cast<std::size_t>(in_features_));
}

template class BasicPackedLinear<float>;
template class BasicPackedLinear<std::int8_t>;

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
