// Compiled once per architecture, like kernels.cpp.
#include "attn/kernels/backward.hpp"

#include "attn/kernels/activation_backward.hpp"
#include "attn/kernels/additive_scores_backward.hpp"
#include "attn/kernels/architecture.hpp"
#include "attn/kernels/gemm_transposed.hpp"
#include "attn/kernels/norm_backward.hpp"
#include "attn/kernels/softmax_backward.hpp"

namespace attn::kernels {

const BackwardTable& ATTN_CONCAT(backward_, ATTN_ARCH)() {
  static constexpr BackwardTable kTable{
      .architecture = ATTN_STRING(ATTN_ARCH),
      .gemm_transposed = &gemm_transposed<Arch>,
      .softmax_backward_row = &softmax_backward_row<Arch>,
      .zero_blocked_row = &zero_blocked_row<Arch>,
      .softcap_backward_row = &softcap_backward_row<Arch>,
      .activation_backward_row = &activation_backward_row<Arch>,
      .layer_norm_backward_row = &layer_norm_backward_row<Arch>,
      .rms_norm_backward_row = &rms_norm_backward_row<Arch>,
      .additive_scores_backward_row = &additive_scores_backward_row<Arch>,
  };
  return kTable;
}

}  // namespace attn::kernels
