#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace attn::detail {

/// Passes the shards of model.safetensors.index.json to `write` as one safetensors file, in pieces. Throws FORMAT with
/// the path if the index is invalid or longer than 16 MiB, a file is missing or its name could lead out of the folder,
/// or the tensors are not those of the index.
void read_safetensors_shards(std::string_view op, const std::filesystem::path& index,
                             const std::function<void(std::span<const std::uint8_t>)>& write);

}  // namespace attn::detail
