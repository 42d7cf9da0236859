#include <nanobind/stl/pair.h>

#include <cstdint>
#include <optional>
#include <string>

#include "layers.hpp"
#include "options.hpp"
#include "running.hpp"

namespace attn::python {
namespace {

using Result = Typed<"attn.AttentionResult">;
using Past = Typed<"tuple[numpy.typing.ArrayLike, numpy.typing.ArrayLike]">;

/// Options of a call, and what they refer to.
struct AttentionCall {
  AttentionOptions options;
  std::optional<Floats> past_key, past_value;
  Threads threads;
};

/// Calls run(inputs.., call) with the options that every attention has.
template <auto run, class... Inputs>
struct Attention {
  static Result call(Inputs... inputs, const MaybeMask& mask, const MaybeMask& key_padding_mask, bool is_causal, std::optional<float> scale,
                     std::optional<float> dropout, std::optional<std::uint64_t> seed, bool need_weights, bool average_weights, bool enable_gqa,
                     const Word<kFullyMaskedNames>& fully_masked, const TraceNames& trace, std::optional<float> softcap, const MaybeWindow& window,
                     std::optional<std::int64_t> query_offset, const Past& past, bool output_present, Threads threads) {
    constexpr const char* kOp = "attention";
    AttentionCall call{.threads = threads};
    if (!past.is_none()) {
      call.past_key.emplace(past[0], kOp, "past.key");
      call.past_value.emplace(past[1], kOp, "past.value");
    }
    call.options = {.mask = mask_of(mask, kOp, "mask"),
                    .key_padding_mask = mask_of(key_padding_mask, kOp, "key_padding_mask"),
                    .is_causal = is_causal,
                    .scale = scale,
                    .dropout = dropout,
                    .seed = seed,
                    .need_weights = need_weights,
                    .average_weights = average_weights,
                    .enable_gqa = enable_gqa,
                    .fully_masked = word_of<FullyMasked>(fully_masked, kOp, "fully_masked"),
                    .trace = trace_of(trace, kOp),
                    .softcap = softcap,
                    .window = window_of(window),
                    .query_offset = query_offset,
                    .past = call.past_key ? std::optional(KeyValueView(*call.past_key, *call.past_value)) : std::nullopt,
                    .output_present = output_present};
    return run(inputs..., call);
  }

  /// Defines it as `name` of a module or class; `more` are the arguments of the inputs, and nb::kw_only() among or behind them.
  template <class Scope, class... More>
  static void define(Scope& scope, const char* name, const char* text, const More&... more) {
    scope.def(name, &call, more..., nb::arg("mask") = nb::none(), nb::arg("key_padding_mask") = nb::none(), nb::arg("is_causal") = false,
              nb::arg("scale") = nb::none(), nb::arg("dropout") = nb::none(), nb::arg("seed") = nb::none(), nb::arg("need_weights") = false,
              nb::arg("average_weights") = false, nb::arg("enable_gqa") = false, nb::arg("fully_masked") = "zero", nb::arg("trace") = false,
              nb::arg("softcap") = nb::none(), nb::arg("window") = nb::none(), nb::arg("query_offset") = nb::none(), nb::arg("past") = nb::none(),
              nb::arg("output_present") = false, nb::arg("threads") = nb::none(), text);
  }
};

/// N and W as attn::AttentionResult; arrays know their rank themselves.
Result to_result(const AttentionResult<3, 4>& result) {
  const nb::object present =
      result.present ? make_result("KeyValue", to_python(result.present->key), to_python(result.present->value)) : nb::object(nb::none());
  return make_result("AttentionResult", to_python(result.output), to_python(result.weights), to_python(result.trace), present);
}

Result sdpa(const ArrayLike& query, const ArrayLike& key, const ArrayLike& value, AttentionCall& call) {
  constexpr const char* kOp = "scaled_dot_product_attention";
  const Floats q(query, kOp, "query"), k(key, kOp, "key"), v(value, kOp, "value");
  return to_result(run(call.threads, [&] {
    const detail::AttentionPlan plan = detail::plan_scaled_dot_product_attention(q, k, v, call.options);
    return detail::run_attention_plan<3, 4>(
        plan, [&](const detail::AttentionBuffers& buffers) { detail::scaled_dot_product_attention(plan, q, k, v, call.options, buffers); });
  }));
}

Result forward(Shared<MultiHeadAttention>& self, const ArrayLike& query, const MaybeArrayLike& key, const MaybeArrayLike& value, bool for_backward,
               AttentionCall& call) {
  constexpr const char* kOp = "MultiHeadAttention";
  const Floats q(query, kOp, "query");
  std::optional<Floats> given_key, given_value;
  if (!key.is_none()) given_key.emplace(key, kOp, "key");
  if (!value.is_none()) given_value.emplace(value, kOp, "value");
  const TensorView &k = given_key ? *given_key : q, &v = given_value ? *given_value : q;
  call.options.for_backward = for_backward;
  const auto compute = [&](const MultiHeadAttention& layer) {
    const detail::AttentionPlan plan = layer.plan(q, k, v, call.options);
    return detail::run_attention_plan<3, 4>(plan, [&](const detail::AttentionBuffers& buffers) { layer.run(plan, q, k, v, call.options, buffers); });
  };
  // What is kept is the layer's.
  return to_result(for_backward ? self.change(kOp, compute, call.threads) : self.read(kOp, compute, call.threads));
}

Typed<"attn.MultiHeadAttentionGradients"> backward(Shared<MultiHeadAttention>& self, const ArrayLike& grad, const TraceNames& trace) {
  constexpr const char* kOp = "MultiHeadAttention.backward";
  const Floats view(grad, kOp, "grad");
  const BackwardOptions options{.trace = trace_of(trace, kOp)};
  const auto gradients = self.change(kOp, [&](MultiHeadAttention& layer) {
    const detail::MultiHeadAttentionBackwardPlan plan = layer.plan_backward(view, options);
    return detail::run_multi_head_attention_backward_plan<3>(
        plan, [&](const detail::MultiHeadAttentionGradientBuffers& to) { layer.run_backward(plan, view, to); });
  });
  return make_result("MultiHeadAttentionGradients", to_python(gradients.grad_query), to_python(gradients.grad_key), to_python(gradients.grad_value),
                     to_python(gradients.trace));
}

constexpr const char* kOptions = R"(
mask, key_padding_mask: which keys are seen, by a Mask; a key padding mask has (B,S).
is_causal: no key after a query's position, also where L ≠ S; combines with masks.
scale: default 1/√D. softcap c: scores become c · tanh(score / c), after scale, before masks.
window (left, right): query i sees keys from i - left to i + right; -1: no end on that side.
query_offset: query i stands at position i + offset; default the past's length, else 0.
dropout: probability of a weight to become 0; the same seed gives the same result.
need_weights, average_weights: return the weights, or their mean over heads.
enable_gqa: query heads may be a multiple of key and value heads.
fully_masked: what a query without keys gives: 'zero', 'nan', or 'uniform', 1/S on every key.
trace: True or names of intermediate results: q_proj k_proj v_proj q k v scores masked_scores probabilities weights
weighted_values context merged output.
past, output_present: keys and values of earlier calls come first; the result's present is past and new together.
threads: of this call.
)";

}  // namespace

void define_attention(nb::module_& module) {
  static const std::string text = std::string(R"(softmax(softcap(q kᵀ · scale) + mask) v  (Vaswani et al. 2017, eq. 1)

query (..,L,D), key (..,S,D), value (..,S,Dv) of rank 2, 3 (B) or 4 (B,H) -> output (..,L,Dv), weights (..,L,S).
Keys that are masked do not reach a result, whatever they hold.
)") + kOptions + R"(
Raises ShapeError where B, H, D or S disagree, MaskError where a mask does not fit or holds NaN or +infinity, ConfigError,
OutOfMemoryError.)";
  Attention<sdpa, const ArrayLike&, const ArrayLike&, const ArrayLike&>::define(module, "scaled_dot_product_attention", text.c_str(),
                                                                                nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::kw_only());
}

void define_multi_head_attention(nb::module_& module) {
  using Layer = Shared<MultiHeadAttention>;
  nb::class_<Layer> layer(module, "MultiHeadAttention",
                          R"(Concat(head_1 .. head_H) W_Oᵀ + b_O, head_h = attention(q W_Qᵀ + b_Q, k W_Kᵀ + b_K, v W_Vᵀ + b_V)
(Vaswani et al. 2017, section 3.2.2; torch.nn.MultiheadAttention, batch first)

State, torch's names: in_proj_weight (3E,E), or q_proj_weight (E,E), k_proj_weight (E,kdim), v_proj_weight (E,vdim) where kdim or vdim
differ from E; in_proj_bias (3E); bias_k (1,1,Hkv·D), bias_v (1,1,Hkv·Dv); out_proj.weight (E,H·Dv), out_proj.bias (E). Where heads have
widths or numbers of their own: q_proj.weight (H·D,E), k_proj.weight (Hkv·D,kdim), v_proj.weight (Hkv·Dv,vdim) and their .bias.
Weights are drawn as torch's constructor would, from seed 0.)");
  layer.def(
      "__init__",
      [](Layer* self, std::int64_t embed_dim, std::int64_t num_heads, std::optional<std::int64_t> num_key_value_heads,
         std::optional<std::int64_t> kdim, std::optional<std::int64_t> vdim, std::optional<std::int64_t> head_dim,
         std::optional<std::int64_t> value_head_dim, bool bias, bool add_bias_kv, bool add_zero_attn, std::optional<float> scale, bool out_proj,
         std::optional<unsigned> threads) {
        new (self) Layer{.object = MultiHeadAttention({.embed_dim = embed_dim,
                                                       .num_heads = num_heads,
                                                       .num_key_value_heads = num_key_value_heads,
                                                       .kdim = kdim,
                                                       .vdim = vdim,
                                                       .head_dim = head_dim,
                                                       .value_head_dim = value_head_dim,
                                                       .bias = bias,
                                                       .add_bias_kv = add_bias_kv,
                                                       .add_zero_attn = add_zero_attn,
                                                       .scale = scale,
                                                       .out_proj = out_proj}),
                         .threads = threads};
      },
      nb::arg("embed_dim"), nb::arg("num_heads"), nb::kw_only(), nb::arg("num_key_value_heads") = nb::none(), nb::arg("kdim") = nb::none(),
      nb::arg("vdim") = nb::none(), nb::arg("head_dim") = nb::none(), nb::arg("value_head_dim") = nb::none(), nb::arg("bias") = true,
      nb::arg("add_bias_kv") = false, nb::arg("add_zero_attn") = false, nb::arg("scale") = nb::none(), nb::arg("out_proj") = true,
      nb::arg("threads") = nb::none(), "num_key_value_heads is a divisor of num_heads. Raises ConfigError, OutOfMemoryError.");
  static const std::string text = std::string(R"(query (B,L,E), key (B,S,kdim), value (B,S,vdim) -> output (B,L,E), weights (B,H,L,S)

Without B (rank 2) nothing has it, as in torch. key and value default to query.

for_backward: keep what backward() needs.)") +
                                  kOptions + R"(
Raises ShapeError, MaskError, ConfigError, UnsupportedError, OutOfMemoryError.)";
  using Forward = Attention<forward, Layer&, const ArrayLike&, const MaybeArrayLike&, const MaybeArrayLike&, bool>;
  for (const char* name : {"forward", "__call__"})
    Forward::define(layer, name, text.c_str(), nb::arg("query"), nb::arg("key") = nb::none(), nb::arg("value") = nb::none(), nb::kw_only(),
                    nb::arg("for_backward") = false);
  layer.def("backward", &backward, nb::arg("grad"), nb::kw_only(), nb::arg("trace") = false,
            R"(grad (B,L,E), that of the output of the last forward with for_backward -> those of its inputs

Those of the parameters are added to gradients(). What was kept is used up. Keys that are masked, and rows of the output whose
gradient is 0, have no part in any gradient, whatever they hold  (torch.autograd of nn.MultiheadAttention).
trace: True or names of intermediate results of the forward, whose gradients to return.

Raises ArgumentError where no such forward was since the last backward or since weights changed, ShapeError, UnsupportedError for a
layer that is int8, OutOfMemoryError.)");
  define_module(layer);
}

}  // namespace attn::python
