#pragma once

#include <cstdint>

#include "draw.hpp"

namespace digest {

inline constexpr std::uint32_t kForwards = 12000;
/// The last of them: with windows, softcaps, positions and what earlier calls left.
inline constexpr std::uint32_t kPlacedForwards = 2000;

/// The random call with that number, below kForwards.
Call draw_call(Generator& g, std::uint32_t number);

inline constexpr std::uint32_t kQuantizedForwards = 1500;

/// The random call with that number, below kQuantizedForwards, of a layer that was quantized. Its bits are the same on every machine.
Call draw_quantized_call(Generator& g, std::uint32_t number);

}  // namespace digest
