#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/tensor/error.hpp"
#include "attn/tensor/shape.hpp"

namespace attn::detail {

/// Element types that a safetensors file may have here.
struct SafetensorsType {
  std::string_view name;
  std::uint64_t size;
  bool is_float;

  bool is_int8() const { return name == "I8"; }
};

/// One tensor of a file, checked.
struct SafetensorsEntry {
  std::string name = {};
  const SafetensorsType* type = nullptr;
  Shape shape = {};
  std::uint64_t first = 0, last = 0;  ///< bytes of the data after the header

  std::uint64_t count() const { return (last - first) / type->size; }
};

/// Bytes before the header: its length.
inline constexpr std::size_t kSafetensorsPrefix = 8;

/// Throws FORMAT for a file that is too short for the length of its header.
void check_safetensors_size(std::uint64_t file_size);

/// The header's length, which the first 8 bytes tell; file_size where it is known. Throws FORMAT.
std::size_t safetensors_header_size(const std::uint8_t* prefix, std::optional<std::uint64_t> file_size);

/// The entries in the order of their data. They cover the data from its begin to its end, without overlap or hole; data_size is that of the
/// data that is there, where it is known. Throws FORMAT, and UNSUPPORTED for types that attn does not read.
std::vector<SafetensorsEntry> parse_safetensors_header(std::span<const std::uint8_t> header, std::optional<std::uint64_t> data_size);

/// Throws MEMORY if the numbers of all float tensors would take more than the limit.
void check_safetensors_memory(std::span<const SafetensorsEntry> entries);

/// Elements of a float type as float32; bytes need not be aligned.
void convert_floats(const SafetensorsType& type, const std::uint8_t* bytes, float* values, std::size_t count);

/// Throws "safetensors: ..." with what was met as detail.
[[noreturn]] void refuse_safetensors(std::initializer_list<TextPart> parts, ErrorCode code = ErrorCode::format);

}  // namespace attn::detail
