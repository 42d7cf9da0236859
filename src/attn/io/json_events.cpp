#include "attn/io/json_events.hpp"

namespace attn::detail {

void parse_json_events(std::span<const std::uint8_t> bytes, JsonEvents& events) { nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &events); }

}  // namespace attn::detail
