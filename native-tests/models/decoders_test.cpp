#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <fstream>
#include <functional>
#include <limits>

#include "attn/models/fine_tuning.hpp"
#include "attn/models/language_model.hpp"
#include "attn/models/model_loader.hpp"
#include "attn/models/rope_scaling.hpp"
#include "attn/models/text_model.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "attn/train/sgd.hpp"
#include "models/checkpoint.hpp"
#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"
#include "support/refused.hpp"

namespace attn::test {
namespace models_decoders_test {

const std::vector<std::string> kDecoders{"tiny-gpt2", "tiny-llama",       "tiny-llama-3",    "tiny-mistral", "tiny-qwen2",  "tiny-qwen3",
                                         "tiny-neox", "tiny-neox-serial", "tiny-llama-yarn", "tiny-gemma-2", "tiny-gemma-3"};

std::string path_of(const std::string& name) { return testdata("models/" + name).string(); }

nlohmann::json read_json(const std::string& path) { return nlohmann::json::parse(std::ifstream(testdata(path))); }

Encoding padded(const std::vector<std::vector<int>>& flags) {
  const std::size_t B = flags.size(), L = flags[0].size();
  Encoding encoding;
  encoding.input_ids = xt::xtensor<std::int32_t, 2>({B, L}, 3);
  encoding.attention_mask = xt::xtensor<std::uint8_t, 2>({B, L}, 0);
  for (std::size_t b = 0; b < B; ++b)
    for (std::size_t i = 0, n = 0; i < L; ++i)
      if (flags[b][i] != 0) {
        encoding.attention_mask(b, i) = 1;
        encoding.input_ids(b, i) = static_cast<std::int32_t>(5 + (n++ * 31 + b * 7) % 300);
      }
  return encoding;
}

/// Padding between tokens would take up places of the window.
bool has_window(const std::string& name) {
  const nlohmann::json config = read_json("models/" + name + "/config.json");
  return config.contains("sliding_window") && !config["sliding_window"].is_null();
}

std::vector<std::size_t> places_of(const std::vector<int>& flags) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < flags.size(); ++i)
    if (flags[i] != 0) places.push_back(i);
  return places;
}

Encoding alone(const Encoding& all, std::size_t b, const std::vector<std::size_t>& places) {
  Encoding encoding;
  encoding.input_ids = xt::xtensor<std::int32_t, 2>({1, places.size()});
  for (std::size_t i = 0; i < places.size(); ++i) encoding.input_ids(0, i) = all.input_ids(b, places[i]);
  return encoding;
}

TextForwardOptions everything() {
  constexpr Trace kNames = Trace::from_bits((1U << kLayerTraceCount) - 1);
  return {.output_attentions = true, .output_hidden_states = true, .trace = EncoderTraceOptions{.names = kNames}};
}

/// Rows of x[b]; of (B,H,L,S) and (B,H,L,S,Dv) also columns.
Array at_places(const Array& x, std::size_t b, const std::vector<std::size_t>& places, bool has_heads, bool has_keys) {
  const auto n = static_cast<std::int64_t>(places.size());
  const std::int64_t H = has_heads ? x.dims[1] : 1, L = x.dims[has_heads ? 2 : 1];
  const std::int64_t inner = static_cast<std::int64_t>(x.data.size()) / (x.dims[0] * H * L), keys = has_keys ? L : 1, width = inner / keys;
  Shape dims = x.dims;
  dims[0] = 1;
  dims[has_heads ? 2 : 1] = n;
  if (has_keys) dims[3] = n;
  Array out(dims);
  float* to = out.data.data();
  for (std::int64_t h = 0; h < H; ++h)
    for (const std::size_t i : places) {
      const float* const row = x.data.data() + ((static_cast<std::int64_t>(b) * H + h) * L + static_cast<std::int64_t>(i)) * inner;
      if (!has_keys) to = std::copy_n(row, inner, to);
      for (const std::size_t j : places)
        if (has_keys) to = std::copy_n(row + static_cast<std::int64_t>(j) * width, width, to);
    }
  return out;
}

bool has_keys(TraceName name) { return name >= TraceName::scores && name <= TraceName::weighted_values; }

void check_alone(const TextModelOutput& all, const TextModelOutput& one, std::size_t b, const std::vector<std::size_t>& places) {
  CHECK_THAT(at_places(floats_of(all.last_hidden_state), b, places, false, false), HasBitsOf(floats_of(one.last_hidden_state)));
  CHECK_THAT(at_places(floats_of(*all.logits), b, places, false, false), HasBitsOf(floats_of(*one.logits)));
  for (std::size_t i = 0; i < one.hidden_states->size(); ++i)
    CHECK_THAT(at_places(floats_of(all.hidden_states->at(i)), b, places, false, false), HasBitsOf(floats_of(one.hidden_states->at(i))));
  for (std::size_t i = 0; i < one.attentions->size(); ++i)
    CHECK_THAT(at_places(floats_of(all.attentions->at(i)), b, places, true, true), HasBitsOf(floats_of(one.attentions->at(i))));
  for (const auto& [layer, trace] : *one.trace)
    for (const auto& [name, x] : trace) {
      CAPTURE(layer, to_string(name));
      const Array of_all = floats_of(all.trace->at(layer).at(name));
      CHECK_THAT(at_places(of_all, b, places, of_all.dims.rank() > 3, has_keys(name)), HasBitsOf(floats_of(x)));
    }
}

TEST_CASE("padding before, between and after the tokens of a decoder changes no bit of their results", "[models]") {
  const std::string name = GENERATE(from_range(kDecoders));
  CAPTURE(name);
  const TextModel model = TextModel::load(path_of(name));
  const std::vector<int> between = has_window(name) ? std::vector{0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0} : std::vector{0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0};
  const std::vector<std::vector<int>> flags{{0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1},
                                            {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                            between,
                                            {1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0},
                                            {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  const Encoding encoding = padded(flags);
  const TextModelOutput all = model.forward(encoding, everything());
  TextForwardOptions only_last = everything();
  only_last.output_logits = OutputLogits::last;
  const Array last = floats_of(*model.forward(encoding, only_last).logits);
  REQUIRE(last.dims == Shape{5, 1, static_cast<std::int64_t>(all.logits->shape(2))});
  for (std::size_t b = 0; b < flags.size(); ++b) {
    CAPTURE(b);
    const std::vector<std::size_t> places = places_of(flags[b]);
    check_alone(all, model.forward(alone(encoding, b, places), everything()), b, places);
    CHECK_THAT(at_places(last, b, {0}, false, false), HasBitsOf(at_places(floats_of(*all.logits), b, {places.back()}, false, false)));
  }
}

TEST_CASE("masks and patches of a decoder are in the order of the given tokens", "[models]") {
  const std::string name = GENERATE(from_range(kDecoders));
  CAPTURE(name);
  const TextModel model = TextModel::load(path_of(name));
  const std::vector<int> flags = has_window(name) ? std::vector{0, 0, 1, 1, 1, 1, 1} : std::vector{0, 1, 1, 0, 1, 1, 1};
  const std::vector<std::size_t> places = places_of(flags);
  const Encoding encoding = padded({flags}), one = alone(encoding, 0, places);
  xt::xtensor<float, 2> mask({7, 7}, 1.0F), of_one({5, 5}, 1.0F);
  mask(6, places[1]) = of_one(4, 1) = mask(5, 4) = of_one(3, 2) = 0;
  const TextModelOutput plain = model.forward(encoding, everything());
  TextForwardOptions masked = everything(), masked_one = everything();
  masked.mask = Mask::attend(mask);
  masked_one.mask = Mask::attend(of_one);
  const TextModelOutput output = model.forward(encoding, masked);
  CHECK(floats_of(*output.logits).data != floats_of(*plain.logits).data);
  check_alone(output, model.forward(one, masked_one), 0, places);
  TextForwardOptions patched = everything(), patched_one = everything();
  const Array state = floats_of(output.hidden_states->at(1)), merged = floats_of(output.trace->at(1).at(TraceName::merged));
  patched.patches = {LayerPatch{0, tensor_of<3>(state), {}}, LayerPatch{1, {}, tensor_of<3>(merged)}};
  patched_one.patches = {LayerPatch{0, tensor_of<3>(at_places(state, 0, places, false, false)), {}},
                         LayerPatch{1, {}, tensor_of<3>(at_places(merged, 0, places, false, false))}};
  check_alone(model.forward(encoding, patched), model.forward(one, patched_one), 0, places);
}

Encoding ids_of(const Encoding& all, std::size_t first, std::size_t end) {
  Encoding part;
  part.input_ids = xt::xtensor<std::int32_t, 2>({all.input_ids.shape(0), end - first});
  for (std::size_t b = 0; b < all.input_ids.shape(0); ++b)
    for (std::size_t i = first; i < end; ++i) part.input_ids(b, i - first) = all.input_ids(b, i);
  return part;
}

/// (B,L,W).
Array rows_between(const Array& x, std::int64_t first, std::int64_t end) {
  Array out({x.dims[0], end - first, x.dims[2]});
  float* to = out.data.data();
  for (std::int64_t b = 0; b < x.dims[0]; ++b) to = std::copy_n(x.data.data() + (b * x.dims[1] + first) * x.dims[2], (end - first) * x.dims[2], to);
  return out;
}

/// Keys [0, end) of (B,H,S,W), or also queries [first, end) of (B,H,L,S[,W]).
Array before(const Array& x, std::int64_t first, std::int64_t end, bool has_queries) {
  const std::int64_t heads = x.dims[0] * x.dims[1], S = x.dims[has_queries ? 3 : 2], L = has_queries ? x.dims[2] : 1;
  const std::int64_t width = static_cast<std::int64_t>(x.data.size()) / (heads * L * S);
  Shape dims = x.dims;
  if (has_queries) dims[2] = end - first;
  dims[has_queries ? 3 : 2] = end;
  Array out(dims);
  float* to = out.data.data();
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t i = has_queries ? first : 0; i < (has_queries ? end : 1); ++i)
      to = std::copy_n(x.data.data() + (head * L + i) * S * width, end * width, to);
  return out;
}

TEST_CASE("a cache changes no bit, however the text is split and for any number of threads", "[models][threads]") {
  const std::string name = GENERATE(from_range(kDecoders));
  const unsigned threads = GENERATE(1U, 2U);
  const Weights weights = GENERATE(Weights::float32, Weights::int8);
  CAPTURE(name, threads);
  const TextModel model = TextModel::load(path_of(name), {.weights = weights});
  constexpr std::size_t kL = 40;
  const Encoding all = padded({std::vector<int>(kL, 1), std::vector<int>(kL, 1)});
  const TextModelOutput whole = model.forward(all, everything());
  set_num_threads(threads);
  for (const std::vector<std::size_t>& ends : {std::vector<std::size_t>{kL}, {1, 2, 3, 4, 5, kL}, {17, 18, kL}, {39, kL}}) {
    KeyValueCache cache = model.create_cache({.max_length = 48, .batch_size = 2});
    std::size_t first = 0;
    for (const std::size_t end : ends) {
      CAPTURE(first, end);
      TextForwardOptions options = everything();
      options.cache = &cache;
      const TextModelOutput output = model.forward(ids_of(all, first, end), options);
      const auto from = static_cast<std::int64_t>(first), to = static_cast<std::int64_t>(end);
      CHECK(cache.length() == to);
      CHECK_THAT(floats_of(*output.logits), HasBitsOf(rows_between(floats_of(*whole.logits), from, to)));
      CHECK_THAT(floats_of(output.last_hidden_state), HasBitsOf(rows_between(floats_of(whole.last_hidden_state), from, to)));
      for (std::size_t layer = 0; layer < output.attentions->size(); ++layer) {
        const Array got = floats_of(output.attentions->at(layer)), expected = floats_of(whole.attentions->at(layer));
        REQUIRE(got.dims == Shape{2, expected.dims[1], to - from, to});
        for (std::int64_t bh = 0, at = 0; bh < 2 * expected.dims[1]; ++bh)
          for (std::int64_t i = from; i < to; ++i)
            for (std::int64_t j = 0; j < to; ++j, ++at)
              REQUIRE(got.data[static_cast<std::size_t>(at)] == expected.data[static_cast<std::size_t>((bh * 40 + i) * 40 + j)]);
        for (const TraceName traced : {TraceName::k, TraceName::v, TraceName::scores, TraceName::weights, TraceName::weighted_values}) {
          CAPTURE(to_string(traced));
          const auto of = [&](const TextModelOutput& x) { return floats_of(x.trace->at(static_cast<std::int64_t>(layer)).at(traced)); };
          CHECK_THAT(of(output), HasBitsOf(before(of(whole), from, to, has_keys(traced))));
        }
      }
      first = end;
    }
    cache.truncate(7);
    CHECK_THAT(floats_of(*model.forward(ids_of(all, 7, 9), {.cache = &cache}).logits), HasBitsOf(rows_between(floats_of(*whole.logits), 7, 9)));
  }
  set_num_threads(1);
}

TEST_CASE("a cache that does not fit is refused", "[models]") {
  TextModel model = TextModel::load(path_of("tiny-llama"));
  const TextModel other = TextModel::load(path_of("tiny-llama"));
  const Encoding three = padded({{1, 1, 1}}), two_rows = padded({{1, 1, 1}, {1, 1, 1}}), with_padding = padded({{1, 1, 0}});
  KeyValueCache cache = model.create_cache({.max_length = 4});
  const auto forward = [&](const TextModel& of, const Encoding& inputs) { return of.forward(inputs, {.cache = &cache}); };
  refused(ErrorCode::argument, "cache", [&] { static_cast<void>(forward(other, three)); });
  refused(ErrorCode::shape, "input_ids", [&] { static_cast<void>(forward(model, two_rows)); });
  refused(ErrorCode::unsupported, "attention_mask", [&] { static_cast<void>(forward(model, with_padding)); });
  CHECK(cache.length() == 0);
  forward(model, three);
  refused(ErrorCode::out_of_range, "room", [&] { static_cast<void>(forward(model, three)); });
  CHECK(cache.length() == 3);
  refused(ErrorCode::out_of_range, "length", [&] { cache.truncate(4); });
  model.load_state_dict(model.state_dict());
  refused(ErrorCode::argument, "cache", [&] { static_cast<void>(forward(model, padded({{1}}))); });
  refused(ErrorCode::out_of_range, "positions", [&] { static_cast<void>(model.create_cache({.max_length = 65})); });
  refused(ErrorCode::config, "batch_size", [&] { static_cast<void>(model.create_cache({.batch_size = 0})); });
  refused(ErrorCode::unsupported, "causal", [&] { static_cast<void>(TextModel::load(path_of("tiny-bert")).create_cache()); });
}

TEST_CASE("a cache is refused once the word embeddings have changed on their own", "[models]") {
  for (const char* const name : {"tiny-llama", "tiny-gpt2"}) {
    const std::unique_ptr<EncoderModel> model = load(read_checkpoint(testdata(std::string("models/") + name)));
    Embedding& words = model->word_embeddings();
    const std::vector<std::int64_t> ids{5, 6, 7};
    const detail::ModelInputs inputs{.shape = {1, 3}, .input_ids = ids};
    const auto plan = [&](KeyValueCache& cache) { return model->plan("forward", inputs, {.cache = &cache}); };
    const Shape shape = words.parameter_shapes().at("weight");
    const std::vector<float> numbers(static_cast<std::size_t>(shape[0] * shape[1]), 0.5F);
    const StateView state{{"weight", {numbers.data(), shape}}};
    SGD optimizer({words}, {.learning_rate = 0.1});
    words.add_gradients(state);
    for (const auto& change : std::initializer_list<std::function<void()>>{[&] { optimizer.step(); }, [&] { words.load_state(state); },
                                                                           [&] { words.initialize({.seed = 1}); }, [&] { words.quantize(); }}) {
      KeyValueCache cache = model->make_cache(1, 10);
      CHECK_NOTHROW(plan(cache));
      change();
      refused(ErrorCode::argument, "other weights", [&] { static_cast<void>(plan(cache)); });
    }
  }
}

SamplingOptions sampling_of(const nlohmann::json& given) {
  SamplingOptions options;
  options.temperature = given.value("temperature", 1.0);
  options.top_k = given.value("topK", 0);
  options.top_p = given.value("topP", 1.0);
  options.min_p = given.value("minP", 0.0);
  options.repetition_penalty = given.value("repetitionPenalty", 1.0);
  return options;
}

TEST_CASE("greedy texts, next tokens and scores agree with transformers", "[models]") {
  std::map<std::string, TextModel> models;
  for (const std::string& name : kDecoders) models.emplace(name, TextModel::load(path_of(name)));
  std::size_t count = 0;
  for (const auto& entry : read_json("tasks/generated.json")) {
    const TextModel& model = models.at(entry.at("model"));
    const std::string text = entry.at("text");
    CAPTURE(entry.at("model"), text);
    ++count;
    const auto ids = entry.at("ids").get<std::vector<std::int64_t>>();
    if (!ids.empty()) {
      const GeneratedText result = model.generate(text, {.max_new_tokens = std::ssize(ids), .sampling = sampling_of(entry.at("options"))});
      CHECK(result.ids == ids);
      CHECK(result.tokens.size() == ids.size());
    }
    if (entry.contains("next")) {
      const auto expected = entry.at("next");
      const std::vector<NextToken> next = model.next_token(text, std::ssize(expected));
      REQUIRE(next.size() == expected.size());
      for (std::size_t i = 0; i < next.size(); ++i) {
        CHECK(next[i].id == expected[i][0]);
        CHECK(std::abs(static_cast<double>(next[i].logit) - expected[i][1].get<double>()) < 1e-5);
        CHECK(std::abs(static_cast<double>(next[i].probability) - expected[i][2].get<double>()) < 1e-6);
        CHECK(model.id_to_token(next[i].id) == next[i].token);
      }
    }
    if (entry.contains("scores")) {
      const auto expected = entry.at("scores");
      const ScoredText scored = model.score_tokens(text);
      REQUIRE(scored.tokens.size() == expected.size() + 1);
      CHECK(!scored.tokens[0].rank);
      double sum = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const ScoredToken& token = scored.tokens[i + 1];
        CHECK(std::abs(*token.log_probability - expected[i][0].get<double>()) < 1e-5);
        CHECK(*token.rank == expected[i][1]);
        CHECK(std::abs(*token.entropy - expected[i][2].get<double>()) < 1e-5);
        sum += expected[i][0].get<double>();
      }
      CHECK(std::abs(std::log(scored.perplexity) + sum / static_cast<double>(expected.size())) < 1e-5);
    }
  }
  CHECK(count >= 200);
}

TEST_CASE("the probabilities of sampling are those after transformers' logits processors", "[models]") {
  for (const auto& entry : read_json("tasks/sampling.json")) {
    CAPTURE(entry.at("options").dump());
    const auto logits = entry.at("logits").get<std::vector<float>>();
    const auto before = entry.at("before").get<std::vector<std::int64_t>>();
    SamplingOptions options = sampling_of(entry.at("options"));
    options.do_sample = true;
    const std::vector<double> got = detail::sampling_probabilities(logits, before, options);
    const auto expected = entry.at("probabilities").get<std::vector<double>>();
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - expected[i]) < 1e-11);
    // Shares among draws: five standard deviations.
    constexpr std::size_t kDraws = 4000;
    std::vector<std::size_t> drawn(got.size());
    for (std::uint64_t step = 0; step < kDraws; ++step) ++drawn[static_cast<std::size_t>(detail::choose_token(logits, before, options, step).id)];
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double share = static_cast<double>(drawn[i]) / kDraws;
      CHECK(std::abs(share - got[i]) <= 5 * std::sqrt(got[i] * (1 - got[i]) / kDraws));
    }
  }
}

TEST_CASE("a seed determines the sampled tokens", "[models]") {
  const TextModel model = TextModel::load(path_of("tiny-gpt2"));
  const auto ids = [&](std::uint64_t seed) {
    return model.generate("The old man", {.max_new_tokens = 20, .sampling = {.do_sample = true, .temperature = 1.5, .top_k = 50, .seed = seed}}).ids;
  };
  CHECK(ids(1) == ids(1));
  // As in wasm-tests/suites/decoders.ts.
  const SamplingOptions options{.do_sample = true, .temperature = 1.5, .top_k = 50, .top_p = 0.95, .min_p = 0.01, .seed = 1};
  CHECK(model.generate("The old man", {.max_new_tokens = 20, .sampling = options}).ids ==
        std::vector<std::int64_t>{13, 289, 215, 219, 32, 13, 303, 316, 84, 298, 140, 227, 252, 51, 120, 115, 58, 298, 84, 307});
  CHECK(ids(1) != ids(2));
}

TEST_CASE("generation ends at a stop string, at the end of a text, without positions, and on request", "[models]") {
  const TextModel model = TextModel::load(path_of("tiny-gpt2"));
  const GeneratedText plain = model.generate("The old man", {.max_new_tokens = 30});
  REQUIRE(plain.ids.size() == 30);
  CHECK(plain.finish_reason == FinishReason::length);
  CHECK(plain.text == model.decode(plain.ids, true));
  const std::string stop = plain.text.substr(2, 3);
  const GeneratedText stopped = model.generate("The old man", {.max_new_tokens = 30, .stop = {"not there", stop}});
  CHECK(stopped.finish_reason == FinishReason::stop);
  CHECK(stopped.text == plain.text.substr(0, plain.text.find(stop)));
  CHECK(stopped.ids.size() < 30);
  std::string text;
  std::vector<std::int64_t> ids;
  const GeneratedText aborted = model.generate("The old man", {.on_token = [&](const GeneratedToken& token) {
                                                 text += token.text;
                                                 ids.push_back(token.id);
                                                 CHECK(token.probability > 0);
                                                 return ids.size() < 4;
                                               }});
  CHECK(aborted.finish_reason == FinishReason::aborted);
  CHECK(aborted.ids == ids);
  CHECK(ids.size() == 4);
  CHECK(aborted.text.starts_with(text));
  const std::size_t prompt = model.tokenize(std::vector<std::string>{"The old man"}).input_ids.shape(1);
  const GeneratedText full = model.generate("The old man", {.max_new_tokens = 1000});
  CHECK(full.ids.size() == 64 - prompt);
  CHECK(full.finish_reason == FinishReason::length);
  // Ends at the greedy text's first token.
  const Checkpoint checkpoint = read_checkpoint(path_of("tiny-gpt2"));
  CHECK(load(with_member(checkpoint, "eos_token_id", {3, 5}))->config().eos_token_ids == std::vector<std::int64_t>{3, 5});
  Checkpoint later = with_member(checkpoint, "eos_token_id", 3);
  const std::string generation = R"({"eos_token_id": [7]})";
  detail::ModelFiles files = later.files();
  files.generation = std::span(reinterpret_cast<const std::uint8_t*>(generation.data()), generation.size());
  CHECK(detail::read_model_config(files).eos_token_ids == std::vector<std::int64_t>{7});
  CHECK(load(with_member(checkpoint, "eos_token_id", {3, 100000, -1}))->config().eos_token_ids == std::vector<std::int64_t>{3});
  const GeneratedText most = model.generate("The old man", {.max_new_tokens = std::numeric_limits<std::int64_t>::max()});
  CHECK(most.ids == full.ids);
}

TEST_CASE("settings of generation_config.json that have no effect are noted", "[models]") {
  const Checkpoint checkpoint = with_member(read_checkpoint(path_of("tiny-gpt2")), "eos_token_id", nullptr);
  const auto notes_of = [&](const std::string& generation) {
    detail::ModelFiles files = checkpoint.files();
    files.generation = std::span(reinterpret_cast<const std::uint8_t*>(generation.data()), generation.size());
    return detail::read_model_config(files).notes;
  };
  CHECK(notes_of(R"({"repetition_penalty": 1.0, "num_beams": 1, "min_length": 0, "bad_words_ids": [], "suppress_tokens": null})").empty());
  const auto notes = notes_of(R"({"repetition_penalty": 1.1, "no_repeat_ngram_size": 3, "suppress_tokens": [5], "temperature": 0.6})");
  REQUIRE(notes.size() == 3);
  CHECK(notes[0] == "generate: repetition_penalty of generation_config.json is not used: pass it as an option");
  CHECK(notes[1] == "generate: no_repeat_ngram_size of generation_config.json is not used");
  CHECK(notes[2] == "generate: suppress_tokens of generation_config.json is not used");
  CHECK(notes_of(R"({"do_sample": false, "temperature": 0.6, "top_k": 50})").empty());  // transformers needs do_sample
  const auto sampled = notes_of(R"({"do_sample": true, "temperature": 0.6, "top_k": 0, "top_p": 0.9})");
  REQUIRE(sampled.size() == 3);
  CHECK(sampled[0] == "generate: do_sample of generation_config.json is not used: pass it as an option");
  CHECK(sampled[1] == "generate: temperature of generation_config.json is not used: pass it as an option");
  CHECK(sampled[2] == "generate: top_p of generation_config.json is not used: pass it as an option");
}

TEST_CASE("a head that is tied may be in the file if it has the numbers of the embeddings", "[models]") {
  for (const std::string name : {"tiny-gpt2", "tiny-gemma-2"}) {
    CAPTURE(name);
    const std::string words = name == "tiny-gpt2" ? "transformer.wte.weight" : "model.embed_tokens.weight", head = "lm_head.weight";
    const Checkpoint checkpoint = read_checkpoint(path_of(name));
    const auto with_head = [&](bool changed) {
      return with_tensors(checkpoint, [&](std::vector<FileTensor>& tensors) {
        FileTensor copy = named(tensors, words);
        copy.name = head;
        if (changed) copy.bytes.back() ^= 1;
        tensors.push_back(std::move(copy));
      });
    };
    CHECK_THAT(run(with_head(false)), HasBitsOf(run(checkpoint)));
    refused(ErrorCode::mismatch, head, [&] { static_cast<void>(load(with_head(true))); });
  }
}

TEST_CASE("settings of RoPE and windows count where transformers reads them", "[models]") {
  const auto read = [](const std::string& name, const std::function<void(nlohmann::json&)>& change) {
    return detail::read_model_config(with_config(read_checkpoint(path_of(name)), change).files());
  };
  const nlohmann::json yarn = {{"rope_type", "yarn"}, {"factor", 4}, {"rope_theta", 700}};
  const auto frequencies = [](const detail::ModelConfig& config) {
    return detail::rope_frequencies(config.distances.at(0).rope_theta, config.rope, config.head_width());
  };
  const auto expected = frequencies(read("tiny-llama", [&](nlohmann::json& config) { config["rope_parameters"] = yarn; }));
  // The older name replaces the newer unless it is empty.
  CHECK(frequencies(read("tiny-llama", [&](nlohmann::json& config) {
          config["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 3}, {"rope_theta", 90}};
          config["rope_scaling"] = yarn;
        })) == expected);
  CHECK(frequencies(read("tiny-llama", [&](nlohmann::json& config) {
          config["rope_parameters"] = yarn;
          config["rope_scaling"] = nlohmann::json::object();
        })) == expected);
  // The original length outside of the parameters overrides the one inside; the default is the number of positions.
  const auto llama3 = [&](std::optional<int> inside, std::optional<int> outside) {
    return read("tiny-llama",
                [&](nlohmann::json& config) {
                  config["rope_parameters"] = {{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 1}, {"high_freq_factor", 4}};
                  if (inside) config["rope_parameters"]["original_max_position_embeddings"] = *inside;
                  if (outside) config["original_max_position_embeddings"] = *outside;
                })
        .rope.original_positions;
  };
  CHECK(llama3(16, std::nullopt) == 16);
  CHECK(llama3(16, 32) == 32);
  CHECK(llama3(std::nullopt, std::nullopt) == 64);
  const auto windows = [&](const nlohmann::json& kinds) {
    const detail::ModelConfig config = read("tiny-mistral", [&](nlohmann::json& json) {
      json["sliding_window"] = 3;
      if (!kinds.is_null()) json["layer_types"] = kinds;
    });
    return std::array{config.distances.at(0).window, config.distances.at(1).window};
  };
  const auto none = detail::LayerDistance{}.window;
  CHECK(windows(nullptr) == std::array<std::int64_t, 2>{2, 2});
  CHECK(windows({"full_attention", "sliding_attention"}) == std::array<std::int64_t, 2>{none, 2});
  // GPT-NeoX only reads rotary_emb_base.
  CHECK(read("tiny-neox",
             [](nlohmann::json& config) {
               config["rotary_emb_base"] = 500;
               config["rope_theta"] = 9;
               config.erase("rope_parameters");
             })
            .distances.at(0)
            .rope_theta == 500);
}

TEST_CASE("bad arguments of generation are refused", "[models]") {
  const TextModel model = TextModel::load(path_of("tiny-gpt2")), bert = TextModel::load(path_of("tiny-bert"));
  const auto refuses = [&](const GenerateOptions& options, const std::string& name) {
    refused(ErrorCode::config, name, [&] { static_cast<void>(model.generate("The", options)); });
  };
  refuses({.max_new_tokens = 0}, "max_new_tokens");
  refuses({.sampling = {.temperature = 0}}, "temperature");
  refuses({.sampling = {.top_k = -1}}, "top_k");
  refuses({.sampling = {.top_p = 0}}, "top_p");
  refuses({.sampling = {.top_p = std::nan("")}}, "top_p");
  refuses({.sampling = {.min_p = 1.5}}, "min_p");
  refuses({.sampling = {.repetition_penalty = 0}}, "repetition_penalty");
  refused(ErrorCode::argument, "stop", [&] { static_cast<void>(model.generate("The", {.stop = {""}})); });
  refused(ErrorCode::argument, "at least one token", [&] { static_cast<void>(model.generate("")); });
  std::string longer;
  for (int i = 0; i < 100; ++i) longer += "and so on ";
  refused(ErrorCode::out_of_range, "64", [&] { static_cast<void>(model.generate(longer)); });
  refused(ErrorCode::out_of_range, "64", [&] { static_cast<void>(model.score_tokens(longer)); });
  refused(ErrorCode::config, "top_k", [&] { static_cast<void>(model.next_token("The", 0)); });
  refused(ErrorCode::unsupported, "text-generation", [&] { static_cast<void>(bert.generate("The")); });
  refused(ErrorCode::unsupported, "text-generation", [&] { static_cast<void>(bert.next_token("The")); });
  refused(ErrorCode::unsupported, "text-generation", [&] { static_cast<void>(bert.score_tokens("The")); });
}

TEST_CASE("NaN weights of a decoder are reported, not turned into tokens", "[models]") {
  TextModel model = TextModel::load(path_of("tiny-gpt2"));
  StateDict state = model.state_dict();
  state.at("transformer.ln_f.bias")(3) = std::nanf("");
  model.load_state_dict(state);
  refused(ErrorCode::out_of_range, "NaN", [&] { static_cast<void>(model.generate("The")); });
  refused(ErrorCode::out_of_range, "NaN", [&] { static_cast<void>(model.next_token("The")); });
  refused(ErrorCode::out_of_range, "NaN", [&] { static_cast<void>(model.score_tokens("The old man")); });
}

TEST_CASE("logits without a softmax are reported", "[models]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto check = [](const std::vector<float>& logits) { detail::check_logits("generate", logits); };
  refused(ErrorCode::out_of_range, "-infinity", [&] { check({-kInfinity, -kInfinity}); });
  refused(ErrorCode::out_of_range, "token 1 is infinity", [&] { check({1, kInfinity}); });
  CHECK_NOTHROW(check({-kInfinity, 1}));
}

TEST_CASE("rows of queries, keys and values that take turns by head keep their order in files", "[models]") {
  const std::string name = GENERATE("tiny-neox", "tiny-neox-serial");
  TextModel model = TextModel::load(path_of(name), {.weights = Weights::float32});
  const std::string weight = "gpt_neox.layers.1.attention.query_key_value.weight";
  const Encoding encoding = padded({{1, 1, 1, 1}});
  const Array before = floats_of(*model.forward(encoding).logits), values = floats_of(model.get_parameter(weight));
  CHECK(values.dims == Shape{72, 24});
  model.load_state_dict(model.state_dict());
  CHECK_THAT(floats_of(*model.forward(encoding).logits), HasBitsOf(before));
  const Checkpoint checkpoint = read_checkpoint(path_of(name));
  CHECK_THAT(run(checkpoint, 777), HasBitsOf(run(checkpoint)));
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "attn-decoders-neox-test";
  model.save_pretrained(folder.string());
  std::vector<FileTensor> tensors = read_tensors(bytes_of(folder / "model.safetensors"));
  CHECK(named(tensors, weight).values() == values.data);
  CHECK_THAT(floats_of(*TextModel::load(folder.string()).forward(encoding).logits), HasBitsOf(before));
  std::filesystem::remove_all(folder);
}

TEST_CASE("the weights of Gemma's norms are those of its files, without the 1 that is added", "[models]") {
  TextModel model = TextModel::load(path_of("tiny-gemma-3"), {.weights = Weights::float32});
  const std::string weight = "model.layers.0.post_feedforward_layernorm.weight";
  const Array values = floats_of(model.get_parameter(weight));
  CHECK(std::any_of(values.data.begin(), values.data.end(), [](float value) { return value < 0; }));
  for (const float value : values.data) CHECK(std::abs(value) < 1.5F);
  const Encoding encoding = padded({{1, 1, 1, 1}});
  const Array before = floats_of(*model.forward(encoding).logits);
  model.load_state_dict(model.state_dict());
  CHECK_THAT(floats_of(*model.forward(encoding).logits), HasBitsOf(before));
}

TEST_CASE("a decoder with modules.json is an embedding model, as Qwen3-Embedding, with the state of the last token", "[models]") {
  const Checkpoint checkpoint = with_tensors(read_checkpoint(path_of("tiny-qwen3")), [](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) tensor.name = tensor.name.substr(std::string("model.").size());
  });
  const std::string modules = R"([{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";
  const std::string pooling = R"({"word_embedding_dimension": 24, "pooling_mode_lasttoken": true, "pooling_mode_mean_tokens": false})";
  const auto bytes = [](const std::string& text) { return std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()); };
  detail::ModelFiles files = checkpoint.files();
  files.modules = bytes(modules);
  files.pooling = bytes(pooling);
  detail::ModelLoader loader(files);
  loader.write(checkpoint.weights);
  const std::unique_ptr<EncoderModel> model = loader.finish();
  CHECK(model->config().task == Task::embedding);
  CHECK(model->config().poolings == std::vector<Pooling>{Pooling::lasttoken});
  // Golden hidden states have the same weights.
  const GoldenFile file = read_golden(testdata("models/tiny-qwen3.safetensors"));
  const nlohmann::json entries = cases_of(file);
  const GoldenCase golden(file, entries.at(0));
  const Batch batch = batch_of(golden);
  const Array hidden = golden.tensor("expected.lastHiddenState"), mask = golden.tensor("attention_mask");
  const detail::ModelEmbedOptions how{.poolings = model->config().poolings, .normalize = true};
  Array got(model->check_embed("embed", batch.inputs(), how));
  model->embed(batch.inputs(), how, got.data.data());
  const auto L = static_cast<std::size_t>(hidden.dims[1]), E = static_cast<std::size_t>(hidden.dims[2]);
  for (std::size_t b = 0; b < static_cast<std::size_t>(hidden.dims[0]); ++b) {
    std::size_t last = L;
    while (mask.data[b * L + last - 1] == 0) --last;
    const float* const row = hidden.data.data() + (b * L + last - 1) * E;
    double square = 0;
    for (std::size_t e = 0; e < E; ++e) square += static_cast<double>(row[e]) * static_cast<double>(row[e]);
    for (std::size_t e = 0; e < E; ++e)
      CHECK(std::abs(static_cast<double>(got.data[b * E + e]) - static_cast<double>(row[e]) / std::sqrt(square)) < 1e-5);
  }
}

TEST_CASE("GPT-2's weights are transposed in files only", "[models]") {
  TextModel model = TextModel::load(path_of("tiny-gpt2"));
  const auto shapes = model.parameter_shapes();
  CHECK(shapes.at("transformer.h.0.attn.c_attn.weight") == Shape{24, 72});
  CHECK(shapes.at("transformer.h.1.mlp.c_proj.weight") == Shape{96, 24});
  std::vector<FileTensor> tensors = read_tensors(bytes_of(testdata("models/tiny-gpt2/model.safetensors")));
  for (const std::string name : {"transformer.h.0.attn.c_attn.weight", "transformer.h.1.mlp.c_proj.weight", "transformer.wte.weight"})
    CHECK(floats_of(model.get_parameter(name)).data == named(tensors, name).values());
  const Encoding encoding = padded({{1, 1, 1, 1}});
  const Array before = floats_of(*model.forward(encoding).logits);
  const StateDict state = model.state_dict();
  model.load_state_dict(state);
  CHECK_THAT(floats_of(*model.forward(encoding).logits), HasBitsOf(before));
  const Checkpoint checkpoint = read_checkpoint(path_of("tiny-gpt2"));
  CHECK_THAT(run(checkpoint, 777), HasBitsOf(run(checkpoint)));
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "attn-decoders-test";
  model.save_pretrained(folder.string(), {.weights = FileWeights::int8});
  tensors = read_tensors(bytes_of(folder / "model.safetensors"));
  CHECK(named(tensors, "transformer.h.0.attn.c_attn.weight").shape == std::vector<std::int64_t>{72, 24});
  CHECK(TextModel::load(folder.string()).parameter_shapes() == shapes);
  model.save_pretrained(folder.string());
  CHECK_THAT(floats_of(*TextModel::load(folder.string()).forward(encoding).logits), HasBitsOf(before));
  std::filesystem::remove_all(folder);
}

TEST_CASE("gradients of a decoder are the slope of its logit", "[models]") {
  const std::string name = GENERATE(from_range(kDecoders));
  CAPTURE(name);
  TextModel model = TextModel::load(path_of(name));
  const Encoding encoding = padded({{1, 1, 1, 1, 1, 1}});
  const GradientOptions options{.target = {.label = model.id_to_token(40).value(), .token = 4}, .attentions = true, .parameters = true};
  const TextModelGradients<2> gradients = model.gradients(encoding, options);
  for (const auto& attention : *gradients.attentions)
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t j = i + 1; j < 6; ++j) CHECK(attention(0, 1, i, j) == 0);
  const StateDict state = model.state_dict();
  // f(w + s g) - f(w - s g) = 2 s |g|² + O(s³) for each weight, so that an exchange of rows and columns shows.
  for (const auto& [key, gradient] : *gradients.parameters) {
    CAPTURE(key);
    double square = 0;
    for (const float value : gradient) square += static_cast<double>(value) * static_cast<double>(value);
    if (square < 1e-6) continue;
    const double step = 0.01 / std::sqrt(square);
    const auto value_at = [&](double sign) {
      AnyTensor moved = state.at(key);
      auto of_weight = moved.begin();
      for (const float value : gradient) *of_weight++ += static_cast<float>(sign * step * static_cast<double>(value));
      model.load_state_dict({{key, moved}}, false);
      const auto logits = *model.forward(encoding).logits;
      model.load_state_dict({{key, state.at(key)}}, false);
      return static_cast<double>(logits(0, 4, 40));
    };
    const double slope = (value_at(1) - value_at(-1)) / (2 * step);
    CHECK(std::abs(slope - square) < 0.02 * square);
  }
  CHECK(gradients.value == (*model.forward(encoding).logits)(0, 4, 40));
}

TEST_CASE("a decoder without a head is not trained to classify", "[models]") {
  const Checkpoint checkpoint = read_checkpoint(path_of("tiny-llama"));
  const auto model = load(with_config(checkpoint, [](nlohmann::json& config) { config["architectures"] = {"LlamaModel"}; }));
  refused(ErrorCode::unsupported, "Llama", [&] { detail::check_fine_tuning("fine_tune", *model, {.learning_rate = 1e-3}, 2); });
}

TEST_CASE("padding between tokens is refused if a sliding window would count it", "[models]") {
  const TextModel model = TextModel::load(path_of("tiny-gemma-3"));  // a window of 5 keys
  CHECK_NOTHROW(model.forward(padded({{1, 0, 1, 1, 1, 0, 0, 0}})));
  CHECK_NOTHROW(model.forward(padded({{0, 0, 1, 1, 1, 1, 1, 0}})));
  for (const std::vector<int>& flags : {std::vector{1, 0, 1, 1, 1, 1, 0, 0}, std::vector{1, 0, 0, 0, 0, 0, 0, 1}})
    refused(ErrorCode::unsupported, "a sliding window of 5 keys", [&] { static_cast<void>(model.forward(padded({flags}))); });
  CHECK_NOTHROW(TextModel::load(path_of("tiny-llama")).forward(padded({{1, 0, 0, 0, 0, 0, 0, 1}})));
}

TEST_CASE("frequencies of RoPE are those of transformers", "[models]") {
  for (const auto& entry : read_json("tasks/rope.json")) {
    CAPTURE(entry.at("rope").dump());
    const Checkpoint checkpoint = with_config(read_checkpoint(path_of("tiny-llama")), [&](nlohmann::json& config) {
      config["rope_parameters"] = entry.at("rope");
      config["head_dim"] = entry.at("head_dim");
      config["max_position_embeddings"] = entry.at("positions");
    });
    const detail::ModelConfig config = detail::read_model_config(checkpoint.files());
    const std::vector<float> got = detail::rope_frequencies(config.distances.at(0).rope_theta, config.rope, config.head_width());
    const auto expected = entry.at("frequencies").get<std::vector<float>>();
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - expected[i]) <= 1e-6F * expected[i]);
    CHECK(std::abs(config.rope.magnitude - entry.at("magnitude").get<float>()) < 1e-6F);
  }
}

TEST_CASE("a file may have GPT-2's masks, or no prefix", "[models]") {
  const Checkpoint checkpoint = read_checkpoint(path_of("tiny-gpt2"));
  const Checkpoint old = with_tensors(checkpoint, [](std::vector<FileTensor>& tensors) {
    for (FileTensor& tensor : tensors) tensor.name = tensor.name.substr(std::string("transformer.").size());
    tensors.push_back({"h.0.attn.bias", "F32", {1, 1, 1, 1}, std::vector<std::uint8_t>(4)});
  });
  CHECK_THAT(run(old), HasBitsOf(run(checkpoint)));
  CHECK(load(old)->config().notes.empty());
}

}  // namespace models_decoders_test
}  // namespace attn::test
