// Keep in step with wasm-tests/support/digest_backward.ts (order: draw.hpp).
#include "backward.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace digest {
namespace backward_calls {

using attn::Trace;
using attn::TraceName;

template <class Found>
std::vector<Values> values_of_gradients(const Found& found) {
  std::vector<Values> out{values_of(found.grad_query)};
  const auto add = [&](const auto& gradient) {
    if constexpr (requires { *gradient; }) {
      if (gradient) out.push_back(values_of(*gradient));
    } else {
      out.push_back(values_of(gradient));
    }
  };
  add(found.grad_key);
  add(found.grad_value);
  if (found.trace)
    for (const auto& [name, tensor] : *found.trace) out.push_back(values_of(tensor));
  return out;
}

template <class State>
void add_state(const State& state, std::vector<Values>& out) {
  const std::map<std::string, typename State::mapped_type> sorted(state.begin(), state.end());
  for (const auto& [name, tensor] : sorted) out.push_back(values_of(tensor));
}

Call attention(Generator& g) {
  Call call;
  const bool is_large = large(g);
  const std::size_t which = g.below(3);
  const std::size_t rank = 2 + g.below(3);
  const std::size_t b = batch(g);
  const std::size_t kv = 1 + g.below(3);
  const bool grouped = g.one_in(3);
  const std::size_t group = 2 + g.below(2);
  const std::size_t L = rows(g, is_large);
  const std::size_t S = rows(g, is_large);
  const std::size_t Dv = 1 + g.below(40);
  const std::size_t D = 1 + g.below(40);
  const std::size_t Dk = 1 + g.below(40);
  const std::size_t A = 1 + g.below(24);
  const bool biased = g.one_in(2);
  const std::size_t B = rank >= 3 ? b : 1;
  const std::size_t kv_heads = rank == 4 ? kv : 1;
  const std::size_t H = rank == 4 && grouped ? kv * group : kv_heads;
  const std::size_t key_width = which == 0 ? D : Dk;
  call.inputs.push_back(values(g, input_dims(rank, B, H, L, Dv), 1.0F));
  call.inputs.push_back(values(g, input_dims(rank, B, H, L, D), 0.5F));
  call.inputs.push_back(values(g, input_dims(rank, B, kv_heads, S, key_width), 0.5F));
  call.inputs.push_back(values(g, input_dims(rank, B, kv_heads, S, Dv), 1.0F));
  const attn::Tensor<2> weight = tensor_of<2>(values(g, {D, Dk}, 0.25F));
  attn::AdditiveAttentionParams params;
  params.query_weight = tensor_of<2>(values(g, {A, D}, 0.25F));
  params.key_weight = tensor_of<2>(values(g, {A, Dk}, 0.25F));
  params.score_weight = tensor_of<1>(values(g, {A}, 0.5F));
  if (biased) params.bias = tensor_of<1>(values(g, {A}, 0.5F));
  call.masks = masks(g, B, H, L, S, rank >= 3);
  attn::AttentionOptions options = attention_options(g, kFunctionTraces);
  const bool capped = g.one_in(3);
  const std::size_t cap = 1 + g.below(64);
  const bool windowed = g.one_in(3);
  const std::size_t left = g.below(S + 2);
  const std::size_t right = g.below(S + 2);
  options.enable_gqa = H != kv_heads;
  if (which == 0 && capped) options.softcap = static_cast<float>(cap) / 8;
  if (which == 0 && windowed) options.window = attn::Window{static_cast<std::int64_t>(left) - 1, static_cast<std::int64_t>(right) - 1};
  call.batch = which == 0 && rank >= 3 ? B : 0;
  call.dropping = options.dropout.has_value();
  call.run = [=](const std::vector<Values>& inputs, const Masks& given) {
    return with_rank<2, 4>(rank, [&](auto n) {
      const auto grad = tensor_of<n>(inputs[0]), q = tensor_of<n>(inputs[1]), k = tensor_of<n>(inputs[2]), v = tensor_of<n>(inputs[3]);
      const attn::AttentionOptions with = with_masks(options, given);
      if (which == 0) return values_of_gradients(attn::scaled_dot_product_attention_backward(grad, q, k, v, with));
      if (which == 1) {
        const auto found = attn::general_attention_backward(grad, q, k, v, weight, with);
        std::vector<Values> out = values_of_gradients(found);
        out.push_back(values_of(found.grad_weight));
        return out;
      }
      const auto found = attn::additive_attention_backward(grad, q, k, v, params, with);
      std::vector<Values> out = values_of_gradients(found);
      out.push_back(values_of(found.grad_query_weight));
      out.push_back(values_of(found.grad_key_weight));
      out.push_back(values_of(found.grad_score_weight));
      if (found.grad_bias) out.push_back(values_of(*found.grad_bias));
      return out;
    });
  };
  return call;
}

Call multi_head_attention(Generator& g) {
  Call call;
  const bool is_large = large(g);
  const std::size_t kv = 1 + g.below(3);
  const std::size_t group = 1 + g.below(2);
  const std::size_t half = 1 + g.below(6);
  const bool own_widths = g.one_in(3);
  const std::size_t kdim = 1 + g.below(30);
  const std::size_t vdim = 1 + g.below(30);
  const std::size_t H = kv * group, E = H * 2 * half;
  attn::MultiHeadAttentionOptions o{.embed_dim = static_cast<std::int64_t>(E), .num_heads = static_cast<std::int64_t>(H)};
  o.num_key_value_heads = static_cast<std::int64_t>(kv);
  if (own_widths) {
    o.kdim = static_cast<std::int64_t>(kdim);
    o.vdim = static_cast<std::int64_t>(vdim);
  }
  o.bias = !g.one_in(4);
  o.add_bias_kv = g.one_in(4);
  o.add_zero_attn = g.one_in(4);
  o.dropout = probability(g);
  o.out_proj = !g.one_in(4);
  const bool turned = g.one_in(3);
  if (turned) o.rotary = attn::RotaryOptions{};
  const auto layer = std::make_shared<attn::MultiHeadAttention>(o);
  layer->initialize({.seed = seed(g)});

  const bool batched = !g.one_in(4);
  const std::size_t b = batch(g);
  const std::size_t L = rows(g, is_large);
  const std::size_t other = rows(g, is_large);
  const bool asked_cross = g.one_in(2);
  const bool cross = asked_cross || own_widths;
  const std::size_t rank = batched ? 3 : 2, B = batched ? b : 1, S = cross ? other : L;
  call.inputs.push_back(values(g, input_dims(rank, B, 1, L, E), 1.0F));
  call.inputs.push_back(values(g, input_dims(rank, B, 1, L, E), 1.0F));
  if (cross) {
    call.inputs.push_back(values(g, input_dims(rank, B, 1, S, own_widths ? kdim : E), 1.0F));
    call.inputs.push_back(values(g, input_dims(rank, B, 1, S, own_widths ? vdim : E), 1.0F));
  }
  call.masks = masks(g, B, H, L, S, batched);
  const attn::AttentionOptions options = attention_options(g, kLayerTraces);
  const bool training = g.one_in(2);
  const std::uint64_t train_seed = seed(g);
  call.run = [=](const std::vector<Values>& inputs, const Masks& given) {
    return with_rank<2, 3>(rank, [&](auto n) {
      const auto grad = tensor_of<n>(inputs[0]), x = tensor_of<n>(inputs[1]);
      attn::AttentionOptions with = with_masks(options, given);
      with.trace = {};
      with.for_backward = !training;
      if (training) layer->train({.seed = train_seed});
      layer->zero_grad();
      if (cross)
        static_cast<void>(layer->forward(x, tensor_of<n>(inputs[2]), tensor_of<n>(inputs[3]), with));
      else
        static_cast<void>(layer->forward(x, with));
      std::vector<Values> out = values_of_gradients(layer->backward(grad, {.trace = options.trace}));
      add_state(layer->gradients(), out);
      return out;
    });
  };
  return call;
}

Call function(Generator& g) {
  Call call;
  const bool is_large = large(g);
  const std::size_t which = g.below(6);
  const std::size_t rank = 1 + g.below(4);
  Dims dims = sizes(g, rank, is_large ? 12 : 5);
  const std::size_t width = 1 + g.below(is_large ? 130 : 40);
  const std::size_t out_width = 1 + g.below(is_large ? 130 : 40);
  const bool weighted = g.one_in(2);
  const float eps = g.pick(std::array<float, 4>{1e-5F, 1e-12F, 1e-3F, 0.5F});
  const attn::Activation name = g.pick(kActivations);
  const auto dim = static_cast<std::int64_t>(g.below(2 * rank)) - static_cast<std::int64_t>(rank);
  const auto offset = static_cast<std::int64_t>(g.below(2000)) - 1000;
  const bool interleaved = g.one_in(2);
  dims.back() = which == 5 ? 2 * width : width;
  Dims grad_dims = dims;
  if (which == 0) grad_dims.back() = out_width;
  call.inputs.push_back(values(g, grad_dims, 1.0F));
  call.inputs.push_back(values(g, dims, 2.0F));
  const attn::Tensor<2> matrix = tensor_of<2>(values(g, {out_width, width}, 1.0F));
  const attn::Tensor<1> weight = tensor_of<1>(values(g, {width}, 1.0F));
  call.run = [=](const std::vector<Values>& inputs, const Masks&) {
    return with_rank<1, 4>(rank, [&](auto n) -> std::vector<Values> {
      const auto grad = tensor_of<n>(inputs[0]), x = tensor_of<n>(inputs[1]);
      const auto of_norm = [](const auto& found) {
        std::vector<Values> out{values_of(found.grad_x)};
        if (found.grad_weight) out.push_back(values_of(*found.grad_weight));
        if (found.grad_bias) out.push_back(values_of(*found.grad_bias));
        return out;
      };
      if (which == 0) {
        const auto found = attn::linear_backward(grad, x, matrix);
        return {values_of(found.grad_x), values_of(found.grad_weight), values_of(found.grad_bias)};
      }
      if (which == 1) return of_norm(weighted ? attn::layer_norm_backward(grad, x, weight, eps) : attn::layer_norm_backward(grad, x, eps));
      if (which == 2) return of_norm(weighted ? attn::rms_norm_backward(grad, x, weight, eps) : attn::rms_norm_backward(grad, x, eps));
      if (which == 3) return {values_of(attn::softmax_backward(grad, attn::softmax(x, dim), dim))};
      if (which == 4) return {values_of(attn::activation_backward(grad, x, name))};
      if constexpr (n >= 2) return {values_of(attn::apply_rotary_backward(grad, {.offset = offset, .interleaved = interleaved}))};
      return {};
    });
  };
  return call;
}

Call loss(Generator& g) {
  Call call;
  const std::size_t which = g.below(3);
  const std::size_t N = length(g, 200);
  const std::size_t C = 1 + g.below(30);
  std::vector<std::int64_t> labels(N);
  for (std::int64_t& label : labels) {
    const bool ignored = g.one_in(8);
    const std::size_t drawn = g.below(C);
    label = ignored ? -100 : static_cast<std::int64_t>(drawn);
  }
  const double smoothing = g.pick(std::array{0.0, 0.1, 0.2, 0.3, 0.4});
  const bool weighted = g.one_in(2);
  const bool summed = g.one_in(2);
  call.inputs.push_back(values(g, {N, C}, 4.0F));
  call.inputs.push_back(values(g, {N, C}, 1.0F));
  const attn::Tensor<1> weight = tensor_of<1>(values(g, {C}, 1.0F));
  const attn::Reduction reduction = summed ? attn::Reduction::sum : attn::Reduction::mean;
  call.run = [=](const std::vector<Values>& inputs, const Masks&) {
    const auto x = tensor_of<2>(inputs[0]), y = tensor_of<2>(inputs[1]);
    const auto of = [](const auto& found) { return std::vector<Values>{{{1}, {found.loss}}, values_of(found.gradient)}; };
    if (which == 0) {
      attn::CrossEntropyOptions options{.label_smoothing = smoothing, .reduction = reduction};
      if (weighted) options.weight = attn::TensorCopy(weight);
      return of(attn::cross_entropy(x, labels, options));
    }
    if (which == 1) return of(attn::mse_loss(x, y, {.reduction = reduction}));
    attn::BinaryCrossEntropyOptions options{.reduction = reduction};
    if (weighted) options.pos_weight = attn::TensorCopy(weight);
    return of(attn::binary_cross_entropy_with_logits(x, y, options));
  };
  return call;
}

Call training(Generator& g) {
  Call call;
  const std::size_t N = 2 + g.below(20);
  const std::size_t H = 1 + g.below(3);
  const std::size_t width = 1 + g.below(8);
  const std::size_t L = 1 + g.below(12);
  const std::size_t which = g.below(3);
  const double rate = static_cast<double>(1 + g.below(64)) / 256;
  const double decay = static_cast<double>(g.below(8)) / 64;
  const double momentum = static_cast<double>(g.below(8)) / 8;
  const float dropout = probability(g);
  const std::uint64_t drawn = seed(g);
  const std::size_t steps = 1 + g.below(4);
  const double most = static_cast<double>(g.below(64)) / 16;
  const std::size_t E = H * width;
  std::vector<std::int64_t> labels(L);
  for (std::int64_t& label : labels) label = static_cast<std::int64_t>(g.below(E));
  xt::xtensor<std::int64_t, 2> ids(std::array<std::size_t, 2>{1, L});
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(g.below(N));
  call.run = [=](const std::vector<Values>&, const Masks&) {
    attn::Embedding words({.num_embeddings = static_cast<std::int64_t>(N), .embedding_dim = static_cast<std::int64_t>(E), .padding_idx = 0});
    attn::MultiHeadAttention mha({.embed_dim = static_cast<std::int64_t>(E), .num_heads = static_cast<std::int64_t>(H), .dropout = dropout});
    words.initialize({.seed = drawn});
    mha.initialize({.seed = drawn});
    words.train({.seed = drawn});
    mha.train({.seed = drawn});
    const std::vector<attn::ParameterGroup> groups{
        {.names = [](const std::string& name) { return name.find("bias") != std::string::npos; }, .learning_rate = 2 * rate, .weight_decay = 0}};
    std::unique_ptr<attn::Optimizer> optimizer;
    const std::vector<attn::ModuleRef> modules{words, mha};
    if (which == 0)
      optimizer = std::make_unique<attn::SGD>(modules,
                                              attn::SGDOptions{.learning_rate = rate, .groups = groups, .momentum = momentum, .weight_decay = decay});
    else if (which == 1)
      optimizer = std::make_unique<attn::Adam>(modules, attn::AdamOptions{.learning_rate = rate, .weight_decay = decay, .groups = groups});
    else
      optimizer = std::make_unique<attn::AdamW>(modules, attn::AdamWOptions{.learning_rate = rate, .weight_decay = decay, .groups = groups});
    std::vector<Values> out;
    for (std::size_t step = 0; step < steps; ++step) {
      const auto y = mha.forward(words.forward(ids)).output;
      const auto found = attn::cross_entropy(y, labels);
      words.backward(mha.backward(found.gradient).grad_query);
      const auto norm = nearest(attn::clip_grad_norm(modules, most));
      optimizer->set_learning_rate(
          attn::cosine_schedule(static_cast<std::int64_t>(step), {.learning_rate = rate, .warmup = 1, .steps = static_cast<std::int64_t>(steps)}));
      optimizer->step();
      optimizer->zero_grad();
      out.push_back({{2}, {found.loss, norm}});
    }
    add_state(words.state_dict(), out);
    add_state(mha.state_dict(), out);
    add_state(optimizer->state_dict(), out);
    return out;
  };
  return call;
}

constexpr std::array kKinds{attention, multi_head_attention, function, training, attention, multi_head_attention, loss};

}  // namespace backward_calls
using namespace backward_calls;

Call draw_backward_call(Generator& g, std::uint32_t number) { return backward_calls::kKinds[number % backward_calls::kKinds.size()](g); }

}  // namespace digest
