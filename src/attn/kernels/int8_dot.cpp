// int8 products for avx_vnni, avx512_vnni and neon_dotprod; ATTN_ARCH is the name. xsimd gets a private name, so that
// the linker never merges VNNI code into plain AVX callers.
#define ATTN_CONCAT_(a, b) a##b
#define ATTN_CONCAT(a, b) ATTN_CONCAT_(a, b)
#define xsimd ATTN_CONCAT(xsimd_, ATTN_ARCH)

#include "attn/kernels/int8_dot.hpp"

#include "attn/kernels/int8.hpp"
#include "attn/kernels/kernels.hpp"

namespace attn::kernels {

namespace {
struct Own {};
}  // namespace

template <>
struct BaseArch<Own> {
#if defined(__AVX512VNNI__)
  using type = xsimd::avx512f;
#elif defined(__AVXVNNI__)
  using type = xsimd::fma3<xsimd::avx2>;
#else
  using type = xsimd::neon64;
#endif
};

#if defined(__ARM_FEATURE_DOTPROD)
using Dot = Signed4<Own>;
#else
using Dot = Unsigned4<Own>;
#endif

Int8Kernels ATTN_CONCAT(int8_, ATTN_ARCH)() { return int8_kernels<Dot, Own>(); }

}  // namespace attn::kernels
