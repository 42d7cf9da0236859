#pragma once

#include <cstdint>

#include "attn/layers/linear_layer.hpp"
#include "attn/layers/parameter.hpp"
#include "attn/models/image_pooling.hpp"
#include "attn/models/model_config.hpp"

namespace attn::detail {

/// From hidden states (B,L,E) to logits, or to one vector per image.
class ImageHead {
 public:
  ImageHead() = default;
  explicit ImageHead(const ModelConfig& config);

  bool has_pooler() const { return pooler_.out_features() > 0; }
  void leave_out_pooler() { pooler_ = {}; }
  void visit_parameters(ParameterVisitor& visitor);

  /// logits (B,outputs)
  void classify(const float* hidden, std::int64_t B, std::int64_t L, float* logits, Scratch& scratch) const;

  std::int64_t width(ImagePooling pooling) const { return pooling == ImagePooling::pooler ? pooler_.out_features() : E_; }
  /// y (B,width(pooling))
  void pool(const float* hidden, std::int64_t B, std::int64_t L, ImagePooling pooling, float* y, Scratch& scratch) const;

 private:
  /// Rows of `to` are `stride` apart.
  void mean_of_patches(const float* hidden, std::int64_t B, std::int64_t L, float* to, std::int64_t stride) const;
  void token(const float* hidden, std::int64_t B, std::int64_t L, std::int64_t place, float* to, std::int64_t stride) const;

  ImageConfig config_;
  std::int64_t E_ = 0;
  Linear classifier_, teacher_, pooler_;
};

}  // namespace attn::detail
