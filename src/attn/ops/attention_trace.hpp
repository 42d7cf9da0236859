#pragma once

#include <map>

#include "attn/ops/trace.hpp"
#include "attn/tensor/tensor.hpp"

namespace attn {

/// Intermediate results of a call, by name.
using AttentionTrace = std::map<TraceName, AnyTensor>;

}  // namespace attn
