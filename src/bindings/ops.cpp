#include "attn/ops/activation.hpp"
#include "attn/ops/linear.hpp"
#include "attn/ops/norm.hpp"
#include "attn/ops/softmax.hpp"
#include "define.hpp"

namespace attn::bindings {
namespace {

const TensorView* pointer(const std::optional<TensorView>& view) { return view ? &*view : nullptr; }

void linear(Arguments& arguments, Work<> work) {
  const TensorView x = arguments.tensor("x"), weight = arguments.tensor("weight");
  const std::optional<TensorView> bias = arguments.optional_tensor("bias");
  work([&](Result& result) {
    const Shape shape = detail::check_linear(x, weight, pointer(bias));
    detail::linear(x, weight, pointer(bias), result.add(shape));
  });
}

void layer_norm(Arguments& arguments, Work<> work) {
  const TensorView x = arguments.tensor("x");
  const std::optional<TensorView> weight = arguments.optional_tensor("weight"), bias = arguments.optional_tensor("bias");
  float eps = 1e-5F;
  arguments.option("eps", eps);
  work([&](Result& result) {
    const Shape shape = detail::check_layer_norm(x, pointer(weight), pointer(bias), eps);
    detail::layer_norm(x, pointer(weight), pointer(bias), eps, result.add(shape));
  });
}

void rms_norm(Arguments& arguments, Work<> work) {
  const TensorView x = arguments.tensor("x");
  const std::optional<TensorView> weight = arguments.optional_tensor("weight");
  float eps = 0x1p-23F;
  arguments.option("eps", eps);
  work([&](Result& result) {
    const Shape shape = detail::check_rms_norm(x, pointer(weight), eps);
    detail::rms_norm(x, pointer(weight), eps, result.add(shape));
  });
}

void activation(Arguments& arguments, Work<> work) {
  const TensorView x = arguments.tensor("x");
  Activation name{};
  arguments.require("name", name, kActivationNames);
  work([&](Result& result) {
    const Shape shape = detail::check_activation(x);
    detail::activation(x, name, result.add(shape));
  });
}

void softmax(Arguments& arguments, Work<> work) {
  const TensorView x = arguments.tensor("x");
  std::int64_t dim = -1;
  arguments.option("dim", dim);
  work([&](Result& result) {
    const std::size_t axis = detail::check_softmax(x, dim);
    detail::softmax(x, axis, result.add(x.shape));
  });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_ops) {
  using namespace attn::bindings;
  define_function<linear>("linear", "tensor");
  define_function<layer_norm>("layerNorm", "tensor");
  define_function<rms_norm>("rmsNorm", "tensor");
  define_function<softmax>("softmax", "tensor");
  define_function<activation>("activation", "tensor");
}
