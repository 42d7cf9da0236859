#include "attn/ops/positions.hpp"

#include "define.hpp"
#include "rotary_options.hpp"

namespace attn::bindings {
namespace {

void sinusoidal_positions(Arguments& arguments, Work<> work) {
  std::int64_t length = 0, width = 0;
  arguments.require("length", length);
  arguments.require("width", width);
  work([&](Result& result) {
    const Shape shape = detail::check_sinusoidal_positions(length, width);
    detail::sinusoidal_positions(length, width, result.add(shape));
  });
}

void apply_rotary(Arguments& arguments, Work<> work) {
  const TensorView x = arguments.tensor("x");
  const RotaryOptions options = rotary_options(arguments, "options").value_or(RotaryOptions{});
  work([&](Result& result) {
    const Shape shape = detail::check_rotary("apply_rotary", "x", x, options);
    detail::apply_rotary(x, options, 1, result.add(shape));
  });
}

void alibi_bias(Arguments& arguments, Work<> work) {
  std::int64_t num_heads = 0, length = 0;
  std::optional<std::int64_t> key_length;
  arguments.require("numHeads", num_heads);
  arguments.require("length", length);
  arguments.option("keyLength", key_length);
  work([&](Result& result) {
    const std::int64_t keys = key_length.value_or(length);
    const Shape shape = detail::check_alibi_bias(num_heads, length, keys);
    detail::alibi_bias(num_heads, length, keys, result.add(shape));
  });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_positions) {
  using namespace attn::bindings;
  define_function<sinusoidal_positions>("sinusoidalPositions", "tensor");
  define_function<apply_rotary>("applyRotary", "tensor");
  define_function<alibi_bias>("alibiBias", "tensor");
}
