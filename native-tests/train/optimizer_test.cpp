#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "attn/attn.hpp"
#include "attn/context.hpp"
#include "support/call.hpp"
#include "support/golden.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace train_optimizer_test {

using Arrays = std::map<std::string, Array>;

TensorView view_of(const Array& x) { return {x.data.data(), x.dims}; }

std::unique_ptr<Optimizer> optimizer_of(const GoldenCase& golden, std::vector<ModuleRef> modules) {
  std::vector<ParameterGroup> groups;
  for (const nlohmann::json& given : golden.option("groups", nlohmann::json::array())) {
    ParameterGroup& group = groups.emplace_back();
    group.names = [part = given.at("names").get<std::string>()](const std::string& name) { return name.find(part) != std::string::npos; };
    if (given.contains("learningRate")) group.learning_rate = given.at("learningRate").get<double>();
    if (given.contains("weightDecay")) group.weight_decay = given.at("weightDecay").get<double>();
  }
  const std::set<std::string> common{"groups", "begins", "schedule", "maxNorm", "learningRate", "weightDecay"};
  const auto options = [&](auto made) {
    made.learning_rate = golden.option("learningRate", made.learning_rate);
    made.weight_decay = golden.option("weightDecay", made.weight_decay);
    made.groups = groups;
    std::set<std::string> names = common;
    if constexpr (requires { made.momentum; }) {
      names.insert({"momentum", "dampening", "nesterov"});
      made.momentum = golden.option("momentum", made.momentum);
      made.dampening = golden.option("dampening", made.dampening);
      made.nesterov = golden.option("nesterov", made.nesterov);
    } else {
      names.insert({"betas", "eps"});
      made.betas = golden.option("betas", made.betas);
      made.eps = golden.option("eps", made.eps);
    }
    golden.check_names({"state", "generated"}, names);
    return made;
  };
  if (golden.op() == "SGD") return std::make_unique<SGD>(std::move(modules), options(SGDOptions{}));
  if (golden.op() == "Adam") return std::make_unique<Adam>(std::move(modules), options(AdamOptions{}));
  return std::make_unique<AdamW>(std::move(modules), options(AdamWOptions{}));
}

struct Modules {
  MultiHeadAttention attention{{.embed_dim = 4, .num_heads = 2}};
  Embedding embedding{{.num_embeddings = 3, .embedding_dim = 4}};

  std::vector<ModuleRef> refs() { return {attention, embedding}; }
  Arrays state() const {
    Arrays all;
    for (const auto& [name, array] : arrays_of(attention.state_dict())) all.emplace("0." + name, array);
    for (const auto& [name, array] : arrays_of(embedding.state_dict())) all.emplace("1." + name, array);
    return all;
  }
  void load(const Arrays& all) {
    attention.load_state_dict(state_of(below("0.", all)));
    embedding.load_state_dict(state_of(below("1.", all)));
  }
  void add_gradients(const Arrays& all) {
    const Arrays of_attention = below("0.", all), of_embedding = below("1.", all);
    attention.add_gradients(views(of_attention));
    embedding.add_gradients(views(of_embedding));
  }

 private:
  static Arrays below(const std::string& prefix, const Arrays& all) {
    Arrays part;
    for (const auto& [name, array] : all)
      if (name.starts_with(prefix)) part.emplace(name.substr(prefix.size()), array);
    return part;
  }
  static StateView views(const Arrays& all) {
    StateView state;
    for (const auto& [name, array] : all) state.emplace(name, view_of(array));
    return state;
  }
};

Arrays random_gradients(Generator& random, const Arrays& like, float factor = 1) {
  Arrays all;
  for (const auto& [name, array] : like) all.emplace(name, random.normal(array.dims, factor));
  return all;
}

void check_same(const Arrays& got, const Arrays& expected) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, array] : expected) {
    INFO(name);
    CHECK_THAT(got.at(name), HasBitsOf(array));
  }
}

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Optimizer>(std::vector<ModuleRef>)> make;
};
const std::vector<Kind> kKinds{
    {"SGD",
     [](std::vector<ModuleRef> modules) {
       return std::make_unique<SGD>(std::move(modules), SGDOptions{.learning_rate = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1});
     }},
    {"Adam",
     [](std::vector<ModuleRef> modules) {
       return std::make_unique<Adam>(std::move(modules), AdamOptions{.learning_rate = 0.01, .weight_decay = 0.1});
     }},
    {"AdamW", [](std::vector<ModuleRef> modules) { return std::make_unique<AdamW>(std::move(modules), AdamWOptions{.learning_rate = 0.01}); }}};

TEST_CASE("100 steps of an optimiser agree with torch", "[train][optimizers][goldens]") {
  const GoldenFile file = read_golden(testdata("optimizers.safetensors"));
  const nlohmann::json cases = nlohmann::json::parse(file.metadata.at("cases").get<std::string>());
  std::map<std::string, int> counts;
  for (const nlohmann::json& entry : cases) {
    const GoldenCase golden(file, entry);
    if (golden.op().ends_with("_schedule")) continue;
    INFO("case " << golden.name() << ", options " << entry.at("options").dump());
    ++counts[golden.op()];
    Modules modules;
    const Arrays first = golden.state();
    modules.load(first);
    const std::unique_ptr<Optimizer> optimizer = optimizer_of(golden, modules.refs());
    Arrays gradients;
    for (const auto& [name, array] : first) gradients.emplace(name, golden.tensor("gradient." + name));
    Arrays results;
    std::vector<float> norms;
    constexpr std::int64_t kSteps = 100;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      Arrays now;
      for (const auto& [name, all] : gradients)
        if (step >= golden.option("begins", nlohmann::json::object()).value(name, std::int64_t{0})) now.emplace(name, slice(all, step));
      optimizer->zero_grad();
      modules.add_gradients(now);
      if (entry.at("options").contains("schedule")) {
        const nlohmann::json& schedule = entry.at("options").at("schedule");
        optimizer->set_learning_rate(linear_schedule(step, {golden.option("learningRate", 0.0), schedule.at("warmup"), schedule.at("steps")}));
      }
      if (entry.at("options").contains("maxNorm")) norms.push_back(static_cast<float>(clip_grad_norm(modules.refs(), golden.option("maxNorm", 0.0))));
      optimizer->step();
      if (step == 0)
        for (const auto& [name, array] : modules.state()) results.emplace(name + ".first", array);
    }
    results.merge(modules.state());
    for (const auto& [name, array] : arrays_of(optimizer->state_dict()))
      if (!name.ends_with(".step")) results.emplace(name, array);
    if (!norms.empty()) results.emplace("norms", Array({kSteps}, norms));

    REQUIRE(results.size() == entry.at("expected").size());
    const Array torch = golden.tensor("torch");
    std::size_t at = 0;
    for (const auto& [name, array] : results) {
      INFO(name);
      CHECK(golden.difference(name, array) == "");
      // torch computes in float32 and fuses operations.
      double largest = 0, distance = 0;
      for (const float value : array.data) {
        const double expected = torch.data.at(at++);
        largest = std::max(largest, std::abs(expected));
        distance = std::max(distance, std::abs(value - expected));
      }
      CHECK(distance <= 1e-6 * largest);
    }
    CHECK(at == torch.data.size());
  }
  CHECK(counts == std::map<std::string, int>{{"SGD", 7}, {"Adam", 10}, {"AdamW", 10}});
}

TEST_CASE("an optimiser's state can be loaded into another one, which continues bit for bit", "[train][optimizers][state]") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    Generator random(5);
    Modules modules, others;
    const auto optimizer = kind.make(modules.refs());
    CHECK(optimizer->state_dict().empty());
    std::vector<Arrays> gradients;
    for (int i = 0; i < 6; ++i) gradients.push_back(random_gradients(random, modules.state()));
    for (Arrays& each : gradients) each.erase("0.out_proj.bias");
    const auto run = [&](Modules& of, Optimizer& by, std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i) {
        by.zero_grad();
        of.add_gradients(gradients[i]);
        by.step();
      }
    };
    run(modules, *optimizer, 0, 3);
    const StateDict kept = optimizer->state_dict();
    CHECK_FALSE(kept.contains("0.out_proj.bias.step"));
    CHECK(kept.contains(kind.name == std::string("SGD") ? "1.weight.momentum_buffer" : "1.weight.exp_avg_sq"));
    if (kind.name != std::string("SGD")) CHECK(kept.at("0.in_proj_weight.step")() == 3);

    others.load(modules.state());
    const auto other = kind.make(others.refs());
    other->load_state_dict(parse_safetensors(write_safetensors(kept)));
    run(modules, *optimizer, 3, 6);
    run(others, *other, 3, 6);
    check_same(others.state(), modules.state());
    check_same(arrays_of(other->state_dict()), arrays_of(optimizer->state_dict()));
    Modules third;
    third.load(others.state());
    const auto fresh = kind.make(third.refs());
    other->load_state_dict(StateDict{});
    CHECK(other->state_dict().empty());
    run(third, *fresh, 0, 1);
    run(others, *other, 0, 1);
    check_same(others.state(), third.state());
  }
}

TEST_CASE("an optimiser's state that does not fit changes nothing", "[train][optimizers][state][errors]") {
  Generator random(6);
  Modules modules;
  AdamW optimizer(modules.refs());
  modules.add_gradients(random_gradients(random, modules.state()));
  optimizer.step();
  const Arrays good = arrays_of(optimizer.state_dict());
  const auto refuses = [&](ErrorCode code, const char* argument, const std::vector<std::string>& words, const std::function<void(Arrays&)>& spoil) {
    Arrays bad = good;
    spoil(bad);
    check_error({code, "load_state_dict", argument, words}, [&] { optimizer.load_state_dict(state_of(bad)); });
    check_same(arrays_of(optimizer.state_dict()), good);
  };
  refuses(ErrorCode::mismatch, "state", {"missing: 0.in_proj_bias.exp_avg, 1.weight.step"}, [](Arrays& state) {
    state.erase("0.in_proj_bias.exp_avg");
    state.erase("1.weight.step");
  });
  refuses(ErrorCode::mismatch, "state", {"unexpected: 0.weight.exp_avg, 2.weight.step, weight"},
          [](Arrays& state) { state["0.weight.exp_avg"] = state["2.weight.step"] = state["weight"] = Array({1}); });
  refuses(ErrorCode::mismatch, "state", {"1.weight.exp_avg_sq has shape (4,3), expected (3,4)"},
          [](Arrays& state) { state["1.weight.exp_avg_sq"] = Array({4, 3}); });
  refuses(ErrorCode::mismatch, "state", {"1.weight.step has shape (1), expected ()"},
          [](Arrays& state) { state["1.weight.step"] = Array({1}, 1.0F); });
  for (const float step : {0.0F, -1.0F, 1.5F, 0x1p25F, kNaN})
    refuses(ErrorCode::argument, "1.weight.step", {"a whole number from 1 to 16777216"},
            [&](Arrays& state) { state["1.weight.step"] = Array(Shape{}, step); });
}

TEST_CASE("a step has the same bits with any number of threads, with packed and unpacked weights", "[train][optimizers][threads]") {
  const unsigned before = num_threads();
  const TransformerEncoderLayerOptions options{.d_model = 76, .nhead = 2, .dim_feedforward = 301, .norm_first = true, .gated = true};
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    std::optional<Arrays> first;
    for (const unsigned threads : {1U, 2U, 3U}) {
      set_num_threads(threads);
      TransformerEncoderLayer layer(options);
      const Arrays start = arrays_of(layer.state_dict());
      Embedding table({.num_embeddings = 301, .embedding_dim = 76});
      table.load_state_dict(state_of({{"weight", start.at("linear1.weight")}}));
      const auto optimizer = kind.make({layer, table});
      Generator random(7);
      for (int step = 0; step < 3; ++step) {
        const Arrays gradients = random_gradients(random, start);
        StateView views;
        for (const auto& [name, array] : gradients) views.emplace(name, view_of(array));
        optimizer->zero_grad();
        layer.add_gradients(views);
        table.add_gradients({{"weight", view_of(gradients.at("linear1.weight"))}});
        clip_grad_norm({layer, table}, 1);
        optimizer->step();
      }
      Arrays now = arrays_of(layer.state_dict());
      CHECK_THAT(arrays_of(table.state_dict()).at("weight"), HasBitsOf(now.at("linear1.weight")));
      for (const auto& [name, array] : start) CHECK_THAT(now.at(name), !HasBitsOf(array));
      if (!first) first = now;
      check_same(now, *first);
    }
  }
  set_num_threads(before);
}

TEST_CASE("a step is complete even if the executor throws during it", "[train][optimizers][threads]") {
  /// Throws after some tasks ran in another thread, or before any.
  struct Failing : Executor {
    unsigned workers() const override { return 4; }
    void run(unsigned, const Work& work) override {
      if (fails == 0) return work();
      if (fails == 2) std::thread([&] { work(); }).join();
      throw std::runtime_error("no threads today");
    }
    int fails = 0;
  };
  const auto executor = std::make_shared<Failing>();
  const Context context({.executor = executor});
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    TransformerEncoderLayer layer({.d_model = 76, .nhead = 2, .dim_feedforward = 301}), same({.d_model = 76, .nhead = 2, .dim_feedforward = 301});
    same.load_state_dict(layer.state_dict());
    const auto optimizer = kind.make({layer}), other = kind.make({same});
    Generator random(7);
    for (const int fails : {0, 1, 2, 0}) {
      const Arrays gradients = random_gradients(random, arrays_of(same.state_dict()));
      StateView views;
      for (const auto& [name, array] : gradients) views.emplace(name, view_of(array));
      for (TransformerEncoderLayer* each : {&layer, &same}) {
        each->zero_grad();
        each->add_gradients(views);
      }
      other->step();
      clip_grad_norm({same}, 1e-3);
      const Context::Scope scope(context);
      executor->fails = fails;
      if (fails == 0)
        optimizer->step();
      else
        CHECK_THROWS_WITH(optimizer->step(), "no threads today");
      executor->fails = 0;
      clip_grad_norm({layer}, 1e-3);
      check_same(arrays_of(layer.state_dict()), arrays_of(same.state_dict()));
      check_same(arrays_of(optimizer->state_dict()), arrays_of(other->state_dict()));
    }
  }
}

TEST_CASE("a parameter without a gradient stays unchanged, and NaN in one does not spread to others", "[train][optimizers]") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    Modules modules;
    const Arrays start = modules.state();
    const auto optimizer = kind.make(modules.refs());
    optimizer->step();
    check_same(modules.state(), start);
    Array gradient({4, 4}, 1.0F);
    gradient.data[5] = kNaN;
    modules.add_gradients({{"0.out_proj.weight", gradient}});
    optimizer->step();
    const Arrays after = modules.state();
    for (const auto& [name, array] : after)
      if (name != "0.out_proj.weight") CHECK_THAT(array, HasBitsOf(start.at(name)));
    for (std::size_t i = 0; i < 16; ++i) CHECK(std::isnan(after.at("0.out_proj.weight").data[i]) == (i == 5));
    modules.load(start);
    optimizer->step();
    check_same(modules.state(), start);
    CHECK_FALSE(optimizer->state_dict().empty());
  }
}

TEST_CASE("a parameter uses the options of the first group that matches, relative to the learning rate", "[train][optimizers]") {
  Modules modules;
  const auto is = [](const char* part) { return [=](const std::string& name) { return name.find(part) != std::string::npos; }; };
  SGD optimizer(modules.refs(),
                {.learning_rate = 0.5, .groups = {{.names = is("bias"), .learning_rate = 0.25}, {.names = is("out_proj"), .learning_rate = 4}}});
  Arrays ones;
  Arrays zeros = modules.state();
  for (auto& [name, array] : zeros) ones.emplace(name, Array(array.dims, 1.0F)), array = Array(array.dims);
  for (const double factor : {1.0, 0.5, 0.0}) {
    optimizer.set_learning_rate(0.5 * factor);
    modules.load(zeros);
    modules.add_gradients(ones);
    optimizer.step();
    const auto rate = static_cast<float>(factor);
    for (const auto& [name, array] : modules.state()) {
      INFO(name);
      const float own = name.ends_with("bias") ? 0.25F : name == "0.out_proj.weight" ? 4.0F : 0.5F;
      CHECK(array.data.front() == -own * rate);
    }
  }
}

TEST_CASE("optimisers refuse invalid requests before anything changes", "[train][optimizers][errors]") {
  Modules modules;
  const auto bad = [&](const char* op, ErrorCode code, const char* argument, auto&& make) { check_error({code, op, argument, {}}, make); };
  const double nan = std::nan("");
  for (const double rate : {0.0, -0.1, nan, HUGE_VAL}) {
    bad("SGD", ErrorCode::config, "learning_rate", [&] { SGD(modules.refs(), {.learning_rate = rate}); });
    bad("Adam", ErrorCode::config, "learning_rate", [&] { Adam(modules.refs(), {.learning_rate = rate}); });
    bad("AdamW", ErrorCode::config, "learning_rate", [&] { AdamW(modules.refs(), {.learning_rate = rate}); });
    bad("AdamW", ErrorCode::config, "groups[0].learning_rate",
        [&] { AdamW(modules.refs(), {.groups = {{.names = [](const std::string&) { return true; }, .learning_rate = rate}}}); });
  }
  for (const double number : {-0.1, nan, HUGE_VAL}) {
    bad("SGD", ErrorCode::config, "momentum", [&] { SGD(modules.refs(), {.momentum = number}); });
    bad("SGD", ErrorCode::config, "weight_decay", [&] { SGD(modules.refs(), {.weight_decay = number}); });
    bad("Adam", ErrorCode::config, "eps", [&] { Adam(modules.refs(), {.eps = number}); });
    bad("AdamW", ErrorCode::config, "groups[0].weight_decay",
        [&] { AdamW(modules.refs(), {.groups = {{.names = [](const std::string&) { return true; }, .weight_decay = number}}}); });
    SGD optimizer(modules.refs());
    bad("SGD", ErrorCode::config, "learning_rate", [&] { optimizer.set_learning_rate(number); });
    CHECK(optimizer.learning_rate() == 1e-3);
  }
  for (const double beta : {-0.1, 1.0, nan}) {
    bad("Adam", ErrorCode::config, "betas[0]", [&] { Adam(modules.refs(), {.betas = {beta, 0.9}}); });
    bad("AdamW", ErrorCode::config, "betas[1]", [&] { AdamW(modules.refs(), {.betas = {0.9, beta}}); });
  }
  bad("SGD", ErrorCode::config, "dampening", [&] { SGD(modules.refs(), {.dampening = nan}); });
  bad("SGD", ErrorCode::config, "nesterov", [&] { SGD(modules.refs(), {.nesterov = true}); });
  bad("SGD", ErrorCode::config, "nesterov", [&] { SGD(modules.refs(), {.momentum = 0.9, .dampening = 0.1, .nesterov = true}); });
  bad("Adam", ErrorCode::argument, "groups[0].names", [&] { Adam(modules.refs(), {.groups = {{}}}); });
  bad("SGD", ErrorCode::argument, "modules", [&] { SGD({}); });
  bad("clip_grad_norm", ErrorCode::argument, "modules", [&] { clip_grad_norm({}, 1); });
  bad("SGD", ErrorCode::argument, "modules[2]", [&] { SGD({modules.attention, modules.embedding, modules.attention}); });
  bad("clip_grad_norm", ErrorCode::argument, "modules[1]", [&] { clip_grad_norm({modules.attention, modules.attention}, 1); });
  for (const double norm : {-1.0, nan}) bad("clip_grad_norm", ErrorCode::config, "max_norm", [&] { clip_grad_norm(modules.refs(), norm); });
}

TEST_CASE("an optimiser detects that a module was destroyed, moved, changed or quantized", "[train][optimizers][errors]") {
  for (const Kind& kind : kKinds) {
    INFO(kind.name);
    Embedding first({.num_embeddings = 3, .embedding_dim = 4});
    auto second = std::make_optional<Embedding>(EmbeddingOptions{.num_embeddings = 5, .embedding_dim = 2});
    const std::vector<ModuleRef> modules{first, *second};
    const auto optimizer = kind.make(modules);
    const Array ones({3, 4}, 1.0F);
    first.add_gradients({{"weight", view_of(ones)}});
    const Arrays start = arrays_of(first.state_dict());
    const auto refuses = [&](ErrorCode code, const std::vector<std::string>& words) {
      check_error({code, kind.name, "modules[1]", words}, [&] { optimizer->step(); });
      check_same(arrays_of(first.state_dict()), start);
      CHECK(optimizer->state_dict().empty());
    };
    second->quantize();
    refuses(ErrorCode::unsupported, {"int8, which has no gradients", "load_state_dict()"});
    check_error({ErrorCode::unsupported, kind.name, "modules[1]", {}}, [&] { kind.make(modules); });
    check_error({ErrorCode::unsupported, "clip_grad_norm", "modules[1]", {}}, [&] { clip_grad_norm(modules, 1); });
    second->initialize();
    *second = Embedding({.num_embeddings = 2, .embedding_dim = 5});
    refuses(ErrorCode::argument, {"another", "weight of shape (5,2)"});
    *second = Embedding({.num_embeddings = 5, .embedding_dim = 2});
    Embedding elsewhere = std::move(*second);
    refuses(ErrorCode::argument, {"destroyed or moved elsewhere"});
    *second = std::move(elsewhere);
    second.reset();
    refuses(ErrorCode::argument, {"destroyed or moved elsewhere"});
    check_error({ErrorCode::argument, kind.name, "modules[1]", {}}, [&] { optimizer->zero_grad(); });
  }
}

TEST_CASE("clip_grad_norm returns the norm of all gradients and scales a larger norm to max_norm", "[train][clip]") {
  Generator random(8);
  Modules modules;
  CHECK(clip_grad_norm(modules.refs(), 1) == 0);
  const Arrays gradients = random_gradients(random, modules.state(), 3);
  double square = 0;
  for (const auto& [name, array] : gradients)
    for (const float value : array.data) square += static_cast<double>(value) * value;
  const double norm = std::sqrt(square);
  modules.add_gradients(gradients);
  const auto now = [&] {
    Arrays all;
    for (const auto& [name, array] : arrays_of(modules.attention.gradients())) all.emplace("0." + name, array);
    for (const auto& [name, array] : arrays_of(modules.embedding.gradients())) all.emplace("1." + name, array);
    return all;
  };
  for (const double most : {norm * 1.001, HUGE_VAL}) {
    CHECK(std::abs(clip_grad_norm(modules.refs(), most) - norm) <= 1e-14 * norm);
    check_same(now(), gradients);
  }
  clip_grad_norm(modules.refs(), 0.5);
  const auto factor = static_cast<float>(0.5 / (norm + 1e-6));
  for (const auto& [name, array] : now())
    for (std::size_t i = 0; i < array.data.size(); ++i) CHECK(array.data[i] == gradients.at(name).data[i] * factor);
  CHECK(std::abs(clip_grad_norm(modules.refs(), 9) - 0.5) <= 1e-6);
  clip_grad_norm(modules.refs(), 0);
  CHECK(clip_grad_norm(modules.refs(), 0) == 0);
}

TEST_CASE("clip_grad_norm of infinite gradients and NaN agrees with torch", "[train][clip]") {
  for (const float wild : {kInfinity, kNaN}) {
    Modules modules;
    Array gradient({3, 4}, 1.0F);
    gradient.data[7] = wild;
    modules.add_gradients({{"1.weight", gradient}, {"0.out_proj.bias", Array({4}, 2.0F)}});
    const double norm = clip_grad_norm(modules.refs(), 1);
    CHECK(std::isinf(norm) == std::isinf(wild));
    const Arrays now = arrays_of(modules.embedding.gradients());
    for (std::size_t i = 0; i < 12; ++i) {
      const float value = now.at("weight").data[i];
      CHECK((std::isnan(value) || value == 0));
      CHECK(std::isnan(value) == (std::isnan(wild) || i == 7));
    }
    const Array other = arrays_of(modules.attention.gradients()).at("out_proj.bias");
    for (const float value : other.data) CHECK(std::isnan(value) == std::isnan(wild));
  }
}

TEST_CASE("the sum of squares of a norm has a fixed order and does not overflow", "[train][clip][threads]") {
  const unsigned before = num_threads();
  Generator random(9);
  Embedding table({.num_embeddings = 301, .embedding_dim = 211});
  const Array gradient = random.normal({301, 211}, 1e30F);
  double first = 0;
  for (const unsigned threads : {1U, 2U, 3U}) {
    set_num_threads(threads);
    table.zero_grad();
    table.add_gradients({{"weight", view_of(gradient)}});
    const double norm = clip_grad_norm({table}, HUGE_VAL);
    if (threads == 1) first = norm;
    CHECK(norm == first);
  }
  double square = 0;
  for (const float value : gradient.data) square += static_cast<double>(value) * value;
  CHECK(std::abs(first - std::sqrt(square)) <= 1e-12 * first);
  set_num_threads(before);
}

}  // namespace train_optimizer_test
}  // namespace attn::test
