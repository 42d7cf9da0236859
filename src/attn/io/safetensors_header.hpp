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

/// Element type that attn accepts in a safetensors file.
struct SafetensorsType {
  std::string_view name;
  std::uint64_t size;
  bool is_float;

  bool is_int8() const { return name == "I8"; }
};

/// Checked entry of one tensor.
struct SafetensorsEntry {
  std::string name = {};
  const SafetensorsType* type = nullptr;
  Shape shape = {};
  std::uint64_t first = 0, last = 0;  ///< byte range within the data, which follows the header

  std::uint64_t count() const { return (last - first) / type->size; }
};

/// Size of the prefix, which contains the length of the header.
inline constexpr std::size_t kSafetensorsPrefix = 8;

/// Throws FORMAT if the file is too short to contain the length of its header.
void check_safetensors_size(std::uint64_t file_size);

/// Reads the length of the header from the first 8 bytes. Throws FORMAT if it is 0, above 16 MiB, or, if `file_size` is
/// known, longer than the file.
std::size_t safetensors_header_size(const std::uint8_t* prefix, std::optional<std::uint64_t> file_size);

/// Parses the header and returns the entries in the order of their data, which they cover from begin to end without
/// overlap or hole. `data_size` is the size of the available data, if known. Throws FORMAT, and UNSUPPORTED for types
/// that attn does not read.
std::vector<SafetensorsEntry> parse_safetensors_header(std::span<const std::uint8_t> header, std::optional<std::uint64_t> data_size);

/// Throws MEMORY if the values of all float tensors together exceed the memory limit.
void check_safetensors_memory(std::span<const SafetensorsEntry> entries);

/// Converts elements of a float type to float32; `bytes` need not be aligned.
void convert_floats(const SafetensorsType& type, const std::uint8_t* bytes, float* values, std::size_t count);

/// Throws "safetensors: ..." and stores the text of `parts` as the fact "got". `help`: as in fail().
[[noreturn]] void refuse_safetensors(std::initializer_list<TextPart> parts, ErrorCode code = ErrorCode::format, std::string_view help = {});

}  // namespace attn::detail
