#include "attn/ops/linear.hpp"

#include "attn/memory/packed_linear.hpp"

namespace attn::detail {

Shape check_linear(const TensorView& x, const TensorView& weight, const TensorView* bias) {
  if (weight.shape.rank() != 2) fail(ErrorCode::shape, "linear", "weight", {"(out,in)"}, {weight.shape});
  const std::int64_t in = weight.shape[1], out = weight.shape[0];
  if (x.shape.rank() == 0 || x.shape.back(0) != in) fail(ErrorCode::shape, "linear", "x", {"(..,", in, ")"}, {x.shape});
  if (bias != nullptr && bias->shape != Shape{out}) fail(ErrorCode::shape, "linear", "bias", {Shape{out}}, {bias->shape});
  Shape y = x.shape;
  y[y.rank() - 1] = out;
  check_memory("linear", [&] { linear(x, weight, bias, counted(y, "the result")); });
  return y;
}

void linear(const TensorView& x, const TensorView& weight, const TensorView* bias, float* y) {
  Scratch scratch;
  multiply(weight, bias != nullptr ? bias->data : nullptr, Rows(x), y, scratch);
}

}  // namespace attn::detail
