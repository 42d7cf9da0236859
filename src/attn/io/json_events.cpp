#include "attn/io/json_events.hpp"

namespace attn::detail {

// Inlined, clang sees that the format is JSON and omits the readers of five binary formats. GCC would inline for
// minutes.
#ifdef __clang__
[[gnu::flatten]]
#endif
void parse_json_events(std::span<const std::uint8_t> bytes, JsonEvents& events) {
  nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &events);
}

}  // namespace attn::detail
