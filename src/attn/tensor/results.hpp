#pragma once

// What results are made of: xtensor's tensors, but where only views are wanted (attn/core.hpp, and the library itself).
#ifdef ATTN_VIEWS_ONLY
#include "attn/tensor/state.hpp"
#else
#include "attn/tensor/tensor.hpp"
#endif
