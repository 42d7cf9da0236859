#include "attn/ops/attention.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <vector>

#include "support/call.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace ops_attention_test {

constexpr const char* kOp = "scaled_dot_product_attention";

struct Sizes {
  std::size_t rank;
  std::int64_t B, H, Hkv, L, S, D, Dv;
};

Shape dims(const Sizes& s, std::int64_t heads, std::int64_t rows, std::int64_t width) {
  if (s.rank == 2) return {rows, width};
  if (s.rank == 3) return {s.B, rows, width};
  return {s.B, heads, rows, width};
}

AttentionCase random_case(std::uint64_t seed, const Sizes& s) {
  Generator random(seed);
  AttentionCase c;
  c.seed = seed;
  c.query = random.normal(dims(s, s.H, s.L, s.D));
  c.key = random.normal(dims(s, s.Hkv, s.S, s.D));
  c.value = random.normal(dims(s, s.Hkv, s.S, s.Dv));
  c.enable_gqa = s.H != s.Hkv;
  return c;
}

void check_against_reference(const AttentionCase& c) {
  INFO(describe(c));
  const Result result = attention(c, {.need_weights = true, .trace = kAttentionTrace});
  const ReferenceAttention expected = reference_attention(c);
  CHECK_THAT(result.output, IsCloseTo(expected.context));
  REQUIRE(result.weights);
  CHECK_THAT(*result.weights, IsCloseTo(expected.weights));
  const auto trace = [&](TraceName name) { return result.trace.at(name); };
  CHECK_THAT(trace(TraceName::scores), IsCloseTo(expected.scores));
  CHECK_THAT(trace(TraceName::masked_scores), IsCloseTo(expected.masked_scores));
  CHECK_THAT(trace(TraceName::weighted_values), IsCloseTo(expected.weighted_values));
  CHECK_THAT(trace(TraceName::probabilities), HasBitsOf(*result.weights));
  CHECK_THAT(trace(TraceName::weights), HasBitsOf(*result.weights));
  CHECK_THAT(trace(TraceName::context), HasBitsOf(result.output));
  CHECK_THAT(trace(TraceName::output), HasBitsOf(result.output));
  CHECK_THAT(trace(TraceName::q), HasBitsOf(c.query));
  CHECK_THAT(trace(TraceName::k), HasBitsOf(c.key));
  CHECK_THAT(trace(TraceName::v), HasBitsOf(c.value));
}

// Around tile heights 5, 6 and 12, panel widths 8, 16 and 32, and 20 to 24 rows of a task.
const std::vector<Sizes> kSizes{
    {2, 1, 1, 1, 1, 1, 1, 1},     {2, 1, 1, 1, 3, 5, 4, 2},   {2, 1, 1, 1, 1, 33, 17, 5},   {2, 1, 1, 1, 25, 1, 3, 9},
    {2, 1, 1, 1, 49, 7, 8, 8},    {3, 3, 1, 1, 5, 7, 4, 3},   {3, 2, 1, 1, 24, 24, 16, 16}, {3, 2, 1, 1, 21, 65, 7, 1},
    {3, 1, 1, 1, 12, 16, 64, 64}, {3, 4, 1, 1, 2, 3, 1, 1},   {4, 2, 3, 3, 5, 7, 4, 6},     {4, 1, 2, 2, 23, 31, 8, 33},
    {4, 2, 2, 2, 6, 8, 32, 32},   {4, 1, 4, 4, 13, 17, 5, 5}, {4, 2, 4, 2, 5, 9, 8, 4},     {4, 1, 6, 1, 7, 11, 3, 3},
    {4, 1, 1, 1, 65, 63, 40, 24}, {4, 2, 1, 1, 1, 1, 9, 17},  {4, 1, 8, 4, 20, 15, 2, 2},   {4, 1, 2, 2, 100, 100, 32, 32},
    {4, 3, 30, 30, 1, 5, 4, 4},
};

TEST_CASE("attention agrees with the float64 reference for every shape, causal or not", "[ops]") {
  std::uint64_t seed = 100;
  for (const Sizes& s : kSizes)
    for (const bool causal : {false, true})
      for (const bool own_scale : {false, true}) {
        AttentionCase c = random_case(++seed, s);
        c.is_causal = causal;
        if (own_scale) c.scale = 1.7F;
        check_against_reference(c);
      }
}

std::vector<Shape> mask_dims(std::int64_t B, std::int64_t H, std::int64_t L, std::int64_t S) {
  return {{S},          {L, S},       {1, S},       {B, L, S},    {1, L, S},    {B, 1, S},    {1, 1, S},   {B, H, L, S},
          {1, H, L, S}, {B, 1, L, S}, {B, H, 1, S}, {1, 1, L, S}, {1, H, 1, S}, {B, 1, 1, S}, {1, 1, 1, S}};
}

constexpr MaskKind kKinds[] = {MaskKind::attend, MaskKind::block, MaskKind::additive};
constexpr FullyMasked kPolicies[] = {FullyMasked::zero, FullyMasked::nan, FullyMasked::uniform};

TEST_CASE("masks of every kind, dims and combination agree with the float64 reference under every policy", "[ops]") {
  std::uint64_t seed = 1000;
  for (const MaskKind kind : kKinds)
    for (const Shape& dims : mask_dims(2, 3, 7, 9))
      for (const FullyMasked policy : kPolicies)
        for (const int padding : {-1, 0, 1, 2})
          for (const bool causal : {false, true}) {
            AttentionCase c = random_case(++seed, {4, 2, 3, 3, 7, 9, 4, 5});
            Generator random(seed);
            c.mask = random_mask(random, kind, dims);
            if (padding >= 0) c.key_padding_mask = random_padding(random, kKinds[padding], random.coin(0.5) ? 2 : 1, 9);
            c.is_causal = causal;
            c.fully_masked = policy;
            check_against_reference(c);
          }
}

TEST_CASE("random shapes with random masks agree with the float64 reference", "[ops]") {
  for (std::uint64_t seed = 5000; seed < 5300; ++seed) {
    Generator random(seed);
    Sizes s = random.pick(kSizes);
    s.L = 1 + random.below(30);
    s.S = 1 + random.below(40);
    AttentionCase c = random_case(seed, s);
    const std::int64_t B = s.rank == 2 ? 1 : s.B, H = s.rank == 4 ? s.H : 1;
    if (random.coin(0.7)) c.mask = random_mask(random, kKinds[random.below(3)], random.pick(mask_dims(B, H, s.L, s.S)));
    if (random.coin(0.5)) c.key_padding_mask = random_padding(random, kKinds[random.below(3)], B, s.S);
    if (s.rank == 2 && c.key_padding_mask && random.coin(0.5)) c.key_padding_mask->data.dims = {s.S};
    c.is_causal = random.coin(0.4);
    if (random.coin(0.4)) c.scale = random.normal();
    c.fully_masked = kPolicies[random.below(3)];
    check_against_reference(c);
  }
}

TEST_CASE("weights averaged over heads are their mean", "[ops]") {
  std::uint64_t seed = 6000;
  for (const Sizes& s : kSizes) {
    AttentionCase c = random_case(++seed, s);
    INFO(describe(c));
    const Result averaged = attention(c, {.need_weights = true, .average_weights = true, .trace = {TraceName::weights}});
    const ReferenceAttention expected = reference_attention(c);
    REQUIRE(averaged.weights);
    CHECK_THAT(*averaged.weights, IsCloseTo(s.rank == 4 ? mean_of_heads(expected.weights) : expected.weights));
    CHECK_THAT(averaged.trace.at(TraceName::weights), IsCloseTo(expected.weights));
  }
}

TEST_CASE("only the requested results are returned", "[ops]") {
  const AttentionCase c = random_case(1, kSizes[10]);
  const Result plain = attention(c);
  CHECK_FALSE(plain.weights);
  CHECK(plain.trace.empty());
  for (std::size_t i = 0; i < kLayerTraceCount; ++i) {
    const auto name = static_cast<TraceName>(i);
    if (!kAttentionTrace.has(name)) continue;
    const Result one = attention(c, {.trace = {name}});
    INFO(to_string(name));
    CHECK_FALSE(one.weights);
    CHECK(one.trace.size() == 1);
    CHECK(one.trace.contains(name));
  }
  const Result all = attention(c, {.trace = Trace::all()});
  CHECK(all.trace.size() == 9);
  CHECK_FALSE(all.trace.contains(TraceName::weighted_values));
}

TEST_CASE("requesting weights and traces does not change any bit of the output", "[ops]") {
  std::uint64_t seed = 7000;
  for (const Sizes& s : kSizes)
    for (const bool causal : {false, true}) {
      AttentionCase c = random_case(++seed, s);
      Generator random(seed);
      c.is_causal = causal;
      if (seed % 3 != 0) c.mask = random_mask(random, kKinds[seed % 3], {s.L, s.S});
      INFO(describe(c));
      const Array plain = attention(c).output;
      CHECK_THAT(attention(c, {.need_weights = true}).output, HasBitsOf(plain));
      CHECK_THAT(attention(c, {.need_weights = true, .average_weights = true}).output, HasBitsOf(plain));
      CHECK_THAT(attention(c, {.trace = kAttentionTrace}).output, HasBitsOf(plain));
      CHECK_THAT(attention(c, {.trace = {TraceName::scores}}).output, HasBitsOf(plain));
    }
}

TEST_CASE("empty batches, queries and value widths give empty results", "[ops]") {
  for (const Sizes& s : std::vector<Sizes>{{4, 0, 2, 2, 3, 4, 5, 6},
                                           {4, 2, 0, 0, 3, 4, 5, 6},
                                           {4, 2, 2, 2, 0, 4, 5, 6},
                                           {4, 2, 2, 2, 3, 4, 5, 0},
                                           {3, 0, 1, 1, 3, 4, 5, 6},
                                           {3, 2, 1, 1, 0, 4, 5, 6},
                                           {2, 1, 1, 1, 0, 4, 5, 6},
                                           {4, 0, 0, 0, 0, 0, 5, 0}}) {
    AttentionCase c = random_case(1, s);
    INFO(describe(c));
    const Result result = attention(c, {.need_weights = true, .trace = kAttentionTrace});
    CHECK(result.output.dims == dims(s, s.H, s.L, s.Dv));
    CHECK(result.output.data.empty());
    CHECK(result.weights->dims == dims(s, s.H, s.L, s.S));
    CHECK(result.trace.at(TraceName::scores).dims == result.weights->dims);
    CHECK_THAT(result.trace.at(TraceName::k), HasBitsOf(c.key));
  }
}

TEST_CASE("softcap, windows and offsets agree with the float64 reference", "[ops]") {
  std::uint64_t seed = 9000;
  Generator random(1);
  for (const Sizes& s : kSizes)
    for (int draw = 0; draw < 8; ++draw) {
      AttentionCase c = random_case(++seed, s);
      c.softcap = std::array{0.0F, 0.5F, 30.0F}[static_cast<std::size_t>(random.below(3))];
      c.window = {random.below(s.S + 2) - 1, random.below(s.S + 2) - 1};
      c.query_offset = random.below(2 * s.S + 2) - s.S;
      c.is_causal = random.coin(0.5);
      c.fully_masked = kPolicies[static_cast<std::size_t>(random.below(3))];
      if (random.coin(0.3)) c.mask = random_mask(random, MaskKind::attend, {s.L, s.S});
      if (random.coin(0.3)) c.key_padding_mask = random_padding(random, MaskKind::additive, s.rank == 2 ? 1 : s.B, s.S);
      check_against_reference(c);
    }
}

TEST_CASE("softcap accepts scores of any size, and softcap 0 equals no softcap", "[ops]") {
  const std::int64_t L = 7, S = 9;
  AttentionCase c = random_case(4, {4, 1, 2, 2, L, S, 4, 3});
  for (float& value : c.query.data) value *= 1e18F;
  for (float& value : c.key.data) value *= 1e18F;
  const Result large = attention(c, {.need_weights = true, .trace = kAttentionTrace, .softcap = 20.0F});
  for (const float score : large.trace.at(TraceName::scores).data) CHECK(std::abs(score) == 20.0F);
  c = random_case(5, {4, 1, 2, 2, L, S, 4, 3});
  CHECK_THAT(attention(c, {.softcap = 0.0F}).output, HasBitsOf(attention(c, {}).output));
  for (const float wrong : {-1.0F, kNaN, kInfinity, 1e-40F})
    check_error({ErrorCode::config, kOp, "softcap", {"0 or a normal number above"}}, [&] { attention(c, {.softcap = wrong}); });
  for (const Window wrong : {Window{-2, 0}, Window{0, -7}})
    check_error({ErrorCode::config, kOp, "window", {"whole numbers of at least -1"}}, [&] { attention(c, {.window = wrong}); });
  for (const std::int64_t wrong : {(std::int64_t{1} << 53) + 1, -(std::int64_t{1} << 60)})
    check_error({ErrorCode::config, kOp, "query_offset", {std::to_string(wrong)}}, [&] { attention(c, {.query_offset = wrong}); });
}

TEST_CASE("extreme offsets and windows do not overflow", "[ops]") {
  constexpr std::int64_t kLast = std::int64_t{1} << 53, kMost = std::numeric_limits<std::int64_t>::max();
  const AttentionCase c = random_case(6, {4, 1, 1, 1, 4, 5, 3, 2});
  const Array all = attention(c, {}).output, none(all.dims, 0.0F);
  const auto output = [&](std::int64_t offset, Window window, bool causal) {
    AttentionCase placed = c;
    placed.is_causal = causal;
    return attention(placed, {.window = window, .query_offset = offset}).output;
  };
  CHECK_THAT(output(kLast, {-1, -1}, true), HasBitsOf(all));
  CHECK_THAT(output(-kLast, {-1, -1}, true), HasBitsOf(none));
  CHECK_THAT(output(kLast, {kMost, kMost}, true), HasBitsOf(all));
  CHECK_THAT(output(-kLast, {kMost, kMost}, false), HasBitsOf(all));
  CHECK_THAT(output(kLast, {100, 0}, false), HasBitsOf(none));
  CHECK_THAT(output(-kLast, {-1, 100}, false), HasBitsOf(none));
  CHECK_THAT(output(1, {kMost, 0}, false), HasBitsOf(output(1, {-1, -1}, true)));
}

TEST_CASE("an empty batch may have other dimensions of any size", "[ops]") {
  const TensorView huge{nullptr, {0, 0x7fffffff, 0x7fffffff, 0x7fffffff}};
  const AttentionOptions options{.need_weights = true, .trace = kAttentionTrace};
  const detail::AttentionPlan plan = detail::plan_scaled_dot_product_attention(huge, huge, huge, options);
  CHECK(plan.output == huge.shape);
  CHECK(plan.weights == huge.shape);
  CHECK_NOTHROW(detail::scaled_dot_product_attention(plan, huge, huge, huge, options, {}));
}

TEST_CASE("the mean of no heads is NaN, not uninitialized memory", "[ops]") {
  const AttentionCase c = random_case(1, {4, 2, 0, 0, 3, 4, 5, 6});
  CHECK_THAT(*attention(c, {.need_weights = true, .average_weights = true}).weights, HasBitsOf(Array({2, 1, 3, 4}, kNaN)));
}

TEST_CASE("without keys every query is fully masked", "[ops]") {
  for (const std::size_t rank : {2U, 3U, 4U})
    for (const FullyMasked policy : kPolicies) {
      const Sizes s{rank, 2, 3, 3, 5, 0, 4, 6};
      AttentionCase c = random_case(1, s);
      c.fully_masked = policy;
      INFO(describe(c));
      const Result result = attention(c, {.need_weights = true, .trace = kAttentionTrace});
      CHECK_THAT(result.output, HasBitsOf(Array(dims(s, 3, 5, 6), policy == FullyMasked::nan ? kNaN : 0)));
      CHECK(result.weights->dims == dims(s, 3, 5, 0));
      CHECK_THAT(result.trace.at(TraceName::context), HasBitsOf(result.output));
    }
}

TEST_CASE("the policy for a query without keys applies to its output, weights and weighted values", "[ops]") {
  AttentionCase c = random_case(3, {2, 1, 1, 1, 3, 4, 2, 2});
  c.mask = MaskInput{MaskKind::attend, Array({3, 4}, {1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1})};
  for (const FullyMasked policy : kPolicies) {
    c.fully_masked = policy;
    INFO(describe(c));
    const Result result = attention(c, {.need_weights = true, .trace = kAttentionTrace});
    const float weight = policy == FullyMasked::zero ? 0 : policy == FullyMasked::nan ? kNaN : 0.25F;
    CHECK_THAT(slice(*result.weights, 1), HasBitsOf(Array({4}, weight)));
    Array mean({2}), weighted({4, 2});
    for (std::size_t j = 0; j < 4; ++j)
      for (std::size_t d = 0; d < 2; ++d) {
        weighted.data[2 * j + d] = policy == FullyMasked::zero ? 0 : weight * c.value.data[2 * j + d];
        mean.data[d] += weighted.data[2 * j + d];
      }
    CHECK_THAT(slice(result.output, 1), policy == FullyMasked::uniform ? is_within(4 * kEps, mean) : is_within(0, mean));
    CHECK_THAT(slice(result.trace.at(TraceName::weighted_values), 1), HasBitsOf(weighted));
    CHECK_THAT(slice(result.trace.at(TraceName::masked_scores), 1), HasBitsOf(Array({4}, -kInfinity)));
    CHECK_THAT(slice(result.trace.at(TraceName::scores), 1), IsCloseTo([&] {
                 const Estimate all = reference_attention(c).scores;
                 Estimate row({4});
                 std::copy_n(all.value.begin() + 4, 4, row.value.begin());
                 std::copy_n(all.error.begin() + 4, 4, row.error.begin());
                 return row;
               }()));
  }
}

TEST_CASE("NaN and infinities in visible positions propagate by IEEE arithmetic", "[ops]") {
  for (const float number : {kNaN, kInfinity, -kInfinity})
    for (const int where : {0, 1, 2})
      for (const bool causal : {false, true}) {
        AttentionCase c = random_case(11, {4, 2, 2, 2, 6, 7, 4, 5});
        // The same sign, so that float32 and float64 agree on infinite scores.
        for (float& x : c.query.data) x = std::abs(x) + 0.25F;
        for (float& x : c.key.data) x = std::abs(x) + 0.25F;
        (where == 0 ? c.query : where == 1 ? c.key : c.value).data[37] = number;
        c.is_causal = causal;
        INFO(number << " in input " << where);
        check_against_reference(c);
      }
}

TEST_CASE("NaN and infinities in masked positions affect only the scores before masks", "[ops]") {
  for (const float number : {kNaN, kInfinity, -kInfinity, 3.4e38F})
    for (const MaskKind kind : kKinds)
      for (const bool as_padding : {false, true}) {
        AttentionCase c = random_case(12, {3, 2, 1, 1, 25, 7, 4, 5});
        const Array allowed({2, 7}, {1, 1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0});
        Generator random(12);
        MaskInput mask = paint(random, kind, allowed);
        if (!as_padding) mask.data.dims = {2, 1, 7};
        (as_padding ? c.key_padding_mask : c.mask) = mask;
        const Result clean = attention(c, {.need_weights = true, .trace = kAttentionTrace});
        for (std::size_t j = 0; j < 14; ++j) {
          if (allowed.data[j] != 0) continue;
          for (std::size_t d = 0; d < 4; ++d) c.key.data[j * 4 + d] = number;
          for (std::size_t d = 0; d < 5; ++d) c.value.data[j * 5 + d] = number;
        }
        INFO(number << ' ' << describe(c));
        const Result spoiled = attention(c, {.need_weights = true, .trace = kAttentionTrace});
        CHECK_THAT(spoiled.output, HasBitsOf(clean.output));
        CHECK_THAT(*spoiled.weights, HasBitsOf(*clean.weights));
        for (const TraceName name : {TraceName::masked_scores, TraceName::probabilities, TraceName::weighted_values})
          CHECK_THAT(spoiled.trace.at(name), HasBitsOf(clean.trace.at(name)));
        CHECK_THAT(attention(c).output, HasBitsOf(clean.output));
      }
}

TEST_CASE("scores near the largest floats give exact weights", "[ops]") {
  AttentionCase c;
  c.query = Array({2, 1}, {1, -1});
  c.key = Array({4, 1}, {3e38F, -3e38F, 3.4e38F, 3.4e38F});
  c.value = Array({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  c.scale = 1.0F;
  const Result result = attention(c, {.need_weights = true});
  CHECK_THAT(*result.weights, HasBitsOf(Array({2, 4}, {0, 0, 0.5F, 0.5F, 0, 1, 0, 0})));
  CHECK_THAT(result.output, HasBitsOf(Array({2, 2}, {6, 7, 3, 4})));
}

TEST_CASE("values of any size are returned exactly", "[ops]") {
  for (const float value : {3.4e38F, -3.4e38F, 1e-45F, -0.0F}) {
    AttentionCase c;
    c.query = Array({3, 2}, 1);
    c.key = Array({1, 2}, 1);
    c.value = Array({1, 3}, value);
    INFO(value);
    // Sums begin with +0.
    CHECK_THAT(attention(c).output, HasBitsOf(Array({3, 3}, value + 0.0F)));
  }
}

TEST_CASE("the sum of many large values does not overflow before the division", "[ops]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t S : {2, 400, 2500})
    for (const float value : {0x1p95F, 0x1p96F, 1e36F, 0x1.8p127F}) {
      AttentionCase c;
      c.query = Array({3, 2}, 1);
      c.key = Array({S, 2}, 1);
      c.value = Array({S, 2}, value);
      for (std::size_t j = 0; j < c.value.data.size(); j += 2) c.value.data[j] = -3.0F;
      INFO(S << " keys of " << value);
      const float error = static_cast<float>(S) * 0x1p-24F;
      const Array output = attention(c).output;
      for (std::size_t i = 0; i < output.data.size(); i += 2) {
        CHECK(std::abs(output.data[i] + 3.0F) <= 3.0F * error);
        CHECK(std::abs(output.data[i + 1] / value - 1) <= error);
      }
      // Requesting weights changes no bit up to 1024 keys.
      if (S <= 1024) CHECK_THAT(attention(c, {.need_weights = true}).output, HasBitsOf(output));
      c.mask = MaskInput{MaskKind::attend, Array({S}, 1)};
      c.mask->data.data[0] = 0;
      const Array masked = attention(c).output;
      c.value.data[0] = c.value.data[1] = kInfinity;
      CHECK_THAT(attention(c).output, HasBitsOf(masked));
    }
}

TEST_CASE("denormal inputs are not flushed to zero", "[ops]") {
  AttentionCase c;
  c.query = Array({1, 1}, 1e-40F);
  c.key = Array({2, 1}, {3e38F, 1e-45F});
  c.value = Array({2, 1}, {1e-45F, 1e-40F});
  c.scale = 1e3F;
  check_against_reference(c);
}

TEST_CASE("an attend or block mask treats any number except zero as set", "[ops]") {
  AttentionCase c = random_case(13, {2, 1, 1, 1, 3, 5, 4, 4});
  for (const MaskKind kind : {MaskKind::attend, MaskKind::block}) {
    c.mask = MaskInput{kind, Array({5}, {1, 0, 1, 0, 1})};
    const Array ones = attention(c).output;
    for (const float set : {255.0F, -1.0F, 0.5F, 256.0F, 1e-45F}) {
      c.mask = MaskInput{kind, Array({5}, {set, 0, set, -0.0F, set})};
      INFO(to_string(kind) << ' ' << set);
      CHECK_THAT(attention(c).output, HasBitsOf(ones));
    }
  }
}

TEST_CASE("the scale may be zero, negative or tiny", "[ops]") {
  for (const float scale : {0.0F, -0.5F, 1e-30F, 40.0F}) {
    AttentionCase c = random_case(14, {3, 2, 1, 1, 5, 9, 4, 4});
    c.scale = scale;
    check_against_reference(c);
  }
}

struct ErrorCase {
  const char* what;
  ExpectedError expected;
  void (*spoil)(AttentionCase&, AttentionOptions&);
};

MaskInput mask(const Shape& dims, MaskKind kind = MaskKind::attend) { return {kind, Array(dims, 1)}; }

const ErrorCase kErrors[] = {
    {"query of rank 2, key of rank 4",
     {ErrorCode::shape, kOp, "key", {"(2,4,5,6)", "rank 2", "(3,6)"}},
     [](auto& c, auto&) { c.query = Array({3, 6}); }},
    {"key of rank 3", {ErrorCode::shape, kOp, "key", {"(4,5,6)", "rank 4"}}, [](auto& c, auto&) { c.key = Array({4, 5, 6}); }},
    {"value of rank 3", {ErrorCode::shape, kOp, "value", {"(4,5,7)", "rank 4"}}, [](auto& c, auto&) { c.value = Array({4, 5, 7}); }},
    {"value of rank 5",
     {ErrorCode::shape, kOp, "value", {"(1,2,4,5,7)", "rank 2, 3 or 4"}},
     [](auto& c, auto&) { c.value = Array({1, 2, 4, 5, 7}); }},
    {"value of rank 1", {ErrorCode::shape, kOp, "value", {"(7)", "rank 2, 3 or 4"}}, [](auto& c, auto&) { c.value = Array({7}); }},
    {"query without width", {ErrorCode::shape, kOp, "query", {"(2,4,3,0)", "width above 0"}}, [](auto& c, auto&) { c.query = Array({2, 4, 3, 0}); }},
    {"key width", {ErrorCode::shape, kOp, "key", {"(2,4,5,8)", "(..,S,6)", "(2,4,3,6)"}}, [](auto& c, auto&) { c.key = Array({2, 4, 5, 8}); }},
    {"key batch", {ErrorCode::shape, kOp, "key", {"(1,4,5,6)", "a batch of 2"}}, [](auto& c, auto&) { c.key = Array({1, 4, 5, 6}); }},
    {"value batch", {ErrorCode::shape, kOp, "value", {"(3,4,5,7)", "a batch of 2"}}, [](auto& c, auto&) { c.value = Array({3, 4, 5, 7}); }},
    {"fewer values than keys", {ErrorCode::shape, kOp, "value", {"(2,4,4,7)", "5 rows"}}, [](auto& c, auto&) { c.value = Array({2, 4, 4, 7}); }},
    {"value heads", {ErrorCode::shape, kOp, "value", {"(2,2,5,7)", "4 heads"}}, [](auto& c, auto&) { c.value = Array({2, 2, 5, 7}); }},
    {"fewer key heads without gqa",
     {ErrorCode::shape, kOp, "key", {"(2,2,5,6)", "4 heads", "enable_gqa"}},
     [](auto& c, auto&) { c.key = Array({2, 2, 5, 6}), c.value = Array({2, 2, 5, 7}); }},
    {"key heads that do not divide",
     {ErrorCode::shape, kOp, "key", {"(2,3,5,6)", "divides", "4"}},
     [](auto& c, auto&) { c.key = Array({2, 3, 5, 6}), c.value = Array({2, 3, 5, 7}), c.enable_gqa = true; }},
    {"no key heads",
     {ErrorCode::shape, kOp, "key", {"(2,0,5,6)", "divides"}},
     [](auto& c, auto&) { c.key = Array({2, 0, 5, 6}), c.value = Array({2, 0, 5, 7}), c.enable_gqa = true; }},
    {"more key heads than query heads",
     {ErrorCode::shape, kOp, "key", {"(2,8,5,6)", "divides"}},
     [](auto& c, auto&) { c.key = Array({2, 8, 5, 6}), c.value = Array({2, 8, 5, 7}), c.enable_gqa = true; }},
    {"mask (S+1)", {ErrorCode::mask, kOp, "mask", {"(6)", "(5)", "(3,5)", "(2,3,5)", "(2,4,3,5)"}}, [](auto& c, auto&) { c.mask = mask({6}); }},
    {"mask (1): keys are never broadcast", {ErrorCode::mask, kOp, "mask", {"has shape (1)"}}, [](auto& c, auto&) { c.mask = mask({1}); }},
    {"mask ()", {ErrorCode::mask, kOp, "mask", {"has shape ()"}}, [](auto& c, auto&) { c.mask = mask({}); }},
    {"mask (S,L)", {ErrorCode::mask, kOp, "mask", {"has shape (5,3)"}}, [](auto& c, auto&) { c.mask = mask({5, 3}); }},
    {"mask (L-1,S)", {ErrorCode::mask, kOp, "mask", {"has shape (2,5)"}}, [](auto& c, auto&) { c.mask = mask({2, 5}); }},
    {"mask (B+1,L,S)", {ErrorCode::mask, kOp, "mask", {"has shape (3,3,5)"}}, [](auto& c, auto&) { c.mask = mask({3, 3, 5}); }},
    {"mask (B·H,L,S), torch's",
     {ErrorCode::mask, kOp, "mask", {"has shape (8,3,5)", "to (B,H,L,S)"}},
     [](auto& c, auto&) { c.mask = mask({8, 3, 5}); }},
    {"mask (B,H-1,L,S)", {ErrorCode::mask, kOp, "mask", {"has shape (2,3,3,5)"}}, [](auto& c, auto&) { c.mask = mask({2, 3, 3, 5}); }},
    {"mask (B-1..)", {ErrorCode::mask, kOp, "mask", {"has shape (3,4,3,5)"}}, [](auto& c, auto&) { c.mask = mask({3, 4, 3, 5}); }},
    {"mask of rank 5", {ErrorCode::mask, kOp, "mask", {"has shape (1,2,4,3,5)"}}, [](auto& c, auto&) { c.mask = mask({1, 2, 4, 3, 5}); }},
    {"mask without rows", {ErrorCode::mask, kOp, "mask", {"has shape (0,5)"}}, [](auto& c, auto&) { c.mask = mask({0, 5}); }},
    {"NaN in an additive mask",
     {ErrorCode::mask, kOp, "mask", {"NaN"}},
     [](auto& c, auto&) { c.mask = mask({3, 5}, MaskKind::additive), c.mask->data.data[14] = kNaN; }},
    {"+infinity in an additive mask",
     {ErrorCode::mask, kOp, "mask", {"+Infinity"}},
     [](auto& c, auto&) { c.mask = mask({3, 5}, MaskKind::additive), c.mask->data.data[0] = kInfinity; }},
    {"key padding mask (B,S+1)",
     {ErrorCode::mask, kOp, "key_padding_mask", {"(2,6)", "(2,5)"}},
     [](auto& c, auto&) { c.key_padding_mask = mask({2, 6}); }},
    {"key padding mask (B+1,S)", {ErrorCode::mask, kOp, "key_padding_mask", {"(3,5)"}}, [](auto& c, auto&) { c.key_padding_mask = mask({3, 5}); }},
    {"key padding mask (S)", {ErrorCode::mask, kOp, "key_padding_mask", {"has shape (5)"}}, [](auto& c, auto&) { c.key_padding_mask = mask({5}); }},
    {"key padding mask (B,1,S)",
     {ErrorCode::mask, kOp, "key_padding_mask", {"(2,1,5)"}},
     [](auto& c, auto&) { c.key_padding_mask = mask({2, 1, 5}); }},
    {"NaN in an additive key padding mask",
     {ErrorCode::mask, kOp, "key_padding_mask", {"NaN"}},
     [](auto& c, auto&) { c.key_padding_mask = mask({2, 5}, MaskKind::additive), c.key_padding_mask->data.data[9] = kNaN; }},
    {"NaN as scale", {ErrorCode::config, kOp, "scale", {"NaN", "finite"}}, [](auto& c, auto&) { c.scale = kNaN; }},
    {"infinity as scale", {ErrorCode::config, kOp, "scale", {"infinite", "finite number"}}, [](auto& c, auto&) { c.scale = -kInfinity; }},
    {"q_proj requested from an op without projections",
     {ErrorCode::argument, kOp, "trace", {"q_proj", "MultiHeadAttention"}},
     [](auto&, auto& options) { options.trace = {TraceName::scores, TraceName::q_proj}; }},
    {"merged requested from an op without merging",
     {ErrorCode::argument, kOp, "trace", {"merged", "MultiHeadAttention"}},
     [](auto&, auto& options) { options.trace = {TraceName::merged}; }},
};

TEST_CASE("every misuse of attention is a typed error with the expected value, and the next call works", "[ops][errors]") {
  const AttentionCase base = random_case(15, {4, 2, 4, 4, 3, 5, 6, 7});
  const Array good = attention(base).output;
  for (const ErrorCase& error : kErrors) {
    AttentionCase c = base;
    AttentionOptions options;
    error.spoil(c, options);
    INFO(error.what);
    check_error(error.expected, [&] { attention(c, options); });
    CHECK_THAT(attention(base).output, HasBitsOf(good));
  }
}

TEST_CASE("an unbatched key padding mask needs unbatched inputs", "[ops][errors]") {
  AttentionCase c = random_case(16, {3, 1, 1, 1, 3, 5, 6, 7});
  c.key_padding_mask = mask({5});
  check_error({ErrorCode::mask, kOp, "key_padding_mask", {"has shape (5)", "(1,5)"}}, [&] { attention(c); });
}

}  // namespace ops_attention_test
}  // namespace attn::test
