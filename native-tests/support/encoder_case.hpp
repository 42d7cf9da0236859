#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "attn/layers/transformer_classifier.hpp"
#include "support/attention_case.hpp"
#include "support/call.hpp"
#include "support/random.hpp"
#include "support/reference.hpp"

namespace attn::test {

using Arrays = std::map<std::string, Array>;

/// A lost zero bias or norm of one would go unnoticed.
inline Arrays draw_state(Generator& random, const std::map<std::string, Shape>& shapes) {
  Arrays state;
  for (const auto& [name, dims] : shapes) {
    const bool norm = name.find("norm") != std::string::npos;
    Array values = random.normal(dims, norm ? 0.25F : dims.rank() == 2 ? 1 / std::sqrt(static_cast<float>(dims[1])) : 0.5F);
    if (norm && name.ends_with("weight"))
      for (float& value : values.data) value += 1;
    state.emplace(name, std::move(values));
  }
  return state;
}

template <class Layer, class Options>
Layer drawn_layer(Generator& random, const Options& options) {
  Layer layer(options);
  layer.load_state_dict(state_of(draw_state(random, layer.parameter_shapes())));
  return layer;
}

inline Arrays below(const std::string& prefix, const Arrays& state) {
  Arrays part;
  for (const auto& [name, array] : state)
    if (name.starts_with(prefix)) part.emplace(name.substr(prefix.size()), array);
  return part;
}

inline Array rows_of(const Array& x, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = first; i < first + count; ++i) order.push_back(i);
  return take(x, order);
}

struct EncoderCase {
  std::uint64_t seed = 0;
  TransformerEncoderLayerOptions options = {};
  Array x = {};
  std::optional<MaskInput> mask = {}, key_padding_mask = {};
  bool is_causal = false;
  FullyMasked fully_masked = FullyMasked::zero;
};

inline std::string describe(const TransformerEncoderLayerOptions& o) {
  std::ostringstream text;
  text << "d_model " << o.d_model << ", nhead " << o.nhead << ", dim_feedforward " << o.dim_feedforward << ", "
       << kActivationNames[static_cast<std::size_t>(o.activation)] << ", eps " << o.layer_norm_eps << (o.norm_first ? ", pre-norm" : ", post-norm")
       << ", bias " << o.bias << ", " << kNormKindNames[static_cast<std::size_t>(o.norm)] << (o.gated ? ", gated" : "");
  return text.str();
}

inline std::string describe(const EncoderCase& c) {
  return "seed " + std::to_string(c.seed) + ", " + describe(c.options) + ", x " + to_string(c.x.dims) + ", mask " + describe(c.mask) +
         ", key padding mask " + describe(c.key_padding_mask) + ", causal " + std::to_string(c.is_causal) +
         ", fully masked: " + to_string(c.fully_masked);
}

inline EncoderForwardOptions call_of(const EncoderCase& c) {
  EncoderForwardOptions options;
  if (c.mask) options.mask = mask_of(*c.mask);
  if (c.key_padding_mask) options.key_padding_mask = mask_of(*c.key_padding_mask);
  options.is_causal = c.is_causal;
  options.fully_masked = c.fully_masked;
  return options;
}

constexpr MaskKind kMaskKinds[] = {MaskKind::attend, MaskKind::block, MaskKind::additive};
constexpr FullyMasked kPolicies[] = {FullyMasked::zero, FullyMasked::nan, FullyMasked::uniform};

inline std::vector<Shape> mask_dims(std::int64_t B, std::int64_t H, std::int64_t L, std::int64_t S) {
  return {{S},          {L, S},       {1, S},       {B, L, S},    {1, L, S},    {B, 1, S},    {1, 1, S},   {B, H, L, S},
          {1, H, L, S}, {B, 1, L, S}, {B, H, 1, S}, {1, 1, L, S}, {1, H, 1, S}, {B, 1, 1, S}, {1, 1, 1, S}};
}

inline EncoderCase draw_encoder_case(std::uint64_t seed) {
  Generator random(seed);
  EncoderCase c;
  c.seed = seed;
  TransformerEncoderLayerOptions& o = c.options;
  o.nhead = 1 + random.below(4);
  o.d_model = o.nhead * (1 + random.below(9));
  o.dim_feedforward = 1 + random.below(40);
  o.activation = static_cast<Activation>(random.below(static_cast<std::int64_t>(kActivationNames.size())));
  o.layer_norm_eps = random.pick<float>({1e-5F, 1e-2F, 0.5F});
  o.norm_first = random.coin(0.5);
  o.bias = random.coin(0.7);
  o.norm = random.coin(0.3) ? NormKind::rms_norm : NormKind::layer_norm;
  o.gated = random.coin(0.3);
  const std::int64_t B = 1 + random.below(3), L = 1 + random.below(30);
  c.x = random.normal({B, L, o.d_model});
  if (random.coin(0.5)) c.mask = random_mask(random, kMaskKinds[random.below(3)], random.pick(mask_dims(B, o.nhead, L, L)));
  if (random.coin(0.4)) c.key_padding_mask = random_padding(random, kMaskKinds[random.below(3)], random.coin(0.5) ? B : 1, L);
  c.is_causal = random.coin(0.3);
  c.fully_masked = kPolicies[random.below(3)];
  return c;
}

inline Estimate reference_norm(const Estimate& x, const Array& weight, const Array* bias, double eps, bool rms) {
  Estimate y(x.dims);
  const std::size_t n = weight.data.size();
  const double sum_error = (std::sqrt(static_cast<double>(n)) + 2) * kEps;
  for (std::size_t at = 0; at < x.value.size(); at += n) {
    double mean = 0, size = 0, mean_error = 0;
    for (std::size_t i = at; i < at + n && !rms; ++i) {
      mean += x.value[i] / static_cast<double>(n);
      size += std::abs(x.value[i]) / static_cast<double>(n);
      mean_error += x.error[i] / static_cast<double>(n);
    }
    mean_error += sum_error * size;
    double variance = 0, variance_error = 0;
    for (std::size_t i = at; i < at + n; ++i) {
      const double deviation = x.value[i] - mean, error = x.error[i] + mean_error + kEps * std::abs(deviation);
      variance += deviation * deviation / static_cast<double>(n);
      variance_error += (2 * std::abs(deviation) + error) * error / static_cast<double>(n);
    }
    variance_error += sum_error * variance;
    const double divisor = std::sqrt(variance + eps), relative = variance_error / (variance + eps) + 4 * kEps;
    for (std::size_t i = at; i < at + n; ++i) {
      const double w = weight.data[i - at], b = bias != nullptr ? bias->data[i - at] : 0, normed = (x.value[i] - mean) / divisor * w;
      y.value[i] = normed + b;
      y.error[i] = (std::abs(w) * (x.error[i] + mean_error) / divisor + std::abs(normed) * relative) * (1 + relative) +
                   2 * kEps * (std::abs(normed) + std::abs(b));
    }
  }
  return y;
}

inline double reference_activation(double x, Activation name) {
  switch (name) {
    case Activation::relu:
      return x > 0 || std::isnan(x) ? x : 0;
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::identity:
      return x;
    case Activation::mish:
      return x * std::tanh(std::log1p(std::exp(x)));
    case Activation::quick_gelu:
      return x / (1 + std::exp(-1.702 * x));
  }
  return 0;
}

inline Estimate reference_activation(const Estimate& x, Activation name) {
  Estimate y(x.dims);
  for (std::size_t i = 0; i < x.value.size(); ++i) {
    y.value[i] = reference_activation(x.value[i], name);
    // The slope is at most 1.13, the error of a value 1e-6.
    const bool exact = name == Activation::relu || name == Activation::identity;
    y.error[i] = 1.13 * x.error[i] + (exact ? 0 : 1e-6);
  }
  return y;
}

inline Estimate reference_sum(const Estimate& x, const Estimate& y) {
  Estimate sum(x.dims);
  for (std::size_t i = 0; i < x.value.size(); ++i) {
    sum.value[i] = x.value[i] + y.value[i];
    sum.error[i] = x.error[i] + y.error[i] + kEps * std::abs(sum.value[i]);
  }
  return sum;
}
inline Estimate reference_product(const Estimate& x, const Estimate& y) {
  Estimate product(x.dims);
  for (std::size_t i = 0; i < x.value.size(); ++i) {
    product.value[i] = x.value[i] * y.value[i];
    product.error[i] = std::abs(x.value[i]) * y.error[i] + std::abs(y.value[i]) * x.error[i] + x.error[i] * y.error[i] +
                       kEps * std::abs(product.value[i]) + kSmallestDenormal;
  }
  return product;
}

/// By trace name, of x (B,L,E).
inline std::map<TraceName, Estimate> reference_encoder_layer(const EncoderCase& c, const Estimate& x, const Arrays& state) {
  const TransformerEncoderLayerOptions& o = c.options;
  const auto optional = [&](const std::string& name) { return state.contains(name) ? &state.at(name) : nullptr; };
  const auto norm = [&](const Estimate& in, const std::string& name) {
    return reference_norm(in, state.at(name + ".weight"), optional(name + ".bias"), o.layer_norm_eps, o.norm == NormKind::rms_norm);
  };
  const auto linear = [&](const Estimate& in, const std::string& name) {
    return reference_linear(in, state.at(name + ".weight"), optional(name + ".bias"));
  };

  ReferenceWeights w;
  const Array& packed = state.at("self_attn.in_proj_weight");
  w.query = rows_of(packed, 0, o.d_model);
  w.key = rows_of(packed, o.d_model, o.d_model);
  w.value = rows_of(packed, 2 * o.d_model, o.d_model);
  w.out = state.at("self_attn.out_proj.weight");
  if (const Array* bias = optional("self_attn.in_proj_bias")) {
    const auto part = [&](std::int64_t i) { return reshaped(rows_of(reshaped(*bias, {3 * o.d_model, 1}), i * o.d_model, o.d_model), {o.d_model}); };
    w.query_bias = part(0), w.key_bias = part(1), w.value_bias = part(2);
    w.out_bias = state.at("self_attn.out_proj.bias");
  }
  AttentionCase call;
  call.mask = c.mask, call.key_padding_mask = c.key_padding_mask, call.is_causal = c.is_causal, call.fully_masked = c.fully_masked;

  std::map<TraceName, Estimate> r;
  if (o.norm_first) r[TraceName::norm1] = norm(x, "norm1");
  const Estimate& in = o.norm_first ? r[TraceName::norm1] : x;
  const ReferenceMultiHeadAttention a = reference_multi_head_attention(in, in, in, call, o.nhead, w);
  r[TraceName::q_proj] = a.q_proj, r[TraceName::k_proj] = a.k_proj, r[TraceName::v_proj] = a.v_proj;
  r[TraceName::q] = a.q, r[TraceName::k] = a.k, r[TraceName::v] = a.v;
  r[TraceName::scores] = a.attention.scores, r[TraceName::masked_scores] = a.attention.masked_scores;
  r[TraceName::probabilities] = r[TraceName::weights] = a.attention.weights;
  r[TraceName::weighted_values] = a.attention.weighted_values, r[TraceName::context] = a.attention.context;
  r[TraceName::merged] = a.merged, r[TraceName::output] = a.output;
  const Estimate& residual = r[TraceName::attn_residual] = reference_sum(x, a.output);

  if (!o.norm_first) r[TraceName::norm1] = norm(residual, "norm1");
  if (o.norm_first) r[TraceName::norm2] = norm(residual, "norm2");
  const Estimate& ff_input = r[o.norm_first ? TraceName::norm2 : TraceName::norm1];
  const Estimate hidden = linear(ff_input, "linear1");
  const Estimate& activated = r[TraceName::ff_hidden] =
      o.gated ? reference_product(reference_activation(linear(ff_input, "linear_gate"), o.activation), hidden)
              : reference_activation(hidden, o.activation);
  const Estimate& ff_output = r[TraceName::ff_output] = linear(activated, "linear2");
  const Estimate& sum = r[TraceName::ff_residual] = reference_sum(o.norm_first ? residual : r[TraceName::norm1], ff_output);
  if (!o.norm_first) r[TraceName::norm2] = norm(sum, "norm2");
  return r;
}

inline const Estimate& layer_output(const EncoderCase& c, const std::map<TraceName, Estimate>& inside) {
  return inside.at(c.options.norm_first ? TraceName::ff_residual : TraceName::norm2);
}

}  // namespace attn::test
