#pragma once

#include <string>
#include <string_view>

namespace attn::detail {

/// Returns false if `value` is not UTF-8.
bool append_json_string(std::string& to, std::string_view value);

}  // namespace attn::detail
