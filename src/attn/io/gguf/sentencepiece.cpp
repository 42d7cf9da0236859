#include "attn/io/gguf/sentencepiece.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "attn/io/gguf/header.hpp"

namespace attn::detail::gguf {
namespace {

/// Limits the sum of the squared lengths. Gemma's 262 144 tokens reach a sixth of it.
constexpr std::uint64_t kMostWork = std::uint64_t{1} << 27;

struct Merge {
  double score;
  std::uint32_t token;
  std::uint16_t bytes, left, right;  ///< of the left part; characters of both
};

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

/// Whether the token is text without spaces, which merges can produce.
bool is_piece(const Tokens& tokens, std::size_t id) {
  const double type = tokens.types[id];
  return type != Tokens::kControl && type != Tokens::kUnknown && type != Tokens::kByte && tokens.texts[id].find(' ') == std::string::npos;
}

}  // namespace

std::vector<std::string> merges_of_scores(const Tokens& tokens, const std::vector<double>& scores) {
  const std::size_t count = tokens.texts.size();
  if (scores.size() != count) refuse("the length of tokenizer.ggml.scores", {count, ", one for each token"}, {scores.size()});
  std::unordered_set<std::string_view> pieces;
  std::uint64_t work = 0;
  for (std::size_t id = 0; id < count; ++id) {
    if (!std::isfinite(scores[id])) refuse("tokenizer.ggml.scores", {"finite numbers"}, {scores[id]});
    if (!is_piece(tokens, id)) continue;
    pieces.insert(tokens.texts[id]);
    work += tokens.texts[id].size() * tokens.texts[id].size();
  }
  if (work > kMostWork) refuse("the sum of the squared lengths in tokenizer.ggml.tokens", {"at most ", kMostWork}, {work}, ErrorCode::unsupported);
  std::vector<Merge> merges;
  for (std::size_t id = 0; id < count; ++id) {
    if (!is_piece(tokens, id)) continue;
    const std::string_view whole = tokens.texts[id];
    const auto characters = static_cast<std::uint16_t>(std::count_if(whole.begin(), whole.end(), starts_character));
    std::uint16_t left = 0;
    for (std::size_t at = 1; at < whole.size(); ++at) {
      if (!starts_character(whole[at])) continue;
      ++left;
      if (pieces.contains(whole.substr(0, at)) && pieces.contains(whole.substr(at)))
        merges.push_back(
            {scores[id], static_cast<std::uint32_t>(id), static_cast<std::uint16_t>(at), left, static_cast<std::uint16_t>(characters - left)});
    }
  }
  std::sort(merges.begin(), merges.end(),
            [](const Merge& a, const Merge& b) { return std::tie(b.score, b.left, b.right, a.token) < std::tie(a.score, a.left, a.right, b.token); });
  std::vector<std::string> list;
  list.reserve(merges.size());
  for (const Merge& merge : merges) {
    const std::string& whole = tokens.texts[merge.token];
    list.push_back(whole.substr(0, merge.bytes) + ' ' + whole.substr(merge.bytes));
  }
  return list;
}

}  // namespace attn::detail::gguf
