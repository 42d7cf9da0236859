#include "attn/kernels/backward.hpp"
#include "attn/kernels/kernels.hpp"

#if defined(__wasm__)

namespace attn::kernels {

const BackwardTable& backward_wasm();

const BackwardTable& best_backward() { return backward_wasm(); }

}  // namespace attn::kernels

#else

#include <cstdlib>
#include <string_view>

namespace attn::kernels {

#define ATTN_KERNELS(name, ...) const BackwardTable& backward_##name();
#define ATTN_INT8(...)
#include "architectures.inc"

const BackwardTable& best_backward() {
  // The panels must fit best(), which no longer changes after its first use.
  static const BackwardTable& table = []() -> const BackwardTable& {
    const std::string_view best_name = best().architecture;
#define ATTN_KERNELS(name, ...) \
  if (best_name == #name) return backward_##name();
#define ATTN_INT8(name, processor, flags, condition, base) \
  if (best_name == #name) return backward_##base();
#include "architectures.inc"
    std::abort();  // best() is one of these
  }();
  return table;
}

}  // namespace attn::kernels

#endif
