#include "attn/layers/linear.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "attn/layers/state_dict.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {

void Linear::add_shapes(const std::string& prefix, const StateView*, std::map<std::string, Shape>& shapes) const {
  shapes.emplace(prefix + "weight", Shape{out_, in_});
  if (bias_) shapes.emplace(prefix + "bias", Shape{out_});
}

void Linear::save(const std::string& prefix, const StateTarget& target) const {
  const auto weight = target.find(prefix + "weight"), bias = target.find(prefix + "bias");
  if (weight != target.end()) get(weight->second, bias_ && bias != target.end() ? bias->second.values : nullptr);
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
  // What is loaded is float32 again.
  const float* const biases = bias != nullptr ? bias : bias_now.data();
  next.packed_ = PackedLinear(weight != nullptr ? weight : weight_now.data(), bias_ ? biases : nullptr, out_, in_);
  return next;
}

void Linear::unpack(float* weight, float* bias) const {
  const std::vector<float>& biases = is_quantized_ ? quantized_.bias() : packed_.bias();
  if (is_quantized_)
    quantized_.unpack_weight(weight);
  else
    packed_.unpack_weight(weight);
  if (bias != nullptr) std::copy(biases.begin(), biases.end(), bias);
}

void Linear::get(const StatePlace& weight, float* bias) const {
  if (weight.data == nullptr) return unpack(weight.values, bias);
  for (std::int64_t row = 0; row < out_; ++row) get_quantized_row(static_cast<std::size_t>(row), weight.data + row * in_, weight.scale + row);
  if (bias != nullptr) std::copy(quantized_.bias().begin(), quantized_.bias().end(), bias);
}

void Linear::make_int8() {
  if (is_quantized_) return;
  is_quantized_ = true;
  if (packed_.out_features() != out_) return;  // without numbers yet
  std::vector<float> weight(static_cast<std::size_t>(out_ * in_));
  packed_.unpack_weight(weight.data());
  quantized_ = QuantizedLinear(weight.data(), bias_ ? packed_.bias().data() : nullptr, out_, in_);
  packed_ = {};
}

void Linear::allocate_weight() {
  if (is_quantized_)
    quantized_.allocate_weight(out_, in_);
  else
    packed_.allocate_weight(out_, in_);
}

void Linear::set_weight_rows(std::size_t first, std::span<const float> rows) {
  if (is_quantized_)
    quantized_.set_weight_rows(first, rows);
  else
    packed_.set_weight_rows(first, rows);
}

void Linear::get_weight_row(std::size_t row, float* values) const {
  const auto k = static_cast<std::size_t>(in_);
  if (is_quantized_)
    quantized_.weight().get_row(row, k, values);
  else
    packed_.weight().get_row(row, k, values);
}

void Linear::set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) {
  quantized_.weight().set_quantized_rows(first, rows, static_cast<std::size_t>(in_));
}

void Linear::set_scales(std::span<const float> scales) { quantized_.weight().set_scales(scales); }

void Linear::get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const {
  quantized_.weight().get_quantized_row(row, static_cast<std::size_t>(in_), q, scale);
}

void Linear::forward(const Rows& x, float* y, Scratch& scratch, const parallel::TaskRef* finish_row) const {
  const Output output{this, y};
  forward({&output, 1}, x, scratch, finish_row);
}

namespace {
template <class Packed>
void forward_all(std::span<const Linear::Output> outputs, const Packed& (*packed)(const Linear&), const Rows& x, Scratch& scratch,
                 const parallel::TaskRef* finish_row) {
  typename Packed::Output all[3];  // query, key and value
  for (std::size_t i = 0; i < outputs.size(); ++i) all[i] = {&packed(*outputs[i].linear), outputs[i].y};
  Packed::forward({all, outputs.size()}, x, scratch, finish_row);
}
}  // namespace

void Linear::forward(std::span<const Output> outputs, const Rows& x, Scratch& scratch, const parallel::TaskRef* finish_row) {
  if (outputs.front().linear->is_quantized_)
    forward_all<QuantizedLinear>(outputs, [](const Linear& linear) -> const QuantizedLinear& { return linear.quantized_; }, x, scratch, finish_row);
  else
    forward_all<PackedLinear>(outputs, [](const Linear& linear) -> const PackedLinear& { return linear.packed_; }, x, scratch, finish_row);
}

void Linear::add_parameters(const std::string& prefix, Parameters& parameters) {
  parameters.emplace(prefix + "weight", Parameter({out_, in_}, this));
  if (bias_) parameters.emplace(prefix + "bias", Parameter({out_}, is_quantized_ ? &quantized_.bias() : &packed_.bias()));
}

Linear Linear::drawn(const InitOptions& options, std::uint32_t& parameter) const {
  const FloatEnvironment environment;
  std::vector<float> weight(static_cast<std::size_t>(out_ * in_)), bias(static_cast<std::size_t>(out_), 0.0F);
  Random(options.seed, parameter++).weight(weight.data(), out_, in_, options);
  Random random(options.seed, parameter++);
  if (options.scheme == InitScheme::torch) random.uniform(bias.data(), bias.size(), 1 / std::sqrt(static_cast<double>(in_)));
  return with(weight.data(), bias.data());
}

}  // namespace attn::detail
