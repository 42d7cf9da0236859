#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attn/tensor/shape.hpp"

namespace attn::detail {

struct SafetensorsItem {
  std::string name;
  std::string_view dtype;
  std::uint64_t width = 0;  ///< bytes per element
  Shape shape;
};

/// Sorts tensors as in the file: wide elements first, so that each tensor begins at a multiple of its element size,
/// then by the bytes of their names.
void sort_safetensors(std::vector<SafetensorsItem>& items);

/// Returns the start of a file up to its data, which contains the items in this order without gaps. Throws ARGUMENT if
/// a name or metadata is not UTF-8, a name is "__metadata__", or the header would be too large.
std::string safetensors_start(std::string_view op, const std::vector<SafetensorsItem>& items, const std::map<std::string, std::string>& metadata);
/// Throws MEMORY if the data exceed the limit.
void check_safetensors_memory(std::string_view op, const std::vector<SafetensorsItem>& items);

}  // namespace attn::detail
