#include "attn/memory/packed_linear.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"

namespace attn {

template <class Weight>
BasicPackedLinear<Weight>::BasicPackedLinear(const float* weight, const float* bias, std::int64_t out_features, std::int64_t in_features)
    : in_features_(in_features), out_features_(out_features) {
  if constexpr (std::same_as<Weight, float>) {
    panels_.set(TensorView(weight, {out_features, in_features}));
  } else {
    allocate_weight(out_features, in_features);
    set_weight_rows(0, {weight, static_cast<std::size_t>(out_features * in_features)});
  }
  if (bias != nullptr) bias_.assign(bias, bias + out_features_);
}

template <class Weight>
void BasicPackedLinear<Weight>::forward(const detail::Rows& x, float* y, detail::Scratch& scratch, const parallel::TaskRef* finish_row) const {
  const detail::PanelProduct<Weight> all = product(y);
  detail::multiply<Weight>({&all, 1}, x, scratch, finish_row);
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

template <class Weight>
void multiply(std::span<const PanelProduct<Weight>> products, const Rows& x, Scratch& scratch, const parallel::TaskRef* finish_row) {
  const std::size_t m = x.count(), k = x.width(), nr = kernels::best().nr;
  const auto panels_of = [nr](const PanelProduct<Weight>& product) { return (product.rows + nr - 1) / nr; };
  std::size_t panels = 0;
  for (const PanelProduct<Weight>& product : products) panels += panels_of(product);
  if (m == 0 || panels == 0) return;
  const Scratch::Frame frame(scratch);
  const RowBlocks blocks(m);
  const typename Panels<Weight>::Input prepared = Panels<Weight>::prepare(x, blocks, scratch);
  // With few blocks of rows, threads share the columns as well.
  const std::size_t row_blocks = blocks.count;
  const unsigned threads = num_threads();
  const std::size_t column_blocks = threads == 1 ? 1 : std::min(panels, (4 * threads + row_blocks - 1) / row_blocks);
  const bool whole_rows = column_blocks == 1;
  const auto task = [&](std::size_t index, unsigned worker) noexcept {
    const std::size_t block = index / column_blocks, part = index % column_blocks;
    const std::size_t i = blocks.begin(block), end = blocks.begin(block + 1);
    const std::size_t first = part_begin(panels, part, column_blocks), last = part_begin(panels, part + 1, column_blocks);
    std::size_t before = 0;
    for (const PanelProduct<Weight>& product : products) {
      const std::size_t from = std::max(first, before), to = std::min(last, before + panels_of(product)), n = product.rows;
      if (from < to)
        product.weight->multiply(prepared, i, end - i, (from - before) * nr, std::min((to - before) * nr, n), n, k, product.bias, product.y + i * n);
      before += panels_of(product);
    }
    if (whole_rows && finish_row != nullptr)
      for (std::size_t row = i; row < end; ++row) (*finish_row)(row, worker);
  };
  const std::size_t tasks = row_blocks * column_blocks;
  const double cost = static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(panels * nr);
  parallel::run(tasks, parallel::workers_for(tasks, cost), task);
  if (whole_rows || finish_row == nullptr) return;
  // Norms and activations cost about 16 multiply-adds per number.
  parallel::run(m, parallel::workers_for(m, 16 * cost / std::max(static_cast<double>(k), 1.0)), *finish_row);
}

template void multiply<float>(std::span<const PanelProduct<float>>, const Rows&, Scratch&, const parallel::TaskRef*);
template void multiply<std::int8_t>(std::span<const PanelProduct<std::int8_t>>, const Rows&, Scratch&, const parallel::TaskRef*);

void multiply(const TensorView& weight, const float* bias, const Rows& x, float* y, Scratch& scratch) {
  Panels<float> panels;
  panels.set(weight);
  const PanelProduct<float> product{&panels, static_cast<std::size_t>(weight.shape[0]), bias, y};
  multiply<float>({&product, 1}, x, scratch);
}

void multiply_by_weight(const Panels<float>& weight, std::size_t out, std::size_t in, const float* y, std::size_t rows, float* x, Scratch& scratch) {
  if (rows == 0 || in == 0) return;
  // The transpose of a task stays in the L2 cache while all rows are multiplied by it.
  constexpr std::size_t kNumbers = std::size_t{1} << 16;
  const kernels::KernelTable& kernel = kernels::best();
  const std::size_t nr = kernel.nr, panels = (in + nr - 1) / nr, panel_size = kernels::panel_size(nr, out);
  const std::size_t most = std::max<std::size_t>(1, kNumbers / std::max<std::size_t>(1, panel_size));
  const std::size_t tasks = std::min(panels, std::max<std::size_t>((panels + most - 1) / most, num_threads() > 1 ? 4 * num_threads() : 1));
  const unsigned workers = parallel::workers_for(tasks, static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out));
  const Scratch::Frame frame(scratch);
  const std::size_t size = (panels + tasks - 1) / tasks * panel_size;
  float* const buffers = scratch.take(workers, size);
  const RowBlocks blocks(rows);
  parallel::run(tasks, workers, [&](std::size_t task, unsigned worker) noexcept {
    float* const buffer = buffers + worker * size;
    const std::size_t first = part_begin(panels, task, tasks) * nr, end = std::min(part_begin(panels, task + 1, tasks) * nr, in);
    weight.transposed(out, in, first, end, buffer);
    for (std::size_t block = 0; block < blocks.count; ++block) {
      const std::size_t i = blocks.begin(block);
      kernel.gemm({.a = y + i * out,
                   .lda = static_cast<std::ptrdiff_t>(out),
                   .panels = buffer,
                   .panel_stride = panel_size,
                   .c = x + i * in + first,
                   .ldc = static_cast<std::ptrdiff_t>(in),
                   .m = blocks.begin(block + 1) - i,
                   .n = end - first,
                   .k = out});
    }
  });
}

void multiply_transposed(const TensorView& y, const TensorView& x, float* product, Scratch& scratch) {
  const auto rows = static_cast<std::size_t>(y.shape[0]), n = static_cast<std::size_t>(y.shape[1]), k = static_cast<std::size_t>(x.shape[1]);
  if (n == 0 || k == 0) return;
  const kernels::KernelTable& kernel = kernels::best();
  const std::size_t nr = kernel.nr, panels = (k + nr - 1) / nr, panel_size = kernels::panel_size(nr, rows);
  const double cost = static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k);
  const Scratch::Frame frame(scratch);
  float* const packed = scratch.take(panels, panel_size);
  parallel::run(panels, parallel::workers_for(panels, 4.0 * static_cast<double>(rows) * static_cast<double>(k)),
                [&](std::size_t panel, unsigned) noexcept {
                  const std::size_t first = panel * nr;
                  kernels::pack(x.data + static_cast<std::ptrdiff_t>(first) * x.strides[1], x.strides[1], x.strides[0], std::min(nr, k - first), rows,
                                nr, packed + panel * panel_size);
                });
  // Transposed columns of y stay in or near the L1 cache while x is multiplied by them.
  const std::size_t most = std::min<std::size_t>(48, n), tasks = (n + most - 1) / most;
  const unsigned workers = parallel::workers_for(tasks, cost);
  float* const buffers = scratch.take(workers * most, rows);
  parallel::run(tasks, workers, [&](std::size_t task, unsigned worker) noexcept {
    float* const columns = buffers + worker * most * rows;
    const std::size_t first = task * most, count = std::min(most, n - first);
    kernels::transpose(y.data + first, y.strides[0], rows, count, columns, rows);
    kernel.gemm({.a = columns,
                 .lda = static_cast<std::ptrdiff_t>(rows),
                 .panels = packed,
                 .panel_stride = panel_size,
                 .c = product + first * k,
                 .ldc = static_cast<std::ptrdiff_t>(k),
                 .m = count,
                 .n = k,
                 .k = rows});
  });
}

}  // namespace detail
}  // namespace attn
