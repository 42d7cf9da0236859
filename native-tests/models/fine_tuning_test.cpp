#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "attn/attn.hpp"
#include "attn/models/fine_tuning.hpp"
#include "attn/models/kept_model.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace models_fine_tuning_test {

using nlohmann::json;
using State = std::map<std::string, std::vector<float>>;

template <class Model>
State state_of(const Model& model) {
  State state;
  StateTarget target;
  for (const auto& [name, shape] : model.parameter_shapes())
    target.emplace(name, state.emplace(name, std::vector<float>(static_cast<std::size_t>(checked_size(shape, "test", name)))).first->second.data());
  model.save_state(target);
  return state;
}

std::set<std::string> changed(const State& before, const State& after) {
  std::set<std::string> names;
  for (const auto& [name, values] : before)
    if (after.at(name) != values) names.insert(name);
  return names;
}

TextModel stock(const std::string& name, TextModelOptions options = {}) { return TextModel::load(testdata("models/" + name), options); }

std::vector<FineTuneExample> films(bool turned = false) {
  const std::string good = turned ? "negative" : "positive", bad = turned ? "positive" : "negative";
  return {{"a warm , funny and clever film", good},
          {"dull and far too long", bad},
          {"beautifully acted from start to end", good},
          {"a boring mess without any ideas", bad},
          {"one of the best of the year", good},
          {"the jokes are stale and the plot is stupid", bad},
          {"moving , honest and alive", good},
          {"tedious", bad},
          {"a delight", good},
          {"it never works and it never ends", bad}};
}

constexpr const char* kFamilies[] = {"tiny-bert",       "tiny-bert-cls",   "tiny-distilbert", "tiny-roberta",   "tiny-mpnet",
                                     "tiny-modernbert", "tiny-albert-mlm", "tiny-nomic",      "tiny-jina-mean", "tiny-gte-2024"};

void set_dropout(json& config, double p) {
  for (const char* name : {"hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "dropout", "attention_dropout",
                           "seq_classif_dropout", "mlp_dropout", "embedding_dropout", "classifier_dropout_prob", "resid_pdrop", "attn_pdrop"})
    config[name] = p;
}

std::unique_ptr<EncoderModel> with_head(const char* name, std::optional<double> dropout = std::nullopt) {
  const Checkpoint checkpoint = read_checkpoint(testdata(std::string("models/") + name));
  auto model = load(dropout ? with_config(checkpoint, [&](json& config) { set_dropout(config, *dropout); }) : checkpoint);
  model->set_head({"a", "b", "c"}, 5);
  return model;
}

struct Kept {
  std::vector<float> hidden;
  std::vector<std::vector<float>> attentions;
  std::vector<float> ff_output;
  std::unique_ptr<detail::KeptModel> model;

  Kept(const EncoderModel& of, const Batch& batch, const detail::ForwardRandom& random) {
    const detail::ModelPlan plan = of.plan("test", batch.inputs(), {.output_attentions = true, .for_backward = true, .keep = {.of_head = true}});
    const auto layers = static_cast<std::size_t>(plan.encoder.layers);
    hidden.resize(static_cast<std::size_t>(plan.encoder.B * plan.encoder.L * plan.encoder.E));
    attentions.assign(layers, std::vector<float>(static_cast<std::size_t>(checked_size(plan.encoder.attention.weights, "test", "weights"))));
    detail::EncoderBuffers buffers{hidden.data(), {}, std::vector<detail::LayerBuffers>(layers)};
    for (std::size_t layer = 0; layer < layers; ++layer) buffers.layers[layer].attentions = attentions[layer].data();
    ff_output.resize(hidden.size());
    buffers.layers[0].trace[static_cast<std::size_t>(TraceName::ff_output)] = ff_output.data();
    model = of.run_and_keep(plan, batch.inputs(), buffers, {.of_head = true, .random = random});
  }
};

bool decays(const std::string& name) {
  constexpr std::array kUndecayed{"bias", "norm", "_ln."};
  std::string lower = name;
  for (char& c : lower) c = static_cast<char>(std::tolower(c));
  return std::none_of(kUndecayed.begin(), kUndecayed.end(), [&](const char* part) { return lower.find(part) != std::string::npos; });
}

TEST_CASE("the first step moves every weight as AdamW does", "[models][training]") {
  constexpr double kRate = 1e-3, kDecay = 0.1;
  for (const char* checkpoint : kFamilies) {
    CAPTURE(checkpoint);
    const auto model = with_head(checkpoint, 0.0);
    const Batch batch = some_ids(1, 7, model->config().vocab_size);
    std::map<std::string, std::vector<double>> gradients;
    std::vector<double> logits;
    std::vector<State> of_logits;
    for (std::int64_t label = 0; label < 3; ++label) {
      const detail::ModelGradient gradient("test", *model, batch.inputs(), {.label = label}, false, false, true);
      logits.push_back(static_cast<double>(gradient.value()));
      State& state = of_logits.emplace_back(state_of(*model));
      StateTarget target;
      for (auto& [name, values] : state) target.emplace(name, values.data());
      gradient.run(nullptr, {}, &target);
    }
    const double sum = std::exp(logits[0]) + std::exp(logits[1]) + std::exp(logits[2]);
    double squares = 0;
    for (const auto& [name, values] : of_logits[0]) {
      std::vector<double>& all = gradients[name];
      for (std::size_t i = 0; i < values.size(); ++i) {
        double g = 0;
        for (std::size_t label = 0; label < 3; ++label)
          g += (std::exp(logits[label]) / sum - (label == 2 ? 1 : 0)) * static_cast<double>(of_logits[label].at(name)[i]);
        all.push_back(g);
        squares += g * g;
      }
    }
    const double clip = std::min(1.0, 1 / (std::sqrt(squares) + 1e-6));

    const State before = state_of(*model);
    detail::FineTuning tuning("fine_tune", *model, {.steps = 10, .learning_rate = kRate, .weight_decay = kDecay});
    const double two = 2;
    CHECK(std::abs(tuning.step(batch.inputs(), {&two, 1}) + std::log(std::exp(logits[2]) / sum)) < 1e-6);
    const State after = state_of(*model);
    std::size_t wrong = 0, seen = 0;
    std::string first;
    for (const auto& [name, values] : before)
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double g = clip * gradients.at(name)[i], p = static_cast<double>(values[i]);
        const double kept = decays(name) ? p * (1 - kRate * kDecay) : p, moved = static_cast<double>(after.at(name)[i]) - kept;
        // If the gradient is as small as its rounding error, only the length of the step is known.
        const bool is_known = std::abs(g) > 1e-6;
        const double off = is_known ? std::abs(moved + kRate * g / (std::abs(g) + 1e-8)) : std::abs(moved) - kRate;
        if (is_known) ++seen;
        if (!(off < 1e-3 * kRate + 2.4e-7 * std::abs(p)) && wrong++ == 0) first = name + " moved by " + std::to_string(moved / kRate) + " rates";
      }
    CAPTURE(first);
    CHECK(wrong == 0);
    CHECK(seen > 1000);
  }
}

TEST_CASE("losses decrease as in torch runs of transformers' models", "[models][training]") {
  const GoldenFile file = read_golden(testdata("models/fine_tuning.safetensors"));
  std::size_t count = 0;
  for (const json& entry : cases_of(file)) {
    const GoldenCase golden(file, entry);
    CAPTURE(golden.name());
    const auto change = [&](json& config) { config.update(entry.at("config")); };
    const auto model = load(with_config(read_checkpoint(testdata("models/" + entry.at("checkpoint").get<std::string>())), change));
    const auto whole = [&](const char* name) {
      const std::vector<float> values = golden.tensor(name).data;
      return std::vector<std::int64_t>(values.begin(), values.end());
    };
    const std::vector<std::int64_t> ids = whole("input_ids"), types = whole("token_type_ids"), mask = whole("attention_mask"),
                                    labels = whole("labels");
    const Shape shape{golden.tensor("input_ids").dims};
    const std::vector<std::uint8_t> flags(mask.begin(), mask.end());
    const MaskView attends(MaskKind::attend, flags.data(), shape);
    std::vector<double> targets(labels.begin(), labels.end());
    if (targets.size() == ids.size())  // a language model, whose labels are at their own tokens
      for (std::size_t i = 0; i < targets.size(); ++i)
        targets[i] = (i + 1) % static_cast<std::size_t>(shape[1]) == 0 ? detail::kIgnoreIndex : targets[i + 1];
    detail::FineTuningOptions options{.steps = golden.option<std::int64_t>("steps", 0),
                                      .learning_rate = golden.option<double>("learning_rate", 0),
                                      .weight_decay = golden.option<double>("weight_decay", 0),
                                      .seed = golden.option<std::uint64_t>("seed", 0)};
    if (const auto layers = golden.option<std::int64_t>("layers", -1); layers >= 0) options.layers = layers;
    detail::FineTuning tuning("fine_tune", *model, options);
    std::vector<float> losses;
    for (std::int64_t i = 0; i < options.steps; ++i)
      losses.push_back(
          static_cast<float>(tuning.step({.shape = shape, .input_ids = ids, .token_type_ids = types, .attention_mask = &attends}, targets)));
    CHECK(golden.difference("losses", Array({options.steps}, losses)) == "");
    ++count;
  }
  CHECK(count == 29);
}

TEST_CASE("frozen layers do not change", "[models][training]") {
  for (const char* checkpoint : kFamilies) {
    CAPTURE(checkpoint);
    const std::vector<double> targets{1, 2, 0};
    for (std::int64_t layers = 0; layers < 2; ++layers) {
      CAPTURE(layers);
      const auto model = with_head(checkpoint);
      const Batch batch = some_ids(3, 7, model->config().vocab_size);
      const State before = state_of(*model);
      detail::FineTuning tuning("fine_tune", *model, {.steps = 4, .learning_rate = 1e-3, .layers = layers});
      for (int i = 0; i < 2; ++i) tuning.step(batch.inputs(), targets);
      const detail::ModelConfig& config = model->config();
      const std::string last = "." + std::to_string((config.stored_layers() - 1) / config.inner_layers) + ".";
      bool of_layer = false, of_head = false;
      for (const std::string& name : changed(before, state_of(*model))) {
        CAPTURE(name);
        CHECK(name.find("embeddings") == std::string::npos);
        CHECK(name.find(".0.") == std::string::npos);
        of_layer = of_layer || name.find(last) != std::string::npos;
        of_head = of_head || name == "classifier.weight" || name == "classifier.out_proj.weight";
      }
      CHECK(of_layer == (layers > 0));
      CHECK(of_head);
    }
    const auto model = with_head(checkpoint), other = with_head(checkpoint);
    const Batch batch = some_ids(3, 7, model->config().vocab_size);
    const detail::FineTuningOptions options{.steps = 4, .learning_rate = 1e-3, .weight_decay = 0.01, .layers = 0};
    detail::FineTuning whole("fine_tune", *model, options), head("fine_tune", *other, options);
    std::vector<float> pooled(static_cast<std::size_t>(3 * model->config().hidden_size));
    head.pool(batch.inputs(), pooled.data());
    for (int i = 0; i < 3; ++i) CHECK(whole.step(batch.inputs(), targets) == head.step(pooled, targets));
    CHECK(changed(state_of(*model), state_of(*other)).empty());
    const detail::Judgement a = whole.judge(batch.inputs(), targets), b = head.judge(pooled, targets);
    CHECK(a.loss == b.loss);
    CHECK(a.right == b.right);
  }
}

TEST_CASE("backward stops at the lowest trained layer", "[models][training]") {
  for (const char* checkpoint : kFamilies) {
    const auto model = with_head(checkpoint);
    const std::int64_t layers = model->config().stored_layers();
    const Batch batch = some_ids(3, 7, model->config().vocab_size);
    const detail::ModelPlan plan = model->plan("test", batch.inputs(), {.for_backward = true, .keep = {.of_head = true}});
    std::vector<float> hidden(static_cast<std::size_t>(plan.encoder.B * plan.encoder.L * plan.encoder.E));
    const auto kept = model->run_and_keep(plan, batch.inputs(), {hidden.data(), {}, {}}, {.of_head = true});
    const std::vector<float> grad{1, -2, 3, 0.5F, 0.25F, -1, 2, 2, -1};
    const auto gradients_from = [&](std::optional<std::int64_t> first_layer) {
      detail::Gradients gradients;
      gradients.reserve(model->state_shapes());
      model->backward(*kept, grad.data(), {.parameters = &gradients, .first_layer = first_layer});
      return gradients;
    };
    const detail::Gradients whole = gradients_from(std::nullopt);
    for (std::int64_t first = 0; first <= layers; ++first) {
      const detail::Gradients gradients = gradients_from(first);
      std::size_t there = 0;
      for (const auto& [name, shape] : model->state_shapes()) {
        CAPTURE(checkpoint, first, name);
        const bool is_above = name.starts_with("classifier") || (first < layers && name.starts_with("encoder.norm")) ||
                              (name.starts_with("encoder.layers.") && std::stoll(name.substr(std::string("encoder.layers.").size())) >= first);
        const float* const numbers = gradients.find(name);
        CHECK((numbers != nullptr) == (is_above && whole.find(name) != nullptr));
        if (numbers == nullptr) continue;
        ++there;
        CHECK(std::equal(numbers, numbers + checked_size(shape, "test", name), whole.find(name)));
      }
      CHECK(there >= 3);
    }
  }
}

TEST_CASE("dropout has the probabilities of the config, or else of transformers", "[models][training]") {
  struct Case {
    const char* checkpoint;
    json given;
    std::array<float, 8> expected;
  };
  const json bert{{"hidden_dropout_prob", 0.5}, {"attention_probs_dropout_prob", 0.25}};
  const json both{{"hidden_dropout_prob", 0.5}, {"attention_probs_dropout_prob", 0.25}, {"classifier_dropout", 0.75}};
  const json distilbert{{"dropout", 0.5}, {"attention_dropout", 0.25}, {"seq_classif_dropout", 0.75}};
  const json modernbert{{"attention_dropout", 0.25}, {"mlp_dropout", 0.5}, {"embedding_dropout", 0.125}, {"classifier_dropout", 0.75}};
  const json deberta{{"hidden_dropout_prob", 0.5}, {"attention_probs_dropout_prob", 0.25}, {"pooler_dropout", 0.125}, {"cls_dropout", 0.75}};
  const std::vector<Case> cases{
      {"tiny-bert", {}, {0.1F, 0.1F, 0, 0.1F, 0.1F, 0, 0.1F}},
      {"tiny-bert", bert, {0.25F, 0.5F, 0, 0.5F, 0.5F, 0, 0.5F}},
      {"tiny-bert", both, {0.25F, 0.5F, 0, 0.5F, 0.5F, 0, 0.75F}},
      {"tiny-roberta", {}, {0.1F, 0.1F, 0, 0.1F, 0.1F, 0.1F, 0.1F}},
      {"tiny-xlm-roberta", bert, {0.25F, 0.5F, 0, 0.5F, 0.5F, 0.5F, 0.5F}},
      {"tiny-roberta", both, {0.25F, 0.5F, 0, 0.5F, 0.5F, 0.75F, 0.75F}},
      {"tiny-mpnet", {}, {0.1F, 0.1F, 0, 0.1F, 0.1F, 0.1F, 0.1F}},
      {"tiny-mpnet", both, {0.25F, 0.5F, 0, 0.5F, 0.5F, 0.5F, 0.5F}},
      {"tiny-distilbert", {}, {0.1F, 0, 0, 0.1F, 0.1F, 0, 0.2F}},
      {"tiny-distilbert", distilbert, {0.25F, 0, 0, 0.5F, 0.5F, 0, 0.75F}},
      {"tiny-modernbert", {}, {0, 0, 0, 0, 0, 0, 0}},
      {"tiny-modernbert", modernbert, {0.25F, 0.25F, 0.5F, 0, 0.125F, 0, 0.75F}},
      {"tiny-deberta", {}, {0.1F, 0.1F, 0, 0.1F, 0.1F, 0, 0.1F, 0.1F}},
      {"tiny-deberta", deberta, {0.25F, 0.5F, 0, 0.5F, 0.5F, 0.125F, 0.75F, 0.5F}},
  };
  for (const auto& [name, given, expected] : cases) {
    CAPTURE(name, given.dump());
    const Checkpoint checkpoint = read_checkpoint(testdata(std::string("models/") + name));
    const auto model = load(with_config(checkpoint, [&](json& config) {
      for (auto member = config.begin(); member != config.end();)
        member = member.key().find("dropout") != std::string::npos ? config.erase(member) : std::next(member);
      if (!given.is_null()) config.update(given);
    }));
    for (std::size_t site = 0; site < expected.size(); ++site)
      CHECK(model->config().dropout.at(static_cast<detail::DropoutSite>(site)) == expected[site]);
  }
  for (const json& wrong : {json(1.0), json(-0.5), json("a tenth")}) {
    const auto model = load(with_member(read_checkpoint(testdata("models/tiny-bert")), "hidden_dropout_prob", wrong));
    check_error({ErrorCode::config, "fine_tune", "dropout", {"from 0 up to, not including, 1"}},
                [&] { detail::FineTuning("fine_tune", *model, {.learning_rate = 1}); });
  }
}

TEST_CASE("dropout drops the requested share and scales the remaining stored values", "[models][training]") {
  constexpr float p = 0.25F;
  const auto model = with_head("tiny-bert");
  const Batch batch = some_ids(60, 16, model->config().vocab_size);
  const Kept plain(*model, batch, {});
  const std::int64_t E = model->config().hidden_size, rows = 60 * 16;
  const auto count = static_cast<std::size_t>(rows * E);
  using Mask = std::vector<bool>;
  std::vector<Mask> masks;
  const auto check = [&](const std::vector<float>& given, const std::vector<float>& dropped, double error) {
    REQUIRE(given.size() == dropped.size());
    std::size_t wrong = 0, seen = 0, gone = 0;
    Mask& mask = masks.emplace_back();
    for (std::size_t i = 0; i < given.size(); ++i) {
      const double x = static_cast<double>(given[i]), y = static_cast<double>(dropped[i]);
      if (std::abs(x) < 100 * error) continue;
      ++seen;
      mask.push_back(std::abs(y) <= error);
      if (mask.back())
        ++gone;
      else if (std::abs(y - x / (1 - static_cast<double>(p))) > error)
        ++wrong;
    }
    CHECK(wrong == 0);
    const auto n = static_cast<double>(seen);
    CHECK(n > 2000);
    CHECK(std::abs(static_cast<double>(gone) - n * static_cast<double>(p)) < 4.5 * std::sqrt(n * static_cast<double>(p * (1 - p))));
  };
  const auto run = [&](const detail::DropoutProbabilities& probabilities, std::uint64_t seed = 3, std::uint64_t step = 0) {
    return Kept(*model, batch, {.training = true, .probabilities = &probabilities, .seed = seed, .step = step});
  };
  const auto numbers = [](const float* from, std::size_t size) { return std::vector<float>(from, from + size); };
  const auto less = [](std::vector<float> a, const float* b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
    return a;
  };
  const auto layer = [](const Kept& kept, std::size_t i) -> const detail::KeptLayer& { return kept.model->stack.layers->layers[i]; };
  const std::vector<float> embedded = numbers(layer(plain, 0).x, count);

  check(embedded, numbers(layer(run({.embeddings = p}), 0).x, count), 1e-6);
  check(embedded, numbers(layer(run({.embeddings = p}, 3, 1), 0).x, count), 1e-6);
  check(embedded, numbers(layer(run({.embeddings = p}, 4), 0).x, count), 1e-6);
  const Kept weights = run({.attention_weights = p});
  check(plain.attentions[0], weights.attentions[0], 1e-6);
  const Kept output = run({.attention_output = p});
  const auto residual = [&](const Kept& kept) { return less(numbers(layer(kept, 0).attn_residual, count), embedded.data()); };
  check(residual(plain), residual(output), 1e-6);
  // Only the sum with the feed-forward output is stored.
  const Kept last = run({.feed_forward_output = p});
  std::vector<float> part = less(numbers(layer(last, 0).ff_residual, count), layer(plain, 0).ff_residual);
  for (std::size_t i = 0; i < count; ++i) part[i] += plain.ff_output[i];
  check(plain.ff_output, part, 3e-6);
  const auto pooled = static_cast<std::size_t>(60 * E);
  const std::vector<float> of_head = numbers(plain.model->pooled, pooled);
  const std::vector<float> dropped = numbers(run({.pooled = p}).model->pooled, pooled);
  std::size_t gone = 0;
  for (std::size_t i = 0; i < pooled; ++i) {
    if (dropped[i] == 0)
      ++gone;
    else
      CHECK(dropped[i] == of_head[i] * (1 / (1 - p)));
  }
  CHECK(std::abs(static_cast<double>(gone) / static_cast<double>(pooled) - 0.25) < 4.5 * std::sqrt(0.25 * 0.75 / static_cast<double>(pooled)));

  // Masks of other steps, seeds and sites agree in p² + (1 - p)² of the numbers.
  for (std::size_t i = 1; i < 3; ++i) {
    std::size_t same = 0;
    const std::size_t n = std::min(masks[0].size(), masks[i].size());
    for (std::size_t at = 0; at < n; ++at) same += masks[0][at] == masks[i][at] ? 1 : 0;
    CHECK(std::abs(static_cast<double>(same) / static_cast<double>(n) - 0.625) < 0.03);
  }
}

TEST_CASE("with dropout, gradients are those of the same forward", "[models][training]") {
  constexpr double kRise = 2e-4;
  for (const char* checkpoint : kFamilies) {
    const auto model = with_head(checkpoint, 0.2);
    const Batch batch = some_ids(4, 7, model->config().vocab_size);
    const std::vector<float> grad{1, -2, 3, 0.5F, 0.25F, -1, 2, 2, -1, -0.75F, 1, 0.5F};
    const detail::ForwardRandom random{.training = true, .probabilities = &model->config().dropout, .seed = 11, .step = 5};
    const auto value = [&] {
      const Kept kept(*model, batch, random);
      double sum = 0;
      for (std::size_t i = 0; i < grad.size(); ++i) sum += static_cast<double>(grad[i]) * static_cast<double>(kept.model->result[i]);
      return sum;
    };
    detail::Gradients gradients;
    gradients.reserve(model->state_shapes());
    model->backward(*Kept(*model, batch, random).model, grad.data(), {.parameters = &gradients});
    std::size_t checked = 0;
    const detail::StateTensors tensors = model->state_tensors();
    for (const auto& [name, tensor] : tensors) {
      const float* const found = gradients.find(name);
      if (found == nullptr) continue;
      CAPTURE(checkpoint, name);
      std::vector<float> values;
      for (const detail::ParameterRef& piece : tensor.pieces) {
        std::vector<float> more(piece.size());
        piece.get(more.data());
        values.insert(values.end(), more.begin(), more.end());
      }
      double squares = 0;
      for (std::size_t i = 0; i < values.size(); ++i) squares += static_cast<double>(found[i]) * static_cast<double>(found[i]);
      if (squares < 1e-4) continue;  // almost 0, as a key's bias, whose gradient is exactly 0
      const auto value_at = [&](double factor) {
        std::vector<float> moved(values);
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += static_cast<float>(factor * kRise / squares * static_cast<double>(found[i]));
        std::span<const float> left(moved);
        for (const detail::ParameterRef& piece : tensor.pieces) {
          piece.set_rows(0, left.first(piece.size()));
          left = left.subspan(piece.size());
        }
        return value();
      };
      const double rise = (value_at(1) - value_at(-1)) / 2;
      value_at(0);
      CHECK(std::abs(rise / kRise - 1) < 0.02);
      ++checked;
    }
    CHECK(checked > 10);
  }
}

TEST_CASE("only training steps apply dropout", "[models][training]") {
  const std::vector<double> targets{1, 2, 0};
  for (const char* checkpoint : kFamilies) {
    CAPTURE(checkpoint);
    const auto with = with_head(checkpoint, 0.5), without = with_head(checkpoint, 0.0);
    const Batch batch = some_ids(3, 7, with->config().vocab_size);
    const auto pooled_by = [&](const EncoderModel& model, const detail::FineTuning& tuning) {
      std::vector<float> pooled(static_cast<std::size_t>(3 * model.config().hidden_size));
      tuning.pool(batch.inputs(), pooled.data());
      return pooled;
    };
    const detail::FineTuningOptions options{.steps = 4, .learning_rate = 1e-9};
    detail::FineTuning dropping("fine_tune", *with, options), plain("fine_tune", *without, options);
    CHECK(dropping.judge(batch.inputs(), targets).loss == plain.judge(batch.inputs(), targets).loss);
    const std::vector<float> pooled = pooled_by(*with, dropping);
    CHECK(pooled == pooled_by(*without, plain));
    CHECK(dropping.judge(pooled, targets).loss == plain.judge(pooled, targets).loss);
    std::set<double> losses{plain.step(batch.inputs(), targets)};
    for (int i = 0; i < 2; ++i) losses.insert(dropping.step(batch.inputs(), targets));
    losses.insert(dropping.step(pooled, targets));
    CHECK(losses.size() == 4);
    detail::FineTuningOptions seeded = options;
    for (const std::uint64_t seed : {7, 8, 7}) {
      seeded.seed = seed;
      losses.insert(detail::FineTuning("fine_tune", *with_head(checkpoint, 0.5), seeded).step(batch.inputs(), targets));
    }
    CHECK(losses.size() == 6);
  }
}

TEST_CASE("the order of examples is a random permutation that depends on the seed", "[models][training]") {
  std::set<std::vector<std::size_t>> all;
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    for (std::uint32_t epoch = 0; epoch < 5; ++epoch) {
      std::vector<std::size_t> order = detail::training_order(20, seed, epoch);
      CHECK(order == detail::training_order(20, seed, epoch));
      all.insert(order);
      std::sort(order.begin(), order.end());
      for (std::size_t i = 0; i < 20; ++i) CHECK(order[i] == i);
    }
  CHECK(all.size() == 25);
  CHECK(detail::training_order(0, 1, 1).empty());
  CHECK(detail::training_order(1, 1, 1) == std::vector<std::size_t>{0});
  // 6000 draws of 1/6: standard deviation 29.
  std::array<int, 6> first{};
  for (std::uint32_t epoch = 0; epoch < 6000; ++epoch) ++first[detail::training_order(6, 9, epoch)[0]];
  for (const int count : first) CHECK(std::abs(count - 1000) < 150);
}

TEST_CASE("a model learns swapped labels, with the same bits for any number of threads", "[models][training][threads]") {
  const std::vector<FineTuneExample> examples = films(true);
  std::optional<State> first;
  for (const unsigned threads : {1U, 3U}) {
    set_num_threads(threads);
    TextModel model = stock("sentiment");
    std::vector<FineTuneProgress> progress;
    const FineTuneResult result =
        model.fine_tune(examples, {.epochs = 12, .batch_size = 4, .learning_rate = 3e-3, .on_progress = [&](const auto& at) {
                                     progress.push_back(at);
                                     return true;
                                   }});
    REQUIRE(progress.size() == 36);
    CHECK(progress.back().epoch == 12);
    CHECK(progress.back().step == 36);
    CHECK(progress.back().steps == 36);
    CHECK_FALSE(progress.back().validation_loss);
    CHECK_FALSE(result.validation_accuracy);
    CHECK(progress.front().loss > 1);
    CHECK(std::abs(result.loss - 0.0230146) < 1e-6);  // as in wasm-tests/suites/fine_tuning.ts
    CHECK(std::abs(result.loss - (progress[33].loss + progress[34].loss + progress[35].loss) / 3) < 1e-12);
    const State state = state_of(model);
    if (!first) first = state;
    CHECK(changed(*first, state).empty());
  }
  set_num_threads(1);
  TextModel other = stock("sentiment");
  other.fine_tune(examples, {.epochs = 12, .batch_size = 4, .learning_rate = 3e-3, .seed = 1});
  CHECK_FALSE(changed(*first, state_of(other)).empty());
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("attn-no-dropout-" + std::to_string(std::random_device()()));
  std::filesystem::copy(testdata("models/sentiment"), folder, std::filesystem::copy_options::recursive);
  const std::vector<std::uint8_t> bytes = bytes_of(folder / "config.json");
  json config = json::parse(bytes.begin(), bytes.end());
  set_dropout(config, 0);
  std::ofstream(folder / "config.json") << config.dump();
  TextModel without = TextModel::load(folder);
  CHECK(std::abs(without.fine_tune(examples, {.epochs = 12, .batch_size = 4, .learning_rate = 3e-3}).loss - 0.0201450) < 1e-6);
  for (const FineTuneExample& example : examples) CHECK(without.classify({example.text})[0][0].label == std::get<std::string>(example.label));
  std::filesystem::remove_all(folder);
}

TEST_CASE("held-out examples are evaluated after each epoch", "[models][training]") {
  TextModel model = stock("sentiment");
  std::vector<FineTuneProgress> progress;
  const auto keep = [&](const FineTuneProgress& at) {
    progress.push_back(at);
    return true;
  };
  for (const std::optional<std::int64_t> layers : {std::optional<std::int64_t>(), std::optional<std::int64_t>(0)}) {
    progress.clear();
    const FineTuneResult result =
        model.fine_tune(films(), {.epochs = 2, .batch_size = 3, .learning_rate = 1e-5, .layers = layers, .validation = 0.3, .on_progress = keep});
    REQUIRE(progress.size() == 6);
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(progress[i].validation_loss.has_value() == (i % 3 == 2));
      CHECK(progress[i].validation_accuracy.has_value() == (i % 3 == 2));
    }
    CHECK(result.validation_accuracy == progress.back().validation_accuracy);
    CHECK(*result.validation_accuracy >= 2.0 / 3);
    CHECK(*progress.back().validation_loss < 1);
  }
}

TEST_CASE("a head for new labels is initialized, trained, saved and loaded", "[models][training]") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("attn-fine-tuned-" + std::to_string(std::random_device()()));
  for (const char* checkpoint : {"tiny-bert-cls", "tiny-bert-legacy", "tiny-mpnet-mean", "tiny-distilbert"}) {
    CAPTURE(checkpoint);
    TextModel model = stock(checkpoint);
    std::vector<FineTuneExample> examples;
    for (const FineTuneExample& film : films()) examples.push_back({film.text, std::int64_t{std::get<std::string>(film.label) == "positive"}});
    examples[3].label = "so \"so\"";
    const FineTuneResult result =
        model.fine_tune(examples, {.epochs = 100, .batch_size = 5, .learning_rate = 5e-3, .labels = {"bad", "good", "so \"so\""}});
    CHECK(result.loss < 0.5);
    CHECK(model.labels() == std::vector<std::string>{"bad", "good", "so \"so\""});
    CHECK(model.classify({examples[3].text})[0][0].label == "so \"so\"");
    CHECK(model.classify({examples[0].text})[0][0].label == "good");
    model.save_pretrained(folder);
    const TextModel again = TextModel::load(folder);
    CHECK(again.labels() == model.labels());
    CHECK(changed(state_of(model), state_of(again)).empty());
    CHECK(again.classify({"a film"})[0][0].score == model.classify({"a film"})[0][0].score);
    const std::vector<std::uint8_t> bytes = bytes_of(folder / "config.json");
    const json config = json::parse(bytes.begin(), bytes.end());
    CHECK(config.at("architectures").at(0).get<std::string>().ends_with("ForSequenceClassification"));
    CHECK(config.at("id2label") == json{{"0", "bad"}, {"1", "good"}, {"2", "so \"so\""}});
    CHECK(config.at("label2id") == json{{"bad", 0}, {"good", 1}, {"so \"so\"", 2}});
    std::filesystem::remove_all(folder);
  }
  TextModel numbers = stock("tiny-bert-cls"), names = stock("tiny-mpnet-mean"), one = stock("tiny-bert");
  numbers.fine_tune({{"a", std::int64_t{2}}, {"b", std::int64_t{0}}, {"c", std::int64_t{1}}});
  CHECK(numbers.labels() == std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"});
  names.fine_tune({{"a", "tea"}, {"b", "milk", "a second text"}});
  CHECK(names.labels() == std::vector<std::string>{"milk", "tea"});
  one.fine_tune({{"one two three", 1.0}, {"four five", 0.0}, {"six", 0.25}},
                {.epochs = 60, .batch_size = 3, .learning_rate = 1e-2, .labels = {"yes"}});
  CHECK(one.classify({"one two three"})[0][0].score > 0.8F);
  CHECK(one.classify({"four five"})[0][0].score < 0.2F);
}

TEST_CASE("a model with one label is trained for the kind of answer in its files", "[models][training]") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("attn-one-label-" + std::to_string(std::random_device()()));
  TextModel one = stock("tiny-bert");
  const std::vector<FineTuneExample> numbers{{"one two three", 3.5}, {"four five", -2.0}, {"six", 0.5}, {"seven", 1.0}};
  one.fine_tune({{"a", 0.0}}, {.epochs = 1, .labels = {"score"}});
  one.save_pretrained(folder);
  const std::vector<std::uint8_t> bytes = bytes_of(folder / "config.json");
  const auto with = [&](const char* name, const json& value) {
    json config = json::parse(bytes.begin(), bytes.end());
    config[name] = value;
    set_dropout(config, 0);
    std::ofstream(folder / "config.json") << config.dump();
    return TextModel::load(folder);
  };
  const auto names = [](const char* activation) { return json{{"activation_fn", std::string("torch.nn.modules.") + activation}}; };
  std::array models{with("problem_type", "regression"), with("sentence_transformers", names("linear.Identity"))};
  for (TextModel& model : models) {
    const auto answer = [&](const FineTuneExample& example) { return static_cast<double>(model.classify({example.text})[0][0].score); };
    double squares = 0;
    for (const FineTuneExample& example : numbers) squares += std::pow(answer(example) - std::get<double>(example.label), 2);
    std::vector<FineTuneProgress> progress;
    const auto keep = [&](const FineTuneProgress& at) {
      progress.push_back(at);
      return true;
    };
    model.fine_tune(numbers, {.epochs = 1, .batch_size = 4, .learning_rate = 1e-9, .on_progress = keep});
    CHECK(std::abs(progress.at(0).loss - squares / 4) < 1e-5);
    const FineTuneResult result =
        model.fine_tune(numbers, {.epochs = 100, .batch_size = 3, .learning_rate = 1e-2, .validation = 0.25, .on_progress = keep});
    CHECK(result.loss < 0.1);
    CHECK_FALSE(result.validation_accuracy);
    CHECK_FALSE(progress.back().validation_accuracy);
    CHECK(progress.back().validation_loss);
  }
  TextModel sigmoid = with("sentence_transformers", names("activation.Sigmoid"));
  check_error({ErrorCode::out_of_range, "fine_tune", "examples[0].label", {"from 0 to 1"}}, [&] { sigmoid.fine_tune(numbers); });
  CHECK(sigmoid.fine_tune({{"a", 0.75}, {"b", 0.25}}, {.validation = 0.5}).validation_accuracy);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a run that is stopped leaves the weights of its last complete step", "[models][training]") {
  const auto run = [](std::int64_t last, bool throws) {
    TextModel model = stock("sentiment");
    FineTuneOptions options{.epochs = 2, .batch_size = 2, .learning_rate = 1e-3};
    State state;
    options.on_progress = [&](const FineTuneProgress& at) {
      if (at.step == last) state = state_of(model);
      if (at.step == last && throws) throw std::runtime_error("enough");
      return at.step != last;
    };
    if (throws)
      CHECK_THROWS_AS(model.fine_tune(films(), options), std::runtime_error);
    else
      CHECK(model.fine_tune(films(), options).loss > 0);
    CHECK(changed(state, state_of(model)).empty());
    return state;
  };
  CHECK(changed(run(3, false), run(3, true)).empty());
  CHECK_FALSE(changed(run(3, false), run(4, false)).empty());
}

TEST_CASE("invalid training requests are refused and change nothing", "[models][training]") {
  TextModel model = stock("sentiment");
  const State before = state_of(model);
  const auto check = [&](ErrorCode code, const std::string& argument, const std::vector<FineTuneExample>& examples, const FineTuneOptions& options) {
    check_error({code, "fine_tune", argument, {}}, [&] { model.fine_tune(examples, options); });
    CHECK(changed(before, state_of(model)).empty());
    CHECK(model.labels() == std::vector<std::string>{"negative", "positive"});
  };
  const std::vector<FineTuneExample> some = films();
  const double infinity = std::numeric_limits<double>::infinity();
  check(ErrorCode::argument, "examples", {}, {});
  check(ErrorCode::config, "epochs", some, {.epochs = 0});
  check(ErrorCode::config, "batch_size", some, {.batch_size = 0});
  for (const double rate : {0.0, -1.0, infinity, std::nan("")}) check(ErrorCode::config, "learning_rate", some, {.learning_rate = rate});
  check(ErrorCode::config, "weight_decay", some, {.weight_decay = -1});
  for (const double share : {-0.1, 1.0, std::nan("")}) check(ErrorCode::config, "validation", some, {.validation = share});
  for (const std::int64_t layers : {-1, 100}) check(ErrorCode::out_of_range, "layers", some, {.layers = layers});
  check(ErrorCode::argument, "labels[1]", some, {.labels = {"negative", "negative"}});
  check(ErrorCode::out_of_range, "examples[0].label", some, {.labels = {"good", "bad"}});
  check(ErrorCode::out_of_range, "examples[1].label", {{"a", "positive"}, {"b", "neutral"}}, {});
  check(ErrorCode::out_of_range, "examples[0].label", {{"a", std::int64_t{2}}}, {});
  check(ErrorCode::out_of_range, "examples[0].label", {{"a", std::int64_t{-1}}}, {});
  check(ErrorCode::out_of_range, "examples[0].label", {{"a", 0.5}}, {});
  check(ErrorCode::out_of_range, "examples[0].label", {{"a", infinity}}, {});
  check(ErrorCode::config, "learning_rate", {{"a", "x"}, {"b", "y"}}, {.learning_rate = -1, .labels = {"x", "y"}});

  check_error({ErrorCode::unsupported, "fine_tune", "the model", {"weights float32"}},
              [&] { stock("sentiment", {.weights = Weights::int8}).fine_tune(some); });
  check_error({ErrorCode::unsupported, "fine_tune", "the head", {"multi-label"}},
              [&] { stock("tiny-bert-multilabel").fine_tune({{"a", std::int64_t{0}}}); });
  check_error({ErrorCode::out_of_range, "fine_tune", "labels", {}}, [&] { stock("tiny-bert-cls").fine_tune({{"a", std::int64_t{1} << 40}}); });

  TextModel wild = stock("sentiment");
  State last;
  std::int64_t steps = 0;
  const FineTuneOptions far{.epochs = 50, .batch_size = 2, .learning_rate = 1e30, .on_progress = [&](const FineTuneProgress& at) {
                              last = state_of(wild);
                              steps = at.step;
                              return true;
                            }};
  try {
    wild.fine_tune(some, far);
    FAIL("it went on");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::out_of_range);
    CHECK(std::string(error.what()).find("of step " + std::to_string(steps + 1)) != std::string::npos);
  }
  REQUIRE(steps > 0);
  CHECK(changed(last, state_of(wild)).empty());
}

}  // namespace models_fine_tuning_test
}  // namespace attn::test
