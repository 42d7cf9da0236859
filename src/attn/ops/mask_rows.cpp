#include "attn/ops/mask_rows.hpp"

#include <algorithm>
#include <limits>

namespace attn::detail {
namespace {

constexpr float kBlocked = -std::numeric_limits<float>::infinity();

}  // namespace

MaskRows::MaskRows(const AttentionPlan& plan)
    : mask_(source(plan.masks.mask, false)),
      padding_(source(plan.masks.key_padding_mask, true)),
      causal_(plan.masks.is_causal),
      window_(plan.masks.window),
      S_(static_cast<std::size_t>(plan.S - plan.extra_keys)),
      extra_(static_cast<std::size_t>(plan.extra_keys)) {}

MaskRows::Source MaskRows::source(const Mask* mask, bool padding) {
  Source source{mask};
  if (mask == nullptr) return source;
  // xtensor's stride of a dimension of size 1 is 0: broadcasting needs nothing more.
  const auto& strides = mask->kind() == MaskKind::additive ? mask->added().strides() : mask->flags().strides();
  const std::size_t rank = strides.size();
  const auto stride = [&](std::size_t axis) { return static_cast<std::ptrdiff_t>(strides[axis]); };
  if (padding) {
    if (rank == 2) source.batch = stride(0);
  } else {
    if (rank >= 2) source.query = stride(rank - 2);
    if (rank == 3) source.batch = stride(0);
    if (rank == 4) source.batch = stride(0), source.head = stride(1);
  }
  return source;
}

void MaskRows::add(const Source& source, std::ptrdiff_t offset, std::size_t count, float* bias) {
  if (source.mask->kind() == MaskKind::additive) {
    const float* added = source.mask->added().data() + offset;
    for (std::size_t j = 0; j < count; ++j) bias[j] += added[j];
    return;
  }
  const std::uint8_t* flags = source.mask->flags().data() + offset;
  const std::uint8_t blocked = source.mask->kind() == MaskKind::block ? 1 : 0;
  for (std::size_t j = 0; j < count; ++j) bias[j] = flags[j] == blocked ? kBlocked : bias[j];
}

KeyRow MaskRows::row(std::int64_t b, std::int64_t h, std::int64_t i, float* buffer) const {
  const auto query = static_cast<std::size_t>(i);
  const auto window = static_cast<std::size_t>(window_);
  const std::size_t seen = std::min({S_, causal_ ? query + 1 : S_, window_ >= 0 ? query + window + 1 : S_});
  if (!need_buffer()) return {nullptr, seen + extra_};
  std::size_t limit = extra_ > 0 ? S_ + extra_ : seen;
  std::fill_n(buffer, limit, 0.0F);
  if (extra_ > 0) std::fill(buffer + seen, buffer + S_, kBlocked);
  const std::size_t first = window_ >= 0 && query > window ? std::min(seen, query - window) : 0;
  std::fill_n(buffer, first, kBlocked);
  for (const Source& from : {mask_, padding_})
    if (from.mask != nullptr)
      add(from,
          static_cast<std::ptrdiff_t>(b) * from.batch + static_cast<std::ptrdiff_t>(h) * from.head + static_cast<std::ptrdiff_t>(i) * from.query,
          seen, buffer);
  // Padding is at the end as a rule: leaving it out shortens every loop over keys.
  while (limit > 0 && buffer[limit - 1] == kBlocked) --limit;
  const bool plain = std::all_of(buffer, buffer + limit, [](float value) { return value == 0.0F; });
  return {plain ? nullptr : buffer, limit, std::min(first, limit)};
}

}  // namespace attn::detail
