#include <cstdint>
#include <string>
#include <vector>

#include "encodings.hpp"
#include "errors.hpp"
#include "layers.hpp"

namespace attn::python {
namespace {

using Own = Shared<detail::TokenizerWithFiles>;

EncodingResult encode(const Own& self, const Texts& given, const GivenTokenizeOptions& how) {
  constexpr const char* kOp = "encode";
  const GivenTexts texts(given, kOp);
  const TokenizeOptions options = how.options(kOp);
  return encoding_of_texts(texts, self.read(kOp, [&](const Tokenizer& of) {
    return texts.are_pairs ? of.encode_pairs(texts.pairs, options) : of.encode(texts.texts, options);
  }));
}

EncodingResult encode_words(const Own& self, const WordLists& given, const GivenTokenizeOptions& how) {
  constexpr const char* kOp = "encode_words";
  const GivenWords words(given, kOp);
  const TokenizeOptions options = how.options(kOp);
  return encoding_of_words(words, self.read(kOp, [&](const Tokenizer& of) {
    return words.are_pairs ? of.encode_word_pairs(words.pairs, options) : of.encode_words(words.lists, options);
  }));
}

std::string decode(const Own& self, const ArrayLike& given, bool skip_special_tokens) {
  const std::vector<std::int64_t> numbers = ids_to_decode(given);
  const std::vector<std::int32_t> ids(numbers.begin(), numbers.end());
  return self.read("decode", [&](const Tokenizer& of) { return of.decode(ids, skip_special_tokens); });
}

}  // namespace

void define_tokenizer(nb::module_& module) {
  nb::class_<Own> tokenizer(module, "Tokenizer", nb::type_slots(calling_init()),
                            R"(Converts text to token ids and back as a model does, without the model's weights.

The ids, tokens and offsets are those of TextModel.tokenize() and of Hugging Face's tokenizers.

>>> tokenizer = attn.Tokenizer.from_pretrained("testdata/models/sentiment")
>>> encoding = tokenizer.encode(["A warm film.", "Fine."])
>>> encoding.tokens[1], encoding.offsets[0][2]
(['[CLS]', 'fine', '.', '[SEP]', '[PAD]', '[PAD]'], (2, 6)))");
  tokenizer.def_static(
      "from_pretrained",
      [](const Path& path) {
        const std::string folder = model_path_of(path, "Tokenizer.from_pretrained");
        return new Own{.object = run(std::nullopt, [&] { return detail::load_tokenizer_with_files(folder); })};
      },
      nb::arg("path"), R"(Loads a tokenizer (transformers.AutoTokenizer.from_pretrained).

path: as in TextModel.load(). Of a folder it reads tokenizer.json, tokenizer_config.json, special_tokens_map.json, added_tokens.json and
config.json, of which only tokenizer.json is required; config.json may be that of a model that attn does not have.

Returns a Tokenizer. Raises MissingFileError if the folder or tokenizer.json does not exist, FormatError if a file is damaged, UnsupportedError for
a part of the tokenizer that attn does not have, OutOfMemoryError if its tables do not fit into memory.

>>> attn.Tokenizer.from_pretrained("testdata/models/sentiment").vocabulary_size
13500)");
  define_encoding<Own, Texts>(tokenizer, "encode", &encode, R"(Converts a text, texts, or pairs of texts to token ids.

texts: a text, a list of texts, or a list of pairs.
max_length: texts are truncated to this many tokens, special tokens included; default no limit.
truncation, add_special_tokens, truncation_side, padding_side: as in TextModel.tokenize().

Returns an Encoding with ids, mask and types (B,L). Raises OutOfRangeError for an overlong text without truncation or a max_length without room for
the special tokens, ArgumentError if texts are not texts, ConfigError for another side, OutOfMemoryError if the ids do not fit into memory.

>>> tokenizer = attn.Tokenizer.from_pretrained("testdata/models/sentiment")
>>> tokenizer.encode("A warm film.", max_length=4).tokens
[['[CLS]', 'a', 'warm', '[SEP]']])");
  define_encoding<Own, WordLists>(tokenizer, "encode_words", &encode_words,
                                  R"(Converts lists of words, or pairs of lists, to token ids, as TextModel.tokenize_words() does.

texts: lists of words, or pairs of lists.
max_length, truncation, add_special_tokens, truncation_side, padding_side: as in encode().

Returns an Encoding with words. Raises the errors of encode().

>>> attn.Tokenizer.from_pretrained("testdata/models/sentiment").encode_words([["A", "warm", "film."]]).words
[[None, 0, 1, 2, 2, None]])");
  tokenizer
      .def("decode", &decode, nb::arg("ids"), nb::arg("skip_special_tokens") = false,
           R"(Converts token ids to text, as TextModel.decode() does. Unknown ids are left out.

ids: token ids.
skip_special_tokens: leave out [CLS] and so on.

Returns the text. Raises UnsupportedError for a decoder that attn does not have, ShapeError unless ids have rank 1, DtypeError unless they are whole
numbers.

>>> tokenizer = attn.Tokenizer.from_pretrained("testdata/models/sentiment")
>>> tokenizer.decode(tokenizer.encode("A warm film.").input_ids[0], skip_special_tokens=True)
'a warm film.')")
      .def(
          "token_to_id",
          [](const Own& self, const std::string& token) {
            return self.read("token_to_id", [&](const Tokenizer& of) { return of.token_to_id(token); });
          },
          nb::arg("token"), R"(Returns the id of a token, or None if it is not in the vocabulary.

token: as in the vocabulary, for example '##ing' or 'Ġgood'.

>>> attn.Tokenizer.from_pretrained("testdata/models/sentiment").token_to_id("film")
222)")
      .def(
          "id_to_token",
          [](const Own& self, std::int64_t id) { return self.read("id_to_token", [&](const Tokenizer& of) { return of.id_to_token(id); }); },
          nb::arg("id"), R"(Returns the token of an id, or None if it is not in the vocabulary.

id: a whole number.

>>> attn.Tokenizer.from_pretrained("testdata/models/sentiment").id_to_token(222)
'film')")
      .def_prop_ro(
          "vocabulary_size", [](const Own& self) { return self.read("vocabulary_size", [](const Tokenizer& of) { return of.vocabulary_size(); }); },
          "Number of tokens, including added tokens.")
      .def_prop_ro(
          "pad_id", [](const Own& self) { return self.read("pad_id", [](const Tokenizer& of) { return of.pad_id(); }); }, "Id of the padding token.")
      .def_prop_ro("_files", [](const Own& self) {
        nb::dict files;
        for (const auto& [name, bytes] : self.object.files) files[nb::str(name.c_str())] = nb::bytes(bytes.data(), bytes.size());
        return files;
      });
}

}  // namespace attn::python
