#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attn/models/text_tasks.hpp"

namespace attn::detail {

/// A token: what it may be, and where.
struct ScoredToken {
  std::vector<float> scores;  ///< by label
  std::int64_t start = 0, end = 0;
  bool is_subword = false;  ///< it goes on with the word of the token before
};

/// Entities of the windows of one text, as transformers' TokenClassificationPipeline puts them together. The package does the same
/// (web/lib/src/tasks/entities.ts).
std::vector<Entity> entities_of(std::string_view text, const std::vector<std::vector<ScoredToken>>& windows, const std::vector<std::string>& labels,
                                Aggregation aggregation, const std::vector<std::string>& ignored);

}  // namespace attn::detail
