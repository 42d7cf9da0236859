#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>
#include <set>

#include "attn/attn.hpp"
#include "support/call.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"
#include "support/tensors.hpp"

namespace attn::test {
namespace goldens_test {

using Names = std::set<std::string>;
using Arrays = std::map<std::string, Array>;

const Names kAttentionOptions{"needWeights", "averageWeights", "isCausal", "scale", "enableGqa", "fullyMasked", "trace"};
const Names kMultiHeadOptions{"embedDim",     "numHeads", "numKeyValueHeads", "kdim",        "vdim",  "headDim",
                              "valueHeadDim", "bias",     "addBiasKv",        "addZeroAttn", "scale", "outProj"};
const Names kEncoderOptions{"isCausal", "fullyMasked", "outputAttentions", "outputHiddenStates", "trace"};
const Names kLayerOptions{"dModel", "nhead", "dimFeedforward", "dropout", "activation", "layerNormEps", "normFirst", "bias", "norm", "gated"};
const Names kEmbeddingOptions{"numEmbeddings", "embeddingDim", "paddingIdx"};

Names with(Names names, const Names& more) {
  names.insert(more.begin(), more.end());
  return names;
}

Arrays below(const std::string& prefix, const Arrays& state) {
  Arrays part;
  for (const auto& [name, array] : state)
    if (name.starts_with(prefix)) part.emplace(name.substr(prefix.size()), array);
  return part;
}

template <class Layer, class Options>
Layer loaded(const Options& options, const Arrays& state) {
  Layer layer(options);
  layer.load_state_dict(state_of(state));
  return layer;
}

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

Arrays named(const Result& result) {
  Arrays results{{"output", result.output}};
  if (result.weights) results.emplace("weights", *result.weights);
  for (const auto& [name, array] : result.trace)
    if (name != TraceName::output && name != TraceName::weights) results.emplace(to_string(name), array);
  return results;
}

Arrays named(const EncoderOutput& result) {
  Arrays results{{"output", result.output}, {"logits", result.logits}};
  for (const auto& [list, title] : {std::pair{&result.attentions, "attentions."}, std::pair{&result.hidden_states, "hiddenStates."}})
    for (std::size_t i = 0; *list && i < (*list)->size(); ++i) results.emplace(title + std::to_string(i), (**list)[i]);
  if (result.trace)
    for (const auto& [layer, traces] : *result.trace)
      for (const auto& [name, array] : traces) results.emplace("trace." + std::to_string(layer) + '.' + std::string(to_string(name)), array);
  return results;
}

Arrays attention_results(const GoldenCase& golden) {
  const bool module = golden.op() == "multi_head_attention";
  Names entries{"mask", "keyPaddingMask", "generated", "rows", "variance"};
  if (module || golden.op() == "projected_attention") entries.insert("state");
  if (module) entries.insert("module");
  if (golden.name() == "worked_example") entries.insert("article");
  golden.check_names(entries, kAttentionOptions, kMultiHeadOptions);
  std::uint32_t bits = 0;
  for (const auto& [what, error] : golden.entry().at("expected").items())
    if (what != "output" && what != "weights") bits |= Trace{trace_name(what)}.bits();
  const AttentionOptions asked{.need_weights = golden.option("needWeights", false),
                               .average_weights = golden.option("averageWeights", false),
                               .trace = Trace::from_bits(bits)};
  if (module) return named(forward(loaded<MultiHeadAttention>(golden.module(), golden.state()), golden.inputs(), asked));
  if (golden.op() == "projected_attention") return named(attention(projected(golden), asked));
  if (golden.op() == "general_attention") return named(general_attention(golden.inputs(), golden.tensor("weight"), asked));
  if (golden.op() != "additive_attention") return named(attention(golden.inputs(), asked));
  AdditiveArrays params{golden.tensor("queryWeight"), golden.tensor("keyWeight"), golden.tensor("scoreWeight")};
  if (golden.lists("inputs", "bias")) params.bias = golden.tensor("bias");
  return named(additive_attention(golden.inputs(), params, asked));
}

Array function_output(const GoldenCase& golden) {
  const std::string op = golden.op();
  const auto given = [&](const char* name) { return golden.lists("inputs", name) ? std::optional(golden.tensor(name)) : std::nullopt; };
  const std::optional<Array> weight = given("weight"), bias = given("bias");
  const auto pointer = [](const std::optional<Array>& array) { return array ? &*array : nullptr; };
  const Names entries{"rows", "generated"};
  if (op == "linear") {
    golden.check_names(entries, {});
    return linear(golden.tensor("x"), *weight, pointer(bias));
  }
  if (op == "softmax") {
    golden.check_names(entries, {"dim"});
    return softmax(golden.tensor("x"), golden.option("dim", std::int64_t{-1}));
  }
  if (op == "layer_norm") {
    golden.check_names(entries, {"eps"});
    return layer_norm(golden.tensor("x"), pointer(weight), pointer(bias), golden.option("eps", 1e-5F));
  }
  if (op == "rms_norm") {
    golden.check_names(entries, {"eps"});
    return rms_norm(golden.tensor("x"), pointer(weight), golden.option("eps", 0x1p-23F));
  }
  if (op == "activation") {
    golden.check_names(entries, {"name"});
    const auto* const found = std::find(kActivationNames.begin(), kActivationNames.end(), golden.option("name", std::string()));
    REQUIRE(found != kActivationNames.end());
    return activation(golden.tensor("x"), static_cast<Activation>(found - kActivationNames.begin()));
  }
  if (op == "sinusoidal_positions") {
    golden.check_names(entries, {"length", "width"});
    return sinusoidal_positions(golden.option("length", std::int64_t{-1}), golden.option("width", std::int64_t{-1}));
  }
  if (op == "apply_rotary") {
    golden.check_names(entries, {"theta", "offset", "interleaved"});
    RotaryOptions options;
    options.theta = golden.option("theta", options.theta);
    options.offset = golden.option("offset", options.offset);
    options.interleaved = golden.option("interleaved", options.interleaved);
    return apply_rotary(golden.tensor("x"), options);
  }
  if (op != "alibi_bias") throw std::runtime_error("unknown op " + op);
  golden.check_names(entries, {"numHeads", "length", "keyLength"});
  std::optional<std::int64_t> key_length;
  if (golden.entry().at("options").contains("keyLength")) key_length = golden.option("keyLength", std::int64_t{0});
  return alibi_bias(golden.option("numHeads", std::int64_t{0}), golden.option("length", std::int64_t{-1}), key_length);
}

std::vector<std::int64_t> numbers(const nlohmann::json& list) { return list.get<std::vector<std::int64_t>>(); }

Shape dims_of(const nlohmann::json& list) {
  Shape dims;
  for (const std::int64_t dim : list) dims.push_back(dim);
  return dims;
}

Arrays sentiment_results(const GoldenCase& golden) {
  golden.check_names({"state", "module", "keyPaddingMask", "generated", "ids", "texts", "vocabulary"}, {},
                     with(kLayerOptions, {"numLayers", "finalNorm", "numClasses", "pooling", "embedding"}));
  Arrays state = golden.state();
  const auto table = loaded<Embedding>(golden.embedding(golden.entry().at("module").at("embedding")), below("embedding.", state));
  state.erase("embedding.weight");
  const nlohmann::json& ids = golden.entry().at("ids");
  const Shape dims = dims_of(ids.at("dims"));
  Array x = forward(table, numbers(ids.at("data")), dims);
  const Array positions = sinusoidal_positions(dims[1], x.dims[2]);
  for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] += positions.data[i % positions.data.size()];
  return named(forward(loaded<TransformerClassifier>(golden.encoder(), state), x, golden.encoder_call()));
}

Arrays encoder_results(const GoldenCase& golden) {
  const std::string op = golden.op();
  Names module = kLayerOptions;
  if (op != "transformer_encoder_layer") module = with(module, {"numLayers", "finalNorm"});
  if (op == "transformer_classifier") module = with(module, {"numClasses", "pooling"});
  golden.check_names({"state", "module", "mask", "keyPaddingMask", "generated", "rows"}, kEncoderOptions, module);
  const TransformerClassifierOptions options = golden.encoder();
  const EncoderForwardOptions call = golden.encoder_call();
  const Array x = golden.tensor("x");
  EncoderOutput result;
  if (op == "transformer_encoder_layer")
    result = forward(loaded<TransformerEncoderLayer>(options.encoder.layer, golden.state()), x, call);
  else if (op == "transformer_encoder")
    result = forward(loaded<TransformerEncoder>(options.encoder, golden.state()), x, call);
  else
    result = forward(loaded<TransformerClassifier>(options, golden.state()), x, call);

  CHECK(result.attentions.has_value() == call.output_attentions);
  CHECK(result.hidden_states.has_value() == call.output_hidden_states);
  CHECK(result.trace.has_value() == call.trace.has_value());
  if (call.trace && call.trace->layers) CHECK(result.trace->size() == call.trace->layers->size());
  Arrays results = named(result);
  for (const auto& [name, array] : results)
    if (name != "logits" || op == "transformer_classifier") {
      INFO(name);
      CHECK(golden.entry().at("expected").contains(name));
    }
  return results;
}

Arrays embedding_results(const GoldenCase& golden) {
  golden.check_names({"state", "module"}, {"ids", "dims"}, kEmbeddingOptions);
  const nlohmann::json& options = golden.entry().at("options");
  const std::vector<std::int64_t> ids = numbers(options.at("ids"));
  const Shape dims = options.contains("dims") ? dims_of(options.at("dims")) : Shape{static_cast<std::int64_t>(ids.size())};
  return {{"output", forward(loaded<Embedding>(golden.embedding(golden.entry().at("module")), golden.state()), ids, dims)}};
}

Arrays results_of(const GoldenCase& golden) {
  static const std::map<std::string, Arrays (*)(const GoldenCase&)> kOps{{"scaled_dot_product_attention", attention_results},
                                                                         {"multi_head_attention", attention_results},
                                                                         {"projected_attention", attention_results},
                                                                         {"additive_attention", attention_results},
                                                                         {"general_attention", attention_results},
                                                                         {"transformer_encoder_layer", encoder_results},
                                                                         {"transformer_encoder", encoder_results},
                                                                         {"transformer_classifier", encoder_results},
                                                                         {"sentiment_classifier", sentiment_results},
                                                                         {"embedding", embedding_results}};
  const auto found = kOps.find(golden.op());
  return found != kOps.end() ? found->second(golden) : Arrays{{"output", function_output(golden)}};
}

std::map<std::string, std::size_t> check_goldens(const std::string& name) {
  const GoldenFile file = read_golden(testdata(name));
  const nlohmann::json cases = nlohmann::json::parse(file.metadata.at("cases").get<std::string>());
  std::map<std::string, std::size_t> counts;
  for (const nlohmann::json& entry : cases) {
    const GoldenCase golden(file, entry);
    ++counts[golden.op()];
    INFO(name << ", case " << golden.name() << ", op " << golden.op() << ", options " << entry.at("options").dump());
    const Arrays results = results_of(golden);
    CHECK(entry.at("expected").contains("output"));
    for (const auto& [what, error] : entry.at("expected").items()) {
      INFO("result " << what);
      REQUIRE(results.contains(what));
      CHECK(golden.difference(what, results.at(what)) == "");
    }
    if (entry.contains("variance")) {
      const Array& scores = results.at("scores");
      double mean = 0, square = 0;
      for (const float score : scores.data) mean += score, square += static_cast<double>(score) * score;
      const auto n = static_cast<double>(scores.data.size());
      const double expected = entry.at("variance").at("scores");
      CHECK(std::abs(square / n - mean / n * mean / n - expected) < 1e-5 * expected);
    }
  }
  return counts;
}

using Counts = std::map<std::string, std::size_t>;

TEST_CASE("scaled_dot_product_attention agrees with PyTorch", "[goldens]") {
  CHECK(check_goldens("attention.safetensors").at("scaled_dot_product_attention") >= 114);
}

TEST_CASE("MultiHeadAttention agrees with PyTorch", "[goldens]") {
  CHECK(check_goldens("multi_head_attention.safetensors").at("multi_head_attention") >= 137);
}

TEST_CASE("stateless functions, additive attention and general attention agree with PyTorch", "[goldens]") {
  const Counts counts = check_goldens("functional.safetensors");
  for (const char* op : {"linear", "softmax", "layer_norm", "rms_norm", "activation", "sinusoidal_positions", "apply_rotary", "alibi_bias",
                         "additive_attention", "general_attention"}) {
    INFO(op);
    CHECK(counts.contains(op));
  }
}

TEST_CASE("encoder layers, encoders, classifiers and embeddings agree with PyTorch", "[goldens]") {
  const Counts counts = check_goldens("transformer.safetensors");
  for (const char* op : {"transformer_encoder_layer", "transformer_encoder", "transformer_classifier", "embedding", "sentiment_classifier"}) {
    INFO(op);
    CHECK(counts.contains(op));
  }
}

TEST_CASE("the reference cases agree with PyTorch", "[goldens]") {
  const Counts counts = check_goldens("reference_cases.safetensors");
  CHECK(counts.at("projected_attention") + counts.at("scaled_dot_product_attention") + counts.at("multi_head_attention") >= 15);
}

TEST_CASE("a golden case with a name that the tests do not know is refused", "[goldens]") {
  const GoldenFile file = read_golden(testdata("transformer.safetensors"));
  const nlohmann::json cases = nlohmann::json::parse(file.metadata.at("cases").get<std::string>());
  for (const char* op : {"transformer_encoder_layer", "transformer_classifier", "embedding", "sentiment_classifier"}) {
    const auto found = std::find_if(cases.begin(), cases.end(), [&](const nlohmann::json& entry) { return entry.at("op") == op; });
    REQUIRE(found != cases.end());
    CHECK_NOTHROW(results_of(GoldenCase(file, *found)));
    for (const char* part : {"", "options", "module"}) {
      INFO(op << ' ' << part);
      nlohmann::json entry = *found;
      (*part == '\0' ? entry : entry.at(part))["somethingNew"] = true;
      CHECK_THROWS(results_of(GoldenCase(file, entry)));
    }
    nlohmann::json entry = *found;
    entry["op"] = "another_attention";
    CHECK_THROWS(results_of(GoldenCase(file, entry)));
  }
}

TEST_CASE("neighbours and analogies among hand-made words are those in the table", "[goldens]") {
  const std::vector<std::uint8_t> text = bytes_of(testdata("words.json"));
  const nlohmann::json file = nlohmann::json::parse(text.begin(), text.end());
  const auto words = file.at("words").get<std::vector<std::string>>();
  Array table({static_cast<std::int64_t>(words.size()), static_cast<std::int64_t>(file.at("axes").size())});
  std::size_t at = 0;
  for (const nlohmann::json& row : file.at("table"))
    for (const float value : row) table.data.at(at++) = value;
  REQUIRE(at == table.data.size());
  const auto embedding = loaded<Embedding>(EmbeddingOptions{table.dims[0], table.dims[1]}, {{"weight", table}});
  const auto id = [&](const nlohmann::json& word) { return std::find(words.begin(), words.end(), word.get<std::string>()) - words.begin(); };
  // Three sums of this many terms and a division.
  const double tolerance = (3 * std::sqrt(static_cast<double>(table.dims[1])) + 1) * kEps;
  const auto check = [&](const std::vector<Neighbor>& got, const nlohmann::json& expected) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("neighbour " << i << ", " << expected[i].dump());
      CHECK(got[i].id == expected[i].at("id"));
      CHECK(words.at(static_cast<std::size_t>(got[i].id)) == expected[i].at("word").get<std::string>());
      CHECK(std::abs(got[i].similarity - expected[i].at("similarity").get<double>()) <= tolerance);
    }
  };
  for (const nlohmann::json& entry : file.at("similarity")) {
    INFO(entry.dump());
    CHECK(std::abs(embedding.similarity(id(entry.at("a")), id(entry.at("b"))) - entry.at("similarity").get<double>()) <= tolerance);
  }
  for (const nlohmann::json& entry : file.at("nearest")) {
    INFO(entry.dump());
    check(embedding.nearest(id(entry.at("target")), entry.at("k").get<std::int64_t>()), entry.at("expected"));
  }
  for (const nlohmann::json& entry : file.at("nearest_to_vector")) {
    const auto target = entry.at("target").get<std::vector<float>>();
    check(embedding.nearest(tensor_of<1>(Array({table.dims[1]}, target)), entry.at("k").get<std::int64_t>()), entry.at("expected"));
  }
  std::set<std::string> answers;
  for (const nlohmann::json& entry : file.at("analogy")) {
    INFO(entry.dump());
    const std::vector<Neighbor> got = embedding.analogy(id(entry.at("a")), id(entry.at("b")), id(entry.at("c")), entry.at("k").get<std::int64_t>());
    check(got, entry.at("expected"));
    answers.insert(entry.at("b").get<std::string>() + ' ' + words.at(static_cast<std::size_t>(got.at(0).id)));
  }
  CHECK(answers.contains("bart lisa"));
  CHECK(words.at(static_cast<std::size_t>(embedding.nearest(id("king"), 1).at(0).id)) == "queen");
}

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

TEST_CASE("the worked example of three tokens gives the article's numbers at every step", "[reference]") {
  const Array x({3, 4}, {1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1});
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
  // Half of the last printed digit.
  const Array weights({3, 3}, {0.063379F, 0.468311F, 0.468311F, 6.0337e-6F, 0.982008F, 0.017986F, 2.9539e-4F, 0.880537F, 0.119168F});
  CHECK_THAT(*result.weights, is_within(6e-7, weights));
  const Array output({3, 3}, {1.936621F, 6.683105F, 1.595068F, 1.999994F, 7.963992F, 0.053976F, 1.999705F, 7.759892F, 0.358389F});
  CHECK_THAT(result.output, is_within(6e-7 * 8, output));
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
  const Array rounded({3, 3}, {0, 0.5F, 0.5F, 0, 1, 0, 0, 0.9F, 0.1F});
  CHECK_THAT(linear(rounded, transposed(c.value)), is_within(2 * kEps * 8, Array({3, 3}, {2, 7, 1.5F, 2, 8, 0, 2, 7.8F, 0.3F})));
}

TEST_CASE("queries, keys and values of different lengths and widths give dims (3,30,256) and (3,30,50)", "[reference]") {
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

TEST_CASE("every intermediate of five heads over a batch of 128 has its dims, also with the scale of the full width", "[reference]") {
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
  const Array &context = result.trace.at(TraceName::context), &merged = result.trace.at(TraceName::merged);
  std::size_t wrong = 0;
  for (std::size_t b = 0; b < 128; ++b)
    for (std::size_t h = 0; h < 5; ++h)
      for (std::size_t i = 0; i < 32; ++i)
        for (std::size_t d = 0; d < 40; ++d)
          if (merged.data[(b * 32 + i) * 200 + h * 40 + d] != context.data[((b * 5 + h) * 32 + i) * 40 + d]) ++wrong;
  CHECK(wrong == 0);
  const Array &q = result.trace.at(TraceName::q), &k = result.trace.at(TraceName::k);
  double dot = 0;
  for (std::size_t d = 0; d < 40; ++d) dot += static_cast<double>(q.data[d]) * k.data[40 + d];
  CHECK(std::abs(result.trace.at(TraceName::scores).data[1] - dot / std::sqrt(200.0)) < 1e-5);
}

TEST_CASE("a causal head without output projection agrees with its mask written as tril", "[reference]") {
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
  CHECK_THAT(slice(causal.output, 0), HasBitsOf(slice(c.value, 0)));
  AttentionCase tril = c;
  tril.is_causal = false;
  tril.mask = MaskInput{MaskKind::attend, Array({5, 5}, {1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1})};
  CHECK_THAT(attention(tril).output, HasBitsOf(causal.output));
  for (std::int64_t last = 0; last < 4; ++last) {
    AttentionCase later = tril;
    for (Array* part : {&later.query, &later.key, &later.value}) std::fill(part->data.begin() + (last + 1) * 4, part->data.end(), kNaN);
    const Array output = attention(later).output;
    for (std::int64_t i = 0; i <= last; ++i) CHECK_THAT(slice(output, i), HasBitsOf(slice(causal.output, i)));
  }
}

TEST_CASE("self-attention is permutation-equivariant until sinusoidal positions are added", "[reference]") {
  Generator random(8);
  const Array x = random.normal({6, 8}), positions = sinusoidal_positions(6, 8);
  for (std::int64_t l = 0; l < 6; ++l)
    for (std::int64_t i = 0; i < 4; ++i) {
      const double angle = static_cast<double>(l) / std::pow(10000.0, static_cast<double>(i) / 4);
      const auto at = static_cast<std::size_t>(l * 8 + 2 * i);
      CHECK(std::abs(positions.data[at] - std::sin(angle)) <= kEps);
      CHECK(std::abs(positions.data[at + 1] - std::cos(angle)) <= kEps);
    }
  const auto output = [](Array tokens, const Array* added) {
    if (added != nullptr)
      for (std::size_t i = 0; i < tokens.data.size(); ++i) tokens.data[i] += added->data[i];
    AttentionCase c;
    c.query = c.key = c.value = tokens;
    return attention(c).output;
  };
  const std::vector<std::int64_t> order{3, 1, 5, 0, 4, 2};
  CHECK_THAT(output(take(x, order), nullptr), is_within(1e-5, take(output(x, nullptr), order)));
  CHECK_THAT(output(take(x, order), &positions), !is_within(0.01, take(output(x, &positions), order)));
}

TEST_CASE("masks of dims (B,1,1,S) and (B,S,S) can express the same padding", "[reference]") {
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

TEST_CASE("causal self-attention of a decoder and its attention to a padded memory have the right dims and numbers", "[reference]") {
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

}  // namespace goldens_test
}  // namespace attn::test
