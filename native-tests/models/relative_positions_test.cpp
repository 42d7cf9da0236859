// testdata/relative_positions.json: make_log_bucket_position of transformers.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "attn/context.hpp"
#include "attn/models/model_config.hpp"
#include "attn/models/text_model.hpp"
#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "parallel/runs.hpp"
#include "support/matchers.hpp"
#include "support/testdata.hpp"

using namespace attn;
using namespace attn::test;

TEST_CASE("relative positions have the buckets of transformers for every distance up to 4096", "[models]") {
  std::ifstream file(testdata("relative_positions.json"));
  const nlohmann::json settings = nlohmann::json::parse(file);
  REQUIRE(settings.size() >= 10);
  for (const auto& each : settings) {
    detail::RelativeConfig config;
    config.buckets = each.at("position_buckets");
    config.max_distance = each.at("max_relative_positions");
    config.span = 5000;
    CAPTURE(config.buckets, config.max_distance);
    const std::vector<std::int64_t> first = each.at("first"), bucket = each.at("bucket");
    std::int64_t wrong = 0;
    std::size_t at = 0;
    for (std::int64_t distance = 0; distance <= 4096; ++distance) {
      while (at + 1 < first.size() && first[at + 1] <= distance) ++at;
      wrong += config.row(distance) != 5000 + bucket[at];
      wrong += config.row(-distance) != 5000 - bucket[at];
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("distances beyond the table of relative positions are clipped on both sides", "[models]") {
  detail::RelativeConfig config;
  config.span = config.max_distance = 6;
  for (std::int64_t distance = -20; distance <= 20; ++distance) {
    CAPTURE(distance);
    CHECK(config.row(distance) == std::clamp<std::int64_t>(distance + 6, 0, 11));
  }
  config.buckets = config.span = 8;
  config.max_distance = 40;
  CHECK(config.row(0) == 8);
  CHECK(config.row(-4000) == 0);
  CHECK(config.row(4000) == 15);
  for (std::int64_t distance = -200; distance < 200; ++distance) CHECK(config.row(distance) <= config.row(distance + 1));
}

namespace models_relative_positions_test {

TextModel deberta(const char* name = "tiny-deberta") { return TextModel::load(testdata(std::string("models/") + name)); }

Encoding some_tokens() {
  constexpr std::size_t kL = 45;
  Encoding encoding;
  encoding.input_ids = xt::xtensor<std::int32_t, 2>({2, kL}, 0);
  encoding.attention_mask = xt::xtensor<std::uint8_t, 2>({2, kL}, 0);
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t i = 0; i < kL - 9 * b; ++i) {
      encoding.input_ids(b, i) = static_cast<std::int32_t>(5 + (i * 31 + b) % 270);
      encoding.attention_mask(b, i) = 1;
    }
  return encoding;
}

#ifdef ATTN_TESTS_FORK

constexpr std::int64_t kBuckets = 512;

Checkpoint with_large_table() {
  const Checkpoint tiny = read_checkpoint(testdata("models/tiny-deberta"));
  return with_tensors(with_config(tiny,
                                  [](nlohmann::json& config) {
                                    config["position_buckets"] = kBuckets;
                                    config["max_relative_positions"] = 2 * kBuckets;
                                  }),
                      [](std::vector<FileTensor>& tensors) {
                        FileTensor& table = named(tensors, "deberta.encoder.rel_embeddings.weight");
                        const std::size_t size = table.bytes.size() / static_cast<std::size_t>(table.shape[0]) * 2 * kBuckets;
                        for (std::size_t i = table.bytes.size(); i < size; ++i) table.bytes.push_back(table.bytes[i % table.bytes.size()]);
                        table.bytes.resize(size);
                        table.shape[0] = 2 * kBuckets;
                      });
}

/// Calls the model while it waits, as a scheduler with other jobs does.
struct CallsAgain : Executor {
  unsigned workers() const override { return 2; }
  void run(unsigned, const Work& work) override {
    if (again && !std::exchange(is_inside, true)) again();
    work();
  }
  std::function<void()> again;
  bool is_inside = false;
};

#endif

}  // namespace models_relative_positions_test
using namespace models_relative_positions_test;

TEST_CASE("scores are the sum of their parts, bit for bit", "[models]") {
  const TextModel model = deberta();
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    const AttentionTrace trace = model.trace_layer(some_tokens(), layer);
    const Array c2c = floats_of(trace.at(TraceName::c2c)), c2p = floats_of(trace.at(TraceName::c2p)), p2c = floats_of(trace.at(TraceName::p2c));
    Array sum = c2c;
    for (std::size_t i = 0; i < sum.data.size(); ++i) sum.data[i] = (c2c.data[i] + c2p.data[i]) + p2c.data[i];
    CHECK(sum.dims == Shape{2, 4, 45, 45});
    CHECK_THAT(floats_of(trace.at(TraceName::scores)), HasBitsOf(sum));
    for (const TraceName name : {TraceName::c2c, TraceName::c2p, TraceName::p2c})
      CHECK_THAT(floats_of(model.trace_layer(some_tokens(), layer, {name}).at(name)), HasBitsOf(floats_of(trace.at(name))));
  }
}

TEST_CASE("parts that the scores do not have are not part of a full trace and are refused by name", "[models]") {
  const TextModel without_c2p = deberta("tiny-deberta-mlm"), bert = deberta("tiny-bert");
  const AttentionTrace all = without_c2p.trace_layer(some_tokens(), 0), of_bert = bert.trace_layer(some_tokens(), 0);
  CHECK((all.contains(TraceName::c2c) && all.contains(TraceName::p2c) && !all.contains(TraceName::c2p)));
  for (const TraceName name : {TraceName::c2c, TraceName::c2p, TraceName::p2c}) {
    CHECK_FALSE(of_bert.contains(name));
    check_error({ErrorCode::argument, "trace_layer", "trace", {"DeBERTa"}}, [&] { bert.trace_layer(some_tokens(), 0, {name}); });
  }
  check_error({ErrorCode::argument, "trace_layer", "trace", {"c2p"}},
              [&] { without_c2p.trace_layer(some_tokens(), 0, {TraceName::c2p, TraceName::q}); });
}

TEST_CASE("keys and queries of positions are recomputed after weights change", "[models]") {
  const auto answer = [](const TextModel& model) { return floats_of(model.forward(some_tokens()).last_hidden_state); };
  for (const char* name : {"deberta.encoder.rel_embeddings.weight", "deberta.encoder.LayerNorm.weight",
                           "deberta.encoder.layer.1.attention.self.key_proj.weight", "deberta.encoder.layer.0.attention.self.query_proj.bias"}) {
    CAPTURE(name);
    TextModel model = deberta(), fresh = deberta();
    const Array before = answer(model);
    StateDict state;
    AnyTensor values = model.get_parameter(name);
    for (float& value : values) value *= 1.5F;
    state.emplace(name, values);
    model.load_state_dict(state, false);
    fresh.load_state_dict(state, false);
    CHECK_THAT(answer(model), HasBitsOf(answer(fresh)));
    CHECK(answer(model).data != before.data);
  }
}

#ifdef ATTN_TESTS_FORK
TEST_CASE("a call that an executor makes during another call computes the keys of positions itself", "[models][threads]") {
  // In a child process, because a failure would hang.
  CHECK(status_of_child([] {
          const Checkpoint checkpoint = with_large_table();
          const auto model = load(checkpoint), same = load(checkpoint);
          const Batch batch = some_ids(1, 9, model->config().vocab_size);
          const Array expected = forward(*same, batch, false).last_hidden_state;
          const auto executor = std::make_shared<CallsAgain>();
          Array inside;
          executor->again = [&] { inside = forward(*model, batch, false).last_hidden_state; };
          const Context context({.executor = executor});
          const Context::Scope scope(context);
          const Array outside = forward(*model, batch, false).last_hidden_state;
          if (!executor->is_inside) return 2;
          return inside == expected && outside == expected ? 0 : 1;
        }) == 0);
}
#endif

#ifdef ATTN_TESTS_FORK_DURING_CALLS
TEST_CASE("the child of a fork computes a forward while another thread of its parent was in one", "[models][threads]") {
  const auto name = GENERATE(from_range([] {
    std::vector<std::string> names = checkpoints();
    names.emplace_back();
    return names;
  }()));
  CAPTURE(name);
  const Checkpoint checkpoint = name.empty() ? with_large_table() : read_checkpoint(testdata("models/" + name));
  const Threads pool(2);
  const auto same = load(checkpoint);
  const Batch batch = some_ids(1, 9, same->config().vocab_size);
  const Array expected = forward(*same, batch, false).last_hidden_state;
  for (int i = 0; i < (name.empty() ? 20 : 4); ++i) {
    const auto model = load(checkpoint);
    std::atomic<bool> began{false};
    std::thread other([&] {
      began.store(true);
      forward(*model, batch, false);
    });
    while (!began.load()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(50 * i));
    CHECK(status_of_child([&]() -> int { _exit(forward(*model, batch, false).last_hidden_state == expected ? 0 : 1); }) == 0);
    other.join();
  }
}
#endif
