#pragma once

#include <map>

#include "attn/ops/trace.hpp"
#include "attn/tensor/tensor.hpp"

namespace attn {

/// What a call returns of its intermediate results.
using AttentionTrace = std::map<TraceName, AnyTensor>;

}  // namespace attn
