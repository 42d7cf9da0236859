#include "attn/layers/transformer_encoder.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "attn/parallel/thread_pool.hpp"
#include "support/encoder_case.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace layers_transformer_encoder_test {

constexpr const char* kOp = "TransformerEncoder";

EncoderForwardOptions asking_for_all(EncoderForwardOptions options) {
  options.output_attentions = options.output_hidden_states = true;
  options.trace = EncoderTraceOptions{.names = kWholeTrace};
  return options;
}

std::string prefix(std::int64_t layer) { return "layers." + std::to_string(layer) + "."; }

TEST_CASE("an encoder equals its layers and final norm run one after the other, bit for bit", "[layers][properties]") {
  for (std::uint64_t seed = 100; seed < 160; ++seed) {
    const EncoderCase c = draw_encoder_case(seed);
    Generator random(seed);
    const std::int64_t num_layers = 1 + random.below(4);
    const bool final_norm = random.coin(0.5);
    INFO(describe(c) << ", " << num_layers << " layers, final norm " << final_norm);
    const auto encoder = drawn_layer<TransformerEncoder>(random, TransformerEncoderOptions{c.options, num_layers, final_norm});
    const Arrays state = arrays_of(encoder.state_dict());
    const EncoderOutput result = forward(encoder, c.x, asking_for_all(call_of(c)));
    REQUIRE(result.attentions->size() == static_cast<std::size_t>(num_layers));
    REQUIRE(result.hidden_states->size() == static_cast<std::size_t>(num_layers) + 1);
    REQUIRE(result.trace->size() == static_cast<std::size_t>(num_layers));

    Array x = c.x;
    for (std::int64_t i = 0; i < num_layers; ++i) {
      INFO("layer " << i);
      const auto at = static_cast<std::size_t>(i);
      CHECK_THAT(result.hidden_states->at(at), HasBitsOf(x));
      TransformerEncoderLayer layer(c.options);
      layer.load_state_dict(state_of(below(prefix(i), state)));
      const EncoderOutput alone = forward(layer, x, asking_for_all(call_of(c)));
      CHECK_THAT(result.attentions->at(at), HasBitsOf(alone.attentions->at(0)));
      CHECK(result.trace->at(i).size() == kLayerTraceCount);
      for (const auto& [name, array] : alone.trace->at(0)) {
        INFO(to_string(name));
        CHECK_THAT(result.trace->at(i).at(name), HasBitsOf(array));
      }
      x = alone.output;
    }
    if (final_norm) {
      const Array *const weight = &state.at("norm.weight"), *const bias = state.contains("norm.bias") ? &state.at("norm.bias") : nullptr;
      const float eps = c.options.layer_norm_eps;
      x = c.options.norm == NormKind::rms_norm ? rms_norm(x, weight, eps) : layer_norm(x, weight, bias, eps);
    }
    CHECK_THAT(result.hidden_states->back(), HasBitsOf(x));
    CHECK_THAT(result.output, HasBitsOf(x));
    CHECK_THAT(forward(encoder, c.x, call_of(c)).output, HasBitsOf(x));
  }
}

TEST_CASE("an encoder of several layers agrees with the float64 reference", "[layers]") {
  for (std::uint64_t seed = 300; seed < 340; ++seed) {
    EncoderCase c = draw_encoder_case(seed);
    Generator random(seed);
    c.options.d_model = c.options.nhead * 2;
    c.x = random.normal({2, 6, c.options.d_model});
    c.mask.reset();
    c.key_padding_mask.reset();
    c.is_causal = random.coin(0.5);
    INFO(describe(c));
    TransformerEncoder encoder({c.options, 3, false});
    const Arrays state = draw_state(random, encoder.parameter_shapes());
    encoder.load_state_dict(state_of(state));
    Estimate x(c.x);
    for (std::int64_t i = 0; i < 3; ++i) x = layer_output(c, reference_encoder_layer(c, x, below(prefix(i), state)));
    CHECK_THAT(forward(encoder, c.x, call_of(c)).output, IsCloseTo(x));
  }
}

TEST_CASE("a trace of some layers has only those layers and names, each once", "[layers]") {
  Generator random(1);
  const auto encoder =
      drawn_layer<TransformerEncoder>(random, TransformerEncoderOptions{.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 12}, .num_layers = 5});
  const Array x = random.normal({2, 6, 8});
  const EncoderOutput all = forward(encoder, x, asking_for_all({}));
  using Layers = std::vector<std::int64_t>;
  for (const Layers& layers : {Layers{}, Layers{0}, Layers{4, 1}, Layers{3, 3, 3}, Layers{4, 3, 2, 1, 0}})
    for (const Trace names : {Trace{}, Trace{TraceName::weights}, Trace{TraceName::norm2, TraceName::q, TraceName::ff_hidden}}) {
      const EncoderOutput some = forward(encoder, x, {.trace = EncoderTraceOptions{layers, names}});
      CHECK_THAT(some.output, HasBitsOf(all.output));
      REQUIRE(some.trace);
      std::size_t wanted = 0;
      for (std::size_t i = 0; i < kLayerTraceCount; ++i) wanted += names.has(static_cast<TraceName>(i)) ? 1 : 0;
      const std::set<std::int64_t> distinct(layers.begin(), layers.end());
      CHECK(some.trace->size() == (wanted > 0 ? distinct.size() : 0));
      for (const auto& [layer, traces] : *some.trace) {
        INFO("layer " << layer);
        CHECK(distinct.contains(layer));
        CHECK(traces.size() == wanted);
        for (const auto& [name, array] : traces) CHECK_THAT(array, HasBitsOf(all.trace->at(layer).at(name)));
      }
    }
  CHECK(forward(encoder, x, {.trace = EncoderTraceOptions{}}).trace->size() == 5);
}

TEST_CASE("an encoder gives a sentence the same bits alone, in a batch, padded, unbatched and with any number of threads",
          "[layers][properties][threads]") {
  for (const bool norm_first : {false, true}) {
    Generator random(2);
    const auto encoder = drawn_layer<TransformerEncoder>(
        random, TransformerEncoderOptions{
                    .layer = {.d_model = 24, .nhead = 4, .dim_feedforward = 50, .activation = Activation::gelu, .norm_first = norm_first},
                    .num_layers = 3,
                    .final_norm = true});
    const Array sentence = random.normal({11, 24});
    const EncoderOutput alone = forward(encoder, sentence, asking_for_all({}));
    for (const unsigned threads : {1U, 2U, 3U})
      for (const float content : {0.0F, kNaN}) {
        INFO("seed 2, pre-norm " << norm_first << ", " << threads << " threads, padding of " << content);
        set_num_threads(threads);
        std::vector<Array> batch;
        MaskInput padding{MaskKind::block, Array({4, 30}, 1)};
        for (std::int64_t b = 0; b < 4; ++b) {
          Array entry({30, 24}, content);
          const std::int64_t length = b == 2 ? 11 : 5 + 7 * b;
          const Array tokens = b == 2 ? sentence : random.normal({length, 24});
          std::copy(tokens.data.begin(), tokens.data.end(), entry.data.begin());
          std::fill_n(padding.data.data.begin() + b * 30, length, 0.0F);
          batch.push_back(entry);
        }
        EncoderForwardOptions options = asking_for_all({});
        options.key_padding_mask = mask_of(padding);
        const EncoderOutput together = forward(encoder, stack(batch), options);
        CHECK_THAT(rows_of(slice(together.output, 2), 0, 11), HasBitsOf(alone.output));
        for (std::size_t i = 0; i < 4; ++i)
          CHECK_THAT(rows_of(slice(together.hidden_states->at(i), 2), 0, 11), HasBitsOf(alone.hidden_states->at(i)));
        CHECK_THAT(forward(encoder, stack({sentence})).output, HasBitsOf(stack({alone.output})));
        set_num_threads(1);
      }
  }
}

TEST_CASE("an encoder accepts empty inputs", "[layers]") {
  TransformerEncoder encoder({.layer = {.d_model = 6, .nhead = 2, .dim_feedforward = 8}, .num_layers = 2, .final_norm = true});
  for (const Shape& dims : {Shape{0, 5, 6}, Shape{3, 0, 6}, Shape{0, 6}}) {
    INFO(to_string(dims));
    const EncoderOutput result = forward(encoder, Array(dims), asking_for_all({}));
    CHECK(result.output.dims == dims);
    CHECK(result.hidden_states->at(2).dims == dims);
    CHECK(result.trace->at(1).at(TraceName::norm2).dims == dims);
  }
}

TEST_CASE("the reference case of one layer of width 10 has its shapes, and both forms of its masks are equivalent", "[reference]") {
  Generator random(5);
  const auto encoder = drawn_layer<TransformerEncoder>(
      random, TransformerEncoderOptions{.layer = {.d_model = 10, .nhead = 1, .dim_feedforward = 10}, .num_layers = 1});
  const Array x = random.normal({1, 10, 10});
  CHECK(forward(encoder, x).output.dims == Shape{1, 10, 10});
  Array row({1, 1, 1, 10}), square({1, 10, 10});
  for (std::size_t i = 0; i < 100; ++i) square.data[i] = row.data[i % 10] = i % 10 < 7 ? 1 : 0;
  const Array expected = forward(encoder, x, {.mask = mask_of({MaskKind::attend, row})}).output;
  CHECK_THAT(forward(encoder, x, {.mask = mask_of({MaskKind::attend, square})}).output, HasBitsOf(expected));
  CHECK_THAT(forward(encoder, x).output, !HasBitsOf(expected));
}

TEST_CASE("invalid options of an encoder are CONFIG or MEMORY errors, before memory is allocated", "[layers][errors]") {
  struct Case {
    TransformerEncoderOptions options;
    ExpectedError expected;
  };
  const Case cases[] = {
      {{.layer = {.d_model = 8, .nhead = 2}, .num_layers = 0}, {ErrorCode::config, kOp, "num_layers", {"is 0", "1 to 10000"}}},
      {{.layer = {.d_model = 8, .nhead = 2}, .num_layers = -1}, {ErrorCode::config, kOp, "num_layers", {"is -1", "1 to 10000"}}},
      {{.layer = {.d_model = 8, .nhead = 2}, .num_layers = 10001}, {ErrorCode::config, kOp, "num_layers", {"is 10001"}}},
      {{.layer = {.d_model = 8, .nhead = 2}, .num_layers = std::int64_t{1} << 62},
       {ErrorCode::config, kOp, "num_layers", {"is 4611686018427387904"}}},
      {{.layer = {.d_model = 9, .nhead = 2}, .num_layers = 1}, {ErrorCode::config, kOp, "d_model", {"is 9", "multiple of nhead 2"}}},
      {{.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 0}, .num_layers = 1}, {ErrorCode::config, kOp, "dim_feedforward", {"is 0"}}},
      {{.layer = {.d_model = 8, .nhead = 2, .dropout = 1.5F}, .num_layers = 1}, {ErrorCode::config, kOp, "dropout", {"is 1.5"}}},
      {{.layer = {.d_model = 8, .nhead = 2, .layer_norm_eps = -1}, .num_layers = 1}, {ErrorCode::config, kOp, "layer_norm_eps", {"above 0"}}},
      {{.layer = {.d_model = 1024, .nhead = 2}, .num_layers = 10000}, {ErrorCode::memory, kOp, "", {"bytes"}}},
  };
  set_memory_limit(std::uint64_t{1} << 32);
  for (const Case& c : cases) {
    INFO(c.options.num_layers << " layers of width " << c.options.layer.d_model);
    check_error(c.expected, [&] { TransformerEncoder encoder(c.options); });
  }
  set_memory_limit(std::uint64_t{1} << 63);
}

TEST_CASE("errors of an encoder's forward name the encoder", "[layers][errors]") {
  Generator random(3);
  const auto encoder =
      drawn_layer<TransformerEncoder>(random, TransformerEncoderOptions{.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 12}, .num_layers = 2});
  const Array x = random.normal({2, 6, 8}), good = forward(encoder, x).output;
  check_error({ErrorCode::shape, kOp, "x", {"(2,6,9)", "(B,L,8)"}}, [&] { forward(encoder, Array({2, 6, 9})); });
  check_error({ErrorCode::mask, kOp, "mask", {"(7)", "(6,6)"}}, [&] { forward(encoder, x, {.mask = mask_of({MaskKind::attend, Array({7})})}); });
  check_error({ErrorCode::mask, kOp, "key_padding_mask", {"(2,7)", "(2,6)"}},
              [&] { forward(encoder, x, {.key_padding_mask = mask_of({MaskKind::attend, Array({2, 7})})}); });
  check_error({ErrorCode::out_of_range, kOp, "trace.layers", {"is 2", "0 to 1"}},
              [&] { forward(encoder, x, {.trace = EncoderTraceOptions{.layers = std::vector<std::int64_t>{2}}}); });
  CHECK_THAT(forward(encoder, x).output, HasBitsOf(good));
}

TEST_CASE("the results of all layers of an encoder count against the memory limit", "[layers][errors]") {
  const TransformerEncoder encoder({.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 12}, .num_layers = 20});
  const Array x({4, 50, 8});
  set_memory_limit(600'000);
  const Array good = forward(encoder, x).output;
  for (const EncoderForwardOptions& options :
       {EncoderForwardOptions{.output_attentions = true}, EncoderForwardOptions{.trace = EncoderTraceOptions{}}})
    check_error({ErrorCode::memory, kOp, "", {"bytes"}}, [&] { forward(encoder, x, options); });
  CHECK_NOTHROW(forward(encoder, x, {.output_hidden_states = true}));
  set_memory_limit(std::uint64_t{1} << 63);
  CHECK_THAT(forward(encoder, x, {.output_attentions = true}).output, HasBitsOf(good));
}

}  // namespace layers_transformer_encoder_test
}  // namespace attn::test
