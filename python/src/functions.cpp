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
             R"(Applies a linear map: x Wᵀ + b (torch.nn.functional.linear).

x: (..,in).
weight: (out,in).
bias: (out), default none.
threads: of this call; default those of set_num_threads().

Returns (..,out). Raises ShapeError if widths disagree or x has rank 0, OutOfMemoryError if the result does not fit into memory.

>>> attn.linear([[1.0, 2.0]], weight=[[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]], bias=[0.5, 0.0, 0.0])
array([[1.5, 3. , 4. ]], dtype=float32))");
  module.def("layer_norm", &layer_norm, nb::arg("x"), nb::arg("weight") = nb::none(), nb::arg("bias") = nb::none(), nb::arg("eps") = 1e-5,
             nb::kw_only(), nb::arg("threads") = nb::none(),
             R"(Normalizes over the last dimension (Ba et al. 2016; torch.nn.functional.layer_norm).

(x - mean) / √(variance + eps) · weight + bias, with the biased variance.

x: (..,width).
weight: (width), default 1.
bias: (width), default 0.
eps: finite and above 0.
threads: of this call; default those of set_num_threads().

Returns an array of x's shape. Raises ShapeError if widths disagree or x has rank 0, ConfigError unless eps is finite and
above 0, OutOfMemoryError if the result does not fit into memory.

>>> attn.layer_norm([[1.0, 2.0, 3.0]]).round(3)
array([[-1.225,  0.   ,  1.225]], dtype=float32))");
  module.def("rms_norm", &rms_norm, nb::arg("x"), nb::arg("weight") = nb::none(), nb::arg("eps") = 0x1p-23, nb::kw_only(),
             nb::arg("threads") = nb::none(),
             R"(Divides by the root mean square over the last dimension (Zhang & Sennrich 2019; torch.nn.functional.rms_norm).

x / √(mean of x² + eps) · weight

x: (..,width).
weight: (width), default 1.
eps: finite and above 0; default 2⁻²³, as torch's.
threads: of this call; default those of set_num_threads().

Returns an array of x's shape. Raises ShapeError if widths disagree or x has rank 0, ConfigError unless eps is finite and
above 0, OutOfMemoryError if the result does not fit into memory.

>>> attn.rms_norm([[3.0, 4.0]]).round(3)
array([[0.849, 1.131]], dtype=float32))");
  module.def("softmax", &softmax, nb::arg("x"), nb::arg("dim") = -1, nb::kw_only(), nb::arg("threads") = nb::none(),
             R"(Turns numbers into positive shares that add up to 1 along one dimension (torch.nn.functional.softmax).

exp(x - max x) / Σ exp(x - max x)

x: of rank 1 to 8.
dim: the dimension; negative numbers count from the end.
threads: of this call; default those of set_num_threads().

Returns an array of x's shape. A slice that is all -infinity, or has NaN or +infinity, gives NaN.
Raises OutOfRangeError if x has no such dimension, ShapeError if x has rank 0, OutOfMemoryError if the result does not fit into memory.

>>> attn.softmax([1.0, 2.0, 3.0]).round(3)
array([0.09 , 0.245, 0.665], dtype=float32))");
  module.def("activation", &activation, nb::arg("x"), nb::arg("name"), nb::kw_only(), nb::arg("threads") = nb::none(),
             R"(Applies an activation function to each element (torch.nn.functional.relu, gelu, silu, ...).

x: of any shape.
name: 'relu', 'gelu' (with erf), 'gelu_tanh', 'silu', 'tanh', 'sigmoid', 'identity', 'mish' or 'quick_gelu'.
threads: of this call; default those of set_num_threads().

Returns an array of x's shape. Raises ConfigError for another name, OutOfMemoryError if the result does not fit into memory.

>>> attn.activation([-1.0, 0.0, 1.0], "gelu").round(3)
array([-0.159,  0.   ,  0.841], dtype=float32))");
  module.def("apply_rotary", &apply_rotary, nb::arg("x"), nb::kw_only(), nb::arg("theta") = 10000.0, nb::arg("offset") = 0,
             nb::arg("interleaved") = false, nb::arg("threads") = nb::none(),
             R"(Applies rotary position embeddings, RoPE, to queries or keys (RoFormer, Su et al. 2021).

Rotates each pair of columns of row l by the angle (offset + l) · theta^(-2i / D), i < D/2. The product of a rotated query and a rotated
key then depends only on the distance of their positions.

x: (..,L,D) with an even D.
theta: base of the wavelengths.
offset: position of row 0, for example the number of keys in a cache.
interleaved: False pairs column i with i + D/2 (GPT-NeoX, Hugging Face), True pairs 2i with 2i + 1 (the paper).
threads: of this call; default those of set_num_threads().

Returns an array of x's shape. Raises ShapeError for a rank below 2 or an odd D, ConfigError unless theta is finite and above
0 and offset is within ±2⁵³, OutOfMemoryError if the result does not fit into memory.

>>> attn.apply_rotary([[1.0, 0.0], [1.0, 0.0]]).round(3)
array([[1.   , 0.   ],
       [0.54 , 0.841]], dtype=float32))");
  module.def("sinusoidal_positions", &sinusoidal_positions, nb::arg("length"), nb::arg("width"), nb::kw_only(), nb::arg("threads") = nb::none(),
             R"(Computes sinusoidal position embeddings, which are added to token embeddings (Vaswani et al. 2017, section 3.5).

PE(pos, 2i) = sin(pos / 10000^(2i / width)), PE(pos, 2i + 1) = cos(pos / 10000^(2i / width))

length: number of positions.
width: number of columns; an odd width ends with a sine.
threads: of this call; default those of set_num_threads().

Returns (length,width). Raises ArgumentError unless length and width are from 0 to 2³¹ - 1, OutOfMemoryError if the result does not fit into memory.

>>> attn.sinusoidal_positions(2, 4).round(3)
array([[0.   , 1.   , 0.   , 1.   ],
       [0.841, 0.54 , 0.01 , 1.   ]], dtype=float32))");
  module.def("alibi_bias", &alibi_bias, nb::arg("num_heads"), nb::arg("length"), nb::arg("key_length") = nb::none(), nb::kw_only(),
             nb::arg("threads") = nb::none(),
             R"(Computes the ALiBi bias for Mask.additive: scores fall with the distance (Press et al. 2022, with their slopes).

-slope(h) · |i - j|

num_heads: number of heads H.
length: number of queries L.
key_length: number of keys S, default L.
threads: of this call; default those of set_num_threads().

Returns (1,H,L,S). Raises ConfigError for num_heads below 1, ArgumentError unless the lengths are from 0 to 2³¹ - 1,
OutOfMemoryError if the result does not fit into memory.

>>> attn.alibi_bias(1, 3)[0, 0]
array([[ 0.        , -0.00390625, -0.0078125 ],
       [-0.00390625,  0.        , -0.00390625],
       [-0.0078125 , -0.00390625,  0.        ]], dtype=float32))");
}

}  // namespace attn::python
