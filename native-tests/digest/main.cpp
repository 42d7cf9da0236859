// The native twin of wasm-tests/suites/bits.ts: the same 1200 random forwards, one hash a line. Built with the native-emulated preset its lines
// equal those of the simd WebAssembly. Change both together.
//
// Forward i draws from splitmix32 seeded with 0x5eed0000 + i:
//   state += 0x9e3779b9;  z = state;  z ^= z >> 16;  z *= 0x21f0aaad;  z ^= z >> 15;  z *= 0x735a2d97;  z ^= z >> 15
//   below(n) = floor(next · n / 2^32);  unit = (next >> 8) / 2^23 - 1, exact in float32.
//   length: k = below(8), n = below(24); 4n where k is 0, else n + 1.
//   values(count, factor): factor · 2^below(3) times unit, count times; then, where below(16) is 0 and count is not, the element below(count)
//   becomes one of NaN, Inf, -Inf, -0, 2^-149, 3e38.
// Every draw is a statement of its own: the order of evaluation is the order of the lines. Kinds by i % 8: 0-3 scaled_dot_product_attention,
// 4-5 MultiHeadAttention, 6 linear, 7 softmax.
// Hash: FNV-1a over 32-bit words (each NaN counts as 0x7fc00000), per tensor its number of elements first; then h ^= h >> 15.

#include <attn/attn.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <vector>

namespace {

constexpr std::uint32_t kForwards = 1200;

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : state_(seed) {}

  std::uint32_t next() {
    state_ += 0x9e3779b9U;
    std::uint32_t z = state_;
    z = (z ^ (z >> 16)) * 0x21f0aaadU;
    z = (z ^ (z >> 15)) * 0x735a2d97U;
    return z ^ (z >> 15);
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>((static_cast<std::uint64_t>(next()) * n) >> 32); }
  float unit() { return static_cast<float>(next() >> 8) / 8388608.0F - 1.0F; }

 private:
  std::uint32_t state_;
};

class Hash {
 public:
  void add(const float* data, std::size_t count) {
    word(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) word(std::isnan(data[i]) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(data[i]));
  }
  template <class T>
  void add(const T& tensor) {
    add(tensor.data(), tensor.size());
  }
  std::uint32_t value() const { return h_ ^ (h_ >> 15); }

 private:
  void word(std::uint32_t w) { h_ = (h_ ^ w) * 0x01000193U; }

  std::uint32_t h_ = 0x811c9dc5U;
};

std::size_t length(Generator& g) {
  const std::size_t k = g.below(8);
  const std::size_t n = g.below(24);
  return k == 0 ? 4 * n : n + 1;
}

void fill(Generator& g, float* data, std::size_t count, float factor) {
  const float scale = factor * static_cast<float>(1U << g.below(3));
  for (std::size_t i = 0; i < count; ++i) data[i] = g.unit() * scale;
  const std::size_t special = g.below(16);
  if (special == 0 && count > 0) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    constexpr std::array<float, 6> kSpecials{std::numeric_limits<float>::quiet_NaN(),  kInf, -kInf, -0.0F,
                                             std::numeric_limits<float>::denorm_min(), 3e38F};
    const std::size_t at = g.below(count);
    data[at] = kSpecials[g.below(6)];
  }
}

template <std::size_t N>
attn::Tensor<N> values(Generator& g, const std::array<std::size_t, N>& dims, float factor) {
  attn::Tensor<N> out(dims);
  fill(g, out.data(), out.size(), factor);
  return out;
}

/// The last N of four sizes; without heads (B,L,E) leaves H out.
template <std::size_t N>
std::array<std::size_t, N> dims_of(std::size_t B, std::size_t H, std::size_t rows, std::size_t columns) {
  if constexpr (N == 4)
    return {B, H, rows, columns};
  else if constexpr (N == 3)
    return {B, rows, columns};
  else
    return {rows, columns};
}

attn::AttentionOptions options(Generator& g, std::size_t B, std::size_t H, std::size_t L, std::size_t S, std::size_t forms, bool batched) {
  attn::AttentionOptions out;
  const std::size_t kind = g.below(4);
  const std::size_t form = g.below(forms);
  const std::size_t b = g.below(2) != 0 ? B : 1;
  const std::size_t h = g.below(2) != 0 ? H : 1;
  const std::size_t l = g.below(2) != 0 ? L : 1;
  if (kind > 0) {
    const std::array<std::vector<std::size_t>, 4> shapes{{{S}, {l, S}, {b, l, S}, {b, h, l, S}}};
    if (kind == 3) {
      xt::xarray<float> data = xt::xarray<float>::from_shape(shapes[form]);
      for (std::size_t i = 0; i < data.size(); ++i) {
        const bool blocked = g.below(4) == 0;
        data.data()[i] = blocked ? -std::numeric_limits<float>::infinity() : g.unit() * 2;
      }
      out.mask = attn::Mask::additive(data);
    } else {
      xt::xarray<std::uint8_t> data = xt::xarray<std::uint8_t>::from_shape(shapes[form]);
      for (std::size_t i = 0; i < data.size(); ++i) data.data()[i] = g.below(3) == 0 ? 0 : 1;
      out.mask = kind == 1 ? attn::Mask::attend(data) : attn::Mask::block(data);
    }
  }
  const bool padded = g.below(3) == 0;
  if (padded && batched) {
    xt::xtensor<std::uint8_t, 2> data(std::array<std::size_t, 2>{B, S});
    for (std::size_t i = 0; i < data.size(); ++i) data.data()[i] = g.below(5) == 0 ? 1 : 0;
    out.key_padding_mask = attn::Mask::block(data);
  }
  out.is_causal = g.below(3) == 0;
  constexpr std::array<attn::FullyMasked, 3> kPolicies{attn::FullyMasked::zero, attn::FullyMasked::nan, attn::FullyMasked::uniform};
  out.fully_masked = kPolicies[g.below(3)];
  const bool has_scale = g.below(4) == 0;
  const float scale = g.unit();
  if (has_scale) out.scale = scale;
  out.need_weights = g.below(2) == 0;
  out.average_weights = g.below(2) == 0;
  const bool traced = g.below(6) == 0;
  if (traced) out.trace = attn::Trace::from_bits((1U << attn::kTraceNames.size()) - 1);
  return out;
}

template <class Result>
void add_result(Hash& hash, const Result& result) {
  hash.add(result.output);
  if (result.weights) hash.add(*result.weights);
  if (result.trace)
    for (const auto& [name, tensor] : *result.trace) hash.add(tensor);
}

template <std::size_t N>
void run_attention(Generator& g, Hash& hash, std::size_t B, std::size_t H, std::size_t kv_heads, std::size_t L, std::size_t S, std::size_t D,
                   std::size_t Dv) {
  const auto q = values(g, dims_of<N>(B, H, L, D), 0.5F);
  const auto k = values(g, dims_of<N>(B, kv_heads, S, D), 0.5F);
  const auto v = values(g, dims_of<N>(B, kv_heads, S, Dv), 1.0F);
  attn::AttentionOptions o = options(g, B, H, L, S, N, N >= 3);
  o.enable_gqa = H != kv_heads;
  add_result(hash, attn::scaled_dot_product_attention(q, k, v, o));
}

void attention(Generator& g, Hash& hash) {
  const std::size_t rank = 2 + g.below(3);
  const std::size_t b = 1 + g.below(3);
  const std::size_t kv = 1 + g.below(3);
  const bool grouped = g.below(3) == 0;
  const std::size_t group = 2 + g.below(2);
  const std::size_t L = length(g);
  const std::size_t S = length(g);
  const std::size_t D = 1 + g.below(40);
  const std::size_t Dv = 1 + g.below(40);
  if (rank == 2)
    run_attention<2>(g, hash, 1, 1, 1, L, S, D, Dv);
  else if (rank == 3)
    run_attention<3>(g, hash, b, 1, 1, L, S, D, Dv);
  else
    run_attention<4>(g, hash, b, grouped ? kv * group : kv, kv, L, S, D, Dv);
}

template <std::size_t N>
void run_multi_head(Generator& g, Hash& hash, const attn::MultiHeadAttention& mha, bool cross, std::size_t B, std::size_t H, std::size_t L,
                    std::size_t S, std::size_t E, std::size_t kdim, std::size_t vdim) {
  const auto x = values(g, dims_of<N>(B, 1, L, E), 1.0F);
  if (cross) {
    const auto key = values(g, dims_of<N>(B, 1, S, kdim), 1.0F);
    const auto value = values(g, dims_of<N>(B, 1, S, vdim), 1.0F);
    add_result(hash, mha.forward(x, key, value, options(g, B, H, L, S, N == 3 ? 4 : 2, N == 3)));
  } else {
    add_result(hash, mha.forward(x, options(g, B, H, L, S, N == 3 ? 4 : 2, N == 3)));
  }
}

void multi_head(Generator& g, Hash& hash) {
  const std::size_t H = 1 + g.below(4);
  const std::size_t width = 1 + g.below(16);
  const bool own = g.below(3) == 0;
  const std::size_t kdim = 1 + g.below(40);
  const std::size_t vdim = 1 + g.below(40);
  const bool bias = g.below(4) != 0;
  const bool out_proj = g.below(4) != 0;
  const bool has_scale = g.below(4) == 0;
  const float scale = g.unit();
  constexpr std::array<attn::InitScheme, 6> kSchemes{attn::InitScheme::torch,          attn::InitScheme::xavier_uniform,
                                                     attn::InitScheme::xavier_normal,  attn::InitScheme::kaiming_uniform,
                                                     attn::InitScheme::kaiming_normal, attn::InitScheme::normal};
  const attn::InitScheme scheme = kSchemes[g.below(6)];
  const std::uint32_t seed = g.next();
  const double std = static_cast<double>(1 + g.below(64)) / 64;
  const bool batched = g.below(4) != 0;
  const std::size_t b = 1 + g.below(3);
  const std::size_t L = length(g);
  const std::size_t other = length(g);
  const bool drawn_cross = g.below(2) == 0;
  const bool cross = drawn_cross || own;
  const std::size_t E = H * width;
  const std::size_t S = cross ? other : L;

  attn::MultiHeadAttentionOptions o;
  o.embed_dim = static_cast<std::int64_t>(E);
  o.num_heads = static_cast<std::int64_t>(H);
  o.bias = bias;
  o.out_proj = out_proj;
  if (own) {
    o.kdim = static_cast<std::int64_t>(kdim);
    o.vdim = static_cast<std::int64_t>(vdim);
  }
  if (has_scale) o.scale = scale;
  attn::MultiHeadAttention mha(o);
  mha.initialize({.scheme = scheme, .seed = seed, .std = std});
  for (const auto& [name, tensor] : mha.state_dict()) hash.add(tensor);
  if (batched)
    run_multi_head<3>(g, hash, mha, cross, b, H, L, S, E, own ? kdim : E, own ? vdim : E);
  else
    run_multi_head<2>(g, hash, mha, cross, 1, H, L, S, E, own ? kdim : E, own ? vdim : E);
}

template <std::size_t N>
void run_linear(Generator& g, Hash& hash) {
  std::array<std::size_t, N> dims{};
  for (std::size_t i = 0; i + 1 < N; ++i) dims[i] = 1 + g.below(6);
  const std::size_t K = 1 + g.below(130);
  const std::size_t out = 1 + g.below(70);
  const bool biased = g.below(2) == 0;
  dims[N - 1] = K;
  const auto x = values(g, dims, 1.0F);
  const auto w = values(g, std::array<std::size_t, 2>{out, K}, 1.0F);
  const auto b = values(g, std::array<std::size_t, 1>{out}, 1.0F);
  if (biased)
    hash.add(attn::linear(x, w, b));
  else
    hash.add(attn::linear(x, w));
}

template <std::size_t N>
void run_softmax(Generator& g, Hash& hash) {
  std::array<std::size_t, N> dims{};
  for (std::size_t& dim : dims) dim = 1 + g.below(20);
  const auto dim = static_cast<std::int64_t>(g.below(2 * N)) - static_cast<std::int64_t>(N);
  const auto x = values(g, dims, 8.0F);
  hash.add(attn::softmax(x, dim));
}

/// Calls the function made for the rank drawn, 1 to 4.
template <class F1, class F2, class F3, class F4>
void by_rank(Generator& g, Hash& hash, F1 one, F2 two, F3 three, F4 four) {
  switch (1 + g.below(4)) {
    case 1:
      return one(g, hash);
    case 2:
      return two(g, hash);
    case 3:
      return three(g, hash);
    default:
      return four(g, hash);
  }
}

}  // namespace

int main() {
  for (std::uint32_t i = 0; i < kForwards; ++i) {
    Generator g(0x5eed0000U + i);
    Hash hash;
    const std::uint32_t kind = i % 8;
    if (kind < 4)
      attention(g, hash);
    else if (kind < 6)
      multi_head(g, hash);
    else if (kind == 6)
      by_rank(g, hash, run_linear<1>, run_linear<2>, run_linear<3>, run_linear<4>);
    else
      by_rank(g, hash, run_softmax<1>, run_softmax<2>, run_softmax<3>, run_softmax<4>);
    std::printf("%08x\n", hash.value());
  }
}
