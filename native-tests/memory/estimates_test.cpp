// The memory that a call is checked for is the memory that it takes.
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "attn/attn.hpp"
#include "attn/layers/gradients.hpp"
#include "memory/estimate.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/tensors.hpp"

namespace attn::test {
namespace memory_estimates_test {

template <class... Tensors>
std::int64_t floats_of(const Tensors&... tensors) {
  return static_cast<std::int64_t>((tensors.size() + ... + 0));
}
template <class T>
std::int64_t floats_of_optional(const T& tensor) {
  if constexpr (requires { tensor.has_value(); })
    return tensor ? floats_of(*tensor) : 0;
  else
    return floats_of(tensor);
}
template <class Trace>
std::int64_t floats_of_trace(const Trace& trace) {
  std::int64_t floats = 0;
  for (const auto& [name, tensor] : *trace) floats += floats_of(tensor);
  return floats;
}

struct Inputs {
  Tensor<4> q, k, v, grad;
  Tensor<3> x;
  Tensor<2> square, weight, queries, keys;
  Tensor<1> bias, scores;
  Mask mask, padding;

  explicit Inputs(std::int64_t L = 37, std::int64_t S = 90) {
    Generator random(1);
    q = tensor_of<4>(random.normal({2, 4, L, 12})), k = tensor_of<4>(random.normal({2, 2, S, 12})), v = tensor_of<4>(random.normal({2, 2, S, 7}));
    grad = tensor_of<4>(random.normal({2, 4, L, 7}));
    x = tensor_of<3>(random.normal({2, L, 24}));
    square = tensor_of<2>(random.normal({12, 12})), weight = tensor_of<2>(random.normal({33, 24}));
    queries = tensor_of<2>(random.normal({9, 12})), keys = tensor_of<2>(random.normal({9, 12}));
    bias = tensor_of<1>(random.normal({33})), scores = tensor_of<1>(random.normal({9}));
    mask = mask_of(random_mask(random, MaskKind::additive, {L, S}));
    padding = mask_of(random_padding(random, MaskKind::block, 2, L));
  }
};

template <class Result>
std::int64_t floats_of_attention(const Result& result) {
  std::int64_t floats = floats_of(result.output);
  if (result.weights) floats += floats_of(*result.weights);
  if (result.present) floats += floats_of(result.present->key, result.present->value);
  if (result.trace) floats += floats_of_trace(result.trace);
  return floats;
}
template <class Result>
std::int64_t floats_of_gradients(const Result& result) {
  const auto others = [](const auto&... of) { return (floats_of_optional(of) + ...); };
  return floats_of(result.grad_query) + others(result.grad_key, result.grad_value) + (result.trace ? floats_of_trace(result.trace) : 0);
}

/// Options of attention, each with the plain ones before it.
std::vector<AttentionOptions> attention_options(const Mask& mask) {
  const AttentionOptions plain{.enable_gqa = true};
  std::vector<AttentionOptions> all(8, plain);
  all[1].mask = mask;
  all[2].need_weights = true;
  all[3].need_weights = all[3].average_weights = true;
  all[4].dropout = 0.5F;
  all[5].trace = Trace::of_attention();
  all[6].output_present = true;
  all[7].softcap = 5;
  all[7].is_causal = true;
  return all;
}

TEST_CASE("the memory check of attention counts exactly what the call takes", "[memory][estimate]") {
  for (const unsigned threads : {1U, 3U}) {
    set_num_threads(threads);
    for (const std::int64_t L : {37, 1, 300}) {
      Inputs in(L, L == 300 ? 1500 : 90);
      const AdditiveAttentionParams params{in.queries, in.keys, in.scores, in.scores};
      for (const bool is_large : {false, true}) {  // then values are scaled, because their sum could overflow
        if (is_large) in.v *= 1e36F;
        const std::vector<AttentionOptions> all = attention_options(in.mask);
        for (std::size_t i = 0; i < (L == 300 ? 3 : all.size()); ++i) {
          const AttentionOptions& options = all[i];
          const std::string which = " with options " + std::to_string(i) + ", L " + std::to_string(L) + ", threads " + std::to_string(threads);
          check_estimate("scaled_dot_product_attention" + which,
                         [&] { return floats_of_attention(scaled_dot_product_attention(in.q, in.k, in.v, options)); });
          check_estimate("additive_attention" + which,
                         [&] { return floats_of_attention(attn::additive_attention(in.q, in.k, in.v, params, options)); });
          check_estimate("general_attention" + which,
                         [&] { return floats_of_attention(attn::general_attention(in.q, in.k, in.v, in.square, options)); });
          check_estimate("scaled_dot_product_attention_backward" + which,
                         [&] { return floats_of_gradients(scaled_dot_product_attention_backward(in.grad, in.q, in.k, in.v, options)); });
          check_estimate("additive_attention_backward" + which, [&] {
            const auto result = attn::additive_attention_backward(in.grad, in.q, in.k, in.v, params, options);
            return floats_of_gradients(result) +
                   floats_of(result.grad_query_weight, result.grad_key_weight, result.grad_score_weight, *result.grad_bias);
          });
          check_estimate("general_attention_backward" + which, [&] {
            const auto result = attn::general_attention_backward(in.grad, in.q, in.k, in.v, in.square, options);
            return floats_of_gradients(result) + floats_of(result.grad_weight);
          });
        }
      }
    }
  }
  set_num_threads(1);
}

TEST_CASE("the memory check of every other op counts exactly what the call takes", "[memory][estimate]") {
  Inputs in;
  const Tensor<3> y = attn::linear(in.x, in.weight, in.bias);
  const Tensor<1> width = xt::ones<float>({24});
  const Tensor<2> logits = xt::reshape_view(in.x, {74, 24}), targets = xt::zeros<float>({74, 24});
  const std::vector<int> labels(74, 3);
  const TensorView gaps(in.x.data(), {2, 18, 20}, {37 * 24, 2 * 24, 1}), grad_of_gaps(y.data(), {2, 18, 33}, {37 * 33, 2 * 33, 1});
  std::vector<float> memory(20 * 24 * 33);
  CrossEntropyOptions weighted;
  weighted.weight = TensorCopy(width);
  BinaryCrossEntropyOptions both;
  both.weight = both.pos_weight = TensorCopy(width);
  for (const unsigned threads : {1U, 3U}) {
    set_num_threads(threads);
    const std::pair<const char*, std::function<std::int64_t()>> calls[] = {
        {"linear", [&] { return floats_of(attn::linear(in.x, in.weight, in.bias)); }},
        {"linear_backward of rows with gaps",
         [&] {
           const TensorView weight(in.weight.data(), {33, 20}, {24, 1});
           detail::check_linear_backward(grad_of_gaps, gaps, weight);
           detail::linear_backward(grad_of_gaps, gaps, weight, {memory.data(), memory.data() + 720, memory.data() + 1380});
           return std::int64_t{720 + 660 + 33};
         }},
        {"softmax", [&] { return floats_of(attn::softmax(in.x)); }},
        {"softmax of dimension 1", [&] { return floats_of(attn::softmax(in.x, 1)); }},
        {"softmax of dimension 0", [&] { return floats_of(attn::softmax(in.x, 0)); }},
        {"layer_norm", [&] { return floats_of(attn::layer_norm(in.x, width, width)); }},
        {"rms_norm", [&] { return floats_of(attn::rms_norm(in.x, width)); }},
        {"activation", [&] { return floats_of(attn::activation(in.x, Activation::gelu)); }},
        {"sinusoidal_positions", [&] { return floats_of(attn::sinusoidal_positions(9, 7)); }},
        {"apply_rotary", [&] { return floats_of(attn::apply_rotary(in.q)); }},
        {"alibi_bias", [&] { return floats_of(attn::alibi_bias(3, 5, 7)); }},
        {"cross_entropy", [&] { return floats_of(attn::cross_entropy(logits, labels).gradient); }},
        {"cross_entropy with weights", [&] { return floats_of(attn::cross_entropy(logits, labels, weighted).gradient); }},
        {"mse_loss", [&] { return floats_of(attn::mse_loss(logits, targets).gradient); }},
        {"binary_cross_entropy", [&] { return floats_of(attn::binary_cross_entropy_with_logits(logits, targets, both).gradient); }},
        {"linear_backward",
         [&] {
           const auto result = attn::linear_backward(y, in.x, in.weight);
           return floats_of(result.grad_x, result.grad_weight, result.grad_bias);
         }},
        {"layer_norm_backward",
         [&] {
           const auto result = attn::layer_norm_backward(in.x, in.x, width);
           return floats_of(result.grad_x, *result.grad_weight, *result.grad_bias);
         }},
        {"rms_norm_backward",
         [&] {
           const auto result = attn::rms_norm_backward(in.x, in.x, width);
           return floats_of(result.grad_x, *result.grad_weight);
         }},
        {"softmax_backward", [&] { return floats_of(attn::softmax_backward(in.x, in.x, 1)); }},
        {"activation_backward", [&] { return floats_of(attn::activation_backward(in.x, in.x, Activation::gelu)); }},
        {"apply_rotary_backward", [&] { return floats_of(attn::apply_rotary_backward(in.q)); }},
    };
    for (const auto& [name, call] : calls) check_estimate(name + std::string(", threads ") + std::to_string(threads), call);
  }
  set_num_threads(1);
}

template <class Result>
std::int64_t floats_of_encoder(const Result& result) {
  std::int64_t floats = floats_of(result.output);
  for (const auto* const list : {&result.hidden_states})
    if (*list)
      for (const auto& tensor : **list) floats += floats_of(tensor);
  if (result.attentions)
    for (const auto& tensor : *result.attentions) floats += floats_of(tensor);
  if (result.trace)
    for (const auto& [layer, tensors] : *result.trace)
      for (const auto& [name, tensor] : tensors) floats += floats_of(tensor);
  return floats;
}
template <class Result>
std::int64_t floats_of_encoder_gradients(const Result& result) {
  std::int64_t floats = floats_of(result.grad_x);
  if (result.trace)
    for (const auto& [layer, tensors] : *result.trace)
      for (const auto& [name, tensor] : tensors) floats += floats_of(tensor);
  return floats;
}

/// As check_estimate(), after a forward that keeps what the backward needs; the second time with gradients to add to.
template <class Layer>
void check_backward(Layer& layer, const Tensor<3>& x, const std::function<std::int64_t()>& backward) {
  layer.zero_grad();
  for (const bool is_first : {true, false}) {
    INFO("first backward " << is_first);
    layer.train();
    layer.forward(x);
    layer.eval();
    Context::release_memory();
    const std::int64_t estimate = refused_bytes([&] { backward(); }, 1);
    std::int64_t floats = 0;
    const std::int64_t taken = most_line_bytes_of([&] { floats = backward(); });
    CHECK(taken + 4 * floats == estimate);
  }
}

TEST_CASE("the memory check of multi-head attention counts exactly what a forward and a backward take", "[memory][estimate]") {
  const Inputs in;
  const MultiHeadAttentionOptions layers[] = {
      {.embed_dim = 24, .num_heads = 4},
      {.embed_dim = 24, .num_heads = 4, .out_proj = false},
      {.embed_dim = 24, .num_heads = 4, .rotary = RotaryOptions{}},
      {.embed_dim = 24, .num_heads = 4, .num_key_value_heads = 2, .head_dim = 5, .value_head_dim = 7, .add_bias_kv = true, .add_zero_attn = true}};
  for (const unsigned threads : {1U, 3U}) {
    set_num_threads(threads);
    for (std::size_t i = 0; i < std::size(layers); ++i) {
      const std::string which = ", layer " + std::to_string(i) + ", threads " + std::to_string(threads);
      MultiHeadAttention layer(layers[i]), int8(layers[i]);
      int8.quantize();
      AttentionOptions all{.dropout = 0.5F, .need_weights = true, .average_weights = true, .trace = Trace::of_attention()};
      all.key_padding_mask = in.padding;
      for (const AttentionOptions& options : {AttentionOptions{}, AttentionOptions{.is_causal = true, .query_offset = 3}, all}) {
        for (const MultiHeadAttention* const any : {&layer, &int8})
          check_estimate("forward" + which, [&] { return floats_of_attention(any->forward(in.x, options)); });
        check_estimate("forward of other keys" + which, [&] {
          const Tensor<3> keys = in.x;
          AttentionOptions given = options;
          given.key_padding_mask = std::nullopt;
          return floats_of_attention(layer.forward(in.x, keys, keys, given));
        });
        AttentionOptions keeping = options;
        keeping.for_backward = true;
        check_estimate("forward for backward" + which, [&] { return floats_of_attention(layer.forward(in.x, keeping)); });
      }
      const auto output = layer.forward(in.x).output;
      for (const Trace trace : {Trace{}, Trace::of_attention()})
        check_backward(layer, in.x, [&] { return floats_of_gradients(layer.backward(output, {.trace = trace})); });
    }
  }
  set_num_threads(1);
}

template <class Layer, class Options>
void check_encoder(const char* what, const Options& options, const Inputs& in) {
  for (const bool is_int8 : {false, true}) {
    Layer layer(options);
    if (is_int8) layer.quantize();
    EncoderForwardOptions all{.is_causal = true, .output_attentions = true, .output_hidden_states = true};
    all.key_padding_mask = in.padding;
    all.trace = EncoderTraceOptions{};
    const auto forward = [&](EncoderForwardOptions given, bool keeps) {
      given.for_backward = keeps;
      const auto result = layer.forward(in.x, given);
      std::int64_t floats = floats_of_encoder(result);
      if constexpr (requires { result.logits; }) floats += floats_of(result.logits);
      return floats;
    };
    const std::string name = std::string(what) + (is_int8 ? " int8" : "");
    check_estimate(name, [&] { return forward({}, false); });
    check_estimate(name + " with everything", [&] { return forward(all, false); });
    if (is_int8) continue;
    check_estimate(name + " for backward", [&] { return forward({}, true); });
    check_estimate(name + " with everything for backward", [&] { return forward(all, true); });
    const auto output = [&] {
      const auto result = layer.forward(in.x);
      if constexpr (requires { result.logits; })
        return result.logits;
      else
        return result.output;
    }();
    for (const bool with_trace : {false, true}) {
      EncoderBackwardOptions given;
      if (with_trace) given.trace = EncoderTraceOptions{};
      INFO(name << " backward, trace " << with_trace);
      check_backward(layer, in.x, [&] { return floats_of_encoder_gradients(layer.backward(output, given)); });
    }
  }
}

TEST_CASE("the memory check of an encoder counts exactly what a forward and a backward take", "[memory][estimate]") {
  const Inputs in;
  for (const unsigned threads : {1U, 3U}) {
    set_num_threads(threads);
    const TransformerEncoderLayerOptions plain{.d_model = 24, .nhead = 4, .dim_feedforward = 50}, pre{.d_model = 24,
                                                                                                      .nhead = 4,
                                                                                                      .dim_feedforward = 50,
                                                                                                      .dropout = 0.1F,
                                                                                                      .norm_first = true,
                                                                                                      .norm = NormKind::rms_norm,
                                                                                                      .gated = true,
                                                                                                      .rotary = RotaryOptions{}};
    for (const TransformerEncoderLayerOptions& layer : {plain, pre}) {
      check_encoder<TransformerEncoderLayer>("TransformerEncoderLayer", layer, in);
      const TransformerEncoderOptions stack{.layer = layer, .num_layers = 3, .final_norm = true};
      check_encoder<TransformerEncoder>("TransformerEncoder", stack, in);
      for (const Pooling pooling : {Pooling::none, Pooling::mean})
        check_encoder<TransformerClassifier>("TransformerClassifier",
                                             TransformerClassifierOptions{.encoder = stack, .num_classes = 3, .pooling = pooling}, in);
    }
  }
  set_num_threads(1);
}

TEST_CASE("the memory check of an embedding counts exactly what its calls take", "[memory][estimate]") {
  const Embedding table({.num_embeddings = 50, .embedding_dim = 24});
  const xt::xtensor<std::int32_t, 2> ids{{0, 1, 1}, {2, 3, 1}};
  check_estimate("forward", [&] { return floats_of(table.forward(ids)); });
  check_estimate("nearest", [&] { return 4 * std::ssize(table.nearest(3, 7)); });
  check_estimate("analogy", [&] { return 4 * std::ssize(table.analogy(3, 7, 1, 40)); });
}

}  // namespace memory_estimates_test
}  // namespace attn::test
