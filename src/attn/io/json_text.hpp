#pragma once

#include <string>
#include <string_view>

namespace attn::detail {

/// Appends `value` as a JSON string; returns false if it is not UTF-8.
bool append_json_string(std::string& to, std::string_view value);

}  // namespace attn::detail
