#include "attn/io/tokenizer/unigram.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "attn/tensor/shape.hpp"

namespace attn::detail {
namespace {

/// Maximises the sum of scores (Viterbi).
class Unigram final : public Model {
 public:
  Unigram(Vocabulary vocabulary, std::vector<double> scores, std::int32_t unknown, ByteFallback bytes)
      : Model(std::move(vocabulary)), scores_(std::move(scores)), unknown_(unknown), bytes_(std::move(bytes)) {
    double least = std::numeric_limits<double>::infinity();
    for (const double score : scores_) least = std::min(least, score);
    unknown_score_ = least - 10;
  }

  bool takes_open_words() const override { return true; }

  void tokenize(std::span<const Char> word, std::vector<Token>& tokens, Budget& budget, bool is_open) const override {
    MemoryEstimate memory("tokenize");
    memory.add("the ways to cut a word", {static_cast<std::int64_t>(word.size() + 1), sizeof(Best) / 4 + 2});
    memory.check("the ways to cut a word");
    std::vector<Best> best(word.size() + 1);
    best.back().is_open = true;
    const auto offer = [&](std::size_t start, std::size_t end, std::int32_t id, double score) {
      if (best[end].is_there && score <= best[end].score) return;
      best[end] = {score, static_cast<std::uint32_t>(start), id, true, best[end].is_open};
    };
    const Trie& trie = vocabulary().trie();
    for (std::size_t start = 0; start < word.size(); ++start) {
      const double so_far = best[start].score;
      bool single = false;
      std::size_t end = start;
      for (Trie::Node node = Trie::root(); end < word.size();) {
        if ((node = trie.child(node, word[end++].code)) == 0) break;
        if (end == word.size()) best[start].is_open = true;
        const std::int32_t id = trie.number(node);
        if (id < 0) continue;
        offer(start, end, id, scores_[static_cast<std::size_t>(id)] + so_far);
        single = single || end == start + 1;
      }
      budget.spend(end - start);
      if (!single) offer(start, start + 1, unknown_, unknown_score_ + so_far);
    }
    // Adjacent unknown characters are one token.
    const auto first_unknown = [&](std::size_t end) {
      while (end > 0 && best[end].id == unknown_) end = best[end].start;
      return end;
    };
    std::vector<std::pair<std::size_t, std::size_t>> cuts;
    for (std::size_t end = is_open ? first_unknown(certain(best)) : word.size(); end > 0;) {
      const std::size_t start = std::min<std::size_t>(best[end].start, first_unknown(end));
      cuts.emplace_back(start, end);
      end = start;
    }
    std::for_each(cuts.rbegin(), cuts.rend(), [&](const auto& cut) { put(word, cut.first, cut.second, tokens); });
  }

 private:
  struct Best {
    double score = 0;
    std::uint32_t start = 0;
    std::int32_t id = 0;
    bool is_there = false;
    bool is_open = false;  ///< a token may begin here and end after the word
  };

  /// Returns the last position on all best paths to open positions; tokens before it do not depend on the rest of the
  /// word.
  static std::size_t certain(std::vector<Best>& best) {
    auto left = std::count_if(best.begin(), best.end(), [](const Best& each) { return each.is_open; });
    std::size_t end = best.size() - 1;
    for (; left > 1; --end) {
      if (!best[end].is_open) continue;
      Best& before = best[best[end].start];
      if (std::exchange(before.is_open, true)) --left;
    }
    while (!best[end].is_open) --end;
    return end;
  }

  void put(std::span<const Char> word, std::size_t from, std::size_t to, std::vector<Token>& tokens) const {
    const std::span<const Char> text = word.subspan(from, to - from);
    const std::u32string codes = code_points(text);
    if (const std::int32_t found = vocabulary().find(codes); found >= 0) return tokens.push_back(token(found, word, from, to));
    std::vector<std::int32_t> bytes;
    if (bytes_.append(codes, bytes)) {
      for (const std::int32_t byte : bytes) tokens.push_back(token(byte, word, from, to));
      return;
    }
    const UnknownToken stands(unknown_, "missing", "tokenizer.json.model.unk_id");
    tokens.push_back({.id = stands.needed(), .start = text.front().start, .end = text.back().end, .content = utf8_of(text)});
  }

  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::int32_t unknown_;
  ByteFallback bytes_;
};

}  // namespace

std::unique_ptr<const Model> read_unigram(const Value& section, Json& json) {
  Json taken = take(json, "vocab");
  const Value list("tokenizer.json", &taken, "model.vocab");
  const std::size_t count = list.array().size();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Value entry = list[i];
    if (entry.array().size() < 2) entry.refuse(ErrorCode::format, {"a token and its score"}, {entry.array().size(), " values"});
    bytes += entry[std::size_t{0}].token().size();
    entry[1].number();
  }
  Vocabulary vocabulary;
  vocabulary.reserve(count, bytes);
  std::vector<double> scores;
  scores.reserve(count);
  for (Json& entry : *taken.array()) {
    vocabulary.add(static_cast<std::int32_t>(scores.size()), *(*entry.array())[0].string());
    scores.push_back(*(*entry.array())[1].number());
    entry = Json();
  }
  taken = Json();
  vocabulary.finish();
  std::int32_t unknown = -1;
  if (const Value given = section["unk_id"]; given.is_there()) {
    unknown = given.whole();
    if (static_cast<std::size_t>(unknown) >= count) given.refuse(ErrorCode::format, {"a number below ", count}, {unknown});
  }
  ByteFallback fallback(section, vocabulary);
  return std::make_unique<Unigram>(std::move(vocabulary), std::move(scores), unknown, std::move(fallback));
}

}  // namespace attn::detail
