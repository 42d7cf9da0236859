// Blocks of 1024 keys, unless weights are requested.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "attn/parallel/thread_pool.hpp"
#include "support/call.hpp"
#include "support/encoder_case.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"

namespace attn::test {
namespace ops_long_rows_test {

constexpr std::int64_t kBlock = 1024;

struct Sizes {
  std::int64_t B, H, Hkv, L, S, D, Dv;
};

/// A positive `slope` makes the maximum grow in every block.
AttentionCase long_case(std::uint64_t seed, const Sizes& s, float slope = 0) {
  Generator random(seed);
  AttentionCase c;
  c.seed = seed;
  c.query = random.normal({s.B, s.H, s.L, s.D});
  c.key = random.normal({s.B, s.Hkv, s.S, s.D});
  c.value = random.normal({s.B, s.Hkv, s.S, s.Dv});
  c.enable_gqa = s.H != s.Hkv;
  c.scale = 1.0F;
  const auto D = static_cast<std::size_t>(s.D), S = static_cast<std::size_t>(s.S);
  for (std::size_t at = 0; at < c.query.data.size() && slope != 0; at += D) c.query.data[at] = 1;
  for (std::size_t at = 0; at < c.key.data.size() && slope != 0; at += D)
    c.key.data[at] += slope * static_cast<float>(at / D % S) / static_cast<float>(S);
  return c;
}

void check_against_reference(const AttentionCase& c) {
  INFO(describe(c));
  const Array plain = attention(c).output;
  const Result seen = attention(c, {.need_weights = true});
  const ReferenceAttention expected = reference_attention(c);
  // A block after the first rescales by one exp: 2 roundings, against √S in the bound.
  CHECK_THAT(plain, IsCloseTo(expected.context));
  CHECK_THAT(seen.output, IsCloseTo(expected.context));
  CHECK_THAT(*seen.weights, IsCloseTo(expected.weights));
  if (c.key.dims[2] <= kBlock) CHECK_THAT(plain, HasBitsOf(seen.output));
}

MaskInput hole(std::int64_t S, std::int64_t first, std::int64_t last) {
  MaskInput mask{MaskKind::block, Array({1, S})};
  std::fill(mask.data.data.begin() + first, mask.data.data.begin() + last, 1.0F);
  return mask;
}

TEST_CASE("rows of about one and two blocks agree with the float64 reference for any position of their maximum", "[ops][long]") {
  std::uint64_t seed = 0;
  for (const std::int64_t S : {1023, 1024, 1025, 2047, 2048, 2049, 2500, 3100})
    for (const float slope : {0.0F, 30.0F, -30.0F, 300.0F}) check_against_reference(long_case(++seed, {1, 2, 2, 5, S, 4, 3}, slope));
}

TEST_CASE("long rows of any shape and mask agree with the float64 reference under every policy", "[ops][long]") {
  for (std::uint64_t seed = 100; seed < 160; ++seed) {
    Generator random(seed);
    const std::int64_t B = 1 + random.below(2), Hkv = 1 + random.below(2), H = Hkv * (1 + random.below(2)), L = random.pick<std::int64_t>({1, 3, 27}),
                       S = random.pick<std::int64_t>({1024, 1025, 1500, 2048, 2300});
    AttentionCase c = long_case(seed, {B, H, Hkv, L, S, 1 + random.below(8), 1 + random.below(9)}, random.pick<float>({0, 10, -10}));
    if (random.coin(0.6)) c.mask = random_mask(random, kMaskKinds[random.below(3)], random.pick<Shape>({{S}, {L, S}, {B, L, S}, {B, H, L, S}}));
    if (random.coin(0.4)) c.key_padding_mask = random_padding(random, kMaskKinds[random.below(3)], B, S);
    c.fully_masked = kPolicies[random.below(3)];
    check_against_reference(c);
  }
}

TEST_CASE("whole blocks may be masked at the start, in the middle, at the end, and everywhere", "[ops][long]") {
  std::uint64_t seed = 200;
  for (const auto& [first, last] : {std::pair{0, 1024}, std::pair{0, 1500}, std::pair{0, 2048}, std::pair{1024, 2048}, std::pair{900, 2100},
                                    std::pair{2048, 3000}, std::pair{1, 2999}, std::pair{0, 2999}, std::pair{0, 3000}})
    for (const FullyMasked policy : kPolicies)
      for (const float slope : {0.0F, 30.0F}) {
        AttentionCase c = long_case(++seed, {1, 2, 1, 3, 3000, 4, 5}, slope);
        c.key_padding_mask = hole(3000, first, last);
        c.fully_masked = policy;
        INFO("keys " << first << " to " << last);
        check_against_reference(c);
        if (policy == FullyMasked::uniform && last - first == 3000) continue;
        const Array clean = attention(c).output;
        for (const float content : {kNaN, kInfinity, -kInfinity}) {
          AttentionCase spoiled = c;
          std::fill(spoiled.key.data.begin() + first * 4, spoiled.key.data.begin() + last * 4, content);
          std::fill(spoiled.value.data.begin() + first * 5, spoiled.value.data.begin() + last * 5, content);
          INFO("of " << content);
          CHECK_THAT(attention(spoiled).output, HasBitsOf(clean));
        }
      }
}

TEST_CASE("a NaN or infinite score in any block makes its row NaN, even if the rest of its block is masked", "[ops][long]") {
  for (const std::int64_t at : {0, 500, 1024, 2047, 2999})
    for (const bool alone_in_block : {false, true})
      for (const float number : {kNaN, kInfinity}) {
        AttentionCase c = long_case(300, {1, 1, 1, 2, 3000, 1, 2});
        c.query.data = {1, 2};
        c.key.data[static_cast<std::size_t>(at)] = number;
        if (alone_in_block) {
          MaskInput mask{MaskKind::block, Array({3000})};
          for (std::int64_t j = at / kBlock * kBlock; j < std::min<std::int64_t>(3000, (at / kBlock + 1) * kBlock); ++j)
            mask.data.data[static_cast<std::size_t>(j)] = j == at ? 0.0F : 1.0F;
          c.mask = mask;
        }
        INFO("key " << at << " is " << number << (alone_in_block ? ", alone in its block" : ""));
        CHECK_THAT(attention(c).output, HasBitsOf(Array({1, 1, 2, 2}, kNaN)));
        CHECK_THAT(attention(c, {.need_weights = true}).output, HasBitsOf(Array({1, 1, 2, 2}, kNaN)));
      }
}

TEST_CASE("in long rows, scores of -infinity that are not masked have weight 0, and a row of only these is NaN", "[ops][long]") {
  AttentionCase c = long_case(301, {1, 1, 1, 1, 2500, 1, 3});
  c.query.data = {1};
  std::fill_n(c.key.data.begin(), 1100, -kInfinity);
  check_against_reference(c);
  std::fill(c.key.data.begin(), c.key.data.end(), -kInfinity);
  CHECK_THAT(attention(c).output, HasBitsOf(Array({1, 1, 1, 3}, kNaN)));
}

TEST_CASE("infinite values of visible keys reach the output of a long row in any block", "[ops][long]") {
  for (const float slope : {0.0F, 5.0F, -5.0F})
    for (const std::size_t at : {0U, 1030U, 2499U}) {
      AttentionCase c = long_case(302, {1, 1, 1, 2, 2500, 2, 2}, slope);
      c.value.data[2 * at] = kInfinity;
      INFO("slope " << slope << ", value " << at);
      check_against_reference(c);
    }
}

TEST_CASE("if one block holds all keys of a row, requesting weights does not change any bit of its output", "[ops][long]") {
  for (const std::int64_t keys : {1, 700, 1023, 1024}) {
    AttentionCase c = long_case(310, {2, 2, 2, 7, 2600, 5, 6}, 20);
    c.key_padding_mask = hole(2600, keys, 2600);
    INFO(keys << " keys of 2600");
    const Array plain = attention(c).output;
    CHECK_THAT(attention(c, {.need_weights = true}).output, HasBitsOf(plain));
    CHECK_THAT(attention(c, {.trace = {TraceName::scores}}).output, HasBitsOf(plain));
  }
  const AttentionCase c = long_case(311, {1, 2, 2, 5, 1500, 5, 6});
  CHECK_THAT(attention(c, {.dropout = 0.4F, .seed = 1, .need_weights = true}).output, HasBitsOf(attention(c, {.dropout = 0.4F, .seed = 1}).output));
}

TEST_CASE("causal long rows equal those with the mask tril(diagonal = 0), bit for bit, and agree with the reference", "[ops][long]") {
  AttentionCase c = long_case(320, {1, 1, 1, 1070, 1100, 2, 3}, 20);
  AttentionCase masked = c;
  masked.mask = MaskInput{MaskKind::attend, Array({1070, 1100})};
  for (std::size_t i = 0; i < 1070; ++i) std::fill_n(masked.mask->data.data.begin() + static_cast<std::ptrdiff_t>(i * 1100), i + 1, 1.0F);
  c.is_causal = true;
  const Array causal = attention(c).output;
  CHECK_THAT(attention(masked).output, HasBitsOf(causal));
  check_against_reference(c);
  // The first rows have one block.
  AttentionCase first = c;
  for (Array* x : {&first.query, &first.key, &first.value}) {
    const std::int64_t width = x->dims[3];
    x->dims = {1, 1, kBlock, width};
    x->data.resize(static_cast<std::size_t>(kBlock * width));
  }
  const Array shorter = attention(first).output;
  CHECK(std::equal(shorter.data.begin(), shorter.data.end(), causal.data.begin()));
  AttentionCase spoiled = c;
  std::fill(spoiled.key.data.begin() + 2 * 1050, spoiled.key.data.end(), kNaN);
  std::fill(spoiled.value.data.begin() + 3 * 1050, spoiled.value.data.end(), kInfinity);
  const Array after = attention(spoiled).output;
  CHECK(std::equal(after.data.begin(), after.data.begin() + 3 * 1050, causal.data.begin()));
}

TEST_CASE("a long row gives the same bits alone, in a batch, with any padding, and with any number of threads", "[ops][long][threads]") {
  const AttentionCase c = long_case(330, {2, 2, 2, 30, 2300, 5, 7}, 15);
  INFO(describe(c));
  set_num_threads(1);
  const Array all = attention(c).output;
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t h = 0; h < 2; ++h) {
      AttentionCase head;
      head.scale = c.scale;
      head.query = slice(slice(c.query, b), h), head.key = slice(slice(c.key, b), h), head.value = slice(slice(c.value, b), h);
      CHECK_THAT(attention(head).output, HasBitsOf(slice(slice(all, b), h)));
      head.query = take(head.query, {29});
      CHECK_THAT(attention(head).output, HasBitsOf(take(slice(slice(all, b), h), {29})));
    }
  AttentionCase padded = c;
  for (const std::int64_t more : {1, 800}) {
    const std::int64_t S = 2300 + more;
    for (const float content : {0.0F, kNaN, kInfinity, -3.4e38F}) {
      const auto extend = [&](const Array& x) {
        Array longer({2, 2, S, x.dims[3]}, content);
        for (std::int64_t head = 0; head < 4; ++head)
          std::copy_n(x.data.begin() + head * 2300 * x.dims[3], 2300 * x.dims[3], longer.data.begin() + head * S * x.dims[3]);
        return longer;
      };
      padded.key = extend(c.key), padded.value = extend(c.value);
      padded.key_padding_mask = hole(S, 2300, S);
      INFO(more << " keys of " << content << " behind");
      CHECK_THAT(attention(padded).output, HasBitsOf(all));
    }
  }
  for (const unsigned threads : {2U, 3U}) {
    set_num_threads(threads);
    INFO(threads << " threads");
    CHECK_THAT(attention(c).output, HasBitsOf(all));
    CHECK_THAT(attention(padded).output, HasBitsOf(all));
  }
  set_num_threads(1);
}

TEST_CASE("additive and general attention also compute long rows in blocks", "[ops][long]") {
  Generator random(340);
  const AttentionCase c = long_case(340, {1, 2, 2, 3, 2500, 4, 5});
  const AdditiveArrays params{random.normal({6, 4}), random.normal({6, 4}), random.normal({6})};
  const Array weight = random.normal({4, 4});
  const AttentionOptions scores{.trace = {TraceName::scores}};
  const auto check = [&](const Array& plain, const Result& seen) {
    const ReferenceAttention expected = reference_attention_of_scores(Estimate(seen.trace.at(TraceName::scores)), Estimate(c.value), c);
    CHECK_THAT(plain, IsCloseTo(expected.context));
    CHECK_THAT(seen.output, IsCloseTo(expected.context));
  };
  check(additive_attention(c, params).output, additive_attention(c, params, scores));
  check(general_attention(c, weight).output, general_attention(c, weight, scores));
}

TEST_CASE("learned and zero keys come after the last block of a long row", "[layers][long]") {
  Generator random(350);
  const MultiHeadAttention layer({.embed_dim = 4, .num_heads = 1, .add_bias_kv = true, .add_zero_attn = true, .out_proj = false});
  AttentionCase c;
  c.query = random.normal({1, 3, 4}), c.key = random.normal({1, 1200, 4}), c.value = random.normal({1, 1200, 4});
  c.key_padding_mask = hole(1200, 600, 1190);
  const Array plain = forward(layer, c).output;
  const Result seen = forward(layer, c, {.trace = {TraceName::v, TraceName::scores}});
  c.key_padding_mask = hole(1202, 600, 1190);
  const ReferenceAttention expected =
      reference_attention_of_scores(Estimate(seen.trace.at(TraceName::scores)), Estimate(seen.trace.at(TraceName::v)), c);
  CHECK_THAT(reshaped(plain, {1, 1, 3, 4}), IsCloseTo(expected.context));
  CHECK_THAT(reshaped(seen.output, {1, 1, 3, 4}), IsCloseTo(expected.context));
}

TEST_CASE("a layer gives a long sentence the same bits alone, in a padded batch and with any number of threads", "[layers][long][threads]") {
  Generator random(351);
  const MultiHeadAttention layer({.embed_dim = 12, .num_heads = 2});
  const Array queries = random.normal({2, 30, 12}), sentence = random.normal({1, 1100, 12});
  Array batch = random.normal({2, 1300, 12});
  std::fill_n(batch.data.begin(), 1300 * 12, kNaN);
  std::copy(sentence.data.begin(), sentence.data.end(), batch.data.begin());
  MaskInput padding{MaskKind::block, Array({2, 1300})};
  std::fill(padding.data.data.begin() + 1100, padding.data.data.begin() + 1300, 1.0F);
  AttentionOptions padded;
  padded.key_padding_mask = mask_of(padding);
  set_num_threads(1);
  const Array alone = forward(layer, take(queries, {0}), sentence, sentence).output;
  for (const unsigned threads : {1U, 2U, 3U}) {
    set_num_threads(threads);
    INFO("seed 351, " << threads << " threads");
    CHECK_THAT(forward(layer, take(queries, {0}), sentence, sentence).output, HasBitsOf(alone));
    CHECK_THAT(take(forward(layer, queries, batch, batch, padded).output, {0}), HasBitsOf(alone));
  }
  set_num_threads(1);
}

}  // namespace ops_long_rows_test
}  // namespace attn::test
