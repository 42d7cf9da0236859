// What PyTorch gave (testdata/, tools/goldens) and the worked examples of the literature.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>

#include "attn/attn.hpp"
#include "support/call.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace {

TraceName trace_name(const std::string& name) {
  for (std::size_t i = 0; i < kTraceNames.size(); ++i)
    if (name == kTraceNames[i]) return static_cast<TraceName>(i);
  throw std::runtime_error("no trace is called " + name);
}

MultiHeadAttention layer_of(const GoldenCase& golden) {
  MultiHeadAttention layer(golden.module());
  layer.load_state_dict(state_of(golden.state()));
  return layer;
}

/// Linear maps of x to q, k and v, then attention: heads of a width that a whole layer does not have.
AttentionCase projected(const GoldenCase& golden) {
  AttentionCase c = golden.call();
  const auto project = [&](const std::string& name) {
    const Array bias = golden.lists("state", name + ".bias") ? golden.tensor("state." + name + ".bias") : Array();
    return linear(golden.tensor("x"), golden.tensor("state." + name + ".weight"), bias.data.empty() ? nullptr : &bias);
  };
  c.query = project("q_proj");
  c.key = project("k_proj");
  c.value = project("v_proj");
  return c;
}

const std::set<std::string> kKnownOptions{"needWeights", "averageWeights", "isCausal", "scale", "enableGqa", "fullyMasked", "trace"};

/// Runs every case of a file and compares what it expects; returns how many there were.
std::size_t check_goldens(const std::string& name) {
  const GoldenFile file = read_golden(testdata(name));
  const nlohmann::json cases = nlohmann::json::parse(file.metadata.at("cases").get<std::string>());
  for (const nlohmann::json& entry : cases) {
    const GoldenCase golden(file, entry);
    INFO(name << ", case " << golden.name() << ", options " << entry.at("options").dump());
    for (const auto& [option, value] : entry.at("options").items()) {
      INFO("option " << option);
      CHECK(kKnownOptions.contains(option));
    }
    std::uint32_t bits = 0;
    for (const auto& [what, error] : entry.at("expected").items())
      if (what != "output" && what != "weights") bits |= Trace{trace_name(what)}.bits();
    const AttentionOptions asked{.need_weights = golden.option("needWeights", false),
                                 .average_weights = golden.option("averageWeights", false),
                                 .trace = Trace::from_bits(bits)};
    Result result;
    if (golden.op() == "multi_head_attention")
      result = forward(layer_of(golden), golden.inputs(), asked);
    else if (golden.op() == "projected_attention")
      result = attention(projected(golden), asked);
    else if (golden.op() == "scaled_dot_product_attention")
      result = attention(golden.inputs(), asked);
    else
      FAIL("unknown op " << golden.op());

    CHECK(entry.at("expected").contains("output"));
    for (const auto& [what, error] : entry.at("expected").items())
      CHECK(golden.difference(what, what == "output"    ? result.output
                                    : what == "weights" ? result.weights.value()
                                                        : result.trace.at(trace_name(what))) == "");
    if (entry.contains("variance")) {
      const Array& scores = result.trace.at(TraceName::scores);
      double mean = 0, square = 0;
      for (const float score : scores.data) mean += score, square += static_cast<double>(score) * score;
      const auto n = static_cast<double>(scores.data.size());
      const double expected = entry.at("variance").at("scores");
      CHECK(std::abs(square / n - mean / n * mean / n - expected) < 1e-5 * expected);
    }
  }
  return cases.size();
}

TEST_CASE("scaled_dot_product_attention gives PyTorch's numbers", "[goldens]") { CHECK(check_goldens("attention.safetensors") > 100); }

TEST_CASE("MultiHeadAttention gives PyTorch's numbers", "[goldens]") { CHECK(check_goldens("multi_head_attention.safetensors") > 70); }

TEST_CASE("the reference cases give PyTorch's numbers", "[goldens]") { CHECK(check_goldens("reference_cases.safetensors") >= 15); }

MultiHeadAttention minilm(const GoldenFile& file) {
  MultiHeadAttention layer({.embed_dim = 384, .num_heads = 12});
  StateDict state;
  for (const char* name : {"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"})
    state.merge(state_of({{name, file.tensors.at(name)}}));
  layer.load_state_dict(state);
  return layer;
}

TEST_CASE("the first layer of a stock sentence encoder attends to a real sentence as in PyTorch", "[goldens]") {
  const GoldenFile file = read_golden(testdata("minilm_layer0.safetensors"));
  const Result result = forward(minilm(file), file.tensors.at("x"), {.need_weights = true});
  const nlohmann::json errors = nlohmann::json::parse(file.metadata.at("expected").get<std::string>());
  const Array &output = file.tensors.at("expected.output"), &weights = file.tensors.at("expected.weights");
  CHECK_THAT(result.output, is_within(golden_tolerance(errors.at("output"), output), output));
  CHECK_THAT(*result.weights, is_within(golden_tolerance(errors.at("weights"), weights), weights));
  CHECK(nlohmann::json::parse(file.metadata.at("tokens").get<std::string>()).size() == static_cast<std::size_t>(weights.dims[3]));
}

TEST_CASE("the same layer attends to other real sentences as in PyTorch", "[goldens]") {
  const MultiHeadAttention layer = minilm(read_golden(testdata("minilm_layer0.safetensors")));
  const GoldenFile file = read_golden(testdata("minilm_sentences.safetensors"));
  const nlohmann::json sentences = nlohmann::json::parse(file.metadata.at("sentences").get<std::string>());
  CHECK(sentences.size() >= 5);
  for (const nlohmann::json& sentence : sentences) {
    const std::string name = sentence.at("name");
    INFO(name);
    const Array& expected = file.tensors.at(name + "/expected.weights");
    const Result result = forward(layer, file.tensors.at(name + "/x"), {.need_weights = true});
    CHECK_THAT(*result.weights, is_within(golden_tolerance(sentence.at("expected").at("weights"), expected), expected));
  }
}

// ---- worked examples and shapes

TEST_CASE("the worked example of three tokens gives the article's numbers at every step", "[reference]") {
  const Array x({3, 4}, {1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1});
  // The article writes weights (in,out).
  const Array w_key = transposed(Array({4, 3}, {0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 1, 0})),
              w_query = transposed(Array({4, 3}, {1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1})),
              w_value = transposed(Array({4, 3}, {0, 2, 0, 0, 3, 0, 1, 0, 3, 1, 1, 0}));
  AttentionCase c;
  c.query = linear(x, w_query);
  c.key = linear(x, w_key);
  c.value = linear(x, w_value);
  c.scale = 1.0F;
  CHECK(c.key.data == std::vector<float>{0, 1, 1, 4, 4, 0, 2, 3, 1});
  CHECK(c.query.data == std::vector<float>{1, 0, 2, 2, 2, 2, 2, 1, 3});
  CHECK(c.value.data == std::vector<float>{1, 2, 3, 2, 8, 0, 2, 6, 3});
  const Result result = attention(c, {.need_weights = true, .trace = kAttentionTrace});
  CHECK(result.trace.at(TraceName::scores).data == std::vector<float>{2, 4, 4, 4, 16, 12, 4, 12, 10});
  // Half a unit of the last digit printed.
  const Array weights({3, 3}, {0.063379F, 0.468311F, 0.468311F, 6.0337e-6F, 0.982008F, 0.017986F, 2.9539e-4F, 0.880537F, 0.119168F});
  CHECK_THAT(*result.weights, is_within(6e-7, weights));
  const Array output({3, 3}, {1.936621F, 6.683105F, 1.595068F, 1.999994F, 7.963992F, 0.053976F, 1.999705F, 7.759892F, 0.358389F});
  CHECK_THAT(result.output, is_within(6e-7 * 8, output));
  // Step 6: each value times its weight, which add up to the output.
  const Array& weighted = result.trace.at(TraceName::weighted_values);
  CHECK(weighted.dims == Shape{3, 3, 3});
  Array sums({3, 3});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t d = 0; d < 3; ++d) {
        CHECK(weighted.data[(i * 3 + j) * 3 + d] == result.weights->data[i * 3 + j] * c.value.data[j * 3 + d]);
        sums.data[i * 3 + d] += weighted.data[(i * 3 + j) * 3 + d];
      }
  CHECK_THAT(sums, is_within(3 * kEps * 8, result.output));
  // With weights rounded as the article does.
  const Array rounded({3, 3}, {0, 0.5F, 0.5F, 0, 1, 0, 0, 0.9F, 0.1F});
  CHECK_THAT(linear(rounded, transposed(c.value)), is_within(2 * kEps * 8, Array({3, 3}, {2, 7, 1.5F, 2, 8, 0, 2, 7.8F, 0.3F})));
}

TEST_CASE("queries, keys and values of different lengths and widths give (3,30,256) and (3,30,50)", "[reference]") {
  Generator random(2);
  AttentionCase c;
  c.query = random.normal({3, 30, 128});
  c.key = random.normal({3, 50, 128});
  c.value = random.normal({3, 50, 256});
  const Result result = attention(c, {.need_weights = true});
  const ReferenceAttention expected = reference_attention(c);
  CHECK(result.output.dims == Shape{3, 30, 256});
  CHECK(result.weights->dims == Shape{3, 30, 50});
  CHECK_THAT(result.output, IsCloseTo(expected.context));
}

TEST_CASE("every intermediate of five heads over a batch of 128 has its shape, also with the scale of the full width", "[reference]") {
  MultiHeadAttention layer({.embed_dim = 200, .num_heads = 5, .scale = static_cast<float>(1 / std::sqrt(200.0))});
  layer.initialize({.seed = 3});
  Generator random(3);
  const Array x = random.normal({128, 32, 200});
  const Result result = forward(layer, x, {.need_weights = true, .trace = Trace::all()});
  const Shape wide{128, 32, 200}, heads{128, 5, 32, 40}, square{128, 5, 32, 32};
  const std::map<TraceName, Shape> shapes{
      {TraceName::q_proj, wide},    {TraceName::k_proj, wide},   {TraceName::v_proj, wide},          {TraceName::q, heads},
      {TraceName::k, heads},        {TraceName::v, heads},       {TraceName::scores, square},        {TraceName::masked_scores, square},
      {TraceName::weights, square}, {TraceName::context, heads}, {TraceName::probabilities, square}, {TraceName::merged, wide},
      {TraceName::output, wide}};
  CHECK(result.trace.size() == shapes.size());
  for (const auto& [name, dims] : shapes) {
    INFO(to_string(name));
    CHECK(result.trace.at(name).dims == dims);
  }
  // merged's memory is context in the order (B,L,H,Dv).
  const Array &context = result.trace.at(TraceName::context), &merged = result.trace.at(TraceName::merged);
  std::size_t wrong = 0;
  for (std::size_t b = 0; b < 128; ++b)
    for (std::size_t h = 0; h < 5; ++h)
      for (std::size_t i = 0; i < 32; ++i)
        for (std::size_t d = 0; d < 40; ++d)
          if (merged.data[(b * 32 + i) * 200 + h * 40 + d] != context.data[((b * 5 + h) * 32 + i) * 40 + d]) ++wrong;
  CHECK(wrong == 0);
  // Dividing by the square root of the full width is the default for one head as wide as all.
  const Array &q = result.trace.at(TraceName::q), &k = result.trace.at(TraceName::k);
  double dot = 0;
  for (std::size_t d = 0; d < 40; ++d) dot += static_cast<double>(q.data[d]) * k.data[40 + d];
  CHECK(std::abs(result.trace.at(TraceName::scores).data[1] - dot / std::sqrt(200.0)) < 1e-5);
}

TEST_CASE("a causal single head without an output projection, and its mask written as tril", "[reference]") {
  Generator random(4);
  const Array x = random.normal({5, 10});
  AttentionCase c;
  c.query = linear(x, random.normal({4, 10}));
  c.key = linear(x, random.normal({4, 10}));
  c.value = linear(x, random.normal({4, 10}));
  c.is_causal = true;
  const Result causal = attention(c, {.need_weights = true, .trace = {TraceName::scores, TraceName::masked_scores}});
  CHECK(causal.output.dims == Shape{5, 4});
  CHECK(causal.weights->dims == Shape{5, 5});
  CHECK(causal.trace.at(TraceName::scores).dims == Shape{5, 5});
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 5; ++j) {
      CHECK((causal.weights->data[i * 5 + j] == 0) == (j > i));
      CHECK((causal.trace.at(TraceName::masked_scores).data[i * 5 + j] == -kInfinity) == (j > i));
    }
  CHECK_THAT(slice(causal.output, 0), HasBitsOf(slice(c.value, 0)));  // the first token sees itself alone
}

TEST_CASE("masks of dims (B,1,1,S) and (B,S,S) say the same padding", "[reference]") {
  Generator random(5);
  MultiHeadAttention layer({.embed_dim = 10, .num_heads = 1});
  const Array x = random.normal({1, 10, 10}), padding({1, 1, 1, 10}, {1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
  Array square({1, 10, 10});
  for (std::size_t i = 0; i < 100; ++i) square.data[i] = padding.data[i % 10];
  AttentionOptions row, all;
  row.mask = mask_of({MaskKind::attend, padding});
  all.mask = mask_of({MaskKind::attend, square});
  CHECK_THAT(forward(layer, x, row).output, HasBitsOf(forward(layer, x, all).output));
}

TEST_CASE("a decoder's causal self-attention and its attention to a padded memory have their shapes and numbers", "[reference]") {
  Generator random(10);
  const std::int64_t E = 32, H = 4;
  MultiHeadAttention self({.embed_dim = E, .num_heads = H}), cross({.embed_dim = E, .num_heads = H});
  self.initialize({.seed = 1});
  cross.initialize({.seed = 2});
  const Array y = random.normal({3, 30, E}), memory = random.normal({3, 50, E});
  const Array decoded = forward(self, y, {.is_causal = true}).output;
  AttentionOptions options{.need_weights = true};
  options.key_padding_mask = mask_of(random_padding(random, MaskKind::block, 3, 50));
  const Result result = forward(cross, decoded, memory, memory, options);
  CHECK(result.output.dims == Shape{3, 30, E});
  CHECK(result.weights->dims == Shape{3, H, 30, 50});
  const Array clean = result.output;
  // What comes later in y does not reach row 9.
  Array later = y;
  for (std::size_t b = 0; b < 3; ++b) std::fill_n(later.data.begin() + static_cast<std::ptrdiff_t>((b * 30 + 10) * 32), 20 * 32, kNaN);
  const Result cut = forward(cross, forward(self, later, {.is_causal = true}).output, memory, memory, options);
  for (std::int64_t b = 0; b < 3; ++b)
    for (std::int64_t i = 0; i < 10; ++i) CHECK_THAT(slice(slice(cut.output, b), i), HasBitsOf(slice(slice(clean, b), i)));
}

TEST_CASE("the example of the documentation compiles and runs", "[reference]") {
  const xt::xtensor<float, 4> q = xt::ones<float>({1, 2, 3, 4}), k = xt::ones<float>({1, 2, 5, 4}), v = xt::ones<float>({1, 2, 5, 6});
  const auto r = attn::scaled_dot_product_attention(q, k, v, {.is_causal = true, .need_weights = true});
  CHECK((r.output.shape() == std::array<std::size_t, 4>{1, 2, 3, 6}));
  CHECK((r.weights->shape() == std::array<std::size_t, 4>{1, 2, 3, 5}));
  CHECK(((*r.weights)(0, 0, 2, 1) == 1.0F / 3));

  attn::MultiHeadAttention mha({.embed_dim = 8, .num_heads = 2});
  const xt::xtensor<float, 3> x = xt::ones<float>({2, 3, 8});
  const xt::xtensor<bool, 1> m{true, true, false};
  const auto y = mha.forward(x, {.mask = attn::Mask::attend(m), .trace = attn::Trace::all()});
  CHECK((y.output.shape() == std::array<std::size_t, 3>{2, 3, 8}));
  CHECK_FALSE(y.weights.has_value());
  CHECK((y.trace->at(attn::TraceName::weights).shape()[3] == 3));
  CHECK((y.trace->at(attn::TraceName::weights)(0, 0, 0, 2) == 0));
}

}  // namespace
}  // namespace attn::test
