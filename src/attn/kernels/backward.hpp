#pragma once

#include <cstddef>

#include "attn/kernels/activation_name.hpp"

// What only gradients need, in a table of its own: no forward refers to it, so whoever computes none links none of it. Products, exponentials
// and what else both need are in KernelTable.
namespace attn::kernels {

/// C += Aᵀ Wᵀ: A (k,m) rows lda apart, W (n,k) packed, C (m,n) rows ldc apart.
struct GemmTransposed {
  const float* a = nullptr;
  std::ptrdiff_t lda = 0;
  const float* panels = nullptr;  ///< as pack() leaves them
  std::size_t panel_stride = 0;   ///< panel_size() of what was packed; k may be smaller, then only that many terms are summed
  float* c = nullptr;
  std::ptrdiff_t ldc = 0;
  std::size_t m = 0, n = 0, k = 0;
};

/// The kernels of one architecture. None throws, none allocates; pointers need no alignment. grad is the gradient of what a forward gave.
struct BackwardTable {
  const char* architecture;

  void (*gemm_transposed)(const GemmTransposed&);
  /// grad_x = y · (grad - Σ grad · y), y = softmax(x); grad_x may be grad.
  void (*softmax_backward_row)(const float* grad, const float* y, float* grad_x, std::size_t n);
  /// x = 0 wherever bias is -infinity, whatever x is there.
  void (*zero_blocked_row)(const float* bias, float* x, std::size_t n);
  /// grad = grad · (1 - (y / softcap)²) in place, y = softcap · tanh(x / softcap).
  void (*softcap_backward_row)(const float* y, float softcap, float* grad, std::size_t n);
  /// grad_x = grad · f'(x); grad_x may be grad or x.
  void (*activation_backward_row)(Activation, const float* grad, const float* x, float* grad_x, std::size_t n);
  /// Gradients of one row; those of weight and bias are added to what is there.
  void (*layer_norm_backward_row)(const float* grad, const float* x, const float* weight, float eps, float* grad_x, float* grad_weight,
                                  float* grad_bias, std::size_t n);
  void (*rms_norm_backward_row)(const float* grad, const float* x, const float* weight, float eps, float* grad_x, float* grad_weight, std::size_t n);
  /// Of scores[j] = Σₐ score_weight[a] · tanh(query[a] + keys[j · key_stride + a]), a < width; all is added to what is there, grad_keys
  /// (keys_count,width). A key whose grad is 0 is skipped, whatever it holds.
  void (*additive_scores_backward_row)(const float* grad, const float* query, const float* keys, std::ptrdiff_t key_stride, const float* score_weight,
                                       float* grad_query, float* grad_keys, float* grad_score_weight, std::size_t keys_count, std::size_t width);
};

/// That of the architecture of best().
const BackwardTable& best_backward();

}  // namespace attn::kernels
