#include "attn/layers/kept.hpp"

#include <algorithm>
#include <type_traits>

namespace attn::detail {

KeptAttentionCall::KeptAttentionCall(const AttentionSpec& call, const AttentionSizes& of_call) : spec(call), sizes(of_call) {
  spec.need_weights = spec.average_weights = spec.output_present = false;
  spec.trace = {};
  runs_.assign(spec.runs.begin(), spec.runs.end());
  spec.runs = runs_;
  if (spec.mask) keep(*spec.mask, copies_[0]);
  if (spec.key_padding_mask) keep(*spec.key_padding_mask, copies_[1]);
}

void KeptAttentionCall::keep(MaskView& mask, Copy& copy) {
  const Shape& shape = mask.shape;
  const std::size_t size = static_cast<std::size_t>(checked_size(shape, "backward", "mask"));
  const auto copy_all = [&](const auto* from, auto& to) {
    to = std::remove_reference_t<decltype(to)>(size);
    std::array<std::int64_t, Shape::kMaxRank> at{};
    for (std::size_t i = 0; i < size && !counts(); ++i) {
      std::ptrdiff_t place = 0;
      for (std::size_t axis = 0; axis < shape.rank(); ++axis) place += static_cast<std::ptrdiff_t>(at[axis]) * mask.step(axis);
      to.data()[i] = from[place];
      for (std::size_t axis = shape.rank(); axis-- > 0 && ++at[axis] == shape[axis];) at[axis] = 0;
    }
  };
  if (mask.flags != nullptr)
    copy_all(mask.flags, copy.flags);
  else
    copy_all(mask.values, copy.values);
  mask.flags = mask.flags != nullptr ? copy.flags.data() : nullptr;
  mask.values = mask.values != nullptr ? copy.values.data() : nullptr;
  mask.strides = strides_of(shape);
}

void CaptureBuffers::keep(float*& place, float* kept, std::size_t size) {
  if (place == nullptr)
    place = kept;
  else
    copies_.push_back({place, kept, size});
}

void CaptureBuffers::copy() const {
  for (const auto& [from, to, size] : copies_) copy_values(from, size, to);
}

KeptEncoder::KeptEncoder(const EncoderPlan& plan, const ForwardRandom& from)
    : x(plan.output), B(plan.B), L(plan.L), E(plan.E), call(plan.attention.spec, plan.attention.sizes), random(from) {}

float* copy_rows(const TensorView& x, float* to) {
  const Rows rows(x);
  for (std::size_t row = 0; row < rows.count() && !counts(); ++row) std::copy_n(rows[row], rows.width(), to + row * rows.width());
  return to + rows.count() * rows.width();
}

}  // namespace attn::detail
