#pragma once

#include <cstdint>

#include "draw.hpp"

namespace digest {

inline constexpr std::uint32_t kForwards = 12000;
inline constexpr std::uint32_t kPlacedForwards = 2000;

Call draw_call(Generator& g, std::uint32_t number);

inline constexpr std::uint32_t kQuantizedForwards = 1500;

Call draw_quantized_call(Generator& g, std::uint32_t number);

}  // namespace digest
