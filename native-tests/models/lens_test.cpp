#include "attn/models/lens.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <set>

#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "models/gpt2_reference.hpp"
#include "support/matchers.hpp"
#include "support/refused.hpp"

namespace attn::test {
namespace models_lens_test {

using namespace attn::lens;
using Ids = std::vector<std::int64_t>;
using Site = Gpt2Reference::Site;

const Ids kIds{20, 131, 7, 250, 64, 99};
const Ids kOthers{20, 88, 7, 250, 301, 99};
constexpr std::size_t kLayers = 2, kHeads = 4, kE = 24;
const std::vector<std::string> kDecoders{"tiny-gpt2", "tiny-llama", "tiny-llama-3", "tiny-mistral", "tiny-qwen2", "tiny-llama-yarn", "tiny-qwen3"};

TextModel load(const std::string& name) { return TextModel::load(testdata("models/" + name)); }

Encoding encoded(const Ids& ids) {
  Encoding encoding;
  encoding.input_ids = xt::xtensor<std::int32_t, 2>({1, ids.size()});
  std::transform(ids.begin(), ids.end(), encoding.input_ids.begin(), [](std::int64_t id) { return static_cast<std::int32_t>(id); });
  return encoding;
}

/// Logits (L,V).
Array logits_of(const TextModel& model, const Ids& ids) {
  Array logits = floats_of(*model.forward(encoded(ids)).logits);
  logits.dims = {logits.dims[1], logits.dims[2]};
  return logits;
}

double logit(const Array& logits, std::size_t row, std::int64_t id) {
  return logits.data[row * static_cast<std::size_t>(logits.dims[1]) + static_cast<std::size_t>(id)];
}

double sum_of(const LogitAttribution& parts) {
  double sum = parts.embedding + parts.biases;
  for (const auto& layer : parts.heads) sum = std::accumulate(layer.begin(), layer.end(), sum);
  return std::accumulate(parts.mlps.begin(), parts.mlps.end(), sum);
}

TEST_CASE("unembed gives the logits of a forward from its last hidden state", "[lens]") {
  const std::string name = GENERATE(from_range(kDecoders), std::string("tiny-bert-mlm"));
  CAPTURE(name);
  const TextModel model = load(name);
  const TextModelOutput output = model.forward(encoded(kIds));
  CHECK_THAT(floats_of(model.unembed(output.last_hidden_state)), HasBitsOf(floats_of(*output.logits)));
  const std::size_t E = output.last_hidden_state.shape(2);
  const xt::xtensor<float, 1> row = xt::adapt(output.last_hidden_state.data() + 2 * E, E, xt::no_ownership(), std::array{E});
  const Array logits = floats_of(model.unembed(row));
  CHECK(std::equal(logits.data.begin(), logits.data.end(), output.logits->data() + 2 * logits.data.size()));
  refused(ErrorCode::shape, "unembed", [&] { model.unembed(xt::xtensor<float, 2>(xt::zeros<float>({1, 5}))); });
  refused(ErrorCode::unsupported, "text-generation", [&] { load("tiny-bert").unembed(row); });
}

TEST_CASE("the last layer of logit_lens is the model, and earlier ones pass the final norm", "[lens]") {
  const std::string name = GENERATE(from_range(kDecoders));
  CAPTURE(name);
  const TextModel model = load(name);
  const Array logits = logits_of(model, kIds);
  const std::int64_t V = logits.dims[1];
  const LogitLens lens = logit_lens(model, kIds, {.top_k = V});
  CHECK(lens.layers == Ids{0, 1, 2});
  CHECK(lens.positions == Ids{0, 1, 2, 3, 4, 5});
  for (std::size_t i = 0; i < kIds.size(); ++i) {
    CHECK(lens.tokens[i] == model.id_to_token(kIds[i]).value());
    const std::vector<LogitLensPrediction>& row = lens.predictions[2][i];
    REQUIRE(std::ssize(row) == V);
    double sum = 0;
    std::set<std::int64_t> seen;
    for (std::size_t k = 0; k < row.size(); ++k) {
      CHECK(static_cast<double>(row[k].logit) == logit(logits, i, row[k].id));
      CHECK(row[k].token == model.id_to_token(row[k].id).value_or(""));
      CHECK(row[k].logit <= row[k > 0 ? k - 1 : 0].logit);
      sum += static_cast<double>(row[k].probability);
      seen.insert(row[k].id);
    }
    CHECK(std::ssize(seen) == V);
    CHECK(std::abs(sum - 1) < 1e-5);
  }

  const std::string prefix = name == "tiny-gpt2" ? "transformer." : "model.";
  const bool is_rms = name != "tiny-gpt2";
  const auto find = [&](const std::string& ours) -> std::vector<double> {
    const std::map<std::string, Shape> shapes = model.parameter_shapes();
    for (const std::string& each : {ours, prefix + ours})
      if (shapes.count(each) > 0) {
        const AnyTensor values = model.get_parameter(each);
        return {values.begin(), values.end()};
      }
    return {};
  };
  const std::vector<double> gain = find(is_rms ? "norm.weight" : "ln_f.weight"), shift = find("ln_f.bias");
  std::vector<double> words = find("lm_head.weight");
  if (words.empty()) words = find(is_rms ? "embed_tokens.weight" : "wte.weight");
  const double epsilon =
      nlohmann::json::parse(std::ifstream(testdata("models/" + name + "/config.json"))).at(is_rms ? "rms_norm_eps" : "layer_norm_epsilon");
  const Array state = floats_of(model.forward(encoded(kIds), {.output_hidden_states = true}).hidden_states->at(1));
  const std::size_t E = gain.size();
  const std::vector<double> x(state.data.begin() + static_cast<std::ptrdiff_t>(3 * E), state.data.begin() + static_cast<std::ptrdiff_t>(4 * E));
  const double mean = is_rms ? 0 : std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(E);
  double square = 0;
  for (const double value : x) square += (value - mean) * (value - mean) / static_cast<double>(E);
  const LogitLens some = logit_lens(model, kIds, {.layers = Ids{1}, .positions = Ids{3}, .top_k = 9});
  REQUIRE(some.predictions.size() == 1);
  REQUIRE(some.predictions[0].size() == 1);
  REQUIRE(some.predictions[0][0].size() == 9);
  for (const LogitLensPrediction& each : some.predictions[0][0]) {
    double expected = 0;
    for (std::size_t e = 0; e < E; ++e)
      expected +=
          ((x[e] - mean) / std::sqrt(square + epsilon) * gain[e] + (shift.empty() ? 0 : shift[e])) * words[static_cast<std::size_t>(each.id) * E + e];
    CHECK(std::abs(static_cast<double>(each.logit) - expected) < 2e-5);
  }
}

TEST_CASE("logit_lens takes texts, int8, and masked language models whose norms are after the blocks", "[lens]") {
  const TextModel gpt2 = load("tiny-gpt2");
  const LogitLens lens = logit_lens(gpt2, "The old man", {.layers = Ids{2}, .top_k = 3});
  const std::vector<NextToken> next = gpt2.next_token("The old man", 3);
  CHECK(lens.tokens == gpt2.tokenize({"The old man"}).tokens[0]);
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(lens.predictions[0].back()[k].id == next[k].id);
    CHECK(lens.predictions[0].back()[k].logit == next[k].logit);
    CHECK(lens.predictions[0].back()[k].probability == next[k].probability);
  }
  const TextModel bert = load("tiny-bert-mlm"), int8 = TextModel::load(testdata("models/tiny-llama"), {.weights = Weights::int8});
  const Encoding encoding = bert.tokenize({"she is [MASK]."});
  const Ids masked(encoding.input_ids.begin(), encoding.input_ids.end());
  for (const auto& [model, text, ids] : {std::tuple(&bert, Text("she is [MASK]."), masked), std::tuple(&int8, Text(kIds), kIds)}) {
    const Array logits = logits_of(*model, ids);
    const LogitLens of = logit_lens(*model, text, {.top_k = 4});
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (const LogitLensPrediction& each : of.predictions.back()[i]) CHECK(static_cast<double>(each.logit) == logit(logits, i, each.id));
  }
  refused(ErrorCode::unsupported, "int8", [&] { logit_attribution(int8, kIds, {.target = 3}); });
  refused(ErrorCode::unsupported, "int8", [&] { attribution_patching(int8, kIds, kOthers, {.answer = 3}); });
  CHECK(std::isfinite(patch_activations(int8, kIds, kOthers, {.answer = 3}).recovered[0][1]));
}

TEST_CASE("the parts of logit_attribution add up to the logit", "[lens]") {
  const std::string name = GENERATE(from_range(kDecoders));
  CAPTURE(name);
  const TextModel model = load(name);
  const Array logits = logits_of(model, kIds);
  const std::vector<LogitAttributionOptions> cases{
      {.target = 5, .contrast = 41}, {.target = 300, .position = 2}, {.target = 77, .contrast = 12, .position = 0}};
  for (const LogitAttributionOptions& options : cases) {
    const LogitAttribution parts = logit_attribution(model, kIds, options);
    const std::int64_t at = options.position.value_or(std::ssize(kIds) - 1);
    const auto of = [&](const Token& token) { return logit(logits, static_cast<std::size_t>(at), std::get<std::int64_t>(token)); };
    CHECK(parts.position == at);
    CHECK(std::abs(parts.value - (of(options.target) - (options.contrast ? of(*options.contrast) : 0))) < 1e-6);
    REQUIRE(parts.heads.size() == kLayers);
    CHECK(parts.heads[0].size() == kHeads);
    CHECK(parts.mlps.size() == kLayers);
    CHECK(std::abs(sum_of(parts) - parts.value) <= 1e-4 * std::max(std::abs(parts.value), 1e-2));
  }
}

TEST_CASE("logit_attribution gives each head and MLP what its output adds", "[lens]") {
  const TextModel model = load("tiny-gpt2");
  const Gpt2Reference reference(model, kLayers, kHeads);
  const LogitAttribution parts = logit_attribution(model, kIds, {.target = 5, .contrast = 41});
  const std::vector<double> words = reference.values("wte.weight"), gain = reference.values("ln_f.weight");
  std::vector<double> residual = reference.activations(kIds, Site::resid_pre)[1].back();
  const std::vector<Matrix> z = reference.activations(kIds, Site::z), attention = reference.activations(kIds, Site::attn_out),
                            mlp = reference.activations(kIds, Site::mlp_out);
  for (std::size_t e = 0; e < kE; ++e) residual[e] += attention[1].back()[e] + mlp[1].back()[e];
  const auto mean_of = [](const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0) / kE; };
  double square = 0;
  for (const double value : residual) square += (value - mean_of(residual)) * (value - mean_of(residual)) / kE;
  // Share of a part with the norm's mean and divisor fixed.
  const auto through = [&](const std::vector<double>& part) {
    double total = 0;
    for (std::size_t e = 0; e < kE; ++e)
      total += (part[e] - mean_of(part)) / std::sqrt(square + 1e-5) * gain[e] * (words[5 * kE + e] - words[41 * kE + e]);
    return total;
  };
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const std::string name = "h." + std::to_string(layer);
    const std::vector<double> output = reference.values(name + ".attn.c_proj.weight"), bias = reference.values(name + ".mlp.c_proj.bias");
    for (std::size_t head = 0; head < kHeads; ++head) {
      std::vector<double> part(kE);
      for (std::size_t d = head * 6; d < (head + 1) * 6; ++d)
        for (std::size_t o = 0; o < kE; ++o) part[o] += z[layer].back()[d] * output[d * kE + o];
      CHECK(std::abs(static_cast<double>(parts.heads[layer][head]) - through(part)) < 1e-5);
    }
    std::vector<double> of_mlp = mlp[layer].back();
    for (std::size_t e = 0; e < kE; ++e) of_mlp[e] -= bias[e];
    CHECK(std::abs(static_cast<double>(parts.mlps[layer]) - through(of_mlp)) < 1e-5);
  }
  CHECK(std::abs(parts.embedding - through(reference.activations(kIds, Site::resid_pre)[0].back())) < 1e-5);
}

TEST_CASE("patching and its derivative are those of the reference", "[lens]") {
  const auto [site, of_reference] = GENERATE(std::pair(PatchSite::residual, Site::resid_pre), std::pair(PatchSite::head, Site::z),
                                             std::pair(PatchSite::attention, Site::attn_out), std::pair(PatchSite::mlp, Site::mlp_out));
  CAPTURE(kPatchSiteNames[static_cast<std::size_t>(site)]);
  const TextModel model = load("tiny-gpt2");
  const Gpt2Reference reference(model, kLayers, kHeads);
  const bool by_heads = site == PatchSite::head;
  const std::size_t columns = by_heads ? kHeads : kIds.size();
  const std::vector<Matrix> clean = reference.activations(kIds, of_reference);
  for (PatchOptions options : {PatchOptions{.answer = 5, .contrast = 41}, PatchOptions{.answer = 200, .position = 4}}) {
    options.site = site;
    const auto value = [&](const Ids& ids, const Gpt2Reference::Hook& hook) {
      const std::vector<double> row = reference.run(ids, hook)[static_cast<std::size_t>(options.position.value_or(5))];
      const auto of = [&](const Token& token) { return row[static_cast<std::size_t>(std::get<std::int64_t>(token))]; };
      return of(options.answer) - (options.contrast ? of(*options.contrast) : 0);
    };
    const auto none = [](std::size_t, Site, const Matrix&) {};
    const double of_clean = value(kIds, none), of_corrupted = value(kOthers, none);
    const auto expected = [&](std::size_t layer, std::size_t column, double share) {
      const double moved = value(kOthers, [&](std::size_t at, Site name, Matrix& x) {
        if (at != layer || name != of_reference) return;
        for (std::size_t i = 0; i < x.size(); ++i)
          for (std::size_t e = 0; e < kE; ++e)
            if ((by_heads ? e / 6 : i) == column) x[i][e] += share * (clean[layer][i][e] - x[i][e]);
      });
      return (moved - of_corrupted) / (of_clean - of_corrupted) / share;
    };
    const PatchResult exact = patch_activations(model, kIds, kOthers, options), estimate = attribution_patching(model, kIds, kOthers, options);
    CHECK(std::abs(exact.clean - of_clean) < 1e-5);
    CHECK(std::abs(exact.corrupted - of_corrupted) < 1e-5);
    CHECK(exact.positions == (by_heads ? Ids{} : Ids{0, 1, 2, 3, 4, 5}));
    REQUIRE(exact.recovered.size() == kLayers);
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      REQUIRE(exact.recovered[layer].size() == columns);
      for (std::size_t i = 0; i < columns; ++i) {
        CAPTURE(layer, i);
        const auto tolerance = [](double of) { return 2e-4 * std::max(1.0, std::abs(of)); };
        const double patched = expected(layer, i, 1), slope = expected(layer, i, 1e-5);
        CHECK(std::abs(static_cast<double>(exact.recovered[layer][i]) - patched) < tolerance(patched));
        CHECK(std::abs(static_cast<double>(estimate.recovered[layer][i]) - slope) < tolerance(slope));
      }
    }
    if (by_heads) continue;
    options.positions = Ids{4, 1};
    std::vector<std::pair<std::int64_t, std::int64_t>> progress;
    options.on_progress = [&](std::int64_t done, std::int64_t total) { progress.emplace_back(done, total); };
    const PatchResult some = patch_activations(model, kIds, kOthers, options);
    CHECK(some.positions == Ids{4, 1});
    CHECK(progress == std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 4}, {4, 4}});
    for (std::size_t layer = 0; layer < kLayers; ++layer)
      CHECK(some.recovered[layer] == std::vector<float>{exact.recovered[layer][4], exact.recovered[layer][1]});
  }
}

TEST_CASE("a patch of everything that differs recovers all, and a patch of equal values nothing", "[lens]") {
  const TextModel model = load(GENERATE(from_range(kDecoders)));
  Ids corrupted = kIds;
  corrupted[1] = 88;
  const PatchResult result = patch_activations(model, kIds, corrupted, {.answer = 5, .contrast = 41});
  CHECK(result.recovered[0] == std::vector<float>{0, 1, 0, 0, 0, 0});
  const Array of_clean = logits_of(model, kIds), of_corrupted = logits_of(model, corrupted);
  CHECK(std::abs(result.clean - (logit(of_clean, 5, 5) - logit(of_clean, 5, 41))) < 1e-6);
  CHECK(std::abs(result.corrupted - (logit(of_corrupted, 5, 5) - logit(of_corrupted, 5, 41))) < 1e-6);
}

/// wasm-tests/support/induction.ts: a previous-token head and an induction head.
class InductionModel {
 public:
  InductionModel() : folder_(std::filesystem::temp_directory_path() / ("attn-induction-" + std::to_string(std::random_device()()))) {
    for (std::size_t id = 0; id < V; ++id) zeros("wte.weight", {V, E})[id * E + id] = 1;
    for (std::size_t i = 0; i < P; ++i) zeros("wpe.weight", {P, E})[i * E + V + i] = 1;
    for (const std::size_t layer : {0, 1}) add_layer(layer);
    for (float& value : zeros("ln_f.weight", {E})) value = 1;
    zeros("ln_f.bias", {E});
    write();
  }
  ~InductionModel() { std::filesystem::remove_all(folder_); }
  TextModel load() const { return TextModel::load(folder_); }

 private:
  static constexpr std::size_t V = 16, P = 36, E = 72, D = 36;

  std::vector<float>& zeros(const std::string& name, const std::vector<std::size_t>& shape) {
    auto& [dims, values] = tensors_["transformer." + name];
    dims = shape;
    values.resize(std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>()));
    return values;
  }
  void add_layer(std::size_t layer) {
    const std::string name = "h." + std::to_string(layer) + ".";
    for (const char* norm : {"ln_1", "ln_2"}) {
      for (float& value : zeros(name + norm + ".weight", {E})) value = 1;
      zeros(name + norm + ".bias", {E});
    }
    std::vector<float>&qkv = zeros(name + "attn.c_attn.weight", {E, 3 * E}), &output = zeros(name + "attn.c_proj.weight", {E, E});
    zeros(name + "attn.c_attn.bias", {3 * E});
    zeros(name + "attn.c_proj.bias", {E});
    zeros(name + "mlp.c_fc.weight", {E, 4});
    zeros(name + "mlp.c_fc.bias", {4});
    zeros(name + "mlp.c_proj.weight", {4, E});
    zeros(name + "mlp.c_proj.bias", {E});
    // One-hot query and key of head 0; its value is the token.
    for (std::size_t i = 0; i < P && layer == 0; ++i) {
      if (i > 0) qkv[(V + i) * 3 * E + i - 1] = 40;
      qkv[(V + i) * 3 * E + E + i] = 1;
    }
    for (std::size_t id = 0; id < V; ++id) {
      if (layer == 1) {
        qkv[id * 3 * E + id] = 40;
        qkv[(V + P + id) * 3 * E + E + id] = 1;
      }
      qkv[id * 3 * E + 2 * E + id] = 1;
      output[id * E + (layer == 0 ? V + P : 0) + id] = 1;
    }
  }
  void write() const {
    std::filesystem::create_directories(folder_);
    std::filesystem::copy_file(testdata("models/tiny-gpt2/tokenizer.json"), folder_ / "tokenizer.json");
    std::ofstream(folder_ / "config.json") << nlohmann::json{{"architectures", {"GPT2LMHeadModel"}},
                                                             {"model_type", "gpt2"},
                                                             {"n_embd", E},
                                                             {"n_head", E / D},
                                                             {"n_layer", 2},
                                                             {"n_inner", 4},
                                                             {"n_positions", P},
                                                             {"vocab_size", V},
                                                             {"layer_norm_epsilon", 1e-5}};
    std::vector<FileTensor> all;
    for (const auto& [name, tensor] : tensors_) {
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(tensor.second.data());
      all.push_back({name, "F32", {tensor.first.begin(), tensor.first.end()}, {bytes, bytes + tensor.second.size() * sizeof(float)}});
    }
    const std::vector<std::uint8_t> file = write_tensors(all);
    std::ofstream(folder_ / "model.safetensors", std::ios::binary).write(reinterpret_cast<const char*>(file.data()), std::ssize(file));
  }

  std::filesystem::path folder_;
  std::map<std::string, std::pair<std::vector<std::size_t>, std::vector<float>>> tensors_;
};

TEST_CASE("head_scores finds the heads of a model that repeats what followed a token before", "[lens]") {
  const InductionModel files;
  const TextModel model = files.load();
  const HeadScores random = head_scores(model);
  REQUIRE(random.ids.size() == 32);
  CHECK(std::equal(random.ids.begin(), random.ids.begin() + 16, random.ids.begin() + 16));
  for (const auto& [kind, layer] : {std::pair(HeadKind::previous_token, std::size_t{0}), std::pair(HeadKind::induction, std::size_t{1})})
    for (std::size_t i = 0; i < 4; ++i) {
      const float score = random.scores.at(kind)[i / 2][i % 2];
      CAPTURE(kHeadKindNames[static_cast<std::size_t>(kind)], i);
      CHECK((i == 2 * layer ? score > 0.9F : score < 0.5F));
    }
  // The other heads attend to all tokens alike.
  const HeadScores exact =
      head_scores(model, {.kinds = {HeadKind::duplicate_token, HeadKind::first_token, HeadKind::induction}, .text = Ids{7, 3, 9, 4, 3, 9, 4, 3}});
  CHECK(exact.scores.size() == 3);
  CHECK(exact.scores.at(HeadKind::first_token)[0][1] == Catch::Approx((1 / 2.0 + 1 / 3.0 + 1 / 4.0 + 1 / 5.0 + 1 / 6.0 + 1 / 7.0 + 1 / 8.0) / 7));
  CHECK(exact.scores.at(HeadKind::duplicate_token)[0][1] == Catch::Approx((1 / 5.0 + 1 / 6.0 + 1 / 7.0 + 2 / 8.0) / 4));
  CHECK(exact.scores.at(HeadKind::induction)[1][0] > 0.9F);
  // After 7 3 9 4 3 the induction head predicts 9.
  const LogitAttribution parts = logit_attribution(model, Ids{7, 3, 9, 4, 3}, {.target = 9, .contrast = 5});
  CHECK(static_cast<double>(parts.heads[1][0]) > 0.5 * parts.value);
  CHECK(head_scores(model, {.seed = 1}).ids == head_scores(model, {.seed = 1}).ids);
  CHECK(head_scores(model, {.seed = 1}).ids != random.ids);
  const HeadScores bert = head_scores(load("tiny-bert"), {.kinds = {HeadKind::first_token}, .text = "she is good"});
  CHECK(bert.scores.at(HeadKind::first_token).size() == 2);
  CHECK(bert.scores.at(HeadKind::first_token)[0].size() == 4);
}

TEST_CASE("the lens refuses bad arguments", "[lens]") {
  const TextModel model = load("tiny-gpt2"), bert = load("tiny-bert");
  const auto patch = [&](const PatchOptions& options, const Ids& clean = kIds, const Ids& corrupted = kOthers) {
    return [&, options, clean, corrupted] { patch_activations(model, clean, corrupted, options); };
  };
  const auto parts = [&](const LogitAttributionOptions& options) { return [&, options] { logit_attribution(model, kIds, options); }; };
  const auto lens = [&](const LogitLensOptions& options, const Text& text = kIds) {
    return [&, options, text] { logit_lens(model, text, options); };
  };
  refused(ErrorCode::config, "top_k", lens({.top_k = 0}));
  refused(ErrorCode::out_of_range, "layers[0]", lens({.layers = Ids{3}}));
  refused(ErrorCode::out_of_range, "positions[1]", lens({.positions = Ids{0, -1}}));
  refused(ErrorCode::argument, "at least one token", lens({}, ""));
  refused(ErrorCode::argument, "at least one token", lens({}, Ids{}));
  refused(ErrorCode::out_of_range, "400", lens({}, Ids{400}));
  std::string longest;
  for (int i = 0; i < 100; ++i) longest += "and so on ";
  refused(ErrorCode::out_of_range, "64", lens({}, longest));
  refused(ErrorCode::unsupported, "text-generation", [&] { logit_lens(bert, "x"); });
  refused(ErrorCode::unsupported, "pre-norm", [&] { logit_lens(load("tiny-modernbert-mlm"), "she is"); });
  refused(ErrorCode::unsupported, "gpt2, llama, mistral", [&] { logit_lens(load("tiny-neox"), kIds); });
  refused(ErrorCode::unsupported, "gemma", [&] { logit_lens(load("tiny-gemma-2"), kIds); });
  refused(ErrorCode::unsupported, "text-generation", [&] { logit_attribution(bert, "x", {.target = 1}); });
  refused(ErrorCode::out_of_range, "316", parts({.target = 317}));
  refused(ErrorCode::out_of_range, "single token", parts({.target = 1, .contrast = "The old man"}));
  refused(ErrorCode::out_of_range, "position", parts({.target = 1, .position = 6}));
  refused(ErrorCode::argument, "positions", patch({.answer = 5, .site = PatchSite::head, .positions = Ids{1}}));
  refused(ErrorCode::argument, "6 tokens", patch({.answer = 5}, kIds, {1, 2}));
  refused(ErrorCode::argument, "both", patch({.answer = 5}, kIds, kIds));
  CHECK(patch_activations(model, kIds, kOthers, {.answer = 5, .positions = Ids{}}).recovered == LayerTable(2));
  refused(ErrorCode::argument, "repeats", [&] { head_scores(model, {.text = Ids{1, 2, 3}}); });
  refused(ErrorCode::argument, "two tokens", [&] { head_scores(model, {.kinds = {HeadKind::first_token}, .text = Ids{1}}); });
}

}  // namespace models_lens_test
}  // namespace attn::test
