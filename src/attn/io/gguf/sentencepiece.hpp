#pragma once

#include <string>
#include <vector>

namespace attn::detail::gguf {

/// `types` are numbers of llama.cpp.
struct Tokens {
  static constexpr double kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

  const std::vector<std::string>& texts;
  const std::vector<double>& types;
};

/// Returns BPE merges ("left right") equivalent to SentencePiece, as generate_merges() in transformers: each split of a
/// token into two, by score, then by the length of the left part, because neighbours may overlap in runs of equal
/// characters. Throws FORMAT unless each token has a finite score; UNSUPPORTED if the tokens are too long together.
std::vector<std::string> merges_of_scores(const Tokens& tokens, const std::vector<double>& scores);

}  // namespace attn::detail::gguf
