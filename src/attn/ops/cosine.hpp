#pragma once

#include <cstdint>

#include "attn/store/table.hpp"

namespace attn::detail {

/// row · target / (|row| |target|), of width E; 0 where one of them is zero.
float cosine(const float* row, const float* target, std::int64_t E, bool everywhere);
/// The same of every row of a table (N,E).
void cosines(const Table& table, std::int64_t N, const float* target, std::int64_t E, float* cosine);

}  // namespace attn::detail
