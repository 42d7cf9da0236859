#include <cstdlib>
#include <cstring>
#include <xsimd/xsimd.hpp>

#include "attn/kernels/kernels.hpp"

namespace attn::kernels {

const KernelTable& table_sse4_2();
const KernelTable& table_avx2_fma();
const KernelTable& table_avx512f();
const KernelTable& table_default_arch();
const KernelTable& table_emulated();
const KernelTable& table_wasm();

namespace {

const KernelTable& choose() {
#if defined(ATTN_HAVE_WASM)
  return table_wasm();
#else
  // For tests and for comparing: the best that is no wider than the one named.
  [[maybe_unused]] const char* limit = std::getenv("ATTN_MAX_ARCH");
#if defined(ATTN_HAVE_EMULATED)
  if (limit != nullptr && std::strcmp(limit, "emulated") == 0) return table_emulated();
#endif
#if defined(ATTN_HAVE_SSE4_2)
  const auto available = xsimd::available_architectures();
  const bool any = limit == nullptr || std::strcmp(limit, "avx512f") == 0, avx2 = any || std::strcmp(limit, "avx2_fma") == 0;
  if (any && available.has(xsimd::avx512f{})) return table_avx512f();
  if (avx2 && available.has(xsimd::fma3<xsimd::avx2>{})) return table_avx2_fma();
  return table_sse4_2();
#else
  return table_default_arch();
#endif
#endif
}

}  // namespace

const KernelTable& best() {
  static const KernelTable& table = choose();
  return table;
}

}  // namespace attn::kernels
