#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "support/call.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace ops_properties_test {

AttentionCase draw_case(std::uint64_t seed, bool masked = true) {
  Generator random(seed);
  const std::int64_t B = 1 + random.below(3), H = 1 + random.below(4), L = 1 + random.below(40), S = 1 + random.below(40), D = 1 + random.below(20),
                     Dv = 1 + random.below(20);
  AttentionCase c;
  c.seed = seed;
  c.query = random.normal({B, H, L, D});
  c.key = random.normal({B, H, S, D});
  c.value = random.normal({B, H, S, Dv});
  if (!masked) return c;
  constexpr MaskKind kKinds[] = {MaskKind::attend, MaskKind::block, MaskKind::additive};
  if (random.coin(0.6)) c.mask = random_mask(random, kKinds[random.below(3)], random.pick<Shape>({{S}, {L, S}, {B, L, S}, {B, H, L, S}}));
  if (random.coin(0.4)) c.key_padding_mask = random_padding(random, kKinds[random.below(3)], B, S);
  c.is_causal = random.coin(0.3);
  return c;
}

constexpr std::uint64_t kCases = 60;

Array take_rows(const Array& x, const std::vector<std::int64_t>& order) {
  std::vector<Array> batches;
  for (std::int64_t b = 0; b < x.dims[0]; ++b) {
    std::vector<Array> heads;
    for (std::int64_t h = 0; h < x.dims[1]; ++h) heads.push_back(take(slice(slice(x, b), h), order));
    batches.push_back(stack(heads));
  }
  return stack(batches);
}

TEST_CASE("attention weights of a query sum to one", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const AttentionCase c = draw_case(seed);
    INFO(describe(c));
    const Array weights = *attention(c, {.need_weights = true}).weights;
    const ReferenceAttention expected = reference_attention(c);
    const auto S = static_cast<std::size_t>(weights.dims[3]);
    for (std::size_t row = 0; row * S < weights.data.size(); ++row) {
      double sum = 0, expected_sum = 0;
      for (std::size_t j = row * S; j < (row + 1) * S; ++j) {
        sum += weights.data[j];
        expected_sum += expected.weights.value[j];
        REQUIRE(weights.data[j] >= 0);
      }
      REQUIRE(std::abs(sum - std::round(expected_sum)) <= (std::sqrt(static_cast<double>(S)) + 1) * kEps);
    }
  }
}

TEST_CASE("permuting the queries permutes the output, bit for bit", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    AttentionCase c = draw_case(seed, false);
    INFO(describe(c));
    Generator random(seed);
    const std::vector<std::int64_t> order = random.permutation(c.query.dims[2]);
    const Result result = attention(c, {.need_weights = true});
    c.query = take_rows(c.query, order);
    const Result permuted = attention(c, {.need_weights = true});
    CHECK_THAT(permuted.output, HasBitsOf(take_rows(result.output, order)));
    CHECK_THAT(*permuted.weights, HasBitsOf(take_rows(*result.weights, order)));
  }
}

TEST_CASE("permuting keys and values together changes only the order of sums", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    AttentionCase c = draw_case(seed, false);
    INFO(describe(c));
    Generator random(seed);
    const std::vector<std::int64_t> order = random.permutation(c.key.dims[2]);
    const ReferenceAttention expected = reference_attention(c);
    c.key = take_rows(c.key, order);
    c.value = take_rows(c.value, order);
    CHECK_THAT(attention(c).output, IsCloseTo(expected.context));
  }
}

TEST_CASE("self-attention without positions is permutation-equivariant", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    AttentionCase c = draw_case(seed, false);
    c.key = c.value = c.query;
    INFO(describe(c));
    Generator random(seed);
    const std::vector<std::int64_t> order = random.permutation(c.query.dims[2]);
    const Array permuted_before = take_rows(attention(c).output, order);
    c.query = c.key = c.value = take_rows(c.query, order);
    Estimate expected = reference_attention(c).context;
    for (double& error : expected.error) error *= 2;
    std::copy(permuted_before.data.begin(), permuted_before.data.end(), expected.value.begin());
    CHECK_THAT(attention(c).output, IsCloseTo(expected));
  }
}

TEST_CASE("adding positions breaks the permutation equivariance", "[properties]") {
  AttentionCase c = draw_case(1, false);
  Generator random(1);
  c.query = random.normal({1, 1, 6, 8});
  const Array positions = random.normal({1, 1, 6, 8});
  const auto output = [&](const Array& x) {
    c.query = x;
    for (std::size_t i = 0; i < x.data.size(); ++i) c.query.data[i] += positions.data[i];
    c.key = c.value = c.query;
    return attention(c).output;
  };
  const std::vector<std::int64_t> order{5, 4, 3, 2, 1, 0};
  const Array x = c.query;
  CHECK_THAT(output(take_rows(x, order)), !is_within(0.01, take_rows(output(x), order)));
}

TEST_CASE("under a causal mask, no row depends on a later token, bit for bit", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed)
    for (const bool by_mask : {false, true}) {
      AttentionCase c = draw_case(seed);
      const std::int64_t L = c.query.dims[2], S = c.key.dims[2], D = c.key.dims[3], Dv = c.value.dims[3];
      c.is_causal = !by_mask;
      if (by_mask) {
        c.mask = MaskInput{MaskKind::attend, Array({L, S})};
        for (std::int64_t i = 0; i < L; ++i)
          for (std::int64_t j = 0; j <= std::min(i, S - 1); ++j) c.mask->data.data[static_cast<std::size_t>(i * S + j)] = 1;
      }
      INFO(describe(c));
      const Result before = attention(c, {.need_weights = true});
      const std::int64_t last = L / 2;
      const auto spoil = [&](Array& x, std::int64_t rows, std::int64_t width, float with) {
        for (std::int64_t head = 0; head < x.dims[0] * x.dims[1]; ++head)
          for (std::int64_t at = (last + 1) * width; at < rows * width; ++at) x.data[static_cast<std::size_t>(head * rows * width + at)] = with;
      };
      spoil(c.query, L, D, kNaN);
      spoil(c.key, S, D, kNaN);
      spoil(c.value, S, Dv, kInfinity);
      const Result after = attention(c, {.need_weights = true});
      std::vector<std::int64_t> rows(static_cast<std::size_t>(last) + 1);
      std::iota(rows.begin(), rows.end(), 0);
      CHECK_THAT(take_rows(after.output, rows), HasBitsOf(take_rows(before.output, rows)));
      CHECK_THAT(take_rows(*after.weights, rows), HasBitsOf(take_rows(*before.weights, rows)));
    }
}

TEST_CASE("is_causal equals the mask tril(diagonal = 0), bit for bit, also with more queries or keys", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    AttentionCase c = draw_case(seed, false);
    const std::int64_t L = c.query.dims[2], S = c.key.dims[2];
    c.is_causal = true;
    INFO(describe(c));
    const Result causal = attention(c, {.need_weights = true});
    c.is_causal = false;
    c.mask = MaskInput{MaskKind::attend, Array({L, S})};
    for (std::int64_t i = 0; i < L; ++i)
      for (std::int64_t j = 0; j < S; ++j) c.mask->data.data[static_cast<std::size_t>(i * S + j)] = j <= i ? 1 : 0;
    const Result masked = attention(c, {.need_weights = true});
    CHECK_THAT(masked.output, HasBitsOf(causal.output));
    CHECK_THAT(*masked.weights, HasBitsOf(*causal.weights));
  }
}

TEST_CASE("the three kinds can express the same mask, bit for bit", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    AttentionCase c = draw_case(seed, false);
    Generator random(seed);
    MaskInput mask = random_mask(random, MaskKind::attend, {c.query.dims[2], c.key.dims[2]});
    c.mask = mask;
    INFO(describe(c));
    const Result attend = attention(c, {.need_weights = true});
    c.mask->kind = MaskKind::block;
    for (float& x : c.mask->data.data) x = 1 - x;
    const Result block = attention(c, {.need_weights = true});
    c.mask->kind = MaskKind::additive;
    for (float& x : c.mask->data.data) x = x != 0 ? -kInfinity : 0;
    const Result additive = attention(c, {.need_weights = true});
    for (const Result* other : {&block, &additive}) {
      CHECK_THAT(other->output, HasBitsOf(attend.output));
      CHECK_THAT(*other->weights, HasBitsOf(*attend.weights));
    }
  }
}

TEST_CASE("a key padding mask equals a mask of dims (B,1,1,S), bit for bit", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    AttentionCase c = draw_case(seed, false);
    Generator random(seed);
    const std::int64_t B = c.query.dims[0], S = c.key.dims[2];
    c.key_padding_mask = random_padding(random, seed % 2 == 0 ? MaskKind::block : MaskKind::additive, B, S);
    INFO(describe(c));
    const Result padded = attention(c, {.need_weights = true});
    c.mask = c.key_padding_mask;
    c.mask->data.dims = {B, 1, 1, S};
    c.key_padding_mask.reset();
    const Result masked = attention(c, {.need_weights = true});
    CHECK_THAT(masked.output, HasBitsOf(padded.output));
    CHECK_THAT(*masked.weights, HasBitsOf(*padded.weights));
  }
}

TEST_CASE("neither the contents nor the amount of padding changes a bit", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const AttentionCase bare = draw_case(seed, false);
    const std::int64_t B = bare.query.dims[0], H = bare.query.dims[1], S = bare.key.dims[2];
    const Result expected = attention(bare, {.need_weights = true});
    for (const float content : {0.0F, kNaN, kInfinity, -3.4e38F})
      for (const std::int64_t more : {1, 7, 33}) {
        INFO(describe(bare) << ", " << more << " keys of " << content << " behind");
        AttentionCase c = bare;
        const auto extend = [&](const Array& x) {
          Array longer({B, H, S + more, x.dims[3]}, content);
          const auto from = static_cast<std::size_t>(S * x.dims[3]), to = static_cast<std::size_t>((S + more) * x.dims[3]);
          for (std::size_t head = 0; head < static_cast<std::size_t>(B * H); ++head)
            std::copy_n(x.data.begin() + static_cast<std::ptrdiff_t>(head * from), from,
                        longer.data.begin() + static_cast<std::ptrdiff_t>(head * to));
          return longer;
        };
        c.key = extend(bare.key);
        c.value = extend(bare.value);
        c.key_padding_mask = MaskInput{MaskKind::block, Array({1, S + more})};
        std::fill_n(c.key_padding_mask->data.data.begin() + S, more, 1.0F);
        const Result padded = attention(c, {.need_weights = true});
        CHECK_THAT(padded.output, HasBitsOf(expected.output));
        const auto width = static_cast<std::size_t>(S + more);
        Array kept(expected.weights->dims);
        bool zero = true;
        for (std::size_t i = 0; i < padded.weights->data.size(); ++i) {
          if (i % width < static_cast<std::size_t>(S))
            kept.data[i / width * static_cast<std::size_t>(S) + i % width] = padded.weights->data[i];
          else
            zero = zero && padded.weights->data[i] == 0;
        }
        CHECK_THAT(kept, HasBitsOf(*expected.weights));
        CHECK(zero);
      }
  }
}

TEST_CASE("a batch entry and a head give the same bits alone and at any index", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const AttentionCase c = draw_case(seed, false);
    INFO(describe(c));
    const Result all = attention(c, {.need_weights = true});
    for (std::int64_t b = 0; b < c.query.dims[0]; ++b) {
      AttentionCase entry;
      entry.query = slice(c.query, b), entry.key = slice(c.key, b), entry.value = slice(c.value, b);
      const Result alone = attention(entry, {.need_weights = true});
      CHECK_THAT(alone.output, HasBitsOf(slice(all.output, b)));
      CHECK_THAT(*alone.weights, HasBitsOf(slice(*all.weights, b)));
      for (std::int64_t h = 0; h < c.query.dims[1]; ++h) {
        AttentionCase head;
        head.query = slice(entry.query, h), head.key = slice(entry.key, h), head.value = slice(entry.value, h);
        CHECK_THAT(attention(head).output, HasBitsOf(slice(slice(all.output, b), h)));
      }
    }
    std::vector<std::int64_t> reversed;
    for (std::int64_t b = c.query.dims[0]; b-- > 0;) reversed.push_back(b);
    AttentionCase other = c;
    other.query = take(c.query, reversed), other.key = take(c.key, reversed), other.value = take(c.value, reversed);
    CHECK_THAT(attention(other).output, HasBitsOf(take(all.output, reversed)));
  }
}

TEST_CASE("a single query gives its row of the whole, bit for bit", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    AttentionCase c = draw_case(seed, false);
    INFO(describe(c));
    const Result all = attention(c, {.need_weights = true});
    const std::int64_t i = c.query.dims[2] / 2;
    c.query = take_rows(c.query, {i});
    const Result one = attention(c, {.need_weights = true});
    CHECK_THAT(one.output, HasBitsOf(take_rows(all.output, {i})));
    CHECK_THAT(*one.weights, HasBitsOf(take_rows(*all.weights, {i})));
  }
}

TEST_CASE("adding a constant to the scores of a query changes nothing", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    AttentionCase c = draw_case(seed, false);
    INFO(describe(c));
    const ReferenceAttention expected = reference_attention(c);
    Generator random(seed);
    const std::int64_t L = c.query.dims[2], S = c.key.dims[2];
    c.mask = MaskInput{MaskKind::additive, Array({L, S})};
    for (std::int64_t i = 0; i < L; ++i) {
      const float shift = 8 * random.normal();
      for (std::int64_t j = 0; j < S; ++j) c.mask->data.data[static_cast<std::size_t>(i * S + j)] = shift;
    }
    // Allows for rounding of the shifted scores.
    Estimate close = reference_attention(c).context;
    close.value = expected.context.value;
    CHECK_THAT(attention(c).output, IsCloseTo(close));
  }
}

TEST_CASE("equal values are returned unchanged", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    AttentionCase c = draw_case(seed, false);
    Generator random(seed);
    const std::int64_t B = c.value.dims[0], H = c.value.dims[1], L = c.query.dims[2], S = c.value.dims[2], Dv = c.value.dims[3];
    const Array value = random.normal({Dv});
    for (std::size_t i = 0; i < c.value.data.size(); ++i) c.value.data[i] = value.data[i % static_cast<std::size_t>(Dv)];
    INFO(describe(c));
    Estimate expected({B, H, L, Dv});
    for (std::size_t i = 0; i < expected.value.size(); ++i) {
      expected.value[i] = value.data[i % static_cast<std::size_t>(Dv)];
      expected.error[i] = std::abs(expected.value[i]) * (2 * std::sqrt(static_cast<double>(S)) + 2) * kEps;
    }
    CHECK_THAT(attention(c).output, IsCloseTo(expected));
  }
}

TEST_CASE("a single key returns its value, bit for bit", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    AttentionCase c = draw_case(seed, false);
    c.key = take_rows(c.key, {0});
    c.value = take_rows(c.value, {0});
    INFO(describe(c));
    const std::vector<std::int64_t> repeated(static_cast<std::size_t>(c.query.dims[2]), 0);
    const Result result = attention(c, {.need_weights = true});
    CHECK_THAT(result.output, HasBitsOf(take_rows(c.value, repeated)));
    CHECK_THAT(*result.weights, HasBitsOf(Array(result.weights->dims, 1)));
  }
}

TEST_CASE("grouped heads equal repeated heads, bit for bit", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    AttentionCase c = draw_case(seed);
    Generator random(seed);
    const std::int64_t B = c.key.dims[0], H = c.key.dims[1], group = 1 + random.below(3);
    c.mask.reset();
    c.query = random.normal({B, H * group, c.query.dims[2], c.query.dims[3]});
    c.enable_gqa = true;
    INFO(describe(c));
    const Result grouped = attention(c, {.need_weights = true});
    std::vector<std::int64_t> order;
    for (std::int64_t h = 0; h < H * group; ++h) order.push_back(h / group);
    const auto repeat = [&](const Array& x) {
      std::vector<Array> batches;
      for (std::int64_t b = 0; b < B; ++b) batches.push_back(take(slice(x, b), order));
      return stack(batches);
    };
    c.key = repeat(c.key);
    c.value = repeat(c.value);
    c.enable_gqa = false;
    const Result repeated = attention(c, {.need_weights = true});
    CHECK_THAT(repeated.output, HasBitsOf(grouped.output));
    CHECK_THAT(*repeated.weights, HasBitsOf(*grouped.weights));
  }
}

TEST_CASE("the same call gives the same bits again", "[properties]") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const AttentionCase c = draw_case(seed);
    INFO(describe(c));
    CHECK_THAT(attention(c).output, HasBitsOf(attention(c).output));
  }
}

TEST_CASE("scores of random queries and keys have variance D, scaled ones 1", "[properties]") {
  for (const std::int64_t D : {16, 64, 256}) {
    Generator random(static_cast<std::uint64_t>(D));
    AttentionCase c;
    c.query = random.normal({200, D});
    c.key = random.normal({200, D});
    c.value = Array({200, 1});
    for (const bool scaled : {false, true}) {
      INFO("seed and D " << D << ", scaled " << scaled);
      c.scale.reset();
      if (!scaled) c.scale = 1.0F;
      const Array scores = attention(c, {.trace = {TraceName::scores}}).trace.at(TraceName::scores);
      double square = 0;
      for (const float score : scores.data) square += static_cast<double>(score) * score;
      const double variance = square / static_cast<double>(scores.data.size());
      // Five standard errors for 200 queries, whose mean squares vary by √(2 / D).
      CHECK(std::abs(variance / (scaled ? 1.0 : static_cast<double>(D)) - 1) < 0.1);
    }
  }
}

}  // namespace ops_properties_test
}  // namespace attn::test
