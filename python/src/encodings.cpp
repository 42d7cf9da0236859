#include "encodings.hpp"

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace attn::python {
namespace {

nb::list numbers_of(const std::vector<std::vector<std::optional<std::int32_t>>>& texts) {
  nb::list all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    check_signals(i);
    nb::list of_text;
    for (const auto& number : texts[i]) of_text.append(number ? nb::object(nb::int_(*number)) : nb::none());
    all.append(of_text);
  }
  return all;
}

template <class Places>
EncodingResult encoding_result(const EncodingTensors<2>& encoding, Places places) {
  nb::list offsets;
  for (std::size_t i = 0; i < encoding.offsets.size(); ++i) {
    check_signals(i);
    offsets.append(places(i));
  }
  const nb::object words = encoding.words.empty() ? nb::none() : nb::object(numbers_of(encoding.words));
  return make_result("Encoding", to_python(encoding.input_ids), to_python(encoding.attention_mask), to_python(encoding.token_type_ids),
                     to_python(encoding.tokens), offsets, numbers_of(encoding.sequence_ids), nb::cast(encoding.truncated), words);
}

}  // namespace

std::optional<Side> side_of(const Word<kSideNames>& truncation_side, const char* op) {
  return maybe_word_of<Side>(truncation_side, op, "truncation_side");
}

EncodingResult encoding_of_texts(const GivenTexts& texts, const EncodingTensors<2>& encoding) {
  return encoding_result(encoding, [&](std::size_t i) { return texts.places(i, encoding.offsets[i], encoding.sequence_ids[i]); });
}

EncodingResult encoding_of_words(const GivenWords& words, const EncodingTensors<2>& encoding) {
  return encoding_result(encoding, [&](std::size_t i) { return words.places(i, encoding.offsets[i], encoding.sequence_ids[i], encoding.words[i]); });
}

std::vector<std::int64_t> ids_to_decode(const ArrayLike& given) {
  const Array<std::int32_t> ids = ids_of(given, "decode", "ids");
  if (ids.shape().size() != 1) detail::fail(ErrorCode::shape, "decode", "ids", {"rank 1"}, {"rank ", ids.shape().size()});
  return {ids.begin(), ids.end()};
}

std::string model_path_of(const Path& path, const char* op) {
  std::string folder = path_of(path, op);
  if (std::error_code none; std::filesystem::exists(folder, none)) return folder;
  return path_of(Path(nb::module_::import_("attn._hub").attr("folder_of")(path, op)), op);
}

TokenizeOptions GivenTokenizeOptions::options(const char* op) const {
  return {.max_length = max_length,
          .truncation = truncation,
          .add_special_tokens = add_special_tokens,
          .truncation_side = side_of(truncation_side, op),
          .padding_side = maybe_word_of<Side>(padding_side, op, "padding_side")};
}

}  // namespace attn::python
