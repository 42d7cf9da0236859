#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "attn/models/text_tasks.hpp"

namespace attn::detail {

/// The tokens of the context in one window, with their scores.
struct AnswerWindow {
  std::vector<float> start_scores, end_scores;
  std::vector<std::int64_t> starts, ends;  ///< byte range in the context of the word that each token belongs to
  float empty = 0;                         ///< score of the empty answer
};

/// Finds answers as transformers' QuestionAnsweringPipeline (version 4) does. The package has the same code in web/lib/src/tasks/answers.ts.
std::vector<Answer> answers_of(std::string_view context, const std::vector<AnswerWindow>& windows, const AnswerOptions& options);

}  // namespace attn::detail
