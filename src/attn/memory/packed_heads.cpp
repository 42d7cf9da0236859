#include "attn/memory/packed_heads.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"

namespace attn::detail {
namespace {

std::size_t nr() { return kernels::best().nr; }

}  // namespace

std::size_t PackedKeys::size() const { return kernels::packed_size(nr(), room, width); }

std::size_t PackedKeys::panel_size() const { return kernels::panel_size(nr(), width); }

float* PackedKeys::at(std::size_t head, std::size_t key) const { return data + head * size() + key / nr() * panel_size(); }

void PackedKeys::set(std::size_t head, std::size_t first, std::size_t count, const float* rows, std::ptrdiff_t row_stride) const {
  const std::size_t column = first % nr(), in_panel = column > 0 ? std::min(count, nr() - column) : 0;
  if (in_panel > 0) kernels::transpose(rows, row_stride, in_panel, width, at(head, first) + column, nr());
  if (in_panel < count)
    kernels::pack(rows + static_cast<std::ptrdiff_t>(in_panel) * row_stride, row_stride, 1, count - in_panel, width, nr(),
                  at(head, first + in_panel));
}

void PackedKeys::unpack(std::size_t heads, std::size_t count, float* to) const {
  for (std::size_t head = 0; head < heads; ++head) kernels::unpack(at(head, 0), count, width, nr(), to + head * count * width);
}

std::size_t PackedValues::size() const { return kernels::packed_size(nr(), width, room); }

std::size_t PackedValues::panel_size() const { return kernels::panel_size(nr(), room); }

std::size_t PackedValues::panels() const { return (width + nr() - 1) / nr(); }

float* PackedValues::at(std::size_t head, std::size_t key, std::size_t panel) const {
  return data + head * size() + panel * panel_size() + key * nr();
}

void PackedValues::set(std::size_t head, std::size_t first, std::size_t count, const float* rows, std::ptrdiff_t row_stride) const {
  for (std::size_t column = 0; column < width; column += nr())
    kernels::pack(rows + column, 1, row_stride, std::min(nr(), width - column), count, nr(), at(head, first, column / nr()));
}

void PackedValues::unpack(std::size_t heads, std::size_t count, float* to) const {
  for (std::size_t head = 0; head < heads; ++head)
    for (std::size_t key = 0; key < count; ++key, to += width)
      for (std::size_t column = 0; column < width; column += nr())
        std::copy_n(at(head, key, column / nr()), std::min(nr(), width - column), to + column);
}

void PackedValues::scale(std::size_t head, std::size_t key, float alpha, float* to) const {
  for (std::size_t column = 0; column < width; column += nr())
    kernels::best().scale_row(at(head, key, column / nr()), alpha, to + column, std::min(nr(), width - column));
}

bool PackedValues::all_finite(std::size_t head, std::size_t first, std::size_t count, float alpha) const {
  bool all = true;
  for (std::size_t panel = 0; panel < panels() && all; ++panel) all = kernels::best().all_finite(at(head, first, panel), alpha, count * nr());
  return all;
}

}  // namespace attn::detail
