#include <cstdint>
#include <optional>

#include "layers.hpp"
#include "options.hpp"
#include "running.hpp"

namespace attn::python {
namespace {

std::optional<Floats> maybe_floats(const MaybeArrayLike& given, const char* op, const char* argument) {
  if (given.is_none()) return std::nullopt;
  return std::optional<Floats>(std::in_place, given, op, argument);
}
const TensorView* pointer(const std::optional<Floats>& given) { return given ? &*given : nullptr; }

/// An array of the shape that check() gives, filled by fill(shape, y), both without the interpreter's lock.
template <class Check, class Fill>
FloatArray compute(Threads threads, Check check, Fill fill) {
  return to_python(run(threads, [&] {
    const Shape shape = check();
    Array<float> y(shape);
    fill(y.data());
    return y;
  }));
}

FloatArray linear(const ArrayLike& x, const ArrayLike& weight, const MaybeArrayLike& bias, Threads threads) {
  const Floats x_view(x, "linear", "x"), w_view(weight, "linear", "weight");
  const std::optional<Floats> b_view = maybe_floats(bias, "linear", "bias");
  return compute(
      threads, [&] { return detail::check_linear(x_view, w_view, pointer(b_view)); },
      [&](float* y) { detail::linear(x_view, w_view, pointer(b_view), y); });
}

FloatArray layer_norm(const ArrayLike& x, const MaybeArrayLike& weight, const MaybeArrayLike& bias, double eps, Threads threads) {
  const Floats x_view(x, "layer_norm", "x");
  const std::optional<Floats> w_view = maybe_floats(weight, "layer_norm", "weight"), b_view = maybe_floats(bias, "layer_norm", "bias");
  return compute(
      threads, [&] { return detail::check_layer_norm(x_view, pointer(w_view), pointer(b_view), static_cast<float>(eps)); },
      [&](float* y) { detail::layer_norm(x_view, pointer(w_view), pointer(b_view), static_cast<float>(eps), y); });
}

FloatArray rms_norm(const ArrayLike& x, const MaybeArrayLike& weight, double eps, Threads threads) {
  const Floats x_view(x, "rms_norm", "x");
  const std::optional<Floats> w_view = maybe_floats(weight, "rms_norm", "weight");
  return compute(
      threads, [&] { return detail::check_rms_norm(x_view, pointer(w_view), static_cast<float>(eps)); },
      [&](float* y) { detail::rms_norm(x_view, pointer(w_view), static_cast<float>(eps), y); });
}

FloatArray softmax(const ArrayLike& x, std::int64_t dim, Threads threads) {
  const Floats view(x, "softmax", "x");
  std::size_t axis = 0;
  return compute(
      threads,
      [&] {
        axis = detail::check_softmax(view, dim);
        return view.shape;
      },
      [&](float* y) { detail::softmax(view, axis, y); });
}

FloatArray activation(const ArrayLike& x, const Word<kActivationNames>& name, Threads threads) {
  const Floats view(x, "activation", "x");
  const auto function = word_of<Activation>(name, "activation", "name");
  return compute(threads, [&] { return detail::check_activation(view); }, [&](float* y) { detail::activation(view, function, y); });
}

FloatArray apply_rotary(const ArrayLike& x, double theta, std::int64_t offset, bool interleaved, Threads threads) {
  const Floats view(x, "apply_rotary", "x");
  const RotaryOptions options{.theta = theta, .offset = offset, .interleaved = interleaved};
  return compute(
      threads, [&] { return detail::check_rotary("apply_rotary", "x", view, options); },
      [&](float* y) { detail::apply_rotary(view, options, 1, y); });
}

FloatArray sinusoidal_positions(std::int64_t length, std::int64_t width, Threads threads) {
  return compute(
      threads, [&] { return detail::check_sinusoidal_positions(length, width); }, [&](float* y) { detail::sinusoidal_positions(length, width, y); });
}

FloatArray alibi_bias(std::int64_t num_heads, std::int64_t length, std::optional<std::int64_t> key_length, Threads threads) {
  const std::int64_t keys = key_length.value_or(length);
  return compute(
      threads, [&] { return detail::check_alibi_bias(num_heads, length, keys); }, [&](float* y) { detail::alibi_bias(num_heads, length, keys, y); });
}

}  // namespace

void define_functions(nb::module_& module) {
  module.def("linear", &linear, nb::arg("x"), nb::arg("weight"), nb::arg("bias") = nb::none(), nb::kw_only(), nb::arg("threads") = nb::none(),
             R"(x Wᵀ + b  (torch.nn.functional.linear)

x (..,in), weight (out,in), bias (out), by default none -> (..,out). Raises ShapeError where widths disagree, OutOfMemoryError.)");
  module.def("layer_norm", &layer_norm, nb::arg("x"), nb::arg("weight") = nb::none(), nb::arg("bias") = nb::none(), nb::arg("eps") = 1e-5,
             nb::kw_only(), nb::arg("threads") = nb::none(),
             R"((x - mean) / √(variance + eps) · weight + bias over the last dimension, biased variance
(Ba et al. 2016; torch.nn.functional.layer_norm)

x (..,width), weight (width) and bias (width), by default 1 and 0 -> x's shape. Raises ShapeError where widths disagree or x has
rank 0, ConfigError unless eps is finite and above 0, OutOfMemoryError.)");
  module.def("rms_norm", &rms_norm, nb::arg("x"), nb::arg("weight") = nb::none(), nb::arg("eps") = 0x1p-23, nb::kw_only(),
             nb::arg("threads") = nb::none(),
             R"(x / √(mean of x² + eps) · weight over the last dimension  (Zhang & Sennrich 2019; torch.nn.functional.rms_norm)

x (..,width), weight (width), by default 1 -> x's shape; eps is by default torch's, 2⁻²³. Raises as layer_norm.)");
  module.def("softmax", &softmax, nb::arg("x"), nb::arg("dim") = -1, nb::kw_only(), nb::arg("threads") = nb::none(),
             R"(exp(x - max x) / Σ exp(x - max x) along one dimension  (torch.nn.functional.softmax)

x of rank 1 to 8 -> the same shape. A slice that is all -infinity, or holds NaN or +infinity, gives NaN.
Raises OutOfRangeError for a dim that is not there, ShapeError, OutOfMemoryError.)");
  module.def("activation", &activation, nb::arg("x"), nb::arg("name"), nb::kw_only(), nb::arg("threads") = nb::none(),
             R"(f(x), element by element  (torch.nn.functional.relu, gelu, silu, ...)

name: 'relu', 'gelu' (by erf), 'gelu_tanh', 'silu', 'tanh', 'sigmoid', 'identity', 'mish', 'quick_gelu'.
Raises ConfigError, OutOfMemoryError.)");
  module.def("apply_rotary", &apply_rotary, nb::arg("x"), nb::kw_only(), nb::arg("theta") = 10000.0, nb::arg("offset") = 0,
             nb::arg("interleaved") = false, nb::arg("threads") = nb::none(),
             R"(Turns each pair of columns of row l by the angle (offset + l) · theta^(-2i / D), i < D/2  (RoFormer, Su et al. 2021)

x (..,L,D), D even: queries or keys by head -> the same shape. A product of a query and a key then depends on the distance of
their positions only.
theta: base of the wavelengths.
offset: position of row 0, how many keys a cache already holds.
interleaved: False pairs column i with i + D/2 (GPT-NeoX, Hugging Face), True 2i with 2i + 1 (the paper).

Raises ShapeError for a rank below 2 or an odd D, ConfigError, OutOfMemoryError.)");
  module.def("sinusoidal_positions", &sinusoidal_positions, nb::arg("length"), nb::arg("width"), nb::kw_only(), nb::arg("threads") = nb::none(),
             R"(PE(pos, 2i) = sin(pos / 10000^(2i / width)), PE(pos, 2i + 1) = cos of the same  (Vaswani et al. 2017, section 3.5)

-> (length,width), to be added to embeddings; an odd width ends with a sine. Raises ArgumentError, OutOfMemoryError.)");
  module.def("alibi_bias", &alibi_bias, nb::arg("num_heads"), nb::arg("length"), nb::arg("key_length") = nb::none(), nb::kw_only(),
             nb::arg("threads") = nb::none(),
             R"(-slope(h) · |i - j|, for Mask.additive  (ALiBi, Press et al. 2022, their get_slopes)

-> (1,H,L,S), S is key_length, by default L. Raises ConfigError for num_heads below 1, ArgumentError, OutOfMemoryError.)");
}

}  // namespace attn::python
