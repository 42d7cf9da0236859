#pragma once

#include <cstdint>

#include "attn/store/table.hpp"

namespace attn::detail {

/// Returns the cosine similarity row · target / (|row| |target|) of vectors of width E; 0 if either is zero.
float cosine(const float* row, const float* target, std::int64_t E, bool reproducible);
/// Computes the cosine similarity of every row of a table (N,E) with the target.
void cosines(const Table& table, std::int64_t N, const float* target, std::int64_t E, float* cosine);

}  // namespace attn::detail
