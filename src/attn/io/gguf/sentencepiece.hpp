#pragma once

#include <string>
#include <vector>

namespace attn::detail::gguf {

/// Tokens of the metadata and their types, which are numbers of llama.cpp.
struct Tokens {
  static constexpr double kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

  const std::vector<std::string>& texts;
  const std::vector<double>& types;
};

/// Returns merges ("left right") with which byte-pair encoding gives the tokens of SentencePiece. SentencePiece merges the
/// neighbours that make the token of the highest score, the leftmost first; so each way to split a token into two others
/// is a merge, by score and, because neighbours may overlap in runs of equal characters, by the length of the left part,
/// as in transformers' generate_merges(). Throws FORMAT unless there is a finite score for each token; UNSUPPORTED for
/// tokens that are too long together.
std::vector<std::string> merges_of_scores(const Tokens& tokens, const std::vector<double>& scores);

}  // namespace attn::detail::gguf
