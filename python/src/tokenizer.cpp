#include "tokenizer.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "running.hpp"

namespace attn::python {
namespace {

/// Row of attn/_tokenizers.py; offsets in characters.
using Row = std::tuple<std::vector<std::int32_t>, std::vector<std::int32_t>, std::vector<std::string>, TokenOffsets, TokenSequences, bool>;

std::optional<std::string> name_of(std::optional<Side> side) {
  if (!side) return std::nullopt;
  return std::string(kSideNames[static_cast<std::size_t>(*side)]);
}

/// Byte offset of each character, and of the end.
std::vector<std::int64_t> starts_of_characters(const std::string& text) {
  std::vector<std::int64_t> starts;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) starts.push_back(static_cast<std::int64_t>(i));
  starts.push_back(static_cast<std::int64_t>(text.size()));
  return starts;
}

class PythonTokenizer final : public TextTokenizer {
 public:
  explicit PythonTokenizer(nb::object tokenizer) : tokenizer_(std::move(tokenizer)) {}
  ~PythonTokenizer() override {
    const Locked locked;
    tokenizer_.reset();
  }

  EncodedTexts encode_texts(const std::vector<std::string>& texts, const TokenizeOptions& options) const override {
    return encode(texts, options, [](const std::string& text) { return std::pair(text, std::optional<std::string>()); });
  }
  EncodedTexts encode_texts(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options) const override {
    return encode(pairs, options, [](const auto& pair) { return std::pair(pair.first, std::optional(pair.second)); });
  }
  std::optional<std::int64_t> token_to_id(const std::string& token) const override { return ask<std::optional<std::int64_t>>("token_to_id", token); }
  std::optional<std::string> id_to_token(std::int64_t id) const override { return ask<std::optional<std::string>>("id_to_token", id); }
  std::int64_t pad_id() const override { return std::get<0>(padding()); }

 private:
  template <class Answer, class... Arguments>
  Answer ask(const char* name, const Arguments&... arguments) const {
    const Locked locked;
    const nb::object answer = tokenizer_.attr(name)(arguments...);
    return nb::cast<Answer>(answer);
  }

  std::tuple<std::int32_t, std::int32_t, std::string> padding() const { return ask<std::tuple<std::int32_t, std::int32_t, std::string>>("padding"); }

  template <class Text, class TextsOf>
  EncodedTexts encode(const std::vector<Text>& all, const TokenizeOptions& options, TextsOf texts_of) const {
    std::vector<Row> rows;
    std::size_t longest = 0;
    for (const Text& each : all) {
      const auto [first, second] = texts_of(each);
      Row& row = rows.emplace_back(
          ask<Row>("encode", first, second, options.max_length, options.truncation, options.add_special_tokens, name_of(options.truncation_side)));
      auto& [ids, types, tokens, offsets, sequences, truncated] = row;
      const std::vector<std::int64_t> starts[]{starts_of_characters(first), starts_of_characters(second.value_or(""))};
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        if (!offsets[i]) continue;
        const auto& of_text = starts[sequences.at(i) == 1 ? 1 : 0];
        offsets[i] = {of_text.at(static_cast<std::size_t>(offsets[i]->first)), of_text.at(static_cast<std::size_t>(offsets[i]->second))};
      }
      longest = std::max(longest, ids.size());
    }
    const auto [pad_id, pad_type, pad_token] = padding();
    EncodedTexts encoding{.shape = {std::ssize(rows), static_cast<std::int64_t>(longest)},
                          .input_ids = {},
                          .token_type_ids = {},
                          .attention_mask = {},
                          .truncated = {},
                          .tokens = {},
                          .offsets = {},
                          .sequence_ids = {}};
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (auto& [ids, types, tokens, offsets, sequences, truncated] : rows) {
      std::vector<std::uint8_t> mask(ids.size(), 1);
      const auto fill = [&](auto& list, const auto& with) {
        list.insert(options.padding_side == Side::left ? list.begin() : list.end(), longest - list.size(), with);
      };
      fill(mask, std::uint8_t{0});
      fill(ids, pad_id);
      fill(types, pad_type);
      fill(tokens, pad_token);
      fill(offsets, std::nullopt);
      fill(sequences, std::nullopt);
      append(encoding.attention_mask, mask);
      append(encoding.input_ids, ids);
      append(encoding.token_type_ids, types);
      encoding.tokens.push_back(std::move(tokens));
      encoding.offsets.push_back(std::move(offsets));
      encoding.sequence_ids.push_back(std::move(sequences));
      encoding.truncated.push_back(truncated);
    }
    return encoding;
  }

  nb::object tokenizer_;
};

}  // namespace

std::shared_ptr<const TextTokenizer> make_tokenizer(std::span<const std::uint8_t> tokenizer_json,
                                                    std::optional<std::span<const std::uint8_t>> tokenizer_config, std::string_view default_class) {
  const Locked locked;
  const auto bytes = [](std::span<const std::uint8_t> file) { return nb::object(nb::bytes(file.data(), file.size())); };
  return std::make_shared<PythonTokenizer>(nb::module_::import_("attn._tokenizers")
                                               .attr("Tokenizer")(bytes(tokenizer_json), tokenizer_config ? bytes(*tokenizer_config) : nb::none(),
                                                                  nb::str(default_class.data(), default_class.size())));
}

}  // namespace attn::python
