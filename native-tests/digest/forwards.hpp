#pragma once

#include <cstdint>

#include "draw.hpp"

namespace digest {

inline constexpr std::uint32_t kForwards = 10000;

/// The random call with that number, below kForwards.
Call draw_call(Generator& g, std::uint32_t number);

}  // namespace digest
