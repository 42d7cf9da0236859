#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attn/tensor/shape.hpp"

namespace attn::detail {

/// A tensor of a file that is to be written.
struct SafetensorsItem {
  std::string name;
  std::string_view dtype;
  std::uint64_t width = 0;  ///< bytes of a number
  Shape shape;
};

/// Sorts them as files have them: wide numbers first, so that all lie at multiples of their width, then by the bytes of their names.
void sort_safetensors(std::vector<SafetensorsItem>& items);

/// All of a file that comes before its data, which has the items in this order without a gap. Throws ARGUMENT for a name or metadata that is not
/// UTF-8, the name "__metadata__", and more than a header holds; MEMORY where the data is above the limit.
std::string safetensors_start(std::string_view op, const std::vector<SafetensorsItem>& items, const std::map<std::string, std::string>& metadata);

}  // namespace attn::detail
