#include "attn/io/json_text.hpp"

#include <nlohmann/json.hpp>

namespace attn::detail {

bool append_json_string(std::string& to, std::string_view value) {
  try {
    to += nlohmann::json(value).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

}  // namespace attn::detail
