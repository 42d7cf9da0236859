#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "attn/layers/parameter.hpp"
#include "attn/memory/packed_linear.hpp"
#include "attn/tensor/results.hpp"

namespace attn::detail {

class Gradients;               // layers/gradients.hpp
struct LinearGradientBuffers;  // ops/linear_backward.hpp

class Linear {
 public:
  Linear() = default;
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias) : in_(in_features), out_(out_features), bias_(bias) {}

  std::int64_t in_features() const { return in_; }
  std::int64_t out_features() const { return out_; }

  /// y = x Wᵀ + b, x (rows,in), y (rows,out); scratch and finish_row as in multiply().
  void forward(const Rows& x, float* y, Scratch& scratch, const parallel::TaskRef* finish_row = nullptr) const;
  void forward(const float* x, std::int64_t rows, float* y, Scratch& scratch, const parallel::TaskRef* finish_row = nullptr) const {
    forward(Rows(x, static_cast<std::size_t>(rows), static_cast<std::size_t>(in_)), y, scratch, finish_row);
  }

  /// One of several maps of the same x; all of them are quantized or none is.
  struct Output {
    const Linear* linear;
    float* y;
  };
  static void forward(std::span<const Output> outputs, const Rows& x, Scratch& scratch, const parallel::TaskRef* finish_row = nullptr);

  /// grad (rows,out); float32 weights only. Rows whose gradient is 0 do not contribute to weight and bias, whatever x holds there.
  void backward(const float* grad, const float* x, std::int64_t rows, const LinearGradientBuffers& to, Scratch& scratch) const;
  /// Computes gradients of weight and bias only if `gradients` has room for their names.
  void backward(const float* grad, const float* x, std::int64_t rows, float* grad_x, const std::string& prefix, Gradients& gradients,
                Scratch& scratch) const;

  bool is_quantized() const { return std::holds_alternative<QuantizedLinear>(packed_); }

  void visit_parameters(ParameterVisitor& visitor, ParameterKind bias = ParameterKind::bias);
  ParameterRef weight_ref(ParameterKind kind) { return {.shape = {out_, in_}, .kind = kind, .linear = this}; }
  ParameterRef bias_ref(ParameterKind kind) { return {.shape = {out_}, .kind = kind, .linear = this}; }

  /// An unallocated weight stays unallocated.
  Linear converted(bool to_int8) const;
  std::variant<PackedLinear, QuantizedLinear>& packed() { return packed_; }
  /// Null if the weight is int8.
  PackedLinear* float32() { return std::get_if<PackedLinear>(&packed_); }
  const PackedLinear* float32() const { return std::get_if<PackedLinear>(&packed_); }
  /// Null if the weight is float32.
  QuantizedLinear* int8() { return std::get_if<QuantizedLinear>(&packed_); }

 private:
  std::int64_t in_ = 0, out_ = 0;
  bool bias_ = false;
  std::variant<PackedLinear, QuantizedLinear> packed_;
};

}  // namespace attn::detail
