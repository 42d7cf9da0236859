#pragma once

#include <cstdint>

namespace attn::kernels {

/// Elementwise activation functions of x. Φ is the cumulative distribution function of N(0, 1).
enum class Activation : std::uint8_t {
  relu,        ///< max(x, 0)
  gelu,        ///< x · Φ(x) = x/2 · (1 + erf(x/√2))                       (Hendrycks & Gimpel 2016; torch's default form)
  gelu_tanh,   ///< x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))           (same paper; torch's approximate='tanh')
  silu,        ///< x / (1 + exp(-x))                                      (Elfwing et al. 2017)
  tanh,        ///< (exp(x) - exp(-x)) / (exp(x) + exp(-x))
  sigmoid,     ///< 1 / (1 + exp(-x))
  identity,    ///< x
  mish,        ///< x · tanh(log(1 + exp(x)))                               (Misra 2019)
  quick_gelu,  ///< x / (1 + exp(-1.702 x))                                 (Hendrycks & Gimpel 2016; transformers' name)
};

}  // namespace attn::kernels
