#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>

namespace attn::detail {

using JsonEvents = nlohmann::json_sax<nlohmann::json>;

/// Out of line, so that the parser template is instantiated only once.
void parse_json_events(std::span<const std::uint8_t> bytes, JsonEvents& events);

}  // namespace attn::detail
