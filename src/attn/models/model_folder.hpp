#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/io/file_path.hpp"
#include "attn/io/files.hpp"
#include "attn/io/gguf/reader.hpp"

namespace attn::detail {

class ModelLoader;

std::filesystem::path below(const std::filesystem::path& folder, std::string_view name);

/// None if the file is missing.
using SmallFile = std::optional<std::vector<std::uint8_t>>;

struct GgufFile {
  GgufFile(std::string_view op, const std::filesystem::path& path) : file(path), reader((file.check_open(op), file), file.size()) {}

  InputFile file;
  gguf::Reader reader;
};

/// Reads the files of a model except its weights, from a folder or from a GGUF file.
struct SmallFilesReader {
  SmallFilesReader(std::string_view of_op, const FilePath& path);
  /// Throws FORMAT if a required file is missing, or a file is empty.
  SmallFile operator()(const std::string& name, bool required = false);

  std::string_view op;
  std::filesystem::path folder;
  std::optional<GgufFile> gguf = std::nullopt;
};

/// Throws UNSUPPORTED for a folder that has weights only in formats that attn does not read.
void check_weights(std::string_view op, const std::filesystem::path& folder);
/// Reads model.safetensors, or the files in its index.
void stream_weights(std::string_view op, const std::filesystem::path& folder, ModelLoader& loader);

}  // namespace attn::detail
