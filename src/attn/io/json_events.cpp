#include "attn/io/json_events.hpp"

namespace attn::detail {

// Inlining shows clang that readers of five binary formats are unused. GCC would inline for minutes.
#ifdef __clang__
[[gnu::flatten]]
#endif
void parse_json_events(std::span<const std::uint8_t> bytes, JsonEvents& events) {
  nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &events);
}

}  // namespace attn::detail
