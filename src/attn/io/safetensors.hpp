#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "attn/tensor/tensor.hpp"

namespace attn {

/// Tensors of a safetensors file (8 bytes of header length, a JSON header, data) as float32.
/// F32, F16, BF16 and F64 are converted; integer and bool tensors are checked and left out. Tensors need not be aligned.
/// Throws FORMAT for anything that the format does not allow, UNSUPPORTED for other types (F8, F4, C64), MEMORY.
StateDict parse_safetensors(std::span<const std::uint8_t> bytes);

/// The same from a file. Throws FORMAT also when it cannot be read.
StateDict read_safetensors(const std::filesystem::path& path);

}  // namespace attn
