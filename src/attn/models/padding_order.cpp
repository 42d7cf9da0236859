#include "attn/models/padding_order.hpp"

#include <algorithm>
#include <limits>

namespace attn::detail {
namespace {

bool has_keys(TraceName name) {
  switch (name) {
    case TraceName::scores:
    case TraceName::masked_scores:
    case TraceName::probabilities:
    case TraceName::weights:
    case TraceName::weighted_values:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool PaddingOrder::is_needed(const ModelInputs& inputs) {
  const MaskView* const mask = inputs.attention_mask;
  if (mask == nullptr || mask->kind == MaskKind::additive || mask->shape != inputs.shape) return false;
  for (std::int64_t b = 0; b < inputs.shape[0]; ++b)
    for (std::int64_t i = 1; i < inputs.shape[1]; ++i)
      if (keeps(mask, b, i) && !keeps(mask, b, i - 1)) return true;
  return false;
}

bool PaddingOrder::cuts_window(const ModelInputs& inputs, std::int64_t window) {
  const std::int64_t B = inputs.shape[0], L = inputs.shape[1];
  std::vector<std::int64_t> places;
  for (std::int64_t b = 0; b < B; ++b) {
    places.clear();
    for (std::int64_t i = 0; i < L; ++i) {
      if (!keeps(inputs.attention_mask, b, i)) continue;
      places.push_back(i);
      const auto reach = static_cast<std::size_t>(std::min(window, static_cast<std::int64_t>(places.size()) - 1));
      if (i - places[places.size() - 1 - reach] > window) return true;
    }
  }
  return false;
}

PaddingOrder::PaddingOrder(const ModelInputs& given) : inputs_(given) {
  const std::int64_t B = given.shape[0], L = given.shape[1];
  order_.reserve(given.input_ids.size());
  for (std::int64_t b = 0; b < B; ++b)
    for (const bool kept : {true, false})
      for (std::int64_t i = 0; i < L; ++i)
        if (keeps(given.attention_mask, b, i) == kept) {
          order_.push_back(i);
          flags_.push_back(kept ? 1 : 0);
        }
  const auto copy = [&](std::span<const std::int64_t> from, std::vector<std::int64_t>& to) {
    for (std::size_t i = 0; i < from.size(); ++i)
      to.push_back(from[i / static_cast<std::size_t>(L) * static_cast<std::size_t>(L) + static_cast<std::size_t>(order_[i])]);
  };
  copy(given.input_ids, ids_);
  copy(given.token_type_ids, types_);
  padding_ = MaskView(MaskKind::attend, flags_.data(), given.shape);
  inputs_.input_ids = ids_;
  inputs_.token_type_ids = types_;
  inputs_.attention_mask = &padding_;
}

MaskView PaddingOrder::mask(const MaskView& given) {
  const std::int64_t B = inputs_.shape[0], L = inputs_.shape[1];
  const Shape& shape = given.shape;
  const std::size_t rank = shape.rank();
  const auto size = [&](std::size_t from_end) { return rank > from_end ? shape[rank - 1 - from_end] : 1; };
  const auto step = [&](std::size_t from_end) { return rank > from_end ? given.step(rank - 1 - from_end) : 0; };
  // A mask of rank 3 has no heads.
  const std::int64_t heads = rank == 4 ? size(2) : 1, batch = rank == 4 ? size(3) : size(2);
  const std::ptrdiff_t of_head = rank == 4 ? step(2) : 0, of_batch = rank == 4 ? step(3) : step(2);
  if (rank > 4 || size(0) != L || (size(1) != L && size(1) != 1) || (batch != B && batch != 1)) return given;
  constexpr float kBlocked = -std::numeric_limits<float>::infinity();
  mask_.resize(static_cast<std::size_t>(B * heads * L * L));
  float* to = mask_.data();
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < L; ++i)
        for (std::int64_t j = 0; j < L; ++j) {
          const auto place = static_cast<std::ptrdiff_t>(b * of_batch + h * of_head + at(b, i) * step(1) + at(b, j));
          *to++ = given.kind == MaskKind::additive ? given.values[place] : given.attends(place) ? 0 : kBlocked;
        }
  return {MaskKind::additive, mask_.data(), {B, heads, L, L}};
}

const float* PaddingOrder::rows(const float* given, std::int64_t width) {
  const std::int64_t B = inputs_.shape[0], L = inputs_.shape[1];
  std::vector<float>& to = rows_.emplace_back(static_cast<std::size_t>(B * L * width));
  float* row = to.data();
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t i = 0; i < L; ++i) row = std::copy_n(given + (b * L + at(b, i)) * width, width, row);
  return to.data();
}

const float* PaddingOrder::weights(const float* given, std::int64_t heads) {
  const std::int64_t B = inputs_.shape[0], L = inputs_.shape[1];
  std::vector<float>& to = rows_.emplace_back(static_cast<std::size_t>(B * heads * L * L));
  float* weight = to.data();
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < heads; ++h, given += L * L)
      for (std::int64_t i = 0; i < L; ++i)
        for (std::int64_t j = 0; j < L; ++j) *weight++ = given[at(b, i) * L + at(b, j)];
  return to.data();
}

void PaddingOrder::count() const {
  counted({std::ssize(mask_)}, "the mask in another order");
  for (const std::vector<float>& rows : rows_) counted({std::ssize(rows)}, "a patch in another order");
}

void PaddingOrder::restore(float* x, std::int64_t outer, std::int64_t inner, bool keys, Scratch& scratch) const {
  const std::int64_t B = inputs_.shape[0], L = inputs_.shape[1], n = keys ? inner / L : inner;
  const Scratch::Frame frame(scratch);
  const auto size = static_cast<std::size_t>(L * inner);
  float* const slab = scratch.take(size);
  for (std::int64_t b = 0; b < B && !counts(); ++b)
    for (std::int64_t o = 0; o < outer; ++o, x += L * inner) {
      for (std::int64_t i = 0; i < L; ++i) {
        const float* const from = x + i * inner;
        float* const to = slab + at(b, i) * inner;
        if (!keys) std::copy_n(from, inner, to);
        for (std::int64_t j = 0; j < L && keys; ++j) std::copy_n(from + j * n, n, to + at(b, j) * n);
      }
      std::copy_n(slab, size, x);
    }
}

void PaddingOrder::restore(const EncoderPlan& plan, const EncoderBuffers& buffers, float* logits, const Shape& of_logits, Scratch& scratch) const {
  const std::int64_t L = inputs_.shape[1], H = plan.attention.spec.num_heads;
  restore(buffers.output, 1, plan.E, false, scratch);
  for (float* const state : buffers.hidden_states) restore(state, 1, plan.E, false, scratch);
  for (const LayerBuffers& layer : buffers.layers) {
    if (layer.attentions != nullptr) restore(layer.attentions, H, L, true, scratch);
    for (std::size_t i = 0; i < kTraceNames.size(); ++i) {
      const Shape& shape = plan.trace_shapes[i];
      if (float* const x = layer.trace[i]; x != nullptr) {
        std::int64_t inner = shape.back(0);
        const bool keys = has_keys(static_cast<TraceName>(i));
        if (shape.rank() == 5) inner *= L;
        restore(x, shape.rank() == 3 ? 1 : shape[1], inner, keys, scratch);
      }
    }
  }
  if (logits != nullptr && of_logits[1] == L) restore(logits, 1, of_logits.back(0), false, scratch);
}

}  // namespace attn::detail
