#include "attn/models/entities.hpp"

#include "attn/tensor/float_environment.hpp"

#include <algorithm>
#include <span>

namespace attn::detail {
namespace {

struct Labelled {
  std::string label;
  float score;
  std::int64_t start, end;
};

std::size_t largest(const std::vector<float>& scores) {
  return static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

std::vector<float> scores_of(std::span<const ScoredToken> word, Aggregation aggregation) {
  if (aggregation == Aggregation::average) {
    std::vector<float> mean(word.front().scores.size());
    for (std::size_t label = 0; label < mean.size(); ++label) {
      double sum = 0;
      for (const ScoredToken& token : word) sum += static_cast<double>(token.scores[label]);
      mean[label] = static_cast<float>(sum / static_cast<double>(word.size()));
    }
    return mean;
  }
  if (aggregation != Aggregation::max) return word.front().scores;
  const auto top = [](const ScoredToken& token) { return token.scores[largest(token.scores)]; };
  return std::max_element(word.begin(), word.end(), [&](const ScoredToken& a, const ScoredToken& b) { return top(a) < top(b); })->scores;
}

std::vector<Labelled> labelled(const std::vector<ScoredToken>& tokens, const std::vector<std::string>& labels, Aggregation aggregation) {
  const bool by_word = aggregation != Aggregation::none && aggregation != Aggregation::simple;
  std::vector<Labelled> words;
  for (std::size_t first = 0, end = 0; first < tokens.size(); first = end) {
    end = first + 1;
    while (by_word && end < tokens.size() && tokens[end].is_subword) ++end;
    const std::vector<float> scores = scores_of(std::span(tokens).subspan(first, end - first), aggregation);
    const std::size_t best = largest(scores);
    words.push_back({labels[best], scores[best], tokens[first].start, tokens[end - 1].end});
  }
  return words;
}

bool begins(std::string_view label) { return label.starts_with("B-"); }
/// A label without a prefix continues an entity like I-.
std::string_view tag_of(std::string_view label) { return begins(label) || label.starts_with("I-") ? label.substr(2) : label; }
std::string group_of(const std::string& label) { return label.substr(label.find('-') == std::string::npos ? 0 : label.find('-') + 1); }

std::vector<Labelled> grouped(const std::vector<Labelled>& words) {
  std::vector<Labelled> groups;
  for (std::size_t first = 0, end = 0; first < words.size(); first = end) {
    double sum = static_cast<double>(words[first].score);
    for (end = first + 1; end < words.size() && !begins(words[end].label) && tag_of(words[end].label) == tag_of(words[end - 1].label); ++end)
      sum += static_cast<double>(words[end].score);
    const auto score = static_cast<float>(sum / static_cast<double>(end - first));
    groups.push_back({group_of(words[first].label), score, words[first].start, words[end - 1].end});
  }
  return groups;
}

/// Keeps the longest of overlapping entities, among equally long ones the best score.
std::vector<Labelled> without_overlaps(std::vector<Labelled> entities) {
  std::stable_sort(entities.begin(), entities.end(), [](const Labelled& a, const Labelled& b) { return a.start < b.start; });
  std::vector<Labelled> kept;
  for (Labelled& entity : entities) {
    if (kept.empty() || entity.start >= kept.back().end || entity.start < kept.back().start) {
      kept.push_back(std::move(entity));
      continue;
    }
    const std::int64_t longer = entity.end - entity.start - (kept.back().end - kept.back().start);
    if (longer > 0 || (longer == 0 && entity.score > kept.back().score)) kept.back() = std::move(entity);
  }
  return kept;
}

}  // namespace

std::vector<Entity> entities_of(std::string_view text, const std::vector<std::vector<ScoredToken>>& windows, const std::vector<std::string>& labels,
                                Aggregation aggregation, const std::vector<std::string>& ignored) {
  const FloatEnvironment environment;
  std::vector<Labelled> found;
  for (const std::vector<ScoredToken>& tokens : windows) {
    std::vector<Labelled> words = labelled(tokens, labels, aggregation);
    for (Labelled& each : aggregation == Aggregation::none ? words : grouped(words))
      if (std::find(ignored.begin(), ignored.end(), each.label) == ignored.end()) found.push_back(std::move(each));
  }
  if (windows.size() > 1) found = without_overlaps(std::move(found));
  std::vector<Entity> entities;
  for (Labelled& each : found)
    entities.push_back({std::move(each.label), each.score,
                        std::string(text.substr(static_cast<std::size_t>(each.start), static_cast<std::size_t>(each.end - each.start))), each.start,
                        each.end});
  return entities;
}

}  // namespace attn::detail
