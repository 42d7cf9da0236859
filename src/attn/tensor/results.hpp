#pragma once

// xtensor tensors, or only views (attn/core.hpp and the library).
#ifdef ATTN_VIEWS_ONLY
#include "attn/tensor/state.hpp"
#else
#include "attn/tensor/tensor.hpp"
#endif
