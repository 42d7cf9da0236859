#include "attn/io/gguf/tokenizer_files.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "attn/io/gguf/json_object.hpp"
#include "attn/io/gguf/sentencepiece.hpp"
#include "attn/io/tokenizer_limits.hpp"

namespace attn::detail::gguf {
namespace {

struct Kind {
  std::string_view pre, normalizer, pre_tokenizer;
  bool adds_bos = false;  ///< unless tokenizer.ggml.add_bos_token differs
  bool ignores_merges = false;
  std::string_view decoder = R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})";
  std::string_view post_processor = R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":true})";  ///< without a template
  bool is_sentencepiece = false;
};

#define ATTN_GPT4_WORDS(digits)                                                                                                                   \
  R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|)" digits \
  R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},)"                                    \
  R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false}]})"

constexpr std::string_view kByteLevel = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
// Names are those of llama.cpp's converter.
constexpr Kind kByteLevelKinds[] = {
    {"gpt-2", "null", kByteLevel},
    {"smollm", "null",
     R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
     R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}]})"},
    {"llama-bpe", "null", ATTN_GPT4_WORDS(R"(\\p{N}{1,3})"), true, true},
    {"qwen2", R"({"type":"NFC"})", ATTN_GPT4_WORDS(R"(\\p{N})")},
};

#undef ATTN_GPT4_WORDS

// "\u2581" stands for a space. The first kind inserts one before each text between special tokens.
#define ATTN_SPACES R"({"type":"Replace","pattern":{"String":" "},"content":"\u2581"})"
#define ATTN_DECODERS \
  R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"\u2581"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"})"
constexpr Kind kSentencePieceKinds[] = {
    {.normalizer = R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"\u2581"},)" ATTN_SPACES "]}",
     .pre_tokenizer = "null",
     .adds_bos = true,
     .decoder = ATTN_DECODERS R"(,{"type":"Strip","content":" ","start":1,"stop":0}]})",
     .post_processor = "null",
     .is_sentencepiece = true},
    {.normalizer = ATTN_SPACES,
     .pre_tokenizer = "null",
     .adds_bos = true,
     .decoder = ATTN_DECODERS "]}",
     .post_processor = "null",
     .is_sentencepiece = true},
};
#undef ATTN_SPACES
#undef ATTN_DECODERS

std::string text_or_missing(const Metadata& metadata, const char* key) {
  const std::string* const value = metadata.string(key);
  return value != nullptr ? *value : "missing";
}

bool is_sentencepiece(const Metadata& metadata) { return text_or_missing(metadata, "tokenizer.ggml.model") == "llama"; }

const Kind& kind_of(const Metadata& metadata) {
  const std::optional<bool> adds_space = metadata.flag("tokenizer.ggml.add_space_prefix");
  if (is_sentencepiece(metadata)) return kSentencePieceKinds[adds_space.value_or(true) ? 0 : 1];
  if (const std::string model = text_or_missing(metadata, "tokenizer.ggml.model"); model != "gpt2")
    refuse("tokenizer.ggml.model", {"gpt2 (byte-level BPE) or llama (SentencePiece)"}, {model}, ErrorCode::unsupported);
  if (adds_space.value_or(false)) refuse("tokenizer.ggml.add_space_prefix", {"false"}, {"true"}, ErrorCode::unsupported);
  const std::string pre = text_or_missing(metadata, "tokenizer.ggml.pre");
  for (const Kind& kind : kByteLevelKinds)
    if (kind.pre == pre) return kind;
  refuse("tokenizer.ggml.pre", {"gpt-2, smollm, llama-bpe or qwen2"}, {pre}, ErrorCode::unsupported);
}

template <class T>
const T& required(const T* list, std::string_view key) {
  if (list == nullptr) refuse(key, {"a list"}, {"missing"});
  return *list;
}

void check_unique(const std::vector<std::string>& tokens) {
  std::vector<std::string_view> sorted(tokens.begin(), tokens.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) refuse("tokenizer.ggml.tokens", {"different tokens"}, {"a list with \"", *twice, "\" twice"});
}

Tokens read_tokens(const Metadata& metadata) {
  const Tokens tokens{.texts = required(metadata.strings("tokenizer.ggml.tokens"), "tokenizer.ggml.tokens"),
                      .types = required(metadata.numbers("tokenizer.ggml.token_type"), "tokenizer.ggml.token_type")};
  if (tokens.texts.size() != tokens.types.size())
    refuse("the length of tokenizer.ggml.token_type", {tokens.texts.size(), ", one for each token"}, {tokens.types.size()});
  for (const std::string& token : tokens.texts)
    if (token.size() > 4 * kMaxToken)
      refuse("tokenizer.ggml.tokens", {"tokens of at most ", kMaxToken, " characters"}, {token.size(), " bytes"}, ErrorCode::unsupported);
  check_unique(tokens.texts);
  return tokens;
}

/// Defaults to SentencePiece's ids, as llama.cpp does.
std::optional<std::int64_t> special_id(const Metadata& metadata, std::string_view name) {
  if (const auto id = metadata.whole(text({"tokenizer.ggml.", name, "_token_id"}))) return id;
  constexpr std::string_view kFirst[] = {"unknown", "bos", "eos"};
  const auto id = std::find(std::begin(kFirst), std::end(kFirst), name) - std::begin(kFirst);
  const std::vector<std::string>* const tokens = metadata.strings("tokenizer.ggml.tokens");
  const bool is_there = tokens != nullptr && id < std::ssize(kFirst) && id < std::ssize(*tokens);
  return is_sentencepiece(metadata) && is_there ? std::optional<std::int64_t>(id) : std::nullopt;
}

std::string added_tokens(const Tokens& tokens) {
  std::string list;
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    const double type = tokens.types[id];
    const bool is_special = type == Tokens::kControl || type == Tokens::kUnknown;
    if (!is_special && type != Tokens::kUserDefined) continue;
    JsonObject token;
    token.add_whole("id", static_cast<std::int64_t>(id)).add_string("content", tokens.texts[id]);
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) token.add_flag(flag, false);
    list += list.empty() ? "[" : ",";
    list += token.add_flag("special", is_special).take();
  }
  return list.empty() ? "[]" : list + "]";
}

std::string model_of(const Tokens& tokens, const std::vector<std::string>& merges, const Kind& kind, std::optional<std::int64_t> unknown) {
  std::string vocab = "{", list = "[";
  for (std::size_t id = 0; id < tokens.texts.size(); ++id) {
    if (tokens.types[id] == Tokens::kUnused && !kind.is_sentencepiece) continue;
    if (vocab.size() > 1) vocab += ',';
    vocab += json_string("tokenizer.ggml.tokens", tokens.texts[id]) + ':' + std::to_string(id);
  }
  for (const std::string& merge : merges) {
    if (list.size() > 1) list += ',';
    list += json_string("tokenizer.ggml.merges", merge);
  }
  JsonObject model;
  model.add_string("type", "BPE").add_flag("fuse_unk", kind.is_sentencepiece).add_flag("byte_fallback", kind.is_sentencepiece);
  if (kind.is_sentencepiece && unknown) model.add_string("unk_token", tokens.texts[static_cast<std::size_t>(*unknown)]);
  model.add_flag("ignore_merges", kind.ignores_merges);
  return model.add("vocab", vocab + "}").add("merges", list + "]").take();
}

std::string template_of(const Tokens& tokens, std::optional<std::int64_t> bos, std::optional<std::int64_t> eos) {
  const auto name_of = [&](std::int64_t id) { return json_string("tokenizer.ggml.tokens", tokens.texts[static_cast<std::size_t>(id)]); };
  const auto part = [&](const char* name, int type) {
    const auto special = [&](std::int64_t id) { return text({R"({"SpecialToken":{"id":)", name_of(id), R"(,"type_id":)", type, "}}"}); };
    const std::string sequence = text({R"({"Sequence":{"id":")", name, R"(","type_id":)", type, "}}"});
    return text({bos ? special(*bos) : "", bos ? "," : "", sequence, eos ? "," : "", eos ? special(*eos) : ""});
  };
  JsonObject used;
  const auto use = [&](std::int64_t id) {
    const std::string name = name_of(id);
    used.add_quoted(name, text({R"({"id":)", name, R"(,"ids":[)", id, R"(],"tokens":[)", name, "]}"}));
  };
  if (bos) use(*bos);
  if (eos && eos != bos) use(*eos);
  return text({R"({"type":"TemplateProcessing","single":[)", part("A", 0), R"(],"pair":[)", part("A", 0), ",", part("B", 1), R"(],"special_tokens":)",
               used.take(), "}"});
}

}  // namespace

TokenizerFiles read_tokenizer_files(const Metadata& metadata) {
  const Kind& kind = kind_of(metadata);
  const Tokens tokens = read_tokens(metadata);
  const auto id_of = [&](const char* name) {
    const std::optional<std::int64_t> id = special_id(metadata, name);
    if (id && (*id < 0 || *id >= std::ssize(tokens.texts)))
      refuse(text({"tokenizer.ggml.", name, "_token_id"}), {"an id below ", tokens.texts.size()}, {*id});
    return id;
  };
  const std::optional<std::int64_t> bos = id_of("bos"), eos = id_of("eos"), unknown = id_of("unknown");
  const auto added = [&](const char* name, std::optional<std::int64_t> id, bool otherwise) -> std::optional<std::int64_t> {
    const std::string key = text({"tokenizer.ggml.add_", name, "_token"});
    const std::optional<bool> given = metadata.flag(key);
    if (!given.value_or(otherwise && id)) return std::nullopt;
    if (!id) refuse(key, {"false"}, {"true"}, ErrorCode::format, "The file has no id for this token");
    return id;
  };
  const auto first = added("bos", bos, kind.adds_bos), last = added("eos", eos, false);
  std::vector<std::string> made;
  if (kind.is_sentencepiece) made = merges_of_scores(tokens, required(metadata.numbers("tokenizer.ggml.scores"), "tokenizer.ggml.scores"));
  const std::vector<std::string>& merges =
      kind.is_sentencepiece ? made : required(metadata.strings("tokenizer.ggml.merges"), "tokenizer.ggml.merges");

  JsonObject file;
  file.add_string("version", "1.0").add("added_tokens", added_tokens(tokens)).add("normalizer", kind.normalizer);
  file.add("pre_tokenizer", kind.pre_tokenizer);
  file.add("post_processor", first || last ? template_of(tokens, first, last) : std::string(kind.post_processor));
  file.add("decoder", kind.decoder);
  file.add("model", model_of(tokens, merges, kind, unknown));

  JsonObject config;
  config.add_string("tokenizer_class", "PreTrainedTokenizerFast").add_flag("clean_up_tokenization_spaces", false);
  const auto add_token = [&](const char* name, std::optional<std::int64_t> id) {
    if (id) config.add_string(name, tokens.texts[static_cast<std::size_t>(*id)]);
  };
  add_token("bos_token", bos);
  add_token("eos_token", eos);
  add_token("unk_token", unknown);
  add_token("pad_token", id_of("padding"));
  if (const std::string* const chat = metadata.string("tokenizer.chat_template")) config.add_string("chat_template", *chat);
  return {file.take(), config.take()};
}

std::string read_generation_config(const Metadata& metadata) {
  JsonObject config;
  const auto id_of = [&](const char* name) { return special_id(metadata, name); };
  if (const auto bos = id_of("bos")) config.add_whole("bos_token_id", *bos);
  std::string ends;
  for (const auto& id : {id_of("eos"), id_of("eot")})
    if (id) ends += text({ends.empty() ? "[" : ",", *id});
  if (!ends.empty()) config.add("eos_token_id", ends + "]");
  return config.take();
}

}  // namespace attn::detail::gguf
