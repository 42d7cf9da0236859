#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace attn::detail {

/// Reads model.safetensors.index.json and the files next to it that it names, and passes the contents of one safetensors file with all their tensors
/// to `write`, in pieces. Throws FORMAT with the path if the index is no such file or longer than 16 MiB, if a file is missing, has a name that could
/// lead out of the folder, or lacks a tensor that the index expects in it, and if a tensor is in two files; also as parse_safetensors_header.
void read_safetensors_shards(std::string_view op, const std::filesystem::path& index,
                             const std::function<void(std::span<const std::uint8_t>)>& write);

}  // namespace attn::detail
