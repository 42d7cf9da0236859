#include "attn/io/json_events.hpp"

namespace attn::detail {

// Flattened, clang sees that the format is JSON, and leaves out the readers of five binary ones. GCC would take the whole parser apart, for minutes.
#ifdef __clang__
[[gnu::flatten]]
#endif
void parse_json_events(std::span<const std::uint8_t> bytes, JsonEvents& events) {
  nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &events);
}

}  // namespace attn::detail
