// Compiled once per architecture, as src/attn/kernels/kernels.cpp is.
#include "attn/kernels/exp.hpp"

#define ATTN_CONCAT_(a, b) a##b
#define ATTN_CONCAT(a, b) ATTN_CONCAT_(a, b)

namespace attn::test {
namespace {

namespace named {
#if defined(ATTN_HAVE_EMULATED)
using emulated = xsimd::emulated<128>;
#else
using sse4_2 = xsimd::sse4_2;
using avx2_fma = xsimd::fma3<xsimd::avx2>;
using avx512f = xsimd::avx512f;
using default_arch = xsimd::default_arch;
#endif
}  // namespace named

using Arch = named::ATTN_ARCH;

}  // namespace

void ATTN_CONCAT(exp_row_, ATTN_ARCH)(const float* x, float* y, std::size_t n) {
  kernels::map_row<Arch>(y, n, [](const kernels::Batch<Arch>& value) { return kernels::exp<Arch>(value); }, x);
}

}  // namespace attn::test
