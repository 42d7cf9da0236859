#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "attn/layers/parameter.hpp"
#include "attn/ops/init.hpp"
#include "attn/store/packed_linear.hpp"
#include "attn/tensor/results.hpp"

// The linear map inside a layer: torch.nn.Linear, its place in the state included. Internal.
namespace attn::detail {

class Gradients;               // layers/gradients.hpp
struct LinearGradientBuffers;  // ops/linear_backward.hpp

class Linear {
 public:
  Linear() = default;
  /// Without numbers yet.
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias) : in_(in_features), out_(out_features), bias_(bias) {}

  std::int64_t in_features() const { return in_; }
  std::int64_t out_features() const { return out_; }

  /// y = x Wᵀ + b, x (rows,in), y (rows,out); scratch and finish_row as PackedLinear::forward.
  void forward(const Rows& x, float* y, Scratch& scratch, const parallel::TaskRef* finish_row = nullptr) const;
  void forward(const float* x, std::int64_t rows, float* y, Scratch& scratch, const parallel::TaskRef* finish_row = nullptr) const {
    forward(Rows(x, static_cast<std::size_t>(rows), static_cast<std::size_t>(in_)), y, scratch, finish_row);
  }

  /// Several maps of one x, all of them quantized or none.
  struct Output {
    const Linear* linear;
    float* y;
  };
  static void forward(std::span<const Output> outputs, const Rows& x, Scratch& scratch, const parallel::TaskRef* finish_row = nullptr);

  /// Gradients of forward() from that of y, grad (rows,out), of float32 weights. A row whose gradient is 0 has no part in those of weight and
  /// bias, whatever x holds there.
  void backward(const float* grad, const float* x, std::int64_t rows, const LinearGradientBuffers& to, Scratch& scratch) const;
  /// The same; those of weight and bias go where `gradients` has room for their names.
  void backward(const float* grad, const float* x, std::int64_t rows, float* grad_x, const std::string& prefix, Gradients& gradients,
                Scratch& scratch) const;

  /// The weight becomes int8; what it was is gone. Nothing where it is already.
  void make_int8();
  bool is_quantized() const { return is_quantized_; }
  bool has_bias() const { return bias_; }

  /// prefix is such as "linear1."
  void add_shapes(const std::string& prefix, const StateView* state, std::map<std::string, Shape>& shapes) const;
  void save(const std::string& prefix, const StateTarget& target) const;
  Linear loaded(const std::string& prefix, const StateView& state) const;
  /// With these numbers, those so far where a pointer is null.
  Linear with(const float* weight, const float* bias) const;
  /// torch's own scheme: U(±1/√in) for weight and bias.
  Linear drawn(const InitOptions& options, std::uint32_t& parameter) const;

  /// Names where its numbers will be.
  void add_parameters(const std::string& prefix, Parameters& parameters);

  /// Room for the weight, and all of it zero.
  void allocate_weight();
  /// Whole rows of the weight from row `first` on.
  void set_weight_rows(std::size_t first, std::span<const float> rows);
  void get_weight_row(std::size_t row, float* values) const;
  /// The weight where it lies, of float32.
  Panels<float>& panels() { return packed_.weight(); }
  /// Of int8: rows as they are, and their scales.
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows);
  void set_scales(std::span<const float> scales);
  void get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const;

  /// Writes the weight (out,in), and the bias (out) unless null.
  void unpack(float* weight, float* bias) const;
  /// The same, or of what is int8 what it is kept as.
  void get(const StatePlace& weight, float* bias) const;

 private:
  std::int64_t in_ = 0, out_ = 0;
  bool bias_ = false, is_quantized_ = false;
  PackedLinear packed_;        // of float32
  QuantizedLinear quantized_;  // of int8: one of the two has the numbers
};

}  // namespace attn::detail
