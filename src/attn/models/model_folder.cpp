#include "attn/models/model_folder.hpp"

#include <initializer_list>
#include <span>
#include <system_error>
#include <utility>

#include "attn/io/safetensors_shards.hpp"
#include "attn/models/model_loader.hpp"

namespace attn::detail {
namespace {

constexpr std::uintmax_t kMaxSmallFile = 64 << 20;

[[noreturn]] void refuse_file(std::string_view op, ErrorCode code, const std::filesystem::path& path, std::initializer_list<TextPart> expected,
                              std::initializer_list<TextPart> got, std::string_view help = {}) {
  fail(code, op, path.string(), expected, got, help);
}

bool is_gguf(const std::filesystem::path& path) {
  std::error_code none;
  return path.native().ends_with(".gguf") && !std::filesystem::is_directory(path, none);
}

void check_folder(std::string_view op, const std::filesystem::path& path) {
  std::error_code none;
  if (is_gguf(path) || !std::filesystem::is_regular_file(path, none)) return;
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  refuse_file(op, ErrorCode::format, path, {"a folder"}, {"a file"}, text({"Give its folder, ", folder}));
}

SmallFile read_file(std::string_view op, const std::filesystem::path& path, bool required = false) {
  std::error_code none;
  if (!required && !std::filesystem::exists(path, none)) return std::nullopt;
  InputFile file(path);
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

constexpr const char* kIndex = "model.safetensors.index.json";

}  // namespace

/// libstdc++ 12 frees an invalid pointer if copying a path runs out of memory, so this joins strings.
std::filesystem::path below(const std::filesystem::path& folder, std::string_view name) {
  std::filesystem::path::string_type joined = folder.native();
  if (!joined.empty() && !name.empty() && joined.back() != '/') joined += '/';
  joined.append(name.begin(), name.end());
  return {std::move(joined)};
}

SmallFilesReader::SmallFilesReader(std::string_view of_op, const FilePath& path) : op(of_op), folder(path.text()) {
  check_folder(op, folder);
  if (is_gguf(folder)) gguf.emplace(op, folder);
}

SmallFile SmallFilesReader::operator()(const std::string& name, bool required) {
  return gguf ? gguf->reader.read(name) : read_file(op, below(folder, name), required);
}

void check_weights(std::string_view op, const std::filesystem::path& folder) {
  const auto there = [&](const char* name) {
    std::error_code none;
    return std::filesystem::exists(below(folder, name), none);
  };
  if (there("model.safetensors") || there(kIndex)) return;
  if (there("pytorch_model.bin"))
    refuse_file(op, ErrorCode::unsupported, folder, {"model.safetensors"},
                {"a checkpoint with pytorch_model.bin, which can run code when it is read"},
                "Load it with transformers and save it with save_pretrained");
  if (there("onnx/model.onnx") || there("model.onnx"))
    refuse_file(op, ErrorCode::unsupported, folder, {"model.safetensors"}, {"a graph for onnxruntime"},
                "Use the checkpoint from which model.onnx was exported");
}

void stream_weights(std::string_view op, const std::filesystem::path& folder, ModelLoader& loader) {
  const std::filesystem::path path = below(folder, "model.safetensors"), index = below(folder, kIndex);
  const auto write = [&](std::span<const std::uint8_t> bytes) { loader.write(bytes); };
  std::error_code none;
  if (!std::filesystem::exists(path, none) && std::filesystem::exists(index, none)) return read_safetensors_shards(op, index, write);
  InputFile file(path);
  file.check_open(op);
  file.read_rest(write);
}

}  // namespace attn::detail
