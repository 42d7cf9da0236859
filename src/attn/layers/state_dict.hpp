#pragma once

#include <map>
#include <string>
#include <string_view>

#include "attn/tensor/tensor.hpp"

namespace attn::detail {

/// Throws one MISMATCH that lists every missing and unexpected name (where strict) and every mis-shaped one (always).
void check_state_dict(std::string_view op, const std::map<std::string, Shape>& expected, const StateDict& state, bool strict);

/// Data of that name, null where the state does not have it.
const float* find_data(const StateDict& state, const std::string& name);

}  // namespace attn::detail
