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

/// Wide elements first, so that each tensor is aligned, then by the bytes of the names.
void sort_safetensors(std::vector<SafetensorsItem>& items);

/// Returns the file up to its data. Throws ARGUMENT for a name or metadata that is not UTF-8, the name "__metadata__"
/// or a large header.
std::string safetensors_start(std::string_view op, const std::vector<SafetensorsItem>& items, const std::map<std::string, std::string>& metadata);
void check_safetensors_memory(std::string_view op, const std::vector<SafetensorsItem>& items);

}  // namespace attn::detail
