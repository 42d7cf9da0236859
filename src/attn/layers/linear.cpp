#include "attn/layers/linear.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "attn/layers/state_dict.hpp"

namespace attn::detail {

void Linear::add_shapes(const std::string& prefix, const StateView*, std::map<std::string, Shape>& shapes) const {
  shapes.emplace(prefix + "weight", Shape{out_, in_});
  if (bias_) shapes.emplace(prefix + "bias", Shape{out_});
}

void Linear::save(const std::string& prefix, const StateTarget& target) const {
  const auto weight = target.find(prefix + "weight"), bias = target.find(prefix + "bias");
  if (weight != target.end()) unpack(weight->second, bias_ && bias != target.end() ? bias->second : nullptr);
}

Linear Linear::loaded(const std::string& prefix, const StateView& state) const {
  return with(find_data(state, prefix + "weight"), find_data(state, prefix + "bias"));
}

Linear Linear::with(const float* weight, const float* bias) const {
  std::vector<float> weight_now, bias_now;
  if (weight == nullptr || (bias_ && bias == nullptr)) {
    weight_now.resize(static_cast<std::size_t>(out_ * in_));
    bias_now.resize(static_cast<std::size_t>(out_));
    unpack(weight_now.data(), bias_now.data());
  }
  Linear next(in_, out_, bias_);
  const float* const biases = bias != nullptr ? bias : bias_now.data();
  next.packed_ = PackedLinear(weight != nullptr ? weight : weight_now.data(), bias_ ? biases : nullptr, out_, in_);
  return next;
}

void Linear::unpack(float* weight, float* bias) const {
  packed_.unpack_weight(weight);
  if (bias != nullptr) std::copy(packed_.bias().begin(), packed_.bias().end(), bias);
}

void Linear::add_parameters(const std::string& prefix, Parameters& parameters) {
  parameters.emplace(prefix + "weight", Parameter({out_, in_}, &packed_));
  if (bias_) parameters.emplace(prefix + "bias", Parameter({out_}, &packed_.bias()));
}

Linear Linear::drawn(const InitOptions& options, std::uint32_t& parameter) const {
  std::vector<float> weight(static_cast<std::size_t>(out_ * in_)), bias(static_cast<std::size_t>(out_), 0.0F);
  Random(options.seed, parameter++).weight(weight.data(), out_, in_, options);
  Random random(options.seed, parameter++);
  if (options.scheme == InitScheme::torch) random.uniform(bias.data(), bias.size(), 1 / std::sqrt(static_cast<double>(in_)));
  return with(weight.data(), bias.data());
}

}  // namespace attn::detail
