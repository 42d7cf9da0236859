#pragma once

#include <cstdint>

#include "draw.hpp"

namespace digest {

inline constexpr std::uint32_t kBackwards = 1500;

Call draw_backward_call(Generator& g, std::uint32_t number);

}  // namespace digest
