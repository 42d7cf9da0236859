#include "attn/models/answers.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "attn/io/tokenizer/unicode.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

struct Span {
  float score;
  std::size_t first, last;
};

/// At most `most` tokens long; among equal scores the first.
std::vector<Span> spans_of(const AnswerWindow& window, std::size_t count, std::size_t most) {
  std::vector<Span> spans;
  const std::size_t size = window.start_scores.size();
  for (std::size_t first = 0; first < size; ++first)
    for (std::size_t last = first; last < size && last - first < most; ++last) {
      const float score = window.start_scores[first] * window.end_scores[last];
      if (spans.size() == count && score <= spans.back().score) continue;
      const auto at = std::find_if(spans.begin(), spans.end(), [&](const Span& span) { return span.score < score; });
      spans.insert(at, {score, first, last});
      if (spans.size() > count) spans.pop_back();
    }
  return spans;
}

std::string lowered(std::string_view text) {
  Budget budget(text.size());
  const std::optional<Chars> chars = decode_utf8(text);
  return chars ? utf8_of(lower_case(*chars, budget)) : std::string(text);
}

}  // namespace

std::vector<Answer> answers_of(std::string_view context, const std::vector<AnswerWindow>& windows, const AnswerOptions& options) {
  const FloatEnvironment environment;
  struct Found {
    Answer answer;
    double score;
  };
  std::vector<Found> all;
  std::map<std::string, std::size_t> places;
  const auto count = static_cast<std::size_t>(std::min<std::int64_t>(options.top_k, 1 << 20));
  for (const AnswerWindow& window : windows)
    for (const auto& [score, first, last] : spans_of(window, 2 * count + 10, static_cast<std::size_t>(options.max_answer_length))) {
      const std::int64_t start = window.starts[first], end = window.ends[last];
      std::string words(context.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(end - start)));
      const auto [same, is_new] = places.emplace(lowered(words), all.size());
      if (is_new)
        all.push_back({{std::move(words), 0, start, end}, static_cast<double>(score)});
      else
        all[same->second].score += static_cast<double>(score);
    }
  if (options.allow_empty) {
    float least = windows.front().empty;
    for (const AnswerWindow& window : windows) least = std::min(least, window.empty);
    all.push_back({{}, static_cast<double>(least)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) { return a.score > b.score; });
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < std::min(all.size(), count); ++i) {
    all[i].answer.score = static_cast<float>(all[i].score);
    answers.push_back(std::move(all[i].answer));
  }
  return answers;
}

}  // namespace attn::detail
