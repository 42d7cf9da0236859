#pragma once

#include <cstdint>
#include <optional>

#include "array.hpp"
#include "attn/io/tokenizer.hpp"
#include "options.hpp"
#include "running.hpp"
#include "texts.hpp"
#include "tokenizer.hpp"

namespace attn::python {

using EncodingResult = Typed<"attn.Encoding">;

std::optional<Side> side_of(const Word<kSideNames>& truncation_side, const char* op);

EncodingResult encoding_of_texts(const GivenTexts& texts, const EncodingTensors<2>& encoding);
EncodingResult encoding_of_words(const GivenWords& words, const EncodingTensors<2>& encoding);

std::vector<std::int64_t> ids_to_decode(const ArrayLike& given);

/// Also looks in Hugging Face's cache.
std::string model_path_of(const Path& path, const char* op);

struct GivenTokenizeOptions {
  std::optional<std::int64_t> max_length;
  bool truncation, add_special_tokens;
  Word<kSideNames> truncation_side, padding_side;

  TokenizeOptions options(const char* op) const;
};

template <class Of, class Given, class Function>
void define_encoding(nb::class_<Of>& of, const char* name, Function function, const char* text) {
  of.def(
      name,
      [function](const Of& self, const Given& texts, std::optional<std::int64_t> max_length, bool truncation, bool add_special_tokens,
                 const Word<kSideNames>& truncation_side, const Word<kSideNames>& padding_side) {
        return function(self, texts, GivenTokenizeOptions{max_length, truncation, add_special_tokens, truncation_side, padding_side});
      },
      nb::arg("texts"), nb::kw_only(), nb::arg("max_length") = nb::none(), nb::arg("truncation") = true, nb::arg("add_special_tokens") = true,
      nb::arg("truncation_side") = nb::none(), nb::arg("padding_side") = nb::none(), text);
}

}  // namespace attn::python
