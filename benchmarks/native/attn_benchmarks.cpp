// Runs the cases of cases.json on Google Benchmark, with the register-only peak.
//
// attn_benchmarks [--benchmark_filter=... and other flags of Google Benchmark]
// attn_benchmarks --serve      one measurement per line on stdin, for run.mjs, which alternates with peers
//
// Encoders need the weights of peers/make_models.py, texts the model that it downloads. ATTN_MAX_ARCH=sse4_2 or
// avx2_fma selects narrower kernels.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "attn/attn.hpp"
#include "attn/kernels/kernels.hpp"
#include "heap.hpp"

namespace {

using Json = nlohmann::ordered_json;

/// Numbers in [-1, 1), the same per seed as those of the peers (cases.mjs, peers/pytorch.py).
void fill(float* values, std::size_t count, std::uint32_t seed, float divisor = 1) {
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    values[i] = (static_cast<float>(seed >> 8) * 0x1p-23F - 1.0F) / divisor;
  }
}

template <std::size_t N>
attn::Tensor<N> numbers(const std::array<std::size_t, N>& shape, std::uint32_t seed) {
  attn::Tensor<N> x(shape);
  fill(x.data(), x.size(), seed);
  return x;
}

attn::AnyTensor parameter(const std::vector<std::size_t>& shape, std::uint32_t seed, std::size_t width) {
  attn::AnyTensor x(attn::AnyTensor::shape_type(shape.begin(), shape.end()));
  fill(x.data(), x.size(), seed, std::sqrt(static_cast<float>(width)));
  return x;
}

template <std::size_t N>
attn::AnyTensor parameter(const std::array<std::size_t, N>& shape, std::initializer_list<float> values) {
  attn::AnyTensor x(attn::AnyTensor::shape_type(shape.begin(), shape.end()));
  std::copy(values.begin(), values.end(), x.data());
  return x;
}

std::size_t size_of(const Json& one, const char* name) { return one.at(name).get<std::size_t>(); }
bool is_int8(const Json& one) { return one.value("int8", false); }

/// GFLOP/s of one thread without loads and stores, float32 or int8. Runs a few milliseconds: long enough for the clock,
/// short compared with the measurements around it.
double peak(bool int8 = false) {
  using Clock = std::chrono::steady_clock;
  static std::size_t counts[2] = {1 << 20, 1 << 20};
  std::size_t& count = counts[int8 ? 1 : 0];
  const auto multiply_adds = int8 ? attn::kernels::best().int8.multiply_adds : attn::kernels::best().multiply_adds;
  for (;; count *= 2) {
    const auto start = Clock::now();
    const std::size_t done = multiply_adds(count);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds > 4e-3) return 2e-9 * static_cast<double>(done) / seconds;
  }
}

/// Milliseconds to read this many bytes: the least time of a forward with as many bytes of packed weights.
double stream(std::size_t bytes) {
  using Clock = std::chrono::steady_clock;
  using Words [[gnu::vector_size(64)]] = std::uint64_t;
  constexpr std::size_t kChains = 4;
  static std::vector<Words> memory;
  if (memory.size() != bytes / sizeof(Words)) memory.assign(bytes / sizeof(Words), Words{} + 1);
  double best = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < 2; ++pass) {
    const auto start = Clock::now();
    Words sums[kChains] = {};
    for (std::size_t i = 0; i + kChains <= memory.size(); i += kChains)
      for (std::size_t c = 0; c < kChains; ++c) sums[c] ^= memory[i + c];
    benchmark::DoNotOptimize(sums);
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return best;
}

void register_only_peak(benchmark::State& state) {
  double best = 0;
  for (auto _ : state) best = std::max(best, peak());
  state.counters["GFLOP/s"] = best;
}

/// Additional results of --serve: numbers of the result, by which run.mjs checks that all contenders compute the same,
/// and allocations of one warm call.
struct Wanted {
  bool probe = false, memory = false;
  std::optional<std::size_t> batch;  ///< of a case of texts this batch only
} wanted;

template <class Call>
void measure(benchmark::State& state, std::size_t multiply_adds, Call call) {
  std::array<float, 4> probe{};
  const auto look = [&](const float* output, std::size_t size) {
    for (std::size_t i = 0; i < probe.size(); ++i) probe[i] = output[i * (size - 1) / (probe.size() - 1)];
    benchmark::DoNotOptimize(probe);
  };
  for (auto _ : state) call(look);
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * static_cast<double>(multiply_adds), benchmark::Counter::kIsIterationInvariantRate);
  if (wanted.memory) {
    const HeapUse heap = heap_use_of([&] { call(look); });
    state.counters["bytes"] = static_cast<double>(heap.bytes);
    state.counters["allocations"] = static_cast<double>(heap.allocations);
  }
  if (wanted.probe)
    for (std::size_t i = 0; i < probe.size(); ++i) state.counters["probe" + std::to_string(i)] = probe[i];
}

template <class Forward>
void measure_forward(benchmark::State& state, std::size_t multiply_adds, Forward forward) {
  measure(state, multiply_adds, [&](auto look) {
    const auto result = forward();
    look(result.output.data(), result.output.size());
  });
}

/// y (M,N) = x (M,K) Wᵀ + b, with the weight packed first as in a layer.
void gemm(benchmark::State& state, const Json& one) {
  const std::size_t M = size_of(one, "M"), K = size_of(one, "K"), N = size_of(one, "N");
  const auto x = numbers<2>({M, K}, 1), weight = numbers<2>({N, K}, 2);
  const auto bias = numbers<1>({N}, 3);
  attn::Tensor<2> y({M, N});
  attn::detail::Workspace workspace;
  const auto run = [&](const auto& packed) {
    measure(state, M * K * N, [&](auto look) {
      attn::detail::Scratch scratch(&workspace);
      packed.forward(attn::detail::Rows(x.data(), M, K), y.data(), scratch);
      look(y.data(), y.size());
    });
  };
  const auto out = static_cast<std::int64_t>(N), in = static_cast<std::int64_t>(K);
  if (is_int8(one))
    run(attn::QuantizedLinear(weight.data(), bias.data(), out, in));
  else
    run(attn::PackedLinear(weight.data(), bias.data(), out, in));
}

void sdpa(benchmark::State& state, const Json& one) {
  const std::array<std::size_t, 4> shape{size_of(one, "B"), size_of(one, "H"), size_of(one, "S"), size_of(one, "D")};
  const auto q = numbers<4>(shape, 1), k = numbers<4>(shape, 2), v = numbers<4>(shape, 3);
  const attn::AttentionOptions options{.need_weights = one.at("weights").get<bool>()};
  const auto [B, H, S, D] = shape;
  measure_forward(state, 2 * B * H * S * S * D, [&] { return attn::scaled_dot_product_attention(q, k, v, options); });
}

void mha(benchmark::State& state, const Json& one) {
  const std::size_t B = size_of(one, "B"), S = size_of(one, "S"), E = size_of(one, "E");
  attn::MultiHeadAttention layer({.embed_dim = static_cast<std::int64_t>(E), .num_heads = one.at("H").get<std::int64_t>()});
  layer.load_state_dict({{"in_proj_weight", parameter({3 * E, E}, 4, E)},
                         {"in_proj_bias", parameter({3 * E}, 5, E)},
                         {"out_proj.weight", parameter({E, E}, 6, E)},
                         {"out_proj.bias", parameter({E}, 7, E)}});
  const auto x = numbers<3>({B, S, E}, 1);
  const attn::AttentionOptions options{.need_weights = one.at("weights").get<bool>()};
  measure_forward(state, B * S * E * (4 * E + 2 * S), [&] { return layer.forward(x, options); });
}

/// The encoder of that name. The last one is cached, because reading its weights takes longer than running it.
const attn::TransformerEncoder& encoder_of(const std::string& name, const Json& shape, bool int8) {
  static std::string kept;
  static std::unique_ptr<attn::TransformerEncoder> encoder;
  const std::string key = name + (int8 ? " int8" : "");
  if (kept != key) {
    encoder.reset();
    encoder = std::make_unique<attn::TransformerEncoder>(attn::TransformerEncoderOptions{
        .layer = {.d_model = shape.at("E"), .nhead = shape.at("H"), .dim_feedforward = shape.at("F"), .activation = attn::Activation::gelu},
        .num_layers = shape.at("layers")});
    encoder->load_state_dict(attn::read_safetensors(std::filesystem::path(ATTN_BENCHMARK_MODELS) / (name + ".safetensors")));
    if (int8) encoder->quantize();
    kept = key;
  }
  return *encoder;
}

void encoder(benchmark::State& state, const Json& one, const Json& shape) {
  const attn::TransformerEncoder& layers = encoder_of(one.at("model"), shape, is_int8(one));
  const std::size_t B = size_of(one, "B"), S = size_of(one, "S"), E = size_of(shape, "E"), F = size_of(shape, "F");
  const auto x = numbers<3>({B, S, E}, 1);
  const attn::EncoderForwardOptions options{.output_attentions = one.at("weights").get<bool>()};
  measure_forward(state, size_of(shape, "layers") * B * S * E * (4 * E + 2 * F + 2 * S), [&] { return layers.forward(x, options); });
}

class Training {
 public:
  Training(const Json& one, const Json& shape)
      : model_({.encoder = {.layer = {.d_model = shape.at("E"),
                                      .nhead = shape.at("H"),
                                      .dim_feedforward = shape.at("F"),
                                      .dropout = 0,
                                      .activation = one.at("activation") == "gelu" ? attn::Activation::gelu : attn::Activation::relu},
                            .num_layers = shape.at("layers")},
                .num_classes = one.at("classes")}),
        x_(numbers<3>({size_of(one, "B"), size_of(one, "S"), size_of(shape, "E")}, 1)),
        labels_(std::array<std::size_t, 2>{size_of(one, "B"), size_of(one, "S")}) {
    const std::size_t E = size_of(shape, "E"), F = size_of(shape, "F"), C = size_of(one, "classes");
    std::map<std::string, attn::AnyTensor> state;
    std::uint32_t seed = 10;
    const auto add = [&](const std::string& name, const std::vector<std::size_t>& dims) { state[name] = parameter(dims, seed++, E); };
    for (std::size_t i = 0; i < size_of(shape, "layers"); ++i) {
      const std::string layer = "encoder.layers." + std::to_string(i) + ".";
      add(layer + "self_attn.in_proj_weight", {3 * E, E});
      add(layer + "self_attn.in_proj_bias", {3 * E});
      add(layer + "self_attn.out_proj.weight", {E, E});
      add(layer + "self_attn.out_proj.bias", {E});
      add(layer + "linear1.weight", {F, E});
      add(layer + "linear1.bias", {F});
      add(layer + "linear2.weight", {E, F});
      add(layer + "linear2.bias", {E});
      for (const std::string norm : {"norm1", "norm2"}) {
        add(layer + norm + ".weight", {E});
        state[layer + norm + ".weight"].fill(1);
        add(layer + norm + ".bias", {E});
        state[layer + norm + ".bias"].fill(0);
      }
    }
    add("classifier.weight", {C, E});
    add("classifier.bias", {C});
    model_.load_state_dict(state);
    const auto drawn = numbers<1>({labels_.size()}, 2);
    for (std::size_t i = 0; i < labels_.size(); ++i) labels_.data()[i] = static_cast<int>((drawn[i] + 1) / 2 * static_cast<float>(C));
    gradient_ = attn::cross_entropy(forward(false), labels_).gradient;
  }

  attn::Tensor<3> forward(bool for_backward) const {
    attn::EncoderForwardOptions options;
    options.for_backward = for_backward;
    return model_.forward(x_, options).logits;
  }
  void forward_and_backward() {
    forward(true);
    model_.zero_grad();
    model_.backward(gradient_);
  }
  float step() {
    const auto [loss, gradient] = attn::cross_entropy(forward(true), labels_);
    optimizer_.zero_grad();
    model_.backward(gradient);
    optimizer_.step();
    return loss;
  }

 private:
  attn::TransformerClassifier model_;
  attn::Tensor<3> x_, gradient_;
  xt::xtensor<int, 2> labels_;
  attn::AdamW optimizer_{{model_}};
};

/// A part of a training step, as in wasm/training.mjs; its output is the losses of the first four steps.
void training(benchmark::State& state, const Json& one, const Json& shape) {
  std::array<float, 4> losses;
  Training first(one, shape), own(one, shape);
  for (float& loss : losses) loss = first.step();
  const auto part = one.at("part").get<std::string>();
  measure(state, 0, [&](auto look) {
    if (part == "step") {
      own.step();
    } else if (part == "forward and backward") {
      own.forward_and_backward();
    } else {
      own.forward(part == "forward kept");
    }
    look(losses.data(), losses.size());
  });
}

std::filesystem::path folder_of(const Json& one) {
  std::string name = one.at("checkpoint");
  if (one.contains("files")) name.append("-").append(one.at("files").get<std::string>());
  return std::filesystem::path(ATTN_BENCHMARK_CHECKPOINTS) / name;
}

attn::TextModel loaded(const Json& one) {
  return attn::TextModel::load(folder_of(one), {.weights = is_int8(one) ? std::optional(attn::Weights::int8) : std::nullopt});
}

const attn::TextModel& text_model_of(const Json& one) {
  static std::string kept;
  static std::unique_ptr<attn::TextModel> model;
  if (const auto name = one.at("name").get<std::string>(); kept != name) {
    model.reset();
    model = std::make_unique<attn::TextModel>(loaded(one));
    kept = name;
  }
  return *model;
}

std::vector<std::string> texts_of(const Json& one) {
  std::ifstream file(ATTN_BENCHMARK_TEXTS);
  const Json all = Json::parse(file).at("texts");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < size_of(one, "texts"); ++i) texts.push_back(all.at(i).at("text"));
  return texts;
}

const std::vector<std::vector<std::string>>& batches_of(const Json& one) {
  static std::string kept;
  static std::vector<std::vector<std::string>> batches;
  if (const auto name = one.at("name").get<std::string>(); kept != name) {
    std::vector<std::pair<std::size_t, std::string>> texts;
    for (const std::string& text : texts_of(one)) texts.emplace_back(text_model_of(one).tokenize({text}).input_ids.shape(1), text);
    std::stable_sort(texts.begin(), texts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    batches.clear();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (i % size_of(one, "batch") == 0) batches.emplace_back();
      batches.back().push_back(texts[i].second);
    }
    kept = name;
  }
  return batches;
}

Json encoded_batches_of(const Json& one) {
  Json all = Json::array();
  for (const std::vector<std::string>& batch : batches_of(one)) {
    const attn::Encoding encoding = text_model_of(one).tokenize(batch);
    const auto& ids = encoding.input_ids;
    const auto& mask = encoding.attention_mask;
    all.push_back({{"dims", ids.shape()}, {"ids", std::vector(ids.begin(), ids.end())}, {"mask", std::vector<int>(mask.begin(), mask.end())}});
  }
  return all;
}

void sentences(benchmark::State& state, const Json& one) {
  using Clock = std::chrono::steady_clock;
  const attn::TextModel& model = text_model_of(one);
  const std::vector<std::string> texts = wanted.batch ? batches_of(one).at(*wanted.batch) : texts_of(one);
  const attn::EmbedOptions options{.batch_size = one.at("batch").get<std::int64_t>()};
  measure(state, 0, [&](auto look) {
    const attn::Tensor<2> vectors = model.embed(texts, options);
    look(vectors.data(), vectors.size());
  });
  const auto start = Clock::now();
  benchmark::DoNotOptimize(model.tokenize(texts));
  state.counters["tokenize_ms"] = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void load(benchmark::State& state, const Json& one) {
  measure(state, 0, [&](auto look) {
    const attn::TextModel model = loaded(one);
    const float width = static_cast<float>(model.max_length());
    look(&width, 1);
  });
}

void example(benchmark::State& state) {
  attn::MultiHeadAttention layer(
      {.embed_dim = 4, .num_heads = 1, .head_dim = 3, .value_head_dim = 3, .bias = false, .scale = 1.0F, .out_proj = false});
  const std::array<std::size_t, 2> shape{3, 4};
  layer.load_state_dict({{"q_proj.weight", parameter(shape, {1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1})},
                         {"k_proj.weight", parameter(shape, {0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0})},
                         {"v_proj.weight", parameter(shape, {0, 0, 1, 1, 2, 3, 0, 1, 0, 0, 3, 0})}});
  const attn::Tensor<2> x{{1, 0, 1, 0}, {0, 2, 0, 2}, {1, 1, 1, 1}};
  measure_forward(state, 3 * 3 * (3 * 4 + 2 * 3), [&] { return layer.forward(x); });
}

void run(benchmark::State& state, const Json& one, const Json& models, unsigned threads) {
  attn::set_num_threads(threads);
  try {
    const auto kind = one.at("kind").get<std::string>();
    if (kind == "gemm") {
      gemm(state, one);
    } else if (kind == "sdpa") {
      sdpa(state, one);
    } else if (kind == "mha") {
      mha(state, one);
    } else if (kind == "encoder") {
      encoder(state, one, models.at(one.at("model").get<std::string>()));
    } else if (kind == "training") {
      training(state, one, models.at(one.at("model").get<std::string>()));
    } else if (kind == "example") {
      example(state);
    } else if (kind == "sentences") {
      sentences(state, one);
    } else if (kind == "load") {
      load(state, one);
    } else {
      throw std::runtime_error("a case of unknown kind: " + kind);
    }
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
  // No idle thread of attn may spin while others are measured.
  attn::set_num_threads(1);
}

std::string name_of(const Json& one, unsigned threads) { return one.at("name").get<std::string>() + "/threads:" + std::to_string(threads); }

double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

void add_cases(const Json& table) {
  benchmark::RegisterBenchmark("peak", register_only_peak)->Unit(benchmark::kMillisecond);
  for (const Json& one : table.at("cases"))
    for (const unsigned threads : {1U, 2U})
      benchmark::RegisterBenchmark(name_of(one, threads).c_str(),
                                   [&one, &table, threads](benchmark::State& state) { run(state, one, table.at("models"), threads); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond)
          ->ComputeStatistics("min", least);
}

class JsonReporter : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred) {
        answer["error"] = run.error_message;
        continue;
      }
      answer["ms"] = run.GetAdjustedRealTime();
      answer["calls"] = run.iterations;
      for (const auto& [name, counter] : run.counters)
        if (name.starts_with("probe")) {
          answer["probe"].push_back(counter.value);
        } else {
          answer[name] = counter.value;
        }
    }
  }

  Json answer;
};

/// Introduces itself, then answers each line {"case": {..}, "threads": 1, "memory": false} with a sample, the peak
/// before and after and, on request, the allocations of a call and the time to stream this many bytes; "batch": 0
/// restricts texts to this batch. {"batches": {..}} returns the batches of that case.
void serve() {
  std::cout << Json{{"engine", ATTN_BENCHMARK_COMPILER},
                    {"variant", attn::kernels::best().architecture},
                    {"products", attn::kernels::best().int8.name}}
            << std::endl;
  const std::regex special(R"([.*+?^${}()|[\]\\])");
  for (std::string line; std::getline(std::cin, line);) {
    const Json request = Json::parse(line);
    if (request.contains("batches")) {
      std::cout << Json{{"batches", encoded_batches_of(request.at("batches"))}} << std::endl;
      continue;
    }
    const std::string name = std::regex_replace(name_of(request.at("case"), request.at("threads")), special, R"(\$&)");
    wanted = {.probe = true, .memory = request.at("memory"), .batch = std::nullopt};
    if (request.contains("batch")) wanted.batch = request.at("batch");
    JsonReporter reporter;
    const bool int8 = is_int8(request.at("case"));
    reporter.answer["peak_before"] = peak(int8);
    if (const std::size_t bytes = request.value("stream", std::size_t{0}); bytes > 0) reporter.answer["stream_ms"] = stream(bytes);
    if (benchmark::RunSpecifiedBenchmarks(&reporter, "^" + name + "/") != 1) reporter.answer["error"] = "no such case";
    reporter.answer["peak_after"] = peak(int8);
    std::cout << reporter.answer << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  const auto flag = std::find_if(arguments.begin(), arguments.end(), [](const char* word) { return std::string(word) == "--serve"; });
  const bool is_server = flag != arguments.end();
  if (is_server) arguments.erase(flag);
  // Samples of at least 20 ms; without --serve twelve of them in random order. The caller's flags come later and take
  // precedence.
  std::vector<std::string> defaults{"--benchmark_min_time=0.02"};
  if (!is_server) defaults.insert(defaults.end(), {"--benchmark_repetitions=12", "--benchmark_enable_random_interleaving=true"});
  for (std::size_t i = 0; i < defaults.size(); ++i) arguments.insert(arguments.begin() + 1 + static_cast<std::ptrdiff_t>(i), defaults[i].data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  std::ifstream file(ATTN_BENCHMARK_CASES);
  const Json table = Json::parse(file);
  add_cases(table);
  if (is_server) {
    serve();
    return 0;
  }
  benchmark::AddCustomContext("variant", attn::kernels::best().architecture);
  benchmark::RunSpecifiedBenchmarks();
}
