// Exports the GEMM on a packed weight, as used by layers, and a stream over weights, to time them from JavaScript; the
// package exports neither.
#include <emscripten/emscripten.h>
#include <wasm_simd128.h>

#include <attn/memory/packed_linear.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

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
  attn::QuantizedLinear quantized;
  bool is_quantized;
  std::vector<float> x, y;
  std::int64_t rows;
};
Case current;
attn::detail::Workspace workspace;
std::vector<v128_t> stream;

}  // namespace

extern "C" {

/// Prepares y (m,n) = x (m,k) Wᵀ + b, W float32 or int8, and returns the address of y.
EMSCRIPTEN_KEEPALIVE float* gemm_prepare(int m, int k, int n, bool int8) {
  const auto rows = static_cast<std::size_t>(m), in = static_cast<std::size_t>(k), out = static_cast<std::size_t>(n);
  const std::vector<float> weight = numbers(out * in, 2), bias = numbers(out, 3);
  current = {{}, {}, int8, numbers(rows * in, 1), std::vector<float>(rows * out), m};
  if (int8)
    current.quantized = attn::QuantizedLinear(weight.data(), bias.data(), n, k);
  else
    current.linear = attn::PackedLinear(weight.data(), bias.data(), n, k);
  return current.y.data();
}

EMSCRIPTEN_KEEPALIVE void gemm_run() {
  attn::detail::Scratch scratch(&workspace);
  const auto rows = static_cast<std::size_t>(current.rows);
  const attn::detail::Rows x(current.x.data(), rows, current.x.size() / rows);
  if (current.is_quantized)
    current.quantized.forward(x, current.y.data(), scratch);
  else
    current.linear.forward(x, current.y.data(), scratch);
}

EMSCRIPTEN_KEEPALIVE void stream_prepare(int bytes) { stream.assign(static_cast<std::size_t>(bytes) / sizeof(v128_t), wasm_i32x4_splat(1)); }

/// Reads all bytes, with negligible arithmetic.
EMSCRIPTEN_KEEPALIVE int stream_run() {
  constexpr std::size_t kChains = 8;
  v128_t sums[kChains] = {};
  for (std::size_t i = 0; i + kChains <= stream.size(); i += kChains)
#pragma GCC unroll 8
    for (std::size_t c = 0; c < kChains; ++c) sums[c] = wasm_v128_xor(sums[c], wasm_v128_load(&stream[i + c]));
  for (const v128_t& sum : sums) sums[0] = wasm_v128_xor(sums[0], sum);
  return wasm_i32x4_extract_lane(sums[0], 0);
}

}  // extern "C"
