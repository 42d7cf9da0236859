#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "attn/tensor/tensor.hpp"

namespace attn {

/// Tensors of a safetensors file (8 bytes of header length, a JSON header, data) as float32.
/// F32, F16, BF16 and F64 are converted; integer and bool tensors are checked and left out. Tensors need not be aligned.
/// Throws FORMAT for anything that the format does not allow, UNSUPPORTED for other types (F8, F4, C64), MEMORY.
StateDict parse_safetensors(std::span<const std::uint8_t> bytes);

/// The same from a file. Throws FORMAT also when it cannot be read.
StateDict read_safetensors(const std::filesystem::path& path);

/// The bytes of a safetensors file, which parse_safetensors reads back bit for bit: F32, names sorted by their bytes, data from a
/// multiple of 8 on. Throws ARGUMENT for a name or metadata that is not UTF-8 or the name "__metadata__", SHAPE for a rank above 8 or a
/// tensor that is not row-major, MEMORY.
std::vector<std::uint8_t> write_safetensors(const StateDict& tensors, const std::map<std::string, std::string>& metadata = {});

}  // namespace attn
