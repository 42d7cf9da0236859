#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "attn/models/text_tasks.hpp"

namespace attn::detail {

struct AnswerWindow {
  std::vector<float> start_scores, end_scores;
  std::vector<std::int64_t> starts, ends;  ///< bytes in the context of each token's word
  float empty = 0;                         ///< of the empty answer
};

/// As transformers' QuestionAnsweringPipeline (version 4). The package has the same code in web/lib/src/tasks/answers.ts.
std::vector<Answer> answers_of(std::string_view context, const std::vector<AnswerWindow>& windows, const AnswerOptions& options);

}  // namespace attn::detail
