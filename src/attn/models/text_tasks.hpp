#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/side.hpp"

// What TextModel's tasks take and give.
namespace attn {

/// How tokens become entities, as transformers' AggregationStrategy.
enum class Aggregation : std::uint8_t {
  none,     ///< each token is one
  simple,   ///< neighbours with the same label are one, unless the label of the second begins with B-
  first,    ///< the same, and a word has the label of its first token,
  average,  ///< of the mean of its tokens' probabilities,
  max,      ///< or of its most certain token
};
inline constexpr std::array<std::string_view, 5> kAggregationNames{"none", "simple", "first", "average", "max"};

struct ClassifyTokensOptions {
  std::optional<std::int64_t> max_length = std::nullopt;  ///< as TokenizeOptions
  bool truncation = true;
  Aggregation aggregation = Aggregation::simple;
  /// A text that is too long goes in windows that have so many tokens in common; of overlapping entities the longest counts, then the most certain.
  /// Without it a long text is cut. Not with Aggregation::none.
  std::optional<std::int64_t> stride = std::nullopt;
  std::vector<std::string> ignore_labels = {"O"};
  std::int64_t batch_size = 32;                                                      ///< any gives the same bits
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;  ///< as EmbedOptions
  bool add_special_tokens = true;                                                    ///< as TokenizeOptions
  std::optional<Side> truncation_side = std::nullopt;                                ///< as TokenizeOptions
  std::vector<bool>* truncated = nullptr;                                            ///< as EmbedOptions; with a stride no text is truncated
};

/// Something that a text names.
struct Entity {
  std::string label;  ///< without B- and I- where tokens are put together
  float score = 0;    ///< of several tokens the mean
  std::string text;
  std::int64_t start = 0, end = 0;  ///< bytes of the text
};

struct FillMaskOptions {
  std::int64_t top_k = 5;
  std::vector<std::string> targets = {};  ///< of these tokens alone, of a text that is no token its first one; none: of all
  std::int64_t batch_size = 32;           ///< any gives the same bits
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;  ///< as EmbedOptions
};

/// A token in the place of a mask.
struct FilledMask {
  std::string token;  ///< as text: " good" of Ġgood
  std::int64_t id = 0;
  float score = 0;   ///< of the whole vocabulary
  std::string text;  ///< with the token in the place of the mask; where there are other masks they stay
};

struct AnswerOptions {
  std::int64_t top_k = 1;
  std::int64_t max_answer_length = 15;  ///< in tokens
  /// A context that is too long goes in windows of max_length tokens, question included, with so many in common; default 128, of shorter ones half.
  std::optional<std::int64_t> stride = std::nullopt;
  bool allow_empty = false;  ///< that there is no answer is one, too
  /// Tokens of a window; default 384, or what the model takes.
  std::optional<std::int64_t> max_length = std::nullopt;
  std::int64_t batch_size = 32;                                                      ///< any gives the same bits
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;  ///< as EmbedOptions
};

/// A part of the context.
struct Answer {
  std::string text;                 ///< empty where there is no answer
  float score = 0;                  ///< the probability of its start times that of its end; of several places with the same words the sum
  std::int64_t start = 0, end = 0;  ///< bytes of the context
};

struct RankOptions {
  std::optional<std::int64_t> max_length = std::nullopt;
  bool truncation = true;
  std::optional<std::int64_t> top_k = std::nullopt;  ///< default all
  std::int64_t batch_size = 32;
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;
  bool add_special_tokens = true;                         ///< as TokenizeOptions
  std::optional<Side> truncation_side = std::nullopt;     ///< as TokenizeOptions
  std::optional<std::string> prompt = std::nullopt;       ///< before the query; as EmbedOptions
  std::optional<std::string> prompt_name = std::nullopt;  ///< as EmbedOptions
  std::vector<bool>* truncated = nullptr;                 ///< as EmbedOptions, in the order of the documents
};

/// A document's place in the list, and how relevant it is.
struct RankedDocument {
  std::int64_t index = 0;
  float score = 0;
  bool truncated = false;  ///< whether the query or this document was truncated
};

}  // namespace attn
