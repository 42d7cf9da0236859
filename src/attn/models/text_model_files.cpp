#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "attn/io/files.hpp"
#include "attn/io/gguf/reader.hpp"
#include "attn/io/safetensors_shards.hpp"
#include "attn/io/tokenizer/tokenizer_file.hpp"
#include "attn/models/model_loader.hpp"
#include "attn/models/model_writer.hpp"
#include "attn/models/sentence_config.hpp"
#include "attn/models/text_model_parts.hpp"

namespace attn {
namespace {

constexpr std::string_view kLoad = "TextModel::load";
constexpr std::uintmax_t kMaxSmallFile = 64 << 20;

[[noreturn]] void refuse_file(std::string_view op, ErrorCode code, const std::filesystem::path& path,
                              std::initializer_list<detail::TextPart> expected, std::initializer_list<detail::TextPart> got,
                              std::string_view help = {}) {
  detail::fail(code, op, path.string(), expected, got, help);
}

bool is_gguf(const std::filesystem::path& path) {
  std::error_code none;
  return path.native().ends_with(".gguf") && !std::filesystem::is_directory(path, none);
}

void check_folder(std::string_view op, const std::filesystem::path& path) {
  std::error_code none;
  if (is_gguf(path) || !std::filesystem::is_regular_file(path, none)) return;
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  refuse_file(op, ErrorCode::format, path, {"a folder"}, {"a file"}, detail::text({"Give its folder, ", folder}));
}

/// libstdc++ 12 frees an invalid pointer if copying a path runs out of memory, so this joins strings.
std::filesystem::path below(const std::filesystem::path& folder, std::string_view name) {
  std::filesystem::path::string_type joined = folder.native();
  if (!joined.empty() && !name.empty() && joined.back() != '/') joined += '/';
  joined.append(name.begin(), name.end());
  return {std::move(joined)};
}

using File = std::optional<std::vector<std::uint8_t>>;

/// None if the file is missing and not required.
File read_file(std::string_view op, const std::filesystem::path& path, bool required = false) {
  std::error_code none;
  if (!required && !std::filesystem::exists(path, none)) return std::nullopt;
  detail::InputFile file(path);
  file.check_open(op);
  const std::uintmax_t size = file.size();
  // Treating an empty file as missing would select other settings.
  if (size == 0) refuse_file(op, ErrorCode::format, path, {"a file with content"}, {"empty"});
  if (size > kMaxSmallFile) refuse_file(op, ErrorCode::format, path, {"at most ", kMaxSmallFile, " bytes"}, {size, " bytes"});
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) refuse_file(op, ErrorCode::format, path, {"a readable file"}, {"unreadable"});
  return bytes;
}

bool contains(const std::vector<std::uint8_t>& file, std::string_view text) {
  return std::search(file.begin(), file.end(), text.begin(), text.end()) != file.end();
}

bool is_language_model(const std::vector<std::uint8_t>& config) { return contains(config, "CausalLM") || contains(config, "LMHeadModel"); }

constexpr const char* kChatTemplate = "chat_template.jinja";

constexpr const char* kIndex = "model.safetensors.index.json";

void check_weights(const std::filesystem::path& folder) {
  const auto there = [&](const char* name) {
    std::error_code none;
    return std::filesystem::exists(below(folder, name), none);
  };
  if (there("model.safetensors") || there(kIndex)) return;
  if (there("pytorch_model.bin"))
    refuse_file(kLoad, ErrorCode::unsupported, folder, {"model.safetensors"},
                {"a checkpoint with pytorch_model.bin, which can run code when it is read"},
                "Load it with transformers and save it with save_pretrained");
  if (there("onnx/model.onnx") || there("model.onnx"))
    refuse_file(kLoad, ErrorCode::unsupported, folder, {"model.safetensors"}, {"a graph for onnxruntime"},
                "Use the checkpoint from which model.onnx was exported");
}

/// model.safetensors, or the files in the index.
void stream_weights(const std::filesystem::path& folder, detail::ModelLoader& loader) {
  const std::filesystem::path path = below(folder, "model.safetensors"), index = below(folder, kIndex);
  const auto write = [&](std::span<const std::uint8_t> bytes) { loader.write(bytes); };
  std::error_code none;
  if (!std::filesystem::exists(path, none) && std::filesystem::exists(index, none)) return detail::read_safetensors_shards(kLoad, index, write);
  detail::InputFile file(path);
  file.check_open(kLoad);
  file.read_rest(write);
}

struct GgufFile {
  GgufFile(std::string_view op, const std::filesystem::path& path) : file(path), reader((file.check_open(op), file), file.size()) {}

  detail::InputFile file;
  detail::gguf::Reader reader;
};

/// From a folder, or replaced by a GGUF file.
struct SmallFilesReader {
  SmallFilesReader(std::string_view of_op, const FilePath& path) : op(of_op), folder(path.text()) {
    check_folder(op, folder);
    if (is_gguf(folder)) gguf.emplace(op, folder);
  }
  File operator()(const std::string& name, bool required = false) {
    return gguf ? gguf->reader.read(name) : read_file(op, below(folder, name), required);
  }

  std::string_view op;
  std::filesystem::path folder;
  std::optional<GgufFile> gguf = std::nullopt;
};

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
  SmallFilesReader small_files(kLoad, path);
  const std::filesystem::path& folder = small_files.folder;
  std::optional<GgufFile>& gguf = small_files.gguf;
  auto parts = std::make_unique<Parts>();
  const auto read = [&](const std::string& name, bool required = false) {
    File file = small_files(name, required);
    if (file) parts->files.emplace_back(name, *file);
    return file;
  };
  const File modules = read("modules.json");
  const detail::ModuleFolders folders = detail::read_module_folders(modules);
  parts->base = slashed(folders.transformer);
  const std::filesystem::path base = below(folder, folders.transformer);
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
    detail::fail(ErrorCode::unsupported, kLoad, "config.json", {"a text model"}, {"an image model"}, "The npm package attn has image models");
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
    check_weights(base);
    stream_weights(base, loader);
  }
  parts->model = loader.finish();
  return TextModel(std::move(parts));
}

detail::TokenizerWithFiles detail::load_tokenizer_with_files(const FilePath& path) {
  SmallFilesReader small_files("load_tokenizer", path);
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
  const EncoderModel& encoder = model.encoder();
  const FileWeights weights = options.weights.value_or(model.weights() == Weights::int8 ? FileWeights::int8 : FileWeights::float32);
  check_weights_as(encoder, weights);
  const std::filesystem::path folder(path.text());
  try {
    for (const auto& [name, bytes] : parts.files) {
      std::ostream& to = files.open(below(folder, name));
      if (name == parts.base + "config.json")
        to << config_as(bytes, encoder, weights);
      else
        to.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    write_weights(encoder, weights, files.open(below(folder, parts.base + "model.safetensors")));
    files.commit();
  } catch (const std::system_error& error) {
    ErrorDetail more;
    more.emplace("errno", static_cast<double>(error.code().value()));
    fail(ErrorCode::argument, "save_pretrained", "path", {"a folder whose files can be written"}, {"unwritable (", error.what(), ")"},
         std::move(more));
  }
}

const std::vector<std::uint8_t>* detail::find_small_file(const TextModel& model, const std::string& name) {
  for (const std::string& path : {model.parts_->base + name, name})
    for (const auto& [known, bytes] : model.parts_->files)
      if (known == path) return &bytes;
  return nullptr;
}

}  // namespace attn
