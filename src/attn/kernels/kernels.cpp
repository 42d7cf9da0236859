// Compiled once per architecture, with its flags and with ATTN_ARCH set to its name.
#include "attn/kernels/kernels.hpp"

#include <type_traits>

#include "attn/kernels/activation.hpp"
#include "attn/kernels/additive_scores.hpp"
#include "attn/kernels/architecture.hpp"
#include "attn/kernels/gemm.hpp"
#include "attn/kernels/int8.hpp"
#include "attn/kernels/norm.hpp"
#include "attn/kernels/peak.hpp"
#include "attn/kernels/philox.hpp"
#include "attn/kernels/rows.hpp"
#include "attn/kernels/softmax.hpp"

namespace attn::kernels {
namespace {

/// Bits is Arch or Reproducible<Arch>. Kernels that neither fuse nor sum are the same in both.
template <class Bits>
constexpr KernelTable table(const KernelTable* reproducible) {
  using Fusing = std::conditional_t<kFused, Bits, Arch>;
  return {
      .architecture = ATTN_STRING(ATTN_ARCH),
      .mr = Tile<Arch>::kMr,
      .nr = Tile<Arch>::kNr,
      .gemm = &gemm<Fusing, float>,
      .int8 = int8_kernels<Pairs<Arch>, Arch>(),
      .softmax_row = &softmax_row<Bits>,
      .max_row = &max_row<Arch>,
      .exp_row = &exp_row<Bits>,
      .mask_row = &mask_row<Arch>,
      .scale_row = &scale_row<Arch>,
      .all_finite = &all_finite<Arch>,
      .activation_row = &activation_row<Fusing>,
      .layer_norm_row = &layer_norm_row<Bits>,
      .rms_norm_row = &rms_norm_row<Bits>,
      .divide_row = &divide_row<Arch>,
      .maximum_row = &maximum_row<Arch>,
      .rotate_row = &rotate_row<Arch>,
      .quantize_weights = &quantize_weights<Arch>,
      .dequantize_row = &dequantize_row<Arch>,
      .drop_row = &drop_row<Arch>,
      .add_row = &add_row<Arch>,
      .add_scaled_row = &add_scaled_row<Arch>,
      .multiply_row = &multiply_row<Arch>,
      .dot = &dot<Bits>,
      .additive_scores_row = &additive_scores_row<Arch>,
      .reproducible = reproducible,
      .multiply_adds = &multiply_adds<Arch>,
  };
}

}  // namespace

#if defined(__wasm_relaxed_simd__)
const KernelTable& table_wasm() {
  const auto with = [](const Int8Kernels& int8) {
    static KernelTable reproducible = table<Reproducible<Arch>>(nullptr), chosen = table<Arch>(&reproducible);
    reproducible.int8 = chosen.int8 = int8;
    return &chosen;
  };
  static const KernelTable* const kTable = with(is_exact<Unsigned4<Arch>>() ? int8_kernels<Unsigned4<Arch>, Arch>()
                                                : is_exact<Signed4<Arch>>() ? int8_kernels<Signed4<Arch>, Arch, Unsigned4<Arch>>()
                                                                            : int8_kernels<Pairs<Arch>, Arch>());
  return *kTable;
}
#else
const KernelTable& ATTN_CONCAT(table_, ATTN_ARCH)() {
  static constexpr KernelTable kReproducible = table<Reproducible<Arch>>(nullptr);
  static constexpr KernelTable kTable = table<Arch>(&kReproducible);
  return kTable;
}
#endif

}  // namespace attn::kernels
