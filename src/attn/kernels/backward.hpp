#pragma once

#include <cstddef>

#include "attn/kernels/activation_name.hpp"

// In their own table, so that a program without gradients does not link them.
namespace attn::kernels {

/// C += Aᵀ Wᵀ: A (k,m) with row stride lda, W (n,k) packed, C (m,n) with row stride ldc.
struct GemmTransposed {
  const float* a = nullptr;
  std::ptrdiff_t lda = 0;
  const float* panels = nullptr;  ///< packed by pack()
  std::size_t panel_stride = 0;   ///< as in Gemm
  float* c = nullptr;
  std::ptrdiff_t ldc = 0;
  std::size_t m = 0, n = 0, k = 0;
};

/// Like KernelTable. grad is the gradient of the forward result; grad_x may be an input.
struct BackwardTable {
  const char* architecture;

  void (*gemm_transposed)(const GemmTransposed&);
  /// grad_x = y · (grad - Σ grad · y), y = softmax(x)
  void (*softmax_backward_row)(const float* grad, const float* y, float* grad_x, std::size_t n);
  /// x = 0 if bias is -infinity, even if x is NaN.
  void (*zero_blocked_row)(const float* bias, float* x, std::size_t n);
  /// grad *= 1 - (y / softcap)², y = softcap · tanh(x / softcap)
  void (*softcap_backward_row)(const float* y, float softcap, float* grad, std::size_t n);
  void (*activation_backward_row)(Activation, const float* grad, const float* x, float* grad_x, std::size_t n);
  /// Accumulates grad_weight and grad_bias.
  void (*layer_norm_backward_row)(const float* grad, const float* x, const float* weight, float eps, float* grad_x, float* grad_weight,
                                  float* grad_bias, std::size_t n);
  void (*rms_norm_backward_row)(const float* grad, const float* x, const float* weight, float eps, float* grad_x, float* grad_weight, std::size_t n);
  /// Accumulates the gradients of additive_scores_row. grad_keys is (keys_count,width). A key whose grad is 0 is
  /// skipped, even if it has NaN.
  void (*additive_scores_backward_row)(const float* grad, const float* query, const float* keys, std::ptrdiff_t key_stride, const float* score_weight,
                                       float* grad_query, float* grad_keys, float* grad_score_weight, std::size_t keys_count, std::size_t width);
};

/// Same architecture as best().
const BackwardTable& best_backward();

}  // namespace attn::kernels
