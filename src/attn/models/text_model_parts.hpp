#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/io/tokenizer.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/models/text_model.hpp"

// What a TextModel is made of, and how its texts go through it. Internal.
namespace attn::detail {

/// The files of a folder that were read, by name, but for the weights.
using SmallFiles = std::vector<std::pair<std::string, std::vector<std::uint8_t>>>;

/// One text of many, or a part of it: what the model needs of it.
struct TextRow {
  std::size_t index;
  std::vector<std::int32_t> ids, types;
};

/// How many texts are sorted by length at a time, so that a list of any length takes no more memory than its results.
inline constexpr std::size_t kMostSorted = 8192;

/// Ids, types and mask as the model takes them.
struct TextBatch {
  Shape shape;
  std::vector<std::int64_t> ids, types;
  std::vector<std::uint8_t> flags;  // of the mask, where that is not the caller's
  std::optional<MaskView> mask;

  TextBatch(std::string_view op, const TokenIds& inputs) : shape(inputs.shape), ids(inputs.ids), types(inputs.types) {
    const auto check = [&](const char* name, const Shape& got) {
      if (got != shape) fail(ErrorCode::shape, op, name, {shape, " as input_ids"}, {got});
    };
    if (!types.empty()) check("token_type_ids", inputs.type_shape);
    if (inputs.mask.empty()) return;
    check("attention_mask", inputs.mask_shape);
    flags = inputs.mask;
    mask = MaskView(MaskKind::attend, flags.data(), shape);
  }
  /// Padded to the first, which is the longest.
  template <class Row>
  explicit TextBatch(std::span<const Row> rows) {
    const std::size_t L = rows.front().ids.size();
    shape = {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(L)};
    flags.assign(rows.size() * L, 0);
    ids.assign(flags.size(), 0);
    types.assign(flags.size(), 0);
    for (std::size_t b = 0; b < rows.size(); ++b) {
      std::copy(rows[b].ids.begin(), rows[b].ids.end(), ids.begin() + static_cast<std::ptrdiff_t>(b * L));
      std::copy(rows[b].types.begin(), rows[b].types.end(), types.begin() + static_cast<std::ptrdiff_t>(b * L));
      std::fill_n(flags.begin() + static_cast<std::ptrdiff_t>(b * L), rows[b].ids.size(), std::uint8_t{1});
    }
    mask = MaskView(MaskKind::attend, flags.data(), shape);
  }

  TextBatch(const TextBatch&) = delete;  // the mask refers to flags
  TextBatch& operator=(const TextBatch&) = delete;

  ModelInputs inputs() const { return {shape, ids, types, mask ? &*mask : nullptr}; }
};

/// Throws ARGUMENT where the lists of a caller's tokenizer are not as long as each other.
void check_encoding(const EncodedTexts& encoding, std::size_t texts);

/// Throws the error again under another name if it is about "text 0".
void rename_text(const Error& error, const std::string& name, std::size_t index);

/// Calls run(), which tokenizes one text as a list of its own. Errors name the text as the caller knows it.
template <class Run>
auto naming_text(const std::string& name, std::size_t index, Run run) {
  try {
    return run();
  } catch (const Error& error) {
    rename_text(error, name, index);
    throw;
  }
}

inline void check_batch_size(std::string_view op, std::int64_t size) {
  if (size < 1) fail(ErrorCode::config, op, "batch_size", {"a number of at least 1"}, {size});
}

/// Calls run(batch, rows) with the rows of so many texts in batches, sorted by their length so that little of a batch is padding. Long ones go first,
/// so that what does not fit into memory is known at once. rows_of(i, rows) appends those of a text.
template <class Row, class RowsOf, class Run>
void in_batches(std::size_t count, std::int64_t batch_size, const std::function<void(std::int64_t, std::int64_t)>& on_progress, RowsOf rows_of,
                Run run) {
  for (std::size_t begin = 0; begin < count; begin += kMostSorted) {
    const std::size_t end = std::min(count, begin + kMostSorted);
    std::vector<Row> rows;
    for (std::size_t i = begin; i < end; ++i) rows_of(i, rows);
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.ids.size() > b.ids.size(); });
    for (std::size_t first = 0; first < rows.size();) {
      const std::size_t size = std::min(rows.size() - first, static_cast<std::size_t>(batch_size));
      const std::span<const Row> batch = std::span(rows).subspan(first, size);
      run(TextBatch(batch), batch);
      first += size;
      if (on_progress) on_progress(static_cast<std::int64_t>(begin + std::min(first, end - begin)), static_cast<std::int64_t>(count));
    }
  }
}

}  // namespace attn::detail

namespace attn {

struct TextModel::Parts {
  std::unique_ptr<EncoderModel> model;
  detail::SmallFiles files;  ///< that save_pretrained writes again
  std::string base;          ///< the folder of config.json in that of the model, with a slash, or empty
  std::optional<Tokenizer> tokenizer;
  std::shared_ptr<const TextTokenizer> callers;  ///< where there is no tokenizer
  std::optional<Error> no_tokenizer;             ///< why there is none

  /// f(a tokenizer), of attn or the caller's.
  template <class F>
  auto ask(F f) const {
    if (tokenizer) return f(*tokenizer);
    if (callers) return f(*callers);
    throw Error(*no_tokenizer);
  }
  /// That of attn, for who needs more of it than a caller's has.
  const Tokenizer& own_tokenizer(std::string_view op) const {
    if (!tokenizer) ask([](const auto&) {});
    if (!tokenizer) detail::fail(ErrorCode::unsupported, op, "the tokenizer", {"one that attn reads itself"}, {"the caller's"});
    return *tokenizer;
  }
  /// Of the texts [begin, end).
  template <class Text>
  EncodedTexts encode(const std::vector<Text>& texts, std::size_t begin, std::size_t end, const TokenizeOptions& options) const {
    if (tokenizer) return tokenizer->encode_texts(texts, begin, end, options);
    const auto at = [&](std::size_t i) { return texts.begin() + static_cast<std::ptrdiff_t>(i); };
    const std::vector<Text> asked(at(begin), at(end));
    EncodedTexts encoding = ask([&](const auto& any) { return any.encode_texts(asked, options); });
    detail::check_encoding(encoding, asked.size());
    return encoding;
  }

  /// What goes before each text.
  std::string prompt(const EmbedOptions& options, std::string_view op = "embed") const {
    const detail::ModelConfig& config = model->config();
    if (options.prompt) return *options.prompt;
    if (!options.prompt_name) return config.default_prompt;
    std::string names;
    for (const detail::Prompt& prompt : config.prompts) {
      if (prompt.name == *options.prompt_name) return prompt.text;
      names += (names.empty() ? "" : ", ") + prompt.name;
    }
    detail::fail(ErrorCode::config, op, "prompt_name", {"one of ", names}, {*options.prompt_name});
  }
  /// Tokens that it begins a text with, special ones included, but for one at its end.
  std::int64_t prompt_length(const std::string& prompt) const {
    const EncodedTexts encoding = detail::naming_text("prompt", 0, [&] { return encode(std::vector{prompt}, 0, 1, {}); });
    const TokenOffsets& offsets = encoding.offsets[0];
    const bool ends_specially = !offsets.empty() && !offsets.back();
    return static_cast<std::int64_t>(offsets.size()) - (ends_specially ? 1 : 0);
  }
};

}  // namespace attn
