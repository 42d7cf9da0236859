#include <nanobind/stl/pair.h>

#include <cstdint>

#include "errors.hpp"
#include "layers.hpp"
#include "options.hpp"
#include "running.hpp"

namespace attn::python {
namespace {

using Result = Typed<"attn.EncoderResult">;

template <class Layer>
Result forward(Shared<Layer>& self, const ArrayLike& x, const MaybeMask& mask, const MaybeMask& key_padding_mask, bool is_causal,
               const Word<kFullyMaskedNames>& fully_masked, bool output_attentions, bool output_hidden_states, bool for_backward,
               const TraceNames& trace, const std::optional<std::vector<std::int64_t>>& trace_layers, std::optional<std::int64_t> query_offset) {
  constexpr const char* kOp = "encoder";
  const Floats view(x, kOp, "x");
  const EncoderForwardOptions options{.mask = mask_of(mask, kOp, "mask"),
                                      .key_padding_mask = mask_of(key_padding_mask, kOp, "key_padding_mask"),
                                      .is_causal = is_causal,
                                      .fully_masked = word_of<FullyMasked>(fully_masked, kOp, "fully_masked"),
                                      .output_attentions = output_attentions,
                                      .output_hidden_states = output_hidden_states,
                                      .for_backward = for_backward,
                                      .trace = trace_of(trace, trace_layers, kOp),
                                      .query_offset = query_offset};
  const auto compute = [&](const Layer& layer) {
    const detail::EncoderPlan plan = layer.plan(view, options);
    return detail::run_encoder_plan<3>(plan, [&](const detail::EncoderBuffers& buffers) { layer.run(plan, view, buffers); });
  };
  // Storing values for backward changes the layer.
  const auto result = for_backward ? self.change(kOp, compute) : self.read(kOp, compute);
  return make_result("EncoderResult", to_python(result.output), to_python(result.attentions), to_python(result.hidden_states),
                     to_python(result.trace));
}

template <class Layer>
Typed<"attn.EncoderGradients"> backward(Shared<Layer>& self, const ArrayLike& grad, const TraceNames& trace,
                                        const std::optional<std::vector<std::int64_t>>& trace_layers) {
  constexpr const char* kOp = "encoder.backward";
  const Floats view(grad, kOp, "grad");
  const EncoderBackwardOptions options{.trace = trace_of(trace, trace_layers, kOp)};
  const auto gradients = self.change(kOp, [&](Layer& layer) {
    const detail::EncoderBackwardPlan plan = layer.plan_backward(view, options);
    return detail::run_encoder_backward_plan<3>(plan, [&](const detail::EncoderGradientBuffers& to) { layer.run_backward(view, to); });
  });
  return make_result("EncoderGradients", to_python(gradients.grad_x), to_python(gradients.trace));
}

constexpr const char* kForward = R"(Computes the layers; calling the object does the same.

x: (B,L,E). Inputs without B (rank 2) give results without B, as in torch.
mask: a Mask of dims (S), (L,S), (B,L,S) or (B,H,L,S).
key_padding_mask: a Mask of dims (B,S).
is_causal: no query sees a later key.
query_offset: position of query 0; default 0.
fully_masked: result of a query whose keys are all masked: 'zero', 'nan', or 'uniform', the mean of the values.
output_attentions: return the attention weights of every layer.
output_hidden_states: return the input of every layer, and the output.
for_backward: keep the values that backward() needs.
trace: True or names of intermediate results, those of attention and attn_residual norm1 ff_hidden ff_output ff_residual norm2.
trace_layers: the traced layers, counted from 0; default all.

Returns an EncoderResult: output (B,L,E), and on request attentions, hidden_states and trace.

Raises ShapeError if x does not have the width E, MaskError if a mask does not fit or has NaN or +infinity, ConfigError if an option is outside its
range, ArgumentError for a trace that the layers do not have, OutOfRangeError if there is no such layer, OutOfMemoryError if the result does not fit
into memory.

>>> encoder = attn.TransformerEncoder(16, 4, num_layers=2)
>>> result = encoder(np.ones((1, 3, 16), np.float32), output_attentions=True)
>>> result.output.shape, len(result.attentions), result.attentions[0].shape
((1, 3, 16), 2, (1, 4, 3, 3)))";

constexpr const char* kLayerOptions = R"(d_model: model width E.
nhead: number of heads H.
)";
constexpr const char* kOptions = R"(dim_feedforward: width of the feed-forward network.
activation: 'relu', 'gelu' (with erf), 'gelu_tanh', 'silu', 'tanh', 'sigmoid', 'identity', 'mish' or 'quick_gelu'.
layer_norm_eps: eps of the norms.
norm_first: normalize before attention and feed-forward instead of after them.
bias: whether linear maps and norms have biases.
norm: 'layer_norm' or 'rms_norm'.
gated: use a gated feed-forward network.
num_key_value_heads: number of key and value heads, a divisor of nhead; default nhead.
window, softcap: as in scaled_dot_product_attention, for each layer.
threads: of the calls; default those of set_num_threads().

Raises ConfigError for sizes below 1, a d_model that nhead does not divide or an unknown name; OutOfMemoryError if the weights do
not fit into memory.)";

template <class Layer>
void define_forward(nb::class_<Shared<Layer>>& of) {
  for (const char* name : {"forward", "__call__"})
    of.def(name, &forward<Layer>, nb::arg("x"), nb::kw_only(), nb::arg("mask") = nb::none(), nb::arg("key_padding_mask") = nb::none(),
           nb::arg("is_causal") = false, nb::arg("fully_masked") = "zero", nb::arg("output_attentions") = false,
           nb::arg("output_hidden_states") = false, nb::arg("for_backward") = false, nb::arg("trace") = false, nb::arg("trace_layers") = nb::none(),
           nb::arg("query_offset") = nb::none(), kForward);
  of.def("backward", &backward<Layer>, nb::arg("grad"), nb::kw_only(), nb::arg("trace") = false, nb::arg("trace_layers") = nb::none(),
         R"(Computes the gradient of x and adds those of the parameters to gradients() (torch.autograd of nn.TransformerEncoder).

Each forward with for_backward allows one backward. Rows whose gradient is 0, for example padding, do not affect any gradient.

grad: (B,L,E), the gradient of the output of the last forward with for_backward.
trace: True or names of intermediate results, whose gradients to return.
trace_layers: the traced layers, counted from 0; default all.

Returns an EncoderGradients. Raises ArgumentError if there was no such forward since the last backward or change of weights, ShapeError
if grad does not have the shape of the output, UnsupportedError for an int8 layer, OutOfRangeError if there is no such layer, OutOfMemoryError
if the gradients do not fit into memory.

>>> encoder = attn.TransformerEncoder(16, 4, num_layers=2)
>>> output = encoder(np.ones((1, 3, 16), np.float32), for_backward=True).output
>>> encoder.backward(np.ones_like(output)).grad_x.shape
(1, 3, 16))");
  define_module(of);
}

}  // namespace

void define_encoders(nb::module_& module) {
  static const std::string of_layer = std::string(kLayerOptions) + kOptions;
  static const std::string of_stack =
      std::string(kLayerOptions) + "num_layers: number of layers.\nfinal_norm: a norm follows the last layer.\n" + kOptions;
  using Layer = Shared<TransformerEncoderLayer>;
  nb::class_<Layer> layer(module, "TransformerEncoderLayer", nb::type_slots(calling_init()),
                          R"(One Transformer encoder layer (torch.nn.TransformerEncoderLayer with batch_first=True; Vaswani et al. 2017).

By default x = norm1(x + attention(x)); x = norm2(x + ff(x)). With norm_first x += attention(norm1(x)); x += ff(norm2(x)).
ff(x) = linear2(activation(linear1(x))), or if gated linear2(activation(linear_gate(x)) · linear1(x)).

State dictionaries have torch's names: self_attn.* (as MultiHeadAttention), linear1.*, linear2.*, linear_gate.* if gated, norm1.*, norm2.*.
New layers have torch's initial distributions, from seed 0.

>>> layer = attn.TransformerEncoderLayer(16, 4, 32, activation="gelu")
>>> layer(np.ones((1, 3, 16), np.float32)).output.shape
(1, 3, 16))");
  layer.def(
      "__init__",
      [](Layer* self, std::int64_t d_model, std::int64_t nhead, std::int64_t dim_feedforward, const Word<kActivationNames>& activation,
         double layer_norm_eps, bool norm_first, bool bias, const Word<kNormKindNames>& norm, bool gated,
         std::optional<std::int64_t> num_key_value_heads, const MaybeWindow& window, float softcap, Threads threads) {
        constexpr const char* kOp = "TransformerEncoderLayer";
        new (self) Layer{.object = TransformerEncoderLayer({.d_model = d_model,
                                                            .nhead = nhead,
                                                            .dim_feedforward = dim_feedforward,
                                                            .activation = word_of<Activation>(activation, kOp, "activation"),
                                                            .layer_norm_eps = static_cast<float>(layer_norm_eps),
                                                            .norm_first = norm_first,
                                                            .bias = bias,
                                                            .norm = word_of<NormKind>(norm, kOp, "norm"),
                                                            .gated = gated,
                                                            .num_key_value_heads = num_key_value_heads,
                                                            .window = window_of(window),
                                                            .softcap = softcap}),
                         .threads = threads};
      },
      nb::arg("d_model"), nb::arg("nhead"), nb::arg("dim_feedforward") = 2048, nb::kw_only(), nb::arg("activation") = "relu",
      nb::arg("layer_norm_eps") = 1e-5, nb::arg("norm_first") = false, nb::arg("bias") = true, nb::arg("norm") = "layer_norm",
      nb::arg("gated") = false, nb::arg("num_key_value_heads") = nb::none(), nb::arg("window") = nb::none(), nb::arg("softcap") = 0.0F,
      nb::arg("threads") = nb::none(), of_layer.c_str());
  define_forward(layer);

  using Encoder = Shared<TransformerEncoder>;
  nb::class_<Encoder> encoder(module, "TransformerEncoder", nb::type_slots(calling_init()),
                              R"(A stack of Transformer encoder layers (torch.nn.TransformerEncoder with batch_first=True; Vaswani et al. 2017).

Each layer is a TransformerEncoderLayer; with final_norm a norm follows the last one.

State dictionaries have torch's names: layers.N.self_attn.* (as MultiHeadAttention), layers.N.linear1.*, linear2.*, linear_gate.* if gated,
norm1.*, norm2.*, and norm.* with final_norm. New layers have torch's initial distributions, from seed 0.

>>> encoder = attn.TransformerEncoder(16, 4, num_layers=2, norm_first=True)
>>> encoder(np.ones((1, 3, 16), np.float32)).output.shape
(1, 3, 16))");
  encoder.def(
      "__init__",
      [](Encoder* self, std::int64_t d_model, std::int64_t nhead, std::int64_t num_layers, std::int64_t dim_feedforward,
         const Word<kActivationNames>& activation, double layer_norm_eps, bool norm_first, bool bias, const Word<kNormKindNames>& norm, bool gated,
         std::optional<std::int64_t> num_key_value_heads, const MaybeWindow& window, float softcap, bool final_norm, Threads threads) {
        constexpr const char* kOp = "TransformerEncoder";
        new (self) Encoder{.object = TransformerEncoder({.layer = {.d_model = d_model,
                                                                   .nhead = nhead,
                                                                   .dim_feedforward = dim_feedforward,
                                                                   .activation = word_of<Activation>(activation, kOp, "activation"),
                                                                   .layer_norm_eps = static_cast<float>(layer_norm_eps),
                                                                   .norm_first = norm_first,
                                                                   .bias = bias,
                                                                   .norm = word_of<NormKind>(norm, kOp, "norm"),
                                                                   .gated = gated,
                                                                   .num_key_value_heads = num_key_value_heads,
                                                                   .window = window_of(window),
                                                                   .softcap = softcap},
                                                         .num_layers = num_layers,
                                                         .final_norm = final_norm}),
                           .threads = threads};
      },
      nb::arg("d_model"), nb::arg("nhead"), nb::arg("num_layers"), nb::arg("dim_feedforward") = 2048, nb::kw_only(), nb::arg("activation") = "relu",
      nb::arg("layer_norm_eps") = 1e-5, nb::arg("norm_first") = false, nb::arg("bias") = true, nb::arg("norm") = "layer_norm",
      nb::arg("gated") = false, nb::arg("num_key_value_heads") = nb::none(), nb::arg("window") = nb::none(), nb::arg("softcap") = 0.0F,
      nb::arg("final_norm") = false, nb::arg("threads") = nb::none(), of_stack.c_str());
  define_forward(encoder);
}

}  // namespace attn::python
