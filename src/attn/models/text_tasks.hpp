#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/side.hpp"

// Options and results of TextModel's tasks.
namespace attn {

/// How the labels of tokens are combined into entities, as transformers' AggregationStrategy.
enum class Aggregation : std::uint8_t {
  none,     ///< each token is an entity
  simple,   ///< adjacent tokens with the same label form an entity; a label that begins with B- starts a new one
  first,    ///< as simple, but for whole words: a word has the label of its first token
  average,  ///< a word has the label with the largest mean probability over its tokens
  max,      ///< a word has the label of the token with the largest probability
};
inline constexpr std::array<std::string_view, 5> kAggregationNames{"none", "simple", "first", "average", "max"};

/// Options for TextModel::classify_tokens().
struct ClassifyTokensOptions {
  std::optional<std::int64_t> max_length = std::nullopt;  ///< as in TokenizeOptions
  bool truncation = true;
  Aggregation aggregation = Aggregation::simple;
  /// Number of tokens that consecutive windows of an overlong text share. If entities of two windows overlap, the longer is returned; if they are
  /// equally long, the one with the higher score. Without a stride a long text is truncated. Not allowed with Aggregation::none.
  std::optional<std::int64_t> stride = std::nullopt;
  std::vector<std::string> ignore_labels = {"O"};
  std::int64_t batch_size = 32;                                                      ///< does not affect the result
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;  ///< as in EmbedOptions
  bool add_special_tokens = true;                                                    ///< as in TokenizeOptions
  std::optional<Side> truncation_side = std::nullopt;                                ///< as in TokenizeOptions
  std::vector<bool>* truncated = nullptr;                                            ///< as in EmbedOptions; with a stride no text is truncated
};

/// A named entity in a text.
struct Entity {
  std::string label;  ///< without B- and I-, unless the aggregation is none
  float score = 0;    ///< mean over the words of the entity (with simple, over its tokens)
  std::string text;
  std::int64_t start = 0, end = 0;  ///< byte offsets in the text
};

/// Options for TextModel::fill_mask().
struct FillMaskOptions {
  std::int64_t top_k = 5;
  std::vector<std::string> targets = {};  ///< candidates: tokens, or texts of which the first token is used; empty: the whole vocabulary
  std::int64_t batch_size = 32;           ///< does not affect the result
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;  ///< as in EmbedOptions
};

/// A token predicted for a mask.
struct FilledMask {
  std::string token;  ///< decoded: Ġgood becomes " good"
  std::int64_t id = 0;
  float score = 0;   ///< probability among all tokens of the vocabulary, even with targets
  std::string text;  ///< text with the token instead of the mask; other masks remain
};

/// Options for TextModel::answer().
struct AnswerOptions {
  std::int64_t top_k = 1;
  std::int64_t max_answer_length = 15;  ///< number of tokens
  /// Number of tokens that consecutive windows of an overlong context share; default 128, or half of max_length if that is less.
  std::optional<std::int64_t> stride = std::nullopt;
  bool allow_empty = false;  ///< "no answer" (an empty text) is a possible answer
  /// Tokens per window, question included; default 384, or the model's maximum if that is less.
  std::optional<std::int64_t> max_length = std::nullopt;
  std::int64_t batch_size = 32;                                                      ///< does not affect the result
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;  ///< as in EmbedOptions
};

/// An answer found in the context.
struct Answer {
  std::string text;                 ///< empty: the context has no answer
  float score = 0;                  ///< probability of its start times probability of its end, summed over all occurrences of the same words
  std::int64_t start = 0, end = 0;  ///< byte offsets in the context
};

/// Options for TextModel::rank().
struct RankOptions {
  std::optional<std::int64_t> max_length = std::nullopt;
  bool truncation = true;
  std::optional<std::int64_t> top_k = std::nullopt;  ///< number of documents to return; default all
  std::int64_t batch_size = 32;
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;
  bool add_special_tokens = true;                         ///< as in TokenizeOptions
  std::optional<Side> truncation_side = std::nullopt;     ///< as in TokenizeOptions
  std::optional<std::string> prompt = std::nullopt;       ///< prepended to the query; default as in EmbedOptions
  std::optional<std::string> prompt_name = std::nullopt;  ///< as in EmbedOptions
  std::vector<bool>* truncated = nullptr;                 ///< as in EmbedOptions, in the order of the given documents
};

/// Index of a document in the given list, and its relevance.
struct RankedDocument {
  std::int64_t index = 0;
  float score = 0;
  bool truncated = false;  ///< whether the query or this document was truncated
};

}  // namespace attn
