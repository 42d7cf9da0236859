#pragma once

#include <cstddef>

#include "attn/kernels/activation_name.hpp"

// Kernels that only gradients need. They have a separate table that forward passes do not refer to, so a program that
// computes no gradients does not link them. Matrix products, exponentials and other kernels that both passes need are
// in KernelTable.
namespace attn::kernels {

/// C += Aᵀ Wᵀ: A (k,m) with row stride lda, W (n,k) packed, C (m,n) with row stride ldc.
struct GemmTransposed {
  const float* a = nullptr;
  std::ptrdiff_t lda = 0;
  const float* panels = nullptr;  ///< packed by pack()
  std::size_t panel_stride = 0;   ///< panel_size() of the packed W; if k is smaller, only the first k terms are summed
  float* c = nullptr;
  std::ptrdiff_t ldc = 0;
  std::size_t m = 0, n = 0, k = 0;
};

/// Kernels of one architecture. They do not throw or allocate, and pointers need no alignment. grad is the gradient of
/// the result of the forward kernel.
struct BackwardTable {
  const char* architecture;

  void (*gemm_transposed)(const GemmTransposed&);
  /// grad_x = y · (grad - Σ grad · y), y = softmax(x); grad_x may be grad.
  void (*softmax_backward_row)(const float* grad, const float* y, float* grad_x, std::size_t n);
  /// Sets x to 0 wherever bias is -infinity, regardless of the value of x.
  void (*zero_blocked_row)(const float* bias, float* x, std::size_t n);
  /// grad = grad · (1 - (y / softcap)²) in place, y = softcap · tanh(x / softcap).
  void (*softcap_backward_row)(const float* y, float softcap, float* grad, std::size_t n);
  /// grad_x = grad · f'(x); grad_x may be grad or x.
  void (*activation_backward_row)(Activation, const float* grad, const float* x, float* grad_x, std::size_t n);
  /// Gradients for one row; grad_weight and grad_bias are accumulated.
  void (*layer_norm_backward_row)(const float* grad, const float* x, const float* weight, float eps, float* grad_x, float* grad_weight,
                                  float* grad_bias, std::size_t n);
  void (*rms_norm_backward_row)(const float* grad, const float* x, const float* weight, float eps, float* grad_x, float* grad_weight, std::size_t n);
  /// Gradients of scores[j] = Σₐ score_weight[a] · tanh(query[a] + keys[j · key_stride + a]), a < width. All of them
  /// are accumulated; grad_keys is (keys_count,width). A key whose grad is 0 is skipped, regardless of its values.
  void (*additive_scores_backward_row)(const float* grad, const float* query, const float* keys, std::ptrdiff_t key_stride, const float* score_weight,
                                       float* grad_query, float* grad_keys, float* grad_score_weight, std::size_t keys_count, std::size_t width);
};

/// Returns the table for the architecture of best().
const BackwardTable& best_backward();

}  // namespace attn::kernels
