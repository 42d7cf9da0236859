#include "attn/kernels/backward.hpp"
#include "attn/kernels/kernels.hpp"

#if defined(ATTN_HAVE_WASM)

namespace attn::kernels {

const BackwardTable& backward_wasm();

const BackwardTable& best_backward() { return backward_wasm(); }

}  // namespace attn::kernels

#else

#include <string_view>

namespace attn::kernels {

const BackwardTable& backward_sse4_2();
const BackwardTable& backward_avx2_fma();
const BackwardTable& backward_avx512f();
const BackwardTable& backward_default_arch();
const BackwardTable& backward_emulated();

const BackwardTable& best_backward() {
  // Panels are as wide as best()'s, which is final from its first use on. Those with products of int8 of their own are the same without them.
  static const BackwardTable& table = []() -> const BackwardTable& {
    [[maybe_unused]] const std::string_view name = best().architecture;
#if defined(ATTN_HAVE_EMULATED)
    if (name == "emulated") return backward_emulated();
#endif
#if defined(ATTN_HAVE_AVX512F)
    if (name.starts_with("avx512")) return backward_avx512f();
#endif
#if defined(ATTN_HAVE_AVX2_FMA)
    if (name.starts_with("avx")) return backward_avx2_fma();
#endif
#if defined(ATTN_HAVE_SSE4_2)
    return backward_sse4_2();
#else
    return backward_default_arch();
#endif
  }();
  return table;
}

}  // namespace attn::kernels

#endif
