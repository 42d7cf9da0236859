#include <algorithm>
#include <atomic>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "attn/parallel/thread_pool.hpp"
#include "support/encoder_case.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace layers_module_test {

using Names = std::vector<std::string>;
using Shapes = std::map<std::string, Shape>;

struct AnyLayer {
  std::function<void(const Arrays&, bool)> load;
  std::function<Arrays()> state;
  std::function<StateDict()> tensors;
  std::function<void(const StateDict&)> load_tensors;
  std::function<Shapes()> shapes;
  std::function<std::int64_t()> count;
  std::function<void(const InitOptions&)> initialize;
  std::function<void(const TrainOptions&)> train;
  std::function<void()> eval;
  std::function<void()> quantize;
  std::function<std::map<std::string, Int8Weight>()> int8_state;
  std::function<Array()> output;
};

template <class Layer, class Options, class Run>
AnyLayer any_layer(const Options& options, Run run) {
  auto layer = std::make_shared<Layer>(options);
  return {[layer](const Arrays& state, bool strict) { layer->load_state_dict(state_of(state), strict); },
          [layer] { return arrays_of(layer->state_dict()); },
          [layer] { return layer->state_dict(); },
          [layer](const StateDict& state) { layer->load_state_dict(state); },
          [layer] { return layer->parameter_shapes(); },
          [layer] { return layer->parameter_count(); },
          [layer](const InitOptions& init) { layer->initialize(init); },
          [layer](const TrainOptions& train) { layer->train(train); },
          [layer] { layer->eval(); },
          [layer] { layer->quantize(); },
          [layer] { return layer->int8_state_dict(); },
          [layer, run] { return run(*layer); }};
}

Array input(std::int64_t E) {
  Generator random(77);
  return random.normal({2, 5, E});
}

struct Kind {
  const char* name;
  std::function<AnyLayer()> make;
  Shapes shapes;
};

AnyLayer attention(const MultiHeadAttentionOptions& options) {
  return any_layer<MultiHeadAttention>(options, [options](const MultiHeadAttention& layer) {
    return forward(layer, input(options.embed_dim), input(options.kdim.value_or(options.embed_dim)), input(options.vdim.value_or(options.embed_dim)))
        .output;
  });
}
AnyLayer encoder_layer(const TransformerEncoderLayerOptions& options) {
  return any_layer<TransformerEncoderLayer>(options, [E = options.d_model](const auto& layer) { return forward(layer, input(E)).output; });
}
AnyLayer encoder(const TransformerEncoderOptions& options) {
  return any_layer<TransformerEncoder>(options, [E = options.layer.d_model](const auto& layer) { return forward(layer, input(E)).output; });
}
AnyLayer classifier(const TransformerClassifierOptions& options) {
  return any_layer<TransformerClassifier>(options,
                                          [E = options.encoder.layer.d_model](const auto& layer) { return forward(layer, input(E)).logits; });
}
AnyLayer embedding(const EmbeddingOptions& options) {
  return any_layer<Embedding>(options, [](const auto& layer) { return forward(layer, {0, 2, 1}, {3}); });
}

Shapes under(const std::string& prefix, const Shapes& shapes) {
  Shapes all;
  for (const auto& [name, shape] : shapes) all.emplace(prefix + name, shape);
  return all;
}
Shapes together(std::initializer_list<Shapes> parts) {
  Shapes all;
  for (const Shapes& part : parts) all.insert(part.begin(), part.end());
  return all;
}

const Shapes kLayer{{"self_attn.in_proj_weight", {18, 6}},
                    {"self_attn.in_proj_bias", {18}},
                    {"self_attn.out_proj.weight", {6, 6}},
                    {"self_attn.out_proj.bias", {6}},
                    {"linear1.weight", {8, 6}},
                    {"linear1.bias", {8}},
                    {"linear2.weight", {6, 8}},
                    {"linear2.bias", {6}},
                    {"norm1.weight", {6}},
                    {"norm1.bias", {6}},
                    {"norm2.weight", {6}},
                    {"norm2.bias", {6}}};
const Shapes kNorm{{"norm.weight", {6}}, {"norm.bias", {6}}};
const Shapes kStack = together({under("layers.0.", kLayer), under("layers.1.", kLayer), kNorm});

const Kind kKinds[] = {
    {"MultiHeadAttention",
     [] { return attention({.embed_dim = 6, .num_heads = 2}); },
     {{"in_proj_weight", {18, 6}}, {"in_proj_bias", {18}}, {"out_proj.weight", {6, 6}}, {"out_proj.bias", {6}}}},
    {"MultiHeadAttention with bias rows and a zero row",
     [] { return attention({.embed_dim = 6, .num_heads = 2, .add_bias_kv = true, .add_zero_attn = true}); },
     {{"in_proj_weight", {18, 6}},
      {"in_proj_bias", {18}},
      {"bias_k", {1, 1, 6}},
      {"bias_v", {1, 1, 6}},
      {"out_proj.weight", {6, 6}},
      {"out_proj.bias", {6}}}},
    {"MultiHeadAttention with keys and values of other widths",
     [] { return attention({.embed_dim = 6, .num_heads = 2, .kdim = 5, .vdim = 7}); },
     {{"q_proj_weight", {6, 6}},
      {"k_proj_weight", {6, 5}},
      {"v_proj_weight", {6, 7}},
      {"in_proj_bias", {18}},
      {"out_proj.weight", {6, 6}},
      {"out_proj.bias", {6}}}},
    {"MultiHeadAttention with grouped heads of own widths and bias rows",
     [] {
       return attention(
           {.embed_dim = 6, .num_heads = 4, .num_key_value_heads = 2, .kdim = 5, .head_dim = 3, .value_head_dim = 7, .add_bias_kv = true});
     },
     {{"q_proj.weight", {12, 6}},
      {"q_proj.bias", {12}},
      {"k_proj.weight", {6, 5}},
      {"k_proj.bias", {6}},
      {"v_proj.weight", {14, 6}},
      {"v_proj.bias", {14}},
      {"bias_k", {1, 1, 6}},
      {"bias_v", {1, 1, 14}},
      {"out_proj.weight", {6, 28}},
      {"out_proj.bias", {6}}}},
    {"MultiHeadAttention without biases and output projection",
     [] { return attention({.embed_dim = 6, .num_heads = 2, .bias = false, .out_proj = false}); },
     {{"in_proj_weight", {18, 6}}}},
    {"TransformerEncoderLayer", [] { return encoder_layer({.d_model = 6, .nhead = 2, .dim_feedforward = 8}); }, kLayer},
    {"TransformerEncoderLayer without biases, gated, with RMS norms",
     [] { return encoder_layer({.d_model = 6, .nhead = 2, .dim_feedforward = 8, .bias = false, .norm = NormKind::rms_norm, .gated = true}); },
     {{"self_attn.in_proj_weight", {18, 6}},
      {"self_attn.out_proj.weight", {6, 6}},
      {"linear1.weight", {8, 6}},
      {"linear_gate.weight", {8, 6}},
      {"linear2.weight", {6, 8}},
      {"norm1.weight", {6}},
      {"norm2.weight", {6}}}},
    {"TransformerEncoder", [] { return encoder({.layer = {.d_model = 6, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2, .final_norm = true}); },
     kStack},
    {"TransformerEncoder without final norm", [] { return encoder({.layer = {.d_model = 6, .nhead = 2, .dim_feedforward = 8}, .num_layers = 1}); },
     under("layers.0.", kLayer)},
    {"TransformerClassifier",
     [] {
       return classifier({.encoder = {.layer = {.d_model = 6, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2, .final_norm = true},
                          .num_classes = 3,
                          .pooling = Pooling::mean});
     },
     together({under("encoder.", kStack), {{"classifier.weight", {3, 6}}, {"classifier.bias", {3}}}})},
    {"TransformerClassifier without biases but the head's",
     [] {
       return classifier(
           {.encoder = {.layer = {.d_model = 6, .nhead = 2, .dim_feedforward = 8, .bias = false, .norm = NormKind::rms_norm}, .num_layers = 1},
            .num_classes = 3});
     },
     together({under("encoder.layers.0.", {{"self_attn.in_proj_weight", {18, 6}},
                                           {"self_attn.out_proj.weight", {6, 6}},
                                           {"linear1.weight", {8, 6}},
                                           {"linear2.weight", {6, 8}},
                                           {"norm1.weight", {6}},
                                           {"norm2.weight", {6}}}),
               {{"classifier.weight", {3, 6}}, {"classifier.bias", {3}}}})},
    {"Embedding", [] { return embedding({.num_embeddings = 4, .embedding_dim = 6, .padding_idx = 3}); }, {{"weight", {4, 6}}}},
};

TEST_CASE("every layer has torch's names and shapes, and counts its parameters", "[layers][state]") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    const AnyLayer layer = kind.make();
    CHECK(layer.shapes() == kind.shapes);
    Shapes of_state;
    std::int64_t count = 0;
    for (const auto& [name, array] : layer.state()) {
      of_state.emplace(name, array.dims);
      count += static_cast<std::int64_t>(array.data.size());
    }
    CHECK(of_state == kind.shapes);
    CHECK(layer.count() == count);
  }
}

std::vector<std::uint32_t> raw_bits(const Array& x) {
  std::vector<std::uint32_t> bits;
  for (const float value : x.data) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

TEST_CASE("a state is saved to a safetensors file and loaded bit for bit, whatever it contains", "[layers][state][io]") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    Generator random(1);
    Arrays state;
    for (const auto& [name, shape] : kind.shapes) {
      Array values(shape);
      for (float& value : values.data) {
        const auto bits = static_cast<std::uint32_t>(random.next());
        value = std::bit_cast<float>(random.coin(0.2) ? bits & 0x807fffff : bits);
      }
      state.emplace(name, std::move(values));
    }
    const AnyLayer first = kind.make(), second = kind.make();
    first.load(state, true);
    second.load_tensors(parse_safetensors(write_safetensors(first.tensors())));
    for (const AnyLayer* layer : {&first, &second}) {
      const Arrays got = layer->state();
      REQUIRE(got.size() == state.size());
      for (const auto& [name, array] : state) {
        INFO(name);
        CHECK(got.at(name).dims == array.dims);
        CHECK(raw_bits(got.at(name)) == raw_bits(array));
      }
    }
  }
}

TEST_CASE("layers with the same state give the same bits", "[layers][state]") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    Generator random(2);
    const Arrays state = draw_state(random, kind.shapes);
    const AnyLayer first = kind.make(), second = kind.make();
    first.load(state, true);
    second.load_tensors(parse_safetensors(write_safetensors(first.tensors(), {{"format", "pt"}})));
    CHECK_THAT(second.output(), HasBitsOf(first.output()));
    CHECK_THAT(kind.make().output(), !HasBitsOf(first.output()));
  }
}

struct Mismatch {
  Names missing, unexpected, mis_shaped;
  bool operator==(const Mismatch&) const = default;
};

Mismatch mismatch_of(const AnyLayer& layer, const Arrays& state, bool strict) {
  try {
    layer.load(state, strict);
  } catch (const Error& error) {
    CHECK(to_string(error.code()) == "MISMATCH");
    const auto list = [&](const char* name) {
      const auto found = error.detail().find(name);
      return found != error.detail().end() ? std::get<Names>(found->second) : Names{"no such detail"};
    };
    const Mismatch found{list("missing"), list("unexpected"), list("mis_shaped")};
    const std::string message = error.what();
    INFO(message);
    CHECK(message.starts_with("load_state_dict: "));
    for (const Names* names : {&found.missing, &found.unexpected, &found.mis_shaped})
      for (const std::string& name : *names) CHECK(message.find(name) != std::string::npos);
    return found;
  }
  FAIL_CHECK("nothing was thrown");
  return {};
}

TEST_CASE("a failed load lists all mismatches in one error and changes nothing", "[layers][state][errors]") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    Generator random(3);
    const AnyLayer layer = kind.make();
    const Arrays good = draw_state(random, kind.shapes);
    layer.load(good, true);
    const Array before = layer.output();

    Names names;
    for (const auto& [name, shape] : kind.shapes) names.push_back(name);
    CHECK(mismatch_of(layer, {}, true) == Mismatch{names, {}, {}});
    CHECK(mismatch_of(layer, {{"nothing", Array({1})}}, true) == Mismatch{names, {"nothing"}, {}});
    layer.load({}, false);
    layer.load({{"nothing", Array({1})}}, false);

    for (const bool other_rank : {false, true}) {
      Arrays bad;
      Names mis_shaped;
      for (const auto& [name, shape] : kind.shapes) {
        Shape wrong = shape;
        if (other_rank)
          wrong.push_back(1);
        else
          ++wrong[wrong.rank() - 1];
        bad.emplace(name, Array(wrong));
        mis_shaped.push_back(name + " has shape " + to_string(wrong) + ", expected " + to_string(shape));
      }
      for (const bool strict : {true, false}) CHECK(mismatch_of(layer, bad, strict) == Mismatch{{}, {}, mis_shaped});
    }

    if (kind.shapes.size() >= 3) {
      Arrays mixed = draw_state(random, kind.shapes);
      const std::string missing = names.front(), wrong = names.back();
      mixed.erase(missing);
      mixed[wrong] = Array({2, 2, 2});
      mixed["zzz.weight"] = Array({1});
      const Names mis_shaped{wrong + " has shape (2,2,2), expected " + to_string(kind.shapes.at(wrong))};
      CHECK(mismatch_of(layer, mixed, true) == Mismatch{{missing}, {"zzz.weight"}, mis_shaped});
      CHECK(mismatch_of(layer, mixed, false) == Mismatch{{}, {}, mis_shaped});
    }
    CHECK(layer.state() == good);
    CHECK_THAT(layer.output(), HasBitsOf(before));
  }
}

TEST_CASE("a load that is not strict loads the names that exist and leaves the others unchanged", "[layers][state]") {
  for (const Kind& kind : kKinds) {
    Generator random(4);
    const Arrays old_state = draw_state(random, kind.shapes), new_state = draw_state(random, kind.shapes);
    for (const auto& [name, array] : new_state) {
      INFO(kind.name << ", " << name << " alone");
      const AnyLayer layer = kind.make();
      layer.load(old_state, true);
      layer.load({{name, array}, {"something.else", Array({2})}}, false);
      Arrays expected = old_state;
      expected[name] = array;
      CHECK(layer.state() == expected);
    }
  }
}

TEST_CASE("each layer of a stack may have separate or packed projections", "[layers][state]") {
  Generator random(5);
  const Arrays state = draw_state(random, kStack);
  const AnyLayer together = encoder({.layer = {.d_model = 6, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2, .final_norm = true}),
                 apart = encoder({.layer = {.d_model = 6, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2, .final_norm = true});
  Arrays mixed = state;
  const std::string at = "layers.1.self_attn.";
  const Array weight = state.at(at + "in_proj_weight"), bias = reshaped(state.at(at + "in_proj_bias"), {18, 1});
  mixed.erase(at + "in_proj_weight");
  mixed.erase(at + "in_proj_bias");
  const char* const letters[] = {"q", "k", "v"};
  for (std::int64_t i = 0; i < 3; ++i) {
    mixed[at + letters[i] + "_proj.weight"] = rows_of(weight, 6 * i, 6);
    mixed[at + letters[i] + "_proj.bias"] = reshaped(rows_of(bias, 6 * i, 6), {6});
  }
  together.load(state, true);
  apart.load(mixed, true);
  CHECK(apart.state() == state);
  CHECK_THAT(apart.output(), HasBitsOf(together.output()));

  Arrays part = mixed;
  part.erase(at + "k_proj.bias");
  part["layers.0.self_attn.bias_k"] = Array({1, 1, 6});
  CHECK(mismatch_of(apart, part, true) == Mismatch{{at + "k_proj.bias"}, {"layers.0.self_attn.bias_k"}, {}});
  CHECK(apart.state() == state);
}

TEST_CASE("a state without the enclosing layer's prefix is a MISMATCH error", "[layers][state][errors]") {
  Generator random(6);
  const Arrays of_layer = draw_state(random, kLayer);
  const Mismatch found = mismatch_of(encoder({.layer = {.d_model = 6, .nhead = 2, .dim_feedforward = 8}, .num_layers = 1}), of_layer, true);
  CHECK(found.missing.size() == kLayer.size());
  CHECK(found.unexpected.size() == kLayer.size());
  CHECK(found.missing.front() == "layers.0." + found.unexpected.front());
}

TEST_CASE("a layer copies its numbers: loaded and returned states are independent of it", "[layers][state]") {
  Generator random(7);
  TransformerEncoderLayer layer({.d_model = 6, .nhead = 2, .dim_feedforward = 8});
  StateDict state = state_of(draw_state(random, kLayer));
  layer.load_state_dict(state);
  const Array before = forward(layer, input(6)).output;
  for (auto& [name, tensor] : state) tensor.fill(0);
  StateDict taken = layer.state_dict();
  for (auto& [name, tensor] : taken) tensor.fill(0);
  CHECK_THAT(forward(layer, input(6)).output, HasBitsOf(before));
}

struct Distribution {
  enum class Law { zero, one, uniform, normal } law;
  double deviation = 0;
};

Distribution uniform(double bound) { return {Distribution::Law::uniform, bound / std::sqrt(3.0)}; }
Distribution normal(double deviation) { return {Distribution::Law::normal, deviation}; }
constexpr Distribution kZero{Distribution::Law::zero}, kOne{Distribution::Law::one};

void check_moments(const Array& x, std::size_t first, std::size_t count, const Distribution& expected) {
  REQUIRE(count >= 64);
  const auto begin = x.data.begin() + static_cast<std::ptrdiff_t>(first), end = begin + static_cast<std::ptrdiff_t>(count);
  if (expected.law == Distribution::Law::zero || expected.law == Distribution::Law::one) {
    const float constant = expected.law == Distribution::Law::one ? 1 : 0;
    CHECK(std::all_of(begin, end, [&](float value) { return value == constant; }));
    return;
  }
  const auto n = static_cast<double>(count), sigma = expected.deviation;
  double mean = 0, second = 0, fourth = 0, largest = 0;
  for (auto at = begin; at != end; ++at) {
    const double value = *at / sigma;
    mean += value / n, second += value * value / n, fourth += value * value * value * value / n, largest = std::max(largest, std::abs(value));
  }
  const bool is_uniform = expected.law == Distribution::Law::uniform;
  const double kurtosis = is_uniform ? 1.8 : 3, eighth = is_uniform ? 9 : 105;
  INFO("mean " << mean << ", second moment " << second << ", fourth " << fourth << ", largest " << largest << " of " << count
               << " in standard deviations");
  CHECK(std::abs(mean) < 5 / std::sqrt(n));
  CHECK(std::abs(second - 1) < 5 * std::sqrt((kurtosis - 1) / n));
  CHECK(std::abs(fourth - kurtosis) < 5 * std::sqrt((eighth - kurtosis * kurtosis) / n));
  if (is_uniform) {
    CHECK(largest <= std::sqrt(3.0) * (1 + kEps));
    CHECK(largest > std::sqrt(3.0) * (1 - 20 / n));
  }
}

constexpr std::int64_t kE = 64, kF = 160, kC = 72, kN = 100;

using Expectation = std::map<std::string, Distribution>;

void check_distributions(const Arrays& state, const Expectation& expected) {
  CHECK(state.size() == expected.size());
  for (const auto& [name, distribution] : expected) {
    INFO(name);
    REQUIRE(state.contains(name));
    check_moments(state.at(name), 0, state.at(name).data.size(), distribution);
  }
}

Expectation prefixed(const std::string& prefix, const Expectation& expectation) {
  Expectation all;
  for (const auto& [name, distribution] : expectation) all.emplace(prefix + name, distribution);
  return all;
}

TEST_CASE("new layers have the distributions of torch's constructors", "[layers][init]") {
  const double e = kE, f = kF, root = 1 / std::sqrt(e);
  const Expectation attention_part{
      {"in_proj_weight", uniform(std::sqrt(6 / (e + 3 * e)))}, {"in_proj_bias", kZero}, {"out_proj.weight", uniform(root)}, {"out_proj.bias", kZero}};
  Expectation layer = prefixed("self_attn.", attention_part);
  layer.insert({{"linear1.weight", uniform(root)},
                {"linear1.bias", uniform(root)},
                {"linear_gate.weight", uniform(root)},
                {"linear_gate.bias", uniform(root)},
                {"linear2.weight", uniform(1 / std::sqrt(f))},
                {"linear2.bias", uniform(1 / std::sqrt(f))},
                {"norm1.weight", kOne},
                {"norm1.bias", kZero},
                {"norm2.weight", kOne},
                {"norm2.bias", kZero}});
  Expectation stack;
  for (const char* prefix : {"encoder.layers.0.", "encoder.layers.1."}) stack.merge(prefixed(prefix, layer));
  stack.insert(
      {{"encoder.norm.weight", kOne}, {"encoder.norm.bias", kZero}, {"classifier.weight", uniform(root)}, {"classifier.bias", uniform(root)}});
  Expectation with_rows = attention_part;
  with_rows.insert({{"bias_k", normal(root)}, {"bias_v", normal(root)}});

  for (const std::uint64_t seed : {0, 1, 2}) {
    INFO("seed " << seed);
    const auto state = [&](const AnyLayer& module) {
      if (seed > 0) module.initialize({.seed = seed});
      return module.state();
    };
    check_distributions(state(attention({.embed_dim = kE, .num_heads = 4, .add_bias_kv = true})), with_rows);
    check_distributions(state(encoder_layer({.d_model = kE, .nhead = 4, .dim_feedforward = kF, .gated = true})), layer);
    check_distributions(
        state(
            classifier({.encoder = {.layer = {.d_model = kE, .nhead = 4, .dim_feedforward = kF, .gated = true}, .num_layers = 2, .final_norm = true},
                        .num_classes = kC})),
        stack);
    check_distributions(state(embedding({.num_embeddings = kN, .embedding_dim = kE})), {{"weight", normal(1)}});
    check_distributions(
        state(attention({.embed_dim = kE, .num_heads = 4, .num_key_value_heads = 2, .kdim = 96, .head_dim = 32, .value_head_dim = 40})),
        {{"q_proj.weight", uniform(std::sqrt(6 / (e + 128)))},
         {"q_proj.bias", kZero},
         {"k_proj.weight", uniform(std::sqrt(6 / (96.0 + 64)))},
         {"k_proj.bias", kZero},
         {"v_proj.weight", uniform(std::sqrt(6 / (e + 80)))},
         {"v_proj.bias", kZero},
         {"out_proj.weight", uniform(1 / std::sqrt(160.0))},
         {"out_proj.bias", kZero}});
  }
}

TEST_CASE("named schemes draw each weight by the fans of its projection and set biases to zero", "[layers][init]") {
  struct Case {
    InitScheme scheme;
    std::function<Distribution(double in, double out)> draw;
  };
  const Case cases[] = {{InitScheme::xavier_uniform, [](double in, double out) { return uniform(std::sqrt(6 / (in + out))); }},
                        {InitScheme::xavier_normal, [](double in, double out) { return normal(std::sqrt(2 / (in + out))); }},
                        {InitScheme::kaiming_uniform, [](double in, double) { return uniform(std::sqrt(6 / in)); }},
                        {InitScheme::kaiming_normal, [](double in, double) { return normal(std::sqrt(2 / in)); }},
                        {InitScheme::normal, [](double, double) { return normal(0.02); }}};
  const double e = kE, f = kF;
  for (const Case& c : cases)
    for (const double std : {0.02, 0.5}) {
      if (std != 0.02 && c.scheme != InitScheme::normal) continue;
      INFO(kInitSchemeNames[static_cast<std::size_t>(c.scheme)] << ", std " << std);
      const auto draw = [&](double in, double out) { return std == 0.02 ? c.draw(in, out) : normal(std); };
      const InitOptions options{.scheme = c.scheme, .seed = 4, .std = std};
      const auto state = [&](const AnyLayer& module) {
        Generator random(1);
        module.load(draw_state(random, module.shapes()), true);
        module.initialize(options);
        return module.state();
      };
      Arrays layer =
          state(encoder({.layer = {.d_model = kE, .nhead = 4, .dim_feedforward = kF, .gated = true}, .num_layers = 1, .final_norm = true}));
      const Array packed = layer.at("layers.0.self_attn.in_proj_weight");
      for (std::size_t part = 0; part < 3; ++part) check_moments(packed, part * kE * kE, kE * kE, draw(e, e));
      check_distributions(layer, {{"layers.0.self_attn.in_proj_weight", draw(e, e)},
                                  {"layers.0.self_attn.in_proj_bias", kZero},
                                  {"layers.0.self_attn.out_proj.weight", draw(e, e)},
                                  {"layers.0.self_attn.out_proj.bias", kZero},
                                  {"layers.0.linear1.weight", draw(e, f)},
                                  {"layers.0.linear1.bias", kZero},
                                  {"layers.0.linear_gate.weight", draw(e, f)},
                                  {"layers.0.linear_gate.bias", kZero},
                                  {"layers.0.linear2.weight", draw(f, e)},
                                  {"layers.0.linear2.bias", kZero},
                                  {"layers.0.norm1.weight", kOne},
                                  {"layers.0.norm1.bias", kZero},
                                  {"layers.0.norm2.weight", kOne},
                                  {"layers.0.norm2.bias", kZero},
                                  {"norm.weight", kOne},
                                  {"norm.bias", kZero}});
      check_distributions(state(attention({.embed_dim = kE, .num_heads = 4, .kdim = 96, .vdim = 32, .add_bias_kv = true})),
                          {{"q_proj_weight", draw(e, e)},
                           {"k_proj_weight", draw(96, e)},
                           {"v_proj_weight", draw(32, e)},
                           {"in_proj_bias", kZero},
                           {"bias_k", draw(e, e)},
                           {"bias_v", draw(e, e)},
                           {"out_proj.weight", draw(e, e)},
                           {"out_proj.bias", kZero}});
      check_distributions(state(embedding({.num_embeddings = kN, .embedding_dim = kE})), {{"weight", draw(e, kN)}});
    }
}

TEST_CASE("a seed gives the same weights again, another seed gives others, and all parameters differ", "[layers][init]") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    const AnyLayer layer = kind.make();
    const Arrays born = layer.state();
    const auto draw = [&](std::uint64_t seed, InitScheme scheme = InitScheme::torch) {
      layer.initialize({.scheme = scheme, .seed = seed});
      return layer.state();
    };
    const Arrays one = draw(1), two = draw(2), high = draw((std::uint64_t{1} << 32) + 1), normals = draw(1, InitScheme::normal);
    CHECK(draw(0) == born);
    CHECK(draw(1) == one);
    CHECK(draw(1, InitScheme::normal) == normals);
    std::set<float> firsts;
    std::size_t drawn = 0;
    for (const auto& [name, array] : one) {
      INFO(name);
      const bool constant = std::all_of(array.data.begin(), array.data.end(), [&](float v) { return v == array.data[0]; });
      CHECK((array == two.at(name)) == constant);
      CHECK((array == high.at(name)) == constant);
      if (constant) continue;
      const Array& normal = normals.at(name);
      if (normal.data[0] == 0) continue;
      ++drawn;
      firsts.insert(normal.data[0]);
    }
    CHECK(firsts.size() == drawn);
  }
}

TEST_CASE("invalid options of the initialization change nothing", "[layers][init][errors]") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    const AnyLayer layer = kind.make();
    const Arrays before = layer.state();
    for (const double std : {-1.0, 1.1e37, static_cast<double>(kNaN), static_cast<double>(kInfinity)})
      check_error({ErrorCode::config, "initialize", "std", {}}, [&] { layer.initialize({.scheme = InitScheme::normal, .std = std}); });
    CHECK(layer.state() == before);
  }
}

TEST_CASE("training mode and its step survive a load and an initialization", "[layers][dropout]") {
  for (const Kind& kind : kKinds) {
    if (std::string(kind.name) == "Embedding") continue;
    INFO(kind.name);
    Generator random(8);
    const Arrays state = draw_state(random, kind.shapes);
    const bool drops = std::string(kind.name).starts_with("Transformer");
    const AnyLayer layer = kind.make(), other = kind.make();
    layer.load(state, true);
    const Array still = layer.output();
    CHECK_THAT(layer.output(), HasBitsOf(still));
    layer.train({.seed = 3});
    const Array first = layer.output(), second = layer.output();
    if (drops) {
      CHECK_THAT(first, !HasBitsOf(still));
      CHECK_THAT(second, !HasBitsOf(first));
    } else {
      CHECK_THAT(first, HasBitsOf(still));
    }
    layer.train({.seed = 3});
    CHECK_THAT(layer.output(), HasBitsOf(first));
    CHECK_THROWS(layer.load({}, true));
    layer.load(state, true);
    CHECK_THAT(layer.output(), HasBitsOf(second));
    other.train({.seed = 3});
    other.initialize({.seed = 9});
    other.load(state, true);
    CHECK_THAT(other.output(), HasBitsOf(first));
    layer.eval();
    CHECK_THAT(layer.output(), HasBitsOf(still));
    layer.train({.seed = 3});
    CHECK_THAT(layer.output(), HasBitsOf(first));
  }
}

template <class Layer>
void check_shared(const char* name, const Layer& layer) {
  Generator random(9);
  std::vector<Array> inputs, expected;
  for (const std::int64_t length : {5, 33, 64}) {
    inputs.push_back(random.normal({2, length, 24}));
    expected.push_back(forward(layer, inputs.back()).output);
  }
  for (const unsigned threads : {1U, 2U}) {
    set_num_threads(threads);
    std::atomic<int> wrong{0};
    {
      std::vector<std::jthread> users;
      for (std::size_t user = 0; user < inputs.size(); ++user)
        users.emplace_back([&, user] {
          for (int repeat = 0; repeat < 10; ++repeat)
            if (!HasBitsOf(expected[user]).match(forward(layer, inputs[user]).output)) ++wrong;
        });
    }
    INFO(name << ", seed 9, " << threads << " threads");
    CHECK(wrong == 0);
  }
  set_num_threads(1);
}

TEST_CASE("several user threads may forward one layer at the same time", "[layers][threads]") {
  Generator random(8);
  check_shared("MultiHeadAttention", drawn_layer<MultiHeadAttention>(random, MultiHeadAttentionOptions{.embed_dim = 24, .num_heads = 3}));
  check_shared("TransformerEncoderLayer",
               drawn_layer<TransformerEncoderLayer>(random, TransformerEncoderLayerOptions{.d_model = 24, .nhead = 3, .dim_feedforward = 40}));
  check_shared("TransformerEncoder",
               drawn_layer<TransformerEncoder>(
                   random, TransformerEncoderOptions{.layer = {.d_model = 24, .nhead = 3, .dim_feedforward = 40}, .num_layers = 2}));
  check_shared("TransformerClassifier",
               drawn_layer<TransformerClassifier>(
                   random, TransformerClassifierOptions{.encoder = {.layer = {.d_model = 24, .nhead = 3, .dim_feedforward = 40}, .num_layers = 1},
                                                        .num_classes = 4,
                                                        .pooling = Pooling::mean}));
}

TEST_CASE("a moved layer gives the same bits", "[layers][properties]") {
  Generator random(10);
  const Array x = random.normal({2, 9, 8});
  auto layer = drawn_layer<TransformerEncoderLayer>(random, TransformerEncoderLayerOptions{.d_model = 8, .nhead = 2, .dim_feedforward = 12});
  const Array expected = forward(layer, x).output;
  TransformerEncoderLayer made(std::move(layer)), assigned({.d_model = 8, .nhead = 2, .dim_feedforward = 12});
  CHECK_THAT(forward(made, x).output, HasBitsOf(expected));
  CHECK_THAT(forward(assigned, x).output, !HasBitsOf(expected));
  assigned = std::move(made);
  CHECK_THAT(forward(assigned, x).output, HasBitsOf(expected));
  CHECK_THAT(forward(assigned, random.normal({3, 40, 8})).output, !HasBitsOf(expected));
  CHECK_THAT(forward(assigned, x).output, HasBitsOf(expected));
}

/// The nearest multiples of max|w| / 127 of a row.
Int8Weight nearest_int8(const Array& weight) {
  const auto rows = static_cast<std::size_t>(weight.dims[0]), width = static_cast<std::size_t>(weight.dims[1]);
  Int8Weight expected{{}, {}, weight.dims};
  for (std::size_t row = 0; row < rows; ++row) {
    float most = 0;
    for (std::size_t i = 0; i < width; ++i) most = std::max(most, std::abs(weight.data[row * width + i]));
    const float scale = most / 127;
    expected.scale.push_back(scale);
    for (std::size_t i = 0; i < width; ++i)
      expected.data.push_back(scale == 0 ? std::int8_t{0} : static_cast<std::int8_t>(std::nearbyint(weight.data[row * width + i] / scale)));
  }
  return expected;
}

TEST_CASE("quantize() converts every two-dimensional weight to int8 and leaves the others unchanged", "[layers][int8]") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    const AnyLayer layer = kind.make();
    CHECK(layer.int8_state().empty());
    const Arrays before = layer.state();
    const Array output = layer.output();
    layer.quantize();
    const auto int8 = layer.int8_state();
    const Arrays after = layer.state();
    CHECK(layer.shapes() == kind.shapes);
    std::size_t matrices = 0;
    for (const auto& [name, array] : before) {
      INFO(name);
      if (array.dims.rank() != 2) {
        CHECK_FALSE(int8.contains(name));
        CHECK_THAT(after.at(name), HasBitsOf(array));
        continue;
      }
      ++matrices;
      REQUIRE(int8.contains(name));
      const Int8Weight expected = nearest_int8(array);
      const Int8Weight& got = int8.at(name);
      CHECK(got.shape == expected.shape);
      CHECK(got.scale == expected.scale);
      CHECK(got.data == expected.data);
      const auto width = static_cast<std::size_t>(array.dims[1]);
      Array product = array;
      for (std::size_t i = 0; i < product.data.size(); ++i) product.data[i] = got.scale[i / width] * static_cast<float>(got.data[i]);
      CHECK_THAT(after.at(name), HasBitsOf(product));
    }
    CHECK(int8.size() == matrices);

    const Array quantized = layer.output();
    float most = 0, apart = 0;
    for (std::size_t i = 0; i < output.data.size(); ++i) {
      most = std::max(most, std::abs(output.data[i]));
      apart = std::max(apart, std::abs(output.data[i] - quantized.data[i]));
    }
    // Relative errors: weights 1/254 of the row's maximum, activations 1/510, in at most six products.
    CHECK(apart > 0);
    CHECK(apart < most / 10);

    layer.quantize();
    CHECK_THAT(layer.output(), HasBitsOf(quantized));
    CHECK(layer.int8_state().size() == matrices);
  }
}

TEST_CASE("a quantized layer is float32 again after new weights", "[layers][int8]") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    const AnyLayer layer = kind.make();
    const Arrays state = layer.state();
    const Array output = layer.output();
    const Array drawn = [&] {
      const AnyLayer other = kind.make();
      other.initialize({.seed = 5});
      return other.output();
    }();
    layer.quantize();
    layer.load(state, true);
    CHECK(layer.int8_state().empty());
    CHECK_THAT(layer.output(), HasBitsOf(output));
    layer.quantize();
    layer.initialize({.seed = 5});
    CHECK(layer.int8_state().empty());
    CHECK_THAT(layer.output(), HasBitsOf(drawn));
    layer.quantize();
    const Arrays rounded = layer.state();
    layer.load({}, false);
    CHECK(layer.int8_state().empty());
    for (const auto& [name, array] : layer.state()) CHECK_THAT(array, HasBitsOf(rounded.at(name)));
  }
}

TEST_CASE("a weight without a valid scale is refused, and the layer stays unchanged", "[layers][int8]") {
  for (const Kind& kind : kKinds)
    for (const float value : {kNaN, kInfinity, -kInfinity})
      for (const auto& [name, shape] : kind.shapes) {
        if (shape.rank() != 2) continue;
        INFO(kind.name << ", " << name << ", " << value);
        const AnyLayer layer = kind.make();
        Arrays state = layer.state();
        state.at(name).data.back() = value;
        layer.load(state, true);
        try {
          layer.quantize();
          FAIL("taken");
        } catch (const Error& error) {
          CHECK(error.code() == ErrorCode::format);
          CHECK(std::string(error.what()).find(name) != std::string::npos);
        }
        CHECK(layer.int8_state().empty());
        for (const auto& [each, array] : layer.state()) CHECK_THAT(array, HasBitsOf(state.at(each)));
      }
  MultiHeadAttention wide({.embed_dim = 1, .num_heads = 1, .kdim = 65537});
  try {
    wide.quantize();
    FAIL("taken");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unsupported);
  }
  MultiHeadAttention as_wide_as_can_be({.embed_dim = 1, .num_heads = 1, .kdim = 65536});
  as_wide_as_can_be.quantize();
}

}  // namespace layers_module_test
}  // namespace attn::test
