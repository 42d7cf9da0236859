#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attn/models/text_tasks.hpp"

namespace attn::detail {

struct ScoredToken {
  std::vector<float> scores;  ///< by label
  std::int64_t start = 0, end = 0;
  bool is_subword = false;  ///< continues the word of the previous token
};

/// As transformers' TokenClassificationPipeline. The package has the same code in web/lib/src/tasks/entities.ts.
std::vector<Entity> entities_of(std::string_view text, const std::vector<std::vector<ScoredToken>>& windows, const std::vector<std::string>& labels,
                                Aggregation aggregation, const std::vector<std::string>& ignored);

}  // namespace attn::detail
