#include "attn/layers/norm.hpp"

#include <algorithm>

#include "attn/kernels/kernels.hpp"
#include "attn/layers/state_dict.hpp"
#include "attn/ops/norm.hpp"

namespace attn::detail {

void Norm::forward(const float* x, std::int64_t rows, float* y) const {
  if (is_identity_) {
    if (x != y) std::copy_n(x, rows * width_, y);
    return;
  }
  const TensorView view{x, {rows, shape()[0]}}, weight{weight_.data(), shape()}, bias{bias_.data(), shape()};
  if (kind_ == NormKind::rms_norm)
    rms_norm(view, &weight, eps_, y, everywhere_);
  else
    layer_norm(view, &weight, has_bias_ ? &bias : nullptr, eps_, y, everywhere_);
}

void Norm::forward_row(const float* x, float* y) const {
  if (is_identity_) return static_cast<void>(x != y ? std::copy_n(x, width_, y) : y);
  const kernels::KernelTable& kernel = kernels::best(everywhere_);
  if (kind_ == NormKind::rms_norm)
    kernel.rms_norm_row(x, weight_.data(), eps_, y, weight_.size());
  else
    kernel.layer_norm_row(x, weight_.data(), has_bias_ ? bias_.data() : nullptr, eps_, y, weight_.size());
}

void Norm::add_shapes(const std::string& prefix, const StateView*, std::map<std::string, Shape>& shapes) const {
  shapes.emplace(prefix + "weight", shape());
  if (has_bias_) shapes.emplace(prefix + "bias", shape());
}

void Norm::save(const std::string& prefix, const StateTarget& target) const {
  save_data(target, prefix + "weight", weight_);
  if (has_bias_) save_data(target, prefix + "bias", bias_);
}

Norm Norm::loaded(const std::string& prefix, const StateView& state) const {
  Norm next = *this;
  next.everywhere_ = false;
  if (const float* weight = find_data(state, prefix + "weight")) std::copy_n(weight, weight_.size(), next.weight_.data());
  if (const float* bias = find_data(state, prefix + "bias")) std::copy_n(bias, bias_.size(), next.bias_.data());
  return next;
}

Norm Norm::drawn(const InitOptions&, std::uint32_t&) const {
  Norm next = *this;
  next.everywhere_ = false;
  next.weight_.assign(static_cast<std::size_t>(width_), 1.0F);
  next.bias_.assign(static_cast<std::size_t>(has_bias_ ? width_ : 0), 0.0F);
  return next;
}

void Norm::add_parameters(const std::string& prefix, Parameters& parameters) {
  if (is_identity_) return;
  parameters.emplace(prefix + "weight", Parameter(shape(), &weight_));
  if (has_bias_) parameters.emplace(prefix + "bias", Parameter(shape(), &bias_));
}

}  // namespace attn::detail
