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
#include <variant>
#include <vector>

#include "attn/io/tokenizer.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/models/text_model.hpp"

namespace attn::detail {

/// Texts that are sorted by length at a time, so that a list of any length takes no more memory than its results.
inline constexpr std::size_t kMostSorted = 8192;

template <class Row>
PackedSequences packed(std::span<const Row> rows) {
  PackedSequences sequences;
  for (const Row& row : rows) {
    sequences.ids.insert(sequences.ids.end(), row.ids.begin(), row.ids.end());
    sequences.types.insert(sequences.types.end(), row.types.begin(), row.types.end());
    sequences.add_length(std::ssize(row.ids));
  }
  return sequences;
}

struct TextBatch {
  Shape shape;
  std::vector<std::int64_t> ids, types;
  std::vector<std::uint8_t> flags;  // data of the mask
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
  /// The first row is the longest.
  explicit TextBatch(std::span<const TextRow> rows) {
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

/// Throws ARGUMENT if lists of a caller's tokenizer differ in length.
void check_encoding(const EncodedTexts& encoding, std::size_t texts);

/// Throws an error about "text 0" again with another name and index.
void rename_text(const Error& error, const std::string& name, std::size_t index);

/// run() tokenizes one text; errors call it `name` instead of "text 0".
template <class Run>
auto naming_text(const std::string& name, std::size_t index, Run run) {
  try {
    return run();
  } catch (const Error& error) {
    rename_text(error, name, index);
    throw;
  }
}

std::int64_t label_of(std::string_view op, std::string_view name, const std::vector<std::string>& labels,
                      const std::variant<std::int64_t, std::string>& given);
/// Empty for another head.
std::vector<std::string> text_labels(const EncoderModel& model);

inline void check_batch_size(std::string_view op, std::int64_t size) {
  if (size < 1) fail(ErrorCode::config, op, "batch_size", {"a number of at least 1"}, {size});
}

inline void check_top_k(std::string_view op, const std::optional<std::int64_t>& top_k) {
  if (top_k && *top_k < 1) fail(ErrorCode::config, op, "top_k", {"a number of at least 1"}, {*top_k});
}
/// Sorts by descending score and drops all but top_k.
inline void keep_best(std::vector<LabelScore>& scores, const std::optional<std::int64_t>& top_k) {
  std::stable_sort(scores.begin(), scores.end(), [](const LabelScore& a, const LabelScore& b) { return a.score > b.score; });
  if (top_k) scores.resize(std::min(scores.size(), static_cast<std::size_t>(*top_k)));
}

/// Calls run(batch, rows) for rows sorted by length, so that equal lengths are computed together; the longest first, so that exceeding the memory
/// limit fails early. rows_of(i, rows) appends the rows of text i.
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
      run(packed(batch), batch);
      first += size;
      if (on_progress) on_progress(static_cast<std::int64_t>(begin + std::min(first, end - begin)), static_cast<std::int64_t>(count));
    }
  }
}

}  // namespace attn::detail

namespace attn {

struct TextModel::Parts {
  std::unique_ptr<EncoderModel> model;
  detail::SmallFiles files;  ///< written again by save_pretrained()
  std::string base;          ///< subfolder of config.json with a trailing slash, or empty
  std::optional<Tokenizer> tokenizer;
  std::shared_ptr<const TextTokenizer> callers;  ///< used if `tokenizer` is empty
  std::optional<Error> no_tokenizer;             ///< why `tokenizer` is empty

  template <class F>
  auto ask(F f) const {
    if (tokenizer) return f(*tokenizer);
    if (callers) return f(*callers);
    throw Error(*no_tokenizer);
  }
  const Tokenizer& own_tokenizer(std::string_view op) const {
    if (!tokenizer) ask([](const auto&) {});
    if (!tokenizer) detail::fail(ErrorCode::unsupported, op, "the tokenizer", {"one that attn reads itself"}, {"the caller's"});
    return *tokenizer;
  }
  template <class Text>
  EncodedTexts encode(const std::vector<Text>& texts, std::size_t begin, std::size_t end, const TokenizeOptions& options) const {
    if (tokenizer) return tokenizer->encode_texts(texts, begin, end, options);
    const auto at = [&](std::size_t i) { return texts.begin() + static_cast<std::ptrdiff_t>(i); };
    const std::vector<Text> asked(at(begin), at(end));
    EncodedTexts encoding = ask([&](const auto& any) { return any.encode_texts(asked, options); });
    detail::check_encoding(encoding, asked.size());
    return encoding;
  }

  TokenizeOptions limited(const TokenizeOptions& options) const {
    const detail::ModelConfig& config = model->config();
    TokenizeOptions given = options;
    given.max_length = options.max_length.value_or(config.default_length);
    if (*given.max_length > config.max_length)
      detail::fail(ErrorCode::out_of_range, "tokenize", "max_length", {"a number of at most ", config.max_length}, {*given.max_length},
                   "The model has no more positions");
    return given;
  }
  /// The options are limited().
  template <class Text>
  detail::TextRow row(const Text& text, std::size_t index, const TokenizeOptions& options) const {
    detail::TextRow row;
    if (tokenizer) {
      row = tokenizer->encode_row(text, index, options);
    } else {
      EncodedTexts encoded = encode(std::vector{text}, 0, 1, options);
      row = {index, std::move(encoded.input_ids), std::move(encoded.token_type_ids), encoded.truncated[0]};
    }
    if (!model->config().token_types) std::fill(row.types.begin(), row.types.end(), 0);
    return row;
  }

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
  /// Includes special tokens except one at the end.
  std::int64_t prompt_length(const std::string& prompt, bool add_special_tokens) const {
    const TokenizeOptions options{.add_special_tokens = add_special_tokens};
    const EncodedTexts encoding = detail::naming_text("prompt", 0, [&] { return encode(std::vector{prompt}, 0, 1, options); });
    const TokenOffsets& offsets = encoding.offsets[0];
    const bool ends_specially = !offsets.empty() && !offsets.back();
    return static_cast<std::int64_t>(offsets.size()) - (ends_specially ? 1 : 0);
  }
};

}  // namespace attn
