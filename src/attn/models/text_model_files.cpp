#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "attn/io/files.hpp"
#include "attn/io/tokenizer/tokenizer_file.hpp"
#include "attn/models/model_folder.hpp"
#include "attn/models/model_loader.hpp"
#include "attn/models/model_writer.hpp"
#include "attn/models/sentence_config.hpp"
#include "attn/models/text_model_parts.hpp"

namespace attn {
namespace {

using File = detail::SmallFile;
constexpr std::string_view kLoad = "TextModel::load";

bool contains(const std::vector<std::uint8_t>& file, std::string_view text) {
  return std::search(file.begin(), file.end(), text.begin(), text.end()) != file.end();
}

bool is_language_model(const std::vector<std::uint8_t>& config) { return contains(config, "CausalLM") || contains(config, "LMHeadModel"); }

constexpr const char* kChatTemplate = "chat_template.jinja";

std::string slashed(const std::string& folder) { return folder.empty() ? folder : folder + '/'; }

struct TokenizerFiles {
  File tokenizer, config, special_tokens_map, added_tokens;

  template <class Read>
  TokenizerFiles(Read& read, const std::string& base, bool required = false)
      : tokenizer(read(base + "tokenizer.json", required)), config(read(base + "tokenizer_config.json")) {
    // As transformers.
    if (config && contains(*config, "\"added_tokens_decoder\"")) return;
    special_tokens_map = read(base + "special_tokens_map.json");
    added_tokens = read(base + "added_tokens.json");
  }
  Tokenizer parse(std::string_view default_class) const {
    return Tokenizer::parse(*tokenizer, config, default_class, {.special_tokens_map = special_tokens_map, .added_tokens = added_tokens});
  }
};

}  // namespace

TextModel TextModel::load(const FilePath& path, const TextModelOptions& options) {
  detail::SmallFilesReader small_files(kLoad, path);
  const std::filesystem::path& folder = small_files.folder;
  std::optional<detail::GgufFile>& gguf = small_files.gguf;
  auto parts = std::make_unique<Parts>();
  const auto read = [&](const std::string& name, bool required = false) {
    File file = small_files(name, required);
    if (file) parts->files.emplace_back(name, *file);
    return file;
  };
  const File modules = read("modules.json");
  const detail::ModuleFolders folders = detail::read_module_folders(modules);
  parts->base = slashed(folders.transformer);
  const std::filesystem::path base = detail::below(folder, folders.transformer);
  const auto file_of = [&](const std::optional<std::string>& module, const char* name) {
    return module ? read(slashed(*module) + name) : std::nullopt;
  };
  const File config = read(parts->base + "config.json", true), pooling = file_of(folders.pooling, "config.json"),
             sentence_bert_config = modules ? read(parts->base + "sentence_bert_config.json") : std::nullopt,
             prompts = modules ? read("config_sentence_transformers.json") : std::nullopt,
             generation = is_language_model(*config) ? read(parts->base + "generation_config.json") : std::nullopt;
  std::vector<std::array<File, 2>> dense_files;
  for (const std::string& each : folders.denses) dense_files.push_back({file_of(each, "config.json"), file_of(each, "model.safetensors")});
  std::vector<detail::ModelFiles::Dense> denses;  // refers to dense_files
  for (const auto& [about, weights] : dense_files) denses.push_back({about, weights});
  const TokenizerFiles tokenizer_files(read, parts->base);
  const auto& [tokenizer, tokenizer_config, special_tokens_map, added_tokens] = tokenizer_files;
  // Callers apply it; save_pretrained() writes it again.
  if (is_language_model(*config) && (!tokenizer_config || !contains(*tokenizer_config, "\"chat_template\""))) read(parts->base + kChatTemplate);
  detail::ModelLoader loader({.config = *config,
                              .modules = modules,
                              .pooling = pooling,
                              .sentence_bert_config = sentence_bert_config,
                              .tokenizer_config = tokenizer_config,
                              .prompts = prompts,
                              .denses = std::move(denses),
                              .generation = generation},
                             options.weights ? std::optional(*options.weights == Weights::int8) : std::nullopt);
  if (loader.config().image)
    detail::fail(ErrorCode::unsupported, kLoad, "config.json", {"a text model"}, {"an image model"},
                 "ImageModel of C++ and Python, and loadModel() of JavaScript, have image models");
  try {
    if (gguf && gguf->reader.no_tokenizer()) throw Error(*gguf->reader.no_tokenizer());
    if (!tokenizer)
      detail::fail(ErrorCode::unsupported, "tokenize", "the checkpoint", {"a folder with tokenizer.json"}, {"a folder without tokenizer.json"});
    parts->tokenizer = tokenizer_files.parse(loader.config().tokenizer_class());
    if (loader.config().lower_case && !parts->tokenizer->lower_cases()) {
      parts->tokenizer.reset();
      detail::fail(ErrorCode::unsupported, "sentence_bert_config.json", "do_lower_case", {"false"}, {"true"}, "This tokenizer keeps capitals");
    }
    if (parts->tokenizer->file_->padding.side == Side::left && !loader.config().is_causal) {
      parts->tokenizer.reset();
      detail::fail(ErrorCode::unsupported, "tokenizer_config.json", "padding_side", {"right"}, {"left"},
                   "Padding on the left would move tokens to other positions");
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    parts->no_tokenizer = error;
  }
  if (tokenizer && !parts->tokenizer && options.tokenizer && !loader.config().lower_case) {
    const auto bytes = [](const std::vector<std::uint8_t>& file) { return std::span<const std::uint8_t>(file); };
    parts->callers =
        options.tokenizer(*tokenizer, tokenizer_config ? std::optional(bytes(*tokenizer_config)) : std::nullopt, loader.config().tokenizer_class());
  }
  if (gguf) {
    gguf->reader.write_weights([&](std::span<const std::uint8_t> piece) { loader.write(piece); });
  } else {
    detail::check_weights(kLoad, base);
    detail::stream_weights(kLoad, base, loader);
  }
  parts->model = loader.finish();
  return TextModel(std::move(parts));
}

detail::TokenizerWithFiles detail::load_tokenizer_with_files(const FilePath& path) {
  detail::SmallFilesReader small_files("load_tokenizer", path);
  SmallFiles kept;
  const auto read = [&](const std::string& name, bool required = false) {
    File file = small_files(name, required);
    if (file) kept.emplace_back(name, *file);
    return file;
  };
  const std::string base = slashed(detail::read_module_folders(read("modules.json")).transformer);
  if (small_files.gguf && small_files.gguf->reader.no_tokenizer()) throw Error(*small_files.gguf->reader.no_tokenizer());
  const TokenizerFiles files(read, base, true);
  const File config = read(base + "config.json");
  return {files.parse(config ? detail::tokenizer_class_of(*config) : std::string_view()), std::move(kept)};
}

Tokenizer load_tokenizer(const FilePath& path) { return detail::load_tokenizer_with_files(path); }

void TextModel::save_pretrained(const FilePath& path, const SaveOptions& options) const {
  detail::StagedFiles files;
  detail::save_pretrained(*this, path, options, files);
}

void detail::save_pretrained(const TextModel& model, const FilePath& path, const SaveOptions& options, StagedFiles& files) {
  const TextModel::Parts& parts = *model.parts_;
  save_model(model.encoder(), parts.files, parts.base, path, options, files);
}

const std::vector<std::uint8_t>* detail::find_small_file(const TextModel& model, const std::string& name) {
  for (const std::string& path : {model.parts_->base + name, name})
    for (const auto& [known, bytes] : model.parts_->files)
      if (known == path) return &bytes;
  return nullptr;
}

}  // namespace attn
