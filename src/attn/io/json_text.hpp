#pragma once

#include <string>
#include <string_view>

namespace attn::detail {

/// Appends a JSON string; false for what is not UTF-8, which JSON is.
bool append_json_string(std::string& to, std::string_view value);

}  // namespace attn::detail
