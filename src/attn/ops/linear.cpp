#include "attn/ops/linear.hpp"

#include "attn/kernels/kernels.hpp"
#include "attn/memory/packed_linear.hpp"

namespace attn::detail {

Shape check_linear(const TensorView& x, const TensorView& weight, const TensorView* bias) {
  if (weight.shape.rank() != 2) fail(ErrorCode::shape, "linear", "weight", {"(out,in)"}, {weight.shape});
  const std::int64_t in = weight.shape[1], out = weight.shape[0];
  if (x.shape.rank() == 0 || x.shape.back(0) != in) fail(ErrorCode::shape, "linear", "x", {"(..,", in, ")"}, {x.shape});
  if (bias != nullptr && bias->shape != Shape{out}) fail(ErrorCode::shape, "linear", "bias", {Shape{out}}, {bias->shape});
  Shape y = x.shape;
  y[y.rank() - 1] = out;
  MemoryEstimate memory("linear");
  memory.add("the result", y);
  memory.add("the packed weight", {out + static_cast<std::int64_t>(kernels::best().nr), in + 1});
  memory.check();
  return y;
}

void linear(const TensorView& x, const TensorView& weight, const TensorView* bias, float* y) {
  Scratch scratch;
  PackedLinear(weight, bias != nullptr ? bias->data : nullptr).forward(Rows(x), y, scratch);
}

}  // namespace attn::detail
