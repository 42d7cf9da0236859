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

/// Wide elements first, so that each tensor is aligned to its element size, then by the bytes of the names.
void sort_safetensors(std::vector<SafetensorsItem>& items);

/// Returns the file up to its data. Throws ARGUMENT if a name or metadata is not UTF-8, a name is "__metadata__", or
/// the header is too large.
std::string safetensors_start(std::string_view op, const std::vector<SafetensorsItem>& items, const std::map<std::string, std::string>& metadata);
void check_safetensors_memory(std::string_view op, const std::vector<SafetensorsItem>& items);

}  // namespace attn::detail
