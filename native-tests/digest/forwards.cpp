// Keep in step with wasm-tests/support/digest_forwards.ts (order: draw.hpp).
#include "forwards.hpp"

#include <memory>
#include <utility>

namespace digest {
namespace forwards_calls {

using attn::Trace;
using attn::TraceName;

constexpr Trace kEncoderTraces = Trace::from_bits((1U << attn::kLayerTraceCount) - 1);

struct AttentionSizes {
  std::size_t rank = 2, B = 1, H = 1, kv_heads = 1, L = 0, S = 0, Dv = 0;

  std::size_t batch() const { return rank >= 3 ? B : 0; }
};

AttentionSizes attention_sizes(Generator& g) {
  AttentionSizes out;
  const bool is_large = large(g);
  out.rank = 2 + g.below(3);
  const std::size_t b = batch(g);
  const std::size_t kv = 1 + g.below(3);
  const bool grouped = g.one_in(3);
  const std::size_t group = 2 + g.below(2);
  out.L = rows(g, is_large);
  out.S = rows(g, is_large);
  out.Dv = 1 + g.below(40);
  if (out.rank >= 3) out.B = b;
  if (out.rank == 4) out.kv_heads = kv;
  out.H = out.rank == 4 && grouped ? kv * group : out.kv_heads;
  return out;
}

/// Adds all but the query, which call.inputs has.
template <class Attend>
void finish_attention(Generator& g, Call& call, const AttentionSizes& s, std::size_t key_width, Attend attend) {
  call.inputs.push_back(values(g, input_dims(s.rank, s.B, s.kv_heads, s.S, key_width), 0.5F));
  call.inputs.push_back(values(g, input_dims(s.rank, s.B, s.kv_heads, s.S, s.Dv), 1.0F));
  call.batch = s.batch();
  call.masks = masks(g, s.B, s.H, s.L, s.S, s.rank >= 3);
  attn::AttentionOptions options = attention_options(g, kFunctionTraces);
  options.enable_gqa = s.H != s.kv_heads;
  call.dropping = options.dropout.has_value();
  call.run = [=](const std::vector<Values>& inputs, const Masks& m) {
    return with_rank<2, 4>(s.rank, [&](auto rank) {
      return values_of_result(attend(tensor_of<rank>(inputs[0]), tensor_of<rank>(inputs[1]), tensor_of<rank>(inputs[2]), with_masks(options, m)));
    });
  };
}

Call scaled_dot_product_attention(Generator& g) {
  Call call;
  const AttentionSizes s = attention_sizes(g);
  const std::size_t D = 1 + g.below(40);
  call.inputs.push_back(values(g, input_dims(s.rank, s.B, s.H, s.L, D), 0.5F));
  finish_attention(g, call, s, D, [](const auto& q, const auto& k, const auto& v, const attn::AttentionOptions& options) {
    return attn::scaled_dot_product_attention(q, k, v, options);
  });
  return call;
}

Call long_attention(Generator& g) {
  Call call;
  AttentionSizes s;
  s.rank = 2 + g.below(3);
  const std::size_t b = 1 + g.below(2);
  const std::size_t heads = 1 + g.below(2);
  s.L = 1 + g.below(3);
  s.S = 1025 + g.below(376);
  s.Dv = 1 + g.below(6);
  const std::size_t D = 1 + g.below(6);
  if (s.rank >= 3) s.B = b;
  if (s.rank == 4) s.H = s.kv_heads = heads;
  call.inputs.push_back(values(g, input_dims(s.rank, s.B, s.H, s.L, D), 1.0F));
  finish_attention(g, call, s, D, [](const auto& q, const auto& k, const auto& v, const attn::AttentionOptions& options) {
    return attn::scaled_dot_product_attention(q, k, v, options);
  });
  return call;
}

Call additive_attention(Generator& g) {
  Call call;
  const AttentionSizes s = attention_sizes(g);
  const std::size_t Dq = 1 + g.below(24);
  const std::size_t Dk = 1 + g.below(24);
  const std::size_t A = 1 + g.below(24);
  const bool biased = g.one_in(2);
  attn::AdditiveAttentionParams params;
  params.query_weight = tensor_of<2>(values(g, {A, Dq}, 0.25F));
  params.key_weight = tensor_of<2>(values(g, {A, Dk}, 0.25F));
  params.score_weight = tensor_of<1>(values(g, {A}, 0.5F));
  if (biased) params.bias = tensor_of<1>(values(g, {A}, 0.5F));
  call.inputs.push_back(values(g, input_dims(s.rank, s.B, s.H, s.L, Dq), 0.5F));
  finish_attention(g, call, s, Dk, [params](const auto& q, const auto& k, const auto& v, const attn::AttentionOptions& options) {
    return attn::additive_attention(q, k, v, params, options);
  });
  return call;
}

Call general_attention(Generator& g) {
  Call call;
  const AttentionSizes s = attention_sizes(g);
  const std::size_t Dq = 1 + g.below(40);
  const std::size_t Dk = 1 + g.below(40);
  const attn::Tensor<2> weight = tensor_of<2>(values(g, {Dq, Dk}, 0.25F));
  call.inputs.push_back(values(g, input_dims(s.rank, s.B, s.H, s.L, Dq), 0.5F));
  finish_attention(g, call, s, Dk, [weight](const auto& q, const auto& k, const auto& v, const attn::AttentionOptions& options) {
    return attn::general_attention(q, k, v, weight, options);
  });
  return call;
}

struct Mode {
  bool training = false;
  std::uint64_t seed = 0;
  std::size_t steps = 1;
};

Mode mode(Generator& g) {
  Mode out;
  out.training = g.one_in(3);
  out.seed = seed(g);
  const std::size_t steps = 1 + g.below(2);
  if (out.training) out.steps = steps;
  return out;
}

template <class Layer, class Options>
std::shared_ptr<Layer> layer_of(Generator& g, Call& call, const Options& options) {
  constexpr std::array<attn::InitScheme, 6> kSchemes{attn::InitScheme::torch,          attn::InitScheme::xavier_uniform,
                                                     attn::InitScheme::xavier_normal,  attn::InitScheme::kaiming_uniform,
                                                     attn::InitScheme::kaiming_normal, attn::InitScheme::normal};
  const auto layer = std::make_shared<Layer>(options);
  const bool as_new = g.one_in(4);
  const attn::InitScheme scheme = g.pick(kSchemes);
  const std::uint64_t drawn = seed(g);
  const double std = static_cast<double>(1 + g.below(64)) / 64;
  if (!as_new) layer->initialize({.scheme = scheme, .seed = drawn, .std = std});
  const bool loaded = g.one_in(4);
  if (loaded) {
    attn::StateDict state;
    for (const auto& [name, shape] : layer->parameter_shapes()) state.emplace(name, tensor_of(values(g, Dims(shape.begin(), shape.end()), 0.25F)));
    layer->load_state_dict(state);
  }
  for (const auto& [name, tensor] : layer->state_dict()) call.constants.push_back(values_of(tensor));
  call.quantize = [layer] { layer->quantize(); };
  return layer;
}

template <class Layer, class Forward>
std::vector<Values> run_steps(Layer& layer, const Mode& mode, Forward forward) {
  if (mode.training) layer.train({.seed = mode.seed});
  std::vector<Values> out;
  for (std::size_t step = 0; step < mode.steps; ++step)
    for (Values& x : forward(layer)) out.push_back(std::move(x));
  return out;
}

Call multi_head_attention(Generator& g) {
  Call call;
  const bool is_large = large(g);
  const std::size_t kv = 1 + g.below(4);
  const bool grouped = g.one_in(4);
  const std::size_t group = 2 + g.below(2);
  const std::size_t width = 1 + g.below(12);
  const bool own_widths = g.one_in(3);
  const std::size_t kdim = 1 + g.below(40);
  const std::size_t vdim = 1 + g.below(40);
  const bool own_head = g.one_in(4);
  const std::size_t head_dim = 1 + g.below(16);
  const bool own_value_head = g.one_in(4);
  const std::size_t value_head_dim = 1 + g.below(16);
  const std::size_t any_width = 1 + g.below(40);
  const std::size_t H = grouped ? kv * group : kv;
  const std::size_t E = own_head ? any_width : H * width;

  attn::MultiHeadAttentionOptions o;
  o.embed_dim = static_cast<std::int64_t>(E);
  o.num_heads = static_cast<std::int64_t>(H);
  if (grouped) o.num_key_value_heads = static_cast<std::int64_t>(kv);
  if (own_widths) {
    o.kdim = static_cast<std::int64_t>(kdim);
    o.vdim = static_cast<std::int64_t>(vdim);
  }
  if (own_head) o.head_dim = static_cast<std::int64_t>(head_dim);
  if (own_value_head) o.value_head_dim = static_cast<std::int64_t>(value_head_dim);
  o.bias = !g.one_in(4);
  o.add_bias_kv = g.one_in(4);
  o.add_zero_attn = g.one_in(4);
  o.dropout = probability(g);
  const bool has_scale = g.one_in(4);
  const float scale = g.unit();
  if (has_scale) o.scale = scale;
  o.out_proj = !g.one_in(4);
  const auto layer = layer_of<attn::MultiHeadAttention>(g, call, o);

  const bool batched = !g.one_in(4);
  const std::size_t b = batch(g);
  const std::size_t L = rows(g, is_large);
  const std::size_t other = rows(g, is_large);
  const bool asked_cross = g.one_in(2);
  const bool cross = asked_cross || own_widths;
  const std::size_t rank = batched ? 3 : 2;
  const std::size_t B = batched ? b : 1;
  const std::size_t S = cross ? other : L;
  call.inputs.push_back(values(g, input_dims(rank, B, 1, L, E), 1.0F));
  if (cross) {
    call.inputs.push_back(values(g, input_dims(rank, B, 1, S, own_widths ? kdim : E), 1.0F));
    call.inputs.push_back(values(g, input_dims(rank, B, 1, S, own_widths ? vdim : E), 1.0F));
  }
  call.masks = masks(g, B, H, L, S, batched);
  const attn::AttentionOptions options = attention_options(g, kLayerTraces);
  const Mode m = mode(g);
  call.batch = batched ? B : 0;
  call.dropping = options.dropout.has_value() || m.training;
  call.run = [=](const std::vector<Values>& inputs, const Masks& given) {
    return with_rank<2, 3>(rank, [&](auto n) {
      const auto x = tensor_of<n>(inputs[0]);
      const attn::AttentionOptions with = with_masks(options, given);
      return run_steps(*layer, m, [&](attn::MultiHeadAttention& mha) {
        return values_of_result(inputs.size() == 1 ? mha.forward(x, with) : mha.forward(x, tensor_of<n>(inputs[1]), tensor_of<n>(inputs[2]), with));
      });
    });
  };
  return call;
}

attn::TransformerClassifierOptions encoder_options(Generator& g, bool is_large) {
  attn::TransformerClassifierOptions classifier;
  attn::TransformerEncoderOptions& stack = classifier.encoder;
  attn::TransformerEncoderLayerOptions& layer = stack.layer;
  const std::size_t factor = is_large ? 2 : 1;
  const std::size_t H = 1 + g.below(4);
  const std::size_t width = factor * (1 + g.below(6));
  layer.d_model = static_cast<std::int64_t>(H * width);
  layer.nhead = static_cast<std::int64_t>(H);
  layer.dim_feedforward = static_cast<std::int64_t>(factor * (1 + g.below(24)));
  layer.dropout = probability(g);
  layer.activation = g.pick(kActivations);
  layer.layer_norm_eps = g.pick(std::array<float, 4>{1e-5F, 1e-12F, 1e-3F, 0.5F});
  layer.norm_first = g.one_in(2);
  layer.bias = !g.one_in(4);
  layer.norm = g.one_in(3) ? attn::NormKind::rms_norm : attn::NormKind::layer_norm;
  layer.gated = g.one_in(3);
  stack.num_layers = static_cast<std::int64_t>(1 + g.below(3));
  stack.final_norm = g.one_in(2);
  classifier.num_classes = static_cast<std::int64_t>(1 + g.below(9));
  classifier.pooling = g.pick(std::array{attn::Pooling::none, attn::Pooling::mean, attn::Pooling::cls, attn::Pooling::max});
  return classifier;
}

attn::EncoderForwardOptions forward_options(Generator& g, std::size_t layers) {
  attn::EncoderForwardOptions out;
  out.is_causal = g.one_in(4);
  out.fully_masked = g.pick(kPolicies);
  out.output_attentions = g.one_in(3);
  out.output_hidden_states = g.one_in(3);
  const std::size_t traced = g.below(10);
  if (traced < 2) {
    attn::EncoderTraceOptions& asked = out.trace.emplace();
    const bool some_layers = g.one_in(2);
    if (some_layers) {
      asked.layers.emplace();
      const std::size_t count = g.below(3);
      for (std::size_t i = 0; i < count; ++i) asked.layers->push_back(static_cast<std::int64_t>(g.below(layers)));
    }
    asked.names = trace(g, traced == 0, kEncoderTraces);
  }
  return out;
}

template <class Result>
std::vector<Values> values_of_encoder(const Result& result) {
  std::vector<Values> out{values_of(result.output)};
  if constexpr (requires { result.logits; }) out.push_back(values_of(result.logits));
  if (result.attentions)
    for (const auto& tensor : *result.attentions) out.push_back(values_of(tensor));
  if (result.hidden_states)
    for (const auto& tensor : *result.hidden_states) out.push_back(values_of(tensor));
  if (result.trace)
    for (const auto& [layer, trace] : *result.trace)
      for (const auto& [name, tensor] : trace) out.push_back(values_of(tensor));
  return out;
}

template <class Layer, class Options>
Call encoder(Generator& g, bool is_large, const attn::TransformerEncoderOptions& o, const Options& options, bool is_placed = false) {
  Call call;
  const auto layer = layer_of<Layer>(g, call, options);
  const bool batched = !g.one_in(4);
  const std::size_t b = batch(g);
  const std::size_t L = rows(g, is_large);
  const std::size_t rank = batched ? 3 : 2;
  const std::size_t B = batched ? b : 1;
  call.inputs.push_back(values(g, input_dims(rank, B, 1, L, static_cast<std::size_t>(o.layer.d_model)), 1.0F));
  call.masks = masks(g, B, static_cast<std::size_t>(o.layer.nhead), L, L, batched);
  constexpr bool is_stack = !std::is_same_v<Layer, attn::TransformerEncoderLayer>;
  attn::EncoderForwardOptions forward = forward_options(g, is_stack ? static_cast<std::size_t>(o.num_layers) : 1);
  if (is_placed) {
    const std::size_t offset = g.below(2 * L + 1);
    forward.query_offset = static_cast<std::int64_t>(offset) - static_cast<std::int64_t>(L);
  }
  const Mode m = mode(g);
  call.batch = batched ? B : 0;
  call.dropping = m.training;
  call.run = [=](const std::vector<Values>& inputs, const Masks& given) {
    return with_rank<2, 3>(rank, [&](auto n) {
      const auto x = tensor_of<n>(inputs[0]);
      const attn::EncoderForwardOptions with = with_masks(forward, given);
      return run_steps(*layer, m, [&](const Layer& each) { return values_of_encoder(each.forward(x, with)); });
    });
  };
  return call;
}

Call transformer_encoder_layer(Generator& g) {
  const bool is_large = large(g);
  const attn::TransformerClassifierOptions o = encoder_options(g, is_large);
  return encoder<attn::TransformerEncoderLayer>(g, is_large, o.encoder, o.encoder.layer);
}

Call transformer_encoder(Generator& g) {
  const bool is_large = large(g);
  const attn::TransformerClassifierOptions o = encoder_options(g, is_large);
  return encoder<attn::TransformerEncoder>(g, is_large, o.encoder, o.encoder);
}

Call transformer_classifier(Generator& g) {
  const bool is_large = large(g);
  const attn::TransformerClassifierOptions o = encoder_options(g, is_large);
  return encoder<attn::TransformerClassifier>(g, is_large, o.encoder, o);
}

Values values_of_neighbors(const std::vector<attn::Neighbor>& neighbors) {
  Values out{{neighbors.size(), 2}, {}};
  for (const auto& [id, similarity] : neighbors) {
    out.data.push_back(static_cast<float>(id));
    out.data.push_back(similarity);
  }
  return out;
}

Call embedding(Generator& g) {
  Call call;
  const std::size_t N = 1 + g.below(40);
  const std::size_t E = 1 + g.below(40);
  const bool padded = g.one_in(3);
  const std::size_t padding = g.below(N);
  attn::EmbeddingOptions o{.num_embeddings = static_cast<std::int64_t>(N), .embedding_dim = static_cast<std::int64_t>(E)};
  if (padded) o.padding_idx = static_cast<std::int64_t>(padding);
  const auto table = layer_of<attn::Embedding>(g, call, o);
  const std::size_t rank = 1 + g.below(3);
  Dims ids_dims = sizes(g, rank, 5);
  ids_dims[0] -= 1;
  g.below(3);
  std::vector<std::int64_t> ids(product(ids_dims));
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(g.below(N));
  std::array<std::int64_t, 4> asked{};
  for (std::int64_t& id : asked) id = static_cast<std::int64_t>(g.below(N));
  const auto k = static_cast<std::int64_t>(g.below(N + 2));
  const attn::Tensor<1> target = tensor_of<1>(values(g, {E}, 1.0F));
  call.run = [=](const std::vector<Values>&, const Masks&) {
    std::vector<Values> out;
    out.push_back(with_rank<1, 3>(rank, [&](auto n) {
      std::array<std::size_t, n> shape{};
      std::copy_n(ids_dims.begin(), static_cast<std::size_t>(n), shape.begin());
      xt::xtensor<std::int64_t, n> given(shape);
      std::copy(ids.begin(), ids.end(), given.begin());
      return values_of(table->forward(given));
    }));
    out.push_back(values_of_neighbors(table->nearest(asked[0], k)));
    out.push_back(values_of_neighbors(table->nearest(target, k)));
    out.push_back({{1}, {table->similarity(asked[0], asked[1])}});
    out.push_back(values_of_neighbors(table->analogy(asked[1], asked[2], asked[3], k)));
    return out;
  };
  return call;
}

Dims any_sizes(Generator& g, std::size_t rank) {
  constexpr std::array<std::size_t, 4> kSmall{130, 24, 12, 6}, kLarge{20000, 220, 40, 20};
  return sizes(g, rank, large(g) ? kLarge[rank - 1] : kSmall[rank - 1]);
}

template <class F>
void run_by_rank(Call& call, const Dims& x_dims, F f) {
  const std::size_t rank = x_dims.size();
  call.batch = rank >= 2 ? x_dims[0] : 0;
  call.run = [=](const std::vector<Values>& inputs, const Masks&) {
    return with_rank<1, 4>(rank, [&](auto n) { return std::vector<Values>{values_of(f(tensor_of<n>(inputs[0])))}; });
  };
}

Call linear(Generator& g) {
  Call call;
  const bool is_large = large(g);
  const std::size_t rank = 1 + g.below(4);
  constexpr std::array<std::size_t, 4> kLarge{1, 150, 24, 9};
  Dims x_dims = sizes(g, rank - 1, is_large ? kLarge[rank - 1] : 5);
  const std::size_t in = 1 + g.below(is_large ? 130 : 40);
  const std::size_t out = 1 + g.below(is_large ? 130 : 40);
  const bool biased = g.one_in(2);
  x_dims.push_back(in);
  call.inputs.push_back(values(g, x_dims, 1.0F));
  const attn::Tensor<2> weight = tensor_of<2>(values(g, {out, in}, 1.0F));
  const attn::Tensor<1> bias = tensor_of<1>(values(g, {out}, 1.0F));
  run_by_rank(call, x_dims, [=](const auto& x) { return biased ? attn::linear(x, weight, bias) : attn::linear(x, weight); });
  return call;
}

Call softmax(Generator& g) {
  Call call;
  const std::size_t rank = 1 + g.below(4);
  const Dims x_dims = any_sizes(g, rank);
  const auto dim = static_cast<std::int64_t>(g.below(2 * rank)) - static_cast<std::int64_t>(rank);
  call.inputs.push_back(values(g, x_dims, 8.0F));
  run_by_rank(call, x_dims, [=](const auto& x) { return attn::softmax(x, dim); });
  if (dim == 0 || dim == -static_cast<std::int64_t>(rank)) call.batch = 0;
  return call;
}

Call norm(Generator& g) {
  Call call;
  const bool rms = g.one_in(2);
  const std::size_t rank = 1 + g.below(4);
  Dims x_dims = any_sizes(g, rank);
  const std::size_t width = 1 + g.below(130);
  const std::size_t affine = g.below(3);
  const float eps = g.pick(std::array<float, 4>{1e-5F, 1e-12F, 1e-3F, 0.5F});
  x_dims.back() = width;
  call.inputs.push_back(values(g, x_dims, 4.0F));
  const attn::Tensor<1> weight = tensor_of<1>(values(g, {width}, 1.0F));
  const attn::Tensor<1> bias = tensor_of<1>(values(g, {width}, 1.0F));
  if (rms)
    run_by_rank(call, x_dims, [=](const auto& x) { return affine == 0 ? attn::rms_norm(x, eps) : attn::rms_norm(x, weight, eps); });
  else
    run_by_rank(call, x_dims, [=](const auto& x) {
      if (affine == 2) return attn::layer_norm(x, weight, bias, eps);
      return affine == 1 ? attn::layer_norm(x, weight, eps) : attn::layer_norm(x, eps);
    });
  return call;
}

Call activation(Generator& g) {
  Call call;
  const std::size_t rank = 1 + g.below(4);
  const Dims x_dims = any_sizes(g, rank);
  const attn::Activation name = g.pick(kActivations);
  call.inputs.push_back(values(g, x_dims, 4.0F));
  run_by_rank(call, x_dims, [=](const auto& x) { return attn::activation(x, name); });
  return call;
}

Call sinusoidal_positions(Generator& g) {
  Call call;
  const auto L = static_cast<std::int64_t>(length(g, 200));
  const auto width = static_cast<std::int64_t>(g.below(65));
  call.run = [=](const std::vector<Values>&, const Masks&) { return std::vector<Values>{values_of(attn::sinusoidal_positions(L, width))}; };
  return call;
}

Call rotary(Generator& g) {
  Call call;
  const bool is_large = large(g);
  const std::size_t rank = 2 + g.below(3);
  const std::size_t b = batch(g);
  const std::size_t H = 1 + g.below(4);
  const std::size_t L = length(g, is_large ? 240 : 24);
  const std::size_t D = 2 * (1 + g.below(20));
  const bool far = g.one_in(2);
  const auto offset = static_cast<std::int64_t>(g.below(1U << 20)) - (1 << 19);
  attn::RotaryOptions o;
  o.theta = g.pick(std::array<double, 4>{10000, 500000, 1, 2.5});
  o.offset = far ? offset : 0;
  o.interleaved = g.one_in(2);
  const Dims x_dims = input_dims(rank, b, H, L, D);
  call.inputs.push_back(values(g, x_dims, 1.0F));
  run_by_rank(call, x_dims, [=](const auto& x) {
    if constexpr (attn::kRankOf<decltype(x)> == 1)
      return x;
    else
      return attn::apply_rotary(x, o);
  });
  if (rank == 2) call.batch = 0;
  return call;
}

Call alibi(Generator& g) {
  Call call;
  const bool is_large = large(g);
  const auto H = static_cast<std::int64_t>(1 + g.below(20));
  const auto L = static_cast<std::int64_t>(length(g, is_large ? 110 : 20));
  const auto S = static_cast<std::int64_t>(length(g, is_large ? 110 : 20));
  const bool other = g.one_in(2);
  call.run = [=](const std::vector<Values>&, const Masks&) {
    return std::vector<Values>{values_of(attn::alibi_bias(H, L, other ? std::optional(S) : std::nullopt))};
  };
  return call;
}

void place(Generator& g, attn::AttentionOptions& o, std::size_t S) {
  const bool capped = g.one_in(2);
  const std::size_t cap = 1 + g.below(64);
  const bool windowed = g.one_in(2);
  const std::size_t left = g.below(S + 2);
  const std::size_t right = g.below(S + 2);
  const bool moved = g.one_in(3);
  const std::size_t offset = g.below(2 * S + 1);
  o.output_present = g.one_in(3);
  if (capped) o.softcap = static_cast<float>(cap) / 8;
  if (windowed) o.window = attn::Window{static_cast<std::int64_t>(left) - 1, static_cast<std::int64_t>(right) - 1};
  if (moved) o.query_offset = static_cast<std::int64_t>(offset) - static_cast<std::int64_t>(S);
}

Call placed_attention(Generator& g) {
  Call call;
  const AttentionSizes s = attention_sizes(g);
  const std::size_t D = 1 + g.below(40);
  const bool continued = g.one_in(2);
  const std::size_t drawn = g.below(40);
  const std::size_t P = continued ? drawn : 0;
  call.inputs.push_back(values(g, input_dims(s.rank, s.B, s.H, s.L, D), 0.5F));
  call.inputs.push_back(values(g, input_dims(s.rank, s.B, s.kv_heads, s.S, D), 0.5F));
  call.inputs.push_back(values(g, input_dims(s.rank, s.B, s.kv_heads, s.S, s.Dv), 1.0F));
  if (continued) {
    call.inputs.push_back(values(g, input_dims(s.rank, s.B, s.kv_heads, P, D), 0.5F));
    call.inputs.push_back(values(g, input_dims(s.rank, s.B, s.kv_heads, P, s.Dv), 1.0F));
  }
  call.batch = s.batch();
  call.masks = masks(g, s.B, s.H, s.L, P + s.S, s.rank >= 3);
  attn::AttentionOptions options = attention_options(g, kFunctionTraces);
  place(g, options, P + s.S);
  options.enable_gqa = s.H != s.kv_heads;
  call.dropping = options.dropout.has_value();
  call.run = [=](const std::vector<Values>& inputs, const Masks& m) {
    return with_rank<2, 4>(s.rank, [&](auto rank) {
      attn::AttentionOptions with = with_masks(options, m);
      attn::Tensor<rank> keys, values;
      if (continued) {
        keys = tensor_of<rank>(inputs[3]);
        values = tensor_of<rank>(inputs[4]);
        with.past = attn::KeyValueView(keys, values);
      }
      return values_of_result(
          attn::scaled_dot_product_attention(tensor_of<rank>(inputs[0]), tensor_of<rank>(inputs[1]), tensor_of<rank>(inputs[2]), with));
    });
  };
  return call;
}

attn::RotaryOptions rotary_options(Generator& g) {
  attn::RotaryOptions o;
  o.theta = g.pick(std::array<double, 4>{10000, 500000, 1, 2.5});
  o.interleaved = g.one_in(2);
  o.offset = static_cast<std::int64_t>(g.below(2000)) - 1000;
  return o;
}

Call placed_multi_head_attention(Generator& g) {
  Call call;
  const std::size_t kv = 1 + g.below(3);
  const std::size_t group = 1 + g.below(3);
  const std::size_t half = 1 + g.below(6);
  const std::size_t E = 1 + g.below(30);
  const std::size_t Dv = 1 + g.below(9);
  const std::size_t H = kv * group, D = 2 * half;
  attn::MultiHeadAttentionOptions o{.embed_dim = static_cast<std::int64_t>(E), .num_heads = static_cast<std::int64_t>(H)};
  o.num_key_value_heads = static_cast<std::int64_t>(kv);
  o.head_dim = static_cast<std::int64_t>(D);
  o.value_head_dim = static_cast<std::int64_t>(Dv);
  const bool turned = !g.one_in(3);
  const attn::RotaryOptions rotary = rotary_options(g);
  if (turned) o.rotary = rotary;
  const auto layer = layer_of<attn::MultiHeadAttention>(g, call, o);

  const bool batched = !g.one_in(4);
  const std::size_t b = batch(g);
  const std::size_t L = rows(g, false);
  const std::size_t S = rows(g, false);
  const bool cross = g.one_in(3);
  const bool continued = g.one_in(2);
  const std::size_t drawn = g.below(30);
  const std::size_t P = continued ? drawn : 0, keys = P + (cross ? S : L);
  const std::size_t rank = batched ? 3 : 2;
  const std::size_t B = batched ? b : 1;
  call.inputs.push_back(values(g, input_dims(rank, B, 1, L, E), 1.0F));
  call.inputs.push_back(cross ? values(g, input_dims(rank, B, 1, S, E), 1.0F) : call.inputs[0]);
  if (continued) {
    call.inputs.push_back(values(g, batched ? Dims{B, kv, P, D} : Dims{kv, P, D}, 1.0F));
    call.inputs.push_back(values(g, batched ? Dims{B, kv, P, Dv} : Dims{kv, P, Dv}, 1.0F));
  }
  call.masks = masks(g, B, H, L, keys, batched);
  attn::AttentionOptions options = attention_options(g, kLayerTraces);
  place(g, options, keys);
  call.batch = batched ? B : 0;
  call.dropping = options.dropout.has_value();
  call.run = [=](const std::vector<Values>& inputs, const Masks& given) {
    return with_rank<2, 3>(rank, [&](auto n) {
      attn::AttentionOptions with = with_masks(options, given);
      attn::Tensor<n + 1> past_keys, past_values;
      if (continued) {
        past_keys = tensor_of<n + 1>(inputs[2]);
        past_values = tensor_of<n + 1>(inputs[3]);
        with.past = attn::KeyValueView(past_keys, past_values);
      }
      const auto x = tensor_of<n>(inputs[0]), memory = tensor_of<n>(inputs[1]);
      return values_of_result(cross ? layer->forward(x, memory, memory, with) : layer->forward(x, with));
    });
  };
  return call;
}

Call placed_encoder(Generator& g) {
  const bool is_large = large(g);
  attn::TransformerEncoderOptions stack = encoder_options(g, is_large).encoder;
  attn::TransformerEncoderLayerOptions& o = stack.layer;
  const bool grouped = g.one_in(2);
  const bool turned = g.one_in(2);
  const attn::RotaryOptions rotary = rotary_options(g);
  const bool windowed = g.one_in(2);
  const std::size_t left = g.below(12);
  const std::size_t right = g.below(12);
  const std::size_t cap = g.below(64);
  if (grouped && o.nhead % 2 == 0) o.num_key_value_heads = o.nhead / 2;
  if (turned && o.d_model / o.nhead % 2 == 0) o.rotary = rotary;
  if (windowed) o.window = attn::Window{static_cast<std::int64_t>(left) - 1, static_cast<std::int64_t>(right) - 1};
  o.softcap = static_cast<float>(cap) / 8;
  return encoder<attn::TransformerEncoder>(g, is_large, stack, stack, true);
}

constexpr std::array kKinds{scaled_dot_product_attention,
                            transformer_encoder_layer,
                            linear,
                            multi_head_attention,
                            additive_attention,
                            scaled_dot_product_attention,
                            transformer_encoder,
                            softmax,
                            multi_head_attention,
                            general_attention,
                            scaled_dot_product_attention,
                            transformer_classifier,
                            norm,
                            multi_head_attention,
                            additive_attention,
                            embedding,
                            transformer_encoder,
                            activation,
                            multi_head_attention,
                            general_attention,
                            sinusoidal_positions,
                            transformer_classifier,
                            rotary,
                            scaled_dot_product_attention,
                            alibi,
                            long_attention};

constexpr std::array kPlacedKinds{placed_attention, placed_multi_head_attention, placed_encoder};

constexpr std::array kQuantizedKinds{transformer_encoder_layer,
                                     multi_head_attention,
                                     transformer_encoder,
                                     transformer_classifier,
                                     placed_multi_head_attention,
                                     embedding,
                                     placed_encoder};

}  // namespace forwards_calls
using namespace forwards_calls;

Call draw_call(Generator& g, std::uint32_t number) {
  return number < kForwards - kPlacedForwards ? forwards_calls::kKinds[number % forwards_calls::kKinds.size()](g)
                                              : kPlacedKinds[number % kPlacedKinds.size()](g);
}

Call draw_quantized_call(Generator& g, std::uint32_t number) {
  Call call = kQuantizedKinds[number % kQuantizedKinds.size()](g);
  try {
    call.quantize();
  } catch (const attn::Error& error) {
    // int8 cannot represent NaN and infinite weights.
    if (error.code() != attn::ErrorCode::format) throw;
    call.batch = 0;
    call.run = [](const std::vector<Values>&, const Masks&) { return std::vector<Values>(); };
  }
  return call;
}

}  // namespace digest
