#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace attn::detail {

/// The row of MPNet's position bias for key - query = distance: T5's buckets (Raffel et al. 2020), half of them for keys after the query; in each
/// half 8 single distances, then widths that double with every second bucket, up to distance 128.
inline std::size_t bucket_of(std::int64_t distance) {
  constexpr std::int64_t kFirst[] = {8, 12, 16, 23, 32, 46, 64, 91};  // 8 · 2^(i/2), rounded up
  const std::int64_t size = std::abs(distance);
  std::size_t bucket = static_cast<std::size_t>(std::min<std::int64_t>(size, 7));
  for (const std::int64_t first : kFirst)
    if (size >= first) ++bucket;
  return distance > 0 ? bucket + 16 : bucket;
}

}  // namespace attn::detail
