#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attn/layers/parameter.hpp"
#include "attn/ops/init.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

enum class NormKind : std::uint8_t {
  layer_norm,  ///< Ba et al. 2016, weight and bias
  rms_norm,    ///< Zhang & Sennrich 2019, weight alone
};

inline constexpr std::array<std::string_view, 2> kNormKindNames{"layer_norm", "rms_norm"};

namespace detail {

class Gradients;             // layers/gradients.hpp
struct NormGradientBuffers;  // ops/norm_backward.hpp

/// The norm inside a layer: torch.nn.LayerNorm or torch.nn.RMSNorm, its place in the state included.
class Norm {
 public:
  Norm() = default;
  /// Without numbers yet.
  Norm(NormKind kind, std::int64_t width, bool bias, float eps)
      : kind_(kind), width_(width), has_bias_(bias && kind == NormKind::layer_norm), eps_(eps) {}

  /// A norm that is left out (torch.nn.Identity).
  static Norm identity(std::int64_t width) {
    Norm norm(NormKind::layer_norm, width, false, 0);
    norm.is_identity_ = true;
    return norm;
  }

  /// x and y (rows,width) may be the same.
  void forward(const float* x, std::int64_t rows, float* y) const;
  /// One row.
  void forward_row(const float* x, float* y) const;
  /// Gradients of forward() from that of y, grad (rows,width), which may lie where grad_x does. A row whose gradient is 0 has no part in those
  /// of weight and bias, and one of 0 itself, whatever x holds there.
  void backward(const float* grad, const float* x, std::int64_t rows, const NormGradientBuffers& to, Scratch& scratch) const;
  /// The same; those of weight and bias go where `gradients` has room for their names.
  void backward(const float* grad, const float* x, std::int64_t rows, float* grad_x, const std::string& prefix, Gradients& gradients,
                Scratch& scratch) const;
  bool has_bias() const { return has_bias_; }
  bool is_identity() const { return is_identity_; }

  /// prefix is such as "norm1."
  void add_shapes(const std::string& prefix, const StateView* state, std::map<std::string, Shape>& shapes) const;
  void save(const std::string& prefix, const StateTarget& target) const;
  Norm loaded(const std::string& prefix, const StateView& state) const;
  /// Weight 1 and bias 0.
  Norm drawn(const InitOptions& options, std::uint32_t& parameter) const;
  /// Names where its numbers will be.
  void add_parameters(const std::string& prefix, Parameters& parameters);
  /// From now on with the bits that all architectures have, as beside int8 weights.
  void make_int8() { everywhere_ = true; }

 private:
  Shape shape() const { return {width_}; }

  NormKind kind_ = NormKind::layer_norm;
  std::int64_t width_ = 0;
  bool has_bias_ = false, is_identity_ = false, everywhere_ = false;
  float eps_ = 0;
  std::vector<float> weight_, bias_;
};

}  // namespace detail
}  // namespace attn
