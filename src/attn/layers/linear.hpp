#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "attn/layers/parameter.hpp"
#include "attn/ops/init.hpp"
#include "attn/store/packed_linear.hpp"
#include "attn/tensor/results.hpp"

// The linear map inside a layer: torch.nn.Linear, its place in the state included. Internal.
namespace attn::detail {

class Linear {
 public:
  Linear() = default;
  /// Without numbers yet.
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias) : in_(in_features), out_(out_features), bias_(bias) {}

  std::int64_t in_features() const { return in_; }
  std::int64_t out_features() const { return out_; }

  /// y = x Wᵀ + b, x (rows,in), y (rows,out); scratch and finish_row as PackedLinear::forward.
  void forward(const float* x, std::int64_t rows, float* y, Scratch& scratch, const parallel::TaskRef* finish_row = nullptr) const {
    packed_.forward(Rows(x, static_cast<std::size_t>(rows), static_cast<std::size_t>(in_)), y, scratch, finish_row);
  }
  /// The map itself, for PackedLinear::forward of several.
  const PackedLinear& packed() const { return packed_; }

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

  /// Writes the weight (out,in), and the bias (out) unless null.
  void unpack(float* weight, float* bias) const;

 private:
  std::int64_t in_ = 0, out_ = 0;
  bool bias_ = false;
  PackedLinear packed_;
};

}  // namespace attn::detail
