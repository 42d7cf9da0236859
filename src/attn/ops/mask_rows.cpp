#include "attn/ops/mask_rows.hpp"

#include <algorithm>

namespace attn::detail {
MaskRows::MaskRows(const AttentionSpec& spec, const AttentionSizes& sizes)
    : mask_(source(spec.mask, false)),
      padding_(source(spec.key_padding_mask, true)),
      causal_(spec.is_causal),
      queries_are_padded_(spec.queries_are_padded && spec.key_padding_mask),
      window_(spec.window),
      offset_(spec.query_offset),
      S_(static_cast<std::size_t>(sizes.S - spec.extra_keys)),
      extra_(static_cast<std::size_t>(spec.extra_keys)) {}

MaskRows::Source MaskRows::source(const std::optional<MaskView>& mask, bool padding) {
  if (!mask) return {};
  Source source{&*mask};
  const std::size_t rank = mask->shape.rank();
  if (padding) {
    if (rank == 2) source.batch = mask->step(0);
  } else {
    if (rank >= 2) source.query = mask->step(rank - 2);
    if (rank == 3) source.batch = mask->step(0);
    if (rank == 4) source.batch = mask->step(0), source.head = mask->step(1);
  }
  return source;
}

void MaskRows::add(const Source& source, std::ptrdiff_t offset, std::size_t count, float* bias) {
  const MaskView& mask = *source.mask;
  if (mask.kind == MaskKind::additive) {
    const float* added = mask.values + offset;
    for (std::size_t j = 0; j < count; ++j) bias[j] += added[j];
    return;
  }
  const bool blocked = mask.kind == MaskKind::block;
  const auto block = [&](const auto* from) {
    for (std::size_t j = 0; j < count; ++j) bias[j] = (from[j] != 0) == blocked ? kBlocked : bias[j];
  };
  if (mask.flags != nullptr)
    block(mask.flags + offset);
  else
    block(mask.values + offset);
}

VisibleKeys MaskRows::row(std::int64_t b, std::int64_t h, std::int64_t i, float* buffer) const {
  const std::int64_t position = i + offset_, keys = static_cast<std::int64_t>(S_);
  // Sums of positions and window sides stay far below 2⁶³.
  std::int64_t end = keys;
  if (causal_) end = std::min(end, position + 1);
  if (window_.right >= 0) end = std::min(end, position + window_.right + 1);
  const auto seen = static_cast<std::size_t>(std::max<std::int64_t>(end, 0));
  if (!need_buffer()) return {nullptr, seen + extra_};
  if (queries_are_padded_ && !padding_.mask->attends(static_cast<std::ptrdiff_t>(b) * padding_.batch + static_cast<std::ptrdiff_t>(i))) return {};
  std::size_t limit = extra_ > 0 ? S_ + extra_ : seen;
  std::fill_n(buffer, limit, 0.0F);
  if (extra_ > 0) std::fill(buffer + seen, buffer + S_, kBlocked);
  const std::size_t first =
      window_.left >= 0 ? static_cast<std::size_t>(std::clamp<std::int64_t>(position - window_.left, 0, static_cast<std::int64_t>(seen))) : 0;
  std::fill_n(buffer, first, kBlocked);
  for (const Source& from : {mask_, padding_})
    if (from.mask != nullptr)
      add(from,
          static_cast<std::ptrdiff_t>(b) * from.batch + static_cast<std::ptrdiff_t>(h) * from.head + static_cast<std::ptrdiff_t>(i) * from.query,
          seen, buffer);
  // Padding is usually at the end: this shortens every loop over keys.
  while (limit > 0 && buffer[limit - 1] == kBlocked) --limit;
  const bool plain = std::all_of(buffer, buffer + limit, [](float value) { return value == 0.0F; });
  return {plain ? nullptr : buffer, limit, std::min(first, limit)};
}

}  // namespace attn::detail
