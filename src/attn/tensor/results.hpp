#pragma once

// Type of results: xtensor tensors, unless only views are wanted (attn/core.hpp, and the library itself).
#ifdef ATTN_VIEWS_ONLY
#include "attn/tensor/state.hpp"
#else
#include "attn/tensor/tensor.hpp"
#endif
