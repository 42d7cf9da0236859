#include <emscripten/bind.h>

#include <memory>

#include "attn/ops/linear.hpp"
#include "attn/ops/softmax.hpp"
#include "errors.hpp"
#include "tensors.hpp"

namespace attn::bindings {
namespace {

Address linear(Address x_address, Address weight_address, Address bias_address) {
  return guard([&] {
    const TensorView x = view_at(x_address), weight = view_at(weight_address);
    const TensorView bias_view = bias_address != 0 ? view_at(bias_address) : TensorView{};
    const TensorView* bias = bias_address != 0 ? &bias_view : nullptr;
    const Shape shape = detail::check_linear(x, weight, bias);
    auto result = std::make_unique<Result>();
    detail::linear(x, weight, bias, result->add(0, shape));
    return result.release()->address();
  });
}

Address softmax(Address x_address, std::int32_t dim) {
  return guard([&] {
    const TensorView x = view_at(x_address);
    const std::size_t axis = detail::check_softmax(x, dim);
    auto result = std::make_unique<Result>();
    detail::softmax(x, axis, result->add(0, x.shape));
    return result.release()->address();
  });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_ops) {
  emscripten::function("linear", &attn::bindings::linear);
  emscripten::function("softmax", &attn::bindings::softmax);
}
