#pragma once

#include <cstdint>

namespace attn::detail {

/// cosine[i] = rows[i] · target / (|rows[i]| |target|), rows (N,E), target (E); 0 where one of them is zero.
void cosines(const float* rows, std::int64_t N, const float* target, std::int64_t E, float* cosine);

}  // namespace attn::detail
