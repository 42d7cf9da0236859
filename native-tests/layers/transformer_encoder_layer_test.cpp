#include "attn/layers/transformer_encoder_layer.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>

#include "attn/parallel/thread_pool.hpp"
#include "support/encoder_case.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace layers_transformer_encoder_layer_test {

constexpr const char* kOp = "TransformerEncoderLayer";

EncoderForwardOptions asking_for_all(EncoderForwardOptions options) {
  options.output_attentions = options.output_hidden_states = true;
  options.trace = EncoderTraceOptions{.names = kWholeTrace};
  return options;
}

EncoderForwardOptions tracing(Trace names) {
  EncoderForwardOptions options;
  options.trace.emplace().names = names;
  return options;
}

void check_against_reference(const EncoderCase& c) {
  INFO(describe(c));
  Generator random(c.seed);
  TransformerEncoderLayer layer(c.options);
  const Arrays state = draw_state(random, layer.parameter_shapes());
  layer.load_state_dict(state_of(state));
  const EncoderOutput result = forward(layer, c.x, asking_for_all(call_of(c)));
  const std::map<TraceName, Estimate> expected = reference_encoder_layer(c, Estimate(c.x), state);
  CHECK_THAT(result.output, IsCloseTo(layer_output(c, expected)));
  REQUIRE(result.attentions->size() == 1);
  CHECK_THAT(result.attentions->at(0), IsCloseTo(expected.at(TraceName::weights)));
  REQUIRE(result.hidden_states->size() == 2);
  CHECK_THAT(result.hidden_states->at(0), HasBitsOf(c.x));
  CHECK_THAT(result.hidden_states->at(1), HasBitsOf(result.output));
  REQUIRE(result.trace->size() == 1);
  const auto& trace = result.trace->at(0);
  CHECK(trace.size() == kLayerTraceCount);
  CHECK(expected.size() == kLayerTraceCount);
  for (const auto& [name, estimate] : expected) {
    INFO(to_string(name));
    CHECK_THAT(trace.at(name), IsCloseTo(estimate));
  }
  CHECK_THAT(forward(layer, c.x, call_of(c)).output, HasBitsOf(result.output));
}

TEST_CASE("an encoder layer agrees with the float64 reference in every intermediate, whatever its options", "[layers]") {
  for (std::uint64_t seed = 1000; seed < 1200; ++seed) check_against_reference(draw_encoder_case(seed));
}

TEST_CASE("the error bounds of the float64 reference of an encoder layer are tight", "[layers]") {
  std::vector<double> errors;
  for (std::uint64_t seed = 1000; seed < 1200; ++seed) {
    const EncoderCase c = draw_encoder_case(seed);
    Generator random(seed);
    const Arrays state = draw_state(random, TransformerEncoderLayer(c.options).parameter_shapes());
    const Estimate output = layer_output(c, reference_encoder_layer(c, Estimate(c.x), state));
    double error = 0;
    for (const double e : output.error) error += std::isnan(e) ? 0 : e / static_cast<double>(output.error.size());
    errors.push_back(error);
  }
  // Outputs are about 1. Norms of one or two columns may divide by almost 0.
  std::sort(errors.begin(), errors.end());
  CHECK(errors[100] < 0.01);
  CHECK(errors[180] < 0.1);
}

TEST_CASE("masks of every kind, dims and policy agree with the float64 reference in an encoder layer", "[layers]") {
  std::uint64_t seed = 2000;
  for (const MaskKind kind : kMaskKinds)
    for (const Shape& dims : mask_dims(2, 3, 7, 7))
      for (const FullyMasked policy : kPolicies)
        for (const bool norm_first : {false, true}) {
          EncoderCase c{.seed = ++seed, .options = {.d_model = 6, .nhead = 3, .dim_feedforward = 8, .norm_first = norm_first}};
          Generator random(seed);
          c.x = random.normal({2, 7, 6});
          c.mask = random_mask(random, kind, dims);
          if (random.coin(0.3)) c.key_padding_mask = random_padding(random, kMaskKinds[random.below(3)], 2, 7);
          c.is_causal = random.coin(0.3);
          c.fully_masked = policy;
          check_against_reference(c);
        }
}

TEST_CASE("an encoder layer equals its parts composed by hand, bit for bit", "[layers][properties]") {
  for (std::uint64_t seed = 3000; seed < 3080; ++seed) {
    const EncoderCase c = draw_encoder_case(seed);
    const TransformerEncoderLayerOptions& o = c.options;
    INFO(describe(c));
    Generator random(seed);
    const auto layer = drawn_layer<TransformerEncoderLayer>(random, o);
    const Arrays state = arrays_of(layer.state_dict());
    const EncoderOutput result = forward(layer, c.x, asking_for_all(call_of(c)));
    const auto& trace = result.trace->at(0);

    const auto optional = [&](const std::string& name) { return state.contains(name) ? &state.at(name) : nullptr; };
    const auto norm = [&](const Array& x, const std::string& name) {
      const Array* const weight = &state.at(name + ".weight");
      return o.norm == NormKind::rms_norm ? rms_norm(x, weight, o.layer_norm_eps) : layer_norm(x, weight, optional(name + ".bias"), o.layer_norm_eps);
    };
    const auto map = [&](const Array& x, const std::string& name) { return linear(x, state.at(name + ".weight"), optional(name + ".bias")); };
    const auto combine = [](Array x, const Array& y, auto op) {
      for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] = op(x.data[i], y.data[i]);
      return x;
    };
    MultiHeadAttention attention({.embed_dim = o.d_model, .num_heads = o.nhead, .bias = o.bias});
    attention.load_state_dict(state_of(below("self_attn.", state)));
    AttentionCase call;
    call.mask = c.mask, call.key_padding_mask = c.key_padding_mask, call.is_causal = c.is_causal, call.fully_masked = c.fully_masked;
    call.query = call.key = call.value = o.norm_first ? norm(c.x, "norm1") : c.x;
    const Result attended = forward(attention, call, {.need_weights = true, .trace = kWholeTrace});

    const Array residual = combine(c.x, attended.output, std::plus());
    const Array norm1 = o.norm_first ? call.query : norm(residual, "norm1"), norm2_before = o.norm_first ? norm(residual, "norm2") : Array();
    const Array& ff_input = o.norm_first ? norm2_before : norm1;
    Array hidden = map(ff_input, "linear1");
    hidden = o.gated ? combine(activation(map(ff_input, "linear_gate"), o.activation), hidden, std::multiplies()) : activation(hidden, o.activation);
    const Array ff_output = map(hidden, "linear2"), sum = combine(o.norm_first ? residual : norm1, ff_output, std::plus());
    const Array norm2 = o.norm_first ? norm2_before : norm(sum, "norm2");

    CHECK_THAT(result.output, HasBitsOf(o.norm_first ? sum : norm2));
    CHECK_THAT(result.attentions->at(0), HasBitsOf(*attended.weights));
    for (const auto& [name, array] : attended.trace) {
      INFO(to_string(name));
      CHECK_THAT(trace.at(name), HasBitsOf(array));
    }
    CHECK_THAT(trace.at(TraceName::attn_residual), HasBitsOf(residual));
    CHECK_THAT(trace.at(TraceName::norm1), HasBitsOf(norm1));
    CHECK_THAT(trace.at(TraceName::norm2), HasBitsOf(norm2));
    CHECK_THAT(trace.at(TraceName::ff_hidden), HasBitsOf(hidden));
    CHECK_THAT(trace.at(TraceName::ff_output), HasBitsOf(ff_output));
    CHECK_THAT(trace.at(TraceName::ff_residual), HasBitsOf(sum));
  }
}

TEST_CASE("storing values for backward is optional and does not change any bit", "[layers]") {
  for (std::uint64_t seed = 5000; seed < 5080; ++seed) {
    const EncoderCase c = draw_encoder_case(seed);
    const TransformerEncoderLayerOptions& o = c.options;
    INFO(describe(c));
    Generator random(seed);
    const auto layer = drawn_layer<TransformerEncoderLayer>(random, o);
    const Arrays state = arrays_of(layer.state_dict());
    const EncoderForwardOptions options = call_of(c);
    const EncoderOutput expected = forward(layer, c.x, asking_for_all(options));
    const auto& trace = expected.trace->at(0);
    const Array& weights = expected.attentions->at(0);

    const TensorView x(c.x.data.data(), c.x.dims);
    const detail::EncoderPlan plan = layer.plan(x, options);
    const auto size = static_cast<std::size_t>(plan.B * plan.L * o.dim_feedforward);
    std::vector<float> output(c.x.data.size(), kNaN), linear1(size, kNaN), gate(size, kNaN);
    std::vector<float> log_sum_exp(static_cast<std::size_t>(plan.B * o.nhead * plan.L), kNaN);
    detail::EncoderBuffers buffers{.output = output.data(), .hidden_states = {}, .layers = {1, detail::LayerBuffers{}}};
    buffers.layers[0].log_sum_exp = log_sum_exp.data();
    buffers.layers[0].linear1 = linear1.data();
    if (o.gated) buffers.layers[0].linear_gate = gate.data();
    layer.run(plan, x, buffers);
    CHECK_THAT(Array(c.x.dims, output), HasBitsOf(expected.output));

    const Array& ff_input = trace.at(o.norm_first ? TraceName::norm2 : TraceName::norm1);
    const auto map = [&](const std::string& name) {
      return linear(ff_input, state.at(name + ".weight"), state.contains(name + ".bias") ? &state.at(name + ".bias") : nullptr);
    };
    const Array expected_linear1 = map("linear1");
    CHECK_THAT(Array(expected_linear1.dims, linear1), HasBitsOf(expected_linear1));
    if (o.gated) CHECK_THAT(Array(expected_linear1.dims, gate), HasBitsOf(map("linear_gate")));

    // Weights are exp(masked score - log_sum_exp); without a visible key the policy decides.
    const Array& masked = trace.at(TraceName::masked_scores);
    const std::size_t S = log_sum_exp.empty() ? 0 : weights.data.size() / log_sum_exp.size();
    for (std::size_t row = 0; row < log_sum_exp.size(); ++row) {
      const float* const scores = masked.data.data() + row * S;
      const bool none = std::all_of(scores, scores + S, [](float score) { return score == -kInfinity; });
      if (none) {
        const float log_of_all = c.fully_masked == FullyMasked::uniform ? static_cast<float>(std::log(static_cast<double>(S))) : -kInfinity;
        CHECK(log_sum_exp[row] == log_of_all);
      }
      for (std::size_t key = 0; key < S && !none; ++key) {
        const double weight = std::exp(static_cast<double>(scores[key]) - static_cast<double>(log_sum_exp[row]));
        REQUIRE(std::abs(weight - static_cast<double>(weights.data[row * S + key])) <
                1e-6 * std::max(1.0, std::abs(static_cast<double>(log_sum_exp[row]))));
      }
    }
  }
}

TEST_CASE("an encoder layer returns only the requested results, and each trace can be requested alone", "[layers]") {
  const EncoderCase c = draw_encoder_case(7);
  Generator random(7);
  const auto layer = drawn_layer<TransformerEncoderLayer>(random, c.options);
  const EncoderOutput plain = forward(layer, c.x);
  CHECK_FALSE(plain.attentions);
  CHECK_FALSE(plain.hidden_states);
  CHECK_FALSE(plain.trace);
  const EncoderOutput all = forward(layer, c.x, tracing(kWholeTrace));
  for (std::size_t i = 0; i < kLayerTraceCount; ++i) {
    const auto name = static_cast<TraceName>(i);
    INFO(to_string(name));
    const EncoderOutput one = forward(layer, c.x, tracing({name}));
    REQUIRE(one.trace->at(0).size() == 1);
    CHECK_THAT(one.trace->at(0).at(name), HasBitsOf(all.trace->at(0).at(name)));
    CHECK_THAT(one.output, HasBitsOf(plain.output));
  }
  const auto default_trace = forward(layer, c.x, {.trace = EncoderTraceOptions{}}).trace->at(0);
  CHECK(default_trace.size() == kLayerTraceCount - 1);
  CHECK_FALSE(default_trace.contains(TraceName::weighted_values));
  EncoderForwardOptions no_layer;
  no_layer.trace.emplace().layers.emplace();
  CHECK(forward(layer, c.x, no_layer).trace->empty());
}

constexpr std::uint64_t kCases = 40;

TEST_CASE("padding and its contents do not change the bits of other tokens in an encoder layer", "[layers][properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    EncoderCase c = draw_encoder_case(seed);
    c.mask.reset();
    c.key_padding_mask.reset();
    INFO(describe(c));
    Generator random(seed);
    const auto layer = drawn_layer<TransformerEncoderLayer>(random, c.options);
    const std::int64_t B = c.x.dims[0], L = c.x.dims[1], E = c.x.dims[2];
    const Array bare = forward(layer, c.x, call_of(c)).output;
    for (const float content : {0.0F, kNaN, kInfinity, -3e38F})
      for (const std::int64_t more : {1, 7, 33}) {
        INFO(more << " tokens of " << content << " behind");
        EncoderCase padded = c;
        padded.key_padding_mask = MaskInput{MaskKind::block, Array({B, L + more}, 1)};
        std::vector<Array> entries;
        for (std::int64_t b = 0; b < B; ++b) {
          Array entry({L + more, E}, content);
          const Array tokens = slice(c.x, b);
          std::copy(tokens.data.begin(), tokens.data.end(), entry.data.begin());
          std::fill_n(padded.key_padding_mask->data.data.begin() + b * (L + more), L, 0.0F);
          entries.push_back(std::move(entry));
        }
        const Array output = forward(layer, stack(entries), call_of(padded)).output;
        for (std::int64_t b = 0; b < B; ++b) CHECK_THAT(rows_of(slice(output, b), 0, L), HasBitsOf(slice(bare, b)));
      }
  }
}

TEST_CASE("a batch entry gives the same bits alone and at any position, in an encoder layer", "[layers][properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    EncoderCase c = draw_encoder_case(seed);
    c.mask.reset();
    c.key_padding_mask.reset();
    INFO(describe(c));
    Generator random(seed);
    const auto layer = drawn_layer<TransformerEncoderLayer>(random, c.options);
    const EncoderForwardOptions asked = asking_for_all(call_of(c));
    const EncoderOutput all = forward(layer, c.x, asked);
    std::vector<std::int64_t> reversed;
    for (std::int64_t b = c.x.dims[0]; b-- > 0;) {
      reversed.push_back(b);
      const EncoderOutput alone = forward(layer, slice(c.x, b), asked);
      CHECK_THAT(alone.output, HasBitsOf(slice(all.output, b)));
      CHECK_THAT(alone.attentions->at(0), HasBitsOf(slice(all.attentions->at(0), b)));
      CHECK_THAT(alone.hidden_states->at(1), HasBitsOf(slice(all.output, b)));
      for (const auto& [name, array] : alone.trace->at(0)) {
        INFO(to_string(name));
        CHECK_THAT(array, HasBitsOf(slice(all.trace->at(0).at(name), b)));
      }
      CHECK_THAT(forward(layer, stack({slice(c.x, b)}), asked).output, HasBitsOf(stack({slice(all.output, b)})));
    }
    CHECK_THAT(forward(layer, take(c.x, reversed), asked).output, HasBitsOf(take(all.output, reversed)));
  }
}

TEST_CASE("an encoder layer gives the same bits with every number of threads, and again", "[layers][properties][threads]") {
  Generator random(9);
  const TransformerEncoderLayerOptions options{.d_model = 48, .nhead = 6, .dim_feedforward = 130, .activation = Activation::gelu};
  const auto layer = drawn_layer<TransformerEncoderLayer>(random, options);
  const Array x = random.normal({5, 61, 48});
  set_num_threads(1);
  const Array expected = forward(layer, x).output;
  CHECK_THAT(forward(layer, x).output, HasBitsOf(expected));
  for (const unsigned threads : {2U, 3U}) {
    set_num_threads(threads);
    INFO("seed 9, " << threads << " threads");
    CHECK_THAT(forward(layer, x).output, HasBitsOf(expected));
  }
  set_num_threads(1);
}

TEST_CASE("under a causal mask, later tokens do not affect earlier ones in an encoder layer, bit for bit", "[layers][properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    EncoderCase c = draw_encoder_case(seed);
    c.mask.reset();
    c.key_padding_mask.reset();
    c.is_causal = true;
    INFO(describe(c));
    Generator random(seed);
    const auto layer = drawn_layer<TransformerEncoderLayer>(random, c.options);
    const std::int64_t B = c.x.dims[0], L = c.x.dims[1], E = c.x.dims[2], kept = 1 + L / 2;
    const Array before = forward(layer, c.x, call_of(c)).output;
    for (std::int64_t b = 0; b < B; ++b)
      for (std::int64_t i = kept * E; i < L * E; ++i) c.x.data[static_cast<std::size_t>(b * L * E + i)] = kNaN;
    const Array after = forward(layer, c.x, call_of(c)).output;
    for (std::int64_t b = 0; b < B; ++b) {
      const std::int64_t count = std::min(kept, L);
      CHECK_THAT(rows_of(slice(after, b), 0, count), HasBitsOf(rows_of(slice(before, b), 0, count)));
      CHECK_THAT(forward(layer, rows_of(slice(c.x, b), 0, count), {.is_causal = true}).output, HasBitsOf(rows_of(slice(before, b), 0, count)));
    }
  }
}

TEST_CASE("an encoder layer without positions is permutation-equivariant, and with positions it is not", "[layers][properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    EncoderCase c = draw_encoder_case(seed);
    c.mask.reset();
    c.key_padding_mask.reset();
    c.is_causal = false;
    INFO(describe(c));
    Generator random(seed);
    TransformerEncoderLayer layer(c.options);
    const Arrays state = draw_state(random, layer.parameter_shapes());
    layer.load_state_dict(state_of(state));
    const std::vector<std::int64_t> order = random.permutation(c.x.dims[1]);
    std::vector<Array> entries;
    for (std::int64_t b = 0; b < c.x.dims[0]; ++b) entries.push_back(take(slice(c.x, b), order));
    const Array before = forward(layer, c.x).output;
    c.x = stack(entries);
    // Twice the bound, for two float32 computations that differ in the order of sums.
    Estimate expected = layer_output(c, reference_encoder_layer(c, Estimate(c.x), state));
    const Array after = forward(layer, c.x).output;
    for (double& error : expected.error) error *= 2;
    for (std::int64_t b = 0, at = 0; b < c.x.dims[0]; ++b)
      for (const std::int64_t i : order)
        for (const float value : slice(slice(before, b), i).data) expected.value[static_cast<std::size_t>(at++)] = value;
    CHECK_THAT(after, IsCloseTo(expected));
  }

  Generator random(1);
  const TransformerEncoderLayerOptions options{.d_model = 8, .nhead = 2, .dim_feedforward = 16};
  const auto layer = drawn_layer<TransformerEncoderLayer>(random, options);
  const Array x = random.normal({6, 8}), positions = sinusoidal_positions(6, 8);
  const auto output = [&](Array tokens) {
    for (std::size_t i = 0; i < tokens.data.size(); ++i) tokens.data[i] += positions.data[i];
    return forward(layer, tokens).output;
  };
  const std::vector<std::int64_t> reversed{5, 4, 3, 2, 1, 0};
  CHECK_THAT(output(take(x, reversed)), !is_within(0.05, take(output(x), reversed)));
}

TEST_CASE("an encoder layer accepts empty batches and sequences, and a single token attends to itself", "[layers]") {
  Generator random(10);
  for (const bool norm_first : {false, true})
    for (const bool gated : {false, true}) {
      const TransformerEncoderLayerOptions options{.d_model = 6, .nhead = 2, .dim_feedforward = 8, .norm_first = norm_first, .gated = gated};
      INFO("seed 10, " << describe(options));
      const auto layer = drawn_layer<TransformerEncoderLayer>(random, options);
      for (const Shape& dims : {Shape{0, 5, 6}, Shape{3, 0, 6}, Shape{0, 0, 6}, Shape{0, 6}}) {
        const EncoderOutput result = forward(layer, Array(dims), asking_for_all({}));
        CHECK(result.output.dims == dims);
        Shape hidden = dims;
        hidden[dims.rank() - 1] = 8;
        CHECK(result.trace->at(0).at(TraceName::ff_hidden).dims == hidden);
        CHECK(result.trace->at(0).at(TraceName::norm2).dims == dims);
        const std::int64_t L = dims.back(1);
        CHECK(result.attentions->at(0).dims == (dims.rank() == 3 ? Shape{dims[0], 2, L, L} : Shape{2, L, L}));
      }
      const EncoderOutput one = forward(layer, random.normal({3, 1, 6}), asking_for_all({}));
      CHECK_THAT(one.attentions->at(0), HasBitsOf(Array({3, 2, 1, 1}, 1)));
      CHECK_THAT(one.trace->at(0).at(TraceName::merged), HasBitsOf(one.trace->at(0).at(TraceName::v_proj)));
    }
}

TEST_CASE("tokens without visible keys get the attention of the policy, and do not affect other tokens", "[layers]") {
  Generator random(11);
  for (const bool norm_first : {false, true}) {
    TransformerEncoderLayer layer({.d_model = 6, .nhead = 2, .dim_feedforward = 8, .norm_first = norm_first});
    const Arrays state = draw_state(random, layer.parameter_shapes());
    layer.load_state_dict(state_of(state));
    const Array x = random.normal({2, 4, 6});
    for (const FullyMasked policy : kPolicies) {
      INFO("seed 11, pre-norm " << norm_first << ", " << to_string(policy));
      EncoderForwardOptions options = asking_for_all({.fully_masked = policy});
      options.key_padding_mask = mask_of({MaskKind::attend, Array({2, 4}, {1, 1, 1, 0, 0, 0, 0, 0})});
      const EncoderOutput result = forward(layer, x, options);
      const float weight = policy == FullyMasked::zero ? 0 : policy == FullyMasked::nan ? kNaN : 0.25F;
      CHECK_THAT(slice(result.attentions->at(0), 1), HasBitsOf(Array({2, 4, 4}, weight)));
      const Array attended = slice(result.trace->at(0).at(TraceName::output), 1);
      if (policy == FullyMasked::nan) CHECK_THAT(slice(result.output, 1), HasBitsOf(Array({4, 6}, kNaN)));
      if (policy == FullyMasked::zero)
        for (std::int64_t i = 0; i < 4; ++i) CHECK_THAT(slice(attended, i), HasBitsOf(state.at("self_attn.out_proj.bias")));
      options.key_padding_mask = mask_of({MaskKind::attend, Array({4}, {1, 1, 1, 0})});
      CHECK_THAT(forward(layer, slice(x, 0), options).output, HasBitsOf(slice(result.output, 0)));
    }
  }
}

TEST_CASE("NaN in one token reaches only the tokens that attend to it, and no other batch entry", "[layers]") {
  Generator random(12);
  const auto layer = drawn_layer<TransformerEncoderLayer>(random, TransformerEncoderLayerOptions{.d_model = 6, .nhead = 2, .dim_feedforward = 8});
  Array x = random.normal({2, 4, 6});
  const Array clean = forward(layer, x).output;
  x.data[6] = kNaN;
  const Array spoiled = forward(layer, x).output, causal = forward(layer, x, {.is_causal = true}).output;
  CHECK_THAT(slice(spoiled, 0), HasBitsOf(Array({4, 6}, kNaN)));
  CHECK_THAT(slice(spoiled, 1), HasBitsOf(slice(clean, 1)));
  CHECK_FALSE(std::isnan(causal.data[0]));
  CHECK(std::isnan(causal.data[6]));
}

TEST_CASE("invalid options of an encoder layer are CONFIG errors", "[layers][errors]") {
  struct Case {
    TransformerEncoderLayerOptions options;
    ExpectedError expected;
  };
  const std::string range = "1 to 2147483647";
  const Case cases[] = {
      {{.d_model = 10, .nhead = 3}, {ErrorCode::config, kOp, "d_model", {"is 10", "multiple of nhead 3"}}},
      {{.d_model = 0, .nhead = 1}, {ErrorCode::config, kOp, "d_model", {"is 0", range}}},
      {{.d_model = -4, .nhead = 2}, {ErrorCode::config, kOp, "d_model", {"is -4", range}}},
      {{.d_model = std::int64_t{1} << 31, .nhead = 1}, {ErrorCode::config, kOp, "d_model", {"is 2147483648", range}}},
      {{.d_model = 8, .nhead = 0}, {ErrorCode::config, kOp, "nhead", {"is 0", range}}},
      {{.d_model = 8, .nhead = -2}, {ErrorCode::config, kOp, "nhead", {"is -2", range}}},
      {{.d_model = 8, .nhead = 2, .dim_feedforward = 0}, {ErrorCode::config, kOp, "dim_feedforward", {"is 0", range}}},
      {{.d_model = 8, .nhead = 2, .dim_feedforward = -1}, {ErrorCode::config, kOp, "dim_feedforward", {"is -1", range}}},
      {{.d_model = 8, .nhead = 2, .dropout = 1}, {ErrorCode::config, kOp, "dropout", {"is 1,", "not including, 1"}}},
      {{.d_model = 8, .nhead = 2, .dropout = -0.1F}, {ErrorCode::config, kOp, "dropout", {"is -0.1"}}},
      {{.d_model = 8, .nhead = 2, .dropout = kNaN}, {ErrorCode::config, kOp, "dropout", {"not including, 1"}}},
      {{.d_model = 8, .nhead = 2, .layer_norm_eps = 0}, {ErrorCode::config, kOp, "layer_norm_eps", {"is 0", "above 0"}}},
      {{.d_model = 8, .nhead = 2, .layer_norm_eps = -1e-5F}, {ErrorCode::config, kOp, "layer_norm_eps", {"is -1e-", "above 0"}}},
      {{.d_model = 8, .nhead = 2, .layer_norm_eps = kNaN}, {ErrorCode::config, kOp, "layer_norm_eps", {"finite"}}},
      {{.d_model = 8, .nhead = 2, .layer_norm_eps = kInfinity}, {ErrorCode::config, kOp, "layer_norm_eps", {"finite"}}},
      {{.d_model = 0x7fffffff, .nhead = 1}, {ErrorCode::memory, kOp, "", {}}},
      {{.d_model = 8, .nhead = 2, .dim_feedforward = 0x7fffffff, .gated = true}, {ErrorCode::memory, kOp, "", {}}},
  };
  set_memory_limit(std::uint64_t{1} << 34);
  for (const Case& c : cases) {
    INFO(describe(c.options));
    check_error(c.expected, [&] { TransformerEncoderLayer layer(c.options); });
  }
  set_memory_limit(std::uint64_t{1} << 63);
}

TEST_CASE("every misuse of an encoder layer's forward is a typed error, and the next call works", "[layers][errors]") {
  Generator random(13);
  const auto layer = drawn_layer<TransformerEncoderLayer>(random, TransformerEncoderLayerOptions{.d_model = 6, .nhead = 2, .dim_feedforward = 8});
  const Array x = random.normal({2, 4, 6}), good = forward(layer, x).output;
  struct Case {
    const char* what;
    ExpectedError expected;
    std::function<void(Array&, EncoderForwardOptions&)> spoil;
  };
  const auto mask = [](const Shape& dims, MaskKind kind = MaskKind::attend, float value = 1) { return mask_of({kind, Array(dims, value)}); };
  const Case cases[] = {
      {"width", {ErrorCode::shape, kOp, "x", {"(2,4,5)", "(B,L,6)", "(L,6)"}}, [](auto& in, auto&) { in = Array({2, 4, 5}); }},
      {"width of rank 2", {ErrorCode::shape, kOp, "x", {"(4,7)", "(B,L,6)"}}, [](auto& in, auto&) { in = Array({4, 7}); }},
      {"mask of the wrong length", {ErrorCode::mask, kOp, "mask", {"(5)", "(4,4)"}}, [&](auto&, auto& o) { o.mask = mask({5}); }},
      {"torch's (B·H,L,S)", {ErrorCode::mask, kOp, "mask", {"(4,4,4)", "to (B,H,L,S)"}}, [&](auto&, auto& o) { o.mask = mask({4, 4, 4}); }},
      {"mask of rank 5", {ErrorCode::mask, kOp, "mask", {"(1,1,1,4,4)"}}, [&](auto&, auto& o) { o.mask = mask({1, 1, 1, 4, 4}); }},
      {"NaN in a mask", {ErrorCode::mask, kOp, "mask", {"NaN"}}, [&](auto&, auto& o) { o.mask = mask({4, 4}, MaskKind::additive, kNaN); }},
      {"+infinity in a padding mask",
       {ErrorCode::mask, kOp, "key_padding_mask", {"+Infinity"}},
       [&](auto&, auto& o) { o.key_padding_mask = mask({2, 4}, MaskKind::additive, kInfinity); }},
      {"padding mask of the wrong batch",
       {ErrorCode::mask, kOp, "key_padding_mask", {"(3,4)", "(2,4)"}},
       [&](auto&, auto& o) { o.key_padding_mask = mask({3, 4}); }},
      {"padding mask without a batch",
       {ErrorCode::mask, kOp, "key_padding_mask", {"(4)", "(2,4)"}},
       [&](auto&, auto& o) { o.key_padding_mask = mask({4}); }},
      {"layer 1 of one",
       {ErrorCode::out_of_range, kOp, "trace.layers", {"is 1", "0 to 0"}},
       [](auto&, auto& o) { o.trace = EncoderTraceOptions{.layers = std::vector<std::int64_t>{0, 1}}; }},
      {"layer -1",
       {ErrorCode::out_of_range, kOp, "trace.layers", {"is -1", "0 to 0"}},
       [](auto&, auto& o) { o.trace = EncoderTraceOptions{.layers = std::vector<std::int64_t>{-1}}; }},
  };
  for (const Case& error : cases) {
    Array in = x;
    EncoderForwardOptions options;
    error.spoil(in, options);
    INFO(error.what);
    check_error(error.expected, [&] { forward(layer, in, options); });
    CHECK_THAT(forward(layer, x).output, HasBitsOf(good));
  }
}

}  // namespace layers_transformer_encoder_layer_test
}  // namespace attn::test
