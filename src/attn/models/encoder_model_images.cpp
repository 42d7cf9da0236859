#include "attn/models/encoder_model.hpp"
#include "attn/ops/attention_core.hpp"
#include "attn/ops/pooling.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn {

detail::ModelInputs EncoderModel::image_inputs(std::string_view op, const TensorView& pixels) const {
  if (!config_.image) detail::fail(ErrorCode::unsupported, op, "the checkpoint", {"an image model"}, {"a text model"});
  return {.shape = embeddings_.check_pixels(op, pixels.shape), .pixels = &pixels};
}

Shape EncoderModel::check_image_embed(std::string_view op, const detail::ModelInputs& inputs, ImagePooling pooling) const {
  if (pooling == ImagePooling::pooler && !image_head_.has_pooler())
    detail::fail(ErrorCode::unsupported, op, "pooling", {"cls or mean"}, {"pooler, which the checkpoint does not have"});
  prepare(op, inputs, {.logits = false});
  const Shape shape{inputs.shape[0], image_head_.width(pooling)};
  detail::check_memory(op, [&] { embed_images(inputs, pooling, false, detail::counted(shape, "the result")); });
  return shape;
}

void EncoderModel::embed_images(const detail::ModelInputs& inputs, ImagePooling pooling, bool normalize, float* y) const {
  const detail::FloatEnvironment environment;
  const detail::ModelPlan plan = prepare("embed", inputs, {.logits = false});
  detail::Scratch scratch(&workspace_);
  float* const hidden = scratch.take(detail::size_of(plan.encoder.B * plan.encoder.L, plan.encoder.E));
  run(plan, inputs, {hidden, {}, {}}, nullptr, scratch);
  image_head_.pool(hidden, plan.encoder.B, plan.encoder.L, pooling, y, scratch);
  if (normalize) detail::normalize_rows(y, plan.encoder.B, image_head_.width(pooling), is_quantized());
}

void EncoderModel::leave_out_pooler() {
  config_.image.pooler_size = 0;
  image_head_.leave_out_pooler();
}

}  // namespace attn
