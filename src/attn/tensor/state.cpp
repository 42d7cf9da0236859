#include "attn/tensor/state.hpp"

#include <algorithm>

#include "attn/tensor/rows.hpp"

namespace attn::detail {

void StateInput::add(const std::string& name, const TensorView& view) {
  if (is_contiguous(view.shape, view.strides)) {
    views.insert_or_assign(name, view);
    return;
  }
  const Rows rows(view);
  auto copy = std::make_shared<std::vector<float>>(rows.count() * rows.width());
  for (std::size_t row = 0; row < rows.count(); ++row) std::copy_n(rows[row], rows.width(), copy->data() + row * rows.width());
  views.insert_or_assign(name, TensorView(copy->data(), view.shape));
  kept_.push_back(std::move(copy));
}

}  // namespace attn::detail
