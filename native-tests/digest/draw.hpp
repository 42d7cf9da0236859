#pragma once

#include <attn/attn.hpp>
#include <attn/tensor/float_environment.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

// Keep in step with wasm-tests/support/digest_draw.ts. Draws are separate statements: the order of lines is their
// order. Only an absent tensor, mask or list skips draws.
namespace digest {

using Dims = std::vector<std::size_t>;

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
  bool one_in(std::size_t n) { return below(n) == 0; }
  float unit() { return static_cast<float>(next() >> 8) / 8388608.0F - 1.0F; }
  template <class T, std::size_t N>
  T pick(const std::array<T, N>& items) {
    return items[below(N)];
  }

 private:
  std::uint32_t state_;
};

struct Values {
  Dims dims;
  std::vector<float> data;
};

struct MaskValues {
  attn::MaskKind kind = attn::MaskKind::attend;
  Values values;
};

struct Masks {
  std::optional<MaskValues> mask, key_padding_mask;
};

struct Call {
  std::size_t batch = 0;
  /// Dropout depends on the index in the batch, so only the first row equals a batch of one.
  bool dropping = false;
  std::vector<Values> constants;
  std::vector<Values> inputs;
  Masks masks;
  std::function<std::vector<Values>(const std::vector<Values>& inputs, const Masks& masks)> run;
  std::function<void()> quantize;
};

inline float nearest(double x) {
  const attn::detail::FloatEnvironment environment;
  const volatile double given = x;  // prevents an earlier conversion
  const volatile float rounded = static_cast<float>(given);
  return rounded;
}

inline std::uint32_t word_of(float x) { return std::isnan(x) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(x); }

class Hash {
 public:
  void add(const Values& x) {
    word(static_cast<std::uint32_t>(x.data.size()));
    for (const float each : x.data) word(word_of(each));
  }
  std::uint32_t value() const { return h_ ^ (h_ >> 15); }

 private:
  void word(std::uint32_t w) { h_ = (h_ ^ w) * 0x01000193U; }

  std::uint32_t h_ = 0x811c9dc5U;
};

inline std::size_t product(const Dims& dims) {
  std::size_t count = 1;
  for (const std::size_t dim : dims) count *= dim;
  return count;
}

template <std::size_t First, std::size_t Last, class F>
auto with_rank(std::size_t rank, F f) {
  if constexpr (First < Last) {
    if (rank > First) return with_rank<First + 1, Last>(rank, f);
  }
  return f(std::integral_constant<std::size_t, First>{});
}

template <std::size_t N>
attn::Tensor<N> tensor_of(const Values& x) {
  std::array<std::size_t, N> dims{};
  std::copy_n(x.dims.begin(), N, dims.begin());
  attn::Tensor<N> out(dims);
  std::copy(x.data.begin(), x.data.end(), out.data());
  return out;
}

inline attn::AnyTensor tensor_of(const Values& x) {
  attn::AnyTensor out = attn::AnyTensor::from_shape(x.dims);
  std::copy(x.data.begin(), x.data.end(), out.data());
  return out;
}

template <class Tensor>
Values values_of(const Tensor& x) {
  return {Dims(x.shape().begin(), x.shape().end()), std::vector<float>(x.data(), x.data() + x.size())};
}

inline std::optional<attn::Mask> mask_of(const std::optional<MaskValues>& mask) {
  if (!mask) return {};
  attn::AnyTensor data = tensor_of(mask->values);
  if (mask->kind == attn::MaskKind::attend) return attn::Mask::attend(std::move(data));
  return mask->kind == attn::MaskKind::block ? attn::Mask::block(std::move(data)) : attn::Mask::additive(std::move(data));
}

template <class Options>
Options with_masks(Options options, const Masks& masks) {
  options.mask = mask_of(masks.mask);
  options.key_padding_mask = mask_of(masks.key_padding_mask);
  return options;
}

inline Values row_of(const Values& x, std::size_t at) {
  Values out{x.dims, {}};
  out.dims[0] = 1;
  const auto size = static_cast<std::ptrdiff_t>(product(out.dims)), start = static_cast<std::ptrdiff_t>(at) * size;
  out.data.assign(x.data.begin() + start, x.data.begin() + start + size);
  return out;
}

inline std::optional<MaskValues> row_of(const std::optional<MaskValues>& mask, std::size_t least_rank, std::size_t at) {
  if (!mask || mask->values.dims.size() < least_rank || mask->values.dims[0] == 1) return mask;
  return MaskValues{mask->kind, row_of(mask->values, at)};
}

inline bool is_row(const Values& x, const Values& y, std::size_t at) {
  if (x.data.size() * y.dims[0] != y.data.size()) return false;
  return std::equal(x.data.begin(), x.data.end(), y.data.begin() + static_cast<std::ptrdiff_t>(at * x.data.size()),
                    [](float a, float b) { return word_of(a) == word_of(b); });
}

inline bool large(Generator& g) { return g.one_in(6); }

inline std::size_t length(Generator& g, std::size_t most) {
  const bool none = g.one_in(32);
  const std::size_t n = g.below(most);
  return none ? 0 : n + 1;
}

inline std::size_t rows(Generator& g, bool is_large) { return is_large ? 16 + length(g, 48) : length(g, 14); }

inline std::size_t batch(Generator& g) { return length(g, 3); }

inline Dims sizes(Generator& g, std::size_t rank, std::size_t most) {
  Dims out;
  for (std::size_t i = 0; i < rank; ++i) out.push_back(1 + g.below(most));
  return out;
}

inline std::uint64_t seed(Generator& g) {
  const std::uint64_t low = g.next();
  const std::uint64_t high = g.below(1U << 20);
  const bool wide = g.one_in(4);
  return wide ? high << 32 | low : low;
}

/// As float32, to which JavaScript's number is converted.
inline float probability(Generator& g) { return g.pick(std::array<float, 10>{0.0F, 0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F}); }

inline Values values(Generator& g, const Dims& dims, float factor) {
  Values out{dims, std::vector<float>(product(dims))};
  const float scale = factor * static_cast<float>(1U << g.below(3));
  for (float& x : out.data) x = g.unit() * scale;
  const bool special = g.one_in(16);
  if (special && !out.data.empty()) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    constexpr std::array<float, 6> kSpecials{std::numeric_limits<float>::quiet_NaN(),  kInf, -kInf, -0.0F,
                                             std::numeric_limits<float>::denorm_min(), 3e38F};
    const std::size_t at = g.below(out.data.size());
    out.data[at] = g.pick(kSpecials);
  }
  return out;
}

inline MaskValues mask_values(Generator& g, attn::MaskKind kind, const Dims& dims, std::size_t often) {
  MaskValues out{kind, {dims, std::vector<float>(product(dims))}};
  for (float& x : out.values.data) {
    const bool blocked = g.one_in(often);
    const float added = g.unit() * 2;
    if (kind == attn::MaskKind::additive)
      x = blocked ? -std::numeric_limits<float>::infinity() : added;
    else
      x = blocked == (kind == attn::MaskKind::block) ? 1.0F : 0.0F;
  }
  return out;
}

inline Masks masks(Generator& g, std::size_t B, std::size_t H, std::size_t L, std::size_t S, bool batched) {
  constexpr std::array<attn::MaskKind, 3> kKinds{attn::MaskKind::attend, attn::MaskKind::block, attn::MaskKind::additive};
  Masks out;
  const std::size_t kind = g.below(5);
  const std::size_t form = g.below(4);
  const std::size_t b = g.one_in(2) ? B : 1;
  const std::size_t h = g.one_in(2) ? H : 1;
  const std::size_t l = g.one_in(2) ? L : 1;
  const std::size_t often = 2 + g.below(8);
  if (kind < 3) {
    const std::array<Dims, 4> forms{{{S}, {l, S}, {b, l, S}, {b, h, l, S}}};
    out.mask = mask_values(g, kKinds[kind], forms[form], often);
  }
  const std::size_t padding_kind = g.below(9);
  const std::size_t padded = g.one_in(4) ? 1 : B;
  if (padding_kind < 3) out.key_padding_mask = mask_values(g, kKinds[padding_kind], batched ? Dims{padded, S} : Dims{S}, 5);
  return out;
}

inline attn::Trace trace(Generator& g, bool everything, attn::Trace names) {
  if (everything) return attn::Trace::all();
  std::uint32_t bits = 0;
  for (std::uint32_t bit = 1; bit <= names.bits(); bit <<= 1U)
    if ((names.bits() & bit) != 0 && g.one_in(4)) bits |= bit;
  return attn::Trace::from_bits(bits);
}

inline constexpr std::array<attn::FullyMasked, 3> kPolicies{attn::FullyMasked::zero, attn::FullyMasked::nan, attn::FullyMasked::uniform};

inline attn::AttentionOptions attention_options(Generator& g, attn::Trace names) {
  attn::AttentionOptions out;
  out.is_causal = g.one_in(3);
  out.fully_masked = g.pick(kPolicies);
  const bool has_scale = g.one_in(4);
  const float scale = g.unit();
  if (has_scale) out.scale = scale;
  const bool has_dropout = g.one_in(6);
  const float dropout = probability(g);
  if (has_dropout) out.dropout = dropout;
  const bool has_seed = g.one_in(4);
  const std::uint64_t drawn = seed(g);
  if (has_seed) out.seed = drawn;
  out.need_weights = g.one_in(2);
  out.average_weights = g.one_in(2);
  const std::size_t traced = g.below(10);
  if (traced < 2) out.trace = trace(g, traced == 0, names);
  return out;
}

template <class Result>
std::vector<Values> values_of_result(const Result& result) {
  std::vector<Values> out{values_of(result.output)};
  if (result.weights) out.push_back(values_of(*result.weights));
  if (result.trace)
    for (const auto& [name, tensor] : *result.trace) out.push_back(values_of(tensor));
  if (result.present) {
    out.push_back(values_of(result.present->key));
    out.push_back(values_of(result.present->value));
  }
  return out;
}

inline bool record(Generator& g, Hash& hash, const Call& call) {
  for (const Values& x : call.constants) hash.add(x);
  const std::vector<Values> results = call.run(call.inputs, call.masks);
  for (const Values& x : results) hash.add(x);

  const std::size_t drawn = g.below(call.batch);
  if (call.batch < 2) return true;
  const std::size_t at = call.dropping ? 0 : drawn;
  std::vector<Values> inputs;
  for (const Values& x : call.inputs) inputs.push_back(row_of(x, at));
  const std::vector<Values> alone = call.run(inputs, {row_of(call.masks.mask, 3, at), row_of(call.masks.key_padding_mask, 2, at)});
  if (alone.size() != results.size()) return false;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!is_row(alone[i], results[i], at)) return false;
  return true;
}

inline constexpr attn::Trace kLayerTraces = attn::Trace::from_bits((1U << attn::kAttentionTraceCount) - 1);
inline constexpr attn::Trace kFunctionTraces = attn::Trace::from_bits(
    kLayerTraces.bits() & ~attn::Trace{attn::TraceName::q_proj, attn::TraceName::k_proj, attn::TraceName::v_proj, attn::TraceName::merged}.bits());

inline constexpr std::array<attn::Activation, 9> kActivations{attn::Activation::relu,     attn::Activation::gelu, attn::Activation::gelu_tanh,
                                                              attn::Activation::silu,     attn::Activation::tanh, attn::Activation::sigmoid,
                                                              attn::Activation::identity, attn::Activation::mish, attn::Activation::quick_gelu};

inline Dims input_dims(std::size_t rank, std::size_t B, std::size_t H, std::size_t rows, std::size_t width) {
  if (rank == 4) return {B, H, rows, width};
  return rank == 3 ? Dims{B, rows, width} : Dims{rows, width};
}

}  // namespace digest
