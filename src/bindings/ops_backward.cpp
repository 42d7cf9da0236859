#include "attn/ops/activation_backward.hpp"
#include "attn/ops/linear_backward.hpp"
#include "attn/ops/norm_backward.hpp"
#include "attn/ops/softmax_backward.hpp"
#include "define.hpp"
#include "rotary_options.hpp"

namespace attn::bindings {
namespace {

void linear_backward(Arguments& arguments, Work<> work) {
  const TensorView grad = arguments.tensor("grad"), x = arguments.tensor("x"), weight = arguments.tensor("weight");
  work([&](Result& result) {
    detail::check_linear_backward(grad, x, weight);
    float* const grad_x = result.add("gradX", x.shape);
    float* const grad_weight = result.add("gradWeight", weight.shape);
    detail::linear_backward(grad, x, weight, {grad_x, grad_weight, result.add("gradBias", Shape{weight.shape[0]})});
  });
}

void layer_norm_backward(Arguments& arguments, Work<> work) {
  const TensorView grad = arguments.tensor("grad"), x = arguments.tensor("x");
  const std::optional<TensorView> weight = arguments.optional_tensor("weight");
  float eps = 1e-5F;
  arguments.option("eps", eps);
  work([&](Result& result) {
    const TensorView* const w = weight ? &*weight : nullptr;
    detail::check_layer_norm_backward(grad, x, w, eps);
    detail::NormGradientBuffers to{.grad_x = result.add("gradX", x.shape)};
    if (w != nullptr) {
      to.grad_weight = result.add("gradWeight", w->shape);
      to.grad_bias = result.add("gradBias", w->shape);
    }
    detail::layer_norm_backward(grad, x, w, eps, to);
  });
}

void rms_norm_backward(Arguments& arguments, Work<> work) {
  const TensorView grad = arguments.tensor("grad"), x = arguments.tensor("x");
  const std::optional<TensorView> weight = arguments.optional_tensor("weight");
  float eps = 0x1p-23F;
  arguments.option("eps", eps);
  work([&](Result& result) {
    const TensorView* const w = weight ? &*weight : nullptr;
    detail::check_rms_norm_backward(grad, x, w, eps);
    detail::NormGradientBuffers to{.grad_x = result.add("gradX", x.shape)};
    if (w != nullptr) to.grad_weight = result.add("gradWeight", w->shape);
    detail::rms_norm_backward(grad, x, w, eps, to);
  });
}

void softmax_backward(Arguments& arguments, Work<> work) {
  const TensorView grad = arguments.tensor("grad"), y = arguments.tensor("y");
  std::int64_t dim = -1;
  arguments.option("dim", dim);
  work([&](Result& result) {
    const std::size_t axis = detail::check_softmax_backward(grad, y, dim);
    detail::softmax_backward(grad, y, axis, result.add(y.shape));
  });
}

void activation_backward(Arguments& arguments, Work<> work) {
  const TensorView grad = arguments.tensor("grad"), x = arguments.tensor("x");
  Activation name{};
  arguments.require("name", name, kActivationNames);
  work([&](Result& result) {
    detail::check_activation_backward(grad, x);
    detail::activation_backward(grad, x, name, result.add(x.shape));
  });
}

void apply_rotary_backward(Arguments& arguments, Work<> work) {
  const TensorView grad = arguments.tensor("grad");
  const RotaryOptions options = rotary_options(arguments, "options").value_or(RotaryOptions{});
  work([&](Result& result) {
    const Shape shape = detail::check_rotary("apply_rotary_backward", "grad", grad, options);
    detail::apply_rotary(grad, options, -1, result.add(shape));
  });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_ops_backward) {
  using namespace attn::bindings;
  define_function<linear_backward>("linearBackward", "gradients");
  define_function<layer_norm_backward>("layerNormBackward", "gradients");
  define_function<rms_norm_backward>("rmsNormBackward", "gradients");
  define_function<softmax_backward>("softmaxBackward", "tensor");
  define_function<activation_backward>("activationBackward", "tensor");
  define_function<apply_rotary_backward>("applyRotaryBackward", "tensor");
}
