#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <utility>

#include "parallel/runs.hpp"
#include "support/call_backward.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace layers_multi_head_attention_backward_test {

constexpr const char* kOp = "MultiHeadAttention";

void check_same(const Gradients& got, const Gradients& expected) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, array] : expected) {
    INFO(name);
    CHECK_THAT(got.at(name), HasBitsOf(array));
  }
}

std::map<std::string, Array> draw_state(Generator& random, const MultiHeadAttention& layer) {
  std::map<std::string, Array> state;
  for (const auto& [name, shape] : layer.parameter_shapes()) state.emplace(name, random.normal(shape, 0.4F));
  return state;
}

TEST_CASE("gradients of multi-head attention, its parameters and intermediates agree with torch.autograd", "[goldens][backward][layers]") {
  const GoldenFile file = read_golden(testdata("layers_backward.safetensors")), forwards = read_golden(testdata("multi_head_attention.safetensors"));
  const auto cases_of = [](const GoldenFile& from) { return nlohmann::json::parse(from.metadata.at("cases").get<std::string>()); };
  const nlohmann::json own_cases = cases_of(file), forward_cases = cases_of(forwards);
  std::size_t count = 0;
  for (const nlohmann::json& entry : own_cases) {
    const GoldenCase own(file, entry);
    if (own.op() != "multi_head_attention_backward") continue;
    ++count;
    INFO("case " << own.name());
    const auto found = std::find_if(forward_cases.begin(), forward_cases.end(), [&](const auto& one) { return one.at("name") == own.name(); });
    REQUIRE(found != forward_cases.end());
    const GoldenCase golden(forwards, *found);
    MultiHeadAttention layer(golden.module());
    layer.load_state_dict(state_of(golden.state()));
    std::uint32_t bits = 0;
    for (const auto& [what, error] : entry.at("expected").items())
      if (what.starts_with("trace.")) bits |= Trace{trace_name(what.substr(6))}.bits();
    const AttentionOptions asked{.for_backward = true};
    if (golden.lists("inputs", "key"))
      forward(layer, golden.inputs(), asked);
    else
      forward(layer, golden.tensor("query"), options_of(golden.call(), asked));
    const Gradients gradients = backward(layer, own.tensor("grad"), Trace::from_bits(bits));
    for (const auto& [what, error] : entry.at("expected").items()) {
      INFO("gradient " << what);
      REQUIRE(gradients.contains(what));
      CHECK(own.difference(what, gradients.at(what)) == "");
    }
    CHECK(gradients.size() == entry.at("expected").size());
  }
  CHECK(count >= 120);
}

struct Everything {
  MultiHeadAttentionOptions options{.embed_dim = 10,
                                    .num_heads = 4,
                                    .num_key_value_heads = 2,
                                    .kdim = 7,
                                    .vdim = 9,
                                    .head_dim = 6,
                                    .value_head_dim = 5,
                                    .add_bias_kv = true,
                                    .add_zero_attn = true,
                                    .rotary = RotaryOptions{.offset = 2, .interleaved = true}};
  AttentionOptions call{.is_causal = true,
                        .dropout = 0.3F,
                        .seed = 5,
                        .softcap = 2.0F,
                        .window = Window{.left = 3, .right = 2},
                        .query_offset = 2,
                        .for_backward = true};
  Generator random{11};
  MultiHeadAttention layer{options};
  std::map<std::string, Array> state = draw_state(random, layer);
  Array query = random.normal({2, 5, 10}), key = random.normal({2, 8, 7}), value = random.normal({2, 8, 9}), grad = random.normal({2, 5, 10});

  double loss(const Array& q, const Array& k, const Array& v, const std::map<std::string, Array>& weights) {
    layer.load_state_dict(state_of(weights));
    const Array output = forward(layer, q, k, v, call).output;
    double sum = 0;
    for (std::size_t i = 0; i < grad.data.size(); ++i) sum += static_cast<double>(output.data[i]) * static_cast<double>(grad.data[i]);
    return sum;
  }
};

TEST_CASE("with rotary, softcap, window and dropout, a gradient is the slope in any direction", "[backward][layers]") {
  Everything of;
  of.loss(of.query, of.key, of.value, of.state);
  const Gradients gradients = backward(of.layer, of.grad);
  Gradients at = {{"grad_query", of.query}, {"grad_key", of.key}, {"grad_value", of.value}};
  for (const auto& [name, array] : of.state) at.emplace("state." + name, array);
  for (const auto& [name, gradient] : gradients) {
    INFO(name);
    constexpr float kStep = 2e-3F;
    const Array direction = of.random.normal(gradient.dims);
    double slope = 0, size = 0;
    for (std::size_t i = 0; i < gradient.data.size(); ++i) {
      slope += static_cast<double>(direction.data[i]) * static_cast<double>(gradient.data[i]);
      size += std::abs(static_cast<double>(direction.data[i]) * static_cast<double>(gradient.data[i]));
    }
    double values[2];
    for (int side = 0; side < 2; ++side) {
      Gradients moved = at;
      Array& one = moved.at(name);
      for (std::size_t i = 0; i < one.data.size(); ++i) one.data[i] += (side == 0 ? kStep : -kStep) * direction.data[i];
      std::map<std::string, Array> weights;
      for (const auto& [parameter, array] : of.state) weights.emplace(parameter, moved.at("state." + parameter));
      values[side] = of.loss(moved.at("grad_query"), moved.at("grad_key"), moved.at("grad_value"), weights);
    }
    // Rounding of about 100 terms divided by the step, and the third derivative.
    CHECK(std::abs((values[0] - values[1]) / (2.0 * static_cast<double>(kStep)) - slope) < 5e-3 * (size + 1));
  }
}

TEST_CASE("gradients of multi-head attention have the same bits on any number of threads", "[backward][layers][threads]") {
  Generator random(1);
  MultiHeadAttention layer({.embed_dim = 48, .num_heads = 6, .num_key_value_heads = 3, .add_bias_kv = true, .rotary = RotaryOptions{}});
  const Array x = random.normal({3, 140, 48}), grad = random.normal({3, 140, 48});
  const auto run = [&] {
    layer.zero_grad();
    forward(layer, x, {.dropout = 0.1F, .seed = 3, .for_backward = true});
    return backward(layer, grad, Trace::of_attention());
  };
  const Gradients alone = run();
  CHECK(alone.size() == 1 + kAttentionTraceCount + layer.parameter_shapes().size());
  for (const unsigned threads : {2U, 3U}) {
    INFO(threads << " threads");
    const Threads more(threads);
    check_same(run(), alone);
  }
}

TEST_CASE("gradients of inputs in a batch are those of each entry alone", "[backward][layers]") {
  Generator random(2);
  MultiHeadAttention layer({.embed_dim = 12, .num_heads = 3, .add_zero_attn = true});
  const Array x = random.normal({3, 70, 12}), grad = random.normal({3, 70, 12});
  forward(layer, x, {.is_causal = true, .for_backward = true});
  const Array together = backward(layer, grad).at("grad_query");
  for (std::int64_t b = 0; b < 3; ++b) {
    forward(layer, take(x, {b}), {.is_causal = true, .for_backward = true});
    CHECK_THAT(backward(layer, take(grad, {b})).at("grad_query"), HasBitsOf(take(together, {b})));
  }
}

TEST_CASE("the contents of padding, even NaN, do not affect any gradient of a layer", "[backward][layers]") {
  Generator random(3);
  for (const bool rotary : {false, true}) {
    MultiHeadAttention layer({.embed_dim = 12, .num_heads = 3, .rotary = rotary ? std::optional(RotaryOptions{}) : std::nullopt});
    Array x = random.normal({2, 9, 12}), grad = random.normal({2, 9, 12});
    const Array attend({2, 9}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0});
    std::fill(grad.data.end() - 36, grad.data.end(), 0.0F);
    const auto run = [&] {
      layer.zero_grad();
      AttentionCase c;
      c.key_padding_mask = MaskInput{MaskKind::attend, attend};
      forward(layer, x, options_of(c, {.for_backward = true}));
      return backward(layer, grad);
    };
    const Gradients clean = run();
    for (std::size_t i = x.data.size() - 36; i < x.data.size(); ++i) x.data[i] = i % 3 == 0 ? kInfinity : kNaN;
    const Gradients dirty = run();
    check_same(dirty, clean);
    CHECK(std::all_of(clean.at("grad_query").data.end() - 36, clean.at("grad_query").data.end(), [](float value) { return value == 0; }));
  }
}

TEST_CASE("query, key and value have separate gradients, and a single input for all three has their sum", "[backward][layers]") {
  Generator random(4);
  MultiHeadAttention layer({.embed_dim = 8, .num_heads = 2});
  const Array x = random.normal({2, 5, 8}), grad = random.normal({2, 5, 8});
  forward(layer, x, {.for_backward = true});
  const Gradients one = backward(layer, grad);
  CHECK(!one.contains("grad_key"));
  forward(layer, x, x, x, {.for_backward = true});
  const Gradients three = backward(layer, grad);
  Array sum = three.at("grad_query");
  for (const char* name : {"grad_key", "grad_value"})
    for (std::size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += three.at(name).data[i];
  CHECK_THAT(one.at("grad_query"), HasBitsOf(sum));
  for (const auto& [name, gradient] : one) {
    if (!name.starts_with("state.")) continue;
    Array twice = gradient;
    for (float& value : twice.data) value *= 2;
    INFO(name);
    CHECK_THAT(three.at(name), HasBitsOf(twice));
  }
}

TEST_CASE("inputs without rows have gradients without rows", "[backward][layers]") {
  Generator random(11);
  MultiHeadAttention layer({.embed_dim = 6, .num_heads = 2, .kdim = 3, .vdim = 5});
  for (const auto& [L, S] : {std::pair{4, 0}, std::pair{0, 4}, std::pair{0, 0}}) {
    INFO("L " << L << ", S " << S);
    forward(layer, random.normal({2, L, 6}), random.normal({2, S, 3}), random.normal({2, S, 5}), {.for_backward = true});
    const Gradients found = backward(layer, random.normal({2, L, 6}));
    CHECK(found.at("grad_query").dims == Shape{2, L, 6});
    CHECK(found.at("grad_key").dims == Shape{2, S, 3});
    CHECK(found.at("grad_value").dims == Shape{2, S, 5});
    for (const auto& [name, gradient] : found)
      if (name != "state.out_proj.bias") CHECK(std::all_of(gradient.data.begin(), gradient.data.end(), [](float value) { return value == 0; }));
  }
}

TEST_CASE("storing values for backward does not change the bits of a forward, nor does train mode", "[backward][layers]") {
  Everything of;
  of.layer.load_state_dict(state_of(of.state));
  AttentionOptions plain = of.call;
  plain.for_backward = false;
  const Array expected = forward(of.layer, of.query, of.key, of.value, plain).output;
  check_error({ErrorCode::argument, kOp, "backward", {"for_backward"}}, [&] { backward(of.layer, of.grad); });
  CHECK_THAT(forward(of.layer, of.query, of.key, of.value, of.call).output, HasBitsOf(expected));
  const Gradients gradients = backward(of.layer, of.grad);
  of.layer.zero_grad();
  of.layer.train({.seed = 9});
  CHECK_THAT(forward(of.layer, of.query, of.key, of.value, plain).output, HasBitsOf(expected));
  check_same(backward(of.layer, of.grad), gradients);
}

TEST_CASE("a backward without a forward, twice, or after weights changed fails and changes nothing", "[backward][layers]") {
  Generator random(5);
  MultiHeadAttention layer({.embed_dim = 8, .num_heads = 2});
  const Array x = random.normal({2, 5, 8}), grad = random.normal({2, 5, 8});
  const auto keep = [&] { forward(layer, x, {.for_backward = true}); };
  const ExpectedError none{ErrorCode::argument, kOp, "backward", {"a forward with for_backward"}};
  check_error(none, [&] { backward(layer, grad); });
  keep();
  check_error({ErrorCode::shape, kOp, "grad", {"(2,5,8)"}}, [&] { backward(layer, random.normal({2, 4, 8})); });
  const Gradients once = backward(layer, grad);
  check_error(none, [&] { backward(layer, grad); });
  CHECK(arrays_of(layer.gradients()).at("in_proj_weight") == once.at("state.in_proj_weight"));

  keep();
  layer.load_state_dict(layer.state_dict());
  check_error(none, [&] { backward(layer, grad); });
  keep();
  layer.initialize();
  check_error(none, [&] { backward(layer, grad); });
  keep();
  backward(layer, grad);
  SGD optimizer({layer}, {.learning_rate = 0.1});
  keep();
  optimizer.step();
  check_error(none, [&] { backward(layer, grad); });
  keep();
  layer.quantize();
  check_error({ErrorCode::unsupported, kOp, "the layer", {"int8"}}, [&] { backward(layer, grad); });
  check_error({ErrorCode::unsupported, kOp, "for_backward", {"int8"}}, keep);
  CHECK(layer.gradients().empty());
}

}  // namespace layers_multi_head_attention_backward_test
}  // namespace attn::test
