// The GEMM on a packed weight, as layers call it, for timing from JavaScript: the package has no function for it.
#include <emscripten/emscripten.h>

#include <attn/store/packed_linear.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

/// numbers() of cases.mjs.
std::vector<float> numbers(std::size_t count, std::uint32_t state) {
  std::vector<float> values(count);
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) * 0x1p-23F - 1.0F;  // [-1, 1)
  }
  return values;
}

struct Case {
  attn::PackedLinear linear;
  std::vector<float> x, y;
  std::int64_t rows;
};
Case current;

}  // namespace

extern "C" {

/// Makes y (m,n) = x (m,k) Wᵀ + b ready to run and says where y is.
EMSCRIPTEN_KEEPALIVE float* gemm_prepare(int m, int k, int n) {
  const auto rows = static_cast<std::size_t>(m), in = static_cast<std::size_t>(k), out = static_cast<std::size_t>(n);
  const std::vector<float> weight = numbers(out * in, 2), bias = numbers(out, 3);
  current = {attn::PackedLinear(weight.data(), bias.data(), n, k), numbers(rows * in, 1), std::vector<float>(rows * out), m};
  return current.y.data();
}

EMSCRIPTEN_KEEPALIVE void gemm_run() {
  attn::detail::Scratch scratch;
  const attn::detail::Rows x(current.x.data(), static_cast<std::size_t>(current.rows), static_cast<std::size_t>(current.linear.in_features()));
  current.linear.forward(x, current.y.data(), scratch);
}

}  // extern "C"
