// Counterpart of web/lib/src/cli/cli.ts: both programs print the same.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attn/core.hpp"
#include "attn/io/files.hpp"
#include "attn/io/folder_name.hpp"
#include "attn/io/gguf/reader.hpp"
#include "attn/io/json.hpp"
#include "attn/io/safetensors_header.hpp"
#include "generation.hpp"
#include "lens.hpp"
#include "on_signal.hpp"
#include "options.hpp"
#include "printed.hpp"
#include "texts.hpp"

namespace {

namespace fs = std::filesystem;
using attn::detail::Json;
using command::Misuse;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kMaxFile = 64 << 20;

void print(std::string name, const std::string& text) {
  name.resize(12, ' ');
  command::print_line(name + text);
}

std::string megabytes(std::uintmax_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

std::optional<Bytes> bytes_of(const fs::path& path) {
  attn::detail::InputFile file(path);
  if (file.problem() != nullptr || file.size() > kMaxFile) return std::nullopt;
  Bytes bytes(static_cast<std::size_t>(file.size()));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file ? std::optional(std::move(bytes)) : std::nullopt;
}

Json read(const fs::path& path) {
  try {
    return attn::detail::parse_python_json(path.string(), bytes_of(path).value_or(Bytes()), kMaxFile);
  } catch (const attn::Error&) {
    return {};
  }
}

std::string text_of(const Json* value, std::string_view otherwise) {
  return value != nullptr && value->string() != nullptr ? *value->string() : std::string(otherwise);
}

struct Tensor {
  std::string name, type;
  attn::Shape shape;
  std::uint64_t bytes;
};
using Tensors = std::vector<Tensor>;

void add_tensors(Tensors& tensors, const fs::path& path) {
  attn::detail::InputFile file(path);
  std::uint8_t prefix[attn::detail::kSafetensorsPrefix] = {};
  attn::detail::check_safetensors_size(file.size());
  file.read(reinterpret_cast<char*>(prefix), sizeof prefix);
  Bytes header(attn::detail::safetensors_header_size(prefix, file.size()));
  file.read(reinterpret_cast<char*>(header.data()), static_cast<std::streamsize>(header.size()));
  if (!file) throw std::runtime_error("truncated");
  for (const attn::detail::SafetensorsEntry& entry : attn::detail::parse_safetensors_header(header, std::nullopt))
    tensors.push_back({entry.name, std::string(entry.type->name), entry.shape, entry.last - entry.first});
}

std::string in_words(const Tensors& tensors) {
  std::map<std::string, std::pair<std::size_t, std::uint64_t>> types;  // number of tensors and their bytes
  for (const Tensor& tensor : tensors) {
    auto& [count, bytes] = types[tensor.type];
    ++count;
    bytes += tensor.bytes;
  }
  std::string all;
  for (const auto& [type, sums] : types) all += (all.empty() ? "" : ", ") + std::to_string(sums.first) + " " + type + " of " + megabytes(sums.second);
  return all;
}

/// Describes model.safetensors, or the files that model.safetensors.index.json lists.
std::string add_weights(Tensors& tensors, const fs::path& folder) {
  try {
    const fs::path index = folder / "model.safetensors.index.json", whole = folder / "model.safetensors";
    if (fs::exists(whole) || !fs::exists(index)) return add_tensors(tensors, whole), in_words(tensors);
    const Json json = read(index);
    const Json* const map = json.find("weight_map");
    std::set<std::string> names;
    if (map == nullptr || map->object() == nullptr || map->object()->empty()) throw std::runtime_error("no weight_map");
    for (const auto& [tensor, file] : *map->object()) names.insert(text_of(&file, ""));
    for (const std::string& name : names) {
      if (name.empty() || !attn::detail::is_folder_name(name)) throw std::runtime_error("no file of the folder");
      add_tensors(tensors, folder / name);
    }
    return in_words(tensors) + " in " + std::to_string(names.size()) + " files";
  } catch (const std::exception&) {
    tensors.clear();
    return "none that can be read";
  }
}

std::string class_of(const Json& module) {
  const std::string type = text_of(module.find("type"), "");
  return type.substr(type.rfind('.') + 1);
}

/// None if the path leads out of the model folder.
std::optional<fs::path> folder_of(const fs::path& folder, const Json& module) {
  const std::string path = text_of(module.find("path"), "");
  const std::string_view name = attn::detail::module_folder(path);
  return attn::detail::is_folder_name(name) ? std::optional(folder / name) : std::nullopt;
}

std::string modules_of(const fs::path& folder) {
  const Json list = read(folder / "modules.json");
  if (list.array() == nullptr) return "none, so mean pooling";
  std::string all;
  for (const Json& module : *list.array()) {
    if (module.object() == nullptr) continue;
    std::string name = class_of(module);
    const std::optional<fs::path> own = folder_of(folder, module);
    const Json config = own && name == "Pooling" ? read(*own / "config.json") : Json();
    if (config.object() != nullptr) {
      std::string modes;
      for (const std::string_view mode : {"cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"}) {
        const Json* flag = config.find("pooling_mode_" + std::string(mode));
        if (flag == nullptr || flag->boolean() == nullptr || !*flag->boolean()) continue;
        modes += (modes.empty() ? "" : ", ") + std::string(mode.substr(0, mode.rfind("_token")));
      }
      name += " (" + text_of(config.find("pooling_mode"), modes.empty() ? "mean" : modes) + ")";
    }
    all += (all.empty() ? "" : ", ") + name;
  }
  return all;
}

fs::path base_of(const fs::path& folder) {
  const Json list = read(folder / "modules.json");
  if (list.array() != nullptr)
    for (const Json& module : *list.array())
      if (module.object() != nullptr && class_of(module) == "Transformer") return folder_of(folder, module).value_or(folder);
  return folder;
}

std::string size_of(const Json& config, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const Json* value = config.find(name); value != nullptr && value->number() != nullptr)
      return std::to_string(static_cast<std::int64_t>(*value->number()));
  return "?";
}

struct Files {
  Json config, tokenizer;
  std::string modules, weights;
  std::uintmax_t count = 0, bytes = 0;
  Tensors tensors = {};
};

Files describe_folder(const fs::path& folder) {
  const fs::path base = base_of(folder);
  Files files{read(base / "config.json"), read(base / "tokenizer.json"), modules_of(folder), {}};
  files.weights = add_weights(files.tensors, base);
  // Links to nothing and unreadable folders are skipped.
  std::error_code failed;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, failed);
  for (; !failed && at != fs::end(at); at.increment(failed)) {
    std::error_code unreadable;
    const bool is_file = at->is_regular_file(unreadable);
    const std::uintmax_t size = is_file ? at->file_size(unreadable) : 0;
    if (!is_file || unreadable) continue;
    ++files.count;
    files.bytes += size;
  }
  return files;
}

/// Loading refuses unreadable parts with the reason.
Files describe_gguf(const fs::path& path) {
  namespace gguf = attn::detail::gguf;
  attn::detail::InputFile file(path);
  Files files{{}, {}, modules_of(path), "none that can be read", 1, file.size()};
  try {
    for (const gguf::Tensor& tensor : gguf::read_header(file, file.size()).tensors) {
      attn::Shape shape;
      for (std::size_t i = tensor.dims.size(); i-- > 0;) shape.push_back(static_cast<std::int64_t>(tensor.dims[i]));
      files.tensors.push_back({tensor.name, std::string(tensor.type->name), shape, tensor.bytes});
    }
    files.weights = in_words(files.tensors);
    file.seekg(0);
    const gguf::Reader reader(file, file.size());
    const auto json = [&](std::string_view name) {
      const auto text = reader.read(name);
      return text ? attn::detail::parse_python_json("GGUF", *text, kMaxFile) : Json();
    };
    files.config = json("config.json");
    files.tokenizer = json("tokenizer.json");
  } catch (const attn::Error&) {
  }
  return files;
}

std::int64_t count_parameters(const attn::TextModel& model) {
  std::int64_t all = 0;
  for (const auto& [name, shape] : model.parameter_shapes()) {
    std::int64_t numbers = 1;
    for (std::size_t i = 0; i < shape.rank(); ++i) numbers *= shape[i];
    all += numbers;
  }
  return all;
}

int inspect(const fs::path& folder, bool lists_tensors) {
  const bool is_gguf = folder.native().ends_with(".gguf") && fs::is_regular_file(folder);
  if (!is_gguf && !fs::is_directory(folder)) {
    command::print_error("FOLDER is " + folder.string() + ", which is not a folder, expected a model folder");
    return 1;
  }
  const auto [config, tokenizer, modules, weights, count, bytes, tensors] = is_gguf ? describe_gguf(folder) : describe_folder(folder);
  const Json* const names = config.find("architectures");
  const bool named = names != nullptr && names->array() != nullptr && !names->array()->empty();
  print("model", text_of(named ? &names->array()->front() : nullptr, "?") + " (" + text_of(config.find("model_type"), "?") + ")");
  print("sizes", size_of(config, {"num_hidden_layers", "n_layers", "n_layer"}) + " layers, " +
                     size_of(config, {"num_attention_heads", "n_heads", "n_head"}) + " heads, hidden " +
                     size_of(config, {"hidden_size", "dim", "n_embd"}) + ", intermediate " +
                     size_of(config, {"intermediate_size", "hidden_dim", "n_inner"}) + ", vocabulary " + size_of(config, {"vocab_size"}) +
                     ", positions " + size_of(config, {"max_position_embeddings", "n_positions"}));
  const Json* const model = tokenizer.find("model");
  print("tokenizer", text_of(model != nullptr ? model->find("type") : nullptr, "none"));
  print("modules", modules);
  print("weights", weights);
  print("files", std::to_string(count) + " of " + megabytes(bytes));
  if (lists_tensors)
    for (const Tensor& tensor : tensors) command::print_line(tensor.name + "\t" + tensor.type + "\t" + to_string(tensor.shape));
  try {
    const attn::TextModel loaded = attn::TextModel::load(folder.string());
    const std::vector<std::string>& labels = loaded.labels();
    std::string all;
    for (std::size_t i = 0; i < std::min<std::size_t>(labels.size(), 10); ++i) all += (i > 0 ? ", " : "") + labels[i];
    if (labels.size() > 10) all += " and " + std::to_string(labels.size() - 10) + " more";
    print("parameters", std::to_string(count_parameters(loaded)));
    print("head", labels.empty() ? "none" : std::to_string(labels.size()) + " labels: " + all);
    print("attn", std::string("takes it, as ") + (loaded.weights() == attn::Weights::int8 ? "int8" : "float32"));
    try {
      loaded.token_to_id("a");
    } catch (const attn::Error& error) {
      print("", std::string("but texts natively: ") + std::string(to_string(error.code())) + ": " + error.what());
    }
    return 0;
  } catch (const attn::Error& error) {
    print("attn", "refuses it: " + std::string(to_string(error.code())) + ": " + error.what());
    return 1;
  }
}

constexpr std::string_view kWeights[] = {"float32", "float16", "int8"};

int convert(const fs::path& folder, const fs::path& out, attn::FileWeights weights) {
  const bool exists = fs::exists(out);
  if (exists && !fs::is_directory(out)) throw Misuse{"OUT is " + out.string() + ", which is a file, expected a new folder"};
  if (exists && !fs::is_empty(out)) throw Misuse{"OUT is " + out.string() + ", which is not empty, expected a new folder"};
  attn::detail::StagedFiles files;
  const command::OnSignal on_signal([&] { files.abandon(); });
  const attn::Weights kept = weights == attn::FileWeights::int8 ? attn::Weights::int8 : attn::Weights::float32;
  const attn::TextModel model = attn::TextModel::load(folder.string(), {.weights = kept});
  attn::detail::save_pretrained(model, out.string(), {.weights = weights}, files);
  return 0;
}

int run(std::span<char* const> arguments) {
  const auto asked = command::read_call(arguments);
  if (std::holds_alternative<command::Version>(asked)) {
    command::print_line(ATTN_VERSION);
    return 0;
  }
  if (const auto* const help = std::get_if<command::Help>(&asked)) {
    std::cout << help->text;
    return help->wrong ? 2 : 0;
  }
  const auto& call = std::get<command::Call>(asked);
  if (call.command == "inspect") return inspect(call.paths[0], call.has("tensors"));
  if (call.command == "convert") {
    const auto* const kind = std::find(std::begin(kWeights), std::end(kWeights), call.text("weights"));
    return convert(call.paths[0], call.paths[1], static_cast<attn::FileWeights>(kind - std::begin(kWeights)));
  }
  if (call.command == "generate" || call.command == "score")
    command::run_generation(call);
  else if (call.command == "lens")
    command::run_lens(call);
  else
    command::run_texts(call);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  command::open_standard_files();
  std::ios::sync_with_stdio(false);
  try {
    const int code = run({arguments + 1, static_cast<std::size_t>(std::max(count - 1, 0))});
    command::end_output();
    return code;
  } catch (const Misuse& misuse) {
    command::print_error(misuse.what);
    return 2;
  } catch (const attn::Error& error) {
    command::print_error(std::string(to_string(error.code())) + ": " + error.what());
  } catch (const std::exception& error) {
    command::print_error(error.what());
  }
  return 1;
}
