#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attn/layers/parameter.hpp"
#include "attn/tensor/results.hpp"

namespace attn {

/// Kinds of norms in an encoder layer.
enum class NormKind : std::uint8_t {
  layer_norm,  ///< Ba et al. 2016, weight and bias
  rms_norm,    ///< Zhang & Sennrich 2019, weight alone
};

inline constexpr std::array<std::string_view, 2> kNormKindNames{"layer_norm", "rms_norm"};

namespace detail {

class Gradients;             // layers/gradients.hpp
struct NormGradientBuffers;  // ops/norm_backward.hpp

/// The norm inside a layer: torch.nn.LayerNorm or torch.nn.RMSNorm with its entries in the state.
class Norm {
 public:
  Norm() = default;
  /// Leaves weight and bias unallocated.
  Norm(NormKind kind, std::int64_t width, bool bias, float eps)
      : kind_(kind), width_(width), has_bias_(bias && kind == NormKind::layer_norm), eps_(eps) {}

  /// A norm that is left out (torch.nn.Identity).
  static Norm identity(std::int64_t width) {
    Norm norm(NormKind::layer_norm, width, false, 0);
    norm.is_identity_ = true;
    return norm;
  }

  /// Only multiplies by the weight (LayerScale, Touvron et al. 2021). It has no gradient.
  static Norm scale(std::int64_t width) {
    Norm norm(NormKind::rms_norm, width, false, 0);
    norm.is_scale_ = true;
    return norm;
  }

  bool is_identity() const { return is_identity_; }
  /// Files have the weight minus `offset`.
  void set_offset(float offset) { offset_ = offset; }

  /// Normalizes the rows of x to y, both (rows,width); they may be the same memory.
  void forward(const float* x, std::int64_t rows, float* y) const;
  void forward_row(const float* x, float* y) const;
  /// Computes the gradients of forward() from grad (rows,width), that of y, which may be the same memory as grad_x. Rows whose gradient is 0 get
  /// a gradient of 0 and do not contribute to those of weight and bias, whatever x holds there.
  void backward(const float* grad, const float* x, std::int64_t rows, const NormGradientBuffers& to, Scratch& scratch) const;
  /// As above; writes the gradients of weight and bias to `gradients` if it has room for their names.
  void backward(const float* grad, const float* x, std::int64_t rows, float* grad_x, const std::string& prefix, Gradients& gradients,
                Scratch& scratch) const;

  void visit_parameters(ParameterVisitor& visitor);

 private:
  Shape shape() const { return {width_}; }

  NormKind kind_ = NormKind::layer_norm;
  std::int64_t width_ = 0;
  bool has_bias_ = false, is_identity_ = false, is_scale_ = false;
  bool reproducible_ = false;  ///< set with int8 weights: use kernels that give the same bits on all architectures
  float eps_ = 0, offset_ = 0;
  std::vector<float> weight_, bias_;
};

}  // namespace detail
}  // namespace attn
