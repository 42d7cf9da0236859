#include "attn/ops/mask_view.hpp"

#include <limits>

namespace attn {

bool MaskView::attends(std::ptrdiff_t place) const {
  if (kind == MaskKind::additive) return values[place] != -std::numeric_limits<float>::infinity();
  const bool set = flags != nullptr ? flags[place] != 0 : values[place] != 0.0F;
  return set == (kind == MaskKind::attend);
}

}  // namespace attn
