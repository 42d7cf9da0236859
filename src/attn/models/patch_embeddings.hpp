#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "attn/layers/linear_layer.hpp"
#include "attn/layers/parameter.hpp"
#include "attn/models/image_config.hpp"
#include "attn/tensor/view.hpp"

namespace attn::detail {

/// [CLS], distillation and register tokens, then the patches of an image, row by row, each as a linear map of its pixels; all except registers
/// plus their positions (Dosovitskiy et al. 2020).
class PatchEmbeddings {
 public:
  PatchEmbeddings() = default;
  PatchEmbeddings(const ImageConfig& config, std::int64_t width);

  void visit_parameters(ParameterVisitor& visitor);

  /// Returns (B,L) for pixels (B,channels,height,width). A remainder of less than a patch is ignored, as by torch's convolution.
  Shape check(std::string_view op, const Shape& pixels) const;
  /// x (B,L,E)
  void forward(const TensorView& pixels, float* x, Scratch& scratch) const;

 private:
  /// The positions (rows·columns,E) of another grid: bicubic interpolation as torch's interpolate().
  void interpolate(std::int64_t rows, std::int64_t columns, float* to, Scratch& scratch) const;

  ImageConfig config_;
  Linear projection_;  // (E,C·h·w)
  std::vector<float> tokens_[3];
  std::vector<float> positions_;  // (tokens + patches,E)
};

}  // namespace attn::detail
