#include <nanobind/stl/pair.h>

#include <cstdint>
#include <optional>
#include <string>

#include "errors.hpp"
#include "layers.hpp"
#include "options.hpp"
#include "running.hpp"

namespace attn::python {
namespace {

using Result = Typed<"attn.AttentionResult">;
using Past = Typed<"tuple[numpy.typing.ArrayLike, numpy.typing.ArrayLike]">;

struct AttentionCall {
  AttentionOptions options;
  std::optional<Floats> past_key, past_value;
  Threads threads;
};

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

  template <class Scope, class... More>
  static void define(Scope& scope, const char* name, const char* text, const More&... more) {
    scope.def(name, &call, more..., nb::arg("mask") = nb::none(), nb::arg("key_padding_mask") = nb::none(), nb::arg("is_causal") = false,
              nb::arg("scale") = nb::none(), nb::arg("dropout") = nb::none(), nb::arg("seed") = nb::none(), nb::arg("need_weights") = false,
              nb::arg("average_weights") = false, nb::arg("enable_gqa") = false, nb::arg("fully_masked") = "zero", nb::arg("trace") = false,
              nb::arg("softcap") = nb::none(), nb::arg("window") = nb::none(), nb::arg("query_offset") = nb::none(), nb::arg("past") = nb::none(),
              nb::arg("output_present") = false, nb::arg("threads") = nb::none(), text);
  }
};

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
  // Storing values for backward changes the layer.
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
mask: a Mask of dims (S), (L,S), (B,L,S) or (B,H,L,S). Masked keys never affect a result, whatever they hold.
key_padding_mask: a Mask of dims (B,S).
is_causal: no query sees a later key, also if L ≠ S; combines with masks.
scale: factor of the scores, default 1/√D.
softcap: c turns scores into c · tanh(score / c), after scale and before masks.
window (left, right): query i sees the keys from i - left to i + right; -1 removes that limit.
query_offset: position of query 0; default the number of keys in past, else 0.
dropout: probability that a weight becomes 0; the same seed gives the same result.
need_weights: return the weights; average_weights: return their mean over heads.
enable_gqa: the number of query heads may be a multiple of the number of key heads.
fully_masked: result of a query whose keys are all masked: 'zero', 'nan', or 'uniform', the mean of the values.
trace: True or names of intermediate results: q_proj k_proj v_proj q k v scores masked_scores probabilities weights
weighted_values context merged output.
past (key, value): keys and values of earlier calls, which come first. output_present: return past and new ones together.
threads: of this call; default those of set_num_threads().
)";

}  // namespace

void define_attention(nb::module_& module) {
  static const std::string text =
      std::string(R"(Computes scaled dot-product attention (torch.nn.functional.scaled_dot_product_attention; Vaswani et al. 2017, equation 1).

output = softmax(softcap(query keyᵀ · scale) + mask) value

query: (..,L,D), of rank 2, 3 (B) or 4 (B,H).
key: (..,S,D).
value: (..,S,Dv).)") +
      kOptions + R"(
Returns an AttentionResult: output (..,L,Dv), and on request weights (..,L,S), trace and present.

Raises ShapeError if B, H, D or S disagree, MaskError if a mask does not fit or has NaN or +infinity, ConfigError if an option is outside
its range, ArgumentError for a trace that only layers have, OutOfMemoryError if the result does not fit into memory.

>>> x = np.eye(3, dtype=np.float32)
>>> result = attn.scaled_dot_product_attention(x, x, x, is_causal=True, need_weights=True)
>>> result.weights.round(2)
array([[1.  , 0.  , 0.  ],
       [0.36, 0.64, 0.  ],
       [0.26, 0.26, 0.47]], dtype=float32))";
  Attention<sdpa, const ArrayLike&, const ArrayLike&, const ArrayLike&>::define(module, "scaled_dot_product_attention", text.c_str(),
                                                                                nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::kw_only());
}

void define_multi_head_attention(nb::module_& module) {
  using Layer = Shared<MultiHeadAttention>;
  nb::class_<Layer> layer(module, "MultiHeadAttention", nb::type_slots(calling_init()),
                          R"(Multi-head attention (torch.nn.MultiheadAttention with batch_first=True; Vaswani et al. 2017, section 3.2.2).

Concat(head_1 .. head_H) W_Oᵀ + b_O, head_h = attention(q W_Qᵀ + b_Q, k W_Kᵀ + b_K, v W_Vᵀ + b_V)

State dictionaries have torch's names: in_proj_weight (3E,E), or q_proj_weight (E,E), k_proj_weight (E,kdim) and v_proj_weight (E,vdim)
if kdim or vdim differ from E; in_proj_bias (3E); bias_k (1,1,Hkv·D), bias_v (1,1,Hkv·Dv); out_proj.weight (E,H·Dv), out_proj.bias (E).
If num_key_value_heads, head_dim or value_head_dim are given: q_proj.weight (H·D,E), k_proj.weight (Hkv·D,kdim), v_proj.weight
(Hkv·Dv,vdim) and their .bias. New layers have torch's initial distributions, from seed 0.

>>> layer = attn.MultiHeadAttention(16, 4)
>>> x = np.ones((1, 3, 16), np.float32)
>>> result = layer(x, is_causal=True, need_weights=True, trace=["scores"])
>>> result.output.shape, result.weights.shape, result.trace["scores"].shape
((1, 3, 16), (1, 4, 3, 3), (1, 4, 3, 3)))");
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
      nb::arg("threads") = nb::none(), R"(embed_dim: model width E.
num_heads: number of query heads H.
num_key_value_heads: number of key and value heads, a divisor of num_heads (grouped-query attention); default num_heads.
kdim: width of keys, default E. vdim: width of values, default E.
head_dim: width D of a query or key head, default E / H. value_head_dim: width Dv of a value head, default D.
bias: whether the projections have biases.
add_bias_kv: append a learned key and value. add_zero_attn: append a key and value of zeros.
scale: factor of the scores, default 1/√D.
out_proj: whether there is an output projection W_O.
threads: of the layer's calls; default those of set_num_threads().

Raises ConfigError for sizes below 1, an embed_dim that num_heads does not divide without head_dim, or a num_key_value_heads that does not
divide num_heads; OutOfMemoryError if the weights do not fit into memory.)");
  static const std::string text = std::string(R"(Computes multi-head attention; calling the layer does the same.

query: (B,L,E).
key: (B,S,kdim), default query.
value: (B,S,vdim), default query.
for_backward: keep the values that backward() needs.)") +
                                  kOptions + R"(
Returns an AttentionResult: output (B,L,E), and on request weights (B,H,L,S), trace and present. Inputs without B (rank 2) give results
without B, as in torch.

Raises ShapeError if B, S or a width disagree, MaskError if a mask does not fit or has NaN or +infinity, ConfigError if an option is outside its
range, ArgumentError for a trace that the layer does not have, UnsupportedError for past with add_bias_kv, add_zero_attn or for_backward,
OutOfMemoryError if the result does not fit into memory.

>>> layer = attn.MultiHeadAttention(16, 4)
>>> x, memory = np.ones((2, 3, 16), np.float32), np.ones((2, 5, 16), np.float32)
>>> padding = attn.Mask.block([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1]])  # 1 is padding
>>> result = layer(x, memory, memory, key_padding_mask=padding, need_weights=True)
>>> result.output.shape, result.weights[1, 0, 0].round(2)
((2, 3, 16), array([0.33, 0.33, 0.33, 0.  , 0.  ], dtype=float32)))";
  using Forward = Attention<forward, Layer&, const ArrayLike&, const MaybeArrayLike&, const MaybeArrayLike&, bool>;
  for (const char* name : {"forward", "__call__"})
    Forward::define(layer, name, text.c_str(), nb::arg("query"), nb::arg("key") = nb::none(), nb::arg("value") = nb::none(), nb::kw_only(),
                    nb::arg("for_backward") = false);
  layer.def("backward", &backward, nb::arg("grad"), nb::kw_only(), nb::arg("trace") = false,
            R"(Computes the gradients of the inputs and adds those of the parameters to gradients() (torch.autograd of nn.MultiheadAttention).

Each forward with for_backward allows one backward. Masked keys, and rows of the output whose gradient is 0, do not affect any gradient.

grad: (B,L,E), the gradient of the output of the last forward with for_backward.
trace: True or names of intermediate results of the forward, whose gradients to return.

Returns a MultiHeadAttentionGradients. Raises ArgumentError if there was no such forward since the last backward or change of weights,
ShapeError if grad does not have the shape of the output, UnsupportedError for an int8 layer, OutOfMemoryError if the gradients do not fit into
memory.

>>> layer = attn.MultiHeadAttention(16, 4)
>>> x = np.ones((1, 3, 16), np.float32)
>>> output = layer(x, for_backward=True).output
>>> layer.backward(np.ones_like(output)).grad_query.shape
(1, 3, 16))");
  define_module(layer);
}

}  // namespace attn::python
