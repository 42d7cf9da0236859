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

struct SafetensorsType {
  std::string_view name;
  std::uint64_t size;
  bool is_float;

  bool is_int8() const { return name == "I8"; }
};

struct SafetensorsEntry {
  std::string name = {};
  const SafetensorsType* type = nullptr;
  Shape shape = {};
  std::uint64_t first = 0, last = 0;  ///< byte range in the data after the header

  std::uint64_t count() const { return (last - first) / type->size; }
};

inline constexpr std::size_t kSafetensorsPrefix = 8;

void check_safetensors_size(std::uint64_t file_size);

/// Throws FORMAT if the size is 0, above 16 MiB or beyond `file_size`.
std::size_t safetensors_header_size(const std::uint8_t* prefix, std::optional<std::uint64_t> file_size);

/// In the order of the data, which the entries cover without overlap or hole. Throws FORMAT; UNSUPPORTED for unread
/// types.
std::vector<SafetensorsEntry> parse_safetensors_header(std::span<const std::uint8_t> header, std::optional<std::uint64_t> data_size);

void check_safetensors_memory(std::span<const SafetensorsEntry> entries);

/// `bytes` need not be aligned.
void convert_floats(const SafetensorsType& type, const std::uint8_t* bytes, float* values, std::size_t count);

[[noreturn]] void refuse_safetensors(std::initializer_list<TextPart> parts, ErrorCode code = ErrorCode::format, std::string_view help = {});

}  // namespace attn::detail
