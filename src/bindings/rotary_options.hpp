#pragma once

#include <optional>

#include "attn/ops/positions.hpp"
#include "signature.hpp"

namespace attn::bindings {

inline std::optional<RotaryOptions> rotary_options(Arguments& arguments, const char* name) {
  RotaryOptions options;
  const bool given = arguments.group(name, [&] {
    arguments.option("theta", options.theta);
    arguments.option("offset", options.offset);
    arguments.option("interleaved", options.interleaved);
  });
  return given ? std::optional(options) : std::nullopt;
}

}  // namespace attn::bindings
