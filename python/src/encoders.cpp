#include <nanobind/stl/pair.h>

#include <cstdint>

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
  // What is kept is the layer's.
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

constexpr const char* kForward = R"(x (B,L,E) -> output (B,L,E). Without B (rank 2) nothing has it, as in torch.

mask, key_padding_mask: which keys are seen, by a Mask; a key padding mask has (B,S).
is_causal: no key after a query's position. query_offset: query i stands at position i + offset.
fully_masked: what a query without keys gives: 'zero', 'nan', or 'uniform', 1/S on every key.
output_attentions, output_hidden_states: return the weights of every layer; the input of every layer, and the output.
for_backward: keep what backward() needs.
trace: True or names of intermediate results, those of attention and attn_residual norm1 ff_hidden ff_output ff_residual norm2;
trace_layers: of these layers, counted from 0; default all.

Raises ShapeError, MaskError, ConfigError, OutOfRangeError for a layer that is not there, OutOfMemoryError.)";

constexpr const char* kOptions = R"(activation: 'relu', 'gelu' (by erf), 'gelu_tanh', 'silu', 'tanh', 'sigmoid', 'identity', 'mish', 'quick_gelu'.
norm: 'layer_norm' or 'rms_norm'. window, softcap: as scaled_dot_product_attention, in each layer.
Raises ConfigError, OutOfMemoryError.)";

template <class Layer>
void define_forward(nb::class_<Shared<Layer>>& of) {
  for (const char* name : {"forward", "__call__"})
    of.def(name, &forward<Layer>, nb::arg("x"), nb::kw_only(), nb::arg("mask") = nb::none(), nb::arg("key_padding_mask") = nb::none(),
           nb::arg("is_causal") = false, nb::arg("fully_masked") = "zero", nb::arg("output_attentions") = false,
           nb::arg("output_hidden_states") = false, nb::arg("for_backward") = false, nb::arg("trace") = false, nb::arg("trace_layers") = nb::none(),
           nb::arg("query_offset") = nb::none(), kForward);
  of.def("backward", &backward<Layer>, nb::arg("grad"), nb::kw_only(), nb::arg("trace") = false, nb::arg("trace_layers") = nb::none(),
         R"(grad (B,L,E), that of the output of the last forward with for_backward -> that of x

Those of the parameters are added to gradients(). What was kept is used up. Rows whose gradient is 0, such as padding that nobody
reads, have no part in any gradient, whatever they hold  (torch.autograd of nn.TransformerEncoder).
trace, trace_layers: as forward, whose gradients to return.

Raises ArgumentError where no such forward was since the last backward or since weights changed, ShapeError, UnsupportedError for a
layer that is int8, OutOfRangeError for a layer that is not there, OutOfMemoryError.)");
  define_module(of);
}

}  // namespace

void define_encoders(nb::module_& module) {
  using Layer = Shared<TransformerEncoderLayer>;
  nb::class_<Layer> layer(module, "TransformerEncoderLayer",
                          R"(One layer of the encoder of Vaswani et al. 2017; torch.nn.TransformerEncoderLayer, batch first.

Post-norm: x = norm1(x + attention(x)); x = norm2(x + ff(x)). norm_first: x += attention(norm1(x)); x += ff(norm2(x)).
ff(x) = linear2(activation(linear1(x))), and gated linear2(activation(linear_gate(x)) · linear1(x)).

State, torch's names: self_attn.* (as MultiHeadAttention), linear1.*, linear2.*, linear_gate.* where gated, norm1.*, norm2.*.
Weights are drawn as torch's constructor would, from seed 0.)");
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
      nb::arg("threads") = nb::none(), kOptions);
  define_forward(layer);

  using Encoder = Shared<TransformerEncoder>;
  nb::class_<Encoder> encoder(module, "TransformerEncoder",
                              R"(num_layers encoder layers one after the other, and a norm after the last where final_norm
(Vaswani et al. 2017; torch.nn.TransformerEncoder, batch first)

Post-norm: x = norm1(x + attention(x)); x = norm2(x + ff(x)). norm_first: x += attention(norm1(x)); x += ff(norm2(x)).
ff(x) = linear2(activation(linear1(x))), and gated linear2(activation(linear_gate(x)) · linear1(x)).

State, torch's names: layers.N.self_attn.* (as MultiHeadAttention), layers.N.linear1.*, linear2.*, linear_gate.* where gated, norm1.*,
norm2.*; norm.* where final_norm. Weights are drawn as torch's constructor would, from seed 0.)");
  encoder.def(
      "__init__",
      [](Encoder* self, std::int64_t d_model, std::int64_t nhead, std::int64_t num_layers, std::int64_t dim_feedforward,
         const Word<kActivationNames>& activation, double layer_norm_eps, bool norm_first, bool bias, const Word<kNormKindNames>& norm, bool gated,
         std::optional<std::int64_t> num_key_value_heads, const MaybeWindow& window, float softcap, bool final_norm, Threads threads) {
        constexpr const char* kOp = "TransformerEncoder";
        new (self) Encoder{.object = TransformerEncoder({.d_model = d_model,
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
                                                         .softcap = softcap,
                                                         .num_layers = num_layers,
                                                         .final_norm = final_norm}),
                           .threads = threads};
      },
      nb::arg("d_model"), nb::arg("nhead"), nb::arg("num_layers"), nb::arg("dim_feedforward") = 2048, nb::kw_only(), nb::arg("activation") = "relu",
      nb::arg("layer_norm_eps") = 1e-5, nb::arg("norm_first") = false, nb::arg("bias") = true, nb::arg("norm") = "layer_norm",
      nb::arg("gated") = false, nb::arg("num_key_value_heads") = nb::none(), nb::arg("window") = nb::none(), nb::arg("softcap") = 0.0F,
      nb::arg("final_norm") = false, nb::arg("threads") = nb::none(), kOptions);
  define_forward(encoder);
}

}  // namespace attn::python
