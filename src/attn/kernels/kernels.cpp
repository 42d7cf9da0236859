// Compiled once per architecture, with that architecture's compiler flags and ATTN_ARCH set to its name below.
#include "attn/kernels/kernels.hpp"

#include "attn/kernels/activation.hpp"
#include "attn/kernels/additive_scores.hpp"
#include "attn/kernels/gemm.hpp"
#include "attn/kernels/norm.hpp"
#include "attn/kernels/peak.hpp"
#include "attn/kernels/rows.hpp"
#include "attn/kernels/softmax.hpp"

#define ATTN_CONCAT_(a, b) a##b
#define ATTN_CONCAT(a, b) ATTN_CONCAT_(a, b)
#define ATTN_STRING_(a) #a
#define ATTN_STRING(a) ATTN_STRING_(a)

namespace attn::kernels {
namespace {

namespace named {
#if defined(__wasm__)
using wasm = xsimd::wasm;
#else
#if XSIMD_WITH_EMULATED
using emulated = xsimd::emulated<128>;
#endif
using sse4_2 = xsimd::sse4_2;
using avx2_fma = xsimd::fma3<xsimd::avx2>;
using avx512f = xsimd::avx512f;
using default_arch = xsimd::default_arch;
#endif
}  // namespace named

using Arch = named::ATTN_ARCH;

}  // namespace

const KernelTable& ATTN_CONCAT(table_, ATTN_ARCH)() {
  static constexpr KernelTable kTable{
      .architecture = ATTN_STRING(ATTN_ARCH),
      .mr = Tile<Arch>::kMr,
      .nr = Tile<Arch>::kNr,
      .gemm = &gemm<Arch, float>,
      .softmax_row = &softmax_row<Arch>,
      .max_row = &max_row<Arch>,
      .exp_row = &exp_row<Arch>,
      .mask_row = &mask_row<Arch>,
      .scale_row = &scale_row<Arch>,
      .all_finite = &all_finite<Arch>,
      .activation_row = &activation_row<Arch>,
      .layer_norm_row = &layer_norm_row<Arch>,
      .rms_norm_row = &rms_norm_row<Arch>,
      .add_row = &add_row<Arch>,
      .multiply_row = &multiply_row<Arch>,
      .dot = &dot<Arch>,
      .additive_scores_row = &additive_scores_row<Arch>,
      .multiply_adds = &multiply_adds<Arch>,
  };
  return kTable;
}

}  // namespace attn::kernels
