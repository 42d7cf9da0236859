#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "attn/models/text_tasks.hpp"

namespace attn::detail {

/// A window of the context: the tokens of it that an answer may have.
struct AnswerWindow {
  std::vector<float> start_scores, end_scores;
  std::vector<std::int64_t> starts, ends;  ///< bytes of the context where each token's word begins and ends
  float empty = 0;                         ///< score of there being no answer
};

/// Answers as transformers' QuestionAnsweringPipeline (version 4) finds them. The package does the same (web/lib/src/tasks/answers.ts).
std::vector<Answer> answers_of(std::string_view context, const std::vector<AnswerWindow>& windows, const AnswerOptions& options);

}  // namespace attn::detail
