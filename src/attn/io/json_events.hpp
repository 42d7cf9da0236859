#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>

namespace attn::detail {

/// What the parser tells of, one thing after the other.
using JsonEvents = nlohmann::json_sax<nlohmann::json>;

/// Out of line, and by the base class: the parser is a template, and once is enough of it.
void parse_json_events(std::span<const std::uint8_t> bytes, JsonEvents& events);

}  // namespace attn::detail
