// Times of the library's main pieces; the GFLOP/s count multiply-adds as two. benchmarks/wasm/layer.mjs has the same layer.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <attn/attn.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) * 0x1p-23F - 1.0F;  // [-1, 1)
  }
  return values;
}

template <std::size_t N>
xt::xtensor<float, N> tensor(const std::array<std::size_t, N>& shape) {
  xt::xtensor<float, N> x(shape);
  const std::vector<float> values = numbers(x.size());
  std::copy(values.begin(), values.end(), x.begin());
  return x;
}

void report(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

/// y (M,N) = x (M,K) Wᵀ + b, the weight packed beforehand as in a layer.
void linear(benchmark::State& state) {
  const std::int64_t M = state.range(0), K = state.range(1), N = state.range(2);
  const std::vector<float> weight = numbers(static_cast<std::size_t>(N * K)), bias = numbers(static_cast<std::size_t>(N)),
                           x = numbers(static_cast<std::size_t>(M * K));
  std::vector<float> y(static_cast<std::size_t>(M * N));
  const attn::PackedLinear packed(weight.data(), bias.data(), N, K);
  for (auto _ : state) {
    packed.forward(x.data(), M, y.data());
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * static_cast<double>(M * K * N));
}
BENCHMARK(linear)
    ->ArgNames({"M", "K", "N"})
    ->ArgsProduct({{16, 128, 512}, {384}, {384, 1536}})
    ->Args({128, 1536, 384})
    ->Unit(benchmark::kMicrosecond);

/// 12 heads, L = S.
void attention(benchmark::State& state) {
  const auto S = static_cast<std::size_t>(state.range(0)), D = static_cast<std::size_t>(state.range(1));
  const auto q = tensor<4>({1, 12, S, D}), k = tensor<4>({1, 12, S, D}), v = tensor<4>({1, 12, S, D});
  const attn::AttentionOptions options{.need_weights = state.range(2) != 0};
  for (auto _ : state) benchmark::DoNotOptimize(attn::scaled_dot_product_attention(q, k, v, options));
  report(state, 12.0 * 4.0 * static_cast<double>(S * S * D));
}
BENCHMARK(attention)
    ->ArgNames({"S", "D", "weights"})
    ->ArgsProduct({{16, 128, 512}, {32, 64}, {0, 1}})
    ->Args({2048, 32, 0})
    ->Unit(benchmark::kMicrosecond);

/// all-MiniLM-L6-v2's layer: 384 wide, 12 heads, one sentence of S tokens.
void minilm_layer(benchmark::State& state) {
  const auto S = static_cast<std::size_t>(state.range(0));
  attn::set_num_threads(static_cast<unsigned>(state.range(1)));
  const attn::MultiHeadAttention layer({.embed_dim = 384, .num_heads = 12});
  const auto x = tensor<3>({1, S, 384});
  for (auto _ : state) benchmark::DoNotOptimize(layer.forward(x));
  attn::set_num_threads(1);
  const double rows = static_cast<double>(S);
  report(state, 4 * 2.0 * rows * 384 * 384 + 4.0 * rows * rows * 384);
}
BENCHMARK(minilm_layer)->ArgNames({"S", "threads"})->ArgsProduct({{16, 128, 512}, {1, 2}})->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
