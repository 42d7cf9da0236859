#pragma once

#include <cstdint>

#include "attn/memory/table.hpp"

namespace attn::detail {

/// row · target / (|row| |target|), width E; 0 if either is zero.
float cosine(const float* row, const float* target, std::int64_t E, bool reproducible);
/// Compares every row of a table (N,E) with the target.
void cosines(const Table& table, std::int64_t N, const float* target, std::int64_t E, float* cosine, Scratch& scratch);

}  // namespace attn::detail
