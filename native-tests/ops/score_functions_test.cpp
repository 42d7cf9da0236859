#include "attn/ops/score_functions.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>

#include "attn/parallel/thread_pool.hpp"
#include "support/encoder_case.hpp"
#include "support/matchers.hpp"

namespace attn::test {
namespace ops_score_functions_test {

constexpr const char* kAdditive = "additive_attention";
constexpr const char* kGeneral = "general_attention";

struct ScoreCase {
  AttentionCase call;
  AdditiveArrays additive;
  Array weight;  ///< (Dq,Dk)
  bool is_additive = false;
};

std::string describe(const ScoreCase& c) {
  return (c.is_additive ? "additive, width " + std::to_string(c.additive.query_weight.dims[0]) + (c.additive.bias.dims.rank() > 0 ? ", bias" : "")
                        : std::string("general")) +
         ", " + describe(c.call);
}

Result run(const ScoreCase& c, const AttentionOptions& asked = {}) {
  return c.is_additive ? additive_attention(c.call, c.additive, asked) : general_attention(c.call, c.weight, asked);
}

ScoreCase draw_score_case(std::uint64_t seed, bool masked = true) {
  Generator random(seed);
  ScoreCase c;
  c.call.seed = seed;
  c.is_additive = seed % 2 == 0;
  const auto rank = static_cast<std::size_t>(2 + random.below(3));
  const std::int64_t B = rank >= 3 ? 1 + random.below(3) : 1, H = rank == 4 ? 1 + random.below(4) : 1, L = 1 + random.below(30),
                     S = 1 + random.below(40), Dq = 1 + random.below(20), Dk = 1 + random.below(20), Dv = 1 + random.below(10),
                     A = 1 + random.below(20);
  const std::int64_t Hkv = random.coin(0.3) ? 1 : H;
  const auto dims = [&](std::int64_t heads, std::int64_t rows, std::int64_t width) {
    return rank == 2 ? Shape{rows, width} : rank == 3 ? Shape{B, rows, width} : Shape{B, heads, rows, width};
  };
  c.call.query = random.normal(dims(H, L, Dq));
  c.call.key = random.normal(dims(Hkv, S, Dk));
  c.call.value = random.normal(dims(Hkv, S, Dv));
  c.call.enable_gqa = Hkv != H;
  c.additive = {random.normal({A, Dq}, 0.5F), random.normal({A, Dk}, 0.5F), random.normal({A})};
  if (random.coin(0.5)) c.additive.bias = random.normal({A});
  c.weight = random.normal({Dq, Dk}, 0.5F);
  if (random.coin(0.3)) c.call.scale = random.normal();
  if (!masked) return c;
  if (random.coin(0.5)) c.call.mask = random_mask(random, kMaskKinds[random.below(3)], random.pick(mask_dims(B, H, L, S)));
  if (random.coin(0.4)) c.call.key_padding_mask = random_padding(random, kMaskKinds[random.below(3)], B, S);
  c.call.is_causal = random.coin(0.3);
  c.call.fully_masked = kPolicies[random.below(3)];
  return c;
}

/// In the concat form: tanh of [query_weight key_weight] (q_i; k_j) + bias.
Estimate reference_additive_scores(const Estimate& q, const Estimate& k, const AdditiveArrays& params, double scale) {
  const std::int64_t B = q.dims[0], H = q.dims[1], L = q.dims[2], Hkv = k.dims[1], S = k.dims[2];
  const auto Dq = static_cast<std::size_t>(q.dims[3]), Dk = static_cast<std::size_t>(k.dims[3]),
             A = static_cast<std::size_t>(params.query_weight.dims[0]);
  Array joined({params.query_weight.dims[0], q.dims[3] + k.dims[3]});
  for (std::size_t a = 0; a < A; ++a) {
    std::copy_n(params.query_weight.data.begin() + static_cast<std::ptrdiff_t>(a * Dq), Dq,
                joined.data.begin() + static_cast<std::ptrdiff_t>(a * (Dq + Dk)));
    std::copy_n(params.key_weight.data.begin() + static_cast<std::ptrdiff_t>(a * Dk), Dk,
                joined.data.begin() + static_cast<std::ptrdiff_t>(a * (Dq + Dk) + Dq));
  }
  const Array* const bias = params.bias.dims.rank() > 0 ? &params.bias : nullptr;
  Estimate scores({B, H, L, S});
  for (std::int64_t b = 0, s = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t i = 0; i < L; ++i)
        for (std::int64_t j = 0; j < S; ++j, ++s) {
          Estimate pair({1, static_cast<std::int64_t>(Dq + Dk)});
          std::copy_n(q.value.begin() + (((b * H + h) * L + i) * q.dims[3]), Dq, pair.value.begin());
          std::copy_n(k.value.begin() + ((b * Hkv + h / (H / Hkv)) * S + j) * k.dims[3], Dk, pair.value.begin() + q.dims[3]);
          const Estimate hidden = reference_linear(pair, joined, bias);
          Sum sum;
          // tanh errs by 4 ulp of 1; its slope is at most 1.
          for (std::size_t a = 0; a < A; ++a) sum.add(params.score_weight.data[a], 0, std::tanh(hidden.value[a]), hidden.error[a] + 4 * kEps);
          scores.value[static_cast<std::size_t>(s)] = scale * sum.value();
          scores.error[static_cast<std::size_t>(s)] = std::abs(scale) * sum.error() + kEps * std::abs(scale * sum.value()) + kSmallestDenormal;
        }
  return scores;
}

ReferenceAttention reference(const ScoreCase& c) {
  const Estimate q = with_heads(c.call.query), k = with_heads(c.call.key), v = with_heads(c.call.value);
  AttentionCase call = c.call;
  call.scale = c.call.scale.value_or(1.0F);
  if (!c.is_additive)
    return without_heads(reference_attention(reference_linear(q, transposed(c.weight), nullptr), k, v, call), call.query.dims.rank());
  return without_heads(reference_attention_of_scores(reference_additive_scores(q, k, c.additive, *call.scale), v, call), call.query.dims.rank());
}

TEST_CASE("additive and general attention agree with the float64 reference in every intermediate", "[ops]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const ScoreCase c = draw_score_case(seed);
    INFO(describe(c));
    const Result result = run(c, {.need_weights = true, .trace = kAttentionTrace});
    const ReferenceAttention expected = reference(c);
    CHECK_THAT(result.output, IsCloseTo(expected.context));
    CHECK_THAT(*result.weights, IsCloseTo(expected.weights));
    CHECK_THAT(result.trace.at(TraceName::scores), IsCloseTo(expected.scores));
    CHECK_THAT(result.trace.at(TraceName::masked_scores), IsCloseTo(expected.masked_scores));
    CHECK_THAT(result.trace.at(TraceName::weighted_values), IsCloseTo(expected.weighted_values));
    CHECK_THAT(result.trace.at(TraceName::probabilities), HasBitsOf(*result.weights));
    CHECK_THAT(result.trace.at(TraceName::context), HasBitsOf(result.output));
    CHECK_THAT(result.trace.at(TraceName::output), HasBitsOf(result.output));
    CHECK_THAT(result.trace.at(TraceName::q), HasBitsOf(c.call.query));
    CHECK_THAT(result.trace.at(TraceName::k), HasBitsOf(c.call.key));
    CHECK_THAT(result.trace.at(TraceName::v), HasBitsOf(c.call.value));
    CHECK(run(c, {.trace = Trace::all()}).trace.size() == 9);
    CHECK_THAT(run(c).output, HasBitsOf(result.output));
    if (c.call.query.dims.rank() == 4)
      CHECK_THAT(*run(c, {.need_weights = true, .average_weights = true}).weights, IsCloseTo(mean_of_heads(expected.weights)));
  }
}

TEST_CASE("general attention with the identity equals dot-product attention with a scale of 1, bit for bit", "[ops][properties]") {
  for (std::uint64_t seed = 1; seed < 81; seed += 2) {
    ScoreCase c = draw_score_case(seed);
    const std::int64_t D = c.call.query.dims.back(0);
    Generator random(seed);
    c.call.key = random.normal([&] {
      Shape dims = c.call.key.dims;
      dims[dims.rank() - 1] = D;
      return dims;
    }());
    c.weight = Array({D, D});
    for (std::int64_t i = 0; i < D; ++i) c.weight.data[static_cast<std::size_t>(i * (D + 1))] = 1;
    INFO(describe(c));
    const Result general = run(c, {.need_weights = true});
    AttentionCase dot = c.call;
    dot.scale = c.call.scale.value_or(1.0F);
    const Result expected = attention(dot, {.need_weights = true});
    CHECK_THAT(general.output, HasBitsOf(expected.output));
    CHECK_THAT(*general.weights, HasBitsOf(*expected.weights));
  }
}

TEST_CASE("additive attention equals the concat form: the map [Wq Wk] of concatenated query and key", "[reference]") {
  Generator random(11);
  ScoreCase c;
  c.is_additive = true;
  c.call.query = random.normal({2, 5, 6});
  c.call.key = random.normal({2, 7, 4});
  c.call.value = random.normal({2, 7, 3});
  c.additive = {random.normal({8, 6}), random.normal({8, 4}), random.normal({8}), random.normal({8})};
  const Array scores = run(c, {.trace = {TraceName::scores}}).trace.at(TraceName::scores);
  Array joined({8, 10}), pairs({2, 5, 7, 10});
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t d = 0; d < 10; ++d)
      joined.data[a * 10 + d] = d < 6 ? c.additive.query_weight.data[a * 6 + d] : c.additive.key_weight.data[a * 4 + d - 6];
  for (std::size_t p = 0; p < 70; ++p)
    for (std::size_t d = 0; d < 10; ++d)
      pairs.data[p * 10 + d] = d < 6 ? c.call.query.data[p / 7 * 6 + d] : c.call.key.data[(p / 35 * 7 + p % 7) * 4 + d - 6];
  const Array hidden = activation(linear(pairs, joined, &c.additive.bias), Activation::tanh);
  const Array expected = linear(hidden, reshaped(c.additive.score_weight, {1, 8}));
  CHECK_THAT(scores, is_within(100 * kEps, reshaped(expected, {2, 5, 7})));
}

TEST_CASE("dot, scaled dot, general and additive attention give results of the same shapes", "[reference]") {
  Generator random(6);
  AttentionCase c;
  c.query = random.normal({3, 30, 16});
  c.key = random.normal({3, 50, 16});
  c.value = random.normal({3, 50, 24});
  AttentionCase dot = c;
  dot.scale = 1.0F;
  const AttentionOptions asked{.need_weights = true, .trace = {TraceName::scores}};
  const AdditiveArrays params{random.normal({8, 16}), random.normal({8, 16}), random.normal({8})};
  for (const Result& result :
       {attention(dot, asked), attention(c, asked), general_attention(c, random.normal({16, 16}), asked), additive_attention(c, params, asked)}) {
    CHECK(result.output.dims == Shape{3, 30, 24});
    CHECK(result.weights->dims == Shape{3, 30, 50});
    CHECK(result.trace.at(TraceName::scores).dims == Shape{3, 30, 50});
  }
}

TEST_CASE("the default scale of additive and general attention is 1", "[ops]") {
  for (const std::uint64_t seed : {2, 3}) {
    ScoreCase c = draw_score_case(seed);
    c.call.scale.reset();
    const Array plain = run(c).output;
    c.call.scale = 1.0F;
    INFO(describe(c));
    CHECK_THAT(run(c).output, HasBitsOf(plain));
  }
}

Array row_of(const Array& x, std::int64_t i) {
  if (x.dims.rank() == 2) return slice(x, i);
  std::vector<Array> rows;
  for (std::int64_t b = 0; b < x.dims[0]; ++b) rows.push_back(row_of(slice(x, b), i));
  return stack(rows);
}

TEST_CASE("a single query gives its row of the whole, bit for bit, for every score function", "[reference][properties]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    ScoreCase c = draw_score_case(seed, false);
    INFO(describe(c));
    const Result all = run(c, {.need_weights = true});
    const std::int64_t i = c.call.query.dims.back(1) / 2;
    const Array row = row_of(c.call.query, i);
    Shape dims = c.call.query.dims;
    dims[dims.rank() - 2] = 1;
    c.call.query = reshaped(row, dims);
    const Result one = run(c, {.need_weights = true});
    CHECK(one.output.data == row_of(all.output, i).data);
    CHECK(one.weights->data == row_of(*all.weights, i).data);
  }
}

TEST_CASE("a batch entry gives the same bits alone, for every score function", "[ops][properties]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const ScoreCase c = draw_score_case(seed, false);
    if (c.call.query.dims.rank() != 3) continue;
    INFO(describe(c));
    const Result all = run(c, {.need_weights = true});
    for (std::int64_t b = 0; b < c.call.query.dims[0]; ++b) {
      ScoreCase entry = c;
      entry.call.query = slice(c.call.query, b), entry.call.key = slice(c.call.key, b), entry.call.value = slice(c.call.value, b);
      CHECK_THAT(run(entry).output, HasBitsOf(slice(all.output, b)));
    }
  }
}

TEST_CASE("NaN and infinities in masked keys affect only the scores before masks, for every score function", "[ops]") {
  for (const bool is_additive : {false, true})
    for (const float number : {kNaN, kInfinity, 3.4e38F})
      for (const MaskKind kind : kMaskKinds)
        for (const bool as_padding : {false, true}) {
          Generator random(12);
          ScoreCase c;
          c.is_additive = is_additive;
          c.call.query = random.normal({2, 25, 4});
          c.call.key = random.normal({2, 7, 6});
          c.call.value = random.normal({2, 7, 5});
          c.additive = {random.normal({8, 4}), random.normal({8, 6}), random.normal({8})};
          c.weight = random.normal({4, 6});
          const Array allowed({2, 7}, {1, 1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0});
          MaskInput mask = paint(random, kind, allowed);
          if (!as_padding) mask.data.dims = {2, 1, 7};
          (as_padding ? c.call.key_padding_mask : c.call.mask) = mask;
          INFO(number << ", " << describe(c));
          const AttentionOptions asked{.need_weights = true, .trace = kAttentionTrace};
          const Result clean = run(c, asked);
          for (std::size_t j = 0; j < 14; ++j) {
            if (allowed.data[j] != 0) continue;
            for (std::size_t d = 0; d < 6; ++d) c.call.key.data[j * 6 + d] = number;
            for (std::size_t d = 0; d < 5; ++d) c.call.value.data[j * 5 + d] = number;
          }
          const Result spoiled = run(c, asked);
          CHECK_THAT(spoiled.output, HasBitsOf(clean.output));
          CHECK_THAT(*spoiled.weights, HasBitsOf(*clean.weights));
          for (const TraceName name : {TraceName::masked_scores, TraceName::probabilities, TraceName::weighted_values})
            CHECK_THAT(spoiled.trace.at(name), HasBitsOf(clean.trace.at(name)));
          CHECK_THAT(run(c).output, HasBitsOf(clean.output));
        }
}

TEST_CASE("every score function gives the same bits with every number of threads", "[ops][threads]") {
  Generator random(13);
  ScoreCase c;
  c.call.query = random.normal({4, 2, 90, 24});
  c.call.key = random.normal({4, 2, 110, 16});
  c.call.value = random.normal({4, 2, 110, 8});
  c.additive = {random.normal({32, 24}, 0.2F), random.normal({32, 16}, 0.2F), random.normal({32})};
  c.weight = random.normal({24, 16}, 0.2F);
  for (const bool is_additive : {false, true}) {
    c.is_additive = is_additive;
    set_num_threads(1);
    const Array expected = run(c).output;
    for (const unsigned threads : {2U, 3U}) {
      set_num_threads(threads);
      INFO("seed 13, additive " << is_additive << ", " << threads << " threads");
      CHECK_THAT(run(c).output, HasBitsOf(expected));
    }
    set_num_threads(1);
  }
}

TEST_CASE("every score function accepts empty inputs, one key and large numbers", "[ops]") {
  for (const bool is_additive : {false, true}) {
    Generator random(14);
    ScoreCase c;
    c.is_additive = is_additive;
    c.additive = {random.normal({8, 4}), random.normal({8, 6}), random.normal({8})};
    c.weight = random.normal({4, 6});
    INFO("additive " << is_additive);
    for (const auto& [B, L, S] : {std::tuple{0, 3, 5}, std::tuple{2, 0, 5}, std::tuple{2, 3, 0}})
      for (const FullyMasked policy : kPolicies) {
        c.call.query = random.normal({B, L, 4}), c.call.key = random.normal({B, S, 6}), c.call.value = random.normal({B, S, 2});
        c.call.fully_masked = policy;
        const Result result = run(c, {.need_weights = true, .trace = kAttentionTrace});
        CHECK(result.weights->dims == Shape{B, L, S});
        CHECK_THAT(result.output, HasBitsOf(Array({B, L, 2}, policy == FullyMasked::nan ? kNaN : 0)));
      }
    c.call.query = random.normal({2, 3, 4}, 1e30F), c.call.key = random.normal({2, 1, 6}), c.call.value = random.normal({2, 1, 2});
    const Result one = run(c, {.need_weights = true});
    CHECK_THAT(*one.weights, HasBitsOf(Array({2, 3, 1}, 1)));
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t i = 0; i < 3; ++i) CHECK_THAT(slice(slice(one.output, b), i), HasBitsOf(slice(slice(c.call.value, b), 0)));
  }
  Generator random(15);
  ScoreCase c;
  c.is_additive = true;
  c.call.query = random.normal({3, 4}), c.call.key = random.normal({4, 6}), c.call.value = random.normal({4, 2});
  c.additive = {Array({0, 4}), Array({0, 6}), Array({0})};
  CHECK_THAT(*run(c, {.need_weights = true}).weights, HasBitsOf(Array({3, 4}, 0.25F)));
}

TEST_CASE("every misuse of a score function is a typed error with the expected value, and the next call works", "[ops][errors]") {
  Generator random(16);
  ScoreCase base;
  base.call.query = random.normal({2, 3, 4});
  base.call.key = random.normal({2, 5, 6});
  base.call.value = random.normal({2, 5, 7});
  base.additive = {random.normal({8, 4}), random.normal({8, 6}), random.normal({8}), random.normal({8})};
  base.weight = random.normal({4, 6});
  struct Case {
    const char* what;
    bool is_additive;
    ErrorCode code;
    const char* argument;
    std::vector<std::string> words;
    std::function<void(ScoreCase&, AttentionOptions&)> spoil;
  };
  const Case cases[] = {
      {"query weight of another width",
       true,
       ErrorCode::shape,
       "query_weight",
       {"(8,5)", "(8,4)"},
       [](auto& c, auto&) { c.additive.query_weight = Array({8, 5}); }},
      {"key weight of another width",
       true,
       ErrorCode::shape,
       "key_weight",
       {"(8,4)", "(8,6)"},
       [](auto& c, auto&) { c.additive.key_weight = Array({8, 4}); }},
      {"key weight of another height",
       true,
       ErrorCode::shape,
       "key_weight",
       {"(7,6)", "(8,6)"},
       [](auto& c, auto&) { c.additive.key_weight = Array({7, 6}); }},
      {"score weight of another width",
       true,
       ErrorCode::shape,
       "score_weight",
       {"(9)", "(8)"},
       [](auto& c, auto&) { c.additive.score_weight = Array({9}); }},
      {"bias of another width", true, ErrorCode::shape, "bias", {"(1)", "(8)"}, [](auto& c, auto&) { c.additive.bias = Array({1}); }},
      {"weight transposed", false, ErrorCode::shape, "weight", {"(6,4)", "(4,6)"}, [](auto& c, auto&) { c.weight = Array({6, 4}); }},
      {"weight of rank 1", false, ErrorCode::shape, "weight", {"(4)", "(Dq,Dk)"}, [](auto& c, auto&) { c.weight = Array({4}); }},
      {"weight of rank 3", false, ErrorCode::shape, "weight", {"(1,4,6)", "(Dq,Dk)"}, [](auto& c, auto&) { c.weight = Array({1, 4, 6}); }},
      {"key of rank 2", true, ErrorCode::shape, "key", {"(5,6)", "rank 3"}, [](auto& c, auto&) { c.call.key = Array({5, 6}); }},
      {"value of rank 4", false, ErrorCode::shape, "value", {"(2,1,5,7)", "rank 3"}, [](auto& c, auto&) { c.call.value = Array({2, 1, 5, 7}); }},
      {"key batch", true, ErrorCode::shape, "key", {"(3,5,6)", "a batch of 2"}, [](auto& c, auto&) { c.call.key = Array({3, 5, 6}); }},
      {"fewer values than keys", false, ErrorCode::shape, "value", {"(2,4,7)", "5 rows"}, [](auto& c, auto&) { c.call.value = Array({2, 4, 7}); }},
      {"query without width", true, ErrorCode::shape, "query", {"(2,3,0)", "width above 0"}, [](auto& c, auto&) { c.call.query = Array({2, 3, 0}); }},
      {"mask", true, ErrorCode::mask, "mask", {"(3,6)", "(3,5)"}, [](auto& c, auto&) { c.call.mask = MaskInput{MaskKind::attend, Array({3, 6})}; }},
      {"NaN in a mask",
       false,
       ErrorCode::mask,
       "mask",
       {"NaN"},
       [](auto& c, auto&) { c.call.mask = MaskInput{MaskKind::additive, Array({5}, kNaN)}; }},
      {"key padding mask",
       false,
       ErrorCode::mask,
       "key_padding_mask",
       {"(2,4)", "(2,5)"},
       [](auto& c, auto&) { c.call.key_padding_mask = MaskInput{MaskKind::attend, Array({2, 4})}; }},
      {"NaN as scale", true, ErrorCode::config, "scale", {"NaN"}, [](auto& c, auto&) { c.call.scale = kNaN; }},
      {"infinity as scale", false, ErrorCode::config, "scale", {"infinite"}, [](auto& c, auto&) { c.call.scale = kInfinity; }},
      {"a trace of a layer", true, ErrorCode::argument, "trace", {"q_proj"}, [](auto&, auto& o) { o.trace = {TraceName::q_proj}; }},
      {"a trace of an encoder layer", false, ErrorCode::argument, "trace", {"norm1"}, [](auto&, auto& o) { o.trace = {TraceName::norm1}; }},
  };
  for (const Case& error : cases) {
    ScoreCase c = base;
    c.is_additive = error.is_additive;
    const Array good = run(c).output;
    AttentionOptions options;
    error.spoil(c, options);
    INFO(error.what);
    check_error({error.code, error.is_additive ? kAdditive : kGeneral, error.argument, error.words}, [&] { run(c, options); });
    ScoreCase again = base;
    again.is_additive = error.is_additive;
    CHECK_THAT(run(again).output, HasBitsOf(good));
  }
}

TEST_CASE("scores over the memory limit are refused before they are computed, for every score function", "[ops][errors]") {
  ScoreCase c;
  c.call.query = Array({100, 4}), c.call.key = Array({1000, 6}), c.call.value = Array({1000, 2});
  c.additive = {Array({8, 4}), Array({8, 6}), Array({8})};
  c.weight = Array({4, 6});
  set_memory_limit(500'000);
  for (const bool is_additive : {false, true}) {
    c.is_additive = is_additive;
    check_error({ErrorCode::memory, is_additive ? kAdditive : kGeneral, "", {"bytes"}}, [&] { run(c, {.need_weights = true}); });
    CHECK_NOTHROW(run(c));
  }
  set_memory_limit(std::uint64_t{1} << 63);
}

}  // namespace ops_score_functions_test
}  // namespace attn::test
